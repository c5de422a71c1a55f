"""Every outcome and status of the solver has one spelling in the API, or is an error there."""

from typing import get_args

import pytest

from service.recommendations.statuses import PlanOutcome, SolveStatus, fleet_status, plan_outcome, solve_status
from solver.outcome import Outcome, Status, status_of_plan

OF_PLANS_ALONE = ("kept_current", "mixes_open")
"""Statuses of recommendations that fleets over time have not."""
NOTHING_FOUND = (Outcome.UNKNOWN, Status.NO_PLAN_FOUND)


@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_keeps_its_name(outcome: Outcome) -> None:
    if outcome in NOTHING_FOUND:
        with pytest.raises(ValueError, match="in time"):
            plan_outcome(outcome)
    else:
        assert plan_outcome(outcome) == outcome.value
        assert plan_outcome(outcome) in get_args(PlanOutcome)


@pytest.mark.parametrize("status", Status)
def test_every_status_keeps_its_name(status: Status) -> None:
    if status in NOTHING_FOUND:
        with pytest.raises(ValueError, match="in time"):
            solve_status(status)
    else:
        assert solve_status(status) == status.value
        assert solve_status(status) in (*get_args(SolveStatus), *OF_PLANS_ALONE)


@pytest.mark.parametrize("within_gap", [True, False])
@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_of_a_fleet_over_time_has_a_status(outcome: Outcome, within_gap: bool) -> None:
    expected = {
        Outcome.OPTIMAL: "proven_optimal",
        Outcome.FEASIBLE: "within_gap" if within_gap else "time_limit",
        Outcome.INFEASIBLE: "proven_infeasible",
    }
    if outcome in NOTHING_FOUND:
        with pytest.raises(ValueError, match="in time"):
            fleet_status(outcome, within_gap=within_gap)
    else:
        assert fleet_status(outcome, within_gap=within_gap) == expected[outcome]
        assert expected[outcome] in get_args(SolveStatus)


def test_all_that_the_api_says_can_be_said() -> None:
    assert {plan_outcome(o) for o in Outcome if o not in NOTHING_FOUND} == set(get_args(PlanOutcome))
    assert {solve_status(s) for s in Status if s not in NOTHING_FOUND} == {*get_args(SolveStatus), *OF_PLANS_ALONE}


@pytest.mark.parametrize(
    ("gap", "asked", "status"),
    [
        (0.0, 0.0, Status.PROVEN_OPTIMAL),
        (1e-6, 0.0, Status.PROVEN_OPTIMAL),
        (1e-5, 0.0, Status.TIME_LIMIT),
        (0.01, 0.01, Status.WITHIN_GAP),
        (0.011, 0.01, Status.TIME_LIMIT),
    ],
)
def test_a_gap_makes_a_status(gap: float, asked: float, status: Status) -> None:
    assert status_of_plan(gap, asked, 1e-6) is status
