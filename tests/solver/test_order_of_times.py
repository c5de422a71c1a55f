"""What comes later in a request is never stated to come earlier: first token, first that is shown, last."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solver.errors import SaturatedError
from solver.lengths import Lengths, fixed_lengths, lognormal_lengths
from solver.prediction.estimate import Correction, Estimate, estimate
from solver.prediction.intervals import PredictedInterval
from solver.replay.one_stream import capacity_requests_per_s
from solver.workload import Load, Thinking, Traffic
from tests.llm_shapes import shape
from tests.solver.samples import configuration

BORROWED = configuration(shape("llama-3.1-8b"), "l40s")
MEASURED = configuration(shape("llama-3.1-8b"))
REPLIES = {
    "one token": fixed_lengths(1),
    "four tokens": fixed_lengths(4),
    "one or two": Lengths((1, 2), (0.9, 0.1)),
    "chat": lognormal_lengths(200, 600),
}
FACTORS = st.floats(0.6, 1.7)
SPREADS = st.tuples(st.floats(0.4, 1.0), st.floats(1.0, 3.0))


def check(found: Estimate) -> None:
    times = [found.time_to_first_token_s, found.end_to_end_s]
    if found.time_to_first_answer_s is not None:
        times.insert(1, found.time_to_first_answer_s)
    for earlier, later in pairwise(times):
        for percentile, one in earlier.items():
            other = later[percentile]
            for end in ("low", "expected", "high"):
                assert getattr(one, end) <= getattr(other, end) * (1.0 + 1e-12), (percentile, end)
    for each in times:
        for interval in each.values():
            assert interval.low <= interval.expected <= interval.high


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(sorted(REPLIES)), st.integers(1, 3_000), st.floats(0.1, 0.97), st.booleans(),
    FACTORS, FACTORS, FACTORS, SPREADS, SPREADS,
)  # fmt: skip
def test_of_measured_configurations_at_any_load(
    replies: str, prompt: int, share: float, closed: bool, first: float, tail: float, whole: float,
    first_spread: tuple[float, float], whole_spread: tuple[float, float],
) -> None:  # fmt: skip
    traffic = Traffic(fixed_lengths(prompt), REPLIES[replies])
    correction = Correction(
        "measured",
        factors={"time_to_first_token": first, "time_to_first_token.p99": tail, "end_to_end": whole},
        spreads={
            "time_to_first_token": first_spread, "end_to_end": whole_spread, "time_per_output_token": (0.9, 1.1),
        },
    )  # fmt: skip
    limit = capacity_requests_per_s(MEASURED, MEASURED.tables(), traffic)
    load = Load("closed", concurrency=12) if closed else Load("open", requests_per_s=share * limit)
    check(estimate(MEASURED, traffic, load, correction))


@pytest.mark.parametrize("replies", REPLIES)
@pytest.mark.parametrize("share", [0.3, 0.7, 0.9, 0.97])
def test_where_the_slow_end_saturates(replies: str, share: float) -> None:
    traffic = Traffic(fixed_lengths(800), REPLIES[replies])
    limit = capacity_requests_per_s(BORROWED, BORROWED.tables(), traffic)
    check(estimate(BORROWED, traffic, Load("open", requests_per_s=share * limit)))


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_of_answers_after_hidden_tokens(share: float) -> None:
    hidden, answer = fixed_lengths(300), fixed_lengths(1)
    traffic = Traffic(fixed_lengths(500), fixed_lengths(301), thinking=Thinking(hidden, answer))
    limit = capacity_requests_per_s(BORROWED, BORROWED.tables(), traffic)
    factors = {"time_to_first_answer": 1.4, "end_to_end": 0.8, "time_to_first_token": 1.1}
    spreads = {"time_per_output_token": (0.9, 1.1), "time_to_first_token": (0.5, 2.0), "end_to_end": (0.9, 1.1)}
    for correction in (None, Correction("measured", factors=factors, spreads=spreads)):
        try:
            check(estimate(BORROWED, traffic, Load("open", requests_per_s=share * limit), correction))
        except SaturatedError:
            pytest.fail("the load is below capacity")


def test_whole_requests_of_one_token_are_their_first_tokens() -> None:
    """Factors of whole requests were measured on longer replies."""
    traffic = Traffic(fixed_lengths(800), fixed_lengths(1))
    spreads = {"time_to_first_token": (0.9, 1.2), "end_to_end": (0.95, 1.05), "time_per_output_token": (0.9, 1.1)}
    correction = Correction("measured", factors={"time_to_first_token": 0.9, "end_to_end": 1.3}, spreads=spreads)
    found = estimate(MEASURED, traffic, Load("open", requests_per_s=5.0), correction)
    assert found.end_to_end_s == found.time_to_first_token_s
    assert isinstance(found.end_to_end_s["p95"], PredictedInterval)
