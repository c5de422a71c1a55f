"""Errors as answers: RFC 9457 problem documents.

    ProblemError
    ├── MalformedBodyError      400  the body cannot be read
    ├── BodyTooLargeError       413  too many bytes or values
    ├── NotJsonError            415  the body is not said to be JSON
    ├── InvalidFieldsError      422  a field is wrong; ``errors`` point at each
    ├── NotFoundError           404  no such thing; close names are offered
    ├── ConflictError           409  contradicts what is stored
    ├── UnauthenticatedError    401  no token, or an unknown or revoked one
    ├── ForbiddenError          403  the role may not do this
    ├── TooManyRequestsError    429  rate limit
    └── UnavailableError        503  not now: stopping, busy, database not ready

What the solver and the database raise is mapped to the same documents by ``service.problem_handlers``.
"""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fastapi.responses import JSONResponse

MOST_FIELD_ERRORS = 50
"""Of one list in one request: who has more mends these first."""

MEDIA_TYPE = "application/problem+json"


@dataclass(frozen=True)
class ProblemType:
    """One kind of problem: its slug is the last part of ``type``, and GET of that address explains it."""

    slug: str
    status: int
    title: str
    explanation: str


PROBLEM_TYPES: dict[str, ProblemType] = {
    t.slug: t
    for t in (
        ProblemType("invalid-input", 422, "The request has invalid fields",
                    "Every entry of `errors` names a field (JSON pointer) or a query parameter, and what is wrong."),
        ProblemType("malformed-body", 400, "The body cannot be read",
                    "The body is not JSON, is nested too deeply, or is not in the stated encoding."),
        ProblemType("body-too-large", 413, "The body is too large",
                    "The body is above the limit the service is configured with; `detail` says how much it takes."),
        ProblemType("unsupported-media-type", 415, "The body is not said to be JSON",
                    "Bodies are JSON and must say so: send `Content-Type: application/json`. curl says so with `--json` or `-H`."),
        ProblemType("too-slow", 408, "The request came too slowly",
                    "Headers and body must arrive within the times the service is configured with; `detail` names them."),
        ProblemType("headers-too-large", 431, "The headers are too large",
                    "Request line and headers are above the limit the service is configured with."),
        ProblemType("not-found", 404, "There is no such thing",
                    "Nothing is stored under this id or address; `close_matches` lists similar ids."),
        ProblemType("method-not-allowed", 405, "This method is not allowed here",
                    "The `Allow` header lists the methods of this address."),
        ProblemType("conflict", 409, "This contradicts what is stored",
                    "Stored facts are append-only; another value for the same thing must be stated as a correction."),
        ProblemType("unauthenticated", 401, "A valid token is needed",
                    "Send `Authorization: Bearer …` with a token made by `clusterwright token create`."),
        ProblemType("forbidden", 403, "Not allowed",
                    "The token's role may not do this, or the service answers only on loopback until it has tokens."),
        ProblemType("too-many-requests", 429, "Too many requests",
                    "The rate limit of this token or address is reached; `Retry-After` says when to come back."),
        ProblemType("unavailable", 503, "Not available now",
                    "The service is starting, stopping, busy, or its database is not ready. Nothing was stored."),
        ProblemType("worker-lost", 503, "The work was lost too often",
                    "Every worker that took the job up died before it was done; look into the workers' logs. Ask again."),
        ProblemType("storage-full", 507, "The disk is full", "The database cannot grow. Nothing was stored."),
        ProblemType("internal", 500, "The service failed",
                    "A defect of the service. `request_id` finds it in the log. Nothing was stored."),
        ProblemType("http", 400, "The request was refused", "Any other HTTP error."),
    )
}  # fmt: skip


@dataclass(frozen=True)
class FieldError:
    """One wrong field: ``pointer`` is a JSON pointer into the body, ``parameter`` a query parameter's name."""

    detail: str
    pointer: str | None = None
    parameter: str | None = None

    def document(self) -> dict[str, str]:
        where = {"pointer": self.pointer} if self.pointer is not None else {"parameter": self.parameter or ""}
        return where | {"detail": self.detail}


class ProblemError(Exception):
    """Base of everything that is answered with a problem document."""

    slug = "internal"

    def __init__(self, detail: str, *, headers: dict[str, str] | None = None, **extra: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.headers = headers or {}
        self.extra = extra


class InvalidFieldsError(ProblemError):
    slug = "invalid-input"

    def __init__(self, errors: Iterable[FieldError]) -> None:
        listed = list(errors)
        count = len(listed)
        detail = listed[0].detail if count == 1 else f"{count} fields are invalid"
        super().__init__(detail, errors=[e.document() for e in listed])
        self.field_errors = listed


class MalformedBodyError(ProblemError):
    slug = "malformed-body"


class BodyTooLargeError(ProblemError):
    slug = "body-too-large"


class NotJsonError(ProblemError):
    slug = "unsupported-media-type"

    def __init__(self, content_type: str | None) -> None:
        said = "has no Content-Type" if not content_type else f"is said to be {content_type[:80]!r}"
        detail = f"the body {said}; this address takes JSON: send `Content-Type: application/json`"
        super().__init__(detail, headers={"Accept": "application/json"})


class NotFoundError(ProblemError):
    slug = "not-found"


class ConflictError(ProblemError):
    slug = "conflict"


class UnauthenticatedError(ProblemError):
    slug = "unauthenticated"

    def __init__(self, detail: str) -> None:
        super().__init__(detail, headers={"WWW-Authenticate": 'Bearer realm="clusterwright"'})


class ForbiddenError(ProblemError):
    slug = "forbidden"


class TooManyRequestsError(ProblemError):
    slug = "too-many-requests"

    def __init__(self, detail: str, *, retry_after_s: int) -> None:
        super().__init__(detail, headers={"Retry-After": str(max(1, retry_after_s))})


class UnavailableError(ProblemError):
    slug = "unavailable"

    def __init__(self, detail: str, *, retry_after_s: int = 5) -> None:
        super().__init__(detail, headers={"Retry-After": str(max(1, retry_after_s))})


def problem_document(problem: ProblemError) -> dict[str, Any]:
    """The document a problem is answered with."""
    kind = PROBLEM_TYPES[problem.slug]
    return {
        "type": f"/problems/{kind.slug}", "title": kind.title, "status": kind.status, "detail": problem.detail,
        **problem.extra,
    }  # fmt: skip


def problem_response(
    slug: str,
    detail: str,
    *,
    status: int | None = None,
    title: str | None = None,
    headers: dict[str, str] | None = None,
    **extra: Any,
) -> JSONResponse:
    """The document itself."""
    kind = PROBLEM_TYPES[slug]
    code = status or kind.status
    document = {"type": f"/problems/{slug}", "title": title or kind.title, "status": code, "detail": detail, **extra}
    return JSONResponse(document, status_code=code, headers=headers, media_type=MEDIA_TYPE)


def internal_problem(request_id: str | None) -> JSONResponse:
    """What a defect of the service is answered with."""
    return problem_response(
        "internal", PROBLEM_TYPES["internal"].explanation, request_id=request_id,
        headers={"X-Request-Id": request_id} if request_id else None,
    )  # fmt: skip


def close_matches(name: str, known: Iterable[str], most: int = 5) -> list[str]:
    """Known names like ``name`` in any case, best first.

    >>> close_matches("llama-3.1-70", ["llama-3.1-70b", "qwen3-32b", "llama-3.1-8b"])
    ['llama-3.1-70b', 'llama-3.1-8b']
    """
    by_lower = {one.lower(): one for one in known}
    return [by_lower[one] for one in difflib.get_close_matches(name.lower(), list(by_lower), n=most, cutoff=0.6)]


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """A sentence about a name nobody knows, with what may have been meant.

    >>> unknown_name("llm", "llama-3.1-70", ["llama-3.1-70b"])
    "no llm 'llama-3.1-70'; did you mean 'llama-3.1-70b'?"
    >>> unknown_name("region", "mars", ["us-east-1"])
    "no region 'mars'; GET the list for the known ones"
    """
    shown = name if len(name) <= 80 else name[:77] + "…"
    close = close_matches(name[:200], known)
    if close:
        return f"no {kind} {shown!r}; did you mean {' or '.join(repr(c) for c in close)}?"
    return f"no {kind} {shown!r}; GET the list for the known ones"


def not_found(kind: str, name: str, known: Iterable[str]) -> NotFoundError:
    """404 with close names."""
    names = list(known)
    return NotFoundError(unknown_name(kind, name, names), close_matches=close_matches(name[:200], names))
