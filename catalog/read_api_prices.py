"""Reads ``catalog/api_prices``: what sellers of tokens ask, model by model. Every error is collected before any is raised."""

import csv
import datetime as dt
import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from catalog.rows import Row

API_PRICES_FOLDER = Path(__file__).parent / "api_prices"
PER_MILLION = 1_000_000
Usd = Annotated[Decimal, Field(ge=0, le=100_000)]


class ApiPriceRow(Row):
    """Prices of one model at one seller, US dollars per million tokens; None where the seller lists none.

    valid_from: the day the price holds from, where the source says it; seen_on: the day by which it had it. ends: when the
    seller stops serving the model: a day, ``deprecated`` (no day known) or ``retired``.
    """

    provider: Annotated[str, Field(min_length=1, max_length=100)]
    model: Annotated[str, Field(min_length=1, max_length=200)]
    usd_per_million_input_tokens: Usd
    usd_per_million_output_tokens: Usd | None
    usd_per_million_cached_tokens: Usd | None
    valid_from: dt.date | None
    seen_on: dt.date
    ends: Literal["deprecated", "retired"] | dt.date | None
    confidence: Literal["high", "medium", "low"]
    source: str
    page: str
    notes: str

    @property
    def id(self) -> str:
        return f"{self.provider}/{self.model}"

    def serves_on(self, day: dt.date) -> bool:
        """Whether the model can still be had on that day, as far as the seller has said."""
        return self.ends != "retired" and not (isinstance(self.ends, dt.date) and self.ends <= day)


class ApiPriceError(Exception):
    """The files break their rules. ``errors`` lists all of them."""

    def __init__(self, errors: list[str]) -> None:
        super().__init__("\n".join(errors))
        self.errors = errors


@dataclass(frozen=True, slots=True)
class ApiPrices:
    """rows: by ``provider/model``. by_model: the same by the model's name alone, in lower case. sources: their texts."""

    rows: Mapping[str, ApiPriceRow]
    by_model: Mapping[str, tuple[ApiPriceRow, ...]]
    sources: Mapping[str, str]
    digest: str


def read_api_prices(folder: Path = API_PRICES_FOLDER) -> ApiPrices:
    """Raises ApiPriceError naming each fault."""
    listed, origins = (folder / "prices.csv").read_bytes(), (folder / "sources.toml").read_bytes()
    sources = {key: row["text"] for key, row in tomllib.loads(origins.decode())["sources"].items()}
    errors: list[str] = []
    rows: dict[str, ApiPriceRow] = {}
    by_model: dict[str, list[ApiPriceRow]] = {}
    for number, entry in enumerate(csv.DictReader(listed.decode().splitlines()), start=2):
        try:
            row = ApiPriceRow.model_validate({key: _cell(key, text) for key, text in entry.items()})
        except ValidationError as error:
            errors += [f"prices.csv, line {number}, {e['loc'][0]}: {e['msg']}" for e in error.errors()]
            continue
        if row.source not in sources:
            errors.append(f"prices.csv, line {number}: no source {row.source!r}")
        if row.id in rows:
            errors.append(f"prices.csv, line {number}: {row.id} is stated twice")
        rows[row.id] = row
        by_model.setdefault(_short(row.model), []).append(row)
    if errors:
        raise ApiPriceError(errors)
    digest = hashlib.sha256(listed + b"\0" + origins).hexdigest()
    return ApiPrices(rows, {name: tuple(found) for name, found in by_model.items()}, sources, digest)


def _cell(key: str, text: str) -> str | None:
    return text if text or key in ("page", "notes", "source", "provider", "model") else None


def _short(model: str) -> str:
    """The model's own name, without the maker's folder in front.

    >>> _short("meta-llama/Llama-3.3-70B-Instruct")
    'llama-3.3-70b-instruct'
    """
    return model.rsplit("/", 1)[-1].lower()


def sellers_of(prices: ApiPrices, name: str) -> tuple[ApiPriceRow, ...]:
    """Everybody who lists the model: by ``provider/model``, or by the model's name at every seller. Empty for an unknown."""
    exact = prices.rows.get(name)
    return (exact,) if exact is not None else prices.by_model.get(_short(name), ())
