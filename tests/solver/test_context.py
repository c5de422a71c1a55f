"""Requests longer than the context end there: how many, how long they are then, and in every draw."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import solver.lengths
import solver.workload
from solver.lengths import Lengths, fixed_lengths, lognormal_lengths, uniform_lengths
from solver.replay.draws import drawn
from solver.workload import Traffic, within_context


@st.composite
def lengths(draw: st.DrawFn) -> Lengths:
    tokens = sorted(draw(st.sets(st.integers(1, 5_000), min_size=1, max_size=12)))
    weights = [draw(st.floats(0.01, 1.0)) for _ in tokens]
    return Lengths(tuple(tokens), tuple(weight / math.fsum(weights) for weight in weights))


TRAFFIC = st.builds(Traffic, lengths(), lengths(), st.floats(0.0, 0.9))


class TestWithinContext:
    @given(TRAFFIC, st.integers(2, 11_000))
    def test_share_is_that_of_every_pair_and_nothing_grows(self, traffic: Traffic, context: int) -> None:
        cut, share = within_context(traffic, context)
        longer = [
            p_share * o_share
            for p, p_share in zip(traffic.prompt.tokens, traffic.prompt.shares, strict=True)
            for o, o_share in zip(traffic.output.tokens, traffic.output.shares, strict=True)
            if p + o > context
        ]
        assert share == pytest.approx(min(1.0, math.fsum(longer)))
        assert (share == 0.0) == (traffic.maximum <= context)
        assert cut.prompt.mean <= traffic.prompt.mean * (1.0 + 1e-12)
        assert cut.output.mean <= traffic.output.mean * (1.0 + 1e-12)
        assert cut.maximum == min(traffic.maximum, context)
        assert cut.prompt.maximum <= max(1, context - 1) or share == 0.0
        assert cut.shared_prefix_fraction == traffic.shared_prefix_fraction

    @given(TRAFFIC, st.integers(2, 11_000))
    def test_what_fits_is_left_as_it_is(self, traffic: Traffic, context: int) -> None:
        cut, share = within_context(traffic, context)
        if share == 0.0:
            assert cut is traffic
        assert within_context(cut, context)[0].maximum == cut.maximum
        assert within_context(cut, max(context, traffic.maximum)) == (cut, 0.0)

    @settings(deadline=None, max_examples=40)
    @given(TRAFFIC, st.integers(2, 6_000), st.integers(0, 2**31))
    def test_no_request_of_a_draw_is_longer(self, traffic: Traffic, context: int, seed: int) -> None:
        cut, _ = within_context(traffic, context)
        draws = drawn(cut, 200, (seed, seed + 1))
        assert (draws.prompts + draws.outputs <= context).all()
        assert (draws.prompts >= 1).all()
        assert (draws.outputs >= 1).all()

    def test_of_lognormal_requests_the_share_is_cut_in_the_draws_too(self) -> None:
        whole = Traffic(lognormal_lengths(1_200, 4_000), lognormal_lengths(300, 900))
        cut, share = within_context(whole, 4_096)
        assert 0.02 < share < 0.2
        draws = drawn(cut, 6_000, (1, 2, 3, 4))
        at_the_end = (draws.prompts + draws.outputs == 4_096).mean()
        assert at_the_end == pytest.approx(share, abs=0.01)

    def test_prompts_keep_room_for_one_token(self) -> None:
        cut, share = within_context(Traffic(fixed_lengths(500), uniform_lengths(1, 9)), 100)
        assert share == 1.0
        assert (cut.prompt.maximum, cut.maximum) == (99, 100)
        draws = drawn(cut, 50, (1,))
        assert (draws.outputs == 1).all()


def test_examples_in_the_documentation_hold() -> None:
    import doctest

    assert doctest.testmod(solver.workload).failed == 0
    assert doctest.testmod(solver.lengths).failed == 0
