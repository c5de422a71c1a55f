"""Limits of a fleet problem by name: each one step looser, or lifted."""

from collections.abc import Collection
from dataclasses import dataclass, replace

from solver.fleet.plan import FleetResult
from solver.fleet.problem import Demand, FleetProblem, Limits, OfferSlot
from solver.limit import DomainKind, Limit, LimitKind


@dataclass(frozen=True, slots=True)
class ChangedProblem:
    """One limit moved, with the problem that results; the caller adds those that need new capacities (targets).

    relaxing_from, relaxing_to: in the limit's own SI unit; None where no number describes it, or none is left.
    """

    limit: Limit
    relaxing_from: float | None
    relaxing_to: float | None
    problem: FleetProblem


def limit_steps(
    problem: FleetProblem, result: FleetResult, step_fraction: float, most_offers: int | None = None
) -> list[ChangedProblem]:
    """Each limit of the optimiser one step looser: budget, power and spot share by ``step_fraction``, counts by one.

    most_offers: how many exhausted offers to ask about, cheapest per device first; None asks about all.
    """
    limits, steps = problem.limits, []

    def change(limit: Limit, old: float, new: float, changed: Limits) -> None:
        steps.append(ChangedProblem(limit, old, new, replace(problem, limits=changed)))

    if (budget := limits.budget_usd_per_hour) is not None:
        looser = budget * (1 + step_fraction)
        change(Limit(LimitKind.BUDGET), budget, looser, replace(limits, budget_usd_per_hour=looser))
    if (power_w := limits.power_w) is not None:
        looser = power_w * (1 + step_fraction)
        change(Limit(LimitKind.POWER), power_w, looser, replace(limits, power_w=looser))
    if (share := limits.max_spot_fraction) is not None and share < 1:
        looser = min(1.0, share + step_fraction)
        change(Limit(LimitKind.SPOT_SHARE), share, looser, replace(limits, max_spot_fraction=looser))
    if limits.spare_nodes:
        fewer = limits.spare_nodes - 1
        change(Limit(LimitKind.SPARE_NODES), limits.spare_nodes, fewer, replace(limits, spare_nodes=fewer))
    for position, quota in enumerate(limits.quotas):
        node = max((offer.devices for offer in problem.offers if offer.id in quota.offer_ids), default=1)
        wider = replace(quota, max_devices=quota.max_devices + node)
        quotas = (*limits.quotas[:position], wider, *limits.quotas[position + 1 :])
        change(Limit(LimitKind.QUOTA, quota.name), quota.max_devices, wider.max_devices, replace(limits, quotas=quotas))
    for kind, count in limits.fault_tolerance.losses:
        steps.append(fault_tolerance_change(problem, kind, count, count - 1))
    for w, demand in enumerate(problem.demands):
        if demand.min_replicas > 1:
            steps.append(replicas_change(problem, w, demand.min_replicas - 1))
        if demand.allowed_offer_ids is not None:
            steps.append(places_change(problem, w))
    nodes = result.plan.nodes_by_offer() if result.plan else {}
    exhausted = [offer for offer in problem.offers if nodes.get(offer.id, 0) == offer.max_nodes and offer.max_nodes]
    exhausted.sort(key=lambda offer: (offer.usd_per_hour / offer.devices, offer.id))
    steps += [offer_change(problem, offer, (offer.max_nodes or 0) + 1) for offer in exhausted[:most_offers]]
    return steps


def stated_limits(problem: FleetProblem) -> tuple[Limit, ...]:
    """The limits ``without_limits`` can lift."""
    limits = problem.limits
    present = {
        Limit(LimitKind.BUDGET): limits.budget_usd_per_hour is not None,
        Limit(LimitKind.POWER): limits.power_w is not None,
        Limit(LimitKind.SPARE_NODES): limits.spare_nodes > 0,
        Limit(LimitKind.SPOT_SHARE): limits.max_spot_fraction is not None,
        Limit(LimitKind.QUOTA): bool(limits.quotas),
        **{Limit(LimitKind.LOSSES, kind): True for kind, _ in limits.fault_tolerance.losses},
        **{min_replicas_of(w): demand.min_replicas > 1 for w, demand in enumerate(problem.demands)},
        **{admitted_offers_of(w): d.allowed_offer_ids is not None for w, d in enumerate(problem.demands)},
        **{
            Limit(LimitKind.PLACES_USED, kind): True
            for kind in sorted({kind for demand in problem.demands for kind, _ in demand.most_places})
        },
        **{_nodes_of(offer): True for offer in problem.offers if offer.max_nodes is not None},
    }
    return tuple(limit for limit, is_set in present.items() if is_set)


def _without_own_number(offer: OfferSlot, problem: FleetProblem, lifted: Collection[Limit]) -> OfferSlot:
    """An offer whose number is lifted has that of all that state none, as long as this holds."""
    if offer.max_nodes is None or _nodes_of(offer) not in lifted:
        return offer
    if offer.is_default_most or Limit(LimitKind.NODES_UNLESS_STATED) in lifted:
        return replace(offer, max_nodes=None, is_default_most=True)
    default = max((one.max_nodes or 0 for one in problem.offers if one.is_default_most), default=None)
    return replace(offer, max_nodes=default)


def _nodes_of(offer: OfferSlot) -> Limit:
    """Which limit says how many nodes of an offer there are: its own, or that of all that state none."""
    return Limit(LimitKind.NODES_UNLESS_STATED if offer.is_default_most else LimitKind.NODES)


def min_replicas_of(workload: int) -> Limit:
    return Limit(LimitKind.MIN_REPLICAS, workload=workload)


def admitted_offers_of(workload: int) -> Limit:
    return Limit(LimitKind.ADMITTED_OFFERS, workload=workload)


def without_limits(problem: FleetProblem, lifted: Collection[Limit]) -> FleetProblem:
    """The problem with these limits lifted."""
    limits, offers = problem.limits, problem.offers
    if Limit(LimitKind.BUDGET) in lifted:
        limits = replace(limits, budget_usd_per_hour=None)
    if Limit(LimitKind.POWER) in lifted:
        limits = replace(limits, power_w=None)
    if Limit(LimitKind.SPARE_NODES) in lifted:
        limits = replace(limits, spare_nodes=0)
    if Limit(LimitKind.SPOT_SHARE) in lifted:
        limits = replace(limits, max_spot_fraction=None)
    if Limit(LimitKind.QUOTA) in lifted:
        limits = replace(limits, quotas=())
    fault_tolerance = limits.fault_tolerance
    if Limit(LimitKind.LOSSES, "provider") in lifted:
        fault_tolerance = replace(fault_tolerance, providers=0)
    if Limit(LimitKind.LOSSES, "region") in lifted:
        fault_tolerance = replace(fault_tolerance, regions=0)
    limits = replace(limits, fault_tolerance=fault_tolerance)
    demands = tuple(_without_own_limits(demand, w, lifted) for w, demand in enumerate(problem.demands))
    offers = tuple(_without_own_number(offer, problem, lifted) for offer in offers)
    return replace(problem, offers=offers, demands=demands, limits=limits)


def _without_own_limits(demand: Demand, workload: int, lifted: Collection[Limit]) -> Demand:
    if min_replicas_of(workload) in lifted:
        demand = replace(demand, min_replicas=min(1, demand.min_replicas))
    if admitted_offers_of(workload) in lifted:
        demand = replace(demand, allowed_offer_ids=None)
    few = tuple(one for one in demand.most_places if Limit(LimitKind.PLACES_USED, one[0]) not in lifted)
    return replace(demand, most_places=few)


def fault_tolerance_change(problem: FleetProblem, kind: DomainKind, old: int, new: int) -> ChangedProblem:
    fault_tolerance = problem.limits.fault_tolerance
    fewer = replace(fault_tolerance, providers=new) if kind == "provider" else replace(fault_tolerance, regions=new)
    changed = replace(problem, limits=replace(problem.limits, fault_tolerance=fewer))
    return ChangedProblem(Limit(LimitKind.LOSSES, kind), old, new, changed)


def replicas_change(problem: FleetProblem, w: int, new: int) -> ChangedProblem:
    changed = _with_demand(problem, w, replace(problem.demands[w], min_replicas=new))
    return ChangedProblem(min_replicas_of(w), problem.demands[w].min_replicas, new, changed)


def places_change(problem: FleetProblem, w: int) -> ChangedProblem:
    """The workload admitted to every offer; no numbers describe it."""
    changed = _with_demand(problem, w, replace(problem.demands[w], allowed_offer_ids=None))
    return ChangedProblem(admitted_offers_of(w), None, None, changed)


def _with_demand(problem: FleetProblem, w: int, demand: Demand) -> FleetProblem:
    return replace(problem, demands=(*problem.demands[:w], demand, *problem.demands[w + 1 :]))


def offer_change(problem: FleetProblem, offer: OfferSlot, most: int) -> ChangedProblem:
    offers = tuple(replace(o, max_nodes=most) if o.id == offer.id else o for o in problem.offers)
    return ChangedProblem(Limit(LimitKind.NODES, offer.id), offer.max_nodes, most, replace(problem, offers=offers))


def default_nodes_change(problem: FleetProblem, most: int) -> ChangedProblem:
    """The limit of all offers that state none moved."""
    now = max((offer.max_nodes or 0 for offer in problem.offers if offer.is_default_most), default=None)
    offers = tuple(replace(o, max_nodes=most) if o.is_default_most else o for o in problem.offers)
    return ChangedProblem(Limit(LimitKind.NODES_UNLESS_STATED), now, most, replace(problem, offers=offers))
