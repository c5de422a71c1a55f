"""How long a further replica takes until it answers, part by part: ``engines/readiness.toml``."""

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from catalog.rows import Provenance, Row

FILE = Path(__file__).with_name("engines") / "readiness.toml"
ANY_ENGINE = "*"
ReadinessPart = Literal["node", "image", "weights", "engine"]
PARTS: tuple[ReadinessPart, ...] = ("node", "image", "weights", "engine")
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class ReadinessRow(Row):
    """The fastest and the slowest published case of one part: seconds, or for weights a rate at which they arrive."""

    part: ReadinessPart
    engine: str
    fast_s: Positive | None = None
    slow_s: Positive | None = None
    fast_bytes_per_s: Positive | None = None
    slow_bytes_per_s: Positive | None = None
    provenance: Provenance

    @model_validator(mode="after")
    def in_order(self) -> "ReadinessRow":
        """Seconds for all but weights, and the fast case no slower than the slow one."""
        if self.part == "weights":
            fast, slow, others = self.slow_bytes_per_s, self.fast_bytes_per_s, (self.fast_s, self.slow_s)
        else:
            fast, slow, others = self.fast_s, self.slow_s, (self.fast_bytes_per_s, self.slow_bytes_per_s)
        if fast is None or slow is None or others != (None, None):
            raise ValueError(f"{self.part} is stated in {'bytes per second' if self.part == 'weights' else 'seconds'}")
        if fast > slow:
            raise ValueError(f"the fast case of {self.part} is the slow one")
        return self

    def range_s(self, weights_bytes: float) -> tuple[float, float]:
        """Seconds (fast, slow); weights_bytes: what one machine of the replica loads."""
        if self.fast_bytes_per_s is not None and self.slow_bytes_per_s is not None:
            return weights_bytes / self.fast_bytes_per_s, weights_bytes / self.slow_bytes_per_s
        assert self.fast_s is not None
        assert self.slow_s is not None
        return self.fast_s, self.slow_s


@lru_cache(maxsize=1)
def read_readiness() -> tuple[ReadinessRow, ...]:
    """All rows, in the order in which the parts follow one another."""
    rows = [ReadinessRow.model_validate(row) for row in tomllib.loads(FILE.read_text(encoding="utf-8"))["part"]]
    return tuple(sorted(rows, key=lambda row: PARTS.index(row.part)))


def readiness_of(part: ReadinessPart, engine: str) -> ReadinessRow | None:
    """The engine's own row before that of any; None where nobody has published one.

    >>> [readiness_of("engine", name) is not None for name in ("vllm", "llama.cpp")]
    [True, False]
    """
    rows = [row for row in read_readiness() if row.part == part and row.engine in (engine, ANY_ENGINE)]
    return min(rows, key=lambda row: row.engine == ANY_ENGINE, default=None)
