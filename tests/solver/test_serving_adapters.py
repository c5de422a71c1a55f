"""Adapters: what a batch names, what stays on a device, what they hold, against counting."""

from collections import OrderedDict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solver.adapted_products import adapter_values, check_adapters
from solver.adapters import ALL_MODULES, Adapters, Module, grouped, grouped_ranks, zipf_popularity
from solver.engine.profiles import VLLM_GRAPHS
from solver.errors import InvalidInputError, UnsupportedError
from solver.layout import Layout
from solver.memory.fits import engine_memory, memory_plan
from solver.memory.table import memory_table
from solver.precision import Precision
from solver.step.adapter_terms import adapter_load_s, adapter_reads_s, adapter_terms
from solver.workload import EngineSettings
from tests.llm_shapes import shape
from tests.solver.samples import configuration, constants


def alike(count: int, rank: int = 16, slots: int | None = None) -> Adapters:
    return Adapters(((count, 1.0 / count),), rank, slots or count)


def named(shares: list[float], draws: int, seed: int) -> list[int]:
    found: list[int] = np.random.default_rng(seed).choice(len(shares), size=draws, p=shares).tolist()
    return found


class TestPopularity:
    @given(st.integers(1, 60), st.floats(0.0, 3.0), st.integers(1, 40))
    @settings(max_examples=60, deadline=None)
    def test_different_ones_in_a_batch_are_as_many_as_drawn(self, count: int, exponent: float, requests: int) -> None:
        weights = np.arange(1, count + 1, dtype=float) ** -exponent
        shares = (weights / weights.sum()).tolist()
        adapters = Adapters(zipf_popularity(count, exponent), 8, count)
        drawn = [len(set(named(shares, requests, seed))) for seed in range(300)]
        assert float(adapters.distinct(float(requests))) == pytest.approx(np.mean(drawn), rel=0.08, abs=0.15)

    @given(st.integers(2, 80), st.floats(0.0, 2.0), st.data())
    @settings(max_examples=25, deadline=None)
    def test_found_on_the_device_as_often_as_a_cache_finds_them(
        self, count: int, exponent: float, data: st.DataObject
    ) -> None:
        slots = data.draw(st.integers(1, count))
        weights = np.arange(1, count + 1, dtype=float) ** -exponent
        shares = (weights / weights.sum()).tolist()
        held: OrderedDict[int, None] = OrderedDict()
        hits = 0
        requests = named(shares, 6_000, 7)
        for number, adapter in enumerate(requests):
            hits += number >= 1_000 and adapter in held
            held[adapter] = None
            held.move_to_end(adapter)
            if len(held) > slots:
                held.popitem(last=False)
        assert Adapters(zipf_popularity(count, exponent), 8, slots).resident_fraction == pytest.approx(
            hits / 5_000, abs=0.04
        )

    @given(st.integers(1, 5_000), st.floats(0.0, 3.0))
    @settings(max_examples=40, deadline=None)
    def test_classes_of_like_popularity_lose_none(self, count: int, exponent: float) -> None:
        found = zipf_popularity(count, exponent)
        assert sum(many for many, _ in found) == count
        assert sum(many * share for many, share in found) == pytest.approx(1.0)

    def test_shares_need_not_be_sorted(self) -> None:
        assert grouped([0.2, 0.5, 0.3]) == ((1, 0.5), (1, 0.3), (1, 0.2))

    @pytest.mark.parametrize("slots", [1, 3, 8, 20])
    def test_no_more_run_at_once_than_name_as_many_as_there_are_slots(self, slots: int) -> None:
        adapters = Adapters(zipf_popularity(40, 1.0), 8, slots)
        every = replace(adapters, slots=40)
        assert float(every.distinct(float(adapters.most_sequences))) <= slots
        assert float(every.distinct(float(adapters.most_sequences + 1))) > slots

    @given(st.integers(1, 40), st.integers(1, 60), st.data())
    @settings(max_examples=60, deadline=None)
    def test_of_a_closed_load_those_run_whose_adapters_are_held(
        self, count: int, outstanding: int, data: st.DataObject
    ) -> None:
        """Counted: of drawn requests, those of the most popular adapters that fill the slots."""
        slots, exponent = data.draw(st.integers(1, count)), data.draw(st.sampled_from([0.0, 1.0]))
        adapters = Adapters(zipf_popularity(count, exponent), 8, slots)
        weights = np.arange(1, count + 1, dtype=float) ** -exponent
        shares = (weights / weights.sum()).tolist()
        found = []
        for seed in range(200):
            requests = named(shares, outstanding, seed)
            kept = sorted(set(requests))[:slots]  # adapters are numbered by popularity
            found.append(sum(one in kept for one in requests))
        mean = float(np.mean(found))
        assert 1 <= adapters.running(outstanding) <= outstanding
        assert adapters.running(outstanding) == pytest.approx(mean, rel=0.2, abs=1.6)

    @given(st.integers(1, 200), st.floats(0.0, 2.0))
    @settings(max_examples=20, deadline=None)
    def test_drawn_requests_name_adapters_as_often_as_they_are_popular(self, count: int, exponent: float) -> None:
        adapters = Adapters(zipf_popularity(count, exponent), 8, 1)
        drawn = adapters.drawn(20_000, 5)
        assert drawn.min() >= 0
        assert drawn.max() < count
        shares = np.concatenate([np.full(many, share) for many, share in adapters.popularity])
        assert np.bincount(drawn, minlength=count) / 20_000 == pytest.approx(shares, abs=0.015)

    @pytest.mark.parametrize(
        "bad",
        [
            lambda: alike(4, rank=0),
            lambda: alike(4, slots=5),
            lambda: Adapters(((4, 0.3),), 8, 4),
            lambda: Adapters(((4, 0.25),), 8, 4, ()),
            lambda: zipf_popularity(0, 1.0),
        ],
    )
    def test_what_cannot_be_is_refused(self, bad: object) -> None:
        assert callable(bad)
        with pytest.raises(InvalidInputError):
            bad()


def mixed(shares: list[float], ranks: list[int], slots: int, padded: bool = False) -> Adapters:
    return Adapters(
        grouped(shares), max(ranks), slots, ranks=grouped_ranks(ranks, shares), largest_rank=max(ranks),
        multiplies_padded=padded,
    )  # fmt: skip


@st.composite
def mixtures(draw: st.DrawFn) -> tuple[list[float], list[int], int]:
    """Shares, ranks and slots of a few adapters."""
    count = draw(st.integers(2, 40))
    weights = np.arange(1, count + 1, dtype=float) ** -draw(st.floats(0.0, 2.0))
    order = draw(st.permutations(range(count)))
    ranks = draw(st.lists(st.sampled_from([8, 16, 64, 256]), min_size=count, max_size=count))
    return (weights / weights.sum())[list(order)].tolist(), ranks, draw(st.integers(1, count))


class TestMixedRanks:
    """Of one batch, against drawing it."""

    @given(mixtures(), st.integers(1, 30))
    @settings(max_examples=60, deadline=None)
    def test_what_a_batch_reads(self, mixture: tuple[list[float], list[int], int], requests: int) -> None:
        shares, ranks, _ = mixture
        drawn = [sum(ranks[a] for a in set(named(shares, requests, seed))) for seed in range(400)]
        own = mixed(shares, ranks, len(ranks))
        noise = 4.0 * float(np.std(drawn)) / len(drawn) ** 0.5
        assert float(own.read_ranks(float(requests))) == pytest.approx(np.mean(drawn), rel=0.03, abs=noise + 0.1)
        padded = mixed(shares, ranks, len(ranks), padded=True)
        assert float(padded.read_ranks(float(requests))) == pytest.approx(
            max(ranks) * float(padded.distinct(float(requests)))
        )
        assert float(own.read_ranks(float(requests))) <= float(padded.read_ranks(float(requests))) + 1e-9

    @given(mixtures())
    @settings(max_examples=25, deadline=None)
    def test_what_requests_wait_for(self, mixture: tuple[list[float], list[int], int]) -> None:
        """A cache of slots, the least recently used first to go, each adapter loaded in its own rank."""
        shares, ranks, slots = mixture
        held: OrderedDict[int, None] = OrderedDict()
        loaded = []
        for number, adapter in enumerate(named(shares, 6_000, 7)):
            if number >= 1_000:
                loaded.append(0 if adapter in held else ranks[adapter])
            held[adapter] = None
            held.move_to_end(adapter)
            if len(held) > slots:
                held.popitem(last=False)
        found = mixed(shares, ranks, slots)
        assert found.missing_rank == pytest.approx(np.mean(loaded), rel=0.1, abs=0.05 * max(ranks))
        mean = sum(share * rank for share, rank in zip(shares, ranks, strict=True))
        assert (
            found.mean_rank == found.multiplied_rank == pytest.approx(mean, rel=0.02)
        )  # neighbours are reckoned together
        assert mixed(shares, ranks, slots, padded=True).multiplied_rank == max(ranks)

    @given(st.integers(2, 900), st.floats(0.0, 2.0), st.integers(0, 9))
    @settings(max_examples=30, deadline=None)
    def test_classes_keep_every_rank(self, count: int, exponent: float, seed: int) -> None:
        ranks = np.random.default_rng(seed).choice([8, 16, 64], size=count).tolist()
        weights = np.arange(1, count + 1, dtype=float) ** -exponent
        many = [n for n, _ in grouped(weights.tolist())]
        found = grouped_ranks(ranks)
        assert sum(n * rank for n, rank in zip(many, found, strict=True)) == pytest.approx(sum(ranks))

    def test_one_rank_is_what_it_was(self) -> None:
        rates = configuration(shape("llama-3.1-8b")).rates()
        plain = replace(shape("llama-3.1-8b"), adapters=alike(32, slots=8))
        same = replace(plain, adapters=mixed([1 / 32] * 32, [16] * 32, 8))
        for law in (adapter_load_s, lambda s, r: adapter_reads_s(s, r, 20.0)):
            assert float(np.asarray(law(same, rates))) == pytest.approx(float(np.asarray(law(plain, rates))))

    @pytest.mark.parametrize(
        "bad",
        [
            lambda: mixed([0.5, 0.5], [0, 8], 2),
            lambda: Adapters(((2, 0.5),), 16, 2, ranks=(32.0,)),
            lambda: Adapters(((2, 0.5),), 16, 2, ranks=(8.0, 16.0)),
            lambda: Adapters(((2, 0.5),), 16, 2, largest_rank=32),
        ],
    )
    def test_what_cannot_be_is_refused(self, bad: object) -> None:
        assert callable(bad)
        with pytest.raises(InvalidInputError):
            bad()

    def test_the_largest_itself_is_held_against_the_base(self) -> None:
        """What an engine pads to says nothing of an adapter's own size."""
        served = replace(shape("llama-3.1-8b"), adapters=Adapters(((1, 1.0),), 4096, 1, ranks=(64.0,), largest_rank=64))
        check_adapters(served)
        with pytest.raises(InvalidInputError, match="rank 4096 are no smaller"):
            check_adapters(replace(served, adapters=mixed([0.5, 0.5], [8, 4096], 2)))


class TestSizes:
    def test_as_many_parameters_as_are_counted_in_training(self) -> None:
        assert adapter_values(replace(shape("llama-3.1-8b"), adapters=alike(1)), 16) == 41_943_040
        only: tuple[Module, ...] = ("q_proj", "v_proj")
        assert adapter_values(replace(shape("llama-3.1-8b"), adapters=Adapters(((1, 1.0),), 16, 1, only)), 16) == (
            32 * 16 * (3 * 4096 + 6144)  # the fused product is reserved whole
        )

    @pytest.mark.parametrize("tensor_parallel", [1, 2, 4, 8])
    def test_one_side_of_every_product_is_cut(self, tensor_parallel: int) -> None:
        found = replace(shape("llama-3.1-70b"), adapters=alike(1))
        whole, cut = adapter_values(found, 16), adapter_values(found, 16, tensor_parallel)
        assert whole / tensor_parallel <= cut <= whole

    @pytest.mark.parametrize("stages", [1, 2])
    def test_the_table_of_many_deployments_says_the_same(self, stages: int) -> None:
        found = replace(shape("llama-3.1-8b"), adapters=alike(32))
        plain = shape("llama-3.1-8b")
        memory = engine_memory("h100", constants("h100-sxm").values_si(), VLLM_GRAPHS.sizes)
        settings_, layout = EngineSettings(max_context_tokens=8192), Layout(2, stages)
        for served in (found, plain):
            one = memory_plan(served, 80e9, Precision(), layout, settings_, memory)
            table = memory_table(
                served, [(Precision(), layout)], settings_,
                block_tokens=memory.block_tokens, pooled_cache=memory.pooled_cache,
            )  # fmt: skip
            many = table.plans(np.array([0]), np.array([80e9]), [memory], np.array([0]))
            assert many.weights_bytes[0] == pytest.approx(one.weights_bytes)
            assert many.kv_cache_tokens[0] == one.kv_cache_tokens

    def test_those_that_are_no_smaller_than_their_matrices_are_refused(self) -> None:
        with pytest.raises(InvalidInputError, match="no smaller"):
            check_adapters(replace(shape("llama-3.1-8b"), adapters=alike(1, rank=4096)))
        check_adapters(replace(shape("llama-3.1-8b"), adapters=alike(1, rank=512)))

    def test_routed_experts_are_not_modelled(self) -> None:
        with pytest.raises(UnsupportedError, match="routed experts"):
            adapter_values(replace(shape("mixtral-8x7b"), adapters=alike(1)), 16)
        attention: tuple[Module, ...] = ("q_proj", "k_proj", "v_proj", "o_proj")
        assert adapter_values(replace(shape("mixtral-8x7b"), adapters=Adapters(((1, 1.0),), 16, 1, attention)), 16) > 0


class TestTime:
    @given(st.integers(1, 64), st.sampled_from([8, 16, 32, 64]), st.integers(1, 512))
    @settings(max_examples=40, deadline=None)
    def test_more_adapters_higher_ranks_and_more_tokens_take_longer(self, count: int, rank: int, tokens: int) -> None:
        rates = configuration(shape("llama-3.1-8b")).rates()

        def seconds(adapters: Adapters, tokens: float) -> float:
            served = replace(shape("llama-3.1-8b"), adapters=adapters)
            found = adapter_terms(served, rates, tokens)
            assert found is not None
            return float(np.asarray(found.products_s + adapter_reads_s(served, rates, tokens)))

        one = seconds(alike(count, rank), tokens)
        assert seconds(alike(count + 1, rank), tokens) >= one
        assert seconds(alike(count, 2 * rank), tokens) > one
        assert seconds(alike(count, rank), tokens + 1.0) > one

    def test_nothing_is_loaded_where_all_are_held(self) -> None:
        rates = configuration(shape("llama-3.1-8b")).rates()
        assert adapter_load_s(replace(shape("llama-3.1-8b"), adapters=alike(32)), rates) == 0.0
        some = replace(alike(32, slots=8), prompt_tokens=100.0)
        bytes_each = 2 * 41_943_040
        link = configuration(shape("llama-3.1-8b")).device.pcie_bytes_per_s * constants("h100-sxm").si(
            "network_efficiency"
        )
        assert float(np.asarray(adapter_load_s(replace(shape("llama-3.1-8b"), adapters=some), rates))) == pytest.approx(
            (1 - some.resident_fraction) * bytes_each / link / 100.0
        )

    def test_every_module_may_be_named(self) -> None:
        assert {name for name, _ in alike(1).fused} == {"query_key_value", "output", "gate_up", "down"}
        assert len(ALL_MODULES) == 7
