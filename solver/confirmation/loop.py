"""Solve over what replicas can at most carry, simulate what was chosen, and solve again until the plan is true.

Every candidate has a bracket: a rate that simulation has seen it hold, and one that it cannot exceed. The optimiser believes the
upper ends, so what it finds is no dearer than the best true plan; where the replicas it chose hold what it asks of them,
that plan is the best true one (docs/decisions/0006). Where they do not, simulation closes their brackets. Traffic classes
are held to mixes instead (``solver.confirmation.mixes``). When time is up, the best plan of what has been seen to hold is the
answer, and the newest optimum is its bound.
"""

from collections.abc import Callable
from dataclasses import replace

from solver.confirmation.brackets import Brackets
from solver.confirmation.confirmations import Confirmations
from solver.confirmation.exchanges import capacity_found, exchanges_hold, with_role_capacity
from solver.confirmation.mix_capacities import with_mix_capacity
from solver.confirmation.mixes import be_pessimistic, mix_holds
from solver.confirmation.rivals import simulate_rivals
from solver.confirmation.sharing import look_at_sharing
from solver.errors import NoPlanInTimeError
from solver.fleet import FleetResult, SolveOptions, solve_fleet
from solver.fleet.deployments import ROLES
from solver.fleet.plan import PROVEN_GAP_FRACTION, gap_between
from solver.fleet.reach import within_reach
from solver.outcome import Outcome, Status, status_of_plan
from solver.planning.assemble import Assembly, exceeds_default, with_default_limits
from solver.planning.placements import Placement, placements
from solver.planning.types import Observer, PlanningInput, SearchProgress, unobserved
from solver.traffic_classes import streams_of
from solver.workload import Workload

PATIENT_ROUNDS = 12
"""Rounds after which mixes of traffic classes that nobody has simulated are no longer planned with."""
MOST_MIX_ROUNDS = 40
"""Rounds after which a plan with mixes that still do not hold is given up for one of what does."""
ENDING_FRACTION = 0.1
"""Of the time limit: what a search may take beyond it to settle on what it has."""
UNCONFIRMED_SHARE_FRACTION = 0.25
"""Of what is left of the time: what one solve may take while no plan of the search has held in simulation."""
CHALLENGED_SHARE_FRACTION = 0.5
"""The same where a plan is known that holds, and only a cheaper one would be simulated."""
LEAST_SOLVE_FRACTION = 0.02
"""Share of the time limit that the last solve gets where the others have used it up."""
LOOKING_TIME_FRACTION = 0.5
"""Of what is left of the time: what looks at candidates for shared nodes may take before the first plan of what they leave."""
DRAFT_GAP_FRACTION = 0.03
"""Gap to which plans of several workloads are solved until one is known that holds in simulation; a proof is only worth its time
once there is one to beat."""


class Watch:
    """How much of a request's time is left, whatever it is spent on."""

    def __init__(self, planning: PlanningInput, confirmations: Confirmations) -> None:
        self._limit_s, self._clock, self._confirmations = planning.time_limit_s, planning.clock, confirmations
        self._began_s, self._before_s, self._solver_s = planning.clock(), confirmations.spent_s, 0.0

    def solved(self, seconds: float) -> None:
        """Count what a solver says it took: where the clock stands still, that is all the time there is."""
        self._solver_s += seconds
        self.in_time()

    def left_s(self) -> float:
        """Seconds left; never below zero."""
        spent = max(self._clock() - self._began_s, self._solver_s)
        self._confirmations.spent_s = self._before_s + spent
        return max(0.0, self._limit_s - self._confirmations.spent_s)

    def in_time(self) -> bool:
        return self.left_s() > 0.0

    def is_long_over(self) -> bool:
        """Has even the time to end in passed?"""
        return self.left_s() <= 0.0 and self._confirmations.spent_s > self._limit_s * (1.0 + ENDING_FRACTION)


def solve_confirmed(
    assembly: Assembly,
    planning: PlanningInput,
    confirmations: Confirmations,
    observe: Observer = unobserved,
    *,
    draft_first: bool = True,
    known: FleetResult | None = None,
    known_usd_per_hour: float | None = None,
    settles: bool = True,
) -> tuple[Assembly, FleetResult, int]:
    """The best plan whose replicas all hold in simulation, with what is proven about it.

    Offers without a limit get the default one as soon as a plan goes beyond it. draft_first: off where most is known already, so
    that the first plan is likely to hold. known: a plan that holds, of the same deployments by their keys, to be beaten.
    known_usd_per_hour: what a plan costs that holds and that this problem admits as well, where cost is minimised: dearer ones are
    not looked at. Returns the problem with the capacities that the plan was made for, those of the chosen replicas found out exactly
    where it ``settles``. Raises NoPlanInTimeError.
    """
    watch = Watch(planning, confirmations)
    brackets = Brackets(assembly, confirmations.facts)
    final, rounds, bound, given = not draft_first, 0, None, known
    one_stream = sum(len(streams_of(w)) for w in planning.workloads) == 1
    shares_nodes = not one_stream and planning.objective == "cost" and not _has_classes(assembly)
    observe(SearchProgress("solving"))
    while True:
        rounds += 1
        if rounds == PATIENT_ROUNDS:
            be_pessimistic(confirmations, assembly.screened)
        current = brackets.assumed(with_mix_capacity(assembly, confirmations))
        current = with_role_capacity(current, confirmations)
        brackets.assembly = current
        if rounds == 1 and known_usd_per_hour is not None and not shares_nodes:
            simulate_rivals(current, brackets, watch.in_time, known_usd_per_hour)
            current = brackets.assumed(current)
        proving = final or one_stream or known is not None
        asked = current.problem if known_usd_per_hour is None else within_reach(current.problem, known_usd_per_hour)
        result = solve_fleet(asked, _options(planning, watch, known, proving=proving, final=final), known)
        watch.solved(result.solver_seconds)
        if result.outcome is Outcome.INFEASIBLE:
            confirmations.simulations += brackets.simulations
            return with_default_limits(planning, current), result, rounds
        if result.plan is not None and exceeds_default(result.plan, current, planning.default_max_nodes):
            assembly = with_default_limits(planning, assembly)
            continue
        bound = _tighter(bound, result.bound, planning.objective == "throughput")
        if rounds == 1 and (known_usd_per_hour is None or shares_nodes):  # what no bound rules out is worth simulating
            before = brackets.simulations
            simulate_rivals(current, brackets, watch.in_time)
            if shares_nodes and known is None:
                known = _of_what_holds(current, planning, brackets, watch)
                _look_at_sharing(current, brackets, known, watch)
            if brackets.simulations > before and watch.in_time():
                continue
        observe(progress("confirming", result))
        unheld = result.plan is None or _simulate(current, planning, result, confirmations, brackets, watch)
        observe(progress("solving", result))
        if not unheld and (final or result.outcome is Outcome.OPTIMAL or not watch.in_time()):
            confirmations.simulations += brackets.simulations
            if result.outcome is Outcome.FEASIBLE:  # an earlier round may have shown more
                result = with_bound(result, bound, planning.gap_fraction)
            settled = (
                with_settled_capacities(current, result, brackets, confirmations, watch.in_time) if settles else current
            )
            return settled, result, rounds
        if not unheld:
            final, known = True, result if shares_nodes else given
        elif not watch.in_time() or (_has_classes(assembly) and rounds >= MOST_MIX_ROUNDS):
            confirmations.simulations += brackets.simulations
            return (*_best_confirmed(assembly, planning, confirmations, brackets, bound, watch, known), rounds)


def _of_what_holds(assembly: Assembly, planning: PlanningInput, brackets: Brackets, watch: Watch) -> FleetResult | None:
    """The best plan of replicas that simulation has seen to hold, as the one to beat; None where there is none, or one that
    goes beyond what any seller is believed to have."""
    if not watch.in_time():
        return None
    confirmed = brackets.confirmed(assembly).problem
    found = solve_fleet(confirmed, SolveOptions(LEAST_SOLVE_FRACTION * planning.time_limit_s, DRAFT_GAP_FRACTION))
    watch.solved(found.solver_seconds)
    if found.plan is None or exceeds_default(found.plan, assembly, planning.default_max_nodes):
        return None
    return found


def _look_at_sharing(assembly: Assembly, brackets: Brackets, known: FleetResult | None, watch: Watch) -> None:
    if known is not None and known.usd_per_hour is not None:
        until_s = (1.0 - LOOKING_TIME_FRACTION) * watch.left_s()
        look_at_sharing(assembly, brackets, known.usd_per_hour, lambda: watch.left_s() > until_s)


def _has_classes(assembly: Assembly) -> bool:
    return any(one.classes for one in assembly.screened)


def _tighter(one: float | None, other: float | None, larger_is_better: bool) -> float | None:
    """The better of two bounds on the same optimum."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other) if larger_is_better else max(one, other)


def _best_confirmed(
    assembly: Assembly,
    planning: PlanningInput,
    confirmations: Confirmations,
    brackets: Brackets,
    bound: float | None,
    watch: Watch,
    known: FleetResult | None,
) -> tuple[Assembly, FleetResult]:
    """The best plan of what simulation has seen to hold, where there was no time for more. Raises NoPlanInTimeError.

    known: one that holds.
    """
    be_pessimistic(confirmations, assembly.screened)
    current = _confirmed(assembly, confirmations, brackets)
    limit_s = LEAST_SOLVE_FRACTION * planning.time_limit_s
    for _ in range(MOST_MIX_ROUNDS):
        if watch.is_long_over():
            break
        options = SolveOptions(limit_s, max(planning.gap_fraction, DRAFT_GAP_FRACTION))
        result = solve_fleet(current.problem, options, known)
        if result.plan is None:
            raise NoPlanInTimeError(planning.time_limit_s)
        if exceeds_default(result.plan, current, planning.default_max_nodes):
            current = with_default_limits(planning, current)
            continue
        if not _has_classes(assembly) or not _mixes_fail(current, result, confirmations):
            return current, with_bound(result, bound, planning.gap_fraction)
        current = _confirmed(assembly, confirmations, brackets)
    raise NoPlanInTimeError(planning.time_limit_s)


def _confirmed(assembly: Assembly, confirmations: Confirmations, brackets: Brackets) -> Assembly:
    """The problem in which replicas sustain what simulation has seen hold, and others nothing."""
    current = brackets.confirmed(with_mix_capacity(assembly, confirmations))
    return with_role_capacity(current, confirmations, confirmed=True)


def with_bound(result: FleetResult, bound: float | None, gap_asked: float) -> FleetResult:
    """A plan with a bound that was found on a wider problem; None is no bound."""
    assert result.objective is not None
    if bound is None:
        return replace(result, outcome=Outcome.FEASIBLE, status=Status.TIME_LIMIT, bound=None, gap_fraction=None)
    gap = gap_between(result.objective, bound)
    status = status_of_plan(gap, gap_asked, PROVEN_GAP_FRACTION)
    if status is Status.PROVEN_OPTIMAL:
        return replace(result, outcome=Outcome.OPTIMAL, status=status, bound=result.objective, gap_fraction=0.0)
    return replace(result, outcome=Outcome.FEASIBLE, status=status, bound=bound, gap_fraction=gap)


def progress(stage: str, result: FleetResult) -> SearchProgress:
    """What the newest solve says about the plan that is searched."""
    return SearchProgress(stage, result.usd_per_hour, result.bound, result.gap_fraction)


def _options(
    planning: PlanningInput, watch: Watch, known: FleetResult | None, *, proving: bool, final: bool
) -> SolveOptions:
    """What is left of the time limit, for a proof or a draft; after its end drafts only, each in a moment.

    Until its plan has held in simulation no solve may take all of it: what it proves may be of replicas that do not hold.
    """
    left_s = watch.left_s()
    gap = planning.gap_fraction if proving and left_s > 0.0 else max(planning.gap_fraction, DRAFT_GAP_FRACTION)
    share = CHALLENGED_SHARE_FRACTION if known is not None else UNCONFIRMED_SHARE_FRACTION
    share_s = left_s if final else left_s * share
    return SolveOptions(time_limit_s=max(share_s, LEAST_SOLVE_FRACTION * planning.time_limit_s), gap_fraction=gap)


def _simulate(
    assembly: Assembly,
    planning: PlanningInput,
    result: FleetResult,
    confirmations: Confirmations,
    brackets: Brackets,
    watch: Watch,
) -> bool:
    """Simulate the chosen replicas at what is asked of them; does some not hold, or is there no time to know?"""
    assert result.plan is not None
    losses = bool(assembly.problem.limits.fault_tolerance.losses)
    unheld = False
    places = placements(assembly, result.plan)
    for place in places:
        one = assembly.screened[place.workload]
        if place.requests_per_s <= 0.0 or one.classes or place.role != "aggregated":
            continue
        rate = rate_to_hold(losses, one.workload, place)
        if brackets.holds(place.workload, place.row) >= rate * (1.0 - ROUNDING):
            continue
        if not watch.in_time():
            return True
        bracket = brackets.carry(place.workload, place.row, rate * (1.0 - ROUNDING))
        if bracket.holds >= rate * (1.0 - ROUNDING):
            continue
        unheld = True
        # What a plan without it would try next is most likely the same in another precision.
        for row in one.siblings(place.row):
            brackets.look(place.workload, row, rate / place.capacity_requests_per_s)
    if any(place.exchange is not None for place in places):
        nodes = {offer.id: offer.node for offer in planning.offers}

        def asked(place: Placement) -> float:
            return rate_to_hold(losses, assembly.screened[place.workload].workload, place)

        unheld |= not exchanges_hold(assembly, places, asked, confirmations, nodes, watch.in_time)
    return _mixes_fail(assembly, result, confirmations, watch) or unheld


ROUNDING = 1e-9


def _mixes_fail(
    assembly: Assembly, result: FleetResult, confirmations: Confirmations, watch: Watch | None = None
) -> bool:
    """Simulate the mixes of traffic classes that chosen replicas get; does some not hold, or is there no time to know?"""
    assert result.plan is not None
    losses = bool(assembly.problem.limits.fault_tolerance.losses)
    failed = False
    for place in placements(assembly, result.plan):
        one = assembly.screened[place.workload]
        if not one.classes or place.requests_per_s <= 0.0 or place.role != "aggregated":
            continue
        if watch is not None and not watch.in_time():
            return True
        rates = rates_to_hold(place, rate_to_hold(losses, one.workload, place))
        failed |= not mix_holds(confirmations, place.workload, one, place.row, place.classes, rates)
    return failed


def with_settled_capacities(
    assembly: Assembly,
    result: FleetResult,
    brackets: Brackets,
    confirmations: Confirmations,
    in_time: Callable[[], bool],
) -> Assembly:
    """The problem with what the chosen replicas sustain, no more and no less, as far as there is time to find out."""
    assert result.plan is not None
    capacity = assembly.problem.deployments.capacity_requests_per_s.copy()
    for place in placements(assembly, result.plan):
        one = assembly.screened[place.workload]
        if one.classes or place.requests_per_s <= 0.0:
            continue
        mine = assembly.rows_in_role(place.workload, ROLES.index(place.role)) & (assembly.row_of == place.row)
        if place.role != "aggregated":
            rate = rate_to_hold(bool(assembly.problem.limits.fault_tolerance.losses), one.workload, place)
            capacity[mine, 0] = capacity_found(place, rate, confirmations)
            continue
        if in_time():
            brackets.settle(place.workload, place.row)
        capacity[mine, 0] = brackets.holds(place.workload, place.row)
    return assembly.with_capacity(capacity)


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
