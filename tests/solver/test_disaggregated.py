"""Prefill and decode in pools of their own: by hand, and against one pool that does both."""

from dataclasses import replace

import numpy as np
import pytest

from solver.engine.disaggregated import (
    DisaggregatedTrace,
    KvLink,
    Pool,
    kv_transfer_s,
    prompt_cache_bytes,
    simulate_disaggregated,
)
from solver.engine.simulate import Schedule, simulate
from solver.errors import InvalidInputError
from solver.memory.fits import kv_cache_bytes_per_token
from solver.replay.one_stream import poisson_arrivals_s
from solver.workload import EngineSettings
from tests.llm_shapes import shape
from tests.solver.samples import configuration

FOUND = configuration(shape("llama-3.1-8b"), engine=EngineSettings(max_sequences=64), kv_cache_tokens=4e5)
TABLES, SCHEDULE = FOUND.tables(), FOUND.schedule()
BARE: Schedule = replace(
    SCHEDULE, lag_fraction=0.0, request_overhead_s=0.0, request_ingest_s=0.0, prompt_token_s=0.0,
    token_front_end_s=0.0, clock_headroom_fraction=0.0, clock_sag_fraction=0.0,
)  # fmt: skip
FAST = KvLink(1e15, 0.0)


def run(
    rate: float = 2.0, *, requests: int = 200, prefill: int = 1, decode: int = 1, link: KvLink = FAST,
    prompt: int = 1000, output: int = 100, schedule: Schedule = BARE, decode_cache: float | None = None,
) -> DisaggregatedTrace:  # fmt: skip
    arrivals = poisson_arrivals_s(rate, requests, np.random.default_rng(1))
    size = prompt_cache_bytes(FOUND.shape, "bf16", prompt)
    room = schedule if decode_cache is None else replace(schedule, kv_cache_tokens=decode_cache)
    return simulate_disaggregated(
        Pool(TABLES, schedule, prefill), Pool(TABLES, room, decode), link,
        [size] * requests, [prompt] * requests, [output] * requests, arrivals,
    )  # fmt: skip


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


class TestByHand:
    def test_cache_of_a_prompt(self) -> None:
        """Llama 3 70B: 327,680 bytes a token; over 400 Gbit/s (50 GB/s) 1,000 tokens take 6.55 ms."""
        llama = shape("llama-3-70b")
        size = prompt_cache_bytes(llama, "bf16", 1000)
        assert size == 1000 * kv_cache_bytes_per_token(llama) == 327_680_000
        assert prompt_cache_bytes(llama, "bf16", 1000, tensor_parallel=8) == size
        assert prompt_cache_bytes(llama, "bf16", 1000, tensor_parallel=16) == 2 * size  # heads are copied twice
        assert kv_transfer_s(size, KvLink(50e9, 10e-6)) == pytest.approx(6.5636e-3)

    def test_one_request_passes_through_all_parts(self) -> None:
        link = KvLink(50e9, 1e-3)
        found = run(requests=1, link=link, output=3)
        prompt_s = TABLES.mixed_s[1000] + TABLES.head_s[1] + sum(s for _, s, _ in TABLES.pairs) * 1000**2 / 2
        assert found.time_to_first_token_s[0] == pytest.approx(prompt_s)
        travel = kv_transfer_s(prompt_cache_bytes(FOUND.shape, "bf16", 1000), link)
        assert found.transfer_s[0] == pytest.approx(travel)
        step = TABLES.decode_s[1] + TABLES.head_s[1] + TABLES.sequence_s
        slope = sum(s for _, s, _ in TABLES.context)
        decode_s = 2 * step + slope * (1001 + 1002)
        assert found.end_to_end_s[0] == pytest.approx(prompt_s + travel + decode_s)
        assert found.time_per_output_token_s[0] == pytest.approx((travel + decode_s) / 2)

    def test_transfers_of_one_replica_queue(self) -> None:
        """A link of one transfer a second: three prompts at once arrive one second apart."""
        size = prompt_cache_bytes(FOUND.shape, "bf16", 100)
        found = simulate_disaggregated(
            Pool(TABLES, BARE, 1), Pool(TABLES, BARE, 1), KvLink(size, 0.0), [size] * 3, [100] * 3, [2] * 3, [0.0] * 3
        )
        assert sorted(found.transfer_s) == pytest.approx([1.0, 2.0, 3.0], rel=1e-6)
        two = simulate_disaggregated(
            Pool(TABLES, BARE, 3), Pool(TABLES, BARE, 1), KvLink(size, 0.0), [size] * 3, [100] * 3, [2] * 3, [0.0] * 3
        )
        assert two.transfer_s == pytest.approx([1.0] * 3)

    def test_a_reply_of_one_token_never_leaves_the_prefill_pool(self) -> None:
        found = run(requests=5, output=1)
        assert found.transfer_s.tolist() == [0.0] * 5
        assert found.end_to_end_s.tolist() == found.time_to_first_token_s.tolist()
        assert found.decode_busy_fraction == found.link_busy_fraction == 0.0


class TestLaws:
    def test_decoding_is_no_longer_hit_by_prompts(self) -> None:
        arrivals = poisson_arrivals_s(8.0, 300, np.random.default_rng(1))
        together = simulate(TABLES, BARE, [2000] * 300, [100] * 300, arrivals_s=arrivals)
        apart = run(8.0, requests=300, prompt=2000)
        assert mean(apart.time_per_output_token_s) < mean(together.time_per_output_token_s)

    def test_latencies_add_up_and_tokens_are_counted_once(self) -> None:
        found = run(link=KvLink(5e9, 1e-3), prefill=2, decode=3)
        assert found.output_tokens == 200 * 100
        rows = zip(found.time_to_first_token_s, found.time_per_output_token_s, found.end_to_end_s, strict=True)
        assert all(a + 99 * b == pytest.approx(c) for a, b, c in rows)
        assert all(0 < x <= 1 for x in (found.prefill_busy_fraction, found.decode_busy_fraction))
        assert found.output_tokens_per_s == pytest.approx(20_000 / found.duration_s)

    def test_more_of_anything_is_never_slower(self) -> None:
        base = run(20.0, link=KvLink(5e9, 1e-3))
        for better in (
            run(20.0, link=KvLink(10e9, 1e-3)),
            run(20.0, link=KvLink(5e9, 1e-4)),
            run(20.0, link=KvLink(5e9, 1e-3), prefill=2),
            run(20.0, link=KvLink(5e9, 1e-3), decode=2),
        ):
            assert mean(better.end_to_end_s) <= mean(base.end_to_end_s)

    def test_what_is_short_shows(self) -> None:
        """Thin link, few prefill replicas, few decode replicas: each is busy all the time in its own case."""
        size = prompt_cache_bytes(FOUND.shape, "bf16", 1000)
        assert run(20.0, link=KvLink(10 * size, 0.0)).link_busy_fraction > 0.9
        assert run(200.0, output=2).prefill_busy_fraction > 0.9
        crowded = run(200.0, prompt=10, output=1000)
        assert crowded.decode_busy_fraction > 0.9 > crowded.prefill_busy_fraction

    def test_a_small_decode_cache_evicts_and_recomputes_there(self) -> None:
        small = run(20.0, output=400, decode_cache=20_000.0)
        large = run(20.0, output=400)
        assert small.preemptions > 0 == large.preemptions
        assert mean(small.time_per_output_token_s) > mean(large.time_per_output_token_s)
        assert mean(small.time_to_first_token_s) == pytest.approx(mean(large.time_to_first_token_s))


class TestRefused:
    def test_pools_links_and_lengths(self) -> None:
        pool = Pool(TABLES, BARE, 1)
        for prefill, decode, link, arrivals in (
            (replace(pool, replicas=0), pool, FAST, [0.0]),
            (pool, replace(pool, replicas=0), FAST, [0.0]),
            (pool, pool, KvLink(0.0, 0.0), [0.0]),
            (pool, pool, KvLink(1e9, -1.0), [0.0]),
            (pool, pool, FAST, [0.0, 1.0]),
        ):
            with pytest.raises(InvalidInputError):
                simulate_disaggregated(prefill, decode, link, [1.0], [10], [2], arrivals)
