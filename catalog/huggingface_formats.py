"""In which number format a checkpoint is published, from ``quantization_config`` and ``dtype``."""

import re
from collections import Counter
from typing import TypeVar

from catalog.huggingface_fields import ConfigError, Fields

_Key = TypeVar("_Key", str, int)

_WHOLE_ATTENTION = re.compile(r"attn(\.?\*.*)?$")
"""Patterns that leave the whole attention block unquantised, not just its norms."""
_DTYPES = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "float": "fp32",
    "float8_e4m3fn": "fp8",
    "fp8": "fp8",
    "auto": "bf16",
}
_METHODS = {"fp8": "fp8", "fbgemm_fp8": "fp8", "mxfp4": "mxfp4", "nvfp4": "nvfp4"}
_ALGORITHMS = {
    "FP8": "fp8",
    "FP8_PER_CHANNEL_PER_TOKEN": "fp8",
    "NVFP4": "nvfp4",
    "W4A16_NVFP4": "nvfp4",
    "MXFP4": "mxfp4",
    "W4A16": "int4",
    "W4A16_AWQ": "int4",
    "INT4_AWQ": "int4",
    "INT8": "int8",
    "W8A8_SQ_PER_CHANNEL": "int8",
}


def native_formats(top: Fields, text: Fields, *, sparse: bool) -> tuple[str, str | None]:
    """The weights' format and, where the routed experts differ from the rest, the format of the rest.

    >>> gpt_oss = Fields({"quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["self_attn"]}})
    >>> native_formats(gpt_oss, gpt_oss, sparse=True)
    ('mxfp4', 'bf16')
    """
    dtype = text.text("torch_dtype", "dtype", default=top.text("torch_dtype", "dtype", default="bfloat16"))
    plain = _DTYPES.get(dtype.removeprefix("torch."))
    if plain is None:
        raise ConfigError("torch_dtype", f"unknown dtype {dtype!r:.40}")
    quantization = top.part("quantization_config") or text.part("quantization_config")
    if quantization is None:
        return plain, None
    weights = _quantised(quantization)
    experts = text.text("expert_dtype", default="")
    if experts == "fp4" and weights == "fp8":  # DeepSeek-V4: experts in MXFP4, everything else in FP8
        return "mxfp4", "fp8"
    if not sparse:
        return weights, None
    if quantization.text("quant_method", default="") == "fp8" and weights != "fp8":
        return weights, "fp8"
    kept = [str(p) for key in ("ignore", "modules_to_not_convert") for p in quantization.items(key)]
    keeps_attention = any(_WHOLE_ATTENTION.search(p) for p in kept)
    return weights, plain if keeps_attention else None


def _quantised(quantization: Fields) -> str:
    algorithm = quantization.text("moe_quant_algo", "quant_algo", default="").upper()
    if algorithm == "MIXED_PRECISION":
        layers = quantization.part("quantized_layers")
        votes = Counter(_layer_algorithms(layers)) if layers is not None else Counter()
        algorithm = "NVFP4" if votes["NVFP4"] or votes["W4A16_NVFP4"] else "FP8"
    if algorithm:
        return _look_up(_ALGORITHMS, algorithm, "quantization_config.quant_algo")
    method = quantization.text("quant_method").lower()
    if method in ("gptq", "awq", "gptq_marlin", "auto-round"):
        return _integer_format(quantization.integer("bits", "w_bit", default=4, high=16), None)
    if method in ("bitsandbytes", "bnb"):
        return "nf4" if quantization.flag("load_in_4bit", "_load_in_4bit") else "int8"
    if method in ("compressed-tensors", "modelopt", "quark"):
        return _by_groups(quantization)
    return _look_up(_METHODS, method, "quantization_config.quant_method")


def _layer_algorithms(layers: Fields) -> list[str]:
    return [
        (part.text("quant_algo", default="") if (part := layers.part(key)) is not None else "").upper()
        for key in layers.names()
    ]


def _by_groups(quantization: Fields) -> str:
    layout = quantization.text("format", default="")
    for name in ("mxfp4", "nvfp4"):
        if layout.startswith(name):
            return name
    groups = quantization.part("config_groups")
    first = groups.part(*groups.names()) if groups is not None and groups.names() else None
    weights = first.part("weights") if first is not None else None
    if weights is None:
        raise ConfigError("quantization_config.config_groups", "no description of the weights")
    bits = weights.integer("num_bits", high=32)
    if weights.text("type", default="int") == "float":
        return _look_up({8: "fp8", 4: "nvfp4"}, bits, "quantization_config.config_groups.weights.num_bits")
    return _integer_format(bits, weights.integer("group_size", default=128, low=-1))


def _integer_format(bits: int, group: int | None) -> str:
    if bits == 4 and group == 32:
        return "int4_g32"
    return _look_up({4: "int4", 8: "int8"}, bits, "quantization_config.bits")


def _look_up(table: dict[_Key, str], key: _Key, field: str) -> str:
    if key not in table:
        raise ConfigError(field, f"unknown {key!r:.60}; known: {', '.join(map(str, table))}")
    return table[key]
