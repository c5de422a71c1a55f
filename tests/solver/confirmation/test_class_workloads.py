"""Workloads of traffic classes have no brackets: whatever is asked of them gets an answer all the same."""

import math
from dataclasses import replace
from typing import Any

import pytest

from solver.errors import NoPlanInTimeError
from solver.lengths import uniform_lengths
from solver.planning.types import PlanLimits, Recommendation
from solver.recommend.recommend import recommend, solve_request
from solver.why.resolve import Clock, QuestionOutcome
from solver.why.why_not import Thing, why_not
from solver.workload import Targets, Traffic, TrafficClass, Workload
from tests.solver.planning_cases import A100, H100, L40S, MEMO, offer, planning, workload

SHORT = Traffic(uniform_lengths(50, 300), uniform_lengths(50, 200))
LONG = Traffic(uniform_lengths(4_000, 12_000), uniform_lengths(50, 200))
CLASSES = (
    TrafficClass("short", 20.0, SHORT, Targets({"p95": 0.4}, {"p95": 0.03})),
    TrafficClass("long", 2.0, LONG, Targets({"p95": 3.0}, {"p95": 0.1})),
)
CONTEXT = 16_384
OFFERS = (offer(H100, 24.0), offer(L40S, 7.2), offer(A100, 7.0))
NODES = (H100, L40S, A100)


def mixed(*classes: TrafficClass, **changes: Any) -> Workload:
    return replace(workload("mixed", context_tokens=CONTEXT), classes=classes or CLASSES, **changes)


def answered(*workloads: Workload, **changes: Any) -> Recommendation:
    asked = replace(planning(*workloads, offers=OFFERS, nodes=NODES, explain=True, alternatives=1), **changes)
    return recommend(asked, MEMO)


def served(found: Recommendation, name: str) -> float:
    return math.fsum(c.requests_per_s for e in found.entries for c in e.classes if c.name == name)


QUESTIONS: dict[str, tuple[tuple[Workload, ...], dict[str, Any]]] = {
    "cost": ((mixed(),), {}),
    "power": ((mixed(),), {"objective": "power"}),
    "capped": ((mixed(),), {"limits": PlanLimits(max_power_w=50_000.0, max_usd_per_hour=500.0)}),
    "spare": ((mixed(),), {"limits": PlanLimits(spare_nodes=1)}),
    "headroom": ((mixed(utilisation_limit_fraction=0.7),), {}),
    "far away": ((mixed(network_s_by_region={"here": 0.02}),), {}),
    "one class": ((mixed(CLASSES[0]),), {}),
    "no targets": ((mixed(*(replace(one, targets=Targets()) for one in CLASSES)),), {}),
    "confident": (
        (mixed(*(replace(c, targets=replace(c.targets, confidence_fraction=0.8)) for c in CLASSES)),),
        {"alternatives": 0},
    ),
    "beside another": ((mixed(), workload("plain", rate=5.0)), {}),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_is_answered(name: str) -> None:
    workloads, changes = QUESTIONS[name]
    found = answered(*workloads, **changes)
    assert found.solve.outcome in ("optimal", "feasible")
    for one in workloads[0].classes:
        assert served(found, one.name) == pytest.approx(one.requests_per_s, rel=1e-5)
    assert all(other.worse_by is None or other.worse_by >= -1e-6 for other in found.alternatives)
    assert all(one.gains > 0.0 for one in found.binding)


def test_most_traffic_for_a_budget() -> None:
    found = answered(mixed(), objective="throughput", limits=PlanLimits(max_usd_per_hour=30.0))
    assert found.throughput_multiple is not None
    for one in CLASSES:
        assert served(found, one.name) == pytest.approx(one.requests_per_s * found.throughput_multiple, rel=1e-5)


def test_too_little_for_all_of_it_says_how_much_there_is_enough_for() -> None:
    few = (offer(L40S, 7.2, 1),)
    crowd = mixed(*(replace(one, requests_per_s=one.requests_per_s * 5) for one in CLASSES))
    refused = answered(crowd, offers=few)
    assert refused.solve.outcome == "infeasible"
    assert refused.conflicts
    assert refused.relaxations
    cut = answered(crowd, offers=few, on_shortage="shed")
    assert all(0.0 <= share < 1.0 for share in cut.shares)


def test_what_keeps_an_offer_out() -> None:
    solved_request = solve_request(planning(mixed(), offers=OFFERS, nodes=NODES), MEMO)
    assert solved_request.result.plan is not None
    unused = next(o for o in OFFERS if o.id not in solved_request.result.plan.nodes_by_offer())
    thing = Thing("offer", unused.id, (unused,), frozenset({unused.node.device.id}))
    found = why_not(solved_request, thing, None, MEMO, Clock(30.0))
    assert found.forced_in.outcome is not QuestionOutcome.NOT_IN_TIME
    assert found.forced_in.extra is None or found.forced_in.extra >= -1e-6


@pytest.mark.parametrize("tick_s", [0.02, 0.5, 20.0])
def test_time_that_runs_out_leaves_a_plan_or_says_so(tick_s: float) -> None:
    """A clock that goes on a little whenever it is looked at: time ends in the middle of things."""
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += tick_s
        return now

    try:
        found = answered(mixed(), workload("plain", rate=5.0), clock=clock, time_limit_s=10.0)
    except NoPlanInTimeError:
        return
    assert found.entries
    for one in CLASSES:
        assert served(found, one.name) == pytest.approx(one.requests_per_s, rel=1e-5)
