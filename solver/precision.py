"""Number formats: how many bits a stored value takes, and on which arithmetic unit it is multiplied.

Bits per weight follow from each format's block layout (value bits + scale bits / block length);
they are definitions, not measurements. Sources are named per row.
"""

from dataclasses import dataclass
from typing import Literal

ComputeDtype = Literal["fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4"]
"""The dtypes whose dense matrix rates a device row may state."""


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """How weights are stored and multiplied.

    bits_per_weight: storage of a quantised matrix, block scales included.
    compute: dtypes able to multiply it, best first; the first one the device has is used.
        A format whose list starts with fp8/fp4/int8 quantises activations too; a weight-only format lists bf16/fp16.
    quantised: whether embeddings, head, norms, router and other small tensors stay at 16 bits.
    source: where the block layout is defined.
    group: input values that share one scale; a shard of a matrix must hold whole groups (1: no such
        limit, because engines pad the shard or quantise it after cutting).
    whole_file: bits are an average over the whole file, embedding and head included (GGUF).
    """

    name: str
    bits_per_weight: float
    compute: tuple[ComputeDtype, ...]
    quantised: bool
    source: str
    group: int = 1
    whole_file: bool = False

    @property
    def bytes_per_weight(self) -> float:
        return self.bits_per_weight / 8.0

    @property
    def quantised_activation_bytes(self) -> float:
        """Bytes of one activation in the second, quantised copy an 8-bit format multiplies with; 0 where none is made.

        >>> WEIGHT_FORMATS["fp8"].quantised_activation_bytes, WEIGHT_FORMATS["int4"].quantised_activation_bytes
        (1.0, 0.0)
        """
        return 1.0 if self.quantised and self.compute[0] in ("fp8", "int8") else 0.0


def _f(
    name: str,
    bits: float,
    compute: tuple[ComputeDtype, ...],
    *,
    quantised: bool,
    source: str,
    group: int = 1,
    whole_file: bool = False,
) -> tuple[str, WeightFormat]:
    return name, WeightFormat(name, bits, compute, quantised, source, group, whole_file)


WEIGHT_FORMATS: dict[str, WeightFormat] = dict(
    [
        _f("fp32", 32, ("fp32",), quantised=False, source="IEEE 754 binary32"),
        _f("tf32", 32, ("tf32",), quantised=False, source="NVIDIA A100 whitepaper: fp32 storage, 19-bit multiply"),
        _f("bf16", 16, ("bf16",), quantised=False, source="bfloat16: 1+8+7 bits"),
        _f("fp16", 16, ("fp16",), quantised=False, source="IEEE 754 binary16"),
        _f("fp8", 8, ("fp8",), quantised=True, source="OCP 8-bit floating point specification v1.0, per-tensor scale"),
        _f("int8", 8, ("int8",), quantised=True, source="W8A8, per-channel scale (amortised over rows)"),
        _f("int4", 4 + 16 / 128 + 4 / 128, ("bf16", "fp16"), quantised=True, group=128,
           source="GPTQ/AWQ group 128: fp16 scale and 4-bit zero point a group"),
        _f("int4_g32", 4 + 16 / 32, ("bf16", "fp16"), quantised=True, group=32,
           source="compressed-tensors pack-quantized, symmetric, group 32: one 16-bit scale a group (Kimi-K2.5)"),
        _f("nf4", 4 + 8 / 64 + 32 / (64 * 256), ("bf16", "fp16"), quantised=True,
           source="QLoRA (Dettmers et al. 2023): block 64, double-quantised 8-bit scales"),
        _f("mxfp4", 4 + 8 / 32, ("fp4", "bf16", "fp16"), quantised=True,
           source="OCP Microscaling Formats v1.0: block 32, one E8M0 scale"),
        _f("nvfp4", 4 + 8 / 16, ("fp4", "bf16", "fp16"), quantised=True,
           source="NVIDIA NVFP4: block 16, one E4M3 scale"),
        _f("q8_0", 8 + 16 / 32, ("fp16", "bf16", "fp32"), quantised=True, group=32, whole_file=True,
           source="GGUF Q8_0: block 32, one fp16 scale"),
        _f("q4_k_m", 4.83, ("fp16", "bf16", "fp32"), quantised=True, group=256, whole_file=True,
           source="GGUF: mixture of Q4_K (4.5 bits) and Q6_K (6.5625 bits) tensors; 4.83 averaged over Llama files"),
    ]
)  # fmt: skip

UNQUANTISED_BYTES = 2.0
"""Bytes of a parameter that a quantised checkpoint leaves in 16 bits."""

KV_CACHE_BYTES: dict[str, float] = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0}
"""Bytes of one stored key or value element by KV-cache dtype."""


@dataclass(frozen=True, slots=True)
class Precision:
    """What one deployment runs at: names from WEIGHT_FORMATS and KV_CACHE_BYTES."""

    weights: str = "bf16"
    kv_cache: str = "bf16"
