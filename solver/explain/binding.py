"""What limits cost: each is moved one step, and the request is solved again."""

from contextlib import suppress

from solver.errors import NoPlanInTimeError
from solver.explain.limits import named_change, new_value, replaced, retargeted, stated_targets
from solver.explain.resolver import Resolver
from solver.fleet import FleetResult
from solver.fleet import limits as fleet_limits
from solver.outcome import Status
from solver.planning.assemble import Assembly, placements
from solver.planning.types import Binding, PlanningInput

STEP_FRACTION = 0.2
"""How much looser a target or budget is made to see what it costs."""
MOST_OFFER_STEPS = 3
MOST_EXPLAINED_TARGETS = 3
"""Of several workloads: each costs a solve of the whole fleet."""
RELATIVE_NOISE = 1e-6
"""Of an objective: two proofs are each this good."""


def binding_limits(
    planning: PlanningInput, assembly: Assembly, result: FleetResult, resolver: Resolver
) -> tuple[Binding, ...]:
    """Limits that cost money: what one step of relaxation gains, largest gain first; those there was time for."""
    found: list[Binding] = []
    asked = limiting_targets(assembly, result)
    with suppress(NoPlanInTimeError):
        for w, one in enumerate(assembly.screened):
            for limit, number, name, percentile, seconds in stated_targets(one):
                if (w, limit) not in asked:
                    continue
                looser = seconds * (1.0 + STEP_FRACTION)
                changed = replaced(planning, assembly, w, retargeted(one, number, name, percentile, looser))
                gains = gain(planning, result, resolver.best(changed, other_targets=True))
                if gains > 0.0:
                    found.append(Binding(limit, one.workload.name, looser * 1e3, gains))
        solve = resolver.fleet(assembly)
        for step in fleet_limits.limit_steps(assembly.problem, result, STEP_FRACTION, MOST_OFFER_STEPS):
            gains = gain(planning, result, solve(step.problem))
            if gains > 0.0:
                found.append(Binding(*named_change(assembly, step), new_value(step), gains))
    return tuple(sorted(found, key=lambda b: (-b.gains, b.limit, b.workload or "")))


def gain(planning: PlanningInput, base: FleetResult, other: FleetResult) -> float:
    """How much better the other objective is, where that is settled and beyond what both gaps leave open; else 0."""
    if base.objective is None or other.objective is None or other.status is Status.TIME_LIMIT:
        return 0.0
    sign = -1.0 if planning.objective == "throughput" else 1.0
    gained = sign * (base.objective - other.objective)
    noise = sum((r.gap_fraction or 0.0) * abs(r.objective or 0.0) for r in (base, other))
    return gained if gained > noise + RELATIVE_NOISE * abs(base.objective) else 0.0


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
