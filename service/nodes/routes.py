"""GET /v1/nodes."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query

from service.access import Reader
from service.database import ReadSession
from service.devices.resolve_names import device_meant
from service.filters import refuse_unknown_filters
from service.guarded_route import GuardedRoute
from service.nodes.present import present_node
from service.nodes.queries import list_nodes, node_by_id, node_filter_values, node_ids
from service.paging import Limit, Next, cut_page, last_id
from service.problems import not_found
from service.wire.nodes import NodeOut
from service.wire.pages import Page

router = APIRouter(prefix="/v1/nodes", tags=["catalog"], route_class=GuardedRoute)
Filter = Annotated[str | None, Query(max_length=120)]


@router.get("", summary="List machines")
def get_nodes(
    _caller: Reader,
    session: ReadSession,
    limit: Limit = 100,
    after: Next = None,
    device: Filter = None,
    kind: Filter = None,
) -> Page[NodeOut]:
    meant = device_meant(session, device)
    found = list_nodes(session, after=last_id("next", after), limit=limit + 1, device=meant, kind=kind)
    if not found.rows:
        refuse_unknown_filters(partial(node_filter_values, session), device=meant, kind=kind)
    page, cursor = cut_page(found.rows, limit)
    return Page(items=[present_node(r) for r in page], next=cursor, total=found.total)


@router.get("/{node_id}", summary="One machine")
def get_node(_caller: Reader, session: ReadSession, node_id: str) -> NodeOut:
    row = node_by_id(session, node_id)
    if row is None:
        raise not_found("node", node_id, node_ids(session))
    return present_node(row)
