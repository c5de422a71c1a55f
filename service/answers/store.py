"""Storing an answer under the key of its request, and what it was computed from."""

from collections.abc import Callable
from typing import TypeVar

from sqlmodel import Session

from service.answers.queries import answer_by_id
from service.answers.tables import StoredAnswer
from service.database import Database
from service.idempotency.keys import Named, claim_or_stop, settle
from service.problems import NotFoundError
from service.wire.recommendations import InputsOut

Row = TypeVar("Row", bound=StoredAnswer)
Out = TypeVar("Out")


def stored(database: Database, row: Row, named: Named | None, present: Callable[[Row], Out]) -> Out:
    """The answer as it is sent. Raises StoredBeforeError when the same request under the same key was stored meanwhile."""
    with database.writing() as session:
        claim_or_stop(session, named, row.created_at)
        session.add(row)
        session.flush()
        settle(session, named, row.id)
        return present(row)


def added(session: Session, row: StoredAnswer) -> str:
    """The id of the answer of a job, whose transaction this is."""
    session.add(row)
    session.flush()
    return row.id


def inputs_of(row: StoredAnswer) -> InputsOut:
    """What an answer was computed from."""
    return InputsOut(
        price_as_of=row.price_as_of,
        catalog_digest=row.catalog_digest,
        correction_set=row.correction_set,
        version=row.version,
    )


def answer_named(session: Session, table: type[Row], noun: str, answer_id: str) -> Row:
    """Raises NotFoundError."""
    row = answer_by_id(session, table, answer_id)
    if row is None:
        raise NotFoundError(f"no {noun} {answer_id[:80]!r}")
    return row
