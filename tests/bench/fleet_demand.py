"""The demand curve of ``tests.bench.fleet_plans``, in fleet_demand.json: ``python -m tests.bench.fleet_demand`` writes it.

Requests per second of a workload in hour h of a day type in month m:

    λ(m, d, h) = s_d · (p (1 + q)/2 + p (1 − q)/2 · cos(2π (h − h₀)/24)) · (1 + g)^m

p: peak of a weekday in the first month, at hour h₀; q: the quietest hour's share of it; s: 1 on weekdays (5 of 7 days);
g: growth a month.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_suffix(".json")
HOURS = 24
DIGITS = 3


@dataclass(frozen=True, slots=True)
class Curve:
    """One workload's constants of the formula."""

    peak_requests_per_s: float
    quietest_fraction: float
    peak_hour: int
    weekend_fraction: float
    growth_percent_per_month: float


CURVES = {
    "chat": Curve(24.0, 0.25, 15, 0.55, 3.0),
    "code": Curve(20.0, 0.25, 11, 0.55, 3.0),
    "search": Curve(60.0, 0.25, 20, 0.55, 3.0),
}
"""People chat in the afternoon, write code before noon and search in the evening."""


def profile(curve: Curve) -> dict[str, Any]:
    """The ``demand`` of a fleet request."""
    peak, low = curve.peak_requests_per_s, curve.quietest_fraction
    weekday = [
        peak * (1 + low) / 2 + peak * (1 - low) / 2 * math.cos(2 * math.pi * (h - curve.peak_hour) / HOURS)
        for h in range(HOURS)
    ]
    return {
        "kind": "profile",
        "weekday_requests_per_s": [round(rate, DIGITS) for rate in weekday],
        "weekend_requests_per_s": [round(rate * curve.weekend_fraction, DIGITS) for rate in weekday],
        "growth_percent_per_month": curve.growth_percent_per_month,
    }


def made() -> dict[str, Any]:
    """The file's content, by workload."""
    return {name: profile(curve) for name, curve in CURVES.items()}


def stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    FILE.write_text(json.dumps(made(), indent=1) + "\n", encoding="utf-8")
