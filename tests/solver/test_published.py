"""What rests on published speeds: estimates by hand, tokens beside machines against every split of the traffic, tried one by one."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solver.errors import UnsupportedError
from solver.fleet import verify
from solver.lengths import fixed_lengths
from solver.planning.placements import entries_of_units, machines_of
from solver.planning.published_offers import SHARES, PublishedOffer, TokenPrice, missed_target, tokens_offer
from solver.prediction.published import (
    FirstToken,
    PublishedSpeed,
    check_single_stream,
    first_token,
    published_estimate,
)
from solver.recommend.recommend import solve_request
from solver.traffic_classes import with_confidence
from solver.workload import Load, Targets, Traffic
from tests.solver.planning_cases import MEMO, OFFERS, planning, workload

SPEED = PublishedSpeed("device", "llama-3.1-8b", "engine", "fp8", True, (100.0, 400.0), (FirstToken(500, 0.2),), 1.5)


def test_a_token_lies_between_the_published_speeds_widened() -> None:
    found = published_estimate(SPEED, Traffic(fixed_lengths(500), fixed_lengths(101)))
    token = found.time_per_output_token_s
    assert (token.expected, token.low, token.high) == pytest.approx((1 / 200, 1 / 600, 1.5 / 100))
    assert found.end_to_end_s.expected == pytest.approx(0.2 + 100 / 200)
    assert found.output_tokens_per_s.expected == pytest.approx(101 / found.end_to_end_s.expected)
    assert found.requests_per_s.low == pytest.approx(1 / found.end_to_end_s.high)


@given(st.integers(1, 20_000), st.integers(1, 20_000))
def test_longer_prompts_take_no_less(one: int, other: int) -> None:
    short, long = sorted((one, other))
    for speed in (SPEED, replace(SPEED, first_token=())):
        assert first_token(speed, short).high <= first_token(speed, long).high
        assert first_token(speed, long).low <= first_token(speed, long).expected <= first_token(speed, long).high


def test_nothing_but_one_stream_is_answered() -> None:
    check_single_stream(Load("closed", concurrency=1))
    for load in (Load("closed", concurrency=2), Load("open", requests_per_s=0.1)):
        with pytest.raises(UnsupportedError) as refused:
            check_single_stream(load)
        assert refused.value.reason == "figure_missing"


def test_targets_are_kept_by_the_slow_end_where_more_than_even_odds_are_asked_for() -> None:
    even = workload(targets=Targets(time_per_output_token_s={"p95": 0.006}, confidence_fraction=0.5))
    sure = with_confidence(even, 0.8)
    assert missed_target(even, SPEED) is None
    assert "tpot p95" in str(missed_target(sure, SPEED))


def test_a_machine_of_one_stream_keeps_no_target_that_waiting_moves() -> None:
    waiting = workload(targets=Targets(time_to_first_token_s={"p95": 1e6}, confidence_fraction=0.5))
    assert "wait for one another" in str(missed_target(waiting, replace(SPEED, shared=False)))
    assert missed_target(waiting, SPEED) is None


def tokens(rate: float, usd_per_million: float, most_requests_per_s: float) -> PublishedOffer | None:
    price = TokenPrice(usd_per_million, usd_per_million)
    return tokens_offer("seller:m:chat", "seller", workload(rate=rate), price, most_requests_per_s, SPEED)


def test_the_limit_of_the_account_is_kept() -> None:
    offer = tokens(10.0, 1.0, 4.9)
    assert offer is not None
    assert offer.most_units == math.floor(4.9 / 10.0 * SHARES) == 9
    assert tokens(10.0, 1.0, 0.4) is None
    whole = tokens(10.0, 1.0, 1e9)
    assert whole is not None
    assert whole.most_units == SHARES


@settings(max_examples=12, deadline=None)
@given(
    rate=st.sampled_from([0.5, 7.0, 40.0, 90.0]),
    usd=st.sampled_from([0.01, 0.05, 0.2, 1.0]),
    admitted=st.sampled_from([0.3, 0.55, 2.0]),
)
def test_no_split_of_the_traffic_is_cheaper(rate: float, usd: float, admitted: float) -> None:
    """The plan with tokens costs what the best of all splits into twentieths costs, each with its own plan of machines."""
    alone = planning(workload(rate=rate))
    offer = tokens(rate, usd, rate * admitted)
    assert offer is not None
    found = solve_request(replace(alone, published=(offer,)), MEMO)
    assert found.result.plan is not None
    assert verify(found.assembly.problem, found.result) == []
    costs = []
    for units in range((offer.most_units or 0) + 1):
        rest = rate * (1.0 - units / SHARES)
        machines = 0.0
        if rest > 1e-12:
            other = solve_request(replace(alone, workloads=(workload(rate=rest),)), MEMO).result
            machines = math.inf if other.usd_per_hour is None else other.usd_per_hour
        costs.append(machines + units * offer.usd_per_hour)
    assert found.result.usd_per_hour == pytest.approx(min(costs), rel=1e-6)
    entries = entries_of_units(found.planning, found.result.plan)
    told = sum(entry.usd_per_hour for entry in entries)
    prices = {one.id: one.usd_per_hour for one in OFFERS}
    told += sum(prices[one] * nodes for one, nodes in machines_of(found.planning, found.result.plan).items())
    assert told == pytest.approx(found.result.usd_per_hour)
