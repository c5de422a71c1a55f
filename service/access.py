"""Who may do what.

    reader   GET, estimates, recommendations, comparisons
    agent    reader, and upload benchmarks
    editor   everything

With no token stored, the service answers only clients on loopback that address it by a loopback name, and treats them
as editors; binding any other address without tokens refuses to start.
"""

import ipaddress
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated

from fastapi import Depends, Request

from service.database import database_of
from service.problems import ForbiddenError, TooManyRequestsError, UnauthenticatedError
from service.tokens.create import token_sha256
from service.tokens.queries import active_token, any_active_token


class Role(IntEnum):
    reader = 1
    agent = 2
    editor = 3


@dataclass(frozen=True)
class Caller:
    """``name``: the token's id, or the address of a loopback client."""

    name: str
    role: Role


LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})
MOST_BUCKETS = 10_000


def is_loopback(host: str) -> bool:
    """
    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("::1")
    (True, True, False, True)
    """
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


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
            if len(self._levels) > MOST_BUCKETS:
                self._forget_full_buckets(now)
            level, since = self._levels.get(caller, (float(self.burst), now))
            level = min(float(self.burst), level + (now - since) * self.per_s)
            if level < 1.0:
                self._levels[caller] = (level, now)
                raise TooManyRequestsError(
                    "the rate limit is reached", retry_after_s=math.ceil((1.0 - level) / self.per_s)
                )
            self._levels[caller] = (level - 1.0, now)

    def _forget_full_buckets(self, now: float) -> None:
        self._levels = {
            name: (level, since)
            for name, (level, since) in self._levels.items()
            if level + (now - since) * self.per_s < self.burst
        }


def identify(request: Request) -> Caller:
    """The caller behind a request; raises UnauthenticatedError or ForbiddenError."""
    client = request.client.host if request.client else ""
    rate_limit: RateLimit = request.app.state.rate_limit
    header = request.headers.get("authorization")
    rate_limit.take(client if header is None else token_sha256(header))
    with database_of(request).reading() as session:
        if header is not None:
            scheme, _, secret = header.partition(" ")
            token = active_token(session, token_sha256(secret.strip())) if scheme.lower() == "bearer" else None
            if token is None:
                raise UnauthenticatedError("the token is unknown or revoked")
            return Caller(token.id, Role[token.role])
        if any_active_token(session):
            raise UnauthenticatedError("this service needs a bearer token")
    if not is_loopback(client):
        raise ForbiddenError("no token is configured, so only clients on loopback are answered")
    if request.url.hostname not in LOOPBACK_NAMES:
        raise ForbiddenError("no token is configured, so the service must be addressed as localhost or 127.0.0.1")
    return Caller(client, Role.editor)


def require(least: Role) -> Callable[[Request], Caller]:
    """A dependency that admits callers of at least this role."""

    def admit(request: Request) -> Caller:
        caller = identify(request)
        if caller.role < least:
            raise ForbiddenError(f"this needs the role {least.name}; the token has {caller.role.name}")
        return caller

    return admit


Reader = Annotated[Caller, Depends(require(Role.reader))]
Agent = Annotated[Caller, Depends(require(Role.agent))]
Editor = Annotated[Caller, Depends(require(Role.editor))]
