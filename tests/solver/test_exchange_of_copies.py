"""Layers whose experts several copies of attention share: laws beside draws, kernels and collectives that were measured."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.benchmark_rows import DEFAULT_ROOT
from solver.deployment.configuration import Configuration
from solver.layout import Layout
from solver.step import terms
from solver.step.shared_experts import (
    collective_s,
    fullest_by_rows,
    fullest_by_touched,
    gathered_rows,
    largest_normal,
)
from solver.workload import EngineSettings
from tests.bench.copies_in_step import MS, SERVERS, STEPS, read, served
from tests.llm_shapes import shape
from tests.solver.samples import configuration, sparse_shape

US = 1e6
COPIES = "DeepSeek-V2-Lite, two copies of attention that share experts"
COLLECTIVES = json.loads((DEFAULT_ROOT / "devices" / "h200-sxm_exchanges_x.json").read_text())["collectives"]
KERNELS = json.loads((DEFAULT_ROOT / "devices" / "h200-sxm_vllm-0.24.0_routed-experts.json").read_text())
EVEN = [
    row for row in COLLECTIVES if row["collective"] in ("all_gather of tokens, weights and experts", "reduce_scatter")
]
SPARSE = sparse_shape(layers=24, hidden=2048, experts=64, top_k=6, width=1408)


def shared(copies: int) -> Configuration:
    return configuration(SPARSE, "h200-sxm", layout=Layout(data_parallel=copies, expert_parallel=copies))


@pytest.mark.parametrize("count", [2, 3, 4, 8, 16, 64])
def test_the_largest_of_normal_values_as_drawn(count: int) -> None:
    drawn = np.random.default_rng(1).standard_normal((20_000, count)).max(axis=1).mean()
    assert float(largest_normal(float(count))) == pytest.approx(drawn, abs=0.05)


@pytest.mark.parametrize("devices", [2, 4, 8])
@pytest.mark.parametrize("touched", [8, 24, 48, 64])
def test_experts_of_the_fullest_device_as_drawn(devices: int, touched: int) -> None:
    rng = np.random.default_rng(touched * devices)
    each = 64 // devices
    drawn = [np.bincount(rng.choice(64, touched, replace=False) // each, minlength=devices).max() for _ in range(4000)]
    said = float(fullest_by_touched(64, float(touched), float(devices))) * touched / devices
    assert said == pytest.approx(float(np.mean(drawn)), rel=0.1)


@pytest.mark.parametrize("devices", [2, 4, 8])
@pytest.mark.parametrize("evenness", [0.05, 0.5, 5.0])
def test_rows_of_the_fullest_device_as_drawn(devices: int, evenness: float) -> None:
    rng, rate = np.random.default_rng(3), -np.log1p(-6 / 64) / evenness
    picked = -np.expm1(-rng.gamma(evenness, size=(4000, 64)) * rate)
    loads = picked.reshape(4000, devices, -1).sum(axis=2)
    drawn = float((loads.max(axis=1) / loads.mean(axis=1).mean()).mean())
    # Few experts that most tokens pick are no sum of many: the normal law is a tenth low of eight devices then.
    assert float(fullest_by_rows(64, 6, evenness, float(devices))) == pytest.approx(drawn, rel=0.12)


@given(touched=st.floats(1.0, 256.0), devices=st.sampled_from([2.0, 4.0, 8.0, 16.0]), evenness=st.floats(0.01, 1e4))
def test_no_device_has_less_than_the_mean_or_more_than_all(touched: float, devices: float, evenness: float) -> None:
    for found in (fullest_by_touched(256, touched, devices), fullest_by_rows(256, 8, evenness, devices)):
        assert 1.0 <= float(found) <= devices


def said_us(row: dict[str, object]) -> float:
    devices, tokens = int(str(row["devices"])), float(str(row["tokens"]))
    return float(np.asarray(collective_s(shared(devices).rates(), 4096.0, tokens, tokens * devices))) * US


def test_collectives_as_measured() -> None:
    off = [abs(said_us(row) / row["in_graph_us"] - 1.0) for row in EVEN]
    assert len(off) == 44
    assert np.mean(off) < 0.15
    assert max(off) < 0.4


def test_an_exchange_moves_tokens_and_not_their_picks() -> None:
    """Each device gathers every token once, however many experts it picks."""
    few, many = (
        replace(shared(4), shape=sparse_shape(layers=24, hidden=2048, experts=64, top_k=k, width=1408)) for k in (2, 8)
    )
    found = [np.asarray(terms.token_terms(one.shape, one.rates(), 512.0).streams["all_to_all"]) for one in (few, many)]
    assert found[0] == found[1] > 0.0


def test_experts_see_the_rows_of_all_copies() -> None:
    assert float(np.asarray(gathered_rows(shared(4).rates(), 512.0))) == 2048.0
    assert float(np.asarray(gathered_rows(configuration(SPARSE, "h200-sxm").rates(), 512.0))) == 512.0


def test_a_step_that_prompts_of_two_copies_fill_is_said_a_third_too_short_at_most() -> None:
    """Two copies of DeepSeek-V2-Lite on two H200, both with 4,097 to 8,192 tokens of prompts: at most a third short of the median."""
    both = "4097 to 8192 tokens of prompts"
    steps = read(STEPS)["servers"][COPIES]["steps"]
    took, one_sided = (steps[f"{both}; the other copy: {other}"]["median_ms"] for other in (both, "no prompts"))
    said = served(SERVERS[COPIES]).tables().mixed_s[8192] * MS
    assert 0.67 * took < said < took
    assert said > one_sided


def passes_us(devices: int, rows: float) -> float:
    """What passes over rows of experts take, of one device where so many share them and see as many rows in all."""
    with_experts, without = (
        float(np.asarray(terms.element_wise_bytes(one, shared(devices).rates(), rows / devices)))
        for one in (SPARSE, sparse_shape(layers=24, hidden=2048, experts=64, top_k=0, width=1408))
    )
    return float((with_experts - without) / shared(devices).rates().stream_bytes_per_s * US / 24)


@pytest.mark.parametrize("rows", [512, 4096, 8192])
def test_passes_over_rows_are_of_all_that_are_gathered(rows: int) -> None:
    """Kernels take as long whether a device has all experts or some: seen alone on H200, and said."""
    taken = {
        case["experts"]: case["activation"] + case["adding up"]
        for case in KERNELS["kernels_us"]
        if case["rows"] == rows
    }
    assert taken["spread over two devices"] == pytest.approx(taken["all on one device"], rel=0.2)
    assert passes_us(2, float(rows)) == pytest.approx(passes_us(1, float(rows)), rel=1e-9)


@pytest.mark.parametrize("rows", [4096, 8192, 16384])
def test_half_of_the_experts_take_more_than_half_the_time(rows: int) -> None:
    """Kernels alone, beside what is said that half of the experts pass over for the other half: the larger share of it is that."""
    took = {
        case["experts"]: case["in_graph_us"]
        for case in KERNELS["cases"]
        if case["llm"] == "deepseek-v2-lite" and case["rows"] == rows
    }
    more = took["spread over two devices"] - 0.5 * took["all on one device"]
    assert 0.5 < 0.5 * passes_us(2, float(rows)) / more < 2.0


def test_steps_with_prompts_of_latent_attention_are_launched_between_captured_pieces() -> None:
    """A captured step with prompts takes at least what launching attention over them takes; steps of replies do not."""
    model, told = shape("deepseek-v2-lite"), EngineSettings("vllm", version="0.24.0", max_captured_tokens=4096)
    found = configuration(model, "h200-sxm", engine=told)
    rates, tables = found.rates(), found.tables()
    floor = model.layers_of("mla") * rates.captured_latent_layer_s
    assert floor > 0.010
    assert tables.mixed_s[64] >= floor > tables.decode_s[64]
    assert tables.mixed_s[4000] > 2.0 * floor
    dense = configuration(shape("qwen3-30b-a3b"), "h200-sxm", engine=told)
    assert float(np.asarray(terms.captured_floor_s(dense.shape, dense.rates()))) == 0.0


def test_copies_of_one_model_alone_are_as_they_were() -> None:
    """Nothing is exchanged, and no kernels are added, where each copy has its own experts."""
    found = configuration(SPARSE, "h200-sxm", layout=Layout(data_parallel=4))
    alone = configuration(SPARSE, "h200-sxm")
    assert found.tables().mixed_s.tolist() == alone.tables().mixed_s.tolist()
