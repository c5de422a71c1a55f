"""What an answer leaves out for want of time is named in it."""

import itertools
from dataclasses import replace

import pytest

from solver.recommend.recommend import explained, solve_request
from tests.solver.planning_cases import MEMO, planning, workload

TIGHT = workload(rate=60.0, tpot={"p95": 0.016})


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


@pytest.mark.parametrize("step_s", [0.1, 0.3])
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


def test_no_plan_and_no_time_to_say_why() -> None:
    asked = planning(workload(ttft={"p95": 1e-6}), explain=True)
    solved = solve_request(asked, MEMO)
    assert explained(solved, MEMO).unsettled == ()
    solved.confirmations.spent_s = asked.time_limit_s
    assert explained(solved, MEMO).unsettled == ("relaxations",)
