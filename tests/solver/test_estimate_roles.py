"""Drafting and pools of their own, predicted whole: laws that hold for any draft, any link, any load."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solver.deployment.bound import roofline_bound
from solver.deployment.configuration import Configuration, Speculation
from solver.deployment.deploy import deploy
from solver.deployment.kv_transfer import ServingPool, kv_link
from solver.deployment.speculative import DraftModel, deploy_speculative
from solver.engine.disaggregated import KvLink
from solver.errors import DoesNotFitError, FigureMissingError, SaturatedError, UnsupportedError
from solver.hardware import Node
from solver.layout import Layout
from solver.lengths import fixed_lengths
from solver.precision import Precision
from solver.prediction.disaggregated import disaggregated_bound, estimate_disaggregated
from solver.prediction.estimate import estimate
from solver.replay.disaggregated import replay_disaggregated
from solver.replay.one_stream import Replay, replay
from solver.workload import EngineSettings, Load, SpeculativeDecoding, Traffic
from tests.llm_shapes import shape
from tests.solver.samples import configuration, constants, device

ENGINE = EngineSettings(max_sequences=32)
SMALL = configuration(shape("llama-3.1-8b"), engine=ENGINE, kv_cache_tokens=4e5)
DECODER = replace(SMALL, device=device("h200-sxm"), constants=constants("h200-sxm"))
TRAFFIC = Traffic(fixed_lengths(600), fixed_lengths(60))
QUICK = settings(max_examples=12, deadline=None)


def drafting(
    acceptance: float, tokens: int = 3, cost: float | None = 0.05, draft: Configuration | None = None
) -> Configuration:
    return replace(SMALL, speculation=Speculation(SpeculativeDecoding(tokens, acceptance, cost), draft))


def served(deployed: Configuration, clients: int) -> Replay:
    return replay(deployed, deployed.tables(), TRAFFIC, Load("closed", concurrency=clients, requests=4 * clients))


def whole_s(found: Replay) -> float:
    return found.end_to_end_s["mean"]


def node(device_id: str, network_bytes_per_s: float) -> Node:
    return Node(f"node-{device_id}", device(device_id), 8, network_bytes_per_s, 0.0, 8)


def pools(network_bytes_per_s: float = 50e9, prefill: int = 1, decode: int = 1) -> tuple[ServingPool, ServingPool]:
    return (
        ServingPool(SMALL, prefill, node("h100-sxm", network_bytes_per_s)),
        ServingPool(DECODER, decode, node("h200-sxm", network_bytes_per_s)),
    )


class TestDrafting:
    @QUICK
    @given(tokens=st.integers(1, 6), clients=st.sampled_from([1, 5, 16]), cost=st.floats(0, 0.3))
    def test_drafts_always_wrong_are_never_faster_than_none(self, tokens: int, clients: int, cost: float) -> None:
        wrong, plain = served(drafting(0.0, tokens, cost), clients), served(SMALL, clients)
        assert wrong.time_per_output_token_s["mean"] >= plain.time_per_output_token_s["mean"]
        assert whole_s(wrong) >= whole_s(plain)
        assert wrong.output_tokens_per_s <= plain.output_tokens_per_s

    @QUICK
    @given(
        tokens=st.integers(1, 6), clients=st.sampled_from([1, 5, 16]),
        accepted=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    )  # fmt: skip
    def test_more_accepted_is_never_slower(self, tokens: int, clients: int, accepted: tuple[float, float]) -> None:
        fewer, more = (served(drafting(a, tokens), clients) for a in sorted(accepted))
        # A reply's last step may yield fewer tokens than it could: whole steps are of that length.
        step = max(fewer.inter_token_s["p99"], more.inter_token_s["p99"]) * (tokens + 1)
        assert whole_s(more) <= whole_s(fewer) + step

    @QUICK
    @given(tokens=st.integers(1, 6), accepted=st.floats(0, 1), clients=st.sampled_from([1, 8, 32]), own=st.booleans())
    def test_never_beats_the_roofline(self, tokens: int, accepted: float, clients: int, own: bool) -> None:
        deployed = drafting(accepted, tokens, None if own else 0.0, SMALL if own else None)
        found = served(deployed, clients)
        bound = roofline_bound(deployed, TRAFFIC, Load("closed", concurrency=clients))
        assert found.time_per_output_token_s["p50"] >= bound.time_per_output_token_s
        assert found.output_tokens_per_s <= bound.output_tokens_per_s

    def test_a_draft_model_reads_prompts_too(self) -> None:
        """Here the draft is the served model itself: a prompt takes twice the time on the device."""
        both, alone = drafting(0.7, draft=SMALL, cost=None).tables(), SMALL.tables()
        assert both.mixed_s[600] == pytest.approx(2 * alone.mixed_s[600])
        assert sum(s for _, s, _ in both.pairs) == pytest.approx(2 * sum(s for _, s, _ in alone.pairs))

    def test_an_estimate_names_drafting_and_widens_its_intervals(self) -> None:
        load = Load("closed", concurrency=4, requests=16)
        plain, found = estimate(SMALL, TRAFFIC, load), estimate(drafting(0.7), TRAFFIC, load)
        assert "drafting" in {term.name for term in found.step}
        width = [
            e.time_per_output_token_s["mean"].high / e.time_per_output_token_s["mean"].expected for e in (plain, found)
        ]
        assert width[1] > width[0]
        assert found.basis == "analytical"


class TestDraftModelMemory:
    def big(self, traffic: Traffic = TRAFFIC) -> object:
        return deploy(
            shape("llama-3.1-70b"), device("h200-sxm"), constants("h200-sxm"), Layout(2), Precision("bf16"),
            EngineSettings(max_context_tokens=8192), traffic,
        )  # fmt: skip

    def draft(self, name: str = "llama-3.1-8b", weights: str = "bf16") -> DraftModel:
        return DraftModel(shape(name), weights, constants("h200-sxm"))

    def test_weights_and_cache_of_both_share_the_pool(self) -> None:
        plain = self.big()
        found, memory = deploy_speculative(plain, SpeculativeDecoding(3, 0.7), self.draft(), fixed_lengths(60), 660.0)
        assert memory is not None
        # 8.03e9 parameters in 16 bits over two devices, and as much of the norms as each keeps whole.
        assert memory.weights_bytes == pytest.approx(8.03e9, rel=0.01)
        pool = plain.memory.kv_cache_bytes
        assert found.memory.kv_cache_bytes + memory.kv_cache_bytes + memory.weights_bytes == pytest.approx(pool)
        # 70B caches 80 layers of 8 heads of 128, 8B 32 layers of the same: 80 and 32 parts.
        assert memory.kv_cache_bytes / found.memory.kv_cache_bytes == pytest.approx(32 / 80, rel=0.01)
        assert found.configuration.kv_cache_tokens < plain.configuration.kv_cache_tokens

    @pytest.mark.parametrize(
        ("draft", "tokens", "replies", "error", "says"),
        [
            ("llama-3.1-8b", 60, 60, UnsupportedError, "draft at most 59"),
            ("qwen3-8b", 3, 60, UnsupportedError, "vocabulary"),
            ("llama-3.1-70b", 3, 60, DoesNotFitError, "bytes per device"),
        ],
    )
    def test_drafts_that_cannot_work(
        self, draft: str, tokens: int, replies: int, error: type[Exception], says: str
    ) -> None:
        with pytest.raises(error, match=says):
            deploy_speculative(
                self.big(), SpeculativeDecoding(tokens, 0.7), self.draft(draft), fixed_lengths(replies), 660.0
            )


class TestPools:
    @QUICK
    @given(rates=st.tuples(st.floats(1e8, 1e11), st.floats(1e8, 1e11)), load=st.floats(0.2, 6.0))
    def test_more_bandwidth_between_pools_is_never_slower(self, rates: tuple[float, float], load: float) -> None:
        found = []
        for rate in sorted(rates):
            prefill, decode = pools(rate)
            link = kv_link("network", prefill, decode)
            try:
                replayed = replay_disaggregated(
                    prefill, decode, link, TRAFFIC, Load("open", requests_per_s=load), requests=300
                )
            except SaturatedError as limit:
                found.append((float("inf"), limit.capacity_requests_per_s))
            else:
                found.append((whole_s(replayed.statistics), float("inf")))
        assert found[1][0] <= found[0][0] * (1 + 1e-9)
        assert found[1][1] >= found[0][1]

    @QUICK
    @given(load=st.floats(0.1, 20.0), copies=st.tuples(st.integers(1, 4), st.integers(1, 4)))
    def test_never_beats_the_roofline(self, load: float, copies: tuple[int, int]) -> None:
        prefill, decode = pools(50e9, *copies)
        link = kv_link("network", prefill, decode)
        asked = Load("open", requests_per_s=load)
        found = replay_disaggregated(prefill, decode, link, TRAFFIC, asked, requests=300).statistics
        bound = disaggregated_bound(prefill, decode, link.bytes_per_s, TRAFFIC, asked)
        assert min(found.time_per_output_token_s.values()) >= bound.time_per_output_token_s
        assert found.output_tokens_per_s <= bound.output_tokens_per_s

    def test_capacity_is_named_and_is_below_the_bound(self) -> None:
        prefill, decode = pools(1e9)  # a thin network: 1 GB/s over eight devices
        asked = Load("open", requests_per_s=1000.0)
        link = kv_link("network", prefill, decode)
        with pytest.raises(SaturatedError) as caught:
            replay_disaggregated(prefill, decode, link, TRAFFIC, asked, requests=300)
        # 600 tokens of 131,072 bytes over 1/8 GB/s at 65 % is 0.968 s, and 30 µs of latency.
        assert caught.value.capacity_requests_per_s == pytest.approx(1 / (600 * 131_072 / (0.65 * 1e9 / 8) + 30e-6))
        bound = disaggregated_bound(prefill, decode, link.bytes_per_s, TRAFFIC, asked)
        assert caught.value.capacity_requests_per_s * 60 <= bound.output_tokens_per_s

    def test_pools_twice_as_large_under_twice_the_load_are_the_same(self) -> None:
        one = replay_disaggregated(*pools(), KvLink(5e9, 1e-4), TRAFFIC, Load("open", requests_per_s=3.0))
        two = replay_disaggregated(*pools(50e9, 2, 2), KvLink(5e9, 1e-4), TRAFFIC, Load("open", requests_per_s=6.0))
        assert one.statistics.end_to_end_s == two.statistics.end_to_end_s
        assert two.statistics.output_tokens_per_s == pytest.approx(2 * one.statistics.output_tokens_per_s)

    def test_an_estimate_holds_both_pools_and_says_that_nobody_measured_it(self) -> None:
        found = estimate_disaggregated(*pools(), "network", TRAFFIC, Load("open", requests_per_s=3.0), requests=300)
        assert found.whole.basis == "analytical"
        assert found.prefill.bottleneck == "compute"
        assert found.decode.bottleneck in ("memory_bandwidth", "overhead")
        assert found.whole.power_w.expected == pytest.approx(
            found.prefill.power_w.expected + found.decode.power_w.expected
        )
        assert found.transfer_s["mean"].low < found.transfer_s["mean"].expected < found.transfer_s["mean"].high

    def test_links_that_are_not_there(self) -> None:
        prefill, decode = pools()
        with pytest.raises(UnsupportedError, match="only a network"):
            kv_link("node_link", prefill, decode)
        with pytest.raises(FigureMissingError, match="network_gbit_per_s"):
            kv_link("network", *pools(0.0))
        alike = replace(prefill, replicas=5)
        with pytest.raises(UnsupportedError, match="10 devices; one scale-up domain joins 8"):
            kv_link("node_link", alike, alike)
        with pytest.raises(UnsupportedError, match="open load"):
            replay_disaggregated(prefill, decode, KvLink(1e9, 0.0), TRAFFIC, Load("closed", concurrency=4))

    def test_receivers_share_what_they_can_take(self) -> None:
        """Eight senders at a slow receiver: each gets an eighth of what it takes in."""
        prefill, decode = pools(50e9)
        many = kv_link("network", replace(prefill, replicas=8), decode)
        assert many.bytes_per_s == pytest.approx(kv_link("network", prefill, decode).bytes_per_s / 8)
