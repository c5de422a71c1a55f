"""The wrong figures of the project's background documents, each with what the project states instead.

Three texts (the architecture post, the parallelism primer and the hardware guide) started the project. Checked against
vendors and arithmetic, 47 of their statements were wrong, mixed conventions, or could not be used. Each is listed here
with the figure it quoted, the right one worked out by hand or read at the source, and how the project states it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import pytest

from catalog.rows import DeviceRow, PriceRow
from solver.precision import KV_CACHE_BYTES, WEIGHT_FORMATS
from solver.units import bytes_from_gib
from tests.whole_catalog import whole_catalog

CATALOG = whole_catalog()
POST, PRIMER, GUIDE = "architecture post", "parallelism primer", "hardware guide"
BOTH_DIRECTIONS = 2
PCIE_GIGATRANSFERS_PER_S = {3: 8, 4: 16, 5: 32}
"""Per lane, one direction; 128 of 130 bits carry data."""


def device(device_id: str) -> DeviceRow:
    return CATALOG.devices[device_id]


def figure(device_id: str, field: str) -> float:
    value = getattr(device(device_id), field)
    assert value is not None, f"{device_id} states no {field}"
    return float(value)


def bf16(device_id: str) -> float:
    return figure(device_id, "dense_bf16_tflop_per_s")


def link(device_id: str) -> float:
    return figure(device_id, "link_one_direction_gb_per_s")


def weights_gb(parameters_billions: float, weight_format: str) -> float:
    return parameters_billions * WEIGHT_FORMATS[weight_format].bytes_per_weight


def llama_70b_kv_cache_bytes(tokens: int) -> float:
    """Keys and values of 80 layers with 8 KV heads (64 query heads) of width 128."""
    return 2 * 80 * 8 * 128 * KV_CACHE_BYTES["bf16"] * tokens


def pcie_one_direction_gb_per_s(device_id: str) -> float:
    row = device(device_id)
    assert row.pcie_generation is not None
    assert row.pcie_lanes is not None
    return PCIE_GIGATRANSFERS_PER_S[row.pcie_generation] * row.pcie_lanes * (128 / 130) / 8


def usd_per_device_hour(device_id: str, provider: str | None = None) -> list[float]:
    """On-demand prices of the device, all regions, per device."""

    def of_interest(price: PriceRow) -> bool:
        offer = CATALOG.offers[price.offer]
        if provider is not None and offer.provider != provider:
            return False
        return CATALOG.nodes[offer.node].device == device_id and offer.commitment == "on_demand"

    return [
        float(price.usd_per_hour) / CATALOG.nodes[CATALOG.offers[price.offer].node].devices
        for price in CATALOG.prices
        if of_interest(price) and price.usd_per_hour is not None
    ]


@dataclass(frozen=True)
class Correction:
    """``quoted`` stood in the text; ``right`` is what ``source`` says; ``stated`` is what the project states."""

    text: str
    about: str
    quoted: float
    right: float
    source: str
    stated: Callable[[], float]


CORRECTIONS = [
    # sparse rates quoted as if dense, or the other way round
    Correction(PRIMER, "H100 bf16, TFLOP/s (1,979 is 2:4 sparse)", 1979, 989.4, "NVIDIA H100 datasheet",
               lambda: bf16("h100-sxm")),
    Correction(PRIMER, "H100 fp8, TFLOP/s (3,958 is sparse)", 3958, 1978.9, "NVIDIA H100 datasheet",
               lambda: figure("h100-sxm", "dense_fp8_tflop_per_s")),
    Correction(PRIMER, "H100 tf32, TFLOP/s (989 is sparse)", 989, 494.7, "NVIDIA H100 datasheet",
               lambda: figure("h100-sxm", "dense_tf32_tflop_per_s")),
    Correction(PRIMER, "H100 bf16 from 528 tensor cores: 512 FMA a clock, not 2,048 MAC", 528 * 2048 * 1.83e-3,
               528 * 512 * 2 * 1.83e-3, "NVIDIA H100 white paper", lambda: bf16("h100-sxm")),
    Correction(GUIDE, "A100 bf16 beside dense rates, TFLOP/s (624 is sparse)", 624, 312, "NVIDIA A100 datasheet",
               lambda: bf16("a100-sxm-80")),
    Correction(GUIDE, "L40S sparse bf16, TFLOP/s (362 is the dense rate)", 362, 733, "NVIDIA L40S datasheet",
               lambda: figure("l40s", "sparse_bf16_tflop_per_s")),
    Correction(GUIDE, "RTX 4090 bf16 with fp32 accumulation, TFLOP/s", 330, 165.2, "NVIDIA Ada white paper",
               lambda: bf16("rtx-4090")),
    Correction(GUIDE, "RTX 5090 bf16 with fp32 accumulation, TFLOP/s (838: fp16 accumulation, sparse)", 838, 209.5,
               "NVIDIA RTX Blackwell white paper", lambda: bf16("rtx-5090")),
    Correction(GUIDE, "H100 fp8, PFLOP/s (about 1 is bf16)", 1.0, 1.979, "NVIDIA H100 datasheet",
               lambda: figure("h100-sxm", "dense_fp8_tflop_per_s") / 1000),
    Correction(POST, "B100 bf16 in the efficiency table, TFLOP/s", 1800, 1750, "Epoch AI (AnandTech 21310)",
               lambda: bf16("b100-sxm")),
    Correction(GUIDE, "Blackwell fp4 over V100 fp16, both dense", 30, 72, "NVIDIA datasheets: 9,000 / 125",
               lambda: figure("b200-sxm", "dense_fp4_tflop_per_s") / figure("v100-sxm2-32", "dense_fp16_tflop_per_s")),
    # processors
    Correction(PRIMER, "CPU with AMX at bf16, TFLOP/s", 2, 229, "56 cores x 2.0 GHz x 2,048 flop a cycle",
               lambda: bf16("xeon-8480")),
    Correction(PRIMER, "Memory bandwidth of a server CPU, GB/s", 100, 307, "8 channels of DDR5-4800",
               lambda: figure("xeon-8480", "memory_bandwidth_gb_per_s")),
    Correction(GUIDE, "Memory channels of a Threadripper 7960X", 8, 4, "AMD: socket sTR5 on TRX50, DDR5-5200",
               lambda: figure("threadripper-7960x", "memory_bandwidth_gb_per_s") / (5.2 * 8)),
    # links: bits as bytes, both directions as one
    Correction(PRIMER, "Seconds to all-reduce 612 GB over NVLink 4", 0.68, 1.36, "450 GB/s one way (InferenceX-app)",
               lambda: 2 * 7 / 8 * 175 * 2 / link("h100-sxm")),
    Correction(PRIMER, "PCIe 5.0 x16 one way, GB/s (128 is both)", 128, 63, "PCI-SIG: 32 GT/s, 128b/130b",
               lambda: pcie_one_direction_gb_per_s("h100-sxm")),
    Correction(GUIDE, "NVLink of Hopper, both directions, GB/s (600 is the A100)", 600, 900, "NVIDIA H100 datasheet",
               lambda: BOTH_DIRECTIONS * link("h100-sxm")),
    Correction(POST, "TPU v5e ICI one way, GB/s (1,600 Gbit/s read as 1.6 TB/s)", 1600, 200,
               "docs.cloud.google.com/tpu/docs/v5e", lambda: link("tpu-v5e")),
    Correction(POST, "TPU v5p ICI one way, GB/s (4,800 Gbit/s read as 4.8 TB/s)", 4800, 600,
               "docs.cloud.google.com/tpu/docs/v5p-training", lambda: link("tpu-v5p")),
    Correction(POST, "TPU v6e ICI one way, GB/s (read as 3.2 TB/s)", 3200, 400, "docs.cloud.google.com/tpu/docs/v6e",
               lambda: link("tpu-v6e")),
    Correction(POST, "TPU v4 ICI one way, GB/s (600 is both, rounded up)", 600, 270, "jax-ml/scaling-book",
               lambda: link("tpu-v4")),
    Correction(POST, "TPU v7 ICI one way, GB/s a chip (1.2 TB/s is both)", 1200, 600,
               "docs.cloud.google.com/tpu/docs/tpu7x",
               lambda: 2 * link("tpu-v7")),
    # TPU rates, power and dies
    Correction(POST, "TPU v5p int8, TOP/s (459 hides that int8 is twice bf16)", 459, 918,
               "docs.cloud.google.com/tpu/docs/v5p-training", lambda: figure("tpu-v5p", "dense_int8_top_per_s")),
    Correction(POST, "TPU v5e int8, TOP/s (197 is bf16, given as fp8)", 197, 393, "docs.cloud.google.com/tpu/docs/v5e",
               lambda: figure("tpu-v5e", "dense_int8_top_per_s")),
    Correction(POST, "TPU v4 power, W", 200, 192, "docs.cloud.google.com/tpu/docs/v4: highest measured",
               lambda: figure("tpu-v4", "power_limit_w")),
    Correction(POST, "TPU v5p power, W (no vendor figure)", 250, 540, "Epoch AI estimate",
               lambda: figure("tpu-v5p", "power_limit_w")),
    Correction(POST, "TPU v6e power, W (no vendor figure)", 200, 380, "Epoch AI estimate",
               lambda: figure("tpu-v6e", "power_limit_w")),
    Correction(POST, "TPU v7 power, W a chip (400 in the table, 1 kW in the text)", 400, 960, "Epoch AI estimate",
               lambda: 2 * figure("tpu-v7", "power_limit_w")),
    Correction(POST, "TPU v7 devices a chip (single die)", 1, 2, "docs.cloud.google.com/tpu/docs/tpu7x",
               lambda: CATALOG.nodes["gcp-tpu7x-standard-4t"].devices / 4),
    Correction(POST, "TPU v5p bf16 efficiency, TFLOP/s a watt", 1.84, 0.85, "459 / 540 W (Epoch AI estimate)",
               lambda: bf16("tpu-v5p") / figure("tpu-v5p", "power_limit_w")),
    # memory
    Correction(f"{POST} and {GUIDE}", "B200 memory for planning, GiB (192 is the raw stacks)", 192, 180,
               "aiconfigurator systems/b200_sxm.yaml", lambda: figure("b200-sxm", "memory_gib")),
    Correction(GUIDE, "Cerebras SRAM of the current system, GB (40 is the WSE-2)", 40, 44, "tomshardware on WSE-3",
               lambda: bytes_from_gib(figure("cerebras-wse3", "memory_gib")) / 1e9),
    Correction(PRIMER, "L1 and shared memory of an H100, MB (20 is the A100)", 20, 33, "NVIDIA H100 white paper",
               lambda: figure("h100-sxm", "on_chip_sram_mb") - figure("h100-sxm", "cache_mb")),
    Correction(POST, "70B weights at fp32, GB", 140, 280, "70 x 4 bytes", lambda: weights_gb(70, "fp32")),
    Correction(POST, "70B weights at bf16, GB", 70, 140, "70 x 2 bytes", lambda: weights_gb(70, "bf16")),
    Correction(POST, "H100s that hold a 70B model at fp16", 1, 2, "140 GB in 79.65 GiB each",
               lambda: math.ceil(weights_gb(70, "fp16") * 1e9 / bytes_from_gib(figure("h100-sxm", "memory_gib")))),
    Correction(POST, "KV cache of a 70B model at 131,072 tokens, GB", 80, 42.9, "Llama-3-70B config, bf16, 8 KV heads",
               lambda: llama_70b_kv_cache_bytes(131_072) / 1e9),
    Correction(PRIMER, "KV bytes a token: KV heads, not query heads, stand in the formula", 2 * 80 * 64 * 128 * 2,
               327_680, "Llama-3-70B config", lambda: llama_70b_kv_cache_bytes(1)),
    Correction(GUIDE, "Flop a byte of weights in decode at bf16 (2 is for one-byte weights)", 2, 1, "2 flop a weight",
               lambda: 2 / WEIGHT_FORMATS["bf16"].bytes_per_weight),
    # prices
    Correction(GUIDE, "RTX 4090, USD an hour", 1.50, 0.34, "RunPod, 2026-03-16",
               lambda: min(usd_per_device_hour("rtx-4090", "runpod"))),
    Correction(GUIDE, "RTX 5090, USD an hour", 2.0, 0.69, "RunPod, 2026-03-16",
               lambda: min(usd_per_device_hour("rtx-5090", "runpod"))),
    Correction(GUIDE, "H200, cheapest on demand, USD an hour", 4.0, 2.29, "Vast.ai, 2026-03-16",
               lambda: min(usd_per_device_hour("h200-sxm"))),
    Correction(GUIDE, "B200, cheapest on demand, USD an hour", 6.0, 4.89, "Verda, 2026",
               lambda: min(usd_per_device_hour("b200-sxm"))),
    Correction(GUIDE, "MI300X, cheapest on demand, USD an hour", 2.0, 1.50, "TensorWave, 2026-05-18",
               lambda: min(usd_per_device_hour("mi300x"))),
    # Apple
    Correction(GUIDE, "M4 Max GPU at fp16, TFLOP/s", 17, 18.4, "40-core GPU, cores x clock",
               lambda: figure("m4-max", "dense_fp16_tflop_per_s")),
    Correction(GUIDE, "M4 Max power, W", 50, 90, "system peak class", lambda: figure("m4-max", "power_limit_w")),
]  # fmt: skip


@pytest.mark.parametrize("case", CORRECTIONS, ids=lambda case: case.about)
def test_the_project_states_the_right_figure(case: Correction) -> None:
    stated = case.stated()
    assert stated == pytest.approx(case.right, rel=0.005), case.source
    assert abs(stated - case.quoted) / case.quoted > 0.02, f"still the figure of the {case.text}"


class TestWhatHasNoFigure:
    """Findings about a unit that does not exist, a figure nobody publishes, or a claim that is no input."""

    @pytest.mark.parametrize("device_id", ["tpu-v4", "tpu-v5e"])
    def test_these_tpus_have_no_fp8_unit(self, device_id: str) -> None:
        """The architecture post lists 275 and 197 under "Peak FP8 TFLOPS": both are bf16 rates."""
        assert device(device_id).dense_fp8_tflop_per_s is None
        assert bf16(device_id) in (275, 197)

    def test_int4_on_h100_is_weight_only(self) -> None:
        """The architecture post counts on int4 speed from an H100; Hopper dropped the int4 units Ampere had."""
        assert device("h100-sxm").dense_int4_top_per_s is None
        assert device("h200-sxm").dense_int4_top_per_s is None
        assert figure("a100-sxm-80", "dense_int4_top_per_s") == 1248
        assert "int4" not in WEIGHT_FORMATS["int4"].compute

    def test_tpu_v5e_power_is_unpublished(self) -> None:
        """The architecture post gives about 150 W; Google publishes none and nobody credible estimates it."""
        assert "power_limit_w" in device("tpu-v5e").missing

    def test_gb200_memory_is_what_the_driver_shows(self) -> None:
        """The hardware guide gives 192 GB; nvidia-smi shows 189,471 MiB."""
        assert device("gb200-nvl72").memory_gib == pytest.approx(189_471 / 1024, abs=0.01)

    def test_ironwood_shipped_in_november_2025(self) -> None:
        """The hardware guide says announced 2024-2025; it was announced in April 2025 and sold from November."""
        assert device("tpu-v7").launched == "2025-11"
        assert device("tpu-v7").status == "shipping"

    def test_a_larger_server_cpu_reaches_5e14(self) -> None:
        """The primer's 2 TFLOP/s is a hundred times too low at both ends of the range."""
        assert bf16("xeon-6980p") == pytest.approx(524, rel=0.005)
        assert figure("xeon-6980p", "memory_bandwidth_gb_per_s") == pytest.approx(845, rel=0.005)

    def test_what_is_not_published_is_no_field(self) -> None:
        """RT cores of an H100 (it has none), L2 bandwidth (12 or 5 TB/s in two texts, never published) and the
        generation number of tensor cores (B200: fifth, not sixth) play no part in planning and are not catalogued."""
        for field in DeviceRow.model_fields:
            assert not any(part in field for part in ("rt_core", "ray", "l2_bandwidth", "generation_of"))

    def test_prices_are_per_hour_never_per_token(self) -> None:
        """The post's USD per million tokens name no workload; the catalog holds hours only."""
        assert [field for field in PriceRow.model_fields if "usd" in field] == ["usd_per_hour"]

    def test_no_b200_costs_a_tenth_of_an_h100(self) -> None:
        """The post's "up to 10x cheaper than cloud H100" is a slogan, not an input: on demand, the cheapest B200 hour
        costs more than a third of the median H100 hour."""
        assert min(usd_per_device_hour("b200-sxm")) > median(usd_per_device_hour("h100-sxm")) / 3

    def test_market_ranges_are_wider_than_the_guide_says(self) -> None:
        """H200 4-6, B200 6-10, MI300X 2-4 USD an hour."""
        for device_id, high in (("h200-sxm", 6), ("b200-sxm", 10), ("mi300x", 4)):
            assert max(usd_per_device_hour(device_id)) > high
