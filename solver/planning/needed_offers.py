"""Which offers a plan may need: not those that another one stands in for at no more cost."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from solver.hardware import Offer
from solver.limit import FaultTolerance
from solver.planning.offer_columns import BoolArray, FloatArray, Integers, OfferColumns
from solver.planning.types import PlanningInput
from solver.workload import ANYWHERE

MOST_NUMBERS = 1 << 62
"""That the numbers of kinds of offers may run to before those that no offer has are left out."""


def needed_offers(planning: PlanningInput) -> list[Offer]:
    """Offers without those dearer than an unlimited one that can stand in for them whatever the limits are, and where
    carbon matters is no less clean."""
    columns = planning.offer_memo.columns(planning.offers)
    alike = _stand_ins(planning, planning.offers, columns)
    kept = _cleanest(columns, alike) if planning.carbon_matters else _cheapest(columns, alike)
    offers = [offer for offer, stays in zip(planning.offers, kept.tolist(), strict=True) if stays]
    return without_beaten_places(planning, offers, columns.take(kept))


def _cheapest(columns: OfferColumns, alike: Integers) -> BoolArray:
    """Offers no dearer than the first without a limit among those that are alike."""
    first = np.full(int(alike.max(initial=0)) + 1, len(alike) + columns.rank.max(initial=0))
    np.minimum.at(first, alike[columns.unlimited], columns.rank[columns.unlimited])
    return columns.rank <= first[alike]


def _cleanest(columns: OfferColumns, alike: Integers) -> BoolArray:
    """The same of those that are as clean."""
    kept, cleanest = np.ones(len(alike), dtype=np.bool_), dict[int, float]()
    in_order = np.argsort(columns.rank, kind="stable")
    emitted = columns.kg_co2e_per_kwh[in_order].tolist()
    each = zip(in_order.tolist(), alike[in_order].tolist(), emitted, columns.unlimited[in_order].tolist(), strict=True)
    for n, key, kg, unlimited in each:
        before = cleanest.get(key)
        if before is not None and before <= kg:
            kept[n] = False
        elif unlimited:
            cleanest[key] = kg if before is None else min(before, kg)
    return kept


def without_beaten_places(planning: PlanningInput, offers: list[Offer], columns: OfferColumns) -> list[Offer]:
    """Where workloads may be in few places, or caches travel within one: offers without places whose every machine another place
    has, no dearer and without a limit. columns: of these offers.

    What is in such a place moves to the other whole, at no more cost. The other is of the same provider, unless one place of
    each kind is all there may be: elsewhere the move could add a provider, or join two that must be lost apart.
    """
    kinds, losses = dict(planning.limits.most_places), planning.limits.fault_tolerance
    travels = planning.exchanges_caches
    in_places = travels or bool(kinds.keys() & {"provider", "region"})
    if not offers or not in_places or (losses.regions and "region" not in kinds):
        return offers
    anywhere = replace(planning.limits, most_places=(), fault_tolerance=FaultTolerance())
    machine = _stand_ins(replace(planning.without_exchanges(), limits=anywhere), offers, columns)
    provider, place = _places(columns, by_region=travels or "region" in kinds)
    one_of_each = all(most == 1 for most in kinds.values()) and not (losses.providers or losses.regions)
    # What must be lost apart may not be joined: of so many places that cover it, one is not used yet.
    covers_needed = kinds["region"] if losses.regions else 1
    shape = len(provider), int(machine.max()) + 1
    price, unlimited = columns.usd_per_hour, columns.unlimited
    has = _least_prices(place[unlimited], machine[unlimited], price[unlimited], shape)
    covers = _no_dearer(has, _least_prices(place, machine, price, shape))
    np.fill_diagonal(covers, val=False)
    if not one_of_each:
        covers &= provider[:, None] == provider[None, :]
    if planning.carbon_matters:
        offered = _Offered(place, machine, price, columns.kg_co2e_per_kwh, unlimited)
        for other, left in np.argwhere(covers).tolist():
            covers[other, left] = offered.is_as_clean(other, left)
    # Of two that cover each other the first stays.
    first = np.arange(len(provider))[:, None] < np.arange(len(provider))[None, :]
    beaten = (covers & (first | ~covers.T)).sum(axis=0) >= covers_needed
    return [offer for offer, left_out in zip(offers, beaten[place].tolist(), strict=True) if not left_out]


def _places(columns: OfferColumns, *, by_region: bool) -> tuple[Integers, Integers]:
    """(provider of each place, place of each offer): places in the order of their names."""
    regions = int(columns.region.max()) + 1
    names = columns.provider * regions + (columns.region if by_region else 0)
    places, place = np.unique(names, return_inverse=True)
    return places // regions, place


def _least_prices(place: Integers, machine: Integers, price: FloatArray, shape: tuple[int, int]) -> FloatArray:
    """USD an hour by place and machine; infinite where there is none."""
    least = np.full(shape, np.inf)
    np.minimum.at(least, (place, machine), price)
    return least


def _no_dearer(has: FloatArray, asks: FloatArray) -> BoolArray:
    """Which place (row) has every machine of which other (column) at no more than its least price."""
    offered = np.isfinite(asks)  # most places have few of all machines
    return np.stack([(has[:, own] <= asked[own]).all(axis=1) for asked, own in zip(asks, offered, strict=True)], axis=1)


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


def _stand_ins(planning: PlanningInput, offers: Sequence[Offer], columns: OfferColumns) -> Integers:
    """Offers with equal numbers can stand in for each other: one machine, equally interruptible, and alike in whatever
    the request tells offers apart by: quotas, places of workloads and how many they may be in, losses to be survived."""
    limits, losses = planning.limits, planning.limits.fault_tolerance
    places = [workload.places for workload in planning.workloads if workload.places != ANYWHERE]
    distances = [w.network_s_by_region for w in planning.workloads if w.network_s_by_region]
    kinds = {kind for kind, _ in limits.most_places}
    by_region = bool(losses.regions or "region" in kinds or planning.exchanges_caches)
    told_apart = [columns.node, columns.spot.astype(np.int64)]
    told_apart += [_numbered([offer.id in quota.offer_ids for offer in offers]) for quota in limits.quotas]
    told_apart += [_numbered([place.admit(offer.provider, offer.region) for offer in offers]) for place in places]
    told_apart += [_numbered([away.get(offer.region) for offer in offers]) for away in distances]
    if losses.providers or "provider" in kinds or by_region:
        told_apart.append(columns.provider)
    if by_region:
        told_apart.append(columns.region)
    alike, kinds_so_far = np.zeros(len(offers), dtype=np.int64), 1
    for column in told_apart:
        count = int(column.max(initial=0)) + 1
        if kinds_so_far * count > MOST_NUMBERS:
            alike = np.unique(alike, return_inverse=True)[1]
            kinds_so_far = int(alike.max(initial=0)) + 1
        alike, kinds_so_far = alike * count + column, kinds_so_far * count
    return np.unique(alike, return_inverse=True)[1]


def _numbered(values: Sequence[object]) -> Integers:
    """Equal values as equal numbers."""
    number: dict[object, int] = {}
    return np.array([number.setdefault(value, len(number)) for value in values], dtype=np.int64)
