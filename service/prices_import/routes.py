"""POST /v1/offers/import."""

from fastapi import APIRouter, Request

from service.access import Editor
from service.guarded_route import GuardedRoute
from service.idempotency.keys import IdempotencyKey, named_request
from service.prices_import.create import import_prices
from service.recommendations.create import workshop_of
from service.wire.prices_import import PricesImportIn, PricesImportOut

router = APIRouter(prefix="/v1/offers", tags=["catalog"], route_class=GuardedRoute)


@router.post("/import", summary="Import a price list; tells what changed and which stored plans it touches")
async def post_price_list(
    request: Request, caller: Editor, asked: PricesImportIn, idempotency_key: IdempotencyKey = None
) -> PricesImportOut:
    named = None if asked.dry_run else named_request(request, caller, idempotency_key, asked)
    return await import_prices(asked, workshop_of(request), request.app.state.apart, named)
