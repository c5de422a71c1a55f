"""Constants moved towards slow make no step shorter, each by itself."""

from dataclasses import replace

import numpy as np
import pytest

from solver.deployment.configuration import Configuration
from solver.layout import Layout
from solver.precision import Precision
from solver.prediction.moved_constants import moved_constants
from solver.step.constants import CONSTANTS
from solver.workload import EngineSettings
from tests.llm_shapes import shape
from tests.solver.samples import configuration

SETTINGS = EngineSettings("vllm", "0.24.0", max_sequences=64)
SERVED = {
    "mixture on a device never measured": configuration(shape("llama-4-scout"), "b300-sxm", Layout(4), Precision("fp8"), engine=SETTINGS),
    "mixture on Hopper": configuration(shape("mixtral-8x7b"), "h100-sxm", Layout(2), engine=SETTINGS),
    "pipeline": configuration(shape("llama-3.1-70b"), "h200-sxm", Layout(2, 2), engine=SETTINGS),
    "hybrid": configuration(shape("nemotron-3-nano-30b-a3b"), "h200-sxm", Layout(), engine=SETTINGS),
    "weights in 4 bits": configuration(shape("qwen3-30b-a3b"), "h100-sxm", Layout(), Precision("int4"), engine=SETTINGS),
    "experts in 4 bits": configuration(shape("gpt-oss-120b"), "h200-sxm", Layout(), Precision("mxfp4"), engine=SETTINGS),
    "copies that share experts": configuration(shape("deepseek-v2-lite"), "h200-sxm", Layout(1, 1, 2, 2), engine=SETTINGS),
    "latent attention": configuration(shape("deepseek-v2-lite"), "h200-sxm", Layout(), engine=SETTINGS),
}  # fmt: skip


def work_s(of: Configuration) -> float:
    """Seconds of steps of all sizes, with prompts and without, beside other batches where there are some."""
    tables, schedule = of.tables(), of.schedule()
    longer = 1.0 + (schedule.lane_slowed_fraction if of.batches > 1 else 0.0)
    attention = sum(slope for _, slope, _ in (*tables.context, *tables.pairs))
    return (
        float(np.sum(tables.mixed_s) * longer + np.sum(tables.decode_s) + np.sum(tables.head_s) + tables.sequence_s)
        + 1e6 * attention
    )


@pytest.mark.parametrize("name", SERVED)
def test_each_moved_towards_slow_makes_no_step_shorter(name: str) -> None:
    of = SERVED[name]
    slow, fast = (moved_constants(of.constants, towards_slow=towards).priors for towards in (True, False))
    moved = [
        one
        for one, prior in of.constants.priors.items()
        if slow[one].value != prior.value or fast[one].value != prior.value
    ]
    assert len(moved) > 20
    as_it_is = work_s(of)
    for one in moved:
        for priors, sign in ((slow, 1.0), (fast, -1.0)):
            constants = of.constants.replaced({one: priors[one].value}, "measured")
            other = work_s(replace(of, constants=constants))
            assert sign * (other - as_it_is) >= -1e-9 * as_it_is, (one, CONSTANTS[one].unit)
