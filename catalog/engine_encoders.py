"""Engines that document models which make a vector or a score of a text: ``engines/encoders.toml``."""

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from catalog.rows import Provenance, Row, Slug

FILE = Path(__file__).with_name("engines") / "encoders.toml"
ANY_VENDOR = "*"


class EngineEncodersRow(Row):
    """One engine, and on whose devices it does."""

    engine: Slug
    vendors: Annotated[tuple[str, ...], Field(min_length=1)]
    provenance: Provenance


@lru_cache(maxsize=1)
def read_engine_encoders() -> dict[str, EngineEncodersRow]:
    """By engine."""
    rows = tomllib.loads(FILE.read_text(encoding="utf-8"))["encoders"]
    return {row.engine: row for row in map(EngineEncodersRow.model_validate, rows)}


def embeds_on(engine: str, vendor: str) -> bool:
    """
    >>> embeds_on("vllm", "NVIDIA"), embeds_on("tgi", "NVIDIA")
    (True, False)
    """
    row = read_engine_encoders().get(engine)
    return row is not None and (ANY_VENDOR in row.vendors or vendor in row.vendors)
