"""Speculative decoding: the published law, and what it does to an engine."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solver.deployment.configuration import Configuration, Speculation
from solver.engine.simulate import SimulationTrace, simulate
from solver.engine.speculative import (
    expected_tokens_per_step,
    speculative_schedule,
)
from solver.errors import InvalidInputError
from solver.workload import EngineSettings, SpeculativeDecoding
from tests.llm_shapes import shape
from tests.solver.samples import configuration

LLAMA_70B = configuration(shape("llama-3.1-70b"), engine=EngineSettings(max_sequences=64), kv_cache_tokens=1e6)
LLAMA_8B = configuration(shape("llama-3.1-8b"), engine=EngineSettings(max_sequences=64))


def drafting(speculative: SpeculativeDecoding, draft: Configuration | None = None) -> Configuration:
    return replace(LLAMA_70B, speculation=Speculation(speculative, draft))


def served(speculative: SpeculativeDecoding, *, clients: int = 1, draft: bool = False) -> SimulationTrace:
    tables = drafting(speculative, LLAMA_8B if draft else None).tables()
    schedule = speculative_schedule(LLAMA_70B.schedule(), speculative)
    return simulate(tables, schedule, [200] * 4 * clients, [241] * 4 * clients, concurrency=clients)


def plain(clients: int = 1) -> SimulationTrace:
    return simulate(
        LLAMA_70B.tables(), LLAMA_70B.schedule(), [200] * 4 * clients, [241] * 4 * clients, concurrency=clients
    )


def token_s(trace: SimulationTrace) -> float:
    return sum(trace.time_per_output_token_s) / len(trace.time_per_output_token_s)


class TestTokensPerStep:
    @pytest.mark.parametrize(
        ("drafted", "accepted", "tokens"),
        [
            (1, 0.5, 1.5),  # 1 + 0.5
            (2, 0.5, 1.75),  # 1 + 0.5 + 0.25
            (5, 0.6, 2.3833),  # (1 − 0.6⁶)/0.4
            (5, 0.8, 3.6893),  # Leviathan et al. 2023, figure 2: about 3.7 at γ = 5, α = 0.8
            (3, 0.0, 1.0),
            (3, 1.0, 4.0),
        ],
    )
    def test_by_hand_and_published(self, drafted: int, accepted: float, tokens: float) -> None:
        assert expected_tokens_per_step(drafted, accepted) == pytest.approx(tokens, abs=1e-4)

    @given(st.integers(1, 16), st.floats(0, 1))
    def test_between_one_and_all(self, drafted: int, accepted: float) -> None:
        found = expected_tokens_per_step(drafted, accepted)
        assert 1.0 <= found <= drafted + 1
        assert expected_tokens_per_step(drafted + 1, accepted) >= found
        by_sum = sum(accepted**i for i in range(drafted + 1))
        assert found == pytest.approx(by_sum, rel=1e-6)


class TestOneSequence:
    def test_free_drafts_that_are_always_right_divide_the_time_by_what_a_step_yields(self) -> None:
        """One sequence reads the weights once either way: five tokens at once take hardly longer than one."""
        found = token_s(served(SpeculativeDecoding(4, 1.0, draft_step_fraction=0.0)))
        assert found == pytest.approx(token_s(plain()) / 5, rel=0.03)

    def test_drafts_that_are_always_wrong_cost_their_time(self) -> None:
        wrong = token_s(served(SpeculativeDecoding(4, 0.0, draft_step_fraction=0.1)))
        assert wrong == pytest.approx(token_s(plain()) * 1.4, rel=0.03)

    def test_speed_up_follows_the_published_law(self) -> None:
        """E/(k·c + 1), theorem 3.8 of Leviathan et al. 2023: k = 4, a = 0.8, c = 0.1 make 2.40."""
        found = served(SpeculativeDecoding(4, 0.8, draft_step_fraction=0.1))
        assert token_s(plain()) / token_s(found) == pytest.approx(3.3616 / 1.4, rel=0.03)

    def test_a_draft_model_costs_its_own_steps(self) -> None:
        by_model = served(SpeculativeDecoding(4, 0.8), draft=True)
        step = {
            name: c.tables().decode_s[1] + c.tables().head_s[1] for name, c in (("70b", LLAMA_70B), ("8b", LLAMA_8B))
        }
        by_share = served(SpeculativeDecoding(4, 0.8, draft_step_fraction=step["8b"] / step["70b"]))
        assert token_s(by_model) == pytest.approx(token_s(by_share), rel=0.02)
        assert token_s(by_model) < token_s(plain())


class TestManySequences:
    def test_verification_is_not_free_once_arithmetic_binds(self) -> None:
        """With 64 sequences five tokens each pass the ridge (295 tokens on H100): the gain shrinks."""
        speculative = SpeculativeDecoding(4, 0.6, draft_step_fraction=0.0)
        alone = token_s(plain()) / token_s(served(speculative))
        crowded = token_s(plain(64)) / token_s(served(speculative, clients=64))
        assert crowded < 0.9 * alone

    @pytest.mark.parametrize("clients", [1, 7, 32])
    def test_more_accepted_is_never_slower(self, clients: int) -> None:
        found = [
            token_s(served(SpeculativeDecoding(3, a, draft_step_fraction=0.05), clients=clients))
            for a in (0.0, 0.3, 0.6, 0.9)
        ]
        assert found == sorted(found, reverse=True)

    def test_all_tokens_are_counted_once(self) -> None:
        trace = served(SpeculativeDecoding(3, 0.7, draft_step_fraction=0.05), clients=9)
        assert trace.output_tokens == 36 * 241
        rows = zip(trace.time_to_first_token_s, trace.time_per_output_token_s, trace.end_to_end_s, strict=True)
        assert all(a + b * 240 == pytest.approx(c) for a, b, c in rows)

    def test_sequences_hold_room_for_drafted_tokens(self) -> None:
        schedule = LLAMA_70B.schedule()
        wider = speculative_schedule(schedule, SpeculativeDecoding(4, 0.5, draft_step_fraction=0.0))
        assert wider.block_slack_tokens == schedule.block_slack_tokens + 4
        assert wider.query_tokens == 5

    def test_without_drafting_it_is_the_plain_engine(self) -> None:
        """Width one and one token a step are what every engine without speculation has."""
        schedule = LLAMA_70B.schedule()
        assert (schedule.query_tokens, schedule.tokens_per_step) == (1, 1.0)
        tables = replace(LLAMA_70B.tables(), draft_s=[0.0] * 65)
        assert token_s(simulate(tables, schedule, [200] * 4, [241] * 4, concurrency=1)) == token_s(plain())


class TestRefused:
    @pytest.mark.parametrize(
        ("drafted", "accepted", "cost"),
        [(0, 0.5, 0.1), (-1, 0.5, 0.1), (4, 1.1, 0.1), (4, -0.1, 0.1), (4, float("nan"), 0.1), (4, 0.5, -1.0)],
    )
    def test_outside_the_domain(self, drafted: int, accepted: float, cost: float) -> None:
        with pytest.raises(InvalidInputError):
            SpeculativeDecoding(drafted, accepted, cost)

    def test_drafting_has_to_cost_something_stated(self) -> None:
        with pytest.raises(InvalidInputError, match="draft"):
            drafting(SpeculativeDecoding(4, 0.5)).tables()

    def test_the_draft_needs_as_many_seats(self) -> None:
        few = replace(LLAMA_8B, engine=EngineSettings(max_sequences=8))
        with pytest.raises(InvalidInputError, match="seats"):
            drafting(SpeculativeDecoding(4, 0.5), few).tables()
