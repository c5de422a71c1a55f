"""Matrix products and single streams that others timed: ``published/matrix_rates.toml``, ``single_streams.toml``."""

import tomllib
from functools import lru_cache
from typing import Annotated

from pydantic import Field

from catalog.published_speeds import FOLDER
from catalog.rows import Positive, Row, Slug
from catalog.serving_rows import PublicSourceRow


class MatrixRateRow(Row):
    """Dense products of 16 bits on one device, in TFLOP/s: every figure of the source, in no order."""

    device: Slug
    source: Slug
    tflop_per_s: Annotated[tuple[Positive, ...], Field(min_length=1)]


class MatrixRates(Row):
    """The file."""

    sources: dict[str, PublicSourceRow]
    rate: tuple[MatrixRateRow, ...]


@lru_cache(maxsize=1)
def read_matrix_rates() -> MatrixRates:
    """Raises pydantic.ValidationError naming each fault, KeyError for a source that is not there.

    >>> next(row.tflop_per_s for row in read_matrix_rates().rate if row.device == "gaudi3")
    (1243.0,)
    """
    found = MatrixRates.model_validate(tomllib.loads((FOLDER / "matrix_rates.toml").read_text(encoding="utf-8")))
    for row in found.rate:
        found.sources[row.source]
    return found


class PublishedPrompt(Row):
    """Time to first token of a prompt, with nothing else running."""

    tokens: int = Field(ge=1)
    ttft_ms: Positive


class StreamRow(Row):
    """One stream of requests: a model over ``devices`` that share it. device: not always one of the catalog's."""

    source: Slug
    engine: Slug
    device: Slug
    devices: int = Field(ge=1)
    llm: Slug
    weights: Slug
    tpot_ms: Positive
    prompts: tuple[PublishedPrompt, ...] = ()


class SingleStreams(Row):
    """The file ``published/single_streams.toml``."""

    sources: dict[str, PublicSourceRow]
    stream: tuple[StreamRow, ...]


@lru_cache(maxsize=1)
def read_single_streams() -> SingleStreams:
    """Raises pydantic.ValidationError naming each fault, KeyError for a source that is not there.

    >>> sorted({row.engine for row in read_single_streams().stream})
    ['llama.cpp', 'mlx', 'transformers-neuronx']
    """
    found = SingleStreams.model_validate(tomllib.loads((FOLDER / "single_streams.toml").read_text(encoding="utf-8")))
    for row in found.stream:
        found.sources[row.source]
    return found
