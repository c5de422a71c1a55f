"""Where the present comes from. Everything that needs it takes a ``Clock``, so tests and replays can fix it."""

import datetime as dt
import time
from collections.abc import Callable

Clock = Callable[[], dt.datetime]
time_limits_run_by: Callable[[], float] = time.monotonic
"""Seconds from some instant: who asked waits by the wall."""


def system_clock() -> dt.datetime:
    """Now, in UTC."""
    return dt.datetime.now(dt.UTC)


def elapsed_s() -> float:
    """What time limits of requests are measured with."""
    return time_limits_run_by()


def rfc3339(instant: dt.datetime) -> str:
    """
    >>> rfc3339(dt.datetime(2026, 11, 21, 9, 30, tzinfo=dt.UTC))
    '2026-11-21T09:30:00Z'
    """
    return instant.astimezone(dt.UTC).isoformat().replace("+00:00", "Z")
