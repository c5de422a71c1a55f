"""Fronts from samples, against every plan of small random markets."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from solver.why.pareto import Front, Sample, front_of, value_of
from solver.why.resolve import QuestionOutcome, SolvedChange
from tests.seeds import cases

Plans = list[tuple[int, int]]
"""(value, price) of every plan there is."""

plans_of_a_market = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=12)
limits_to_try = st.lists(st.integers(1, 32), min_size=1, max_size=8)
gaps = st.sampled_from([0.0, 0.0, 0.1])


def solve(plans: Plans, limit: float, gap: float = 0.0) -> Sample:
    """The cheapest plan within the limit; of equally cheap ones the first, as a solver would."""
    kept = [plan for plan in plans if plan[0] <= limit]
    if not kept:
        return Sample(limit, None, SolvedChange(QuestionOutcome.INFEASIBLE))
    value, price = min(kept, key=lambda plan: plan[1])
    return Sample(
        limit, float(value), SolvedChange(QuestionOutcome.OPTIMAL, usd_per_hour=float(price), gap_fraction=gap)
    )


def at_least_as_good(one: Sample, other: Sample) -> bool:
    return value_of(one) <= value_of(other) and one.usd_per_hour <= other.usd_per_hour


def front(plans: Plans, limits: list[int], gap: float = 0.0) -> Front:
    return front_of([solve(plans, float(limit), gap) for limit in limits])


@given(plans_of_a_market, limits_to_try)
@settings(max_examples=cases(500))
def test_no_point_dominates_another_and_what_was_removed_is_dominated(plans: Plans, limits: list[int]) -> None:
    found = front(plans, limits)
    for one in found.points:
        assert not any(at_least_as_good(other, one) for other in found.points if other is not one)
    assert all(at_least_as_good(by, one) and by in found.points for one, by in found.dominated)
    assert len(found.points) + len(found.dominated) + len(found.unreached) == len(limits)


@given(plans_of_a_market, limits_to_try, limits_to_try)
@settings(max_examples=cases(500))
def test_more_limits_never_lose_a_better_point(plans: Plans, limits: list[int], more: list[int]) -> None:
    larger = front(plans, limits + more)
    for one in front(plans, limits).points:
        assert any(at_least_as_good(other, one) for other in larger.points)


@given(plans_of_a_market, limits_to_try, gaps)
@settings(max_examples=cases(500))
def test_every_plan_that_is_missing_lies_in_a_sampled_stretch(plans: Plans, limits: list[int], gap: float) -> None:
    found = front(plans, limits, gap)
    if not found.points:
        return
    last = max(limit for limit in limits if solve(plans, float(limit)).value is not None)
    first = value_of(found.points[0])
    for value, price in plans:
        best = all(not (v <= value and p <= price and (v, p) != (value, price)) for v, p in plans)
        on_front = any(value_of(p) == value and p.usd_per_hour == price for p in found.points)
        if not best or on_front or value > last:
            continue
        if found.none_below is None and value <= first:
            continue
        assert found.none_below is None or value > found.none_below
        inside = [s for s in found.stretches if s.above < value <= s.up_to]
        assert len(inside) == 1
        assert not inside[0].complete
        assert inside[0].floor_usd_per_hour <= price
        assert price <= (inside[0].ceiling_usd_per_hour or math.inf)


@given(plans_of_a_market)
def test_a_front_of_every_limit_is_complete(plans: Plans) -> None:
    values = sorted({value for value, _ in plans})
    # One limit just below each plan's value and one at it leave no room in between.
    limits = [v + d for v in values for d in (-1e-9, 0.0)]
    found = front_of([solve(plans, limit) for limit in limits], reaches_cheapest=True)
    best = {(v, p) for v, p in plans if not any(w <= v and q <= p and (w, q) != (v, p) for w, q in plans)}
    assert {(value_of(p), p.usd_per_hour) for p in found.points} == best
    assert found.complete


def test_not_in_time_is_no_proof_that_there_is_none() -> None:
    late = Sample(5.0, None, SolvedChange(QuestionOutcome.NOT_IN_TIME))
    found = front_of([late, solve([(10, 3)], 10.0)], reaches_cheapest=True)
    assert found.none_below is None
    assert not found.complete
    assert front_of([Sample(math.inf, None, SolvedChange(QuestionOutcome.INFEASIBLE))]).none_below is None
