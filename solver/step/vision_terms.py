"""Encoding the images, videos and recordings of a prompt: their encoder as a model of its own, whose texts they are.

Laws and symbols: docs/mathematics.md, section "Images".
"""

from dataclasses import replace

import numpy as np

from solver.audio import AudioEncoder
from solver.llm_shape import AttentionGroup, FeedForwardGroup, LlmShape
from solver.step import terms
from solver.step.gemm import Quantity
from solver.step.rates import Rates
from solver.vision import VisionEncoder


def encoder_shape(encoder: VisionEncoder | AudioEncoder) -> LlmShape:
    """The encoder's layers as a model: every patch attends to all of its image, slice of a video or chunk of a recording, and
    nothing is sampled."""
    head_dim = encoder.hidden // encoder.heads
    full = encoder.full_layers if encoder.window_patches else encoder.layers
    groups = [AttentionGroup("full", full, encoder.heads, encoder.heads, head_dim)] if full else []
    if full < encoder.layers:
        within = encoder.window_patches
        groups.append(
            AttentionGroup(
                "chunked", encoder.layers - full, encoder.heads, encoder.heads, head_dim, window_tokens=within
            )
        )
    block = FeedForwardGroup(encoder.layers, encoder.intermediate, gated=encoder.gated)
    return LlmShape(
        id="vision", family="vision", hidden=encoder.hidden, vocabulary=1, tied_embeddings=True, max_context_tokens=1,
        attention=tuple(groups), feed_forward=(block,), embeds=True, bidirectional=True,
    )  # fmt: skip


def sixteen_bit(rates: Rates) -> Rates:
    """The same device for what stays in 16 bits whatever the language model is stored in."""
    return replace(
        rates, weight_bytes=2.0, activation_bytes=2.0, quantised_activations=0.0, partial_tile_slowdown=0.0,
        partial_tile_read_slowdown=0.0, gemm_flop_per_s=rates.wide_flop_per_s, weight_bytes_per_s=rates.wide_bytes_per_s,
    )  # fmt: skip


def projector_seconds(
    encoder: VisionEncoder | AudioEncoder, hidden: int, rates: Rates, tokens: Quantity
) -> tuple[Quantity, Quantity]:
    """(seconds, FLOPs) of the products that make tokens of what the encoder gives (``projector_columns``)."""
    seconds: Quantity = 0.0
    flops: Quantity = 0.0
    for rows, columns in encoder.projector_columns(hidden):
        product = terms.wide_product(rates, tokens, columns / rates.tensor_parallel, rows)
        seconds, flops = seconds + product.seconds, flops + product.flops
    return seconds, flops


def image_launch_s(shape: LlmShape, rates: Rates) -> Quantity:
    """Seconds that launching the encoder's layers one by one from the host takes, once a step for all images in it: encoders run
    outside captured graphs. 0 where requests carry none."""
    encoder = shape.encoder
    return 0.0 if encoder is None else encoder.layers * rates.image_eager_layer_s


def image_launch_beyond_s(shape: LlmShape, rates: Rates, tokens: Quantity) -> Quantity:
    """Seconds by which launching the encoder exceeds its work in a step with so many tokens, taken to be of prompts with images."""
    images = shape.images
    if images is None:
        return 0.0
    work_s = image_work(shape, rates)[0] * tokens / images.prompt_tokens
    return np.maximum(image_launch_s(shape, rates) - work_s, 0.0)


def image_encoding_s(shape: LlmShape, rates: Rates) -> Quantity:
    """Seconds that the images of one request, alone in a step, take on one device of the group."""
    return np.maximum(image_work(shape, rates)[0], image_launch_s(shape, rates))


def image_work(shape: LlmShape, rates: Rates) -> tuple[Quantity, Quantity]:
    """(seconds, FLOPs) of what the images of one request are multiplied with, on one device of the group.

        layers of the encoder over all patches of the request, those of each image, or tile of one, attending to themselves alone

    (0, 0) where requests carry none.
    """
    images, encoder = shape.images, shape.encoder
    if images is None or encoder is None:
        return 0.0, 0.0
    own = sixteen_bit(rates)
    tower = encoder_shape(encoder)
    patches = float(images.patches * images.per_request)
    token = terms.token_terms(tower, own, patches)
    parts = images.per_request * images.tiles
    each = float(images.patches) / images.tiles
    attention = [
        # Of all pairs of an image ``prefill_pair_s`` takes half twice; of a window every patch looks at all of it.
        (s, f, parts * each * (each / 2.0 if limit == np.inf else min(limit, each)))
        for limit, s, f in terms.prefill_pair_s(tower, own)
    ]
    projected_s, projected = projector_seconds(encoder, shape.hidden, own, float(images.tokens * images.per_request))
    seconds = token.body_s + projected_s + sum(s * pairs for s, _, pairs in attention)
    flops = token.flops + projected + sum(f * pairs for _, f, pairs in attention)
    return seconds, flops
