"""Which offers a plan may need: not those that another one stands in for at no more cost."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from solver.hardware import Offer
from solver.limit import FaultTolerance
from solver.planning.types import PlanningInput
from solver.workload import ANYWHERE

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]


def needed_offers(planning: PlanningInput) -> list[Offer]:
    """Offers without those dearer than an unlimited one that can stand in for them whatever the limits are, and where
    carbon matters is no less clean."""
    stand_ins = _stand_ins(planning)
    ranked = [(_rank(planning, offer), stand_ins(offer), offer) for offer in planning.offers]
    unlimited: dict[tuple[object, ...], list[_Rank]] = {}
    for rank, key, offer in ranked:
        if offer.max_nodes is None:
            unlimited.setdefault(key, []).append(rank)
    if planning.carbon_matters:
        unlimited = {key: _unbeaten(ranks) for key, ranks in unlimited.items()}
    else:
        unlimited = {key: [min(ranks)] for key, ranks in unlimited.items()}
    kept = [offer for rank, key, offer in ranked if not _beaten(rank, unlimited.get(key, ()))]
    return without_beaten_places(planning, kept)


def _unbeaten(ranks: Sequence["_Rank"]) -> list["_Rank"]:
    """Those of which none is both cheaper and no less clean."""
    kept: list[_Rank] = []
    for rank in sorted(ranks):
        if not _beaten(rank, kept):
            kept.append(rank)
    return kept


def without_beaten_places(planning: PlanningInput, offers: list[Offer]) -> list[Offer]:
    """Where workloads may be in few places, or caches travel within one: offers without places whose every machine another place
    has, no dearer and without a limit.

    What is in such a place moves to the other whole, at no more cost. The other is of the same provider, unless one place of
    each kind is all there may be: elsewhere the move could add a provider, or join two that must be lost apart.
    """
    kinds, losses = dict(planning.limits.most_places), planning.limits.fault_tolerance
    travels = planning.exchanges_caches
    in_places = travels or bool(kinds.keys() & {"provider", "region"})
    if not offers or not in_places or (losses.regions and "region" not in kinds):
        return offers
    anywhere = replace(planning.limits, most_places=(), fault_tolerance=FaultTolerance())
    alike = _stand_ins(replace(planning.without_exchanges(), limits=anywhere))
    by_region = travels or "region" in kinds
    place_of = [(offer.provider, offer.region if by_region else "") for offer in offers]
    places = sorted(set(place_of))
    number = {place: n for n, place in enumerate(places)}
    machines: dict[tuple[object, ...], int] = {}
    machine = np.array([machines.setdefault(alike(offer), len(machines)) for offer in offers])
    place = np.array([number[one] for one in place_of])
    price = np.array([offer.usd_per_hour for offer in offers])
    unlimited = np.array([offer.max_nodes is None for offer in offers])
    shape = len(places), len(machines)
    one_of_each = all(most == 1 for most in kinds.values()) and not (losses.providers or losses.regions)
    # What must be lost apart may not be joined: of so many places that cover it, one is not used yet.
    covers_needed = kinds["region"] if losses.regions else 1
    has = _least_prices(place[unlimited], machine[unlimited], price[unlimited], shape)
    covers = _no_dearer(has, _least_prices(place, machine, price, shape))
    np.fill_diagonal(covers, val=False)
    if not one_of_each:
        providers = np.array([provider for provider, _ in places])
        covers &= providers[:, None] == providers[None, :]
    if planning.carbon_matters:
        clean = np.array([offer.kg_co2e_per_kwh for offer in offers])
        offered = _Offered(place, machine, price, clean, unlimited)
        for other, left in np.argwhere(covers).tolist():
            covers[other, left] = offered.is_as_clean(other, left)
    # Of two that cover each other the first stays.
    first = np.arange(len(places))[:, None] < np.arange(len(places))[None, :]
    beaten = (covers & (first | ~covers.T)).sum(axis=0) >= covers_needed
    return [offer for offer, left_out in zip(offers, beaten[place].tolist(), strict=True) if not left_out]


def _least_prices(place: Integers, machine: Integers, price: FloatArray, shape: tuple[int, int]) -> FloatArray:
    """USD an hour by place and machine; infinite where there is none."""
    least = np.full(shape, np.inf)
    np.minimum.at(least, (place, machine), price)
    return least


def _no_dearer(has: FloatArray, asks: FloatArray) -> BoolArray:
    """Which place (row) has every machine of which other (column) at no more than its least price."""
    return np.stack([(has <= asked).all(axis=1) for asked in asks], axis=1)


@dataclass(frozen=True, slots=True)
class _Offered:
    """By offer. kg_co2e: of a kWh there."""

    place: Integers
    machine: Integers
    price: FloatArray
    kg_co2e: FloatArray
    unlimited: BoolArray

    def is_as_clean(self, other: int, place: int) -> bool:
        """Is there, for each offer of the place, one of the other that is neither dearer nor emits more?"""
        there = (self.place == other) & self.unlimited
        for n in np.flatnonzero(self.place == place).tolist():
            same = there & (self.machine == self.machine[n])
            if not (same & (self.price <= self.price[n]) & (self.kg_co2e <= self.kg_co2e[n])).any():
                return False
        return True


_Rank = tuple[float, str, float]


def _beaten(rank: _Rank, by: Sequence[_Rank]) -> bool:
    return any(other[:2] < rank[:2] and other[2] <= rank[2] for other in by)


def _rank(planning: PlanningInput, offer: Offer) -> _Rank:
    """(price, id, how much its electricity emits where that matters)."""
    return offer.usd_per_hour, offer.id, offer.kg_co2e_per_kwh if planning.carbon_matters else 0.0


def _stand_ins(planning: PlanningInput) -> Callable[[Offer], tuple[object, ...]]:
    """Offers with equal keys can stand in for each other: one machine, equally interruptible, and alike in whatever
    the request tells offers apart by: quotas, places of workloads and how many they may be in, losses to be survived."""
    limits, losses = planning.limits, planning.limits.fault_tolerance
    quotas = [quota.offer_ids for quota in limits.quotas]
    places = [workload.places for workload in planning.workloads if workload.places != ANYWHERE]
    distances = [w.network_s_by_region for w in planning.workloads if w.network_s_by_region]
    kinds = {kind for kind, _ in limits.most_places}
    by_region = bool(losses.regions or "region" in kinds or planning.exchanges_caches)
    by_provider = bool(losses.providers or kinds & {"provider", "region"} or planning.exchanges_caches)
    if not (quotas or places or distances or by_provider or by_region):
        return lambda offer: (offer.node.id, offer.commitment == "spot")

    def key(offer: Offer) -> tuple[object, ...]:
        return (
            offer.node.id,
            offer.commitment == "spot",
            tuple(offer.id in ids for ids in quotas),
            tuple(place.admit(offer.provider, offer.region) for place in places),
            tuple(away.get(offer.region) for away in distances),
            offer.provider if by_provider else None,
            offer.region if by_region else None,
        )

    return key
