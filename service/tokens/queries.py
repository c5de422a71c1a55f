"""SQL about tokens."""

from collections.abc import Collection
from functools import cache

from sqlalchemy import Executable, bindparam
from sqlmodel import Session, col, select

from service.tokens.tables import TokenTable


@cache
def _any_active() -> Executable:
    """Built once: it is asked in every transaction that stores uploads."""
    return select(TokenTable.id).where(col(TokenTable.revoked_at).is_(None)).limit(1)


@cache
def _active_among() -> Executable:
    wanted = select(TokenTable.id).where(col(TokenTable.revoked_at).is_(None))
    return wanted.where(col(TokenTable.id).in_(bindparam("ids", expanding=True)))


def active_token(session: Session, sha256: str) -> TokenTable | None:
    found = select(TokenTable).where(TokenTable.sha256 == sha256, col(TokenTable.revoked_at).is_(None))
    return session.exec(found).one_or_none()


def any_active_token(session: Session) -> bool:
    return session.connection().execute(_any_active()).first() is not None


def active_token_ids(session: Session, ids: Collection[str]) -> set[str]:
    """Those of the ids whose token is not revoked."""
    return set(session.connection().execute(_active_among(), {"ids": list(ids)}).scalars())


def all_tokens(session: Session) -> list[TokenTable]:
    return list(session.exec(select(TokenTable).order_by(TokenTable.id)).all())


def token_by_id(session: Session, token_id: str) -> TokenTable | None:
    return session.get(TokenTable, token_id)
