"""POST /v1/offers/import."""

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool

from service.access import Editor
from service.guarded_route import GuardedRoute
from service.idempotency.keys import IdempotencyKey, named_request
from service.prices_import.create import import_prices
from service.recommendations.create import planning_context
from service.wire.prices_import import PricesImportIn, PricesImportOut

router = APIRouter(prefix="/v1/offers", tags=["catalog"], route_class=GuardedRoute)


@router.post("/import", summary="Import a price list; tells what changed and which stored plans it touches")
async def post_price_list(
    request: Request, caller: Editor, asked: PricesImportIn, idempotency_key: IdempotencyKey = None
) -> PricesImportOut:
    key = None if asked.dry_run else idempotency_key
    named = await run_in_threadpool(named_request, request, caller, key, asked)
    return await import_prices(asked, planning_context(request), request.app.state.apart, named)
