"""Planning from a fleet that runs already: what switching costs is weighed against what it saves.

With n the nodes of an offer, n₀ those that run now, c its price and T the hours over which a switch must pay for itself,

    minimise  Σ c·n + (1/T)·Σ [ a·max(0, n − n₀) + (r + h·c)·max(0, n₀ − n) ]

a, r: USD per node added, removed; h: hours in which a node that goes runs on beside those that come. The cost of an
offer is convex and piecewise linear in n, so it is stated exactly as offers of their own: up to n₀ nodes *held*, at
c − (r + h·c)/T each, and further ones *added*, at c + a/T; the constant Σ n₀·(r + h·c)/T is left out and added again.
Nodes whose term has not ended, and those dearer to give back than to keep, are *paid*: they cost nothing more to use.

Nodes that come are not promised to share a network with those that run, so a replica over several nodes takes either
held or added ones; and while both run, added nodes must be available beside the fleet.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from solver.errors import NoPlanInTimeError, SolverError
from solver.fleet.plan import gap_between
from solver.hardware import Offer
from solver.limit import Limit, LimitKind
from solver.outcome import Outcome, Status
from solver.planning.placements import needed_devices
from solver.planning.types import (
    Alternative,
    Binding,
    ClassLoad,
    Observer,
    PlanEntry,
    PlanningInput,
    Recommendation,
    SplitDevices,
    unobserved,
)
from solver.recommend.recommend import SpaceMemo, explained, solve_request

Tier = Literal["paid", "held", "added"]
Decision = Literal["switched", "kept", "unchanged", "infeasible"]
TOLERANCE = 1e-6


class SwitchingMisstatedError(SolverError):
    """What a re-plan states does not follow from its nodes: a defect, never an answer."""


@dataclass(frozen=True, slots=True)
class HeldNodes:
    """Nodes of one offer that run now. committed: of these, paid for until their term ends. usable: the request's
    choices admit them; may_add: more of them, too."""

    offer: Offer
    nodes: int
    committed: int = 0
    usable: bool = True
    may_add: bool = True


@dataclass(frozen=True, slots=True)
class SwitchingCost:
    """See the law above; payback_h is T."""

    usd_per_node_added: float = 0.0
    usd_per_node_removed: float = 0.0
    overlap_h: float = 0.0
    payback_h: float = math.inf

    def added_usd_per_hour(self) -> float:
        return self.usd_per_node_added / self.payback_h

    def removed_usd_per_hour(self, offer: Offer) -> float:
        return (self.usd_per_node_removed + self.overlap_h * offer.usd_per_hour) / self.payback_h


@dataclass(frozen=True, slots=True)
class CurrentFleet:
    """held: one entry an offer. The fleet is kept unless switching saves more than both."""

    held: tuple[HeldNodes, ...]
    cost: SwitchingCost = SwitchingCost()
    least_saving_fraction: float = 0.0
    least_saving_usd_per_hour: float = 0.0


@dataclass(frozen=True, slots=True)
class Replanned:
    """decision: switched, kept (switching saves too little), or unchanged (the best plan rents what runs already).

    switching_usd: once; switching_usd_per_hour: spread over the payback time. kept_usd_per_hour: what the fleet costs
    as it is, None where it cannot serve the demand. saves_usd_per_hour: of the best switch over keeping, its cost
    counted; None without a fleet that could be kept. paid: nodes paid for whether used or not.
    """

    found: Recommendation
    decision: Decision
    before: Mapping[str, int]
    switching_usd: float
    switching_usd_per_hour: float
    kept_usd_per_hour: float | None
    saves_usd_per_hour: float | None
    paid: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Split:
    """The market with the fleet's nodes as offers of their own. tiers: of them, what they stand for."""

    offers: tuple[Offer, ...]
    tiers: Mapping[str, tuple[Tier, Offer]]
    paid: Mapping[str, int]
    constant_usd_per_hour: float


def split_offers(offers: tuple[Offer, ...], current: CurrentFleet) -> _Split:
    """Offers as tiers, each with the price of one more node; a node of any tier counts in USD per hour."""
    held = {h.offer.id: h for h in current.held}
    found: list[Offer] = []
    tiers: dict[str, tuple[Tier, Offer]] = {}
    paid: dict[str, int] = {}
    constant = 0.0

    def add(tier: Tier, offer: Offer, usd_per_hour: float, most: int | None) -> None:
        if most is None or most > 0:
            name = f"{tier}:{offer.id}"
            tiers[name] = (tier, offer)
            found.append(replace(offer, id=name, usd_per_hour=usd_per_hour, max_nodes=most))

    for offer in offers:
        have = held[offer.id].nodes if offer.id in held else 0
        if offer.id in held and not held[offer.id].may_add:
            continue
        most = None if offer.max_nodes is None else offer.max_nodes - have
        add("added", offer, offer.usd_per_hour + current.cost.added_usd_per_hour(), most)
    for one in current.held:
        keep, give_back = one.offer.usd_per_hour, current.cost.removed_usd_per_hour(one.offer)
        settled = one.nodes if keep < give_back else one.committed
        constant += settled * keep + (one.nodes - settled) * give_back
        if settled:
            paid[one.offer.id] = settled
        if one.usable:
            room = one.nodes if one.offer.max_nodes is None else min(one.nodes, one.offer.max_nodes)
            add("paid", one.offer, 0.0, min(settled, room))
            add("held", one.offer, keep - give_back, min(one.nodes - settled, max(0, room - settled)))
    return _Split(tuple(found), tiers, paid, constant)


def replan(
    planning: PlanningInput, current: CurrentFleet, memo: SpaceMemo, observe: Observer = unobserved
) -> Replanned:
    """The best plan counting what it takes to get there, unless keeping the fleet is nearly as good.

    The objective must be cost. Raises as ``recommend`` does, and SwitchingMisstatedError on a defect.
    """
    split = split_offers(planning.offers, current)
    tiered = with_offers(planning, split)
    found = merged(explained(solve_request(tiered, memo, observe), memo, observe), split)
    before = {h.offer.id: h.nodes for h in current.held}
    kept = _kept(planning, current, memo)
    rent_now = math.fsum(h.nodes * h.offer.usd_per_hour for h in current.held)
    if not found.entries:
        return Replanned(found, "infeasible", before, 0.0, 0.0, None, None, split.paid)
    total = found.solve.objective or 0.0
    once = switching_usd(current, found.nodes)
    check_switching(current, found, split, total)
    saves = None if kept is None else rent_now - total
    if (
        kept is not None
        and saves is not None
        and dict(found.nodes) != before
        and not _worth_it(saves, rent_now, current)
    ):
        return Replanned(
            _as_it_is(kept, found, rent_now, before), "kept", before, 0.0, 0.0, rent_now, saves, split.paid
        )
    decision: Decision = "unchanged" if dict(found.nodes) == before else "switched"
    return Replanned(
        found,
        decision,
        before,
        once,
        once / current.cost.payback_h,
        None if kept is None else rent_now,
        saves,
        split.paid,
    )


def _worth_it(saves: float, rent_now: float, current: CurrentFleet) -> bool:
    """Beyond both thresholds; without any, anything that is cheaper beyond rounding."""
    least = max(current.least_saving_fraction * rent_now, current.least_saving_usd_per_hour)
    return saves > least + TOLERANCE * max(1.0, rent_now)


def with_offers(planning: PlanningInput, split: _Split) -> PlanningInput:
    """The request over the tiers: quotas hold for all tiers of an offer, the budget for what is left of it."""
    limits = planning.limits
    names: dict[str, set[str]] = {}
    for name, (_, offer) in split.tiers.items():
        names.setdefault(offer.id, set()).add(name)
    quotas = tuple(
        replace(q, offer_ids=frozenset(n for o in q.offer_ids for n in names.get(o, ()))) for q in limits.quotas
    )
    budget = limits.max_usd_per_hour
    if budget is not None:
        budget = max(0.0, budget - split.constant_usd_per_hour)
    return replace(
        planning, offers=split.offers, limits=replace(limits, quotas=quotas, max_usd_per_hour=budget), withheld=()
    )


def _kept(planning: PlanningInput, current: CurrentFleet, memo: SpaceMemo) -> Recommendation | None:
    """The demand served by the fleet as it is, or None where it cannot be."""
    offers = tuple(replace(h.offer, max_nodes=h.nodes) for h in current.held if h.usable)
    if len(offers) < len(current.held) or not offers:
        return None
    alone = replace(planning, offers=offers, explain=False, alternatives=0, withheld=())
    try:
        solved_request = solve_request(alone, memo)
    except NoPlanInTimeError:
        return None
    return explained(solved_request, memo) if solved_request.result.plan is not None else None


def _as_it_is(kept: Recommendation, best: Recommendation, rent_now: float, nodes: Mapping[str, int]) -> Recommendation:
    """The kept fleet as the answer: feasible, with the distance to the best plan's bound as its gap."""
    bound = best.solve.bound
    gap = None if bound is None else gap_between(rent_now, min(bound, rent_now))
    solve = replace(
        best.solve, outcome=Outcome.FEASIBLE, status=Status.KEPT_CURRENT, objective=rent_now, gap_fraction=gap
    )
    return replace(
        kept,
        solve=solve,
        entries=_sharing(kept.entries, nodes),
        nodes=dict(nodes),
        usd_per_hour=rent_now,
        alternatives=best.alternatives,
        binding=(),
        rejected=best.rejected,
    )


def merged(found: Recommendation, split: _Split) -> Recommendation:
    """Tiers back to offers: rent in full, paid nodes included whether used or not."""
    nodes: dict[str, int] = dict(split.paid) if found.entries else {}
    for name, count in found.nodes.items():
        tier, offer = split.tiers[name]
        if tier != "paid":
            nodes[offer.id] = nodes.get(offer.id, 0) + count
    price = {offer.id: offer.usd_per_hour for _, offer in split.tiers.values()}
    rent = math.fsum(price.get(offer, 0.0) * count for offer, count in nodes.items())
    solve = found.solve
    if solve.objective is not None:
        objective = solve.objective + split.constant_usd_per_hour
        bound = None if solve.bound is None else solve.bound + split.constant_usd_per_hour
        gap = None if bound is None else gap_between(objective, bound)
        solve = replace(solve, objective=objective, bound=bound, gap_fraction=gap)
    return replace(
        found,
        solve=solve,
        entries=_merged_entries(found.entries, split, nodes),
        splits=_merged_splits(found.splits, split),
        nodes=dict(sorted(nodes.items())),
        usd_per_hour=rent,
        alternatives=tuple(_merged_alternative(other, split) for other in found.alternatives),
        binding=tuple(b for b in (_merged_binding(b, split) for b in found.binding) if b is not None),
    )


def _merged_entries(entries: tuple[PlanEntry, ...], split: _Split, nodes: Mapping[str, int]) -> tuple[PlanEntry, ...]:
    """Lines of the same replicas on tiers of one offer become one; an offer's rent is split by devices used."""
    joined: dict[tuple[object, ...], PlanEntry] = {}
    for entry in entries:
        offer = split.tiers[entry.offer.id][1]
        one = entry.configuration
        key = (entry.workload, entry.role, offer.id, one.layout, one.precision, one.device.partition, one.speculation)
        entry = replace(entry, offer=offer)
        have = joined.get(key)
        if have is not None:
            served = have.serves_requests_per_s + entry.serves_requests_per_s
            capacity = have.capacity_requests_per_s + entry.capacity_requests_per_s
            entry = replace(
                have,
                nodes=have.nodes + entry.nodes,
                replicas=have.replicas + entry.replicas,
                serves_requests_per_s=served,
                capacity_requests_per_s=capacity,
                utilisation_fraction=served / capacity if capacity > 0 else 0.0,
                power_w=have.power_w + entry.power_w,
                estimate=have.estimate or entry.estimate,
                classes=_merged_classes(have.classes, entry.classes),
            )
        joined[key] = entry
    return _sharing(tuple(joined.values()), nodes)


def _merged_splits(splits: tuple[SplitDevices, ...], split: _Split) -> tuple[SplitDevices, ...]:
    """Nodes that are split alike on tiers of one offer, together."""
    nodes: Counter[SplitDevices] = Counter()
    for one in splits:
        nodes[replace(one, offer_id=split.tiers[one.offer_id][1].id, nodes=0)] += one.nodes
    return tuple(replace(one, nodes=count) for one, count in nodes.items())


def _merged_classes(one: tuple[ClassLoad, ...], other: tuple[ClassLoad, ...]) -> tuple[ClassLoad, ...]:
    """What two lines serve of each traffic class."""
    joined = {each.name: each for each in one}
    for each in other:
        have = joined.get(each.name)
        joined[each.name] = (
            each
            if have is None
            else replace(
                have,
                requests_per_s=have.requests_per_s + each.requests_per_s,
                share_fraction=have.share_fraction + each.share_fraction,
                estimate=have.estimate or each.estimate,
            )
        )
    return tuple(joined.values())


def _sharing(entries: tuple[PlanEntry, ...], nodes: Mapping[str, int]) -> tuple[PlanEntry, ...]:
    """Lines with their part of an offer's nodes and rent, by devices used."""
    used: dict[str, float] = {}
    for entry in entries:
        used[entry.offer.id] = used.get(entry.offer.id, 0.0) + needed_devices(entry)
    shares = [needed_devices(entry) / used[entry.offer.id] for entry in entries]
    return tuple(
        replace(
            entry,
            nodes=max(1, round(nodes[entry.offer.id] * share)),
            usd_per_hour=entry.offer.usd_per_hour * nodes[entry.offer.id] * share,
        )
        for entry, share in zip(entries, shares, strict=True)
    )


def _merged_alternative(other: Alternative, split: _Split) -> Alternative:
    nodes: dict[str, int] = {}
    for entry in other.entries:
        offer = split.tiers[entry.offer.id][1]
        nodes[offer.id] = nodes.get(offer.id, 0) + entry.nodes
    return replace(other, entries=_merged_entries(other.entries, split, nodes))


def _merged_binding(one: Binding, split: _Split) -> Binding | None:
    """Limits of tiers are the fleet's own; only those on further nodes can be relaxed."""
    for name, (tier, offer) in split.tiers.items():
        if one.limit == Limit(LimitKind.NODES, name):
            if tier != "added" or one.relaxing_to is None:
                return None
            held = next((n for n, (t, o) in split.tiers.items() if o.id == offer.id and t != "added"), None)
            return None if held is not None else replace(one, limit=Limit(LimitKind.NODES, offer.id))
    return one


def switching_usd(current: CurrentFleet, nodes: Mapping[str, int]) -> float:
    """What the switch costs once: Σ a·max(0, n − n₀) + (r + h·c)·max(0, n₀ − n)."""
    cost = current.cost
    held = {h.offer.id: h for h in current.held}
    total = 0.0
    for offer in {*nodes, *held}:
        before = held[offer].nodes if offer in held else 0
        after = nodes.get(offer, 0)
        if after > before:
            total += (after - before) * cost.usd_per_node_added
        elif offer in held and after < before:
            price = held[offer].offer.usd_per_hour
            total += (before - after) * (cost.usd_per_node_removed + cost.overlap_h * price)
    return total


def check_switching(current: CurrentFleet, found: Recommendation, split: _Split, total: float) -> None:
    """Rent and switching recomputed from nodes alone. Raises SwitchingMisstatedError.

    The optimiser's objective must be what its nodes cost: rent, and the switch spread over the payback time.
    """
    price = {o.id: o.usd_per_hour for _, o in split.tiers.values()} | {
        h.offer.id: h.offer.usd_per_hour for h in current.held
    }
    rent = math.fsum(price[offer] * count for offer, count in found.nodes.items())
    own = rent + switching_usd(current, found.nodes) / current.cost.payback_h
    if abs(own - total) > TOLERANCE * max(1.0, abs(own)):
        raise SwitchingMisstatedError(f"{total} USD/h is stated, rent and switching come to {own}")
    for one in current.held:
        if found.nodes.get(one.offer.id, 0) < one.committed:
            raise SwitchingMisstatedError(f"{one.offer.id}: fewer nodes than are committed")
