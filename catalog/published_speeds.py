"""Speeds that others measured and published, and makers who sell tokens at them: ``published/speeds.toml``, ``services.toml``."""

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from catalog.rows import Positive, Provenance, Row, Slug

FOLDER = Path(__file__).with_name("published")
PerPeriod = Annotated[int, Field(ge=1)]


class PublishedTtft(Row):
    """Time to first token of a prompt of so many tokens."""

    ms: Positive
    prompt_tokens: int = Field(ge=1)


class SpeedRow(Row):
    """One model on one system, as one stream of requests sees it. shared: a service that many use at once; otherwise a machine that
    serves one stream at a time. tokens_per_s: every figure published, in no order."""

    device: Slug
    llm: Slug
    engine: Slug
    weights: Slug
    shared: bool
    tokens_per_s: Annotated[tuple[Positive, ...], Field(min_length=1)]
    ttft_ms: tuple[PublishedTtft, ...]
    as_of: str
    provenance: Provenance


class ServiceRow(Row):
    """One model that its machines' maker sells by the token. price: id in ``api_prices``."""

    price: str
    device: Slug
    llm: Slug
    tier: str
    requests_per_minute: PerPeriod | None = None
    tokens_per_minute: PerPeriod | None = None
    requests_per_day: PerPeriod | None = None
    tokens_per_day: PerPeriod | None = None
    provenance: Provenance

    @model_validator(mode="after")
    def _limited(self) -> Self:
        if self.requests_per_minute is None and self.tokens_per_minute is None:
            raise ValueError("a service states how fast an account may send requests")
        return self

    @property
    def seller(self) -> str:
        return self.price.partition("/")[0]


class IntervalRow(Row):
    """How far from the published figures others may be met."""

    factor: Annotated[float, Field(gt=1, le=10)]
    provenance: Provenance


class Published(Row):
    """Both files."""

    interval: IntervalRow
    speeds: tuple[SpeedRow, ...]
    services: tuple[ServiceRow, ...]

    def speed(self, device: str, llm: str) -> SpeedRow | None:
        """Of a model on a system; None where nobody has published one."""
        return next((row for row in self.speeds if (row.device, row.llm) == (device, llm)), None)

    @property
    def sellers(self) -> frozenset[str]:
        return frozenset(row.seller for row in self.services)


@lru_cache(maxsize=1)
def read_published() -> Published:
    """Raises ValidationError naming each fault.

    >>> found = read_published().speed("groq-lpu-v1", "llama-3.1-8b")
    >>> found is not None and found.shared
    True
    """
    speeds = tomllib.loads((FOLDER / "speeds.toml").read_text(encoding="utf-8"))
    services = tomllib.loads((FOLDER / "services.toml").read_text(encoding="utf-8"))
    return Published.model_validate(
        {"interval": speeds["interval"], "speeds": speeds["speed"], "services": services["service"]}
    )
