"""The command line of TensorRT-LLM for one replica of a plan."""

import math

from service.deployments.launch import (
    Launch,
    Where,
    checked_launch,
    checkpoint,
    release_options,
    require_engine,
    weight_words,
)
from service.deployments.plan import DeviceMemory, ReplicaKind
from service.deployments.refusals import PartError
from service.deployments.words import Variable, Word, yaml_documents

MADE: dict[str, list[Word]] = {}
"""Formats made from a published one as it loads: none, but the published 16 bits themselves."""
SIXTEEN_BIT = ("bf16", "fp16")


def free_fraction(memory: DeviceMemory, memory_fraction: float) -> float:
    """``--kv_cache_free_gpu_memory_fraction``: the cache over what weights and buffers leave, rounded down.

    The plan leaves ``1 - memory_fraction`` of a device unused, and its buffers are taken before the cache is:

        cache / (cache + (1 - memory_fraction) · memory)

    >>> free_fraction(DeviceMemory(80e9, 40e9, 25e9, 100_000), 0.92)
    0.796
    """
    unused = (1.0 - memory_fraction) * memory.visible_bytes
    return math.floor(memory.kv_cache_bytes / (memory.kv_cache_bytes + unused) * 1000) / 1000


def trtllm_launch(kind: ReplicaKind, version: str | None, where: Where) -> Launch:
    """What the prediction assumed, as options. Raises PartError for what TensorRT-LLM cannot be told.

    A key-value cache in another format than the checkpoint's is stated in a file, which the variable CONFIG names
    (``kv_cache_config.dtype``); without one TensorRT-LLM follows the checkpoint.
    """
    require_engine(kind, "tensorrt-llm")
    settings, layout, precision = kind.settings, kind.line.layout, kind.line.precision
    if where.rank is not None:
        raise PartError(kind.part, "TensorRT-LLM spans nodes under MPI or Slurm, not by a command on each")
    if kind.memory is None:
        raise PartError(
            kind.part, "how the plan divides a device's memory is not known, and TensorRT-LLM's fraction needs it"
        )
    if layout.data_parallel > 1:
        raise PartError(kind.part, "data-parallel attention is another layout in TensorRT-LLM than the one planned")
    if layout.tensor_parallel % layout.expert_parallel:
        raise PartError(kind.part, "TensorRT-LLM's expert parallelism divides the tensor-parallel ranks")
    if precision.weights != kind.model.native_weights or precision.weights not in SIXTEEN_BIT:
        weight_words(kind, MADE)
    words: list[Word] = ["trtllm-serve", checkpoint(kind), "--backend", "pytorch"]
    words += ["--host", "0.0.0.0", "--port", where.port]
    for option, degree in (
        ("--tp_size", layout.tensor_parallel),
        ("--pp_size", layout.pipeline_parallel),
        ("--ep_size", layout.expert_parallel),
    ):
        if degree > 1:
            words += [option, str(degree)]
    words += ["--max_batch_size", str(settings.max_sequences), "--max_num_tokens", str(settings.max_batched_tokens)]
    if settings.max_context_tokens is not None:
        words += ["--max_seq_len", str(settings.max_context_tokens)]
    words += ["--enable_chunked_prefill"]
    words += ["--kv_cache_free_gpu_memory_fraction", f"{free_fraction(kind.memory, settings.memory_fraction):g}"]
    config = None
    if precision.kv_cache == "fp8":
        config = yaml_documents([{"kv_cache_config": {"dtype": "fp8"}}])
        words += ["--extra_llm_api_options", Variable("CONFIG")]
    elif precision.kv_cache != kind.model.native_weights:
        reason = f"TensorRT-LLM's key-value cache follows the checkpoint ({kind.model.native_weights}) or is fp8"
        raise PartError(kind.part, f"{reason}; planned is {precision.kv_cache}")
    launch = checked_launch(kind, release_options(kind, "tensorrt-llm", version), words)
    return Launch(launch.engine, launch.version, launch.words, launch.image, config=config)
