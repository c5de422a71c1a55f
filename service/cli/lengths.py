"""Token lengths as they are stated in options."""

import re
from typing import Any

from service.cli.exit_codes import CommandError, ExitCode

LENGTH = re.compile(r"([0-9]+(?:\.[0-9]+)?)(k?)(?::([0-9]+(?:\.[0-9]+)?)(k?))?", re.IGNORECASE)
MOST_DIGITS = 20
"""Far more than any count of tokens has, and few enough for floating point."""
RANGE = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
OUTPUT = "--output (1 of a model that embeds)"
"""How a reply's length is asked for where none is stated."""
LENGTHS_HELP = (
    "mean and 95th percentile, such as 1200:4000; 100-900: each of them equally likely; one number: all of that length"
)


def lengths(option: str, text: str | None) -> dict[str, Any] | None:
    """
    >>> lengths("--prompt", "1200:4000")
    {'distribution': 'lognormal', 'mean': 1200.0, 'p95': 4000.0}
    >>> lengths("--prompt", "8k")
    {'distribution': 'fixed', 'tokens': 8000}
    >>> lengths("--prompt", "100-900")
    {'distribution': 'uniform', 'low': 100, 'high': 900}
    """
    if text is None:
        return None
    if (bounds := RANGE.fullmatch(text.strip())) is not None:
        return {"distribution": "uniform", "low": int(bounds[1]), "high": int(bounds[2])}
    found = LENGTH.fullmatch(text.strip())
    if found is None or max(len(digits or "") for digits in found.groups()) > MOST_DIGITS:
        raise CommandError(f"{option} {text[:40]!r}: {LENGTHS_HELP}", ExitCode.bad_input)
    mean = float(found[1]) * (1000 if found[2] else 1)
    if found[3] is None:
        return {"distribution": "fixed", "tokens": round(mean)}
    return {"distribution": "lognormal", "mean": mean, "p95": float(found[3]) * (1000 if found[4] else 1)}
