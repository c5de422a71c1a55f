"""Layers of a recurrent state beyond their products: how prompts are scanned, and what launching the layers takes.

Laws and symbols: docs/mathematics.md, section "One engine step".
"""

import numpy as np

from solver.llm_shape import AttentionGroup, LlmShape
from solver.step.gemm import Quantity
from solver.step.rates import Rates

DELTA_CHUNK_TOKENS = 64.0
"""Tokens that kernels of gated delta rules take at once (vLLM's of Triton, FlashInfer's): a definition of their shapes, like row tiles."""


def is_delta_rule(group: AttentionGroup) -> bool:
    """Whether a group of layers is a gated delta rule, scanned by kernels of its own; state spaces and lightning attention are not."""
    return group.kind == "linear" and group.key_heads > 0


def has_delta_rule(shape: LlmShape) -> bool:
    """Whether some layers of a model are."""
    return any(is_delta_rule(group) for group in shape.attention)


def scan_flops(group: AttentionGroup, tensor_parallel: Quantity) -> Quantity:
    """FLOPs of one token in one layer and rank of a gated delta rule that is scanned in chunks of C tokens.

        n_v·(2C·(3·d_k + 2·d_v) + 6·d_k·d_v)/TP

    Within a chunk keys meet keys, queries keys and the inverse of the former keys and values (WY representation; Yang et al.,
    "Parallelizing Linear Transformers with the Delta Rule over Sequence Length", 2024); of the state values are taken, to it they are
    added, and queries read it. The inverse itself, of triangles of C·C, is not counted.

    >>> scan_flops(AttentionGroup("linear", 48, heads=48, key_heads=16, head_dim=128, v_head_dim=128), 1.0)
    8650752.0
    """
    keys, values = float(group.head_dim), float(group.v_head_dim)
    within = 2.0 * DELTA_CHUNK_TOKENS * (3.0 * keys + 2.0 * values)
    return group.heads * (within + 6.0 * keys * values) / tensor_parallel


def gated_output_bytes(group: AttentionGroup, tensor_parallel: Quantity) -> Quantity:
    """Bytes of one token in one layer and rank that a gated delta rule moves around its scan: 16-bit values.

        2·6·n_v·d_v/TP

    Of as many values as its output has: room for it is filled with zeros, its gate is copied out of the projection (read and written),
    and the gated norm reads both and writes one (vLLM 0.24's layers, read 2026-11-30).

    >>> gated_output_bytes(AttentionGroup("linear", 36, heads=32, key_heads=16, head_dim=128, v_head_dim=128), 1.0)
    49152.0
    """
    return 12.0 * group.heads * group.v_head_dim / tensor_parallel


def scan_s(shape: LlmShape, rates: Rates, tokens: Quantity) -> Quantity:
    """Seconds in which gated delta rules scan the prompts' tokens of a step, over all their layers; 0 without either.

    layers · (start + FLOPs / rate)     start: of the kernels that a scan consists of, once a layer
    """
    seconds: Quantity = 0.0
    for group in shape.attention:
        if is_delta_rule(group):
            flops = scan_flops(group, rates.tensor_parallel) * tokens
            start_s = np.where(np.asarray(tokens) > 0.0, rates.delta_scan_start_s, 0.0)
            seconds = seconds + group.layers * (start_s + flops / rates.delta_scan_flop_per_s)
    return seconds


def captured_recurrent_s(shape: LlmShape, rates: Rates) -> Quantity:
    """Seconds that launching recurrent layers over prompts takes between captured pieces."""
    return launched_layers(shape, rates) * rates.captured_linear_layer_s


def captured_recurrent_replies_s(shape: LlmShape, rates: Rates) -> Quantity:
    """Seconds by which that is more where others decode in the step: prompts and replies are launched one after the other."""
    plain, delta = recurrent_layers(shape)
    return plain * rates.captured_linear_replies_s + delta * rates.captured_delta_replies_s


def recurrent_layers(shape: LlmShape) -> tuple[int, int]:
    """Layers with another recurrent state, and with a gated delta rule."""
    groups = [group for group in shape.attention if group.kind == "linear"]
    delta = sum(group.layers for group in groups if is_delta_rule(group))
    return sum(group.layers for group in groups) - delta, delta


def launched_layers(shape: LlmShape, rates: Rates) -> Quantity:
    """Recurrent layers, in those of a state space: ``delta_launch_ratio`` for each with a gated delta rule."""
    plain, delta = recurrent_layers(shape)
    return plain + delta * rates.delta_launch_ratio if delta else float(plain)


def eager_recurrent_s(shape: LlmShape, rates: Rates) -> Quantity:
    """Seconds that launching what recurrent layers have of their own takes, outside a captured graph: of a gated delta rule
    ``delta_launch_ratio`` times what of a state space."""
    return launched_layers(shape, rates) * rates.eager_linear_layer_s
