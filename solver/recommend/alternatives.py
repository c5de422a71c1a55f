"""Plans beside the one that is recommended: without each of its devices, drafting or host memory, at even odds."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from solver.candidates.screening import Screened, at_even_odds, narrowed
from solver.errors import NoPlanInTimeError
from solver.explain.resolver import Resolver
from solver.fleet import FleetResult
from solver.fleet.binding import devices_used, without_device
from solver.planning.assemble import Assembly, assemble
from solver.planning.placements import entries_of_units, plan_entries
from solver.planning.types import Alternative, PlanningInput
from solver.traffic_classes import with_confidence


def confidence_premium(
    planning: PlanningInput, assembly: Assembly, result: FleetResult, resolver: Resolver
) -> float | None:
    """What meeting the targets with more than even odds adds to the price; None where nobody asked for that, or there was
    no time to find out."""
    kinds = [one for workload in planning.workloads for one in workload.classes]
    if all(one.targets.confidence_fraction <= 0.5 for one in kinds) or result.usd_per_hour is None:
        return None
    try:
        resolver.require_time()
        every = [at_even_odds(one, with_confidence(one.workload, 0.5)) for one in assembly.screened]
        plain = resolver.best(assemble(planning, every, None), other_targets=True, freer_than=result)
    except NoPlanInTimeError:
        return None
    return None if plain.usd_per_hour is None else result.usd_per_hour - plain.usd_per_hour


def without_each_device(
    planning: PlanningInput, assembly: Assembly, result: FleetResult, resolver: Resolver
) -> list[tuple[str, Assembly, FleetResult]]:
    """The cheapest confirmed plans without each device of the optimum, dearest device first."""
    found = []
    for device in devices_used(assembly.problem, result)[: planning.alternatives]:
        without = replace(assembly, problem=without_device(assembly.problem, device))
        with suppress(NoPlanInTimeError):  # not known is not the same as none
            changed, other = resolver.confirmed(without)
            found.append((f"cheapest without {device}", resolver.settled(changed, other), other))
    return found


def without_drafting(
    planning: PlanningInput, assembly: Assembly, resolver: Resolver
) -> list[tuple[str, Assembly, FleetResult]]:
    """The cheapest confirmed plan in which nothing drafts; none where no alternatives are wanted, or time ran out."""
    plain = [narrowed(one, one.space.plain) for one in assembly.screened]
    return _without(planning, plain, "cheapest without drafting", resolver)


def without_host_cache(
    planning: PlanningInput, assembly: Assembly, resolver: Resolver
) -> list[tuple[str, Assembly, FleetResult]]:
    """The same of the cheapest in which no cache takes memory of the host."""
    bare = [narrowed(one, one.space.without_host_cache) for one in assembly.screened]
    return _without(planning, bare, "cheapest without host memory under the cache", resolver)


def without_disk_cache(
    planning: PlanningInput, assembly: Assembly, resolver: Resolver
) -> list[tuple[str, Assembly, FleetResult]]:
    """The same of the cheapest in which no cache is kept on a disk."""
    bare = [narrowed(one, one.space.without_disk_cache) for one in assembly.screened]
    return _without(planning, bare, "cheapest without a disk under the cache", resolver)


def _without(
    planning: PlanningInput, every: Sequence[Screened], why: str, resolver: Resolver
) -> list[tuple[str, Assembly, FleetResult]]:
    if not planning.alternatives:
        return []
    with suppress(NoPlanInTimeError):
        changed, other = resolver.confirmed(assemble(planning, every))
        return [(why, resolver.settled(changed, other), other)]
    return []


def alternatives(
    planning: PlanningInput, result: FleetResult, others: Sequence[tuple[str, Assembly, FleetResult]]
) -> tuple[Alternative, ...]:
    """What each of these plans costs beyond the one that is recommended."""
    return tuple(
        Alternative(why, None, None, ())
        if other.plan is None or other.usd_per_hour is None
        else Alternative(
            why,
            other.usd_per_hour - (result.usd_per_hour or 0.0),
            abs((other.objective or 0.0) - (result.objective or 0.0)),
            plan_entries(planning, changed, other.plan),
            entries_of_units(planning, other.plan),
        )
        for why, changed, other in others
    )
