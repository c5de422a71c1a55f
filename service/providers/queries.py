"""SQL about providers."""

from collections.abc import Mapping

from sqlalchemy import func
from sqlmodel import Session, col, select

from service.listing import Listed, listed
from service.providers.tables import ProviderTable


def list_providers(
    session: Session, *, after: str | None, limit: int, provider_class: str | None = None
) -> Listed[ProviderTable]:
    wanted = select(ProviderTable)
    if provider_class is not None:
        wanted = wanted.where(func.lower(ProviderTable.provider_class) == provider_class.lower())
    return listed(session, wanted, ProviderTable.id, limit=limit, after=after)


def provider_by_id(session: Session, provider_id: str) -> ProviderTable | None:
    return session.get(ProviderTable, provider_id)


def provider_ids(session: Session) -> list[str]:
    return list(session.exec(select(col(ProviderTable.id)).order_by(ProviderTable.id)).all())


def providers_by_id(session: Session) -> Mapping[str, ProviderTable]:
    return {row.id: row for row in session.exec(select(ProviderTable)).all()}
