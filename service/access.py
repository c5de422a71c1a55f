"""Who may do what.

    reader   GET, estimates, recommendations, comparisons
    agent    reader, and upload benchmarks
    editor   everything

With no token stored, the service answers only clients on loopback that address it by a loopback name, and treats them
as editors; binding any other address without tokens refuses to start.
"""

import ipaddress
import re
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Annotated

from fastapi import Depends, Request
from sqlmodel import Session
from starlette.concurrency import run_in_threadpool

from service.database import database_of
from service.freshness import Freshness
from service.problems import ForbiddenError, ProblemError, UnauthenticatedError
from service.rate_limit import MOST_BUCKETS, RateLimit, peer_of
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


LOOPBACK_HOST = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?", re.IGNORECASE)
"""A whole Host header. Compared as it came: what parses a header differently from a browser fails open."""


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


NO_TOKEN = "this service needs a bearer token"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
WRONG_TOKEN = "the token is unknown or revoked"


def identify(request: Request) -> Caller:
    """The caller behind a request; raises UnauthenticatedError, ForbiddenError or TooManyRequestsError."""
    secret = _secret(request)
    if secret is None:
        require_same_origin(request)
    _take_from_bucket(request, secret)
    return _stored_caller(request, secret)


@dataclass(frozen=True)
class Doors:
    """What is counted before anybody is let in: requests of each token and peer, and tokens that were wrong.

    A token counts as its own once it was found valid; until then, and where there is none, its peer does. However a
    header is written, and however many there are, a token has one bucket.
    """

    requests: RateLimit
    failures: RateLimit
    known: "OrderedDict[str, str]" = field(default_factory=OrderedDict)
    """Hash of a token found valid lately → its id. Says how it is counted, not whether it is still valid."""


FAILURES_PER_S = 1.0
FAILURES_BURST = 100
"""Wrong tokens of one peer; guessing 256 bits is hopeless in any case, but each guess asks the database."""


def _secret(request: Request) -> str | None:
    """The hash of the bearer token that was sent; None where no header was. Raises UnauthenticatedError."""
    headers = request.headers.getlist("authorization")
    if not headers:
        return None
    scheme, _, secret = headers[0].partition(" ")
    if len(headers) > 1 or scheme.lower() != "bearer" or not secret.strip():
        _count_failure(request)
        raise UnauthenticatedError(WRONG_TOKEN)
    return token_sha256(secret.strip())


def _take_from_bucket(request: Request, secret: str | None) -> None:
    doors: Doors = request.app.state.doors
    token_id = doors.known.get(secret) if secret is not None else None
    if token_id is not None:
        doors.requests.take(f"token {token_id}")
        return
    if secret is not None:
        doors.failures.check(_peer(request))
    doors.requests.take(f"peer {_peer(request)}")


def _count_failure(request: Request) -> None:
    doors: Doors = request.app.state.doors
    doors.requests.take(f"peer {_peer(request)}")
    doors.failures.take(_peer(request))


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


def _peer(request: Request) -> str:
    return peer_of(_address(request))


def _stored_caller(request: Request, secret: str | None) -> Caller:
    doors: Doors = request.app.state.doors
    with database_of(request).reading() as session:
        if secret is not None:
            token = active_token(session, secret)
            if token is None:
                doors.known.pop(secret, None)
                doors.failures.take(_peer(request))
                raise UnauthenticatedError(WRONG_TOKEN)
            doors.known[secret] = token.id
            while len(doors.known) > MOST_BUCKETS:
                doors.known.popitem(last=False)
            return Caller(token.id, Role[token.role])
        if any_active_token(session):
            raise UnauthenticatedError(NO_TOKEN)
    require_loopback(request)
    return Caller(_address(request), Role.editor, has_token=False)


def require_loopback(request: Request) -> None:
    """Without tokens only loopback is answered, and only under its own name: a page that rebinds its name is not."""
    if not is_loopback(_address(request)):
        raise ForbiddenError("no token is configured, so only clients on loopback are answered")
    hosts = request.headers.getlist("host")
    if len(hosts) != 1 or not LOOPBACK_HOST.fullmatch(hosts[0]):
        raise ForbiddenError("no token is configured, so the service must be addressed as localhost or 127.0.0.1")


def require_same_origin(request: Request) -> None:
    """A page of another origin may send forms here, and without tokens they would be obeyed. Raises ForbiddenError."""
    if request.method in SAFE_METHODS:
        return
    origins = request.headers.getlist("origin")
    own = f"{request.scope['scheme']}://{request.headers.get('host', '')}".lower()
    site = request.headers.get("sec-fetch-site", "none")
    if any(origin.lower() != own for origin in origins) or site not in ("same-origin", "none"):
        raise ForbiddenError("a page of another origin may not change anything here; use a token")


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
        secret = _secret(request)
        if secret is None:
            require_same_origin(request)
        _take_from_bucket(request, secret)
        key = (_address(request), secret, request.headers.get("host"))
        known = self._admitted.get(key)
        if known is not None and known[1].usable():
            return known[0]
        try:
            caller = await run_in_threadpool(_stored_caller, request, secret)
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


@dataclass(frozen=True)
class Admission:
    """A route's door. As a dependency it hands over the caller whom the route let in before it read the body."""

    least: Role
    recent: bool = False
    """By what was known a moment ago, for routes that ask ``no_longer_admitted`` before they commit."""

    async def let_in(self, request: Request) -> None:
        """Raises UnauthenticatedError, ForbiddenError or TooManyRequestsError."""
        if self.recent:
            callers: RecentCallers = request.app.state.recent_callers
            caller = await callers.identify(request)
        else:
            caller = await run_in_threadpool(identify, request)
        request.state.caller = _of_role(caller, self.least)

    async def __call__(self, request: Request) -> Caller:
        caller: Caller = request.state.caller
        return caller


def _of_role(caller: Caller, least: Role) -> Caller:
    if caller.role < least:
        raise ForbiddenError(f"this needs the role {least.name}; the token has {caller.role.name}")
    return caller


Reader = Annotated[Caller, Depends(Admission(Role.reader))]
Agent = Annotated[Caller, Depends(Admission(Role.agent))]
Editor = Annotated[Caller, Depends(Admission(Role.editor))]
RecentAgent = Annotated[Caller, Depends(Admission(Role.agent, recent=True))]
