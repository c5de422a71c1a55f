"""GET /v1/providers."""

from fastapi import APIRouter

from service.access import Reader
from service.database import ReadSession
from service.guarded_route import GuardedRoute
from service.paging import Limit, Next, cut_page, last_id
from service.problems import not_found
from service.providers.present import present_provider
from service.providers.queries import list_providers, provider_by_id, provider_ids
from service.wire.pages import Page
from service.wire.providers import ProviderClass, ProviderOut

router = APIRouter(prefix="/v1/providers", tags=["catalog"], route_class=GuardedRoute)


@router.get("", summary="List sellers of machine hours")
def get_providers(
    _caller: Reader,
    session: ReadSession,
    limit: Limit = 100,
    after: Next = None,
    provider_class: ProviderClass | None = None,
) -> Page[ProviderOut]:
    found = list_providers(session, after=last_id("next", after), limit=limit + 1, provider_class=provider_class)
    page, cursor = cut_page(found.rows, limit)
    return Page(items=[present_provider(row) for row in page], next=cursor, total=found.total)


@router.get("/{provider_id}", summary="One seller, and which of its regions name a place")
def get_provider(_caller: Reader, session: ReadSession, provider_id: str) -> ProviderOut:
    row = provider_by_id(session, provider_id)
    if row is None:
        raise not_found("provider", provider_id, provider_ids(session))
    return present_provider(row)
