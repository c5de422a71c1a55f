"""Which families and engines take constants that were fitted on another, and which device's stay its own: ``borrowings.toml``."""

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from catalog.rows import Provenance, Row, Slug

FILE = Path(__file__).with_name("borrowings.toml")


class BorrowingRow(Row):
    """Constants fitted on ``from_family`` under ``from_engine``, taken on ``family`` under ``engine`` with a range of these
    fractions of the value."""

    from_family: Slug
    from_engine: Slug
    family: Slug
    engine: Slug
    low_fraction: Annotated[float, Field(gt=0, le=1)]
    high_fraction: Annotated[float, Field(ge=1, allow_inf_nan=False)]
    provenance: Provenance


class KeptRow(Row):
    """What was fitted on a device of ``family`` under ``engine`` is that device's own: its siblings came out worse with it."""

    family: Slug
    engine: Slug
    provenance: Provenance


class StrangerRow(Row):
    """Devices that take the constants of their family under ``engine``, and not the intervals of its measured devices."""

    devices: Annotated[tuple[Slug, ...], Field(min_length=1)]
    engine: Slug
    provenance: Provenance


@lru_cache(maxsize=1)
def read_borrowings() -> tuple[BorrowingRow, ...]:
    rows = tomllib.loads(FILE.read_text(encoding="utf-8"))["borrowing"]
    return tuple(BorrowingRow.model_validate(row) for row in rows)


@lru_cache(maxsize=1)
def read_kept() -> tuple[KeptRow, ...]:
    rows = tomllib.loads(FILE.read_text(encoding="utf-8"))["kept"]
    return tuple(KeptRow.model_validate(row) for row in rows)


def is_kept(family: str, engine: str) -> bool:
    """Whether a device's siblings take nothing from it.

    >>> is_kept("hopper", "sglang"), is_kept("hopper", "vllm")
    (True, False)
    """
    return any((row.family, row.engine) == (family, engine) for row in read_kept())


@lru_cache(maxsize=1)
def read_strangers() -> tuple[StrangerRow, ...]:
    rows = tomllib.loads(FILE.read_text(encoding="utf-8"))["stranger"]
    return tuple(StrangerRow.model_validate(row) for row in rows)


def strangers(engine: str) -> frozenset[str]:
    """Devices whose siblings' intervals do not hold for them under an engine.

    >>> sorted(strangers("vllm")), sorted(strangers("sglang"))
    (['h20-141', 'h20-96'], [])
    """
    return frozenset(device for row in read_strangers() if row.engine == engine for device in row.devices)


def borrowed_by(family: str, engine: str) -> tuple[BorrowingRow, ...]:
    """Who takes what was fitted there.

    >>> [(row.family, row.engine) for row in borrowed_by("hopper", "vllm")][0]
    ('blackwell-dc', 'vllm')
    """
    return tuple(row for row in read_borrowings() if (row.from_family, row.from_engine) == (family, engine))
