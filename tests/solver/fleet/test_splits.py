"""Replicas on instances of split devices: equal to enumeration, and plans that would not fit are refused."""

from collections import Counter
from dataclasses import replace

import pytest

from solver.errors import InvalidInputError
from solver.fleet import (
    Demand,
    Deployment,
    DeploymentTable,
    FleetProblem,
    Limits,
    NodeGroup,
    OfferSlot,
    Plan,
    SolveOptions,
    Split,
    solve_fleet,
    verify,
)
from solver.fleet.verify import verify_plan
from solver.outcome import Status
from tests.seeds import cases
from tests.solver.fleet.brute_force import best_objective
from tests.solver.fleet.instances import shared_split_problem, tiny_split_problem
from tests.solver.fleet.test_brute_force import check

INSTANCES = cases(600)
BATCH = cases(100)
SEVENTH, HALF = Split("1g", 7), Split("3g", 2)


@pytest.mark.parametrize("start", range(0, INSTANCES, BATCH))
def test_equals_enumeration(start: int) -> None:
    feasible, split = 0, 0
    for seed in range(start, start + BATCH):
        problem = tiny_split_problem(seed)
        result = check(problem, SolveOptions(), seed, best_objective(problem))
        plan = result.plan
        feasible += plan is not None
        split += plan is not None and any(group.splits for group in plan.groups)
    assert BATCH // 8 < feasible < BATCH, "instances must be both feasible and infeasible"
    assert split > BATCH // 10, "plans must use split devices"


def test_full_programme_equals_enumeration() -> None:
    for seed in range(1000, 1000 + cases(60)):
        problem = tiny_split_problem(seed)
        check(problem, SolveOptions(exact_steps=False), seed, best_objective(problem))


def test_workload_by_workload_equals_the_full_programme(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the shortcuts of large fleets on small ones: bounds of each workload alone, plans one after the other."""
    monkeypatch.setattr("solver.fleet.solve.FEW_PAIRS", 5)
    compared, instances = 0, cases(40, 16)
    for seed in range(instances):
        problem = shared_split_problem(seed)
        result, full = solve_fleet(problem), solve_fleet(problem, SolveOptions(exact_steps=False))
        assert verify(problem, result) == [], f"seed {seed}"
        assert verify(problem, full) == [], f"seed {seed}"
        assert result.outcome == full.outcome, f"seed {seed}"
        if result.objective is not None:
            compared += 1
            assert result.objective == pytest.approx(full.objective, rel=2e-6), f"seed {seed}"
    assert compared > instances // 2


def test_bounds_are_plain_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numpy's own are written as np.float64(…), which is no amount of money."""
    monkeypatch.setattr("solver.fleet.solve.FEW_PAIRS", 5)
    results = [solve_fleet(shared_split_problem(seed), SolveOptions(gap_fraction=0.2)) for seed in range(20)]
    found = [result for result in results if result.plan is not None]
    assert {result.status for result in found} == {Status.PROVEN_OPTIMAL, Status.WITHIN_GAP}
    assert {type(number) for r in found for number in (r.bound, r.objective, r.gap_fraction)} == {float}


def test_verify_refuses_an_instance_too_many_and_two_profiles_on_one_device() -> None:
    mutated = 0
    instances = cases(200)
    for seed in range(2000, 2000 + instances):
        problem = tiny_split_problem(seed)
        result = solve_fleet(problem)
        plan = result.plan
        for position, group in enumerate(plan.groups if plan else ()):
            for wrong in _crowded(problem, group):
                mutated += 1
                assert plan is not None
                changed = replace(plan, groups=(*plan.groups[:position], wrong, *plan.groups[position + 1 :]))
                assert verify_plan(problem, changed, result.throughput_multiple or 0.0), f"seed {seed}"
    assert mutated > 0.5 * instances


def _crowded(problem: FleetProblem, group: NodeGroup) -> list[NodeGroup]:
    """The group with more on its split devices than they hold."""
    table = problem.deployments
    row_of = {key: row for row, key in enumerate(table.key.tolist())}
    assert table.split is not None
    wrong = []
    for split, devices in group.splits:
        held: Counter[int] = Counter({key: n for key, n in group.replicas if table.split[row_of[key]] == split})
        room = devices * table.splits[split].instances - sum(held.values())
        first = min(held)
        more = tuple((key, n + (room + 1 if key == first else 0)) for key, n in group.replicas)
        wrong.append(replace(group, replicas=more))
        wrong.append(replace(group, splits=tuple((s, n) for s, n in group.splits if s != split)))
        others = [s for s in range(len(table.splits)) if s != split]
        wrong += [replace(group, splits=((other, devices),)) for other in others]
        wrong.append(replace(group, splits=(*group.splits, (split, 1))))
    return wrong


def side_by_side(rates: tuple[float, ...], devices: int = 1, limits: Limits | None = None) -> FleetProblem:
    """Small models, each 10 requests/s on a whole device and 1 on a seventh, on nodes at 2 USD a device-hour."""
    rows = []
    for w in range(len(rates)):
        rows.append(Deployment(w, "node", 1, 1, (10.0,), 700.0, 2 * w))
        rows.append(Deployment(w, "node", 1, 1, (1.0,), 100.0, 2 * w + 1, split=SEVENTH))
    offers = (OfferSlot("o", "node", "d", devices, "p", "r", "on_demand", 2.0 * devices, None, 100.0),)
    demands = tuple(Demand((rate,)) for rate in rates)
    return FleetProblem(offers, DeploymentTable.from_rows(rows), demands, limits or Limits())


def test_small_models_share_one_split_device() -> None:
    problem = side_by_side((0.5, 1.5, 2.0))
    result = solve_fleet(problem)
    assert verify(problem, result) == []
    assert result.usd_per_hour == 2.0
    assert result.plan is not None
    (group,) = result.plan.groups
    assert group.splits == ((0, 1),)
    assert sum(count for _, count in group.replicas) == 7


def test_whole_and_split_devices_share_a_node() -> None:
    """10 and 9 requests/s on a device each, 0.5 and 4.5 on six instances of a third one, in one node of three."""
    problem = side_by_side((10.0, 9.0, 0.5, 4.5), devices=3)
    result = solve_fleet(problem)
    assert verify(problem, result) == []
    assert result.usd_per_hour == 6.0
    assert result.plan is not None
    assert [group.splits for group in result.plan.groups] == [((0, 1),)]


def test_two_profiles_never_share_a_device() -> None:
    """One workload runs only on sevenths, the other only on halves: two devices, though one has room for both."""
    rows = [
        Deployment(0, "node", 1, 1, (1.0,), 100.0, 0, split=SEVENTH),
        Deployment(1, "node", 1, 1, (1.0,), 300.0, 1, split=HALF),
    ]
    offers = (OfferSlot("o", "node", "d", 1, "p", "r", "on_demand", 2.0),)
    problem = FleetProblem(offers, DeploymentTable.from_rows(rows), (Demand((1.0,)), Demand((1.0,))))
    result = solve_fleet(problem)
    assert result.usd_per_hour == 4.0
    assert result.plan is not None
    shared = NodeGroup("o", 1, 1, ((0, 1), (1, 1)), ((0, 1), (1, 1)))
    assert verify_plan(problem, Plan((shared,), result.plan.routes), 1.0)
    assert verify_plan(problem, Plan((replace(shared, splits=((0, 1),)),), result.plan.routes), 1.0)


def test_instances_left_over_stay_empty_where_power_matters() -> None:
    result = solve_fleet(side_by_side((0.5,), limits=Limits(power_w=200.0)))
    assert result.plan is not None
    (group,) = result.plan.groups
    assert (group.replicas, group.splits) == (((1, 1),), ((0, 1),))


def test_a_replica_on_several_instances_is_refused() -> None:
    with pytest.raises(InvalidInputError):
        DeploymentTable.from_rows([Deployment(0, "node", 2, 1, (1.0,), 1.0, 0, split=HALF)])
    with pytest.raises(InvalidInputError):
        Split("whole", 1)
