"""When a kept value is read again: by one caller, while the others go on with it for a moment longer."""

import threading
import time
from collections.abc import Callable


class Freshness:
    """Age of a kept value. Without it, every request of a busy moment would read the same thing at the same time."""

    def __init__(self, renew_after_s: float, most_s: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._renew_after_s = renew_after_s
        self._most_s = most_s
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._renewed_at: float | None = None
        self._asked_at: float | None = None

    def renewed(self) -> None:
        """The value was read just now."""
        self._renewed_at = self._monotonic()

    def usable(self) -> bool:
        """False for the one caller that should read the value again, and for all when it is too old."""
        now = self._monotonic()
        with self._lock:
            if self._renewed_at is None or now - self._renewed_at > self._most_s:
                return False
            if now - max(self._renewed_at, self._asked_at or self._renewed_at) <= self._renew_after_s:
                return True
            self._asked_at = now
            return False
