"""Laws of one engine step that hold for every model, device, layout and precision."""

import itertools
import math
from collections.abc import Callable
from dataclasses import fields, replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from solver.deployment.bound import step_bound_s
from solver.deployment.configuration import Configuration
from solver.deployment.layout_rules import layout_problem
from solver.errors import FigureMissingError, UnsupportedError
from solver.hardware import Device
from solver.layout import Layout
from solver.lengths import fixed_lengths
from solver.llm_shape import LlmShape
from solver.precision import Precision
from solver.step.constants import CONSTANTS, Constants
from solver.step.named_terms import RESOURCE, step_terms
from solver.step.rates import Rates, rates
from solver.step.tables import StepTables
from solver.workload import EngineSettings, Traffic
from tests.llm_shapes import llm_rows, shape
from tests.solver.samples import configuration, dense_shape, device, sparse_shape

SMALL = EngineSettings(max_batched_tokens=1024, max_sequences=64)
DEVICES = ("h100-sxm", "h200-sxm", "a100-sxm-80", "l40s", "mi300x", "b200-sxm", "tpu-v5e", "gaudi3", "trainium2")
llms = st.sampled_from(sorted(llm_rows()))
devices = st.sampled_from(DEVICES)
precisions = st.builds(
    Precision, st.sampled_from(["bf16", "fp8", "int8", "int4", "mxfp4"]), st.sampled_from(["bf16", "fp8"])
)
layouts = st.builds(
    Layout, tensor_parallel=st.sampled_from([1, 2, 4, 8]), pipeline_parallel=st.sampled_from([1, 2]),
    expert_parallel=st.just(1),
)  # fmt: skip
faster = st.floats(1.0, 8.0)
laws = settings(deadline=None, max_examples=40)


def deployed(llm: str, device_id: str, layout: Layout, precision: Precision) -> Configuration:
    """A legal deployment, or a discarded example."""
    assume(layout_problem(shape(llm), layout, weights=precision.weights) is None)
    found = configuration(shape(llm), device_id, layout, precision, engine=SMALL)
    try:
        found.rates()
    except UnsupportedError:
        assume(False)
    return found


def times(tables: StepTables) -> list[float]:
    """Every tabulated second and slope."""
    slopes = [s for part in (tables.context, tables.pairs) for _, s, _ in part]
    return [*tables.decode_s, *tables.mixed_s, *tables.head_s, tables.sequence_s, *slopes]


def with_device(found: Configuration, change: Callable[[Device], Device]) -> Configuration:
    return replace(found, device=change(found.device))


def never_slower(base: Configuration, other: Configuration) -> None:
    for before, after in zip(times(base.tables()), times(other.tables()), strict=True):
        assert after <= before * (1 + 1e-12)


class TestMoreIsNeverSlower:
    @laws
    @given(llms, devices, layouts, precisions, faster)
    def test_memory_bandwidth(self, llm: str, on: str, layout: Layout, precision: Precision, factor: float) -> None:
        base = deployed(llm, on, layout, precision)
        never_slower(base, with_device(base, lambda d: replace(d, memory_bytes_per_s=d.memory_bytes_per_s * factor)))

    @laws
    @given(llms, devices, layouts, precisions, faster)
    def test_matrix_rates(self, llm: str, on: str, layout: Layout, precision: Precision, factor: float) -> None:
        base = deployed(llm, on, layout, precision)
        more = {dtype: rate * factor for dtype, rate in base.device.flop_per_s.items()}
        never_slower(base, with_device(base, lambda d: replace(d, flop_per_s=more)))

    @laws
    @given(llms, devices, layouts, precisions, faster)
    def test_links(self, llm: str, on: str, layout: Layout, precision: Precision, factor: float) -> None:
        base = deployed(llm, on, layout, precision)
        never_slower(
            base,
            with_device(
                base,
                lambda d: replace(
                    d, link_bytes_per_s=d.link_bytes_per_s * factor, pcie_bytes_per_s=d.pcie_bytes_per_s * factor
                ),
            ),
        )

    @laws
    @given(llms, devices, st.sampled_from([1, 2, 4]), precisions)
    def test_tensor_parallelism_over_a_perfect_link(
        self, llm: str, on: str, parallel: int, precision: Precision
    ) -> None:
        """More devices at equal efficiency: without latency and with an endless link only the work is left to share."""

        def perfect(found: Configuration) -> Configuration:
            free_constants = found.constants.replaced(
                {"all_reduce_latency_us": 0.0, "eager_collective_us": 0.0}, "analytical"
            )
            free = replace(found, constants=free_constants)
            return with_device(free, lambda d: replace(d, link_bytes_per_s=1e30, link_domain_devices=64))

        fewer, more = (
            perfect(replace(deployed(llm, on, Layout(n), precision), link_domain_devices=64))
            for n in (parallel, 2 * parallel)
        )
        never_slower(fewer, more)

    @laws
    @given(llms, devices, layouts, precisions)
    def test_fewer_tokens(self, llm: str, on: str, layout: Layout, precision: Precision) -> None:
        """Partly empty row tiles aside, which cost real kernels more than full ones."""
        found = deployed(llm, on, layout, precision)
        full = dict.fromkeys(("partial_tile_slowdown_8bit", "partial_tile_read_slowdown_8bit"), 0.0)
        tables = found.with_constants(found.constants.replaced(full, "analytical")).tables()
        for column in (tables.decode_s, tables.mixed_s, tables.head_s):
            assert all(a <= b * (1 + 1e-12) for a, b in itertools.pairwise(column[1:]))

    @laws
    @given(llms, devices, layouts, precisions)
    def test_fewer_whole_tiles(self, llm: str, on: str, layout: Layout, precision: Precision) -> None:
        """Where every row tile is full, fewer tokens are never slower, whatever a partly empty one costs."""
        mixed = deployed(llm, on, layout, precision).tables().mixed_s
        whole = [mixed[tokens] for tokens in (16, 64, 128, 256, 512, 768, 1024)]
        assert all(a <= b * (1 + 1e-12) for a, b in itertools.pairwise(whole))

    @laws
    @given(llms, devices, layouts, precisions, st.sampled_from(sorted(CONSTANTS)), st.floats(0.1, 1.0))
    def test_better_constants(
        self, llm: str, on: str, layout: Layout, precision: Precision, name: str, share: float
    ) -> None:
        """A higher efficiency, a shorter latency or overhead."""
        base = deployed(llm, on, layout, precision)
        value = base.constants.priors[name].value
        if name.endswith("efficiency") or "_efficiency_" in name:
            better = value + share * (1.0 - value)
        elif CONSTANTS[name].unit in ("us", "ms") or "slowdown" in name or name == "decode_sequence_tokens":
            better = value * (1.0 - share)
        else:
            return
        never_slower(base, base.with_constants(base.constants.replaced({name: better}, "analytical")))


class TestBounds:
    @laws
    @given(llms, devices, layouts, precisions, st.integers(1, 64), st.integers(1, 8_000))
    def test_no_decode_step_beats_the_roofline(
        self, llm: str, on: str, layout: Layout, precision: Precision, sequences: int, context: int
    ) -> None:
        found = deployed(llm, on, layout, precision)
        tables = found.tables()
        step = tables.decode_s[sequences] + tables.head_s[sequences] + sequences * tables.sequence_s
        step += tables.context_s(sequences, float(sequences * context))[0]
        assert step >= step_bound_s(found, float(sequences), float(context))

    @laws
    @given(llms, devices, layouts, precisions, st.integers(1, 1024))
    def test_no_prompt_beats_the_arithmetic(
        self, llm: str, on: str, layout: Layout, precision: Precision, tokens: int
    ) -> None:
        """2 FLOPs a parameter and token, vocabulary left out, at the fastest matrix rate of all devices together."""
        found = deployed(llm, on, layout, precision)
        model = found.shape
        parameters = model.active_weights - float(model.vocabulary) * model.hidden - model.other_weights
        # parameters beside the matrices (norms, convolutions, biases) are below a hundredth
        least = 2.0 * 0.99 * parameters * tokens / (max(found.device.flop_per_s.values()) * layout.tensor_parallel)
        assert found.tables().mixed_s[tokens] >= least

    @laws
    @given(llms, devices, layouts, precisions)
    def test_effective_rates_stay_below_the_datasheet(
        self, llm: str, on: str, layout: Layout, precision: Precision
    ) -> None:
        found = deployed(llm, on, layout, precision)
        r, d = found.rates(), found.device
        memory = (r.weight_bytes_per_s, r.expert_bytes_per_s, r.kv_bytes_per_s, r.stream_bytes_per_s)
        assert all(0 < rate <= d.memory_bytes_per_s for rate in memory)
        arithmetic = (r.gemm_flop_per_s, r.wide_flop_per_s, r.attention_flop_per_s)
        assert all(0 < rate <= max(d.flop_per_s.values()) for rate in arithmetic)
        fastest = max(d.link_bytes_per_s, d.pcie_bytes_per_s)
        assert layout.pipeline_parallel == 1 or 0 < r.hand_over_bytes_per_s <= fastest
        assert layout.tensor_parallel == 1 or 0 < r.link_bytes_per_s <= fastest

    @laws
    @given(llms, devices, layouts, precisions)
    def test_everything_is_finite(self, llm: str, on: str, layout: Layout, precision: Precision) -> None:
        found = deployed(llm, on, layout, precision)
        assert all(math.isfinite(x) and x >= 0 for x in times(found.tables()))


class TestTerms:
    @laws
    @given(llms, devices, layouts, precisions, st.integers(1, 64), st.integers(1, 4_000))
    def test_named_terms_sum_to_the_step(
        self, llm: str, on: str, layout: Layout, precision: Precision, sequences: int, context: int
    ) -> None:
        """What an estimate shows is what the simulation takes: same laws, no captured-graph padding in between."""
        found = deployed(llm, on, replace(layout, pipeline_parallel=1), precision)
        sequences = min(s for s in found.profile.graphs.sizes if s >= sequences)
        traffic = Traffic(fixed_lengths(context), fixed_lengths(2))
        terms = step_terms(found.shape, found.rates(), found.layout, float(sequences), traffic)
        assert {t.name for t in terms} <= RESOURCE.keys()
        assert [t.seconds for t in terms] == sorted((t.seconds for t in terms), reverse=True)
        tables = found.tables()
        step = tables.decode_s[sequences] + tables.head_s[sequences] + sequences * tables.sequence_s
        step += tables.context_s(sequences, float(sequences * (context + 1)))[0]
        assert sum(t.seconds for t in terms) == pytest.approx(step, rel=1e-9)

    def test_collectives_appear_with_the_layouts_that_need_them(self) -> None:
        def names(model: LlmShape, layout: Layout) -> set[str]:
            found = configuration(model, layout=layout)
            traffic = Traffic(fixed_lengths(100), fixed_lengths(100))
            return {t.name for t in step_terms(model, found.rates(), layout, 8.0, traffic)}

        dense, sparse = dense_shape(), sparse_shape()
        assert not {"all_reduce", "all_to_all", "pipeline_hand_over"} & names(dense, Layout())
        assert "all_reduce" in names(dense, Layout(2))
        assert "pipeline_hand_over" in names(dense, Layout(1, 2))
        assert {"all_to_all", "all_reduce"} <= names(sparse, Layout(2, 1, 1, 2))
        assert "all_to_all" in names(sparse, Layout(1, 1, 8, 8))
        assert {"expert_weights_read"} <= names(sparse, Layout())


class TestLinks:
    """Which link carries what: the scale-up link inside its domain, PCIe beyond it, the network between nodes."""

    def of(self, device_id: str, layout: Layout, *, domain: int | None = None, network: float = 0.0) -> Rates:
        found = configuration(dense_shape(), device_id, layout, link_domain_devices=domain)
        return rates(
            found.device, found.constants, Precision(), layout, link_domain_devices=found.link_domain_devices,
            network_bytes_per_s=network,
        )  # fmt: skip

    def efficiency(self, device_id: str, name: str) -> float:
        return configuration(dense_shape(), device_id).constants.si(name)

    def test_stages_without_a_scale_up_link_hand_over_by_pcie(self) -> None:
        expected = device("l40s").pcie_bytes_per_s * self.efficiency("l40s", "network_efficiency")
        assert self.of("l40s", Layout(1, 2)).hand_over_bytes_per_s == expected
        assert self.of("l40s", Layout(2, 2)).hand_over_bytes_per_s == expected
        assert self.of("l40s", Layout(2, 1)).link_bytes_per_s == expected

    def test_experts_without_a_scale_up_link_are_exchanged_by_pcie(self) -> None:
        expected = device("l40s").pcie_bytes_per_s * self.efficiency("l40s", "network_efficiency")
        assert self.of("l40s", Layout(1, 1, 8, 8)).link_bytes_per_s == expected

    def test_a_replica_that_outgrows_the_domain_leaves_it(self) -> None:
        """An A40 pair is bridged; four of them talk over PCIe."""
        bridge = device("a40").link_bytes_per_s * self.efficiency("a40", "link_efficiency")
        pcie = device("a40").pcie_bytes_per_s * self.efficiency("a40", "network_efficiency")
        assert self.of("a40", Layout(2)).link_bytes_per_s == bridge
        assert self.of("a40", Layout(4)).link_bytes_per_s == pcie
        assert self.of("a40", Layout(1, 2)).hand_over_bytes_per_s == bridge
        pairs = self.of("a40", Layout(2, 2))
        assert (pairs.link_bytes_per_s, pairs.hand_over_bytes_per_s) == (bridge, pcie)

    def test_stages_on_several_nodes_hand_over_by_the_network(self) -> None:
        spread = self.of("h100-sxm", Layout(8, 2), network=50e9)
        assert spread.hand_over_bytes_per_s == 50e9 * self.efficiency("h100-sxm", "network_efficiency")
        assert spread.hand_over_latency_s == self.efficiency("h100-sxm", "network_latency_us")
        assert spread.link_bytes_per_s == 450e9 * self.efficiency("h100-sxm", "link_efficiency")

    def test_no_link_at_all_is_a_missing_figure(self) -> None:
        for layout in (Layout(2), Layout(1, 2), Layout(1, 1, 8, 8)):
            with pytest.raises(FigureMissingError, match="link"):
                self.of("xeon-8480", layout)
        assert self.of("xeon-8480", Layout()).tensor_parallel == 1.0


class TestConstantsGiven:
    def test_a_missing_constant_is_named(self) -> None:
        found = configuration(dense_shape())
        for name in ("gemm_efficiency_16bit", "step_overhead_us", "weight_read_efficiency"):
            kept = {n: p for n, p in found.constants.priors.items() if n != name}
            with pytest.raises(FigureMissingError, match=name):
                found.with_constants(Constants(found.constants.subject, kept)).rates()

    def test_every_field_of_rates_is_a_number_and_one_device_needs_no_link(self) -> None:
        alone, joined = (configuration(dense_shape(), layout=layout).rates() for layout in (Layout(), Layout(2, 2)))
        assert all(math.isfinite(getattr(joined, f.name)) for f in fields(Rates))
        endless = {f.name for f in fields(Rates) if math.isinf(getattr(alone, f.name))}
        assert endless == {"link_bytes_per_s", "hand_over_bytes_per_s"}
