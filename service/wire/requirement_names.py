"""What a question about a plan may vary, by its name or as people shorten it."""

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

SHORT = {
    "power": "power_kw", "carbon": "carbon_kg_co2e_per_hour", "emissions": "carbon_kg_co2e_per_hour",
    "context": "context_tokens", "confidence": "confidence_percent", "spares": "spare_nodes", "rate": "requests_per_s",
}  # fmt: skip
LATENCY = re.compile(r"(?:targets\.)?(ttft|ttfat|tpot|e2e)(?:_ms)?(?:[. _-]?(mean|p50|p90|p95|p99))?")


def requirement_meant(name: Any) -> Any:
    """A latency without a percentile is that of its 95th, as a number for a target is.

    >>> requirement_meant("TTFT"), requirement_meant("tpot.p99"), requirement_meant("power"), requirement_meant("mood")
    ('targets.ttft_ms.p95', 'targets.tpot_ms.p99', 'power_kw', 'mood')
    """
    if not isinstance(name, str):
        return name
    found = LATENCY.fullmatch(name.strip().lower())
    if found:
        return f"targets.{found[1]}_ms.{found[2] or 'p95'}"
    return SHORT.get(name.strip().lower(), name)


CurveOf = Annotated[
    Literal[
        "targets.ttft_ms.mean", "targets.ttft_ms.p50", "targets.ttft_ms.p90", "targets.ttft_ms.p95", "targets.ttft_ms.p99",
        "targets.tpot_ms.mean", "targets.tpot_ms.p50", "targets.tpot_ms.p90", "targets.tpot_ms.p95", "targets.tpot_ms.p99",
        "targets.e2e_ms.mean", "targets.e2e_ms.p50", "targets.e2e_ms.p90", "targets.e2e_ms.p95", "targets.e2e_ms.p99",
        "targets.ttfat_ms.mean", "targets.ttfat_ms.p50", "targets.ttfat_ms.p90", "targets.ttfat_ms.p95", "targets.ttfat_ms.p99",
        "context_tokens", "confidence_percent", "spare_nodes", "requests_per_s",
    ],
    BeforeValidator(requirement_meant),
]  # fmt: skip
"""A requirement whose price is asked for at several values."""
Against = Annotated[
    Literal[
        "targets.ttft_ms.mean", "targets.ttft_ms.p50", "targets.ttft_ms.p90", "targets.ttft_ms.p95", "targets.ttft_ms.p99",
        "targets.tpot_ms.mean", "targets.tpot_ms.p50", "targets.tpot_ms.p90", "targets.tpot_ms.p95", "targets.tpot_ms.p99",
        "power_kw", "carbon_kg_co2e_per_hour",
    ],
    BeforeValidator(requirement_meant),
]  # fmt: skip
"""What cost is traded against."""
