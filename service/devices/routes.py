"""GET /v1/devices."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query

from service.access import Reader
from service.database import ReadSession
from service.devices.present import present_device
from service.devices.queries import device_by_id, device_filter_values, device_ids, list_devices
from service.filters import refuse_unknown_filters
from service.guarded_route import GuardedRoute
from service.paging import Limit, Next, cut_page, last_id
from service.problems import not_found
from service.wire.devices import DeviceClass, DeviceOut
from service.wire.pages import Page

router = APIRouter(prefix="/v1/devices", tags=["catalog"], route_class=GuardedRoute)
Filter = Annotated[str | None, Query(max_length=120)]


@router.get("", summary="List accelerators")
def get_devices(
    _caller: Reader,
    session: ReadSession,
    limit: Limit = 100,
    after: Next = None,
    vendor: Filter = None,
    category: Filter = None,
    status: Filter = None,
    family: Filter = None,
    device_class: DeviceClass | None = None,
) -> Page[DeviceOut]:
    found = list_devices(
        session, after=last_id("next", after), limit=limit + 1,
        vendor=vendor, category=category, status=status, family=family, device_class=device_class,
    )  # fmt: skip
    if not found.rows:
        refuse_unknown_filters(
            partial(device_filter_values, session), vendor=vendor, category=category, status=status, family=family
        )
    page, cursor = cut_page(found.rows, limit)
    return Page(items=[present_device(r) for r in page], next=cursor, total=found.total)


@router.get("/{device_id}", summary="One accelerator")
def get_device(_caller: Reader, session: ReadSession, device_id: str) -> DeviceOut:
    row = device_by_id(session, device_id)
    if row is None:
        raise not_found("device", device_id, device_ids(session))
    return present_device(row)
