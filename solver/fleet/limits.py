"""Limits of a fleet problem by name: each one step looser, or lifted."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from solver.fleet.plan import FleetResult
from solver.fleet.problem import Demand, DomainKind, FleetProblem, Limits, OfferSlot
from solver.hardware import PlaceKind

PLACE_LIMITS: dict[PlaceKind, str] = {
    "provider": "limits.sourcing.max_providers",
    "region": "limits.sourcing.max_regions",
    "device": "limits.sourcing.max_device_types",
}
"""What bounds the places that each workload may be in, by name."""


@dataclass(frozen=True, slots=True)
class ChangedProblem:
    """One limit moved, with the problem that results; the caller adds those that need new capacities (targets).

    limit: its name, such as ``limits.spare_nodes``. workload: the one concerned, None for the fleet.
    """

    limit: str
    relaxing_from: float | None
    relaxing_to: float | None
    problem: FleetProblem
    workload: int | None = None


def limit_steps(
    problem: FleetProblem, result: FleetResult, step_fraction: float, most_offers: int | None = None
) -> list[ChangedProblem]:
    """Each limit of the optimiser one step looser: budget, power and spot share by ``step_fraction``, counts by one.

    most_offers: how many exhausted offers to ask about, cheapest per device first; None asks about all.
    """
    limits, steps = problem.limits, []

    def change(name: str, old: float, new: float, changed: Limits) -> None:
        steps.append(ChangedProblem(f"limits.{name}", old, new, replace(problem, limits=changed)))

    if (budget := limits.budget_usd_per_hour) is not None:
        looser = budget * (1 + step_fraction)
        change("budget_usd_per_hour", budget, looser, replace(limits, budget_usd_per_hour=looser))
    if (power_w := limits.power_w) is not None:
        looser = power_w * (1 + step_fraction)
        change("power_w", power_w, looser, replace(limits, power_w=looser))
    if (share := limits.max_spot_fraction) is not None and share < 1:
        looser = min(1.0, share + step_fraction)
        change("max_spot_fraction", share, looser, replace(limits, max_spot_fraction=looser))
    if limits.spare_nodes:
        fewer = limits.spare_nodes - 1
        change("spare_nodes", limits.spare_nodes, fewer, replace(limits, spare_nodes=fewer))
    for position, quota in enumerate(limits.quotas):
        node = max((offer.devices for offer in problem.offers if offer.id in quota.offer_ids), default=1)
        wider = replace(quota, max_devices=quota.max_devices + node)
        quotas = (*limits.quotas[:position], wider, *limits.quotas[position + 1 :])
        change(f"quotas.{quota.name}", quota.max_devices, wider.max_devices, replace(limits, quotas=quotas))
    for kind, count in limits.survive.losses:
        steps.append(survival_change(problem, kind, count, count - 1))
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


def limit_names(problem: FleetProblem) -> tuple[str, ...]:
    """The limits ``without_limits`` can lift."""
    limits = problem.limits
    present = {
        "limits.budget_usd_per_hour": limits.budget_usd_per_hour is not None,
        "limits.power_w": limits.power_w is not None,
        "limits.spare_nodes": limits.spare_nodes > 0,
        "limits.max_spot_fraction": limits.max_spot_fraction is not None,
        "limits.quotas": bool(limits.quotas),
        **{f"limits.survive.{kind}s": True for kind, _ in limits.survive.losses},
        **{f"workloads.{w}.min_replicas": demand.min_replicas > 1 for w, demand in enumerate(problem.demands)},
        **{f"workloads.{w}.places": d.allowed_offer_ids is not None for w, d in enumerate(problem.demands)},
        **{
            PLACE_LIMITS[kind]: True
            for kind in sorted({kind for demand in problem.demands for kind, _ in demand.most_places})
        },
        "limits.offers.max_nodes": any(offer.max_nodes is not None for offer in problem.offers),
    }
    return tuple(name for name, is_set in present.items() if is_set)


def without_limits(problem: FleetProblem, names: Iterable[str]) -> FleetProblem:
    """The problem with these limits lifted."""
    lifted = frozenset(names)
    limits, offers = problem.limits, problem.offers
    if "limits.budget_usd_per_hour" in lifted:
        limits = replace(limits, budget_usd_per_hour=None)
    if "limits.power_w" in lifted:
        limits = replace(limits, power_w=None)
    if "limits.spare_nodes" in lifted:
        limits = replace(limits, spare_nodes=0)
    if "limits.max_spot_fraction" in lifted:
        limits = replace(limits, max_spot_fraction=None)
    if "limits.quotas" in lifted:
        limits = replace(limits, quotas=())
    survive = limits.survive
    if "limits.survive.providers" in lifted:
        survive = replace(survive, providers=0)
    if "limits.survive.regions" in lifted:
        survive = replace(survive, regions=0)
    limits = replace(limits, survive=survive)
    demands = tuple(_without_own_limits(demand, f"workloads.{w}.", lifted) for w, demand in enumerate(problem.demands))
    if "limits.offers.max_nodes" in lifted:
        offers = tuple(replace(offer, max_nodes=None) for offer in offers)
    return replace(problem, offers=offers, demands=demands, limits=limits)


def _without_own_limits(demand: Demand, prefix: str, lifted: frozenset[str]) -> Demand:
    if f"{prefix}min_replicas" in lifted:
        demand = replace(demand, min_replicas=min(1, demand.min_replicas))
    if f"{prefix}places" in lifted:
        demand = replace(demand, allowed_offer_ids=None)
    few = tuple(one for one in demand.most_places if PLACE_LIMITS[one[0]] not in lifted)
    return replace(demand, most_places=few)


def survival_change(problem: FleetProblem, kind: DomainKind, old: int, new: int) -> ChangedProblem:
    survive = problem.limits.survive
    fewer = replace(survive, providers=new) if kind == "provider" else replace(survive, regions=new)
    changed = replace(problem, limits=replace(problem.limits, survive=fewer))
    return ChangedProblem(f"limits.survive.{kind}s", old, new, changed)


def replicas_change(problem: FleetProblem, w: int, new: int) -> ChangedProblem:
    changed = _with_demand(problem, w, replace(problem.demands[w], min_replicas=new))
    return ChangedProblem("min_replicas", problem.demands[w].min_replicas, new, changed, w)


def places_change(problem: FleetProblem, w: int) -> ChangedProblem:
    """The workload admitted to every offer; no numbers describe it."""
    changed = _with_demand(problem, w, replace(problem.demands[w], allowed_offer_ids=None))
    return ChangedProblem("places", None, None, changed, w)


def _with_demand(problem: FleetProblem, w: int, demand: Demand) -> FleetProblem:
    return replace(problem, demands=(*problem.demands[:w], demand, *problem.demands[w + 1 :]))


def offer_change(problem: FleetProblem, offer: OfferSlot, most: int | None) -> ChangedProblem:
    offers = tuple(replace(o, max_nodes=most) if o.id == offer.id else o for o in problem.offers)
    name = f"limits.offers.{offer.id}.max_nodes"
    return ChangedProblem(name, offer.max_nodes, most, replace(problem, offers=offers))
