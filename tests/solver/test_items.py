"""Items of models that embed: the front end takes them in one after another, token by token; held against measured runs."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solver.deployment.configuration import front_end
from solver.lengths import fixed_lengths
from solver.llm_shape import LlmShape
from solver.replay.one_stream import replay
from solver.workload import Load, Traffic
from tests.bench.adapters_images import MEASURED, OTHER_HOST, compared
from tests.bench.items import KINDS
from tests.llm_shapes import shape
from tests.solver.samples import configuration, constants


def sent(share: float) -> LlmShape:
    return replace(shape("qwen3-embedding-0.6b"), token_ids_fraction=share)


class TestFrontEnd:
    @given(st.floats(0.0, 1.0))
    def test_a_mixture_takes_what_its_parts_do(self, share: float) -> None:
        known = constants("h100-sxm")
        none, some, every = (front_end(known, sent(one)).prompt_token_s for one in (0.0, share, 1.0))
        assert some == pytest.approx(none + share * (every - none))
        assert (none, every) == (known.si("item_token_us"), known.si("item_token_id_us"))

    def test_replies_are_taken_in_as_before(self) -> None:
        known = constants("h100-sxm")
        front = front_end(known, shape("qwen3-8b"))
        assert front.request_overhead_s == known.si("request_overhead_ms")
        assert front.prompt_token_s == known.si("prompt_token_us")

    @given(st.integers(64, 4_000), st.sampled_from([0.0, 0.25, 1.0]))
    @settings(max_examples=15, deadline=None)
    def test_no_more_items_are_answered_than_are_taken_in(self, tokens: int, share: float) -> None:
        """One after another: 1/(a + b·T) a second at most, and nearly that where the front end is what is waited for."""
        deployed = configuration(sent(share), "h100-sxm")
        found = replay(
            deployed,
            deployed.tables(),
            Traffic(fixed_lengths(tokens), fixed_lengths(1)),
            Load("closed", concurrency=128, requests=512),
        )
        front = front_end(deployed.constants, deployed.shape)
        most = 1.0 / (front.request_ingest_s + front.prompt_token_s * tokens)
        assert found.requests_per_s <= most
        if share == 1.0:
            assert found.requests_per_s > 0.9 * most

    def test_layers_of_items_are_launched_at_their_own_pace(self) -> None:
        """Beyond captured graphs a step waits for its launches: of 700 tokens through 28 small layers."""
        deployed = configuration(sent(0.0), "h100-sxm")
        layers, own = 28, deployed.constants.si("item_eager_layer_us")
        assert deployed.tables().mixed_s[700] - deployed.rates().step_overhead_s == pytest.approx(layers * own)
        assert deployed.tables().mixed_s[500] < 0.5 * layers * own, "captured"


class TestMeasured:
    """29 loads of items and 9 of images on an H100 under vLLM 0.24, to which the constants were fitted."""

    @pytest.mark.parametrize("kind", ["items, texts", "items, token ids", "images"])
    def test_half_of_the_loads_of_both_hosts_are_within_twenty_per_cent(self, kind: str) -> None:
        rows = [row for file in (MEASURED, OTHER_HOST) for row in compared(file) if KINDS[kind](row["measured"])]
        for name in ("ttft_ms", "requests_per_s"):
            off = sorted(abs(row[name] / row["measured"][name] - 1.0) for row in rows)
            assert off[len(off) // 2] <= 0.20, name
