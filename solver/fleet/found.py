"""A plan that holds, from a solver's numbers or a heuristic's, and the same plan as a solver's first solution."""

import math
from dataclasses import dataclass, replace

import pulp

from solver.fleet.heuristic.greedy import Draft
from solver.fleet.heuristic.known import draft_of
from solver.fleet.heuristic.taken import PlacementKey
from solver.fleet.model.formulation import split_devices_of
from solver.fleet.model.packing import paths
from solver.fleet.model.places import places_of
from solver.fleet.model.programme import FleetProgramme
from solver.fleet.plan import PROVEN_GAP_FRACTION, Plan, SolverName
from solver.fleet.problem import FleetProblem
from solver.fleet.realise import PlanBrokenError, Slots, realise
from solver.fleet.reduce import ReducedProblem
from solver.fleet.verify import verify_plan


@dataclass(frozen=True, slots=True)
class Found:
    plan: Plan
    multiple: float
    objective: float
    solver: SolverName
    draft: Draft


def starting_values(model: FleetProgramme, draft: Draft) -> dict[pulp.LpVariable, float] | None:
    """The heuristic plan as values of the integer variables, or None if the model lacks one of its columns."""
    keys = placement_keys(model.reduced)
    if not set(draft.replicas) <= set(keys) or not set(draft.nodes) <= set(model.nodes):
        return None
    values = {model.replicas[i]: float(draft.replicas.get(key, 0)) for i, key in enumerate(keys)}
    values.update({variable: float(draft.nodes.get(offer, 0)) for offer, variable in model.nodes.items()})
    values.update(split_devices_of(model, values))
    values.update(places_of(model, values))
    for (p, offer), variable in model.in_use.items():
        rows = [i for i in model.group_rows[p] if offer < 0 or model.reduced.pairs.offer[i] == offer]
        values[variable] = float(any(values[model.replicas[i]] for i in rows))
    return values


def placement_keys(reduced: ReducedProblem) -> list[PlacementKey]:
    anchors = [group.offers[0] for group in reduced.groups]
    pairs = reduced.pairs
    return [
        (row, anchors[group], offer)
        for row, group, offer in zip(pairs.deployment.tolist(), pairs.group.tolist(), pairs.offer.tolist(), strict=True)
    ]


def whole_numbers(model: FleetProgramme) -> Draft:
    """The solver's integers, rounded."""
    replicas = {
        key: count
        for key, variable in zip(placement_keys(model.reduced), model.replicas, strict=True)
        if (count := _whole(variable))
    }
    nodes = {offer: count for offer, variable in model.nodes.items() if (count := _whole(variable))}
    return Draft(nodes, replicas, math.nan, math.nan)


def read_plan(model: FleetProgramme, name: SolverName) -> Found | None:
    """The solver's integers, rounded, made into a plan; None if that plan does not hold."""
    return realised(model.reduced, whole_numbers(model), slots_of(model), name)


def slots_of(model: FleetProgramme) -> dict[int, list[tuple[tuple[int, ...], int]]]:
    """Sizes on a node, and how many nodes, by group (its first offer), where the solver chose how nodes are cut up."""
    groups = model.reduced.groups
    return {
        groups[p].offers[0]: paths({arc: _whole(variable) for arc, variable in flow.items()}, groups[p].devices)
        for p, flow in model.arc_flow.items()
    }


def _whole(variable: pulp.LpVariable) -> int:
    return round(variable.varValue or 0.0)


def realised(reduced: ReducedProblem, draft: Draft, slots: Slots, name: SolverName) -> Found | None:
    problem = reduced.problem
    try:
        plan, multiple = realise(problem, reduced.groups, draft, slots)
    except PlanBrokenError:
        return None
    if verify_plan(problem, plan, multiple):
        return None
    objective = plan.objective(problem, multiple)
    return Found(plan, multiple, objective, name, replace(draft, objective=objective, throughput_multiple=multiple))


def found_of(reduced: ReducedProblem, plan: Plan, name: SolverName) -> Found:
    """A plan that serves all demand and has been checked."""
    draft = draft_of(reduced.problem, reduced.groups, plan)
    return Found(plan, 1.0, draft.objective, name, draft)


def better_of(problem: FleetProblem, draft: Found | None, found: Found | None) -> Found | None:
    if draft is None or found is None:
        return found or draft
    sign = -1.0 if problem.objective == "throughput" else 1.0
    return draft if sign * draft.objective < sign * found.objective * (1 - sign * PROVEN_GAP_FRACTION) else found
