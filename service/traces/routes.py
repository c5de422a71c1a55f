"""POST /v1/traces, GET by id."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response, status
from fastapi.concurrency import run_in_threadpool

from service.access import Agent, Reader
from service.database import ReadSession, database_of
from service.guarded_route import GuardedRoute
from service.idempotency.keys import STORED_BEFORE, IdempotencyKey, StoredBeforeError, new_request
from service.problems import not_found
from service.traces.create import create_trace, present_trace, stored_trace
from service.traces.queries import trace_by_id
from service.wire.traces import TraceIn, TraceOut

router = APIRouter(prefix="/v1/traces", tags=["traces"], route_class=GuardedRoute)
CacheTokens = Annotated[
    int | None,
    Query(
        ge=1,
        le=10**12,
        description="Tokens of context that a cache of prefixes holds: its hits are the traffic's shared prefix. The largest"
        " size listed that is not above it is taken.",
    ),
]


@router.post(
    "",
    status_code=status.HTTP_201_CREATED,
    summary="Upload recorded requests; stored once, under their digest",
    responses={200: {"model": TraceOut, "description": f"{STORED_BEFORE}, or the same trace"}},
)
async def post_trace(
    request: Request, response: Response, caller: Agent, asked: TraceIn, idempotency_key: IdempotencyKey = None
) -> TraceOut:
    state, database = request.app.state, database_of(request)
    try:
        named = await new_request(request, caller, idempotency_key, asked, database)
        trace, is_new = await run_in_threadpool(create_trace, asked, caller, database, state.apart, state.clock, named)
    except StoredBeforeError as before:
        trace, is_new = await run_in_threadpool(stored_trace, database, before.resource), False
    if not is_new:
        response.status_code = status.HTTP_200_OK
    response.headers["Location"] = f"/v1/traces/{trace.id}"
    return trace


@router.get("/{trace_id}", summary="What a stored trace says, and the traffic to plan for")
def get_trace(_caller: Reader, session: ReadSession, trace_id: str, cache_tokens: CacheTokens = None) -> TraceOut:
    row = trace_by_id(session, trace_id)
    if row is None:
        raise not_found("trace", trace_id, ())
    return present_trace(row, cache_tokens)
