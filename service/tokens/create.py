"""Make and revoke tokens."""

import hashlib
import secrets

from sqlmodel import Session
from ulid import ULID

from service.clock import Clock
from service.problems import not_found
from service.tokens.queries import all_tokens, token_by_id
from service.tokens.tables import TokenTable


def token_sha256(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def create_token(session: Session, name: str, role: str, clock: Clock) -> tuple[TokenTable, str]:
    """A new token: the stored row and the secret, which is shown once and kept nowhere."""
    secret = f"cw_{secrets.token_urlsafe(32)}"
    row = TokenTable(id=f"tok_{ULID()}", name=name, role=role, sha256=token_sha256(secret), created_at=clock())
    session.add(row)
    return row, secret


def revoke_token(session: Session, token_id: str, clock: Clock) -> TokenTable:
    """From now on the token is refused. Revoking twice changes nothing."""
    row = token_by_id(session, token_id)
    if row is None:
        raise not_found("token", token_id, [t.id for t in all_tokens(session)])
    if row.revoked_at is None:
        row.revoked_at = clock()
    return row
