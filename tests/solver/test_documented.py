"""Everything that the optimiser may choose is documented by the engine it would run under: format, cache, ways of dividing the model.

Checked against the catalog's own rows, not through the solver's view of them, over all candidates of several models on all machines.
"""

import pytest

from catalog.engine_formats import formats_of
from service.recommendations.from_rows import device_from_row, node_from_row
from solver.candidates.tabulated import build_space
from solver.deployment.documented import drafts_on
from solver.errors import FigureMissingError
from solver.hardware import Device
from solver.precision import KV_CACHE_BYTES, WEIGHT_FORMATS
from solver.step.rates import compute_dtype
from solver.workload import EngineSettings
from tests.llm_shapes import shape
from tests.seeds import cases
from tests.solver.samples import priors
from tests.whole_catalog import whole_catalog

CATALOG = whole_catalog()
LLMS = ["llama-3.1-8b", "gpt-oss-120b", "llama-3.1-70b", "qwen2.5-72b", "mixtral-8x7b"]
"""A dense model and a mixture of experts first; each with every machine takes seconds."""
UNREAD = {
    ("vllm", "ascend"), ("vllm", "musa"), ("vllm", "xe-hpc"), ("vllm", "xe2"), ("vllm", "qualcomm-cloud-ai"),
    ("vllm", "jetson-orin"), ("vllm", "jetson-thor"), ("maxtext", "tpu-v3"), ("sambanova", "sambanova"),
    ("groq", "groq-lpu"), ("openvino", "npu"), ("qnn", "npu"),
}  # fmt: skip
"""Engines that a device is planned with and whose documentation of it nobody has read: bound by its matrix units alone."""


def _devices() -> dict[str, Device]:
    found = {}
    for row in CATALOG.devices.values():
        try:
            found[row.id] = device_from_row(row.model_dump(mode="json") | {"partitions": []})
        except FigureMissingError:
            continue
    return found


DEVICES = _devices()
NODES = [
    node_from_row(row.model_dump(mode="json"), DEVICES[row.device])
    for row in CATALOG.nodes.values()
    if row.device in DEVICES
]
LARGEST = list({node.device.id: node for node in sorted(NODES, key=lambda node: node.devices)}.values())
"""One machine of each device, on which most ways of dividing a model fit: documentation is of devices, not of machines."""
MACHINES = NODES[: cases(len(NODES), few=0)] or LARGEST


@pytest.mark.parametrize("llm", LLMS[: cases(len(LLMS), few=2)])
@pytest.mark.parametrize("engines", [(), ("llama.cpp",)])
def test_every_candidate_is_documented(llm: str, engines: tuple[str, ...]) -> None:
    space = build_space(
        shape(llm), MACHINES, priors(), tuple(WEIGHT_FORMATS), tuple(KV_CACHE_BYTES),
        EngineSettings(max_context_tokens=4_096), engines=engines,
    )  # fmt: skip
    unread = set()
    for row in space.rows:
        platform = space.platforms[row.platform]
        pair = (platform.engine, platform.device.family)
        documented = formats_of(*pair)
        if documented is None:
            unread.add(pair)
            continue
        assert row.precision.weights in documented.weights, (pair, row)
        assert row.precision.kv_cache in documented.kv_cache, (pair, row)
        own = compute_dtype(platform.device, row.precision.weights) in WEIGHT_FORMATS[row.precision.weights].compute
        assert own or row.precision.weights in documented.widened, (pair, row)
        for way in ("tensor", "pipeline", "data", "expert"):
            if getattr(row.layout, f"{way}_parallel") > 1 and documented.parallelism is not None:
                assert way in documented.parallelism, (pair, row)
    assert unread <= UNREAD
    assert len(space.rows) > 100


def test_nothing_drafts_where_the_matrix_leaves_it_out() -> None:
    for device in DEVICES.values():
        documented = formats_of("vllm", device.family) if "vllm" in device.engines else None
        if documented is not None and documented.features is not None and drafts_on(device, "vllm", 1):
            assert "drafting" in documented.features, device.id
    assert drafts_on(DEVICES["h100-sxm"], "vllm", 1)
    assert not drafts_on(DEVICES["epyc-9654"], "vllm", 1), "of the same vendor as GPUs on which it does"
