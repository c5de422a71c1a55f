"""Why this plan: every figure here comes from solving a changed problem again, none from a dual.

Duals of a mixed-integer programme say nothing (there is always slack up to the next node). A difference smaller than
the gaps of the two solves is not reported as a difference.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from solver.fleet.plan import FleetResult
from solver.fleet.problem import Demand, DomainKind, FleetProblem, Limits, OfferSlot
from solver.fleet.solve import solve_fleet
from solver.hardware import PlaceKind

Solve = Callable[[FleetProblem], FleetResult]
"""How a changed problem is solved: to the rules of the plan it is compared with."""


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


@dataclass(frozen=True, slots=True)
class WithoutDevice:
    """The best plan without one device. extra: objective above the optimum's (below it, for throughput)."""

    device_id: str
    result: FleetResult
    extra: float | None


@dataclass(frozen=True, slots=True)
class BindingLimit:
    """A limit whose relaxation improves the objective by ``saves``."""

    change: ChangedProblem
    result: FleetResult
    saves: float


@dataclass(frozen=True, slots=True)
class RelaxedLimit:
    """The smallest change of one limit that admits a plan, and the plan with its price."""

    change: ChangedProblem
    result: FleetResult


def devices_used(problem: FleetProblem, result: FleetResult) -> tuple[str, ...]:
    """Devices of the plan, by share of its price, dearest first."""
    if result.plan is None:
        return ()
    offers = {offer.id: offer for offer in problem.offers}
    spent: dict[str, float] = {}
    for offer_id, nodes in result.plan.nodes_by_offer().items():
        offer = offers[offer_id]
        spent[offer.device_id] = spent.get(offer.device_id, 0.0) + nodes * offer.usd_per_hour
    return tuple(sorted(spent, key=lambda device: (-spent[device], device)))


def without_device(problem: FleetProblem, device_id: str) -> FleetProblem:
    return replace(problem, offers=tuple(offer for offer in problem.offers if offer.device_id != device_id))


def alternatives(
    problem: FleetProblem, result: FleetResult, solve: Solve = solve_fleet, most: int = 3
) -> list[WithoutDevice]:
    """The best plan without each device of the optimum, best first; a device nothing replaces comes last."""
    found = []
    for device in devices_used(problem, result)[:most]:
        other = solve(without_device(problem, device))
        extra = None
        if other.objective is not None and result.objective is not None:
            extra = abs(other.objective - result.objective)
        found.append(WithoutDevice(device, other, extra))
    return sorted(found, key=lambda a: (a.extra is None, a.extra or 0.0, a.device_id))


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
        steps.append(_survival_change(problem, kind, count, count - 1))
    for w, demand in enumerate(problem.demands):
        if demand.min_replicas > 1:
            steps.append(_replicas_change(problem, w, demand.min_replicas - 1))
        if demand.allowed_offer_ids is not None:
            steps.append(_places_change(problem, w))
    nodes = result.plan.nodes_by_offer() if result.plan else {}
    exhausted = [offer for offer in problem.offers if nodes.get(offer.id, 0) == offer.max_nodes and offer.max_nodes]
    exhausted.sort(key=lambda offer: (offer.usd_per_hour / offer.devices, offer.id))
    steps += [_offer_change(problem, offer, (offer.max_nodes or 0) + 1) for offer in exhausted[:most_offers]]
    return steps


def binding(result: FleetResult, changes: Iterable[ChangedProblem], solve: Solve = solve_fleet) -> list[BindingLimit]:
    """Which changes improve the objective measurably, the largest saving first."""
    if result.objective is None:
        return []
    found = []
    for change in changes:
        other = solve(change.problem)
        if other.objective is None:
            continue
        sign = -1.0 if change.problem.objective == "throughput" else 1.0
        saves = sign * (result.objective - other.objective)
        noise = sum((r.gap_fraction or 0.0) * abs(r.objective or 0.0) for r in (result, other))
        if saves > noise + 1e-6 * abs(result.objective):
            found.append(BindingLimit(change, other, saves))
    return sorted(found, key=lambda b: (-b.saves, b.change.limit, b.change.workload or 0))


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


def has_plan(problem: FleetProblem, solve: Solve = solve_fleet) -> bool:
    """Is there any plan? Asked of the cost problem; an unknown answer counts as none."""
    return solve(replace(problem, objective="cost")).plan is not None


def is_unlimited(problem: FleetProblem) -> bool:
    """Can everything be bought as often as wanted? Then any demand has a plan that has one at all."""
    limits = problem.limits
    return (
        limits.budget_usd_per_hour is None
        and limits.power_w is None
        and limits.carbon_kg_per_hour is None
        and limits.max_spot_fraction is None
        and not limits.quotas
        and not limits.survive.losses
        and all(offer.max_nodes is None for offer in problem.offers)
    )


def conflicts(names: Sequence[str], has_plan_without: Callable[[frozenset[str]], bool]) -> tuple[str, ...]:
    """A set of limits that together rule every plan out, none of which can be spared (deletion filter).

    ``has_plan_without(lifted)`` says whether some of ``names`` lifted leave a plan. Limits are tried for removal in order,
    so put those to blame last. Empty where a plan exists, or where lifting everything does not help: then the demand itself
    cannot be served.
    """
    everything = frozenset(names)
    if has_plan_without(frozenset()) or not has_plan_without(everything):
        return ()
    lifted: frozenset[str] = frozenset()
    for name in names:
        if not has_plan_without(lifted | {name}):
            lifted |= {name}
    return tuple(name for name in names if name not in lifted)


def relaxations(
    problem: FleetProblem,
    solve: Solve = solve_fleet,
    offer_ids: Sequence[str] = (),
    further: Sequence[Sequence[ChangedProblem]] = (),
) -> list[RelaxedLimit]:
    """Each single smallest change that admits a plan, cheapest plan first.

    Budget and power are minimised outright; counts (spares, ``offer_ids``' nodes) are searched by halving; each
    sequence in ``further`` holds one limit's changes in growing order, of which the first with a plan is taken.
    """
    found = [_least_budget(problem, solve), _least_power(problem, solve)]
    spare = problem.limits.spare_nodes
    fewer = [
        ChangedProblem("limits.spare_nodes", spare, k, replace(problem, limits=replace(problem.limits, spare_nodes=k)))
        for k in range(spare - 1, -1, -1)
    ]
    found.append(_first_with_plan(fewer, solve))
    for kind, count in problem.limits.survive.losses:
        steps = [_survival_change(problem, kind, count, k) for k in range(count - 1, -1, -1)]
        found.append(_first_with_plan(steps, solve))
    for w, demand in enumerate(problem.demands):
        if demand.min_replicas > 1:
            steps = [_replicas_change(problem, w, k) for k in _halvings(demand.min_replicas)]
            found.append(_first_with_plan(steps, solve))
        if demand.allowed_offer_ids is not None:
            found.append(_first_with_plan([_places_change(problem, w)], solve))
    limited = [offer for offer in problem.offers if offer.id in offer_ids and offer.max_nodes is not None]
    found += [_fewest_more_nodes(problem, offer, solve) for offer in limited]
    found += [_first_with_plan(steps, solve) for steps in further]
    present = [relaxation for relaxation in found if relaxation is not None]
    return sorted(present, key=lambda r: (r.result.usd_per_hour or 0.0, r.change.limit, r.change.workload or 0))


def largest_multiple(problem: FleetProblem, solve: Solve = solve_fleet) -> FleetResult:
    """The largest multiple of all demand that the limits admit (below 1 where the problem is infeasible).

    Raises InvalidInputError where nothing limits it.
    """
    return solve(replace(problem, objective="throughput"))


def _least_budget(problem: FleetProblem, solve: Solve) -> RelaxedLimit | None:
    budget = problem.limits.budget_usd_per_hour
    if budget is None:
        return None
    free = replace(problem, limits=replace(problem.limits, budget_usd_per_hour=None), objective="cost")
    result = solve(free)
    if result.usd_per_hour is None:
        return None
    changed = replace(problem, limits=replace(problem.limits, budget_usd_per_hour=result.usd_per_hour))
    return RelaxedLimit(ChangedProblem("limits.budget_usd_per_hour", budget, result.usd_per_hour, changed), result)


def _least_power(problem: FleetProblem, solve: Solve) -> RelaxedLimit | None:
    cap = problem.limits.power_w
    if cap is None:
        return None
    free = replace(problem, limits=replace(problem.limits, power_w=None), objective="power")
    result = solve(free)
    if result.power_w is None:
        return None
    changed = replace(problem, limits=replace(problem.limits, power_w=result.power_w))
    return RelaxedLimit(ChangedProblem("limits.power_w", cap, result.power_w, changed), result)


def _first_with_plan(changes: Iterable[ChangedProblem], solve: Solve) -> RelaxedLimit | None:
    for change in changes:
        result = solve(change.problem)
        if result.plan is not None:
            return RelaxedLimit(change, result)
    return None


def _fewest_more_nodes(problem: FleetProblem, offer: OfferSlot, solve: Solve) -> RelaxedLimit | None:
    unlimited = _offer_change(problem, offer, None)
    result = solve(replace(unlimited.problem, objective="cost"))
    if result.plan is None or offer.max_nodes is None:
        return None
    low, high = offer.max_nodes, max(offer.max_nodes + 1, result.plan.nodes_by_offer().get(offer.id, 0))
    while high - low > 1:
        middle = (low + high) // 2
        if has_plan(_offer_change(problem, offer, middle).problem, solve):
            high = middle
        else:
            low = middle
    return _first_with_plan([_offer_change(problem, offer, high)], solve)


def _survival_change(problem: FleetProblem, kind: DomainKind, old: int, new: int) -> ChangedProblem:
    survive = problem.limits.survive
    fewer = replace(survive, providers=new) if kind == "provider" else replace(survive, regions=new)
    changed = replace(problem, limits=replace(problem.limits, survive=fewer))
    return ChangedProblem(f"limits.survive.{kind}s", old, new, changed)


def _replicas_change(problem: FleetProblem, w: int, new: int) -> ChangedProblem:
    changed = _with_demand(problem, w, replace(problem.demands[w], min_replicas=new))
    return ChangedProblem("min_replicas", problem.demands[w].min_replicas, new, changed, w)


def _places_change(problem: FleetProblem, w: int) -> ChangedProblem:
    """The workload admitted to every offer; no numbers describe it."""
    changed = _with_demand(problem, w, replace(problem.demands[w], allowed_offer_ids=None))
    return ChangedProblem("places", None, None, changed, w)


def _with_demand(problem: FleetProblem, w: int, demand: Demand) -> FleetProblem:
    return replace(problem, demands=(*problem.demands[:w], demand, *problem.demands[w + 1 :]))


def _halvings(count: int) -> list[int]:
    """Fewer and fewer, down to one: 12 → 6, 3, 1."""
    steps = []
    while count > 1:
        count //= 2
        steps.append(count)
    return steps


def _offer_change(problem: FleetProblem, offer: OfferSlot, most: int | None) -> ChangedProblem:
    offers = tuple(replace(o, max_nodes=most) if o.id == offer.id else o for o in problem.offers)
    name = f"limits.offers.{offer.id}.max_nodes"
    return ChangedProblem(name, offer.max_nodes, most, replace(problem, offers=offers))
