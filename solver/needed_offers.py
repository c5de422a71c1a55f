"""Which offers a plan may need: not those that another one stands in for at no more cost."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from solver.hardware import Offer
from solver.planning import Losses, PlanningInput
from solver.workload import ANYWHERE


def needed_offers(planning: PlanningInput) -> list[Offer]:
    """Offers without those dearer than an unlimited one that can stand in for them whatever the limits are, and where
    carbon matters is no less clean."""
    unlimited: dict[tuple[object, ...], list[_Rank]] = {}
    stand_ins = _stand_ins(planning)
    ranks = {offer.id: _rank(planning, offer) for offer in planning.offers}
    for offer in sorted((o for o in planning.offers if o.max_nodes is None), key=lambda o: ranks[o.id]):
        better = unlimited.setdefault(stand_ins(offer), [])
        if not _beaten(ranks[offer.id], better):
            better.append(ranks[offer.id])
    kept = [o for o in planning.offers if not _beaten(ranks[o.id], unlimited.get(stand_ins(o), []))]
    return without_beaten_places(planning, kept)


def without_beaten_places(planning: PlanningInput, offers: list[Offer]) -> list[Offer]:
    """Where workloads may be in few places: offers without places whose every machine another place has, no dearer and without
    a limit.

    What is in such a place moves to the other whole, at no more cost. The other is of the same provider, unless one place of
    each kind is all there may be: elsewhere the move could add a provider, or join two that must be lost apart.
    """
    kinds, losses = dict(planning.limits.most_places), planning.limits.survive
    if not kinds.keys() & {"provider", "region"} or (losses.regions and "region" not in kinds):
        return offers
    alike = _stand_ins(replace(planning, limits=replace(planning.limits, most_places=(), survive=Losses())))
    by_region = "region" in kinds
    asks: dict[tuple[str, str], dict[tuple[object, ...], list[_Rank]]] = {}
    has: dict[tuple[str, str], dict[tuple[object, ...], list[_Rank]]] = {}
    for offer in offers:
        place, key, rank = _place(offer, by_region), alike(offer), _rank(planning, offer)
        asks.setdefault(place, {}).setdefault(key, []).append(rank)
        if offer.max_nodes is None:
            has.setdefault(place, {}).setdefault(key, []).append(rank)
    one_of_each = all(most == 1 for most in kinds.values()) and not (losses.providers or losses.regions)
    # What must be lost apart may not be joined: of so many places that cover it, one is not used yet.
    covers_needed = kinds["region"] if losses.regions else 1

    def covers(other: tuple[str, str], place: tuple[str, str]) -> bool:
        own = has.get(other, {})
        if other == place or not (one_of_each or other[0] == place[0]) or not own.keys() >= asks[place].keys():
            return False
        return all(
            any(better[0] <= rank[0] and better[2] <= rank[2] for better in own[key])
            for key, ranks in asks[place].items()
            for rank in ranks
        )

    beaten = {
        place
        for place in asks
        if sum(covers(other, place) and (other < place or not covers(place, other)) for other in has) >= covers_needed
    }
    return [o for o in offers if _place(o, by_region) not in beaten]


def _place(offer: Offer, by_region: bool) -> tuple[str, str]:
    return offer.provider, offer.region if by_region else ""


_Rank = tuple[float, str, float]


def _beaten(rank: _Rank, by: Sequence[_Rank]) -> bool:
    return any(other[:2] < rank[:2] and other[2] <= rank[2] for other in by)


def _rank(planning: PlanningInput, offer: Offer) -> _Rank:
    """(price, id, how much its electricity emits where that matters)."""
    return offer.usd_per_hour, offer.id, offer.kg_co2e_per_kwh if planning.carbon_matters else 0.0


def _stand_ins(planning: PlanningInput) -> Callable[[Offer], tuple[object, ...]]:
    """Offers with equal keys can stand in for each other: one machine, equally interruptible, and alike in whatever
    the request tells offers apart by: quotas, places of workloads and how many they may be in, losses to be survived."""
    limits, losses = planning.limits, planning.limits.survive
    quotas = [quota.offer_ids for quota in limits.quotas]
    places = [workload.places for workload in planning.workloads if workload.places != ANYWHERE]
    distances = [w.network_s_by_region for w in planning.workloads if w.network_s_by_region]
    kinds = {kind for kind, _ in limits.most_places}
    by_provider = bool(losses.providers or "provider" in kinds or "region" in kinds)
    by_region = bool(losses.regions or "region" in kinds)
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
