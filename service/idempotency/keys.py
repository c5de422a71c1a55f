"""The same key and the same request: the first record again. The same key and another request: a conflict.

A key is claimed in the transaction that stores: of two requests under one key at once, one waits for the other and then
finds its record. What takes long is computed before that transaction, so both may compute; one of them stores.
"""

import datetime as dt
import hashlib
import json
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Header, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel
from sqlmodel import Session

from service.access import Caller
from service.benchmarks.queries import insert_unless_stored
from service.database import Database
from service.idempotency.queries import point_key, stored_key
from service.idempotency.tables import StoredKeyTable
from service.problems import ConflictError

IdempotencyKey = Annotated[
    str | None,
    Header(alias="Idempotency-Key", min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$"),
]
STORED_BEFORE = "It was stored before: under this `Idempotency-Key`"


@dataclass(frozen=True, slots=True)
class Named:
    """A request under a key: whose, which, and the digest of what it asks."""

    caller: str
    key: str
    digest: str


class StoredBeforeError(Exception):
    """The key stands for this record already: answer with it, and store nothing."""

    def __init__(self, resource: str) -> None:
        super().__init__(resource)
        self.resource = resource


def named_request(request: Request, caller: Caller, key: str | None, asked: BaseModel) -> Named | None:
    """The request under its key; None without one. White space and defaults that are spelled out do not count."""
    if key is None:
        return None
    body = json.dumps(asked.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    content = f"{request.url.path}\n{body}".encode("utf-8", "surrogatepass")
    return Named(caller.name, key, hashlib.sha256(content).hexdigest())


def claim(session: Session, named: Named | None, now: dt.datetime) -> str | None:
    """Take the key in this transaction; the id of the record it stands for already, None where it is free.

    Another transaction that is taking it is waited for. Raises ConflictError when it stands for another request.
    """
    if named is None:
        return None
    row = StoredKeyTable(caller=named.caller, key=named.key, digest=named.digest, resource="", recorded_at=now)
    if insert_unless_stored(session, row):
        return None
    first = stored_key(session, named.caller, named.key)
    if first is None:  # deleted since: its job was forgotten
        raise ConflictError("the record of this Idempotency-Key was deleted just now; send the request again")
    return _same(first, named).resource


def claim_or_stop(session: Session, named: Named | None, now: dt.datetime) -> None:
    """``claim``, for what was computed already. Raises StoredBeforeError too: the transaction is rolled back."""
    first = claim(session, named, now)
    if first is not None:
        raise StoredBeforeError(first)


def settle(session: Session, named: Named | None, resource: str, answer: dict[str, Any] | None = None) -> None:
    """The claimed key stands for this record."""
    if named is not None:
        point_key(session, named.caller, named.key, resource, answer)


async def new_request(
    request: Request, caller: Caller, key: str | None, asked: BaseModel, database: Database
) -> Named | None:
    """``named_request`` in a thread (a body may be megabytes), looked up before anything is computed.

    Raises StoredBeforeError and ConflictError.
    """
    if key is None:
        return None

    def look_up() -> Named | None:
        named = named_request(request, caller, key, asked)
        with database.reading() as session:
            first = None if named is None else stored_key(session, named.caller, named.key)
        if named is not None and first is not None:
            raise StoredBeforeError(_same(first, named).resource)
        return named

    return await run_in_threadpool(look_up)


def first_answer(session: Session, named: Named | None) -> dict[str, Any] | None:
    """The answer that the key stands for, where no record holds it. Raises ConflictError."""
    first = None if named is None else stored_key(session, named.caller, named.key)
    return None if first is None or named is None else _same(first, named).answer


def _same(first: StoredKeyTable, named: Named) -> StoredKeyTable:
    if first.digest != named.digest:
        raise ConflictError(f"Idempotency-Key {named.key!r} was used for another request")
    return first
