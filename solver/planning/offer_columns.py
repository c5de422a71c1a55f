"""Offers as columns: what tells them apart, as whole numbers, kept for all the questions that one request asks about them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from solver.hardware import Offer

if TYPE_CHECKING:  # what a request is made of is read before the optimiser, and all that it needs, is
    from solver.fleet import OfferSlot

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class OfferColumns:
    """By offer. node, provider, region: numbers of what stands there, those of providers and regions in the order of their names.
    rank: by price, then by id. kg_co2e_per_kwh: NaN where nobody says."""

    node: Integers
    provider: Integers
    region: Integers
    rank: Integers
    usd_per_hour: FloatArray
    kg_co2e_per_kwh: FloatArray
    spot: BoolArray
    unlimited: BoolArray

    def take(self, rows: Integers | BoolArray) -> "OfferColumns":
        """Of some offers only."""
        return OfferColumns(*(getattr(self, name)[rows] for name in self.__slots__))


class OfferMemo:
    """What was worked out about offers, by the very object: a request's questions ask about the same thousands again and again."""

    def __init__(self) -> None:
        self._rows: dict[int, int] = {}
        self._offers: list[Offer] = []
        self._slots: list[OfferSlot | None] = []
        self._columns: OfferColumns | None = None

    def columns(self, offers: Sequence[Offer]) -> OfferColumns:
        """The columns of these offers, in their order."""
        rows = self._rows_of(offers)
        if self._columns is None:
            self._columns = _columns(self._offers)
        return self._columns.take(rows)

    def slots(self, offers: Sequence[Offer], make: "Callable[[Offer], OfferSlot]") -> "tuple[OfferSlot, ...]":
        """The slots of these offers, each made once."""
        found = []
        for row, offer in zip(self._rows_of(offers).tolist(), offers, strict=True):
            slot = self._slots[row]
            if slot is None:
                slot = self._slots[row] = make(offer)
            found.append(slot)
        return tuple(found)

    def _rows_of(self, offers: Iterable[Offer]) -> Integers:
        known, rows = self._rows, []
        for offer in offers:
            row = known.get(id(offer))
            if row is None:  # kept, so that no other offer takes its identity
                row = known[id(offer)] = len(self._offers)
                self._offers.append(offer)
                self._slots.append(None)
                self._columns = None
            rows.append(row)
        return np.array(rows, dtype=np.int64)


def _columns(offers: Sequence[Offer]) -> OfferColumns:
    prices = np.array([offer.usd_per_hour for offer in offers], dtype=np.float64)
    rank = np.empty(len(offers), dtype=np.int64)
    rank[np.lexsort((_numbers([offer.id for offer in offers]), prices))] = np.arange(len(offers))
    return OfferColumns(
        node=_numbers([offer.node.id for offer in offers]),
        provider=_numbers([offer.provider for offer in offers]),
        region=_numbers([offer.region for offer in offers]),
        rank=rank,
        usd_per_hour=prices,
        kg_co2e_per_kwh=np.array([offer.kg_co2e_per_kwh for offer in offers], dtype=np.float64),
        spot=np.array([offer.commitment == "spot" for offer in offers], dtype=np.bool_),
        unlimited=np.array([offer.max_nodes is None for offer in offers], dtype=np.bool_),
    )


def _numbers(names: Sequence[str]) -> Integers:
    """The place of each name among all of them in order."""
    number = {name: n for n, name in enumerate(sorted(set(names)))}
    return np.array([number[name] for name in names], dtype=np.int64)
