"""What limits cost: each is moved one step, and the request is solved again."""

from contextlib import suppress
from dataclasses import replace

from solver.candidates.screening import with_workload
from solver.errors import NoPlanInTimeError
from solver.explain.resolver import Resolver
from solver.explain.targets import replaced, retargeted, stated_targets
from solver.fleet import FleetResult
from solver.fleet import loosened_limits as fleet_limits
from solver.limit import Limit, LimitKind
from solver.outcome import Status
from solver.planning.assemble import Assembly
from solver.planning.placements import placements
from solver.planning.types import Binding, PlanningInput

STEP_FRACTION = 0.2
"""How much looser a target or budget is made to see what it costs."""
MOST_OFFER_STEPS = 3
MOST_EXPLAINED_TARGETS = 3
"""Of several workloads: each costs a solve of the whole fleet."""
NEAR_LIMIT = 0.95
"""Share of its utilisation limit from which a replica is near it."""
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
            for limit, number, seconds in stated_targets(w, one):
                if limit not in asked or limit.target is None:
                    continue
                looser = seconds * (1.0 + STEP_FRACTION)
                changed = replaced(planning, assembly, w, retargeted(one, number, limit.target, looser))
                gains = gain(planning, result, resolver.best(changed, other_targets=True, freer_than=result))
                if gains > 0.0:
                    found.append(Binding(limit, looser, gains))
            if (fuller := fuller_use(assembly, result, w)) is not None:
                workload = replace(one.workload, utilisation_limit_fraction=fuller)
                changed = replaced(planning, assembly, w, with_workload(one, workload))
                fuller_best = resolver.best(changed, other_targets=one.workload.is_mixed, freer_than=result)
                gains = gain(planning, result, fuller_best)
                if gains > 0.0:
                    found.append(Binding(Limit(LimitKind.UTILISATION, workload=w), fuller, gains))
        solve = resolver.fleet(assembly, freer_than=result)
        for step in fleet_limits.limit_steps(assembly.problem, result, STEP_FRACTION, MOST_OFFER_STEPS):
            gains = gain(planning, result, solve(step.problem))
            if gains > 0.0:
                found.append(Binding(step.limit, step.relaxing_to, gains))
    return tuple(sorted(found, key=lambda b: (-b.gains, b.limit)))


def fuller_use(assembly: Assembly, result: FleetResult, workload: int) -> float | None:
    """Half of what a workload's utilisation limit keeps free given up; None where its price is not worth a solve: of several
    workloads, of those none of whose replicas come near their limit."""
    limit = assembly.screened[workload].workload.utilisation_limit_fraction
    if limit >= 1.0 or result.plan is None:
        return None
    if len(assembly.screened) > 1:
        own = [place for place in placements(assembly, result.plan) if place.workload == workload]
        if all(place.rate_per_replica < NEAR_LIMIT * limit * place.capacity_requests_per_s for place in own):
            return None
    return round((1.0 + limit) / 2.0, 6)


def gain(planning: PlanningInput, base: FleetResult, other: FleetResult) -> float:
    """How much better the other objective is, where that is settled and beyond what both gaps leave open; else 0."""
    if base.objective is None or other.objective is None or other.status is Status.TIME_LIMIT:
        return 0.0
    sign = -1.0 if planning.objective == "throughput" else 1.0
    gained = sign * (base.objective - other.objective)
    noise = sum((r.gap_fraction or 0.0) * abs(r.objective or 0.0) for r in (base, other))
    return gained if gained > noise + RELATIVE_NOISE * abs(base.objective) else 0.0


def limiting_targets(assembly: Assembly, result: FleetResult) -> set[Limit]:
    """Targets whose price is worth a solve: all of one workload; of several, those that stop the replicas in the plan from
    taking more, by the traffic they carry."""
    if sum(len(one.classes) for one in assembly.screened) == 1:
        return {limit for limit, *_ in stated_targets(0, assembly.screened[0])}
    carried: dict[Limit, float] = {}
    for place in placements(assembly, result.plan) if result.plan else ():
        one = assembly.screened[place.workload]
        for stream, rate in zip(one.classes, place.class_requests_per_s, strict=True):
            target = stream.capacity.limits[int(stream.capacity.limit[place.row])]
            if target is not None:
                name = stream.workload.only.name or ""
                limit = Limit(LimitKind.TARGET, workload=place.workload, target=target, traffic_class=name)
                carried[limit] = carried.get(limit, 0.0) + rate / one.workload.requests_per_s
    return set(sorted(carried, key=lambda limit: (-carried[limit], limit))[:MOST_EXPLAINED_TARGETS])
