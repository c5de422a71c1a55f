"""The request with more allowed than it allows, solved to the rules of a plan."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from solver.candidates.screening import Screened
from solver.errors import NoPlanInTimeError
from solver.explain.binding import gain
from solver.explain.resolver import Resolver
from solver.fleet import FleetResult
from solver.planning.assemble import Assembly, assemble, fewest_nodes, most_nodes
from solver.planning.placements import entries_of_units, plan_entries
from solver.planning.types import Freed, PlanningInput
from solver.workload import Workload


def freed(
    planning: PlanningInput,
    assembly: Assembly,
    result: FleetResult,
    resolver: Resolver,
    *,
    other_candidates: bool = False,
) -> Freed:
    """What the freer request gains over the result of the stricter one. other_candidates: rows of its workloads are others, of which
    nothing is known. Raises NoPlanInTimeError."""
    changed, other = resolver.confirmed(assembly, other_targets=other_candidates, freer_than=result)
    gains = None if result.plan is None else gain(planning, result, other)
    is_better = gains is None or gains > 0.0
    if other.plan is None or not is_better:
        return Freed(gains, other.usd_per_hour, ())
    entries = plan_entries(planning, resolver.settled(changed, other), other.plan)
    return Freed(gains, other.usd_per_hour, entries, entries_of_units(planning, other.plan))


def with_lower_formats(planning: PlanningInput) -> PlanningInput:
    """The request with formats of fewer bits beside those asked for."""

    def wider(workload: Workload) -> Workload:
        weights, cache = planning.lower_formats.get(workload.name, ((), ()))
        return replace(
            workload,
            weight_formats=tuple(dict.fromkeys((*workload.weight_formats, *weights))),
            kv_cache_formats=tuple(dict.fromkeys((*workload.kv_cache_formats, *cache))),
        )

    return replace(planning, workloads=tuple(wider(workload) for workload in planning.workloads))


def lower_precision(
    planning: PlanningInput, screened: Callable[[Workload], Screened], result: FleetResult, resolver: Resolver
) -> Freed | None:
    """What fewer bits would gain; None where there was no time to find out. screened: screens a workload with those formats too."""
    wider = with_lower_formats(planning)
    with suppress(NoPlanInTimeError):
        every = []
        for workload in wider.workloads:
            resolver.require_time()  # a space that is new takes seconds
            every.append(screened(workload))
        changed = assemble(wider, every)
        if fewest_nodes(changed) > most_nodes(wider, changed):
            return Freed(None, None, ())  # nobody has so many machines, whatever the format
        return freed(wider, changed, result, resolver, other_candidates=True)
    return None
