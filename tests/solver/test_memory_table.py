"""The table for many deployments equals the plan of each."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from solver.deployment.layout_rules import layout_problem
from solver.errors import DoesNotFitError
from solver.layout import Layout
from solver.memory.fits import EngineMemory, memory_plan
from solver.memory.table import memory_table
from solver.precision import Precision
from solver.workload import EngineSettings
from tests.llm_shapes import llm_rows, shape
from tests.seeds import cases

ENGINES = [
    EngineMemory(6e8, 3e8, 4e8, 1e6, 2.7e7, 2.5e7, 1.2e7, 3.0, 3.0, 16, True),
    EngineMemory(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 16, True),
]
LAYOUTS = [
    Layout(tensor, pipeline, 1, expert)
    for tensor in range(1, 9)
    for pipeline in range(1, 24 // tensor + 1)
    for expert in sorted({1, tensor})
]


@settings(max_examples=cases(60), deadline=None)
@given(st.sampled_from(sorted(llm_rows())), st.sampled_from([None, 4096, 32768]), st.integers(0, 2**32 - 1))
@example("bge-large-en-v1.5", None, 0)  # caches nothing: its stages differ in what they hold alone
def test_every_entry_equals_its_plan(llm: str, context: int | None, seed: int) -> None:
    llm_shape, engine_settings = shape(llm), EngineSettings(max_context_tokens=context)
    deployments = [
        (Precision(weights, kv_cache), layout)
        for weights, kv_cache in (("bf16", "bf16"), ("fp8", "fp8"), ("int4", "bf16"))
        for layout in LAYOUTS
        if layout_problem(llm_shape, layout, weights=weights) is None
    ]
    table = memory_table(llm_shape, deployments, engine_settings, block_tokens=16, pooled_cache=True)
    rng = np.random.default_rng(seed)
    entries = rng.integers(0, len(deployments), 20)
    memory = rng.uniform(16e9, 400e9, 20)
    which = rng.integers(0, len(ENGINES), 20)
    plans = table.plans(entries, memory, ENGINES, which)
    for i, entry in enumerate(entries):
        precision, layout = deployments[entry]
        try:
            plan = memory_plan(llm_shape, memory[i], precision, layout, engine_settings, ENGINES[which[i]])
        except DoesNotFitError:
            assert not plans.fits[i]
            continue
        assert plans.fits[i]
        assert plans.kv_cache_tokens[i] == pytest.approx(plan.kv_cache_tokens, abs=1)
        assert plans.weights_bytes[i] == pytest.approx(plan.weights_bytes)
        assert plans.activations_bytes[i] == pytest.approx(plan.activations_bytes)
        assert plans.reserved_bytes[i] == pytest.approx(plan.reserved_bytes)
        assert plans.kv_cache_bytes[i] == pytest.approx(plan.kv_cache_bytes)
