"""The shapes of rows about serving runs that others measured and published, and of generations of engines."""

import datetime as dt
from typing import Annotated, Literal

from pydantic import Field, model_validator

from catalog.rows import Positive, Provenance, Row, Slug

Count = Annotated[int, Field(ge=1)]


class PublicRunRow(Row):
    """One published run: what its source states, nothing else. ``requests``: a load that ends; without it a steady one.
    ``measured_on``: a day, month or year. Times and rates are means, or medians where the source has no others. ``only_means``: as its
    source has it; not in the file."""

    id: Slug
    source: Slug
    engine: Slug
    engine_version: str | None = None
    measured_on: Annotated[str, Field(pattern=r"^\d{4}(-\d\d){0,2}$")] | None = None
    device: Slug
    llm: Slug
    weights: Slug
    kv_cache: Slug
    tensor_parallel: Count
    pipeline_parallel: Count
    data_parallel: Count
    expert_parallel: Count
    load: Literal["closed", "open"]
    concurrency: Count | None = None
    requests: Count | None = None
    requests_per_s: Positive | None = None
    prompt_tokens_low: Count
    prompt_tokens_high: Count
    output_tokens_low: Count
    output_tokens_high: Count
    ttft_ms: Positive | None = None
    tpot_ms: Positive | None = None
    output_tokens_per_s: Positive | None = None
    only_means: bool = False

    @model_validator(mode="after")
    def _measured_something(self) -> "PublicRunRow":
        if self.ttft_ms is None and self.tpot_ms is None and self.output_tokens_per_s is None:
            raise ValueError("no time and no rate")
        if (self.concurrency if self.load == "closed" else self.requests_per_s) is None:
            raise ValueError(f"a load that is {self.load} states its concurrency or its rate")
        return self


class PublicSourceRow(Row):
    """Where runs come from, under the short key of their column ``source``.

    only_means: of lengths that vary it states no more, so that the ends of its rows are taken about them.
    """

    text: Annotated[str, Field(min_length=10)]
    retrieved_on: dt.date
    only_means: bool = False


class GenerationRow(Row):
    """The release and the day from which on an engine counts as of today's generation."""

    engine: Slug
    since_version: Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$")]
    since: dt.date
    provenance: Provenance


class LevelRow(Row):
    """Families (none: all) or a device under an engine, of which public runs may say how far times lie from predicted ones."""

    engine: Slug
    families: list[Slug] = Field(default_factory=list)
    device: Slug | None = None
    because: Annotated[str, Field(min_length=10)]
