"""Solving: reduce, start from the heuristic plan, prove with HiGHS (or CBC), realise, check, report truthfully."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import pulp

from solver.errors import InvalidInputError, SolverFailedError
from solver.fleet.decomposition.by_place import parts_by_place, solve_by_place
from solver.fleet.decomposition.by_workload import solve_by_workload
from solver.fleet.decomposition.known_parts import PartsMemo
from solver.fleet.decomposition.standalone import OwnCost, add_own_cost
from solver.fleet.found import Found, better_of, found_of, realised
from solver.fleet.heuristic.greedy import Draft
from solver.fleet.highs import SolverAnswer
from solver.fleet.model.objective import carbon_terms, cost_terms, no_idle_gifts, power_terms
from solver.fleet.model.programme import FleetProgramme
from solver.fleet.plan import PROVEN_GAP_FRACTION, FleetResult, Plan, SolverName, gap_between
from solver.fleet.problem import FleetProblem
from solver.fleet.reduce import ReducedProblem, most_promising, prune, reduce_problem
from solver.fleet.restricted import Effort, build_and_solve, solve_again, tried
from solver.fleet.verify import verify_plan
from solver.outcome import Outcome, Status


@dataclass(frozen=True, slots=True)
class SolveOptions:
    """gap_fraction: distance from the bound at which to stop; 0 asks for a proof."""

    time_limit_s: float = 30.0
    gap_fraction: float = 0.0
    solver: Literal["highs", "cbc"] = "highs"
    seed: int = 0
    exact_steps: bool = True
    """Off: no pruning and no heuristic start, for comparing with the full programme."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.time_limit_s) and self.time_limit_s > 0):
            raise InvalidInputError("time_limit_s must be positive")
        if not 0.0 <= self.gap_fraction < 1.0:
            raise InvalidInputError("gap_fraction must lie in [0, 1)")


LEAST_TIME_FRACTION = 0.1
"""Share of the time limit a later stage gets even when earlier ones used it up."""
SERVES_NOTHING = 1e-7
"""Multiples of the demand no larger than the solvers' feasibility tolerance are zero."""
FEW_PAIRS = 150
"""Below this a second solve costs more than it saves."""
PROMISING_FRACTION = 0.1
"""Pairs tried first: those that use up at most this share of the distance between bound and heuristic plan."""
SHARPENING_GAP_FRACTION = 0.01

DEFAULTS = SolveOptions()


Solve = Callable[[FleetProblem], FleetResult]
"""How a changed problem is solved: to the rules of the plan it is compared with."""


def solve_fleet(
    problem: FleetProblem,
    options: SolveOptions = DEFAULTS,
    known: FleetResult | None = None,
    parts: PartsMemo | None = None,
) -> FleetResult:
    """The best plan for ``problem``, or the reasons why there is none.

    known: an answer of a problem with the same offers whose deployments did no more; its plan, where it is within the limits of
    this one, is the one to beat. parts: what is known of parts of such fleets in places, which learns.
    "optimal" is only ever said of a plan that ``verify`` accepts and whose gap, recomputed here, is closed. Raises
    SolverFailedError only if HiGHS and CBC both fail and the heuristic has no plan either.
    """
    in_hand = _in_hand(problem, known)
    reduced = reduce_problem(problem, options.exact_steps, in_hand)
    if reduced.reasons:
        return _without_plan(reduced, Outcome.INFEASIBLE, "bound", 0, 0.0, reduced.reasons)
    if not len(reduced.pairs):
        nothing = realised(reduced, Draft({}, {}, 0.0, 1.0), {}, "bound")
        if nothing is None:
            return _without_plan(reduced, Outcome.INFEASIBLE, "bound", 0, 0.0, ("no candidate is within the limits",))
        return _report(reduced, nothing, nothing.objective, False, 0, 0.0)
    draft = None if reduced.draft is None else realised(reduced, reduced.draft, {}, "greedy")
    if in_hand is not None and known is not None and problem.objective != "throughput":
        draft = better_of(problem, draft, found_of(reduced, in_hand, known.solver))
    if draft is not None and draft.multiple <= SERVES_NOTHING:
        draft = None  # serving nothing is no plan
    if draft is not None and gap_between(draft.objective, reduced.bound) <= PROVEN_GAP_FRACTION:
        return _report(reduced, replace(draft, solver="bound"), reduced.bound, False, 0, 0.0)
    failure: SolverFailedError | None = None
    seconds = 0.0
    own: OwnCost | None = None
    if options.exact_steps and options.solver == "highs" and parts_by_place(problem):
        ceiling = math.inf if draft is None else draft.objective
        how = options.time_limit_s, options.gap_fraction, options.seed
        parted = solve_by_place(reduced, ceiling, *how, PartsMemo() if parts is None else parts)
        if parted.bound == math.inf:
            reasons = ("no plan within all limits together",)
            return _without_plan(reduced, Outcome.INFEASIBLE, "bound", len(reduced.pairs), parted.seconds, reasons)
        seconds, draft = parted.seconds, better_of(problem, draft, parted.found)
        reduced = replace(reduced, bound=max(reduced.bound, parted.bound))
        gap = math.inf if draft is None else gap_between(draft.objective, reduced.bound)
        if draft is not None and gap <= max(PROVEN_GAP_FRACTION, options.gap_fraction):
            return _report(reduced, draft, reduced.bound, gap > PROVEN_GAP_FRACTION, len(reduced.pairs), seconds)
    if draft is not None and options.solver == "highs" and len(reduced.pairs) > FEW_PAIRS:
        # Workloads are told apart only where each of their replicas serves by itself.
        alone = len(problem.demands) == 1 or reduced.pairs.has_exchanges
        if not alone and problem.objective != "throughput":
            done = solve_by_workload(reduced, draft, options.time_limit_s, options.gap_fraction, options.seed)
            reduced, own, draft, seconds = done.reduced, done.own, done.found, done.seconds
            if done.is_finished:
                gap = gap_between(draft.objective, reduced.bound)
                asked = PROVEN_GAP_FRACTION < gap <= options.gap_fraction
                return _report(reduced, draft, reduced.bound, asked, len(reduced.pairs), seconds)
        else:
            reduced, draft, seconds = _sharpen(reduced, options, draft)
    solvers: tuple[SolverName, ...] = ("highs", "cbc") if options.solver == "highs" else ("cbc", "highs")
    for name in solvers:
        try:
            answer, candidates, spent = _attempt(reduced, _time_left(options, seconds), name, draft, own)
        except SolverFailedError as failed:
            failure = failed
            continue
        seconds += spent
        return replace(answer, solver_candidates=candidates, solver_seconds=seconds)
    if draft is not None:
        return _report(reduced, draft, reduced.bound, False, len(reduced.pairs), seconds)
    raise failure or SolverFailedError("no solver was tried")


def _in_hand(problem: FleetProblem, known: FleetResult | None) -> Plan | None:
    """The plan of an answer, where it serves all demand of this problem within its limits."""
    if known is None or known.plan is None or verify_plan(problem, known.plan, 1.0):
        return None
    return known.plan


def _sharpen(reduced: ReducedProblem, options: SolveOptions, draft: Found) -> tuple[ReducedProblem, Found, float]:
    """Solve over the most promising pairs only, and prune again with the better plan that gives.

    Exact: a pair is dropped only if every plan with it costs more than the plan in hand.
    """
    gap = max(SHARPENING_GAP_FRACTION, options.gap_fraction)
    effort = Effort(options.time_limit_s / 3, gap, options.seed)
    answered = tried(most_promising(reduced, PROMISING_FRACTION), effort, draft.draft)
    seconds = 0.0 if answered is None else answered.solved.seconds
    better = better_of(reduced.problem, draft, None if answered is None else answered.found())
    if better is None or better is draft:
        return reduced, draft, seconds
    return prune(replace(reduced, draft=better.draft)), better, seconds


def _attempt(
    reduced: ReducedProblem, options: SolveOptions, name: SolverName, draft: Found | None, own: OwnCost | None
) -> tuple[FleetResult, int, float]:
    change = None if own is None else partial(add_own_cost, own=own)
    answered = build_and_solve(reduced, _effort(options, name), reduced.draft if draft is not None else None, change)
    model, solved = answered.model, answered.solved
    candidates = len(reduced.pairs)
    seconds = solved.seconds
    if solved.proof == "infeasible":
        if draft is not None:
            raise SolverFailedError(f"{name} calls a problem infeasible that has a plan")
        reasons = ("no plan within all limits together",)
        return _without_plan(reduced, Outcome.INFEASIBLE, name, candidates, seconds, reasons), candidates, seconds
    if model.multiple is not None and solved.proof == "optimal" and (model.multiple.varValue or 0.0) <= SERVES_NOTHING:
        reasons = ("no multiple of the demand above zero can be served",)
        return _without_plan(reduced, Outcome.INFEASIBLE, name, candidates, seconds, reasons), candidates, seconds
    found = None
    if solved.proof != "no_plan_found":
        found = answered.found()
        if found is None and solved.proof == "optimal":
            raise SolverFailedError(f"the plan of {name} does not hold once its integers are rounded")
    bound = _bound(reduced, solved, draft)
    ties = reduced.problem.objective != "cost" and reduced.problem.is_cheapest_asked
    if ties and found is not None and solved.proof == "optimal":
        cheaper = _cheapest_at(model, options, name, found, solved.seconds)
        seconds += cheaper[1]
        found = cheaper[0] or found
    best = better_of(reduced.problem, draft, found)
    if best is None or best.multiple <= SERVES_NOTHING:
        return _without_plan(reduced, Outcome.UNKNOWN, name, candidates, seconds, ()), candidates, seconds
    gap_asked = options.gap_fraction > 0 and solved.proof == "optimal"
    return _report(reduced, best, bound, gap_asked, candidates, seconds), candidates, seconds


def _effort(options: SolveOptions, name: SolverName) -> Effort:
    return Effort(options.time_limit_s, options.gap_fraction, options.seed, name)


def _time_left(options: SolveOptions, spent_s: float) -> SolveOptions:
    return replace(
        options, time_limit_s=max(options.time_limit_s - spent_s, LEAST_TIME_FRACTION * options.time_limit_s)
    )


def _cheapest_at(
    model: FleetProgramme, options: SolveOptions, name: SolverName, found: Found, spent_s: float
) -> tuple[Found | None, float]:
    """Second objective of throughput, power and carbon: of the plans as good as ``found``, the cheapest."""
    slack = PROVEN_GAP_FRACTION / 10
    if model.multiple is not None:
        model.at_least({model.multiple: 1.0}, found.multiple * (1 - slack), "throughput_kept")
        model.programme.sense = pulp.LpMinimize
    else:
        kept_terms = power_terms(model) if model.reduced.problem.objective == "power" else carbon_terms(model)
        model.at_most(kept_terms, found.objective * (1 + slack), "objective_kept")
    model.programme.setObjective(pulp.LpAffineExpression(no_idle_gifts(cost_terms(model))))
    try:
        answered = solve_again(model, _effort(_time_left(options, spent_s), name))
    except SolverFailedError:
        return None, 0.0
    cheaper = answered.found()
    kept = cheaper is not None and gap_between(found.objective, cheaper.objective) <= PROVEN_GAP_FRACTION
    return (cheaper if kept else None), answered.solved.seconds


def _bound(reduced: ReducedProblem, solved: SolverAnswer, draft: Found | None) -> float:
    """The tighter of the arithmetic bound and the solver's; what pruning left out is worse than the draft."""
    if solved.bound is None:
        return reduced.bound
    if reduced.problem.objective == "throughput":
        tight = min(reduced.bound, solved.bound)
        return tight if draft is None else max(tight, draft.objective)
    tight = max(reduced.bound, solved.bound)
    return tight if draft is None else min(tight, draft.objective)


def _report(
    reduced: ReducedProblem, found: Found, bound: float, gap_asked: bool, candidates: int, seconds: float
) -> FleetResult:
    problem = reduced.problem
    # A bound beyond the plan's own objective is the solver's tolerance; the plan's objective is exact arithmetic.
    bound = max(bound, found.objective) if problem.objective == "throughput" else min(bound, found.objective)
    bound = float(bound)  # numpy's own kind, which bounds of branches are, is written differently
    gap = gap_between(found.objective, bound)
    proven = gap <= PROVEN_GAP_FRACTION
    return FleetResult(
        outcome=Outcome.OPTIMAL if proven else Outcome.FEASIBLE,
        status=Status.PROVEN_OPTIMAL if proven else Status.WITHIN_GAP if gap_asked else Status.TIME_LIMIT,
        solver=found.solver,
        plan=found.plan,
        objective=found.objective,
        bound=found.objective if proven else bound,
        gap_fraction=0.0 if proven else gap,
        usd_per_hour=found.plan.usd_per_hour(problem),
        power_w=found.plan.power_w(problem),
        throughput_multiple=found.multiple,
        candidates=reduced.candidates,
        solver_candidates=candidates,
        solver_seconds=seconds,
    )


def _without_plan(
    reduced: ReducedProblem,
    outcome: Outcome,
    solver: SolverName,
    candidates: int,
    seconds: float,
    reasons: tuple[str, ...],
) -> FleetResult:
    return FleetResult(
        outcome=outcome,
        status=Status.PROVEN_INFEASIBLE if outcome is Outcome.INFEASIBLE else Status.NO_PLAN_FOUND,
        solver=solver,
        plan=None,
        objective=None,
        bound=float(reduced.bound) if math.isfinite(reduced.bound) else None,
        gap_fraction=None,
        usd_per_hour=None,
        power_w=None,
        throughput_multiple=None,
        candidates=reduced.candidates,
        solver_candidates=candidates,
        solver_seconds=seconds,
        reasons=reasons,
    )
