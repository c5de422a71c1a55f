"""Which layouts can run a model: every way an engine refuses, as a reason and a sentence.

The rules are vLLM's: query heads are cut evenly; key-value heads are cut evenly or copied evenly; widths are cut
evenly, and in whole groups where a weight format shares scales; stages hold at least a layer; experts are spread
evenly.
"""

from collections.abc import Iterator
from typing import NamedTuple

from solver.layout import Layout
from solver.llm_shape import LlmShape
from solver.memory.weights import padded_vocabulary, weight_format


class LayoutProblem(NamedTuple):
    """Why a layout cannot run: a stable slug, and the same in words."""

    reason: str
    message: str


def layout_problem(
    shape: LlmShape, layout: Layout, *, weights: str = "bf16", domain_devices: int | None = None
) -> LayoutProblem | None:
    """The first rule the layout breaks, or None.

    domain_devices: devices that one scale-up domain joins; tensor parallelism stays inside it.
    """
    degrees = (layout.tensor_parallel, layout.pipeline_parallel, layout.data_parallel, layout.expert_parallel)
    if min(degrees) < 1:
        return LayoutProblem("degree_below_one", f"every degree of parallelism is at least 1, got {degrees}")
    if domain_devices is not None and layout.tensor_parallel > domain_devices:
        return LayoutProblem(
            "tensor_parallel_exceeds_domain",
            f"tensor parallelism {layout.tensor_parallel} spans more than the {domain_devices} devices of a domain",
        )
    return (
        _heads_problem(shape, layout.tensor_parallel)
        or _widths_problem(shape, layout, weights)
        or _pipeline_problem(shape, layout.pipeline_parallel)
        or _experts_problem(shape, layout)
    )


def _heads_problem(shape: LlmShape, tensor_parallel: int) -> LayoutProblem | None:
    for group in shape.attention:
        if group.heads % tensor_parallel:
            return LayoutProblem(
                "heads_not_divisible", f"tensor parallelism {tensor_parallel} does not divide {group.heads} heads"
            )
        shared = group.kind == "mla" or group.kv_heads == 0
        if not shared and group.kv_heads % tensor_parallel and tensor_parallel % group.kv_heads:
            return LayoutProblem(
                "kv_heads_not_divisible",
                f"{group.kv_heads} key-value heads are neither cut nor copied evenly by {tensor_parallel}",
            )
    return None


def _widths_problem(shape: LlmShape, layout: Layout, weights: str) -> LayoutProblem | None:
    parallel, group = layout.tensor_parallel, weight_format(weights).group
    vocabulary = padded_vocabulary(shape.vocabulary)
    if vocabulary % parallel:
        return LayoutProblem(
            "vocabulary_not_divisible", f"tensor parallelism {parallel} does not divide {vocabulary} vocabulary rows"
        )
    if parallel == 1:
        return None
    for width in _cut_widths(shape, layout, grouped=group > 1):
        if width % parallel:
            return LayoutProblem("width_not_divisible", f"tensor parallelism {parallel} does not divide width {width}")
        if width // parallel % group:
            return LayoutProblem(
                "group_not_divisible",
                f"a shard of {width // parallel} values does not hold whole groups of {group} ({weights})",
            )
    return None


def _cut_widths(shape: LlmShape, layout: Layout, *, grouped: bool) -> Iterator[int]:
    """Input widths of the matrices that are cut along their input. grouped: as a checkpoint quantised in groups has them."""
    for a in shape.attention:
        if a.kind not in ("linear", "none"):
            yield a.heads * (a.v_head_dim or a.head_dim)
    for f in shape.feed_forward:
        yield (grouped and f.grouped_intermediate) or f.intermediate
        yield f.shared_intermediate
        if layout.expert_parallel == 1:
            yield f.expert_intermediate


def _pipeline_problem(shape: LlmShape, pipeline_parallel: int) -> LayoutProblem | None:
    if pipeline_parallel > max(shape.layers, 1):
        return LayoutProblem("pipeline_too_deep", f"{pipeline_parallel} stages for {shape.layers} layers")
    return None


def _experts_problem(shape: LlmShape, layout: Layout) -> LayoutProblem | None:
    if layout.expert_parallel == 1:
        return None
    if not shape.is_moe:
        return LayoutProblem("no_experts", "expert parallelism needs a mixture of experts")
    if layout.tensor_parallel * layout.data_parallel % layout.expert_parallel:
        return LayoutProblem(
            "expert_parallel_not_devices",
            f"expert parallelism {layout.expert_parallel} does not divide the "
            f"{layout.tensor_parallel * layout.data_parallel} devices of a stage",
        )
    for block in shape.feed_forward:
        if block.experts % layout.expert_parallel:
            return LayoutProblem(
                "experts_not_divisible",
                f"expert parallelism {layout.expert_parallel} does not divide {block.experts} experts",
            )
    return None


def legal_tensor_parallels(shape: LlmShape, most_devices: int, weights: str = "bf16") -> tuple[int, ...]:
    """Degrees up to ``most_devices`` at which the experts, too, are cut by tensor parallelism; may be empty only
    for a shape that no device count suits."""
    degrees = range(1, max(most_devices, 0) + 1)
    return tuple(n for n in degrees if layout_problem(shape, Layout(tensor_parallel=n), weights=weights) is None)
