"""What an answer leaves out for want of time is named in it."""

import itertools
from dataclasses import replace
from typing import Any, NoReturn

import pytest

from solver.confirmation import loop
from solver.errors import NoPlanInTimeError, SolverFailedError
from solver.explain import binding, infeasible
from solver.explain.targets import replaced
from solver.fleet import FleetProblem
from solver.limit import LimitKind
from solver.outcome import Status
from solver.planning.types import PlanningInput
from solver.recommend import predicted_lines, recommend
from solver.recommend.recommend import explained, solve_request
from tests.solver.planning_cases import A100, MEMO, offer, planning, workload

TIGHT = workload(rate=60.0, tpot={"p95": 0.014})


def test_nothing_is_where_time_suffices() -> None:
    asked = planning(TIGHT, explain=True, alternatives=2)
    found = explained(solve_request(asked, MEMO), MEMO)
    assert found.unsettled == ()
    assert found.binding


def test_each_question_is_where_the_plan_took_all_of_it() -> None:
    asked = planning(TIGHT, explain=True, alternatives=2)
    solved = solve_request(asked, MEMO)
    solved.confirmations.spent_s = asked.time_limit_s
    found = explained(solved, MEMO)
    assert found.entries
    assert {"alternatives", "binding"} <= set(found.unsettled)
    assert not found.binding


@pytest.mark.parametrize("step_s", [0.05, 0.1])
def test_what_is_not_named_is_whole(step_s: float) -> None:
    """Time ends somewhere among the questions: those that are not named are answered as with all the time."""
    whole = explained(solve_request(planning(TIGHT, explain=True, alternatives=2), MEMO), MEMO)
    ticks = itertools.count()
    asked = replace(planning(TIGHT, explain=True, alternatives=2), clock=lambda: step_s * next(ticks))
    found = explained(solve_request(asked, MEMO), MEMO)
    if "binding" not in found.unsettled:
        assert found.binding == whole.binding
    if "alternatives" not in found.unsettled:
        assert [(one.why, one.extra_usd_per_hour) for one in found.alternatives] == [
            (one.why, one.extra_usd_per_hour) for one in whole.alternatives
        ]


def test_what_stands_between_two_searches_takes_time_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that only goes on while candidates are screened for a question."""
    now, asked_for = [0.0], []
    asked = replace(planning(TIGHT, explain=True), clock=lambda: now[0])
    solved = solve_request(asked, MEMO)

    def slow(*arguments: Any) -> Any:
        now[0] += 0.6 * asked.time_limit_s
        asked_for.append(arguments)
        return replaced(*arguments)

    monkeypatch.setattr(binding, "replaced", slow)
    found = explained(solved, MEMO)
    assert len(asked_for) == 2, "the second takes what is left"
    assert "binding" in found.unsettled


def test_nothing_is_screened_for_a_question_that_there_is_no_time_for(monkeypatch: pytest.MonkeyPatch) -> None:
    lower = {TIGHT.name: (("fp8",), ("fp8",))}
    asked = replace(planning(TIGHT, explain=True), lower_formats=lower)
    solved = solve_request(asked, MEMO)
    solved.confirmations.spent_s = asked.time_limit_s

    def never(*_: Any) -> Any:
        raise AssertionError("spaces take seconds to build")

    monkeypatch.setattr(recommend, "screened", never)
    assert "lower_precision" in explained(solved, MEMO).unsettled


def test_no_more_is_screened_for_a_question_once_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that goes on while a workload is screened: fifty were screened again after the first had taken what was left."""
    now, screened = [0.0], recommend.screened
    two = (TIGHT, replace(TIGHT, name="second"))
    lower = {one.name: (("fp8",), ("fp8",)) for one in two}
    asked = replace(planning(*two, explain=True), lower_formats=lower, clock=lambda: now[0])
    solved = solve_request(asked, MEMO)
    again = []

    def slow(*arguments: Any, **named: Any) -> Any:
        now[0] += asked.time_limit_s
        again.append(arguments)
        return screened(*arguments, **named)

    monkeypatch.setattr(recommend, "screened", slow)
    assert "lower_precision" in explained(solved, MEMO).unsettled
    assert len(again) == 1


def test_no_more_is_screened_for_the_plan_once_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    now, screened = [0.0], recommend.screened
    asked = replace(planning(TIGHT, replace(TIGHT, name="second"), replace(TIGHT, name="third")), clock=lambda: now[0])
    seen = []

    def slow(*arguments: Any) -> Any:
        now[0] += 0.6 * asked.time_limit_s
        seen.append(arguments)
        return screened(*arguments)

    monkeypatch.setattr(recommend, "screened", slow)
    with pytest.raises(NoPlanInTimeError):
        solve_request(asked, MEMO)
    assert len(seen) == 2


def test_lines_that_there_is_no_time_to_predict_are_in_the_plan_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that goes on while a line is predicted: the first says how long the next may take."""
    now, predicted = [0.0], predicted_lines.estimate
    workloads = [replace(TIGHT, name=name) for name in ("first", "second", "third")]
    asked = replace(planning(*workloads), clock=lambda: now[0])
    solved = solve_request(asked, MEMO)

    def slow(*arguments: Any) -> Any:
        now[0] += 0.5 * asked.time_limit_s
        return predicted(*arguments)

    whole = explained(solved, MEMO)
    monkeypatch.setattr(predicted_lines, "estimate", slow)
    found = explained(solved, MEMO)
    assert [entry.estimate is None for entry in found.entries] == [False, False, True]
    assert found.unsettled == ("predictions",)
    assert whole.unsettled == ()
    assert [replace(one, estimate=None, classes=()) for one in found.entries] == [
        replace(one, estimate=None, classes=()) for one in whole.entries
    ]


def test_no_plan_and_no_time_to_say_why() -> None:
    asked = planning(workload(ttft={"p95": 1e-6}), explain=True)
    solved = solve_request(asked, MEMO)
    assert explained(solved, MEMO).unsettled == ()
    solved.confirmations.spent_s = asked.time_limit_s
    assert explained(solved, MEMO).unsettled == ("relaxations",)


BEYOND = planning(workload(rate=500.0), offers=[offer(A100, 7.0, most=2)], explain=True)


def test_a_largest_share_that_takes_all_the_time_costs_no_other_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that stands still until the largest share is looked for, and is at its end then."""
    now = [0.0]
    asked = replace(BEYOND, clock=lambda: now[0])
    whole = explained(solve_request(BEYOND, MEMO), MEMO)
    solved = solve_request(asked, MEMO)
    bounded = infeasible.bounded

    def slow(problem: FleetProblem) -> FleetProblem:
        now[0] += 2.0 * asked.time_limit_s
        return bounded(problem)

    monkeypatch.setattr(infeasible, "bounded", slow)
    found = explained(solved, MEMO)
    assert found.unsettled == ("relaxations",)
    assert found.solve.status is Status.PROVEN_INFEASIBLE
    assert found.largest_servable_multiple is None
    assert found.conflicts == whole.conflicts != ()
    of_limits = [one for one in whole.relaxations if one.limit.kind is not LimitKind.RATE]
    assert list(found.relaxations) == of_limits != []


@pytest.mark.parametrize("asked", [BEYOND, planning(TIGHT, explain=True, alternatives=2)], ids=["none", "plan"])
def test_no_answer_is_lost_because_no_solver_can_handle_a_question(
    monkeypatch: pytest.MonkeyPatch, asked: PlanningInput
) -> None:
    solved = solve_request(asked, MEMO)

    def fails(*_: Any, **__: Any) -> NoReturn:
        raise SolverFailedError("HiGHS ended with numerical trouble")

    monkeypatch.setattr(loop, "solve_fleet", fails)
    found = explained(solved, MEMO)
    assert found.solve.outcome == solved.result.outcome
    assert bool(found.entries) == (solved.result.plan is not None)
    assert found.unsettled
