"""Times and volumes that others published or that anyone can work out from a datasheet."""

from dataclasses import replace

import pytest

from solver.deployment.bound import step_bound_s, weights_read_bytes
from solver.deployment.configuration import Configuration
from solver.layout import Layout
from solver.memory.fits import weight_bytes
from solver.precision import WEIGHT_FORMATS
from solver.step.blocks import distinct_experts
from solver.step.collectives import all_to_all_bytes, ring_all_reduce_bytes, transfer_s
from solver.step.gemm import gemm_bytes, gemm_flops, soft_maximum_s
from solver.step.power import capped_w
from tests.llm_shapes import shape
from tests.solver.samples import catalog, configuration, device


class TestWeightsRead:
    def test_70b_on_h100_takes_42_ms_a_token(self) -> None:
        """141.1e9 bytes / 3.35e12 bytes/s = 42.1 ms: NVIDIA H100 SXM datasheet; 70.55e9 bf16 parameters.

        The input embedding is looked up, not read: 2.1e9 bytes less make 41.5 ms.
        """
        llama = shape("llama-3.1-70b")
        bandwidth = device("h100-sxm").memory_bytes_per_s
        assert weight_bytes(llama, "bf16") == pytest.approx(141.1e9, rel=1e-3)
        assert weight_bytes(llama, "bf16") / bandwidth == pytest.approx(0.042, rel=0.01)
        bound = step_bound_s(configuration(llama), sequences=1.0, context_tokens=0.0)
        assert bound == pytest.approx(0.042, rel=0.02)
        assert bound == pytest.approx((141.1e9 - 128_256 * 8192 * 2) / 3.35e12, rel=1e-3)

    def test_all_devices_of_a_replica_read_at_once(self) -> None:
        llama = shape("llama-3.1-70b")
        one, eight = (
            step_bound_s(configuration(llama, layout=Layout(t)), sequences=1.0, context_tokens=0.0) for t in (1, 8)
        )
        assert eight == pytest.approx(one / 8)

    def test_a_mixture_reads_only_the_experts_picked(self) -> None:
        """Mixtral of Experts (arXiv:2401.04088): 47B parameters, 13B of them used by a token."""
        mixtral = configuration(shape("mixtral-8x7b"))
        assert weights_read_bytes(mixtral) / 2 == pytest.approx(12.9e9, rel=0.02)
        assert weight_bytes(mixtral.shape, "bf16") / 2 == pytest.approx(46.7e9, rel=0.02)
        assert float(distinct_experts(8, 2, 1.0)) == pytest.approx(2.0)
        # even routing, 8 tokens of 2 picks: 8·(1 − 0.75⁸) = 7.20 experts
        assert float(distinct_experts(8, 2, 8.0)) == pytest.approx(7.2, rel=1e-3)


class TestArithmeticIntensity:
    def test_decode_is_far_below_the_ridge_and_a_long_prompt_far_above(self) -> None:
        """Roofline (Williams, Waterman and Patterson, 2009): H100 bf16 ridge 989.4e12 / 3.35e12 = 295 FLOP/byte.

        A product of one row with an 8192 × 8192 bf16 matrix has 1.0 FLOP/byte, with 8,192 rows 2,731.
        """
        h100 = device("h100-sxm")
        ridge = h100.flop_per_s["bf16"] / h100.memory_bytes_per_s
        assert ridge == pytest.approx(295, rel=0.01)

        def intensity(rows: float) -> float:
            return float(gemm_flops(rows, 8192.0, 8192.0) / gemm_bytes(rows, 8192.0, 8192.0, 2.0, 2.0))

        assert intensity(1.0) == pytest.approx(1.0, rel=1e-3)
        assert intensity(8192.0) == pytest.approx(8192 / 3, rel=1e-3)
        assert intensity(1.0) < ridge / 100 < ridge < intensity(8192.0)

    @pytest.mark.parametrize(
        ("device_id", "dtype", "flop_per_s", "bytes_per_s", "batch"),
        [
            # B* = FLOP/s · bytes a weight / (2 · bytes/s): tokens at which a product stops being bound by its weights
            ("h100-sxm", "bf16", 989.4e12, 3.35e12, 295),  # NVIDIA H100 datasheet, dense
            ("h100-sxm", "fp8", 1978.9e12, 3.35e12, 295),  # half the bytes, twice the rate: the same batch
            ("h200-sxm", "bf16", 989.4e12, 4.8e12, 206),  # NVIDIA H200 datasheet
            ("a100-sxm-80", "bf16", 312e12, 2.039e12, 153),  # NVIDIA A100 datasheet
            ("a100-sxm-80", "int8", 624e12, 2.039e12, 153),
            ("l40s", "bf16", 362e12, 0.864e12, 419),  # NVIDIA L40S datasheet
            ("mi300x", "bf16", 1307.4e12, 5.3e12, 247),  # AMD MI300X datasheet
            ("mi325x", "fp8", 2614.9e12, 6.0e12, 218),  # AMD MI325X datasheet
            ("b200-sxm", "fp8", 4500e12, 8.0e12, 281),  # NVIDIA DGX B200 datasheet, dense
            ("tpu-v5e", "bf16", 197e12, 0.819e12, 241),  # Google TPU v5e; the scaling book states 240
            ("tpu-v6e", "bf16", 918e12, 1.638e12, 560),  # Google TPU v6e
            ("gaudi2", "bf16", 432e12, 2.45e12, 176),  # Intel Gaudi 2
            ("trainium2", "bf16", 667e12, 2.9e12, 230),  # AWS Trainium2
            ("epyc-9654", "bf16", 19e12, 0.461e12, 41),  # twelve channels of DDR5-4800
            ("m2-ultra", "fp16", 27.2e12, 0.8e12, 34),  # Apple M2 Ultra
        ],
    )
    def test_batch_from_which_arithmetic_binds(
        self, device_id: str, dtype: str, flop_per_s: float, bytes_per_s: float, batch: int
    ) -> None:
        found = device(device_id)
        assert found.flop_per_s[dtype] == pytest.approx(flop_per_s, rel=1e-3)
        assert found.memory_bytes_per_s == pytest.approx(bytes_per_s, rel=2e-3)
        crossover = found.flop_per_s[dtype] * WEIGHT_FORMATS[dtype].bytes_per_weight / (2 * found.memory_bytes_per_s)
        assert crossover == pytest.approx(batch, rel=0.01)
        # the step bound turns there: below, twice the sequences cost nothing; above, they cost twice the time
        dense = configuration(shape("llama-3.1-8b"), device_id)
        below, lower, higher, above = (
            step_bound_s(_at(dense, dtype), sequences=crossover * f, context_tokens=0.0) for f in (0.25, 0.5, 2.0, 4.0)
        )
        assert lower == pytest.approx(below, rel=1e-9)
        fastest = max(found.flop_per_s.values()) == found.flop_per_s[dtype]
        if fastest and WEIGHT_FORMATS[dtype].bytes_per_weight == 2.0:
            assert above == pytest.approx(2 * higher, rel=0.02)

    def test_every_plannable_device_has_a_crossover_in_a_sane_range(self) -> None:
        """Between one token (SRAM) and about two thousand (inference parts with slow memory)."""
        for row in catalog().devices.values():
            rate, bandwidth = row.dense_bf16_tflop_per_s or row.dense_fp16_tflop_per_s, row.memory_bandwidth_gb_per_s
            if rate is not None and bandwidth is not None:
                assert 0.5 < rate * 1e3 / bandwidth < 2_000, row.id


def _at(deployment: Configuration, weights: str) -> Configuration:
    return replace(deployment, precision=replace(deployment.precision, weights=weights))


class TestCollectives:
    def test_all_reduce_of_612_gb_over_nvlink_in_one_direction(self) -> None:
        """612e9 bytes / 450e9 bytes/s = 1.36 s: NVLink 4 has 900 GB/s in both directions together."""
        assert device("h100-sxm").link_bytes_per_s == 450e9
        assert transfer_s(612e9, 450e9, 0.0) == pytest.approx(1.36)
        assert transfer_s(612e9, 900e9, 0.0) == pytest.approx(0.68)  # what adding up both directions would claim

    @pytest.mark.parametrize(("devices", "share"), [(1, 0.0), (2, 1.0), (4, 1.5), (8, 1.75), (64, 1.96875)])
    def test_ring_all_reduce_volume(self, devices: int, share: float) -> None:
        """2·(n−1)/n: Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms, 2009."""
        assert ring_all_reduce_bytes(1e9, float(devices)) == pytest.approx(share * 1e9)

    @pytest.mark.parametrize(("devices", "share"), [(1, 0.0), (2, 0.5), (4, 0.75), (8, 0.875)])
    def test_all_gather_and_all_to_all_volumes(self, devices: int, share: float) -> None:
        """(n−1)/n of the payload a device; all-reduce is reduce-scatter and all-gather, so twice that."""
        assert all_to_all_bytes(1e9, float(devices)) == pytest.approx(share * 1e9)
        assert ring_all_reduce_bytes(1e9, float(devices)) == pytest.approx(2 * all_to_all_bytes(1e9, float(devices)))

    def test_tensor_8_pipeline_8_data_8_are_512_devices(self) -> None:
        layout = Layout(tensor_parallel=8, pipeline_parallel=8, data_parallel=8)
        assert (layout.devices, layout.devices_per_replica) == (512, 64)
        assert Layout(8, 8, 8, expert_parallel=64).devices == 512  # experts live on the same devices


class TestWorkedNumbers:
    """The worked numbers of docs/mathematics.md."""

    @pytest.mark.parametrize(
        ("rows", "compute_us", "memory_us", "both_us"), [(16.0, 3.8, 70.4, 70.4), (512.0, 121.5, 80.1, 126.9)]
    )
    def test_a_product_below_and_above_the_ridge(
        self, rows: float, compute_us: float, memory_us: float, both_us: float
    ) -> None:
        compute = gemm_flops(rows, 28_672.0, 4_096.0) / 989.4e12
        memory = gemm_bytes(rows, 28_672.0, 4_096.0, 2.0, 2.0) / 3.35e12
        assert compute * 1e6 == pytest.approx(compute_us, abs=0.05)
        assert memory * 1e6 == pytest.approx(memory_us, abs=0.05)
        assert soft_maximum_s(compute, memory) * 1e6 == pytest.approx(both_us, abs=0.05)

    def test_experts_touched(self) -> None:
        assert float(distinct_experts(128, 8, 16.0)) == pytest.approx(82.4, abs=0.05)
        assert float(distinct_experts(128, 8, 16.0, 1.0)) == pytest.approx(65.0, abs=0.05)

    def test_power_bends_towards_the_sustained_maximum(self) -> None:
        raw = 700.0 * (0.214 + 0.775 * 0.6 + 2.975 * 0.05)
        assert raw == pytest.approx(579.4, abs=0.05)
        assert float(capped_w(raw, 0.975 * 700.0)) == pytest.approx(544.5, abs=0.05)
