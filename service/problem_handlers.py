"""Maps everything that can be raised to a problem document."""

import difflib
import logging
import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError, ResponseValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from sqlalchemy.exc import DataError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from service.mistakes import belongs_elsewhere, body_model, near_field
from service.problems import (
    MOST_FIELD_ERRORS,
    PROBLEM_TYPES,
    FieldError,
    InvalidFieldsError,
    ProblemError,
    UnavailableError,
    internal_problem,
    problem_response,
)
from service.wire.quantities import PART_PATTERN, SLUG_PATTERN
from solver.errors import FigureMissingError, InvalidInputError, NoPlanInTimeError, SolverFailedError

log = logging.getLogger("clusterwright")

METHODS = ("DELETE", "GET", "PATCH", "POST", "PUT")
NOT_MIGRATED = re.compile(
    r"no such table|no such column|undefinedtable|undefinedcolumn|relation .* does not exist", re.I
)
DAMAGED = re.compile(r"malformed|not a database|database corruption|invalid page|could not read block", re.I)
DAMAGED_ADVICE = (
    "the database is damaged or not one: stop the service, keep the file, and restore a backup (SQLite: `sqlite3 FILE .recover`"
    " saves what can be read); nothing was stored"
)
PATTERN_WORDS = {
    SLUG_PATTERN: "small letters, digits, dots, hyphens and underscores only, a letter or digit first",
    PART_PATTERN: "letters, digits, dots, hyphens and underscores only, a letter or digit first",
}
"""What names may be made of, said without their pattern."""
OBJECT_WORDS, LIST_WORDS = "this must be an object, {…}", "this must be a list, […]"
SHAPE_WORDS = dict.fromkeys(("model_type", "model_attributes_type", "dict_type", "mapping_type"), OBJECT_WORDS)
SHAPE_WORDS |= dict.fromkeys(("tuple_type", "list_type"), LIST_WORDS)
"""What JSON calls that for which the validator has names of its own language."""
READ_ONLY = re.compile(r"readonly database|read-only|unable to open database|disk i/o error", re.I)
FULL = re.compile(r"disk is full|no space left|could not extend file", re.I)


def install_problem_handlers(app: FastAPI) -> None:
    app.add_exception_handler(ProblemError, _problem)
    app.add_exception_handler(RequestValidationError, _invalid_request)
    for raised in (FigureMissingError, InvalidInputError, NoPlanInTimeError, SolverFailedError):
        app.add_exception_handler(raised, _solver)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(DBAPIError, _database)
    app.add_exception_handler(PoolTimeoutError, _database_busy)
    app.add_exception_handler(ResponseValidationError, _unexpected)


async def _problem(_request: Request, problem: Exception) -> JSONResponse:
    assert isinstance(problem, ProblemError)
    return problem_response(problem.slug, problem.detail, headers=problem.headers, **problem.extra)


async def _invalid_request(request: Request, invalid: Exception) -> JSONResponse:
    assert isinstance(invalid, RequestValidationError)
    errors = invalid.errors()
    malformed = next((e for e in errors if e["type"] == "json_invalid"), None)
    if malformed is not None:
        reason = malformed.get("ctx", {}).get("error", "not JSON")
        return problem_response("malformed-body", f"the body is not valid JSON: {reason}")
    model = body_model(request.scope)
    elsewhere = belongs_elsewhere(invalid.body, frozenset(model.model_fields if model else ()))
    if elsewhere is not None:
        return await _problem(request, InvalidFieldsError([FieldError(elsewhere, pointer="")]))
    told = islice((e for e in errors if not _is_echo(e) and not _is_other_form(e, errors)), MOST_FIELD_ERRORS)
    listed = [_field_error(e, invalid.body, model, _words(e, errors)) for e in told]
    return await _problem(request, InvalidFieldsError(_without_other_shapes(listed)))


def _without_other_shapes(errors: Sequence[FieldError]) -> list[FieldError]:
    """Without the shape that a field might have had instead, where what is wrong with the one it has is said."""
    said = {e.pointer for e in errors if e.detail not in SHAPE_WORDS.values()}
    return [e for e in errors if e.detail not in SHAPE_WORDS.values() or e.pointer not in said]


def as_problem(error: Exception) -> ProblemError:
    """What the solver raises, and any other error, as the problem it is answered with."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, InvalidInputError):
        return InvalidFieldsError([FieldError(str(error), pointer="")])
    if isinstance(error, FigureMissingError):
        return InvalidFieldsError([FieldError(f"figure_missing: {error}", pointer="")])
    if isinstance(error, NoPlanInTimeError):
        advice = "raise time_limit_s, allow a gap_fraction, or narrow the limits to fewer devices or providers"
        return UnavailableError(f"{error}; {advice}", retry_after_s=1)
    if isinstance(error, SolverFailedError):
        log.error("every solver failed: %s", error)
        return UnavailableError(
            "no solver could handle this programme, and no plan was stored; allow a gap_fraction, or narrow the limits"
            " to fewer devices or providers",
            retry_after_s=1,
        )
    return ProblemError(PROBLEM_TYPES["internal"].explanation)


async def _solver(request: Request, error: Exception) -> JSONResponse:
    return await _problem(request, as_problem(error))


async def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == 404:
        return problem_response("not-found", "no resource at this address; /openapi.json lists them", headers=headers)
    if error.status_code == 405:
        allowed = ", ".join(_allowed_methods(request)) or headers.get("Allow", "")
        return problem_response("method-not-allowed", f"allowed: {allowed}", headers=headers | {"Allow": allowed})
    if error.status_code == 400:
        return problem_response("malformed-body", str(error.detail), headers=headers)
    return problem_response("http", str(error.detail), status=error.status_code, headers=headers)


def _allowed_methods(request: Request) -> list[str]:
    """Of every route at this address: the first that matches knows its own method only."""
    return [
        method
        for method in METHODS
        if any(route.matches({**request.scope, "method": method})[0] is Match.FULL for route in request.app.routes)
    ]


async def _database(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, DBAPIError)
    if isinstance(error, DataError):
        detail = "a value that no stored text or number can have (a NUL character, a number out of range)"
        return await _problem(request, InvalidFieldsError([FieldError(detail, pointer="")]))
    text = f"{type(error.orig).__name__} {error.orig}"
    retry = {"Retry-After": "5"}
    if NOT_MIGRATED.search(text):
        return problem_response(
            "unavailable", "the database is not migrated; run `clusterwright migrate`", headers=retry
        )
    if DAMAGED.search(text):
        log.error("the database is damaged: %s", text.splitlines()[0])
        return problem_response("unavailable", DAMAGED_ADVICE, headers={"Retry-After": "60"})
    if FULL.search(text):
        return problem_response("storage-full", "the database cannot grow", headers=retry)
    if READ_ONLY.search(text):
        return problem_response("unavailable", "the database cannot be written or opened: read-only?", headers=retry)
    if error.connection_invalidated or type(error).__name__ == "OperationalError":
        log.warning("database error: %s", text.splitlines()[0])
        return problem_response("unavailable", "the database is busy or unreachable", headers=retry)
    return await _unexpected(request, error)


async def _database_busy(_request: Request, _error: Exception) -> JSONResponse:
    return problem_response("unavailable", "no database connection became free in time", headers={"Retry-After": "2"})


async def _unexpected(request: Request, error: Exception) -> JSONResponse:
    request_id = getattr(request.state, "request_id", None)
    log.error("unexpected failure, request %s", request_id, exc_info=error)
    return internal_problem(request_id)


def _is_echo(error: Any) -> bool:
    """A list called too short because its entries are wrong, which is said of them already."""
    given, least = error.get("input"), error.get("ctx", {}).get("min_length")
    return error["type"] == "too_short" and isinstance(given, list) and least is not None and len(given) >= least


def _is_other_form(error: Any, errors: Sequence[Any]) -> bool:
    """That something is not the one word that it may also be, where what is wrong with it is said."""
    *place, form = error["loc"] or ("",)
    if not str(form).startswith("literal["):
        return False
    return any(e is not error and list(e["loc"][: len(place)]) == place for e in errors)


def _words(error: Any, errors: Sequence[Any]) -> str:
    """The words of a union that the field may also have, as in ``"any"`` for an object."""
    place = list(error["loc"][:-1])
    words = (
        e["ctx"]["expected"]
        for e in errors
        if e is not error and e["type"] == "literal_error" and list(e["loc"][:-1]) == place
    )
    return ", ".join(word.replace("'", '"') for word in words)


REQUIRED_HINTS = {"output_tokens": "; of models that embed it is 1"}
"""What to state where it is not plain."""


def _field_error(error: Any, body: Any, model: type[BaseModel] | None, words: str = "") -> FieldError:
    place, *rest = error["loc"] or ("body",)
    detail = _message(error)
    if words and error["type"] in SHAPE_WORDS:
        detail += f", or {words}"
    if error["type"] == "extra_forbidden" and place == "body":
        detail += near_field(model, tuple(rest))
    if place == "body":
        return FieldError(detail, pointer=json_pointer(tuple(rest), body, is_missing=error["type"] == "missing"))
    return FieldError(detail, parameter=".".join(map(str, rest)) or str(place))


def _message(error: Any) -> str:
    kind = error["type"]
    if kind == "extra_forbidden":
        return f"unknown field {str(error['loc'][-1])[:80]!r}"
    if kind == "missing":
        return "this field is required" + REQUIRED_HINTS.get(str(error["loc"][-1]), "")
    if kind == "union_tag_not_found":
        return f"say which form this has: {error.get('ctx', {}).get('discriminator', 'its kind')} is required"
    if kind == "string_pattern_mismatch" and (words := PATTERN_WORDS.get(error.get("ctx", {}).get("pattern", ""))):
        return f"{str(error.get('input'))[:80]!r}: {words}"
    if kind in SHAPE_WORDS:
        return SHAPE_WORDS[kind]
    context = error.get("ctx", {})
    if kind in {"too_short", "too_long"} and (length := context.get("actual_length")) is not None:
        bound, count = ("least", context["min_length"]) if kind == "too_short" else ("most", context["max_length"])
        return f"at {bound} {count} {'entry belongs' if count == 1 else 'entries belong'} here, not {length}"
    message = str(error["msg"]).removeprefix("Value error, ")
    given = error.get("input")
    expected = error.get("ctx", {}).get("expected", error.get("ctx", {}).get("expected_tags"))
    if kind in {"literal_error", "union_tag_invalid", "enum"} and isinstance(expected, str):
        choices = re.findall(r"'([^']*)'", expected)
        name = given if isinstance(given, str) else error.get("ctx", {}).get("tag")
        close = difflib.get_close_matches(str(name)[:80], choices, n=3) if name is not None else []
        shown = f"{str(name)[:80]!r} is not known here" if isinstance(name, str) else "not one of the known values"
        hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
        return f"{shown}; known: {', '.join(choices)}{hint}"
    return message


def json_pointer(loc: tuple[Any, ...], body: Any, *, is_missing: bool = False) -> str:
    """The JSON pointer (RFC 6901) of a validation location.

    Locations also hold the tags of unions and a mark for dictionary keys, which are no part of the document:
    the body is walked, and what it does not contain is left out unless it is the last field and missing.

    >>> json_pointer(("a", 0, "uniform", "low"), {"a": [{"low": -1}]})
    '/a/0/low'
    >>> json_pointer(("a", "missing"), {"a": {}}, is_missing=True)
    '/a/missing'
    >>> json_pointer(("demand", "series"), {"demand": {"kind": "series"}})
    '/demand'
    >>> json_pointer(("targets", "p97", "[key]"), {"targets": {"p97": 1}})
    '/targets/p97'
    """
    parts: list[str] = []
    here = body
    for position, step in enumerate(loc):
        is_last = position == len(loc) - 1
        if _holds(here, step):
            here = here[step]
        elif not (is_missing and is_last and isinstance(here, dict)):
            continue
        parts.append(str(step).replace("~", "~0").replace("/", "~1"))
    return "".join(f"/{part}" for part in parts)


def _holds(here: Any, step: Any) -> bool:
    if isinstance(here, dict):
        return step in here
    return isinstance(here, list) and isinstance(step, int) and 0 <= step < len(here)
