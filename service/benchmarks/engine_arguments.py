"""What an engine's command line says about layout and precision."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

_DEGREES = {
    "--tensor-parallel-size": "tensor_parallel", "-tp": "tensor_parallel", "--tp-size": "tensor_parallel",
    "--tp": "tensor_parallel",
    "--pipeline-parallel-size": "pipeline_parallel", "-pp": "pipeline_parallel", "--pp-size": "pipeline_parallel",
    "--data-parallel-size": "data_parallel", "-dp": "data_parallel", "--dp-size": "data_parallel",
}  # fmt: skip
_SIXTEEN_BIT = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32"}
_QUANTISED = {"fp8": "fp8", "mxfp4": "mxfp4", "modelopt_fp4": "nvfp4", "bitsandbytes": "nf4"}
_CACHE = {
    "fp8": "fp8", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8", "bfloat16": "bf16", "float16": "fp16", "int8": "int8",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class StatedByArguments:
    """What was found; None where the command line is silent or leaves it to the checkpoint ("auto")."""

    tensor_parallel: int | None = None
    pipeline_parallel: int | None = None
    data_parallel: int | None = None
    weights: str | None = None
    kv_cache: str | None = None


def read_arguments(arguments: Sequence[str]) -> StatedByArguments:
    """Layout and precision from vLLM's or SGLang's flags, as ``--flag value`` or ``--flag=value``.

    >>> read_arguments(["--tensor-parallel-size", "2", "--quantization=fp8"])
    StatedByArguments(tensor_parallel=2, pipeline_parallel=None, data_parallel=None, weights='fp8', kv_cache=None)
    """
    words = [part for argument in arguments for part in argument.split("=", 1)]
    pairs = zip_longest(words, words[1:], fillvalue="")
    values = {flag: value for flag, value in pairs if flag.startswith("-") and not value.startswith("-")}
    degrees = {name: int(values[flag]) for flag, name in _DEGREES.items() if values.get(flag, "").isdigit()}
    weights = _QUANTISED.get(values.get("--quantization", values.get("-q", "")))
    return StatedByArguments(
        tensor_parallel=degrees.get("tensor_parallel"),
        pipeline_parallel=degrees.get("pipeline_parallel"),
        data_parallel=degrees.get("data_parallel"),
        weights=weights or _SIXTEEN_BIT.get(values.get("--dtype", "")),
        kv_cache=_CACHE.get(values.get("--kv-cache-dtype", "")),
    )
