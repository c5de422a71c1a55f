"""What a plan is made to contain: the optimum with it equals enumeration, and verify misses nothing that is lacking."""

import random
from dataclasses import replace

import pytest

from solver.fleet import Deployment, DeploymentTable, FleetProblem, MustUse, Plan, SolveOptions, solve_fleet, verify
from tests.seeds import cases
from tests.solver.fleet.brute_force import _Enumeration
from tests.solver.fleet.instances import tiny_problem

INSTANCES = cases(520, 200)
"""Most problems that must contain something have no plan: fewer would hold too few that do."""


class Requiring(_Enumeration):
    """Enumeration of the plans that run at least one replica of each requirement's deployments."""

    def _value(
        self, replicas: tuple[int, ...], nodes: tuple[int, ...], tried: set[tuple[int, ...]] | None = None
    ) -> float | None:
        keys = self.problem.deployments.key.tolist()
        for required in self.problem.required:
            if not any(replicas[row] for row in self.rows if required.keys is None or keys[row] in required.keys):
                return None
        return super()._value(replicas, nodes, tried)


def with_named_offers_apart(problem: FleetProblem, named: frozenset[str]) -> FleetProblem:
    """The named offers on node types of their own, so that "on these offers" is said by naming deployments."""
    table = problem.deployments
    apart = {o.node_type_id for o in problem.offers if o.id in named}
    rows = []
    for row in range(len(table)):
        node_type = table.node_type_ids[int(table.node_type[row])]
        plain = Deployment(
            int(table.workload[row]), node_type, int(table.devices_per_replica[row]),
            int(table.nodes_per_replica[row]), tuple(table.capacity_requests_per_s[row]),
            float(table.power_w_per_replica[row]), int(table.key[row]),
        )  # fmt: skip
        rows.append(plain)
        if node_type in apart:
            rows.append(replace(plain, node_type_id=f"{node_type}-named", key=plain.key + 1_000))
    offers = tuple(replace(o, node_type_id=f"{o.node_type_id}-named") if o.id in named else o for o in problem.offers)
    return replace(problem, offers=offers, deployments=DeploymentTable.from_rows(rows), required=())


def unused_requirement(rng: random.Random, problem: FleetProblem, plan: Plan) -> MustUse | None:
    """Deployments, offers or both that a plan does without."""
    keys = {int(k) for k in problem.deployments.key} - {key for key, _ in plan.replicas()}
    offers = {o.id for o in problem.offers} - {group.offer_id for group in plan.groups}
    choices = [MustUse("some", frozenset(keys))] if keys else []
    choices += [MustUse("somewhere", None, frozenset(offers))] if offers else []
    choices += [MustUse("both", frozenset(keys), frozenset(offers))] if keys and offers else []
    return rng.choice(choices) if choices else None


def by_enumeration(problem: FleetProblem, required: MustUse) -> float | None:
    if required.offer_ids is None:
        return Requiring(replace(problem, required=(required,))).best()
    apart = with_named_offers_apart(problem, required.offer_ids)
    keys = [int(k) for k in apart.deployments.key if k >= 1_000]
    named = frozenset(k for k in keys if required.keys is None or k - 1_000 in required.keys)
    return Requiring(replace(apart, required=(MustUse("apart", named),))).best() if named else None


def servable(problem: FleetProblem) -> bool:
    """Replicas of workloads without traffic, or that can serve none of it, are no candidates: enumeration has them."""
    rates = [demand.requests_per_s for demand in problem.demands]
    table = problem.deployments
    return all(
        any(rate > 0 and mu > 0 for rate, mu in zip(rates[w], capacity, strict=False))
        for w, capacity in zip(table.workload.tolist(), table.capacity_requests_per_s.tolist(), strict=True)
    )


def random_requirement(rng: random.Random, problem: FleetProblem) -> MustUse:
    key = frozenset({int(rng.choice(problem.deployments.key.tolist()))})
    offer = frozenset({rng.choice(problem.offers).id})
    return rng.choice((MustUse("some", key), MustUse("somewhere", None, offer), MustUse("both", key, offer)))


def test_forced_optimum_equals_enumeration() -> None:
    checked = seed = feasible = 0
    while checked < INSTANCES:
        seed += 1
        problem = tiny_problem(20_000 + seed)
        if len(problem.offers) > 2 or len(problem.deployments) > 2 or not servable(problem):
            continue
        problem = replace(problem, objective="cost", limits=replace(problem.limits, power_w=None))
        required = random_requirement(random.Random(seed), problem)
        expected = by_enumeration(problem, required)
        asked = replace(problem, required=(required,))
        found = solve_fleet(asked)
        assert verify(asked, found) == [], f"seed {seed}"
        if expected is None:
            assert found.outcome == "infeasible", f"seed {seed}: {found.objective}"
        else:
            assert found.objective == pytest.approx(expected, rel=1e-6), f"seed {seed}"
            feasible += 1
        checked += 1
    assert feasible > INSTANCES // 5


def test_verify_misses_nothing_that_is_lacking() -> None:
    noticed = 0
    for seed in range(80):
        problem = tiny_problem(seed)
        free = solve_fleet(problem)
        if free.plan is None:
            continue
        used = {key for key, _ in free.plan.replicas()}
        idle = [int(k) for k in problem.deployments.key if int(k) not in used]
        if idle:
            asked = replace(problem, required=(MustUse("idle", frozenset(idle)),))
            assert "no replica of idle" in verify(asked, free)
            noticed += 1
    assert noticed > 10


def test_a_requirement_nothing_meets_is_said() -> None:
    problem = next(p for p in map(tiny_problem, range(99)) if solve_fleet(p).plan)
    found = solve_fleet(replace(problem, required=(MustUse("a device nobody offers", None, frozenset({"x"})),)))
    assert found.outcome == "infeasible"
    assert "a device nobody offers: no candidate on any offer" in found.reasons


def test_without_exact_steps_the_answer_is_the_same() -> None:
    compared = 0
    for seed in range(30):
        problem = tiny_problem(seed)
        free = solve_fleet(problem)
        required = None if free.plan is None else unused_requirement(random.Random(seed), problem, free.plan)
        if required is None:
            continue
        asked = replace(problem, required=(required,))
        pruned, full = solve_fleet(asked), solve_fleet(asked, SolveOptions(exact_steps=False))
        assert pruned.outcome == full.outcome, f"seed {seed}"
        if pruned.objective is not None:
            assert pruned.objective == pytest.approx(full.objective, rel=1e-6), f"seed {seed}"
            compared += 1
    assert compared > 3
