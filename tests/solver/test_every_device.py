"""Every device of the catalog either gets an estimate that obeys physics, or is refused with a reason."""

import math
from collections import Counter

import pytest

from service.recommendations.from_rows import device_from_row
from solver.deployment.deploy import deploy
from solver.engine.profiles import engines_for
from solver.errors import DoesNotFitError, FigureMissingError, UnsupportedError
from solver.hardware import Device
from solver.layout import Layout
from solver.lengths import fixed_lengths
from solver.precision import Precision
from solver.prediction.estimate import Estimate, estimate
from solver.step.constants import resolve_constants
from solver.workload import EngineSettings, Load, Traffic
from tests.llm_shapes import shape
from tests.solver.samples import catalog, priors

DEVICE_IDS = sorted(catalog().devices)
TRAFFIC = Traffic(fixed_lengths(128), fixed_lengths(32))
LLMS = ("llama-3.1-8b", "llama-3.2-1b")
"""The second where the first fits no layout."""
PRECISIONS = (Precision("bf16", "bf16"), Precision("fp16", "fp16"), Precision("fp8", "bf16"), Precision("int8", "fp16"))
LAYOUTS = tuple(Layout(t, p) for t in (1, 2, 4, 8, 16, 32) for p in (1, 2, 8, 16))
"""From one chip to the 512 that a model spread over on-chip memory needs."""

ESTIMATED = "estimated"


def outcome(device_id: str) -> tuple[str, Estimate | None, Device | None]:
    """(``estimated`` or why not, the estimate, the device): the first model, precision and layout that run."""
    try:
        found = device_from_row(catalog().devices[device_id].model_dump())
    except FigureMissingError as missing:
        return f"figure_missing: {missing.figure}", None, None
    engine = next(iter(engines_for(found.engines, "vllm")), None)
    if engine is None:
        return "engine_not_available", None, found
    constants = resolve_constants(priors(), device=device_id, family=found.family, engine=engine)
    settings = EngineSettings(engine, max_batched_tokens=2048, max_sequences=16, max_context_tokens=512)
    reason = ""
    for llm in LLMS:
        for precision in PRECISIONS:
            for layout in LAYOUTS:
                try:
                    made = deploy(shape(llm), found, constants, layout, precision, settings, TRAFFIC)
                    load = Load("closed", concurrency=4, requests=16)
                    return ESTIMATED, estimate(made.configuration, TRAFFIC, load), found
                except UnsupportedError as problem:
                    reason = reason or problem.reason
                except DoesNotFitError:
                    reason = "does_not_fit"
                except FigureMissingError as missing:
                    reason = f"figure_missing: {missing.figure}"
    return reason, None, found


@pytest.fixture(scope="module")
def outcomes() -> dict[str, tuple[str, Estimate | None, Device | None]]:
    return {device_id: outcome(device_id) for device_id in DEVICE_IDS}


class TestEveryDevice:
    @pytest.mark.parametrize("device_id", DEVICE_IDS)
    def test_estimated_or_refused_with_a_reason(
        self, device_id: str, outcomes: dict[str, tuple[str, Estimate | None, Device | None]]
    ) -> None:
        reason, found, on = outcomes[device_id]
        if reason != ESTIMATED:
            assert reason.split(":")[0] in {
                "figure_missing", "engine_not_available", "does_not_fit", "precision_not_on_device",
            }, reason  # fmt: skip
            return
        assert found is not None
        assert on is not None
        assert found.basis in ("borrowed", "analytical")  # nothing was measured with these settings
        for values in (found.time_to_first_token_s, found.time_per_output_token_s, found.end_to_end_s):
            assert [values[p].expected for p in ("p50", "p90", "p95", "p99")] == sorted(
                values[p].expected for p in ("p50", "p90", "p95", "p99")
            )
            for interval in values.values():
                assert 0 < interval.low <= interval.expected <= interval.high < math.inf
        assert found.time_per_output_token_s["mean"].expected >= found.bound.time_per_output_token_s
        assert found.output_tokens_per_s.expected <= found.bound.output_tokens_per_s
        assert 1e-5 < found.time_per_output_token_s["mean"].expected < 30.0
        known_power = on.power_limit_w > 0
        assert math.isnan(found.power_w.expected) != known_power

    def test_nearly_every_device_with_its_figures_is_estimated(
        self, outcomes: dict[str, tuple[str, Estimate | None, Device | None]]
    ) -> None:
        counts = Counter(reason.split(":")[0] for reason, _, on in outcomes.values() if on is not None)
        assert counts[ESTIMATED] >= 0.85 * sum(counts.values())

    @pytest.mark.parametrize(
        "category",
        ["datacenter_gpu", "consumer_gpu", "workstation_gpu", "tpu", "trainium", "gaudi", "cpu", "unified_memory", "edge",
         "risc_v", "dataflow"],
    )  # fmt: skip
    def test_every_class_has_one(
        self, category: str, outcomes: dict[str, tuple[str, Estimate | None, Device | None]]
    ) -> None:
        assert any(
            reason == ESTIMATED and on is not None and on.category == category for reason, _, on in outcomes.values()
        )

    def test_announced_parts_are_refused_by_the_figure_they_lack(
        self, outcomes: dict[str, tuple[str, Estimate | None, Device | None]]
    ) -> None:
        for row in catalog().devices.values():
            if row.memory_gib is None or row.memory_bandwidth_gb_per_s is None:
                assert outcomes[row.id][0].startswith("figure_missing"), row.id

    def test_on_chip_memory_needs_many_chips(self) -> None:
        """2.47 GB of weights at 0.23 GB of SRAM a chip: at least eleven chips, all reading at once.

        A compiled runtime holds no libraries on the chip: what an engine takes on a GPU would fill it.
        """
        lpu = device_from_row(catalog().devices["groq-lpu-v1"].model_dump())
        given = resolve_constants(priors(), device=lpu.id, family=lpu.family, engine="groq")
        compiled = given.replaced({"runtime_bytes": 0.0, "collective_bytes": 0.0}, "analytical")
        settings = EngineSettings("groq", max_batched_tokens=256, max_sequences=4, max_context_tokens=512)
        fits = {}
        for layout in LAYOUTS:
            try:
                made = deploy(
                    shape("llama-3.2-1b"), lpu, compiled, layout, Precision("fp16", "fp16"), settings, TRAFFIC
                )
            except (DoesNotFitError, UnsupportedError):
                continue
            load = Load("closed", concurrency=1, requests=4)
            fits[layout] = estimate(made.configuration, TRAFFIC, load).time_per_output_token_s["mean"].expected
        assert fits
        assert min(layout.devices for layout in fits) >= 2.47e9 / lpu.memory_bytes
        assert all(seconds > 2.47e9 / (lpu.memory_bytes_per_s * layout.devices) for layout, seconds in fits.items())
