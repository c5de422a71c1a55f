"""Solving: reduce, start from the heuristic plan, prove with HiGHS (or CBC), realise, check, report truthfully."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pulp

from solver.errors import InvalidInputError, SolverFailedError
from solver.fleet.decompose import neighbourhoods, one_by_one
from solver.fleet.formulation import build_model, carbon_terms, cost_terms, power_terms, split_devices_of
from solver.fleet.greedy import Draft
from solver.fleet.highs import Solved, solve_with_cbc, solve_with_highs
from solver.fleet.model import Model
from solver.fleet.own_cost import OwnCost, add_own_cost, own_cost, promising, within
from solver.fleet.packing import paths
from solver.fleet.plan import PROVEN_GAP_FRACTION, FleetResult, Plan, SolverName, gap_between
from solver.fleet.problem import FleetProblem
from solver.fleet.realise import PlanBrokenError, Slots, realise
from solver.fleet.reduce import ReducedProblem, most_promising, prune, reduce_problem
from solver.fleet.taken import PlacementKey
from solver.fleet.verify import verify_plan


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


@dataclass(frozen=True, slots=True)
class _Found:
    plan: Plan
    multiple: float
    objective: float
    solver: SolverName
    draft: Draft


LEAST_TIME_FRACTION = 0.1
"""Share of the time limit a later stage gets even when earlier ones used it up."""
SERVES_NOTHING = 1e-7
"""Multiples of the demand no larger than the solvers' feasibility tolerance are zero."""
FEW_PAIRS = 150
"""Below this a second solve costs more than it saves."""
PROMISING_FRACTION = 0.1
"""Pairs tried first: those that use up at most this share of the distance between bound and heuristic plan."""
SHARPENING_GAP_FRACTION = 0.01
OWN_TIME_FRACTION = 0.25
"""Share of the time limit for what each workload costs alone, and again for their plans alone."""
MOST_COLUMNS = 20_000
"""Routing columns beyond which workloads are improved a few at a time instead of all together."""
SHARED_TIME_FRACTION = 0.2
"""Share of the time limit for a first plan in which workloads share nodes."""
SHARED_EXCESS_FRACTION = 0.25
"""Pairs tried for that plan: those that use up at most this share of the distance between bound and plan."""

DEFAULTS = SolveOptions()


def solve_fleet(problem: FleetProblem, options: SolveOptions = DEFAULTS) -> FleetResult:
    """The best plan for ``problem``, or the reasons why there is none.

    "optimal" is only ever said of a plan that ``verify`` accepts and whose gap, recomputed here, is closed. Raises
    SolverFailedError only if HiGHS and CBC both fail and the heuristic has no plan either.
    """
    reduced = reduce_problem(problem, options.exact_steps)
    if reduced.reasons:
        return _without_plan(reduced, "infeasible", "bound", 0, 0.0, reduced.reasons)
    if not len(reduced.pairs):
        nothing = _realised(reduced, Draft({}, {}, 0.0, 1.0), {}, "bound")
        if nothing is None:
            return _without_plan(reduced, "infeasible", "bound", 0, 0.0, ("no candidate is within the limits",))
        return _report(reduced, nothing, nothing.objective, False, 0, 0.0)
    draft = None if reduced.draft is None else _realised(reduced, reduced.draft, {}, "greedy")
    if draft is not None and draft.multiple <= SERVES_NOTHING:
        draft = None  # serving nothing is no plan
    if draft is not None and gap_between(draft.objective, reduced.bound) <= PROVEN_GAP_FRACTION:
        return _report(reduced, replace(draft, solver="bound"), reduced.bound, False, 0, 0.0)
    failure: SolverFailedError | None = None
    seconds = 0.0
    own: OwnCost | None = None
    if draft is not None and options.solver == "highs" and len(reduced.pairs) > FEW_PAIRS:
        if len(problem.demands) > 1 and problem.objective != "throughput":
            reduced, own, draft, seconds = _by_workload(reduced, options, draft)
            gap = gap_between(draft.objective, reduced.bound)
            if gap <= max(PROVEN_GAP_FRACTION, options.gap_fraction) or is_large(reduced):
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


def _sharpen(reduced: ReducedProblem, options: SolveOptions, draft: _Found) -> tuple[ReducedProblem, _Found, float]:
    """Solve over the most promising pairs only, and prune again with the better plan that gives.

    Exact: a pair is dropped only if every plan with it costs more than the plan in hand.
    """
    promising = most_promising(reduced, PROMISING_FRACTION)
    model = build_model(promising)
    seconds = 0.0
    try:
        start = starting_values(model, draft.draft)
        limit_s = options.time_limit_s / 3
        solved = solve_with_highs(model.programme, start, limit_s, SHARPENING_GAP_FRACTION, options.seed)
        seconds = solved.seconds
        found = _read(model, "highs") if solved.proof in ("optimal", "feasible") else None
    except SolverFailedError:
        found = None
    better = _better(reduced.problem, draft, found)
    if better is None or better is draft:
        return reduced, draft, seconds
    return prune(replace(reduced, draft=better.draft)), better, seconds


def _by_workload(
    reduced: ReducedProblem, options: SolveOptions, draft: _Found
) -> tuple[ReducedProblem, OwnCost, _Found, float]:
    """Bound and plan from the workloads one by one, then a plan that shares nodes, and what both leave to be proven."""
    own = own_cost(reduced, OWN_TIME_FRACTION * options.time_limit_s, options.seed)
    seconds = own.seconds
    placed = one_by_one(reduced, own, OWN_TIME_FRACTION * options.time_limit_s, options.seed)
    if placed is not None:
        seconds += placed.seconds
        draft = _better(reduced.problem, draft, _realised(reduced, placed.draft(), {}, "highs")) or draft
    bound = max(reduced.bound, min(own.lower, draft.objective))
    reduced, own = within(replace(reduced, draft=draft.draft, bound=bound), own, draft.objective)
    if gap_between(draft.objective, bound) <= max(PROVEN_GAP_FRACTION, options.gap_fraction):
        return reduced, own, draft, seconds
    if placed is not None and is_large(reduced):
        left_s = max(options.time_limit_s - seconds, LEAST_TIME_FRACTION * options.time_limit_s)
        began_s = placed.seconds
        placed = neighbourhoods(reduced, own, placed, left_s, options.seed)
        draft = _better(reduced.problem, draft, _realised(reduced, placed.draft(), {}, "highs")) or draft
        return replace(reduced, draft=draft.draft), own, draft, seconds + placed.seconds - began_s
    few, few_own = promising(reduced, own, SHARED_EXCESS_FRACTION)
    model = build_model(few)
    add_own_cost(model, few_own)
    try:
        start = starting_values(model, draft.draft)
        limit_s = SHARED_TIME_FRACTION * options.time_limit_s
        solved = solve_with_highs(model.programme, start, limit_s, options.gap_fraction, options.seed)
        seconds += solved.seconds
        found = _read(model, "highs") if solved.proof in ("optimal", "feasible") else None
    except SolverFailedError:
        found = None
    draft = _better(reduced.problem, draft, found) or draft
    reduced, own = within(replace(reduced, draft=draft.draft), own, draft.objective)
    return reduced, own, draft, seconds


def is_large(reduced: ReducedProblem) -> bool:
    """Has the programme of all workloads together more columns than a solver makes anything of in seconds?"""
    classes = np.isfinite(reduced.pairs.load) & (reduced.pairs.load > 0)
    return int(classes.sum()) > MOST_COLUMNS


def _attempt(
    reduced: ReducedProblem, options: SolveOptions, name: SolverName, draft: _Found | None, own: OwnCost | None
) -> tuple[FleetResult, int, float]:
    model = build_model(reduced)
    if own is not None:
        add_own_cost(model, own)
    start = starting_values(model, reduced.draft) if draft is not None and reduced.draft is not None else None
    solved = _run(model, options, name, start)
    candidates = len(reduced.pairs)
    seconds = solved.seconds
    if solved.proof == "infeasible":
        if draft is not None:
            raise SolverFailedError(f"{name} calls a problem infeasible that has a plan")
        reasons = ("no plan within all limits together",)
        return _without_plan(reduced, "infeasible", name, candidates, seconds, reasons), candidates, seconds
    if model.multiple is not None and solved.proof == "optimal" and (model.multiple.varValue or 0.0) <= SERVES_NOTHING:
        reasons = ("no multiple of the demand above zero can be served",)
        return _without_plan(reduced, "infeasible", name, candidates, seconds, reasons), candidates, seconds
    found = None
    if solved.proof != "no_plan_found":
        found = _read(model, name)
        if found is None and solved.proof == "optimal":
            raise SolverFailedError(f"the plan of {name} does not hold once its integers are rounded")
    bound = _bound(reduced, solved, draft)
    if reduced.problem.objective != "cost" and found is not None and solved.proof == "optimal":
        cheaper = _cheapest_at(model, options, name, found, solved.seconds)
        seconds += cheaper[1]
        found = cheaper[0] or found
    best = _better(reduced.problem, draft, found)
    if best is None or best.multiple <= SERVES_NOTHING:
        return _without_plan(reduced, "unknown", name, candidates, seconds, ()), candidates, seconds
    gap_asked = options.gap_fraction > 0 and solved.proof == "optimal"
    return _report(reduced, best, bound, gap_asked, candidates, seconds), candidates, seconds


def _run(
    model: Model, options: SolveOptions, name: SolverName, start: Mapping[pulp.LpVariable, float] | None
) -> Solved:
    if name == "highs":
        return solve_with_highs(model.programme, start, options.time_limit_s, options.gap_fraction, options.seed)
    return solve_with_cbc(model.programme, options.time_limit_s, options.gap_fraction, options.seed)


def _time_left(options: SolveOptions, spent_s: float) -> SolveOptions:
    return replace(
        options, time_limit_s=max(options.time_limit_s - spent_s, LEAST_TIME_FRACTION * options.time_limit_s)
    )


def _cheapest_at(
    model: Model, options: SolveOptions, name: SolverName, found: _Found, spent_s: float
) -> tuple[_Found | None, float]:
    """Second objective of throughput, power and carbon: of the plans as good as ``found``, the cheapest."""
    slack = PROVEN_GAP_FRACTION / 10
    if model.multiple is not None:
        model.at_least({model.multiple: 1.0}, found.multiple * (1 - slack), "throughput_kept")
        model.programme.sense = pulp.LpMinimize
    else:
        kept_terms = power_terms(model) if model.reduced.problem.objective == "power" else carbon_terms(model)
        model.at_most(kept_terms, found.objective * (1 + slack), "objective_kept")
    model.programme.setObjective(pulp.LpAffineExpression(cost_terms(model)))
    try:
        solved = _run(model, _time_left(options, spent_s), name, None)
    except SolverFailedError:
        return None, 0.0
    cheaper = _read(model, name) if solved.proof in ("optimal", "feasible") else None
    kept = cheaper is not None and gap_between(found.objective, cheaper.objective) <= PROVEN_GAP_FRACTION
    return (cheaper if kept else None), solved.seconds


def starting_values(model: Model, draft: Draft) -> dict[pulp.LpVariable, float] | None:
    """The heuristic plan as values of the integer variables, or None if the model lacks one of its columns."""
    keys = placement_keys(model.reduced)
    if not set(draft.replicas) <= set(keys) or not set(draft.nodes) <= set(model.nodes):
        return None
    values = {model.replicas[i]: float(draft.replicas.get(key, 0)) for i, key in enumerate(keys)}
    values.update({variable: float(draft.nodes.get(offer, 0)) for offer, variable in model.nodes.items()})
    values.update(split_devices_of(model, values))
    for (p, offer), variable in model.in_use.items():
        rows = [i for i in model.pool_rows[p] if offer < 0 or model.reduced.pairs.offer[i] == offer]
        values[variable] = float(any(values[model.replicas[i]] for i in rows))
    return values


def placement_keys(reduced: ReducedProblem) -> list[PlacementKey]:
    anchors = [pool.offers[0] for pool in reduced.pools]
    pairs = reduced.pairs
    return [
        (row, anchors[pool], offer)
        for row, pool, offer in zip(pairs.deployment.tolist(), pairs.pool.tolist(), pairs.offer.tolist(), strict=True)
    ]


def _read(model: Model, name: SolverName) -> _Found | None:
    """The solver's integers, rounded, made into a plan; None if that plan does not hold."""
    replicas = {
        key: count
        for key, variable in zip(placement_keys(model.reduced), model.replicas, strict=True)
        if (count := _whole(variable))
    }
    nodes = {offer: count for offer, variable in model.nodes.items() if (count := _whole(variable))}
    pools = model.reduced.pools
    slots: dict[int, list[tuple[int, ...]]] = {
        pools[p].offers[0]: paths({arc: _whole(variable) for arc, variable in flow.items()}, pools[p].devices)
        for p, flow in model.arc_flow.items()
    }
    return _realised(model.reduced, Draft(nodes, replicas, math.nan, math.nan), slots, name)


def _whole(variable: pulp.LpVariable) -> int:
    return round(variable.varValue or 0.0)


def _realised(reduced: ReducedProblem, draft: Draft, slots: Slots, name: SolverName) -> _Found | None:
    problem = reduced.problem
    try:
        plan, multiple = realise(problem, reduced.pools, draft, slots)
    except PlanBrokenError:
        return None
    if verify_plan(problem, plan, multiple):
        return None
    objective = plan.objective(problem, multiple)
    return _Found(plan, multiple, objective, name, replace(draft, objective=objective, throughput_multiple=multiple))


def _better(problem: FleetProblem, draft: _Found | None, found: _Found | None) -> _Found | None:
    if draft is None or found is None:
        return found or draft
    sign = -1.0 if problem.objective == "throughput" else 1.0
    return draft if sign * draft.objective < sign * found.objective * (1 - sign * PROVEN_GAP_FRACTION) else found


def _bound(reduced: ReducedProblem, solved: Solved, draft: _Found | None) -> float:
    """The tighter of the arithmetic bound and the solver's; what pruning left out is worse than the draft."""
    if solved.bound is None:
        return reduced.bound
    if reduced.problem.objective == "throughput":
        tight = min(reduced.bound, solved.bound)
        return tight if draft is None else max(tight, draft.objective)
    tight = max(reduced.bound, solved.bound)
    return tight if draft is None else min(tight, draft.objective)


def _report(
    reduced: ReducedProblem, found: _Found, bound: float, gap_asked: bool, candidates: int, seconds: float
) -> FleetResult:
    problem = reduced.problem
    # A bound beyond the plan's own objective is the solver's tolerance; the plan's objective is exact arithmetic.
    bound = max(bound, found.objective) if problem.objective == "throughput" else min(bound, found.objective)
    gap = gap_between(found.objective, bound)
    proven = gap <= PROVEN_GAP_FRACTION
    return FleetResult(
        outcome="optimal" if proven else "feasible",
        status="proven_optimal" if proven else "gap_reached" if gap_asked else "time_limit",
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
    outcome: Literal["infeasible", "unknown"],
    solver: SolverName,
    candidates: int,
    seconds: float,
    reasons: tuple[str, ...],
) -> FleetResult:
    return FleetResult(
        outcome=outcome,
        status="infeasible" if outcome == "infeasible" else "no_plan_found",
        solver=solver,
        plan=None,
        objective=None,
        bound=reduced.bound if math.isfinite(reduced.bound) else None,
        gap_fraction=None,
        usd_per_hour=None,
        power_w=None,
        throughput_multiple=None,
        candidates=reduced.candidates,
        solver_candidates=candidates,
        solver_seconds=seconds,
        reasons=reasons,
    )
