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
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Any

from fastapi import Depends, Request
from sqlmodel import Session
from starlette.concurrency import run_in_threadpool

from service.database import database_of
from service.freshness import Freshness
from service.problems import ForbiddenError, ProblemError, TooManyRequestsError, UnauthenticatedError
from service.tokens.create import token_sha256
from service.tokens.queries import active_token, active_token_ids, any_active_token


class Role(IntEnum):
    reader = 1
    agent = 2
    editor = 3


@dataclass(frozen=True)
class Caller:
    """``name``: the token's id, or the address of a loopback client, which has no token."""

    name: str
    role: Role
    has_token: bool = True


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


NO_TOKEN = "this service needs a bearer token"
WRONG_TOKEN = "the token is unknown or revoked"


def identify(request: Request) -> Caller:
    """The caller behind a request; raises UnauthenticatedError or ForbiddenError."""
    _take_from_bucket(request)
    return _stored_caller(request)


def _take_from_bucket(request: Request) -> None:
    rate_limit: RateLimit = request.app.state.rate_limit
    header = request.headers.get("authorization")
    rate_limit.take(_address(request) if header is None else token_sha256(header))


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


def _stored_caller(request: Request) -> Caller:
    client, header = _address(request), request.headers.get("authorization")
    with database_of(request).reading() as session:
        if header is not None:
            scheme, _, secret = header.partition(" ")
            token = active_token(session, token_sha256(secret.strip())) if scheme.lower() == "bearer" else None
            if token is None:
                raise UnauthenticatedError(WRONG_TOKEN)
            return Caller(token.id, Role[token.role])
        if any_active_token(session):
            raise UnauthenticatedError(NO_TOKEN)
    if not is_loopback(client):
        raise ForbiddenError("no token is configured, so only clients on loopback are answered")
    if request.url.hostname not in LOOPBACK_NAMES:
        raise ForbiddenError("no token is configured, so the service must be addressed as localhost or 127.0.0.1")
    return Caller(client, Role.editor, has_token=False)


class RecentCallers:
    """Callers admitted a moment ago, by what they sent to say who they are.

    Only for routes that ask ``no_longer_admitted`` in the transaction that stores: a token that was revoked since is
    refused there. Nobody who was refused is remembered.
    """

    def __init__(self, renew_after_s: float = 1.0, most_s: float = 3.0) -> None:
        self.renew_after_s = renew_after_s
        self.most_s = most_s
        self._admitted: dict[tuple[str, str | None, str | None], tuple[Caller, Freshness]] = {}

    async def identify(self, request: Request) -> Caller:
        """The caller behind a request; raises UnauthenticatedError or ForbiddenError."""
        _take_from_bucket(request)
        header = request.headers.get("authorization")
        key = (_address(request), header and token_sha256(header), request.headers.get("host"))
        known = self._admitted.get(key)
        if known is not None and known[1].usable():
            return known[0]
        try:
            caller = await run_in_threadpool(_stored_caller, request)
        except ProblemError:
            self._admitted.pop(key, None)
            raise
        if len(self._admitted) >= MOST_BUCKETS:
            self._admitted.clear()
        freshness = Freshness(self.renew_after_s, self.most_s)
        freshness.renewed()
        self._admitted[key] = (caller, freshness)
        return caller


def no_longer_admitted(session: Session, callers: Collection[Caller]) -> dict[Caller, ProblemError]:
    """Which of these callers lost their admission since they were identified, and how each is to be answered."""
    refused: dict[Caller, ProblemError] = {}
    with_token = {caller for caller in callers if caller.has_token}
    if with_token:
        active = active_token_ids(session, [caller.name for caller in with_token])
        refused = {caller: UnauthenticatedError(WRONG_TOKEN) for caller in with_token if caller.name not in active}
    if len(with_token) < len(callers) and any_active_token(session):
        refused |= {caller: UnauthenticatedError(NO_TOKEN) for caller in callers if not caller.has_token}
    return refused


def require(least: Role) -> Callable[[Request], Caller]:
    """A dependency that admits callers of at least this role."""

    def admit(request: Request) -> Caller:
        return _of_role(identify(request), least)

    return admit


def require_recent(least: Role) -> Callable[[Request], Coroutine[Any, Any, Caller]]:
    """The same by what was known a moment ago, for routes that ask ``no_longer_admitted`` before they commit."""

    async def admit(request: Request) -> Caller:
        recent: RecentCallers = request.app.state.recent_callers
        return _of_role(await recent.identify(request), least)

    return admit


def _of_role(caller: Caller, least: Role) -> Caller:
    if caller.role < least:
        raise ForbiddenError(f"this needs the role {least.name}; the token has {caller.role.name}")
    return caller


Reader = Annotated[Caller, Depends(require(Role.reader))]
Agent = Annotated[Caller, Depends(require(Role.agent))]
Editor = Annotated[Caller, Depends(require(Role.editor))]
RecentAgent = Annotated[Caller, Depends(require_recent(Role.agent))]
