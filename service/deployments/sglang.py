"""The command line of SGLang for one replica of a plan."""

import json
import math

from service.deployments.launch import (
    Launch,
    Where,
    adapter_words,
    checked_launch,
    checkpoint,
    release_options,
    require_engine,
    weight_words,
)
from service.deployments.plan import DeviceMemory, ReplicaKind
from service.deployments.refusals import PartError
from service.deployments.words import Variable, Word
from solver.units import bytes_from_gib

MADE: dict[str, list[Word]] = {
    "bf16": ["--dtype", "bfloat16"],
    "fp16": ["--dtype", "float16"],
    "fp32": ["--dtype", "float32"],
    "fp8": ["--dtype", "bfloat16", "--quantization", "fp8"],
    "nf4": ["--dtype", "bfloat16", "--quantization", "bitsandbytes"],
}
CACHE = {"bf16": "bfloat16", "fp8": "fp8_e4m3"}
RENDEZVOUS_PORT = 20_000


def static_fraction(memory: DeviceMemory) -> float:
    """``--mem-fraction-static``: weights and key-value cache over all the memory that a process sees, rounded down.

    SGLang takes activations and graphs from the rest (server_args.py), so the fraction is smaller than the plan's own.

    >>> static_fraction(DeviceMemory(80e9, 40e9, 25e9, 100_000))
    0.812
    """
    return math.floor((memory.weights_bytes + memory.kv_cache_bytes) / memory.visible_bytes * 1000) / 1000


def sglang_launch(kind: ReplicaKind, version: str | None, where: Where) -> Launch:
    """What the prediction assumed, as options. Raises PartError for what SGLang cannot be told.

    ``--max-running-requests`` is of all data-parallel ranks together there, and of each in the plan.
    """
    require_engine(kind, "sglang")
    settings, layout = kind.settings, kind.line.layout
    if kind.memory is None:
        raise PartError(
            kind.part, "how the plan divides a device's memory is not known, and SGLang's fraction needs it"
        )
    if kind.line.layout.data_parallel > 1:
        raise PartError(kind.part, "data-parallel attention is another layout in SGLang than the one planned")
    words: list[Word] = ["python3", "-m", "sglang.launch_server", "--model-path", checkpoint(kind)]
    words += ["--host", "0.0.0.0", "--port", where.port, "--served-model-name", kind.model.llm]
    for option, degree in (
        ("--tp-size", layout.tensor_parallel),
        ("--pp-size", layout.pipeline_parallel),
        ("--ep-size", layout.expert_parallel),
    ):
        if degree > 1:
            words += [option, str(degree)]
    words += weight_words(kind, MADE)
    if kind.line.precision.kv_cache not in CACHE:
        raise PartError(kind.part, f"SGLang has no key-value cache in {kind.line.precision.kv_cache}")
    words += ["--kv-cache-dtype", CACHE[kind.line.precision.kv_cache]]
    if settings.max_context_tokens is not None:
        words += ["--context-length", str(settings.max_context_tokens)]
    words += ["--max-running-requests", str(settings.max_sequences)]
    words += ["--chunked-prefill-size", str(settings.max_batched_tokens)]
    if (settings.admission_interval_steps or 1) > 1:
        words += ["--scheduler-recv-interval", str(settings.admission_interval_steps)]
    words += adapter_words(kind, "--max-loras-per-batch", "--max-loaded-loras")
    words += ["--mem-fraction-static", f"{static_fraction(kind.memory):g}"]
    if settings.host_cache_gib:  # of each rank, in GB
        words += ["--enable-hierarchical-cache", "--hicache-size"]
        words.append(str(math.floor(bytes_from_gib(settings.host_cache_gib) / 1e9)))
    if settings.disk_cache_gib:  # of each rank too
        most = {"max_size": math.floor(bytes_from_gib(settings.disk_cache_gib))}
        words += ["--hicache-write-policy", "write_through", "--hicache-storage-backend", "file"]
        words += ["--hicache-storage-backend-extra-config", json.dumps(most)]
    if where.rank is not None:
        first = (
            Variable(where.master.name, f":{RENDEZVOUS_PORT}") if isinstance(where.master, Variable) else where.master
        )
        words += ["--nnodes", str(kind.nodes), "--node-rank", where.rank, "--dist-init-addr", first]
    return checked_launch(kind, release_options(kind, "sglang", version), words)
