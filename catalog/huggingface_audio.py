"""The audio encoder of a ``config.json``: widths, chunks, and how a recording becomes tokens."""

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from catalog.huggingface_fields import Fields
from catalog.rows import LlmAudioRow, Provenance, Row

FILE = Path(__file__).with_name("audio_processors.toml")
CONVOLUTION, MEL_FRAMES_PER_S, STRIDE = 3, 100, 2
"""Of Whisper's encoder: taps of its two convolutions, frames of a spectrogram a second, and those that one position stands for."""


class AudioProcessorRow(Row):
    """How a family's published processor and projector make tokens of positions: see ``LlmAudioRow``."""

    model_types: Annotated[tuple[str, ...], Field(min_length=1)]
    pooled: int = Field(ge=1)
    one_chunk: bool = False
    """What is longer than a chunk is cut."""
    padded_tokens: bool = False
    joined: bool = False
    provenance: Provenance


@lru_cache(maxsize=1)
def audio_processors() -> dict[str, AudioProcessorRow]:
    """By model type."""
    rows = [
        AudioProcessorRow.model_validate(row) for row in tomllib.loads(FILE.read_text(encoding="utf-8"))["processor"]
    ]
    return {model_type: row for row in rows for model_type in row.model_types}


def audio_row(top: Fields, model_type: str, hidden: int) -> LlmAudioRow | None:
    """None where a model has no audio encoder, or one whose figures are not known in a form known here.

    Raises ConfigError for figures that are wrong.
    """
    audio, how = top.part("audio_config"), audio_processors().get(model_type)
    if audio is None or how is None:
        return None
    layers = audio.integer("num_hidden_layers", "encoder_layers", high=1000)
    width = audio.integer("hidden_size", "d_model", high=100_000)
    inner = audio.integer("intermediate_size", "encoder_ffn_dim", high=1_000_000)
    bins, positions = audio.integer("num_mel_bins", high=10_000), audio.integer("max_source_positions", high=1_000_000)
    weights = layers * (4 * width * width + 2 * width * inner)
    weights += CONVOLUTION * width * (bins + width) + positions * width
    weights += (width * how.pooled + hidden) * hidden if how.joined else width * hidden
    chunk_s = positions * STRIDE / MEL_FRAMES_PER_S
    return LlmAudioRow(
        layers=layers, hidden=width, heads=audio.integer("num_attention_heads", "encoder_attention_heads", high=10_000), intermediate=inner,
        pooled=how.pooled, chunk_s=chunk_s, most_s=chunk_s if how.one_chunk else 0.0, padded_tokens=how.padded_tokens,
        joined=how.joined, weights=weights,
    )  # fmt: skip
