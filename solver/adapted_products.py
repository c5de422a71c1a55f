"""The products of a model that its adapters add to, as engines fuse them: widths on one device of a tensor-parallel group."""

from dataclasses import dataclass

import numpy as np

from solver.adapters import Quantity
from solver.errors import InvalidInputError, UnsupportedError
from solver.llm_shape import LlmShape

ATTENTION_KINDS = ("full", "sliding", "chunked")


@dataclass(frozen=True, slots=True)
class AdaptedProduct:
    """``layers`` products x·W of ``inner`` × ``columns``, of ``slices`` matrices side by side with an adapter's A and B each.

    cut: the side that tensor parallelism cuts. key_values: (heads, columns a head) among the columns, copied once there are more
    devices than heads.
    """

    layers: int
    slices: int
    inner: float
    columns: float
    cut: str
    key_values: tuple[int, int] = (0, 0)

    def per_rank(self, tensor_parallel: Quantity) -> tuple[Quantity, Quantity]:
        """(inner, columns) on one device."""
        if self.cut == "inner":
            return self.inner / tensor_parallel, self.columns
        heads, width = self.key_values
        own = (self.columns - heads * width) / tensor_parallel
        return self.inner, own + width * (np.maximum(heads / tensor_parallel, 1.0) if heads else 0.0)

    def values(self, rank: float, tensor_parallel: Quantity = 1.0) -> Quantity:
        """Values of one adapter's A and B on one device: the side that is not cut is whole on every one.

        slices · inner · r  +  r · columns
        """
        inner, columns = self.per_rank(tensor_parallel)
        return rank * (self.slices * inner + columns)


def adapted_products(shape: LlmShape) -> tuple[AdaptedProduct, ...]:
    """Of a model with adapters; none without.

    Raises UnsupportedError for matrices whose adapters are not modelled: of routed experts, latent attention and recurrent layers.
    """
    if shape.adapters is None:
        return ()
    fused = dict(shape.adapters.fused)
    found: list[AdaptedProduct] = []
    for group in shape.attention:
        if group.kind == "none" or not {"query_key_value", "output"} & fused.keys():
            continue
        if group.kind not in ATTENTION_KINDS:
            raise UnsupportedError(
                "adapters_not_modelled",
                f"adapters of {shape.id}'s {group.kind} layers are not modelled: leave q, k, v and o_proj out of target_modules",
            )
        value = group.v_head_dim or group.head_dim
        width = group.head_dim + value
        if "query_key_value" in fused:
            columns = float(group.heads * group.head_dim + group.kv_heads * width)
            key_values = (group.kv_heads, width)
            found.append(AdaptedProduct(group.layers, 3, float(shape.hidden), columns, "columns", key_values))
        if "output" in fused:
            found.append(AdaptedProduct(group.layers, 1, float(group.heads * value), float(shape.hidden), "inner"))
    for block in shape.feed_forward:
        if not {"gate_up", "down"} & fused.keys():
            continue
        if block.experts:
            raise UnsupportedError(
                "adapters_not_modelled",
                f"adapters of {shape.id}'s routed experts are not modelled: leave gate, up and down_proj out of target_modules",
            )
        into = block.matrices - 1
        if "gate_up" in fused:
            columns = float(into * block.intermediate)
            found.append(AdaptedProduct(block.layers, into, float(shape.hidden), columns, "columns"))
        if "down" in fused:
            found.append(AdaptedProduct(block.layers, 1, float(block.intermediate), float(shape.hidden), "inner"))
    return tuple(found)


def adapter_values(shape: LlmShape, rank: float, tensor_parallel: int = 1) -> float:
    """Values of one adapter of this rank on one device of the group.

    Llama 3.1 8B, all seven matrices, rank 16: 41,943,040 (PEFT counts as many trainable parameters).
    """
    return float(sum(p.layers * np.asarray(p.values(rank, tensor_parallel)) for p in adapted_products(shape)))


def check_adapters(shape: LlmShape) -> None:
    """Raises InvalidInputError for adapters that are no smaller than what they adapt: they are not low-rank.

    An adapter of rank r adds r·(k + n) values to a matrix of k·n.
    """
    if shape.adapters is None:
        return
    rank = shape.adapters.largest_rank or shape.adapters.rank
    for product in adapted_products(shape):
        if float(np.asarray(product.values(rank))) >= product.inner * product.columns:
            raise InvalidInputError(
                f"adapters of rank {rank} are no smaller than the matrices of {shape.id} that they adapt "
                f"({product.inner:.0f} × {product.columns / product.slices:.0f})"
            )
