"""What the optimiser says of its answers: packing, status, gaps, failures and explanations."""

import sys
from dataclasses import replace

import pytest

from solver.errors import InvalidInputError
from solver.fleet import (
    Demand,
    Deployment,
    DeploymentTable,
    FleetProblem,
    FleetResult,
    Limits,
    OfferSlot,
    SolveOptions,
    solve_fleet,
    verify,
)
from solver.fleet.alike_nodes import first_fit_decreasing
from solver.fleet.binding import alternatives, binding
from solver.fleet.loosened_limits import limit_steps, stated_limits, without_limits
from solver.fleet.model.packing import arcs, paths
from solver.fleet.relaxations import conflicts, has_plan, relaxations
from solver.limit import Limit, LimitKind
from tests.solver.fleet.instances import middling_problem


def offer(name: str, devices: int, usd: float, most: int | None = None) -> OfferSlot:
    return OfferSlot(name, f"node-{name}", f"device-{name}", devices, "p", "r", "on_demand", usd, most, 100.0)


def problem(requests_per_s: float = 8.0, limits: Limits | None = None) -> FleetProblem:
    """Three-device replicas of 1 request/s on 8-device nodes (two fit), or single devices at 1.3 USD/h."""
    rows = [Deployment(0, "node-a", 3, 1, (1.0,), 300.0, 0), Deployment(0, "node-b", 1, 1, (0.5,), 200.0, 1)]
    offers = (offer("a", 8, 2.0), offer("b", 1, 1.3, 10))
    return FleetProblem(offers, DeploymentTable.from_rows(rows), (Demand((requests_per_s,)),), limits or Limits())


@pytest.mark.parametrize("solver", ["highs", "cbc"])
def test_eight_replicas_of_three_devices_take_four_nodes_of_eight(solver: str) -> None:
    result = solve_fleet(problem(), SolveOptions(solver=solver))
    assert result.plan is not None
    assert result.plan.nodes_by_offer() == {"a": 4}  # 24 devices of demand on three nodes do not fit
    assert result.usd_per_hour == 8.0


def test_arc_flow_holds_exactly_the_ways_to_fill_a_node() -> None:
    network = arcs((2, 3), 8)
    fillings = set()

    def walk(position: int, sizes: tuple[int, ...]) -> None:
        if position == 8:
            fillings.add(tuple(sorted(sizes)))
        for arc in network:
            if arc.start == position:
                walk(arc.end, (*sizes, arc.size) if arc.size else sizes)

    walk(0, ())
    expected = {(2,) * a + (3,) * b for a in range(5) for b in range(3) if 2 * a + 3 * b <= 8}
    assert fillings == expected
    one_node = {arc: 1 for arc in network if (arc.start, arc.size) in ((0, 3), (3, 3), (6, 2))}
    assert paths(one_node, 8) == [((3, 3, 2), 1)]


def test_first_fit_decreasing_loses_where_the_arc_flow_does_not() -> None:
    """Sizes 4, 3, 3 and 2, 2, 2 on nodes of eight: first fit takes three nodes, two suffice."""
    rows = [Deployment(0, "node-a", size, 1, (1.0,), 1.0, size) for size in (2, 3, 4)]
    workloads = [replace(row, workload=w) for w, row in enumerate(rows)]
    demands = (Demand((3.0,)), Demand((2.0,)), Demand((1.0,)))
    case = FleetProblem((offer("a", 8, 1.0),), DeploymentTable.from_rows(workloads), demands)
    assert len(first_fit_decreasing({0: 3, 1: 2, 2: 1}, {0: 2, 1: 3, 2: 4}, 8)) == 3
    result = solve_fleet(case)
    assert verify(case, result) == []
    assert result.usd_per_hour == 2.0


def test_without_highs_cbc_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    result = solve_fleet(middling_problem(3))
    assert result.solver in ("cbc", "bound")
    assert result.outcome == "optimal"


def test_a_time_limit_is_never_a_proof() -> None:
    for seed in range(20):
        case = middling_problem(seed)
        hurried = solve_fleet(case, SolveOptions(time_limit_s=1e-6))
        assert verify(case, hurried) == []
        if hurried.plan is None:
            assert hurried.outcome in ("infeasible", "unknown")
        elif hurried.outcome == "optimal":
            assert hurried.objective == pytest.approx(solve_fleet(case).objective, rel=1e-5)


def test_throughput_without_any_limit_is_refused() -> None:
    with pytest.raises(InvalidInputError):
        replace(problem(), objective="throughput")


def test_budget_conflict_and_its_price() -> None:
    case = problem(limits=Limits(budget_usd_per_hour=7.0, power_w=50_000.0))
    assert solve_fleet(case).outcome == "infeasible"
    named = conflicts(stated_limits(case), lambda lifted: has_plan(without_limits(case, lifted)))
    assert named == (Limit(LimitKind.BUDGET),)
    (cheapest,) = [r for r in relaxations(case) if r.change.limit == Limit(LimitKind.BUDGET)]
    assert cheapest.change.relaxing_to == 8.0


def test_two_limits_conflict_only_together() -> None:
    # 8 USD/h serve within 2,800 W at least; one spare more costs 10 USD/h.
    case = problem(limits=Limits(budget_usd_per_hour=9.0, spare_nodes=1))
    named = conflicts(stated_limits(case), lambda lifted: has_plan(without_limits(case, lifted)))
    assert named == (Limit(LimitKind.BUDGET), Limit(LimitKind.SPARE_NODES))
    prices = {r.change.limit.kind: r.result.usd_per_hour for r in relaxations(case)}
    assert prices == {LimitKind.BUDGET: 10.0, LimitKind.SPARE_NODES: 8.0}


def test_nodes_of_offers_that_state_none_are_a_limit_of_their_own() -> None:
    """Its name is not that of the offers' own numbers, and the least number of each that would do is found."""
    few = (offer("a", 8, 2.0, 1), replace(offer("b", 1, 1.3, 2), is_default_most=True))
    case = replace(problem(), offers=few)  # one node of a serves 2 requests/s, one of b half of one
    named = conflicts(stated_limits(case), lambda lifted: has_plan(without_limits(case, lifted)))
    assert named == (Limit(LimitKind.NODES_UNLESS_STATED),)
    (change,) = [r.change for r in relaxations(case) if r.change.limit == Limit(LimitKind.NODES_UNLESS_STATED)]
    assert (change.relaxing_from, change.relaxing_to) == (2, 12)
    assert has_plan(change.problem)
    assert not has_plan(replace(case, offers=(few[0], replace(few[1], max_nodes=11))))


def test_no_relaxation_places_nodes_by_the_million() -> None:
    """A demand that fifty million nodes would serve: they were placed one by one, in 14 GiB and minutes, to say how many."""
    few = (offer("a", 8, 2.0, 1), replace(offer("b", 1, 1.3, 2), is_default_most=True))
    case = replace(problem(1e8), offers=few)
    asked: list[FleetProblem] = []

    def solve(one: FleetProblem) -> FleetResult:
        asked.append(one)
        assert all(slot.max_nodes is not None for slot in one.offers)
        return solve_fleet(one)

    assert relaxations(case, solve, ("a",)) == []
    assert len(asked) == 2


def test_an_offer_whose_own_number_is_lifted_has_that_of_all_others() -> None:
    few = (offer("a", 8, 2.0, 1), replace(offer("b", 1, 1.3, 2), is_default_most=True))
    case = replace(problem(), offers=few)
    own, every = Limit(LimitKind.NODES), Limit(LimitKind.NODES_UNLESS_STATED)
    assert [o.max_nodes for o in without_limits(case, [own]).offers] == [2, 2]
    assert [o.max_nodes for o in without_limits(case, [every]).offers] == [1, None]
    assert [o.max_nodes for o in without_limits(case, [own, every]).offers] == [None, None]


def test_alternatives_and_binding_limits_are_re_solved() -> None:
    case = replace(problem(4.0), offers=(offer("a", 8, 2.0, 1), offer("b", 1, 1.3, 10)))
    result = solve_fleet(case)  # one node of a (2 requests/s), four of b (2 requests/s)
    assert result.usd_per_hour == pytest.approx(7.2)
    (strongest, *_) = binding(result, limit_steps(case, result, 0.1))
    assert strongest.change.limit == Limit(LimitKind.NODES, "a")
    assert strongest.saves == pytest.approx(3.2)
    without = {a.device_id: a.extra for a in alternatives(case, result)}
    assert without == {"device-a": pytest.approx(8 * 1.3 - 7.2), "device-b": None}
