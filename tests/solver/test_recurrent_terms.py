"""Layers of a recurrent state: how prompts are scanned by gated delta rules, and what launching such layers takes."""

from dataclasses import fields, replace

import numpy as np
import pytest

from catalog.read import read_catalog
from solver.deployment.configuration import Configuration
from solver.deployment.documented import check_options
from solver.engine.profiles import FLASHINFER, TRITON, scan_kernel
from solver.errors import UnsupportedError
from solver.lengths import Lengths
from solver.precision import Precision
from solver.step import terms
from solver.step.named_terms import step_terms
from solver.step.recurrent_terms import is_delta_rule, scan_flops, scan_s
from solver.step.tables import GraphSizes, StepTables, step_tables
from solver.workload import EngineSettings, Traffic
from tests.bench.recurrent_kernels import derived
from tests.llm_shapes import shape
from tests.solver.samples import DEFAULT_ENGINE, ONE_DEVICE, configuration

DELTA = "qwen3.5-27b"
OTHERS = ("nemotron-3-nano-30b-a3b", "minimax-text-01", "kimi-k3", "llama-3.1-8b", "deepseek-v2-lite")
SLOW = {"delta_scan_efficiency_triton": 0.01, "delta_launch_ratio_triton": 4.0}
FAST = {"delta_scan_efficiency_triton": 0.9, "delta_launch_ratio_triton": 0.1}
GRAPHS = GraphSizes(tuple(range(8, 513, 8)))
PROMPTS = Traffic(Lengths((1000,), (1.0,)), Lengths((100,), (1.0,)))


def deployed(llm: str, values: dict[str, float], kernel: str | None = TRITON) -> Configuration:
    engine = replace(DEFAULT_ENGINE, scan_kernel=kernel)
    one = configuration(shape(llm), "h200-sxm", ONE_DEVICE, Precision("bf16", "bf16"), engine=engine)
    return one.with_constants(one.constants.replaced(values, "measured"))


def tables(llm: str, values: dict[str, float]) -> StepTables:
    one = deployed(llm, values)
    return step_tables(one.shape, one.rates(), one.layout, GRAPHS, max_batched_tokens=2048, max_sequences=64)


class TestShapes:
    def test_every_gated_delta_net_of_the_catalog_says_its_keys(self) -> None:
        groups = [group for group in shape(DELTA).attention if group.kind == "linear"]
        assert [is_delta_rule(group) for group in groups] == [True]
        assert not any(is_delta_rule(group) for group in shape(OTHERS[0]).attention)

    def test_heads_of_values_are_cut_among_ranks(self) -> None:
        group = next(group for group in shape(DELTA).attention if is_delta_rule(group))
        assert scan_flops(group, 2.0) == scan_flops(group, 1.0) / 2.0 == 4_325_376.0


class TestStep:
    def test_scanning_is_of_steps_with_prompts_alone(self) -> None:
        slow, fast = tables(DELTA, {**FAST, "delta_scan_efficiency_triton": 0.01}), tables(DELTA, FAST)
        assert np.array_equal(slow.decode_s, fast.decode_s)
        assert (slow.mixed_s[1:513] > fast.mixed_s[1:513]).all()

    def test_scanning_hides_behind_launching_where_that_takes_longer(self) -> None:
        """600 tokens, which no graph covers: what launching takes does not see a scan that is twice as fast or slow."""
        launched = {"delta_launch_ratio_triton": 4.0, "captured_linear_layer_us": 0.0}
        slow, fast = (tables(DELTA, {**launched, "delta_scan_efficiency_triton": value}) for value in (0.1, 0.2))
        assert slow.mixed_s[600] == fast.mixed_s[600]
        assert slow.mixed_s[400] > fast.mixed_s[400]

    def test_launching_is_that_of_a_state_space_times_the_ratio(self) -> None:
        one = deployed(
            DELTA, {"delta_launch_ratio_triton": 1.5, "eager_linear_layer_us": 1000.0, "eager_layer_us": 200.0}
        )
        assert float(np.asarray(terms.eager_floor_s(one.shape, one.rates()))) == pytest.approx(
            64 * 200e-6 + 48 * 1.5e-3
        )

    @pytest.mark.parametrize("kernel", [TRITON, FLASHINFER])
    def test_replies_beside_prompts_are_launched_alike_whatever_scans_prompts(self, kernel: str) -> None:
        one = deployed(DELTA, {"captured_delta_replies_us": 200.0, "captured_linear_replies_us": 900.0}, kernel)
        assert float(np.asarray(terms.captured_beside_s(one.shape, one.rates()))) == pytest.approx(48 * 200e-6)

    def test_those_of_a_state_space_have_a_time_of_their_own(self) -> None:
        one = deployed(OTHERS[0], {"captured_delta_replies_us": 200.0, "captured_linear_replies_us": 900.0})
        assert float(np.asarray(terms.captured_beside_s(one.shape, one.rates()))) == pytest.approx(23 * 900e-6)

    def test_a_gate_is_moved_around_the_scan(self) -> None:
        """The same layers without keys of their own are a state space's, which has no such passes: 6 values of 48 heads of 128 more."""
        one = deployed(DELTA, {})
        plain = replace(
            one.shape,
            attention=tuple(
                replace(group, key_heads=0) if is_delta_rule(group) else group for group in one.shape.attention
            ),
        )
        more = [float(np.asarray(terms.element_wise_bytes(shape, one.rates(), 100.0))) for shape in (one.shape, plain)]
        assert more[0] - more[1] == pytest.approx(48 * 100 * 6 * 2 * 48 * 128)

    def test_the_scan_is_a_named_term_of_prompts(self) -> None:
        one = deployed(DELTA, FAST)
        named = {
            t.name: t.seconds
            for t in step_terms(one.shape, one.rates(), one.layout, 4.0, PROMPTS, prefill_tokens=1000.0)
        }
        assert named["recurrent_scan"] == pytest.approx(float(np.asarray(scan_s(one.shape, one.rates(), 1000.0))))
        decoding = {t.name for t in step_terms(one.shape, one.rates(), one.layout, 4.0, PROMPTS)}
        assert "recurrent_scan" not in decoding


class TestKernels:
    def test_an_engine_that_is_told_nothing_has_the_kernel_it_chooses(self) -> None:
        """vLLM on Hopper: FlashInfer's. Neither constants nor the step then know Triton's."""
        chosen, told = (deployed(DELTA, {}, kernel).rates() for kernel in (None, FLASHINFER))
        assert chosen == told
        assert deployed(DELTA, SLOW, None).rates() == chosen
        assert chosen.delta_launch_ratio < deployed(DELTA, {}, TRITON).rates().delta_launch_ratio

    @pytest.mark.parametrize(("engine", "family"), [("sglang", "hopper"), ("vllm", "ada"), ("vllm", "cdna3")])
    def test_elsewhere_it_is_tritons(self, engine: str, family: str) -> None:
        assert scan_kernel(EngineSettings(engine), family) == TRITON

    def test_only_vllm_is_told(self) -> None:
        check_options(EngineSettings("vllm", scan_kernel=TRITON))
        with pytest.raises(UnsupportedError, match="scan_kernel is an option of vLLM"):
            check_options(EngineSettings("sglang", scan_kernel=TRITON))


@pytest.mark.parametrize("kernel", [TRITON, FLASHINFER])
def test_constants_of_kernels_are_what_was_measured_of_them(kernel: str) -> None:
    """Rows of the catalog that cite the measurements, computed anew: two digits of each."""
    catalog = read_catalog()
    known = {row.name: row.value for row in catalog.constants if row.engine == "*"}
    known |= {row.name: row.value for row in catalog.constants if (row.engine, row.family) == ("vllm", "*")}
    for name, value in derived(catalog, kernel).items():
        assert known[name] == pytest.approx(value, rel=0.01), name


@pytest.mark.parametrize("llm", OTHERS)
def test_models_without_gated_delta_rules_know_nothing_of_it(llm: str) -> None:
    """Every figure of their steps is the same to the last bit, whatever these constants say."""
    slow = tables(llm, {**SLOW, "captured_delta_replies_us": 4000.0})
    fast = tables(llm, {**FAST, "captured_delta_replies_us": 0.0})
    for field in fields(StepTables):
        assert np.array_equal(np.asarray(getattr(slow, field.name)), np.asarray(getattr(fast, field.name))), field.name
