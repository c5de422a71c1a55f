"""Workloads that tell regions apart: plans equal trying everything source by source, and stay where they may be."""

from dataclasses import replace

import pytest

from solver.errors import InvalidInputError
from solver.horizon.assemble import problem_of
from solver.horizon.problem import HorizonProblem
from solver.horizon.verify import verify_plan
from tests.solver.horizon.comparing import INSTANCES, agreed, solved
from tests.solver.horizon.instances import cheapest
from tests.solver.horizon.regional import Regional, plainly, regional


def test_equals_enumeration() -> None:
    infeasible = apart = owned = 0
    for seed in range(INSTANCES):
        one = regional(seed)
        problem = problem_of(one.asked, one.candidates, one.periods)
        plan = agreed(problem, cheapest(plainly(one)), seed)
        if plan is None:
            infeasible += 1
            continue
        apart += any("#" in node_type.id for node_type in problem.node_types)
        owned += plan.committed_usd(problem, "purchase") > 0.0
    assert infeasible > 0.1 * INSTANCES
    assert apart > 0.2 * INSTANCES
    assert owned > 0.03 * INSTANCES


def test_replicas_where_they_may_not_be_are_refused() -> None:
    """The plan of a problem without places, against the problem with them."""
    refused = 0
    for one in map(regional, range(120)):
        problem = problem_of(one.asked, one.candidates, one.periods)
        plan = solved(problem).plan
        if plan is None:
            continue
        moved = _only_in(problem, one, "nowhere")
        if any(any(choice.replicas) for choice in plan.choices):
            assert verify_plan(moved, plan) != []
            refused += 1
    assert refused > 40


def _only_in(problem: HorizonProblem, one: Regional, region: str) -> HorizonProblem:
    """The same sources and replicas, but as if replicas had to stand in one region."""
    places = {o.id: o.region for o in one.asked.planning.offers} | {p.id: p.region for p in one.asked.purchases}
    inside = frozenset(name for name, where in places.items() if where == region)
    allowed = tuple(replace(d, sources=inside) for d in problem.deployments)
    changed = replace(problem, deployments=())
    object.__setattr__(changed, "deployments", allowed)  # a problem refuses itself when made this way
    return changed


def test_a_type_that_holds_nodes_kept_out_of_is_refused() -> None:
    one = next(r for r in map(regional, range(50)) if problem_of(r.asked, r.candidates, r.periods).hourly)
    problem = problem_of(one.asked, one.candidates, one.periods)
    with pytest.raises(InvalidInputError, match="may not use"):
        replace(problem, deployments=tuple(replace(d, sources=frozenset()) for d in problem.deployments))
