"""SQL about tokens."""

from sqlmodel import Session, col, select

from service.tokens.tables import TokenTable


def active_token(session: Session, sha256: str) -> TokenTable | None:
    found = select(TokenTable).where(TokenTable.sha256 == sha256, col(TokenTable.revoked_at).is_(None))
    return session.exec(found).one_or_none()


def any_active_token(session: Session) -> bool:
    return session.exec(select(TokenTable.id).where(col(TokenTable.revoked_at).is_(None)).limit(1)).first() is not None


def all_tokens(session: Session) -> list[TokenTable]:
    return list(session.exec(select(TokenTable).order_by(TokenTable.id)).all())


def token_by_id(session: Session, token_id: str) -> TokenTable | None:
    return session.get(TokenTable, token_id)
