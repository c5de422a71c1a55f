"""SQL about idempotency keys."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, update
from sqlmodel import Session, col

from service.idempotency.tables import StoredKeyTable


def stored_key(session: Session, caller: str, key: str) -> StoredKeyTable | None:
    return session.get(StoredKeyTable, (caller, key))


def point_key(session: Session, caller: str, key: str, resource: str, answer: dict[str, Any] | None) -> None:
    """The key stands for this record from now on."""
    of_caller = (col(StoredKeyTable.caller) == caller) & (col(StoredKeyTable.key) == key)
    session.connection().execute(update(StoredKeyTable).where(of_caller).values(resource=resource, answer=answer))


def point_keys(session: Session, before: str, after: str) -> None:
    """Keys that stood for one record stand for another: what a job has stored, instead of the job."""
    session.connection().execute(
        update(StoredKeyTable).where(col(StoredKeyTable.resource) == before).values(resource=after)
    )


def forget_keys(session: Session, resources: Sequence[str]) -> None:
    """Keys of records that are being deleted."""
    session.connection().execute(delete(StoredKeyTable).where(col(StoredKeyTable.resource).in_(resources)))
