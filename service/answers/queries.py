"""SQL about stored answers of any kind."""

from collections.abc import Sequence
from typing import TypeVar

from sqlalchemy.orm import defer
from sqlmodel import Session, select

from service.answers.tables import StoredAnswer
from service.listing import Listed, listed

Row = TypeVar("Row", bound=StoredAnswer)


def list_answers(
    session: Session,
    table: type[Row],
    *,
    before: str | None,
    limit: int,
    outcome: str | None = None,
    without: Sequence[str] = (),
) -> Listed[Row]:
    """Newest first: ids sort by time. without: columns that are not read."""
    wanted = select(table)
    if outcome is not None:
        wanted = wanted.where(table.outcome == outcome)
    short = [defer(getattr(table, name)) for name in without]
    return listed(session, wanted, table.id, limit=limit, after=before, newest_first=True, options=short)


def answer_by_id(session: Session, table: type[Row], answer_id: str) -> Row | None:
    return session.get(table, answer_id)
