"""SQL of lists: one page of what the filters leave, and how many that are in all."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import func
from sqlalchemy.orm.interfaces import ORMOption
from sqlmodel import Session, col

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Listed(Generic[Row]):
    """rows: as many as were asked for, in order. total: of all pages, under the same filters."""

    rows: list[Row]
    total: int


def listed(
    session: Session,
    wanted: Any,
    key: Any,
    *,
    limit: int,
    after: str | None = None,
    newest_first: bool = False,
    options: Sequence[ORMOption] = (),
) -> Listed[Any]:
    """A page in the order of ``key``, from behind ``after``. wanted: with its filters, without order or limit.

    What fits on one page is counted by reading it; the rest by the database, without sorting or fetching a row.
    """
    key = col(key)
    page = wanted.order_by(key.desc() if newest_first else key).limit(limit).options(*options)
    if after is not None:
        page = page.where(key < after if newest_first else key > after)
    rows = list(session.exec(page).all())
    if after is None and len(rows) < limit:
        return Listed(rows, len(rows))
    counted = wanted.with_only_columns(func.count(), maintain_column_froms=True)
    return Listed(rows, session.connection().execute(counted).scalar_one())
