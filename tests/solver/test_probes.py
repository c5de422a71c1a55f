"""What a probe says of a device's rates, and what follows for its constants."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.measurements.refine import peaks_of
from service.wire.devices import DeviceOut
from solver.step.constants import CONSTANTS, ConstantPrior, Constants, resolve_constants
from solver.step.probes import (
    PROBED_CONSTANTS,
    Gemm,
    Peaks,
    Probe,
    arithmetic_bound,
    link_bytes_per_s,
    memory_share,
    probed_shares,
    refined,
)
from tests.solver.samples import catalog

PEAKS = Peaks(4.8e12, {"bf16": 989e12, "fp16": 989e12, "fp8": 1979e12}, 450e9, 50e6)
SHARES = Constants(
    "test",
    {name: ConstantPrior(name, "*", "*", "*", 0.9, 0.8, 1.1, "borrowed") for _, name in PROBED_CONSTANTS.values()},
)
H200 = Path(__file__).parents[2] / "catalog" / "benchmarks" / "devices" / "h200-sxm_torch-2.11.0.json"


def probe(memory: float = 0.8, bf16: float = 0.7, link: float = 0.6, probe_id: str = "dmeas_1") -> Probe:
    """A device that reaches these shares of its peaks."""
    seconds = [20e-6 + size / (link * 450e9) for size in (8e6, 64e6)]  # two devices send the payload once
    return Probe(
        probe_id,
        ((64e6, 0.5 * 4.8e12), (512e6, memory * 4.8e12)),
        (Gemm("bf16", 8192, 8192, 8192, bf16 * 989e12), Gemm("bf16", 16, 8192, 8192, 0.05 * 989e12)),
        ((2, 8e6, seconds[0]), (2, 64e6, seconds[1])),
    )


def reference() -> Probe:
    """The catalog's own micro-measurements of H200."""
    figures: dict[str, Any] = json.loads(H200.read_text())
    return Probe(
        figures["id"],
        tuple((c["bytes"], c["read_plus_write_gb_per_s"] * 1e9) for c in figures["copy"]),
        tuple(
            Gemm(g["dtype"], g["m"], g["n"], g["k"], 2 * g["m"] * g["n"] * g["k"] / (g["us"] * 1e-6))
            for g in figures["gemm"]
        ),
        tuple(
            (c["devices"], c["bytes"], c["us"] * 1e-6)
            for c in figures["collectives"]
            if c["collective"] == "all_reduce"
        ),
    )


class TestShares:
    def test_each_share_is_read_from_what_it_is_about(self) -> None:
        shares = probed_shares(probe(), PEAKS)
        assert shares == pytest.approx({"memory": 0.8, "gemm_16bit": 0.7, "link": 0.6}, rel=1e-6)

    def test_a_copy_that_fits_the_cache_says_nothing(self) -> None:
        assert memory_share(Probe("p", ((64e6, 9e12),), (), ()), PEAKS) is None
        large_cache = Peaks(5.3e12, {}, None, 256e6)
        assert memory_share(Probe("p", ((512e6, 9e12), (2048e6, 4e12)), (), ()), large_cache) == 4e12 / 5.3e12

    def test_narrow_products_are_bound_by_memory(self) -> None:
        assert not arithmetic_bound(Gemm("bf16", 16, 8192, 8192, 1.0), PEAKS)
        assert arithmetic_bound(Gemm("bf16", 8192, 8192, 8192, 1.0), PEAKS)

    def test_start_up_does_not_count_against_the_link(self) -> None:
        slow_start = [(2, size, 1e-3 + size / 270e9) for size in (8e6, 64e6)]
        assert link_bytes_per_s(slow_start) == pytest.approx(270e9)
        assert link_bytes_per_s([(2, 16e3, 1e-5), (2, 8e6, 1e-4)]) is None

    def test_nothing_is_said_without_a_datasheet_rate(self) -> None:
        assert probed_shares(probe(), Peaks(None, {}, None)) == {}


class TestRefined:
    def test_a_constant_is_the_probed_share_times_the_engines(self) -> None:
        found = {r.prior.name: r for r in refined("h100-sxm", [probe()], PEAKS, SHARES)}
        assert found["weight_read_efficiency"].prior.value == pytest.approx(0.8 * 0.9)
        assert found["gemm_efficiency_16bit"].prior.value == pytest.approx(0.7 * 0.9)
        assert found["link_efficiency"].prior.value == pytest.approx(0.6 * 0.9)
        assert "gemm_efficiency_fp8" not in found
        assert {r.prior.evidence for r in found.values()} == {("dmeas_1",)}

    def test_the_median_of_several_probes_counts(self) -> None:
        probes = [probe(memory, probe_id=f"dmeas_{memory}") for memory in (0.3, 0.8, 0.85)]
        found = {r.prior.name: r.prior for r in refined("h100-sxm", probes, PEAKS, SHARES)}
        assert found["weight_read_efficiency"].value == pytest.approx(0.8 * 0.9)
        assert len(found["weight_read_efficiency"].evidence) == 3

    @given(st.floats(0.01, 1.02), st.floats(0.01, 1.02), st.floats(0.01, 2.0))
    def test_no_constant_leaves_its_physical_range(self, memory: float, bf16: float, link: float) -> None:
        for each in refined("h100-sxm", [probe(memory, bf16, link)], PEAKS, SHARES):
            law, prior = CONSTANTS[each.prior.name], each.prior
            assert law.low <= prior.low <= prior.value <= prior.high <= law.high

    def test_they_stand_between_the_catalogs_rows_and_what_serving_runs_fitted(self) -> None:
        rows = [r.prior for r in refined("h100-sxm", [probe()], PEAKS, SHARES)]
        family = ConstantPrior("weight_read_efficiency", "hopper", "*", "vllm", 0.5, 0.4, 0.6, "measured")
        fitted = ConstantPrior("weight_read_efficiency", "*", "h100-sxm", "vllm", 0.6, 0.5, 0.7, "corrected")
        probed = resolve_constants([*rows, family], device="h100-sxm", family="hopper", engine="vllm")
        assert probed.si("weight_read_efficiency") == pytest.approx(0.72)
        assert probed.evidence == ("dmeas_1",)
        assert probed.without_probes().si("weight_read_efficiency") == 0.5
        assert probed.without_probes().evidence == ()
        served = resolve_constants([*rows, family, fitted], device="h100-sxm", family="hopper", engine="vllm")
        assert served.si("weight_read_efficiency") == 0.6
        assert resolve_constants([*rows, family], device="h200-sxm", family="hopper", engine="vllm").evidence == ()


def test_the_catalogs_shares_of_an_engine_are_fitted_over_probed_on_the_device_that_has_both() -> None:
    device = DeviceOut.model_validate(catalog().devices["h200-sxm"].model_dump(mode="json"))
    probed = probed_shares(reference(), peaks_of(device))
    newest = max(catalog().corrections, key=lambda row: row.number)
    (fitted,) = (c for c in newest.corrections if (c.device, c.engine) == ("h200-sxm", "vllm"))
    rows = {row.name: row for row in catalog().constants}
    for constant, (share, name) in PROBED_CONSTANTS.items():
        assert fitted.constants[constant].taken
        assert rows[name].value == pytest.approx(fitted.constants[constant].value / probed[share], rel=0.002), name
