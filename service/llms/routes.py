"""GET and POST /v1/llms."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response, status

from service.access import Editor, Reader
from service.database import ReadSession, WriteSession
from service.filters import refuse_unknown_filters
from service.guarded_route import GuardedRoute
from service.idempotency.keys import IdempotencyKey, claim, named_request, settle
from service.llms.create import create_llm
from service.llms.present import present_llm
from service.llms.queries import list_llms, llm_by_id, llm_filter_values, llm_ids
from service.paging import Limit, Next, cut_page, last_id
from service.problems import not_found
from service.wire.llms import LlmIn, LlmOut
from service.wire.pages import Page

router = APIRouter(prefix="/v1/llms", tags=["catalog"], route_class=GuardedRoute)
Filter = Annotated[str | None, Query(max_length=120)]


@router.get("", summary="List language models")
def get_llms(
    _caller: Reader,
    session: ReadSession,
    limit: Limit = 100,
    after: Next = None,
    family: Filter = None,
    origin: Filter = None,
) -> Page[LlmOut]:
    found = list_llms(session, after=last_id("next", after), limit=limit + 1, family=family, origin=origin)
    if not found.rows:
        refuse_unknown_filters(partial(llm_filter_values, session), family=family, origin=origin)
    page, cursor = cut_page(found.rows, limit)
    return Page(items=[present_llm(r) for r in page], next=cursor, total=found.total)


@router.get("/{llm_id}", summary="One language model")
def get_llm(_caller: Reader, session: ReadSession, llm_id: str) -> LlmOut:
    row = llm_by_id(session, llm_id)
    if row is None:
        raise not_found("llm", llm_id, llm_ids(session))
    return present_llm(row)


@router.post(
    "",
    status_code=status.HTTP_201_CREATED,
    summary="Add a language model from its config.json",
    responses={200: {"model": LlmOut, "description": "It was stored before"}},
)
def post_llm(
    request: Request,
    caller: Editor,
    session: WriteSession,
    asked: LlmIn,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> LlmOut:
    named = named_request(request, caller, idempotency_key, asked)
    first = claim(session, named, request.app.state.clock())
    stored = llm_by_id(session, first) if first is not None else None
    table, is_new = (stored, False) if stored is not None else create_llm(session, asked, request.app.state.clock)
    settle(session, named, table.id)
    response.headers["Location"] = f"/v1/llms/{table.id}"
    if not is_new:
        response.status_code = status.HTTP_200_OK
    return present_llm(table)
