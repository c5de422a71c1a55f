"""The vision encoder of a ``config.json``: widths, patches, and how an image becomes tokens."""

import math
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from catalog.huggingface_fields import ConfigError, Fields
from catalog.rows import LlmVisionRow, Provenance, Row

FILE = Path(__file__).with_name("vision_processors.toml")
CHANNELS = 3


class VisionProcessorRow(Row):
    """Limits to which a family's published processor resizes an image, in pixels of its area; or into how many tiles it cuts one;
    of a video, pixels of all of its frames and how many it samples, where it takes any."""

    model_types: Annotated[tuple[str, ...], Field(min_length=1)]
    least_px: Annotated[int, Field(ge=0)] = 0
    most_px: Annotated[int, Field(ge=0)] = 0
    most_tiles: Annotated[int, Field(ge=0)] = 0
    takes_video: bool = False
    least_clip_px: Annotated[int, Field(ge=0)] = 0
    most_clip_px: Annotated[int, Field(ge=0)] = 0
    least_frames: Annotated[int, Field(ge=0)] = 0
    most_frames: Annotated[int, Field(ge=0)] = 0
    provenance: Provenance


@lru_cache(maxsize=1)
def processors() -> dict[str, VisionProcessorRow]:
    """By model type."""
    rows = [
        VisionProcessorRow.model_validate(row) for row in tomllib.loads(FILE.read_text(encoding="utf-8"))["processor"]
    ]
    return {model_type: row for row in rows for model_type in row.model_types}


def vision_row(top: Fields, model_type: str, hidden: int) -> LlmVisionRow | None:
    """None where a model has no vision encoder, or one whose figures its config does not state in a form known here.

    Raises ConfigError for figures that are wrong.
    """
    vision = top.part("vision_config")
    if vision is None:
        return None
    if model_type in processors() and vision.has("spatial_merge_size") and vision.has("depth"):
        return _merged_patches(vision, model_type, hidden)
    if model_type == "llama4" and vision.has("pixel_shuffle_ratio") and vision.has("num_hidden_layers"):
        return _tiles(vision, hidden)
    if model_type == "gemma4" and vision.has("pooling_kernel_size") and vision.has("num_hidden_layers"):
        return _pooled_patches(vision, model_type, hidden)
    if top.has("mm_tokens_per_image") and vision.has("image_size") and vision.has("num_hidden_layers"):
        return _fixed_size(top, vision, hidden)
    return None


def _merged_patches(vision: Fields, model_type: str, hidden: int) -> LlmVisionRow:
    """Qwen-VL: patches of an image as large as it is, four of which are merged by two products; Qwen2.5-VL looks within windows."""
    layers, width = vision.integer("depth", high=1000), vision.integer("hidden_size", "embed_dim", high=100_000)
    inner, patch = vision.integer("intermediate_size", high=1_000_000), vision.integer("patch_size", high=1000)
    merge, frames = vision.integer("spatial_merge_size", high=64), vision.integer("temporal_patch_size", default=2)
    gated = model_type == "qwen2_5_vl"
    further = len(vision.integers("deepstack_visual_indexes"))
    window = vision.integer("window_size", default=0, low=0)
    merged = width * merge * merge
    weights = layers * (4 * width * width + (3 if gated else 2) * width * inner)
    weights += CHANNELS * frames * patch * patch * width + vision.integer("num_position_embeddings", default=0) * width
    weights += (1 + further) * (merged * merged + merged * hidden)
    limits = processors()[model_type]
    return LlmVisionRow(
        layers=layers, hidden=width, heads=vision.integer("num_heads", high=10_000), intermediate=inner, gated=gated,
        patch_px=patch, merge=merge, least_px=limits.least_px, most_px=limits.most_px, extra_projectors=further,
        window_patches=(window // patch) ** 2, full_layers=len(vision.integers("fullatt_block_indexes")) if window else layers,
        weights=weights, clip_frames=frames if limits.takes_video else 0, least_clip_px=limits.least_clip_px,
        most_clip_px=limits.most_clip_px, least_frames=limits.least_frames, most_frames=limits.most_frames,
    )  # fmt: skip


def _pooled_patches(vision: Fields, model_type: str, hidden: int) -> LlmVisionRow:
    """Gemma 4: as many patches as make a fixed number of tokens, pooled by squares, and one product to the model's width."""
    layers, width = vision.integer("num_hidden_layers", high=1000), vision.integer("hidden_size", high=100_000)
    inner, patch = vision.integer("intermediate_size", high=1_000_000), vision.integer("patch_size", high=1000)
    limits = processors()[model_type]
    weights = layers * (4 * width * width + 3 * width * inner) + CHANNELS * patch * patch * width + width * hidden
    return LlmVisionRow(
        layers=layers, hidden=width, heads=vision.integer("num_attention_heads", high=10_000), intermediate=inner, gated=True,
        patch_px=patch, merge=vision.integer("pooling_kernel_size", high=64), least_px=limits.least_px, most_px=limits.most_px,
        full_layers=layers, weights=weights,
    )  # fmt: skip


def _tiles(vision: Fields, hidden: int) -> LlmVisionRow:
    """Llama 4: tiles of one size and the whole once more, each with a class token, whose work is left out; 1/r² patches become a
    token (pixel shuffle), through two products of a width of their own and one to the model's."""
    layers, width = vision.integer("num_hidden_layers", high=1000), vision.integer("hidden_size", high=100_000)
    inner, patch = vision.integer("intermediate_size", high=1_000_000), vision.integer("patch_size", high=1000)
    side, ratio = vision.integer("image_size", high=100_000), vision.number("pixel_shuffle_ratio")
    merge = round(1.0 / ratio) if 0.0 < ratio <= 1.0 else 0
    if merge < 1 or merge * ratio != 1.0 or side % (patch * merge):
        raise ConfigError("pixel_shuffle_ratio", f"{ratio:g} of {side // patch} patches a side makes no whole tokens")
    first, second = (
        vision.integer("projector_input_dim", high=100_000),
        vision.integer("projector_output_dim", high=100_000),
    )
    if first != second or second != vision.integer("vision_output_dim", high=100_000):
        raise ConfigError("projector_output_dim", "projectors of several widths are not known here")
    weights = layers * (4 * width * width + 2 * width * inner) + CHANNELS * patch * patch * width
    weights += ((side // patch) ** 2 + 2) * width
    weights += width * merge * merge * first + first * second + second * hidden
    return LlmVisionRow(
        layers=layers, hidden=width, heads=vision.integer("num_attention_heads", high=10_000), intermediate=inner, gated=False,
        patch_px=patch, merge=merge, image_px=side, full_layers=layers, weights=weights,
        most_tiles=processors()["llama4"].most_tiles, projector=first,
    )  # fmt: skip


def _fixed_size(top: Fields, vision: Fields, hidden: int) -> LlmVisionRow:
    """Gemma 3: every image at one size, its patches pooled to a fixed number of tokens."""
    layers, width = vision.integer("num_hidden_layers", high=1000), vision.integer("hidden_size", high=100_000)
    inner, patch = vision.integer("intermediate_size", high=1_000_000), vision.integer("patch_size", high=1000)
    side, tokens = vision.integer("image_size", high=100_000), top.integer("mm_tokens_per_image", high=1_000_000)
    merge = math.isqrt((side // patch) ** 2 // tokens)
    if merge < 1 or (side // patch // merge) ** 2 != tokens:
        raise ConfigError(
            "mm_tokens_per_image", f"{tokens} tokens are no square part of {side // patch} × {side // patch} patches"
        )
    weights = layers * (4 * width * width + 2 * width * inner) + CHANNELS * patch * patch * width + width * hidden
    weights += (side // patch) ** 2 * width
    return LlmVisionRow(
        layers=layers, hidden=width, heads=vision.integer("num_attention_heads", high=10_000), intermediate=inner, gated=False,
        patch_px=patch, merge=merge, image_px=side, tokens=tokens, full_layers=layers, weights=weights,
    )  # fmt: skip
