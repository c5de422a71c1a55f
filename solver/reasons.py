"""Why this plan and nothing cheaper; why no plan, and what would make one. Every figure is a re-solved problem.

What a target costs is compared on screened capacities scaled by what simulation found for this plan, on both sides
alike: a difference of two optima under one model, not of a confirmed and an unconfirmed one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from solver.assemble import Assembly, assemble, placements
from solver.capacities import scaled, with_class_sets
from solver.confirm import Confirmations, Scales
from solver.fleet import FleetProblem, FleetResult, SolveOptions, solve_fleet
from solver.fleet import explain as fleet
from solver.planning import Binding, Conflict, PlanningInput, Relaxation
from solver.search import Screened, with_targets, with_workload
from solver.traffic_classes import with_targets_of
from solver.workload import Percentile, Targets, Workload

STEP_FRACTION = 0.2
"""How much looser a target or budget is made to see what it costs."""
EXPLANATION_GAP_FRACTION = 0.0
EXPLANATION_TIME_FRACTION = 0.1
MOST_OFFER_STEPS = 3
TARGET_FIELDS = {
    "ttft_ms": "time_to_first_token_s",
    "tpot_ms": "time_per_output_token_s",
    "e2e_ms": "end_to_end_s",
}
MOST_RELAXATION_STEPS = 4
MOST_NODES_MULTIPLIED = 20_000
MOST_EXPLAINED_TARGETS = 3
"""Of several workloads: each costs a solve of the whole fleet."""
INFEASIBLE_TIME_LIMIT_S = 0.5
INFEASIBLE_GAP_FRACTION = 0.01
"""What would make a request feasible is priced to one per cent: the question is which limit to move."""


@dataclass(frozen=True, slots=True)
class WhyNot:
    conflicts: tuple[Conflict, ...]
    relaxations: tuple[Relaxation, ...]
    largest_servable_multiple: float | None


def options_of(planning: PlanningInput) -> SolveOptions:
    """For one of many explaining solves."""
    return SolveOptions(
        time_limit_s=planning.time_limit_s * EXPLANATION_TIME_FRACTION,
        gap_fraction=max(planning.gap_fraction, EXPLANATION_GAP_FRACTION),
    )


def target_limits(targets: Targets) -> Iterator[tuple[str, str, Percentile, float]]:
    """(wire name, field, percentile, seconds) of every target."""
    for wire, name in TARGET_FIELDS.items():
        for percentile, seconds in getattr(targets, name).items():
            yield f"targets.{wire}.{percentile}", name, percentile, seconds


def stated_targets(one: Screened) -> Iterator[tuple[str, int, str, Percentile, float]]:
    """(wire name, number of the traffic class, field, percentile, seconds) of every target of a workload."""
    for number, stream in enumerate(one.streams):
        prefix = f"traffic_classes.{stream.workload.class_name}." if one.classes else ""
        for limit, name, percentile, seconds in target_limits(stream.workload.targets):
            yield prefix + limit, number, name, percentile, seconds


def retargeted(one: Screened, number: int, name: str, percentile: Percentile, seconds: float | None) -> Screened:
    """A workload with one target of one of its classes moved, or dropped (None)."""
    return with_targets(one, changed_target(one.streams[number].workload.targets, name, percentile, seconds), number)


def with_all_targets(one: Screened, change: Callable[[Targets], Targets]) -> Screened:
    """A workload with the targets of every class changed."""
    workload = one.workload
    for number, stream in enumerate(one.streams):
        workload = with_targets_of(workload, number, change(stream.workload.targets))
    return with_workload(one, workload)


def believed(assembly: Assembly, confirmations: Confirmations, scales: Sequence[Scales]) -> Assembly:
    """Screened capacities times the rows' factors, without what simulation found for single candidates."""
    if all((factors == 1.0).all() for of in scales for factors in of.values()):
        return assembly
    return scaled(with_class_sets(assembly, confirmations.class_sets, scales), scales)


def rate_limit_of(workload: Workload) -> str:
    """A workload's rate as the API spells it: that of its classes together, where it has some."""
    return "traffic_classes.requests_per_s" if workload.classes else "traffic.requests_per_s"


def changed_target(targets: Targets, name: str, percentile: Percentile, seconds: float | None) -> Targets:
    """Targets with one limit moved, or dropped (None)."""
    values: dict[Percentile, float] = dict(getattr(targets, name))
    if seconds is None:
        values.pop(percentile)
    else:
        values[percentile] = seconds
    match name:
        case "time_to_first_token_s":
            return replace(targets, time_to_first_token_s=values)
        case "time_per_output_token_s":
            return replace(targets, time_per_output_token_s=values)
        case _:
            return replace(targets, end_to_end_s=values)


def explain_plan(
    planning: PlanningInput, assembly: Assembly, result: FleetResult, confirmations: Confirmations
) -> tuple[Binding, ...]:
    """Limits that cost money: what one step of relaxation saves, largest saving first."""
    options = options_of(planning)
    scales = confirmations.scales(assembly.screened)
    corrected = confirmations.correct_something

    def solve(changed: Assembly) -> FleetResult:
        return solve_fleet(believed(changed, confirmations, scales).problem, options)

    base = solve(assembly) if corrected else result
    found: list[Binding] = []
    asked = limiting_targets(assembly, result)
    for w, one in enumerate(assembly.screened):
        for limit, number, name, percentile, seconds in stated_targets(one):
            if (w, limit) not in asked:
                continue
            looser = seconds * (1.0 + STEP_FRACTION)
            changed = retargeted(one, number, name, percentile, looser)
            other = solve(replaced(planning, assembly, w, changed))
            saves = saving(base, other)
            if saves > 0.0:
                found.append(Binding(limit, one.workload.name, looser * 1e3, saves))
    steps = fleet.limit_steps(assembly.problem, result, STEP_FRACTION, MOST_OFFER_STEPS)
    found += [
        Binding(*named_change(assembly, step.change), new_value(step.change), step.saves)
        for step in fleet.binding(result, steps, options)
    ]
    return tuple(sorted(found, key=lambda b: (-b.saves_usd_per_hour, b.limit, b.workload or "")))


def limiting_targets(assembly: Assembly, result: FleetResult) -> set[tuple[int, str]]:
    """(workload, target) whose price is worth a solve: all of one workload; of several, those that stop the replicas in
    the plan from taking more, by the traffic they carry."""
    if len(assembly.screened) == 1 and not assembly.screened[0].classes:
        return {(0, limit) for limit, *_ in stated_targets(assembly.screened[0])}
    carried: dict[tuple[int, str], float] = {}
    for place in placements(assembly, result.plan) if result.plan else ():
        one = assembly.screened[place.workload]
        for stream, rate in zip(one.streams, place.class_requests_per_s or (place.requests_per_s,), strict=True):
            if index := int(stream.capacity.limit[place.row]):
                prefix = f"traffic_classes.{stream.workload.class_name}." if one.classes else ""
                key = (place.workload, f"{prefix}targets.{stream.capacity.limits[index]}")
                carried[key] = carried.get(key, 0.0) + rate / one.workload.requests_per_s
    return set(sorted(carried, key=lambda key: (-carried[key], key))[:MOST_EXPLAINED_TARGETS])


def saving(base: FleetResult, other: FleetResult) -> float:
    """How much better the other objective is, beyond what both gaps leave open."""
    if base.objective is None or other.objective is None:
        return 0.0
    noise = sum((r.gap_fraction or 0.0) * abs(r.objective or 0.0) for r in (base, other))
    gain = base.objective - other.objective
    return gain if gain > noise + 1e-6 * abs(base.objective) else 0.0


def replaced(planning: PlanningInput, assembly: Assembly, workload: int, screened: Screened) -> Assembly:
    """The assembly with one workload screened anew."""
    every = list(assembly.screened)
    every[workload] = screened
    return assemble(planning, every, assembly.problem.offers)


def wire_limit(limit: str) -> str:
    """The optimiser's name of a limit as the API spells it."""
    return {"limits.budget_usd_per_hour": "limits.max_usd_per_hour", "limits.power_w": "limits.max_power_kw"}.get(
        limit, limit
    )


def named_change(assembly: Assembly, change: fleet.Change) -> tuple[str, str | None]:
    """(limit, workload) of a change as the API spells them."""
    if change.workload is None:
        return wire_limit(change.limit), None
    workload = assembly.screened[change.workload].workload
    return " and ".join(stated_places(workload)) if change.limit == "places" else change.limit, workload.name


def stated_places(workload: Workload) -> tuple[str, ...]:
    """The choices of places that a workload states."""
    places = workload.places
    chosen = {
        "regions": places.only_regions is not None or places.never_regions,
        "providers": places.only_providers is not None or places.never_providers,
    }
    return tuple(name for name, stated in chosen.items() if stated)


def new_value(change: fleet.Change) -> float | str:
    return "any" if change.relaxing_to is None else wire_value(change.limit, change.relaxing_to)


def wire_value(limit: str, value: float) -> float:
    return value / 1e3 if limit == "limits.power_w" else value


def explain_infeasible(planning: PlanningInput, assembly: Assembly, confirmations: Confirmations) -> WhyNot:
    """What rules every plan out, the cheapest single changes that would not, and the most that can be served."""
    options = replace(
        options_of(planning),
        time_limit_s=min(planning.time_limit_s, INFEASIBLE_TIME_LIMIT_S),
        gap_fraction=max(planning.gap_fraction, INFEASIBLE_GAP_FRACTION),
    )
    problem = assembly.problem
    targets_matter = _has_plan_without_targets(planning, assembly, options)
    relaxations = [*_target_relaxations(planning, assembly, confirmations, options)] if targets_matter else []
    relaxations += [
        Relaxation(
            *named_change(assembly, one.change),
            None if one.change.relaxing_from is None else wire_value(one.change.limit, one.change.relaxing_from),
            new_value(one.change),
            one.result.usd_per_hour,
        )
        for one in fleet.relaxations(problem, options, limited_offers(planning, problem))
    ]  # fmt: skip
    multiple = _largest_multiple(problem, options)
    if multiple is not None and 0.0 < multiple < 1.0:
        for one_screened in assembly.screened:
            rate = one_screened.workload.requests_per_s
            relaxations.append(
                Relaxation(
                    rate_limit_of(one_screened.workload), one_screened.workload.name, rate, rate * multiple, None
                )
            )
    conflicts = _conflicts(planning, assembly, options, multiple, targets_matter)
    if not relaxations and targets_matter:
        joint = _joint_relaxation(planning, assembly, confirmations, options)
        relaxations += [joint] if joint else []
    ordered = sorted(relaxations, key=lambda r: (r.usd_per_hour is None, r.usd_per_hour or 0.0, r.limit))
    return WhyNot(conflicts, tuple(ordered), multiple)


def _has_plan_without_targets(planning: PlanningInput, assembly: Assembly, options: SolveOptions) -> bool:
    """Where no plan exists even without any target, no target is to blame and none needs to be tried."""
    free = [with_all_targets(one, lambda _: Targets()) for one in assembly.screened]
    return fleet.has_plan(assemble(planning, free, assembly.problem.offers).problem, options)


def limited_offers(planning: PlanningInput, problem: FleetProblem) -> list[str]:
    """Offers whose own limit may be what is missing: cheapest per device first, few, each costs some solves."""
    default = planning.default_max_nodes or MOST_NODES_MULTIPLIED
    limited = [offer for offer in problem.offers if offer.max_nodes is not None and offer.max_nodes < default]
    limited.sort(key=lambda offer: (offer.usd_per_hour / offer.devices, offer.id))
    return [offer.id for offer in limited[:MOST_OFFER_STEPS]]


def _largest_multiple(problem: FleetProblem, options: SolveOptions) -> float | None:
    """Share of all demand together that the limits admit; None where some workload has no candidate at all."""
    if not len(problem.deployments) or not problem.offers:
        return 0.0
    table = problem.deployments
    for w, demand in enumerate(problem.demands):
        served = (table.capacity_requests_per_s[table.workload == w] > 0.0).any(axis=0)
        if not served[: len(demand.requests_per_s)].all():
            return 0.0
    found = fleet.largest_multiple(shrunk(bounded(problem)), replace(options, gap_fraction=0.01))
    return found.throughput_multiple


def shrunk(problem: FleetProblem) -> FleetProblem:
    """A vast fleet and its demand, both divided by one whole number: as many times the demand can be served.

    Node limits are rounded down, so that what the small fleet serves, the large one does too. A million nodes placed
    one by one would take a minute to say that ten million requests a second are too many.
    """
    nodes = sum(offer.max_nodes or 0 for offer in problem.offers)
    factor = nodes // MOST_NODES_MULTIPLIED
    rate = sum(sum(demand.requests_per_s) for demand in problem.demands)
    limits = problem.limits
    if factor <= 1 or rate <= 0.0 or limits.budget_usd_per_hour is not None or limits.power_w is not None:
        return problem
    return replace(
        problem,
        offers=tuple(
            replace(o, max_nodes=None if o.max_nodes is None else o.max_nodes // factor) for o in problem.offers
        ),
        demands=tuple(replace(d, requests_per_s=tuple(r / factor for r in d.requests_per_s)) for d in problem.demands),
    )


def bounded(problem: FleetProblem) -> FleetProblem:
    """Throughput must be bounded by something: a budget, a power cap or limits on all offers."""
    limits = problem.limits
    if limits.budget_usd_per_hour is not None or limits.power_w is not None:
        return problem
    return replace(
        problem, offers=tuple(o if o.max_nodes is not None else replace(o, max_nodes=100_000) for o in problem.offers)
    )


def _target_relaxations(
    planning: PlanningInput, assembly: Assembly, confirmations: Confirmations, options: SolveOptions
) -> Iterator[Relaxation]:
    """For every target: the smallest value at which a plan exists with all else unchanged, found by bisection on the
    screened candidates' own best values."""
    scales = confirmations.scales(assembly.screened)

    def solve(changed: Assembly) -> FleetResult:
        return solve_fleet(believed(changed, confirmations, scales).problem, options)

    for w, one in enumerate(assembly.screened):
        for limit, number, name, percentile, seconds in stated_targets(one):
            free = retargeted(one, number, name, percentile, None)
            if solve(replaced(planning, assembly, w, free)).plan is None:
                continue
            low, high, price = seconds, seconds, None
            for _ in range(MOST_RELAXATION_STEPS * 3):
                high *= 1.5
                looser = retargeted(one, number, name, percentile, high)
                result = solve(replaced(planning, assembly, w, looser))
                if result.plan is not None:
                    price = result.usd_per_hour
                    break
                low = high
            else:
                continue
            for _ in range(MOST_RELAXATION_STEPS):
                middle = (low + high) / 2.0
                looser = retargeted(one, number, name, percentile, middle)
                result = solve(replaced(planning, assembly, w, looser))
                if result.plan is None:
                    low = middle
                else:
                    high, price = middle, result.usd_per_hour
            yield Relaxation(limit, one.workload.name, seconds * 1e3, high * 1e3, price)


def _joint_relaxation(
    planning: PlanningInput, assembly: Assembly, confirmations: Confirmations, options: SolveOptions
) -> Relaxation | None:
    """The smallest common factor on all targets that admits a plan, where no single target's relaxation does."""
    scales = confirmations.scales(assembly.screened)

    def price(factor: float) -> float | None:
        looser = [with_all_targets(one, lambda targets: looser_targets(targets, factor)) for one in assembly.screened]
        changed = assemble(planning, looser, assembly.problem.offers)
        return solve_fleet(believed(changed, confirmations, scales).problem, options).usd_per_hour

    low, high, found = 1.0, 1.0, None
    for _ in range(MOST_RELAXATION_STEPS * 3):
        high *= 1.5
        found = price(high)
        if found is not None:
            break
        low = high
    if found is None:
        return None
    for _ in range(MOST_RELAXATION_STEPS):
        middle = (low + high) / 2.0
        cost = price(middle)
        if cost is None:
            low = middle
        else:
            high, found = middle, cost
    return Relaxation("targets (all, times a factor)", None, 1.0, high, found)


def looser_targets(targets: Targets, factor: float) -> Targets:
    """Every target times a factor."""
    return replace(
        targets,
        time_to_first_token_s={p: v * factor for p, v in targets.time_to_first_token_s.items()},
        time_per_output_token_s={p: v * factor for p, v in targets.time_per_output_token_s.items()},
        end_to_end_s={p: v * factor for p, v in targets.end_to_end_s.items()},
    )


def _conflicts(
    planning: PlanningInput, assembly: Assembly, options: SolveOptions, multiple: float | None, targets_matter: bool
) -> tuple[Conflict, ...]:
    """A smallest set of limits that cannot hold together, targets and fleet limits alike."""
    targets = [
        (limit, w, number, name, percentile)
        for w, one in enumerate(assembly.screened)
        for limit, number, name, percentile, _ in stated_targets(one)
        if targets_matter
    ]
    labels: dict[str, tuple[int, int, str, Percentile]] = {
        f"workloads.{assembly.screened[w].workload.name}.{limit}": (w, number, name, percentile)
        for limit, w, number, name, percentile in targets
    }
    choices = sorted({name for _, chosen in planning.withheld for name in chosen})
    names = [*labels, *fleet.limit_names(assembly.problem), *choices]

    def without(lifted: frozenset[str]) -> FleetProblem:
        return _lifted(planning, assembly, labels, lifted)

    found = fleet.conflicts(names, without, options)
    if found:
        return (
            Conflict(
                tuple(name for n in found for name in conflict_names(assembly, n)),
                "these limits together leave no plan; any one lifted leaves one",
            ),
        )
    if multiple == 0.0 or not len(assembly.problem.deployments):
        return (Conflict(("limits", "workloads"), "no device among the allowed offers can run the model at all"),)
    rates = tuple(dict.fromkeys(rate_limit_of(one.workload) for one in assembly.screened))
    return (Conflict(rates, "the demand is above what all allowed offers together can serve"),)


def conflict_names(assembly: Assembly, name: str) -> tuple[str, ...]:
    """A limit of the optimiser as the API spells it, with its number of a workload replaced by the workload's name."""
    parts = name.split(".")
    if parts[0] != "workloads" or parts[-1] not in ("min_replicas", "places"):
        return (wire_limit(name),)
    workload = assembly.screened[int(parts[1])].workload
    fields = stated_places(workload) if parts[-1] == "places" else (parts[-1],)
    return tuple(f"workloads.{workload.name}.{field}" for field in fields)


def _lifted(
    planning: PlanningInput,
    assembly: Assembly,
    labels: Mapping[str, tuple[int, int, str, Percentile]],
    lifted: frozenset[str],
) -> FleetProblem:
    screened = list(assembly.screened)
    for label in lifted & labels.keys():
        w, number, name, percentile = labels[label]
        screened[w] = retargeted(screened[w], number, name, percentile, None)
    admitted = tuple(offer for offer, chosen in planning.withheld if chosen <= lifted)
    changed = assembly
    if admitted:
        changed = assemble(replace(planning, offers=(*planning.offers, *admitted)), screened)
    elif lifted & labels.keys():
        changed = assemble(planning, screened, assembly.problem.offers)
    return fleet.without_limits(changed.problem, lifted - labels.keys())
