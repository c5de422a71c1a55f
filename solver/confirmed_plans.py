"""Plans whose replicas hold in simulation, found by solving and simulating in turn (docs/decisions/0006)."""

import math
from dataclasses import replace

from solver.assemble import Assembly, Placement, exceeds_default, placements, with_default_limits
from solver.capacities import with_capacity
from solver.confirm import Confirmations, confirmed_capacity
from solver.confirm_mixes import be_wary, mix_holds
from solver.errors import NoPlanInTimeError
from solver.fleet import FleetResult, SolveOptions, solve_fleet
from solver.fleet.plan import PROVEN_GAP_FRACTION, gap_between
from solver.planning import Observer, PlanningInput, SearchProgress, unobserved
from solver.traffic_classes import streams_of
from solver.workload import Workload

MOST_ROUNDS = 40
"""Solve–confirm rounds before the plan is returned with what is still unconfirmed called feasible, not optimal."""

PATIENT_ROUNDS = 12
"""Rounds after which mixes of traffic classes that nobody has simulated are no longer planned with."""
LEAST_TIME_FRACTION = 0.05
"""Share of the time limit that a solve gets after earlier ones used it up."""
DRAFT_GAP_FRACTION = 0.03
"""Gap to which plans of several workloads are solved until one holds in simulation; only that one is worth a proof."""


def solve_confirmed(
    assembly: Assembly,
    planning: PlanningInput,
    confirmations: Confirmations,
    observe: Observer = unobserved,
    *,
    draft_first: bool = True,
    among_all: bool = True,
) -> tuple[Assembly, FleetResult, int]:
    """Solve, simulate what was chosen, correct capacities that do not hold, and solve again until all hold.

    Screening is optimistic by much the same factor for like candidates; what simulation found for some scales the
    others, less a margin that keeps them optimistic. That leads to a good plan soon; that none is better is then proven
    with every candidate believed as screened until simulation says otherwise (not for workloads with traffic classes,
    whose mixes are held against like ones). Offers without a limit get the default one as soon as a plan goes beyond it.
    Once the time is used up the next plan that holds is taken, whatever its gap. draft_first: off where most capacities
    are known already, so that the first plan is likely to hold. among_all: off where the first plan that holds will do.
    Raises NoPlanInTimeError.
    """
    final, rounds = not draft_first, 0
    held: tuple[Assembly, FleetResult] | None = None
    has_classes = any(one.classes for one in assembly.screened)
    observe(SearchProgress("solving"))
    while True:
        rounds += 1
        if rounds == PATIENT_ROUNDS:
            be_wary(confirmations, assembly.screened)
        current = with_capacity(assembly, confirmations, as_screened=held is not None)
        proving = final or sum(len(streams_of(w)) for w in planning.workloads) == 1
        result = solve_fleet(current.problem, solve_options(planning, confirmations, proving=proving))
        confirmations.solver_seconds += result.solver_seconds
        in_time = confirmations.solver_seconds < planning.time_limit_s
        if held is not None:
            bounded = with_bound(held[1], result.bound, planning.gap_fraction)
            if bounded.status != "time_limit" or result.plan is None or not in_time or rounds >= MOST_ROUNDS:
                return held[0], bounded, rounds
        if result.outcome == "unknown":
            raise NoPlanInTimeError(planning.time_limit_s)
        if result.plan is None:
            return with_default_limits(planning, current), result, rounds
        if exceeds_default(result.plan, current, planning.default_max_nodes):
            assembly = with_default_limits(planning, assembly)
            continue
        observe(progress("confirming", result))
        failed = _corrected(current, result, confirmations)
        observe(progress("solving", result))
        if not failed and (proving or result.outcome == "optimal" or not in_time):
            if held is not None:
                return with_capacity(assembly, confirmations), result, rounds
            if not among_all or has_classes or not in_time or not confirmations.correct_something:
                return current, result, rounds
            held, final = (current, result), True
            continue
        if not failed:
            final = True
            continue
        if rounds >= MOST_ROUNDS and held is None:
            return current, replace(result, outcome="feasible", status="unconfirmed"), rounds


def with_bound(result: FleetResult, bound: float | None, gap_asked: float) -> FleetResult:
    """A plan with a bound that holds whatever candidates nobody simulated can do; None is no bound."""
    assert result.objective is not None
    gap = math.inf if bound is None else gap_between(result.objective, bound)
    if gap <= PROVEN_GAP_FRACTION:
        return replace(result, outcome="optimal", status="proven_optimal", bound=result.objective, gap_fraction=0.0)
    if bound is None:
        return replace(result, outcome="feasible", status="time_limit")
    status = "gap_reached" if gap <= gap_asked else "time_limit"
    return replace(result, outcome="feasible", status=status, bound=bound, gap_fraction=gap)


def progress(stage: str, result: FleetResult) -> SearchProgress:
    """What the newest solve says about the plan that is searched."""
    return SearchProgress(stage, result.usd_per_hour, result.bound, result.gap_fraction)


def solve_options(planning: PlanningInput, confirmations: Confirmations, *, proving: bool) -> SolveOptions:
    """What is left of the time limit, for a proof or a draft; after its end drafts only, each in a moment."""
    left_s = planning.time_limit_s - confirmations.solver_seconds
    gap = planning.gap_fraction if proving and left_s > 0.0 else max(planning.gap_fraction, DRAFT_GAP_FRACTION)
    return SolveOptions(time_limit_s=max(left_s, LEAST_TIME_FRACTION * planning.time_limit_s), gap_fraction=gap)


def _corrected(assembly: Assembly, result: FleetResult, confirmations: Confirmations) -> bool:
    """Simulate the chosen replicas and correct the capacities of those that do not hold theirs; were there any?"""
    assert result.plan is not None
    losses = bool(assembly.problem.limits.survive.losses)
    failed: dict[tuple[int, int], float] = {}
    some_mix_failed = False
    for place in placements(assembly, result.plan):
        key = (place.workload, place.row)
        if place.requests_per_s <= 0.0 or key in failed:
            continue
        one = assembly.screened[place.workload]
        rate = rate_to_hold(losses, one.workload, place)
        if one.classes:
            rates = rates_to_hold(place, rate)
            if not mix_holds(confirmations, place.workload, one, place.row, place.classes, rates):
                some_mix_failed = True
            continue
        confirmed = confirmed_capacity(confirmations, place.workload, one, place.row, rate, one.margin_of(place.row))
        if confirmed < rate * (1.0 - 1e-9):
            failed[key] = confirmed
    confirmations.capacity.update(failed)
    return bool(failed) or some_mix_failed


def rates_to_hold(place: Placement, rate: float) -> tuple[float, ...]:
    """A replica's rate by traffic class where that of all together is ``rate``."""
    return tuple(one * (rate / place.requests_per_s) for one in place.class_requests_per_s)


def rate_to_hold(losses: bool, workload: Workload, place: Placement) -> float:
    """The rate at which a replica's targets are simulated.

    Its planned rate over the utilisation limit, so that the headroom is real; where it has to take more after a loss,
    all the capacity that the plan counts on.
    """
    if losses:
        return place.capacity_requests_per_s
    return place.rate_per_replica / workload.utilisation_limit_fraction
