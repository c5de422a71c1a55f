"""Formats that engines document, by engine and family of devices: ``engines/formats.toml``."""

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from catalog.rows import Provenance, Row, Slug

FILE = Path(__file__).with_name("engines") / "formats.toml"
ANY_FAMILY = "*"
Parallelism = Literal["tensor", "pipeline", "data", "expert"]
Feature = Literal["chunked_prefill", "prefix_cache", "lora", "drafting", "cuda_graphs", "guided_decoding"]
Names = Annotated[tuple[str, ...], Field(min_length=1)]


class EngineFormatsRow(Row):
    """What one engine loads on some families of devices. families: ``*`` stands for every one. widened: weights that it multiplies
    in 16 bits where a device has no unit for them. parallelism, features: those documented; None where that has not been read."""

    engine: Slug
    families: Names
    weights: Names
    kv_cache: Names
    widened: tuple[str, ...] = ()
    parallelism: tuple[Parallelism, ...] | None = None
    features: tuple[Feature, ...] | None = None
    provenance: Provenance


@lru_cache(maxsize=1)
def read_engine_formats() -> tuple[EngineFormatsRow, ...]:
    rows = tomllib.loads(FILE.read_text(encoding="utf-8"))["formats"]
    return tuple(EngineFormatsRow.model_validate(row) for row in rows)


def formats_of(engine: str, family: str) -> EngineFormatsRow | None:
    """The row of an engine on a family of devices; None where nobody has read what it loads there.

    >>> found = formats_of("vllm", "tpu-v5e")
    >>> found is not None and ("int8" in found.weights, "q4_k_m" in found.weights)
    (True, False)
    """
    rows = [row for row in read_engine_formats() if row.engine == engine]
    own = next((row for row in rows if family in row.families), None)
    return own or next((row for row in rows if ANY_FAMILY in row.families), None)
