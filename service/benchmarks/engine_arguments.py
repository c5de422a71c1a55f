"""What an engine's command line says about layout and precision."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from solver.engine.profiles import FLASHINFER, TRITON
from solver.workload import EngineSettings

_DEGREES = {
    "--tensor-parallel-size": "tensor_parallel", "-tp": "tensor_parallel", "--tp-size": "tensor_parallel",
    "--tp": "tensor_parallel",
    "--pipeline-parallel-size": "pipeline_parallel", "-pp": "pipeline_parallel", "--pp-size": "pipeline_parallel",
    "--data-parallel-size": "data_parallel", "-dp": "data_parallel", "--dp-size": "data_parallel",
    "--tp_size": "tensor_parallel", "--tensor_parallel_size": "tensor_parallel",
    "--pp_size": "pipeline_parallel", "--pipeline_parallel_size": "pipeline_parallel",
}  # fmt: skip
_SIXTEEN_BIT = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32"}
_QUANTISED = {"fp8": "fp8", "mxfp4": "mxfp4", "modelopt_fp4": "nvfp4", "bitsandbytes": "nf4"}
_CACHE = {
    "fp8": "fp8", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8", "bfloat16": "bf16", "float16": "fp16", "int8": "int8",
    "f16": "fp16", "bf16": "bf16", "f32": "fp32",
}  # fmt: skip


LLAMA_CPP: tuple[tuple[tuple[str, ...], str, type], ...] = (
    (("--batch-size", "-b"), "max_batched_tokens", int),
    (("--parallel", "-np"), "max_sequences", int),
)


@dataclass(frozen=True, slots=True)
class StatedByArguments:
    """What was found; None where the command line is silent or leaves it to the checkpoint ("auto")."""

    tensor_parallel: int | None = None
    pipeline_parallel: int | None = None
    data_parallel: int | None = None
    weights: str | None = None
    kv_cache: str | None = None


def read_arguments(arguments: Sequence[str]) -> StatedByArguments:
    """Layout and precision from the flags of vLLM, SGLang, TensorRT-LLM or llama.cpp, as ``--flag value`` or ``--flag=value``.

    >>> read_arguments(["--tensor-parallel-size", "2", "--quantization=fp8"])
    StatedByArguments(tensor_parallel=2, pipeline_parallel=None, data_parallel=None, weights='fp8', kv_cache=None)
    """
    values = _flags(arguments)
    degrees = {name: int(values[flag]) for flag, name in _DEGREES.items() if values.get(flag, "").isdigit()}
    weights = _QUANTISED.get(values.get("--quantization", values.get("-q", "")))
    return StatedByArguments(
        tensor_parallel=degrees.get("tensor_parallel"),
        pipeline_parallel=degrees.get("pipeline_parallel"),
        data_parallel=degrees.get("data_parallel"),
        weights=weights or _SIXTEEN_BIT.get(values.get("--dtype", "")),
        kv_cache=_CACHE.get(values.get("--kv-cache-dtype", values.get("--cache-type-k", ""))),
    )


def drafts(arguments: Sequence[str]) -> bool:
    """Whether the engine was told to draft tokens: its times are then not those of the plain configuration.

    >>> drafts(["--speculative-config", "{}"]), drafts(["--model-draft=m.gguf"]), drafts(["--max-num-seqs", "64"])
    (True, True, False)
    """
    return any(word.startswith(("--speculative", "--spec-", "--model-draft", "-md")) for word in arguments)


def engine_settings(name: str, version: str | None, arguments: Sequence[str]) -> EngineSettings:
    """The settings that change memory or time, as the command line states them; the stated defaults elsewhere.

    >>> engine_settings("vllm", "0.24.0", ["--max-num-seqs", "64", "--max-model-len=8192"]).max_sequences
    64
    >>> engine_settings("vllm", "0.24.0", ["--api-server-count=8", "--data-parallel-size", "2"]).api_servers
    4
    >>> engine_settings("vllm", "0.24.0", ["--gdn-prefill-backend", "triton"]).scan_kernel
    'triton'
    >>> engine_settings("vllm", "0.24.0", ["--load-format", "dummy"]).random_weights
    True
    """
    values = _flags(arguments)
    stated: dict[str, Any] = {}  # the fields are of int and of float
    for flags, field, kind in (
        (("--max-num-batched-tokens", "--chunked-prefill-size", "--max_num_tokens"), "max_batched_tokens", int),
        (("--max-num-seqs", "--max-running-requests", "--max_batch_size"), "max_sequences", int),
        (("--gpu-memory-utilization",), "memory_fraction", float),
        (("--max-model-len", "--context-length", "--max_seq_len"), "max_context_tokens", int),
        (("--scheduler-recv-interval",), "admission_interval_steps", int),
        (("--api-server-count", "-asc"), "api_servers", int),
        (("--max-cudagraph-capture-size",), "max_captured_tokens", int),
        *(LLAMA_CPP if name == "llama.cpp" else ()),
    ):
        for flag in flags:
            try:
                stated[field] = kind(values[flag])
            except (KeyError, ValueError):
                continue
    if "--kv-cache-memory-bytes" in values:  # vLLM then asks nothing of the fraction
        stated.pop("memory_fraction", None)
    if "api_servers" in stated:  # told of all copies of attention together
        copies = values.get("--data-parallel-size", values.get("-dp", "1"))
        stated["api_servers"] = max(1, stated["api_servers"] // max(1, int(copies) if copies.isdigit() else 1))
    positive = {field: value for field, value in stated.items() if 0 < value < 1e9}
    kernel = values.get("--gdn-prefill-backend")
    return replace(
        EngineSettings(name, version),
        scan_kernel=kernel if kernel in (TRITON, FLASHINFER) else None,
        random_weights=values.get("--load-format") == "dummy",
        **positive,
    )


def _flags(arguments: Sequence[str]) -> dict[str, str]:
    """``--flag value`` and ``--flag=value`` by flag."""
    words = [part for argument in arguments for part in argument.split("=", 1)]
    pairs = zip_longest(words, words[1:], fillvalue="")
    return {flag: value for flag, value in pairs if flag.startswith("-") and not value.startswith("-")}
