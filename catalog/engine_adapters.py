"""Engines that document low-rank adapters: ``engines/adapters.toml``."""

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from catalog.engine_formats import formats_of
from catalog.rows import Provenance, Row, Slug

FILE = Path(__file__).with_name("engines") / "adapters.toml"


class EngineAdaptersRow(Row):
    """One engine. vendors: on whose devices. ranks: those it pads adapters to; none: any up to the largest. multiplies: does a step
    multiply all of a slot, padding included, or each adapter in its own rank?"""

    engine: Slug
    vendors: Annotated[tuple[str, ...], Field(min_length=1)]
    ranks: tuple[Annotated[int, Field(ge=1)], ...] = ()
    largest_rank: Annotated[int, Field(ge=1)]
    multiplies: Literal["padded", "own"] = "padded"
    provenance: Provenance

    def padded(self, rank: int) -> int:
        """What the engine keeps an adapter of this rank in; above the largest, the rank itself.

        >>> adapters_row("vllm").padded(12), adapters_row("sglang").padded(12)
        (16, 12)
        """
        return next((one for one in sorted(self.ranks) if one >= rank), rank)


@lru_cache(maxsize=1)
def read_engine_adapters() -> dict[str, EngineAdaptersRow]:
    """By engine."""
    rows = tomllib.loads(FILE.read_text(encoding="utf-8"))["adapters"]
    return {row.engine: row for row in map(EngineAdaptersRow.model_validate, rows)}


def adapters_row(engine: str) -> EngineAdaptersRow:
    """Raises KeyError for an engine that documents none."""
    return read_engine_adapters()[engine]


def adapters_on(engine: str, vendor: str, family: str) -> EngineAdaptersRow | None:
    """What an engine documents on a vendor's devices of a family; None where it documents none there.

    >>> adapters_on("vllm", "NVIDIA", "hopper") is not None, adapters_on("llama.cpp", "NVIDIA", "hopper")
    (True, None)
    """
    row = read_engine_adapters().get(engine)
    formats = formats_of(engine, family)
    left_out = formats is not None and formats.features is not None and "lora" not in formats.features
    return None if row is None or vendor not in row.vendors or left_out else row
