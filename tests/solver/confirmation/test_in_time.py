"""Traffic classes whose time ends: a plan in which classes keep apart is there, and no question costs it."""

import math
from dataclasses import replace
from typing import Any, NoReturn

import pytest

from solver.confirmation import alone, loop
from solver.confirmation.mix_capacities import Mixes
from solver.errors import NoPlanInTimeError
from solver.outcome import Outcome, Status
from solver.planning.placements import placements
from solver.planning.types import PlanningInput
from solver.recommend import recommend
from solver.recommend.recommend import solve_request
from tests.solver.confirmation.test_class_workloads import CLASSES, NODES, OFFERS, mixed
from tests.solver.planning_cases import MEMO, planning


def asked(**changes: Any) -> PlanningInput:
    return replace(planning(mixed(), offers=OFFERS, nodes=NODES), **changes)


@pytest.fixture
def ending(monkeypatch: pytest.MonkeyPatch) -> PlanningInput:
    """A request whose time ends when the first mix of its classes is to be simulated, and of which no mix holds."""
    now = [0.0]
    this = asked(clock=lambda: now[0])
    hold = Mixes.hold

    def late(self: Mixes, assembly: Any, places: Any, in_time: Any) -> bool:
        now[0] = 2.0 * this.time_limit_s
        is_mix = any(sum(rate > 0.0 for rate in place.class_requests_per_s) > 1 for place in places)
        return False if is_mix else hold(self, assembly, places, in_time)

    monkeypatch.setattr(Mixes, "hold", late)
    return this


def test_a_plan_is_there_though_no_mix_was_simulated(ending: PlanningInput) -> None:
    solved = solve_request(ending, MEMO)
    result, stated = solved.result, solved.proven
    assert result.plan is not None
    places = placements(solved.assembly, result.plan)
    assert all(sum(rate > 0.0 for rate in place.class_requests_per_s) == 1 for place in places)
    for number, one in enumerate(CLASSES):
        served = math.fsum(place.class_requests_per_s[number] for place in places)
        assert served == pytest.approx(one.requests_per_s, rel=1e-5)
    assert (stated.outcome, stated.status) == (Outcome.FEASIBLE, Status.TIME_LIMIT)
    assert stated.bound is not None
    assert stated.gap_fraction is not None
    assert stated.usd_per_hour is not None
    assert stated.bound < stated.usd_per_hour


def test_no_class_takes_the_time_of_the_others() -> None:
    """A clock that stands still but for searches, each of which takes all that it is given."""
    now, given = [0.0], []
    this = asked(clock=lambda: now[0])

    def greedy(_assembly: Any, single: PlanningInput, _confirmations: Any) -> NoReturn:
        given.append(single.time_limit_s)
        now[0] += single.time_limit_s
        raise NoPlanInTimeError(single.time_limit_s)

    confirmations = loop.Confirmations()
    assembly = solve_request(this, MEMO).assembly
    now[0] = 0.0
    alone.learn_alone(this, assembly, confirmations, greedy)
    assert len(given) == len(CLASSES)
    assert confirmations.spent_s == pytest.approx(math.fsum(given))
    left_s = this.time_limit_s - confirmations.spent_s
    assert left_s == pytest.approx(min(given))


def test_looking_for_alternatives_never_costs_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan without a device was once found cheaper, and time ended in the search that followed: there was no answer."""
    this = asked(alternatives=1)
    first = solve_request(replace(this, alternatives=0), MEMO)
    assert first.result.usd_per_hour is not None
    cheaper = replace(first.result, usd_per_hour=0.5 * first.result.usd_per_hour)

    def late(*_: Any, **__: Any) -> NoReturn:
        raise NoPlanInTimeError(this.time_limit_s)

    monkeypatch.setattr(recommend, "without_each_device", lambda *_: [("without", first.assembly, cheaper)])
    monkeypatch.setattr(recommend, "solve_confirmed", late)
    found = recommend.bettered(replace(first, planning=this), lambda _: None)
    assert found.result.plan == cheaper.plan
    assert found.result.usd_per_hour == cheaper.usd_per_hour
    assert found.result.status is Status.TIME_LIMIT
