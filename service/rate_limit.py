"""How often each caller may ask, and how often a peer may be wrong about its token."""

import ipaddress
import math
import threading
import time
from collections.abc import Callable

from service.problems import TooManyRequestsError

MOST_BUCKETS = 10_000
IPV6_HOST_BITS = 64


class RateLimit:
    """A token bucket for each caller: ``burst`` at once, then ``per_s`` a second."""

    def __init__(self, per_s: float, burst: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.per_s = per_s
        self.burst = burst
        self._monotonic = monotonic
        self._levels: dict[str, tuple[float, float]] = {}
        self._lock = threading.Lock()

    def take(self, caller: str) -> None:
        """Spend one request; raises TooManyRequestsError when the bucket is empty."""
        with self._lock:
            now = self._monotonic()
            if caller not in self._levels and len(self._levels) >= MOST_BUCKETS:
                self._make_room(now)
            level = self._level(caller, now)
            self._levels[caller] = (level - 1.0 if level >= 1.0 else level, now)
        if level < 1.0:
            raise self._refusal(level)

    def check(self, caller: str) -> None:
        """Spend nothing; raises TooManyRequestsError when the bucket is empty."""
        with self._lock:
            level = self._level(caller, self._monotonic())
        if level < 1.0:
            raise self._refusal(level)

    def _level(self, caller: str, now: float) -> float:
        level, since = self._levels.get(caller, (float(self.burst), now))
        return min(float(self.burst), level + (now - since) * self.per_s)

    def _refusal(self, level: float) -> TooManyRequestsError:
        return TooManyRequestsError("the rate limit is reached", retry_after_s=math.ceil((1.0 - level) / self.per_s))

    def _make_room(self, now: float) -> None:
        """Forget full buckets, and where none is full the half that is nearest to it: memory is bounded."""
        fullness = {name: level + (now - since) * self.per_s for name, (level, since) in self._levels.items()}
        kept = [name for name in self._levels if fullness[name] < self.burst]
        if len(kept) >= MOST_BUCKETS:
            kept = sorted(kept, key=fullness.__getitem__)[: MOST_BUCKETS // 2]
        self._levels = {name: self._levels[name] for name in kept}


def peer_of(address: str) -> str:
    """Whom an address stands for: one IPv4 host, or the /64 of an IPv6 one, which has all its addresses.

    >>> peer_of("2001:db8::1:2"), peer_of("::ffff:192.0.2.7"), peer_of("testclient")
    ('2001:db8::/64', '192.0.2.7', 'testclient')
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:100]
    if parsed.version == 4:
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, IPV6_HOST_BITS), strict=False))
