"""How engines' documentation starts models on devices: ``engines/recipes.toml``."""

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from catalog.rows import Provenance, Row, Slug

FILE = Path(__file__).with_name("engines") / "recipes.toml"
Count = Annotated[int, Field(ge=1)]


class EngineRecipeRow(Row):
    """One recipe: what is stated of a server of these models on these devices for at least so many requests at once."""

    engine: Slug
    devices: Annotated[tuple[Slug, ...], Field(min_length=1)]
    llms: Annotated[tuple[Slug, ...], Field(min_length=1)]
    least_clients: Count
    admission_interval_steps: Count
    provenance: Provenance


@lru_cache(maxsize=1)
def read_engine_recipes() -> tuple[EngineRecipeRow, ...]:
    """All rows, those for most requests at once first."""
    rows = tomllib.loads(FILE.read_text(encoding="utf-8"))["recipe"]
    return tuple(sorted(map(EngineRecipeRow.model_validate, rows), key=lambda row: -row.least_clients))


def documented_admission_interval(engine: str, device: str, llm: str, clients: int) -> int:
    """Decode steps between two moments at which a server started as documented takes requests in; 1 where nothing is documented.

    >>> [documented_admission_interval("sglang", "b200-sxm", "deepseek-r1", clients) for clients in (1, 8, 16, 400)]
    [10, 10, 30, 30]
    >>> documented_admission_interval("sglang", "h200-sxm", "deepseek-r1", 16)
    1
    """
    return next(
        (
            row.admission_interval_steps
            for row in read_engine_recipes()
            if row.engine == engine and device in row.devices and llm in row.llms and row.least_clients <= clients
        ),
        1,
    )
