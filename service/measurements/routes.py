"""The queue of wanted measurements (/v1/measurements) and the agents that take them (/v1/agents)."""

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request, Response, status

from service.access import Agent, Editor, Reader
from service.benchmarks.names import names_of
from service.clock import Clock
from service.database import ReadSession, WriteSession, database_of
from service.guarded_route import GuardedRoute
from service.idempotency.keys import STORED_BEFORE, IdempotencyKey, claim, named_request, settle
from service.measurements.device_figures import take_figures
from service.measurements.present import (
    present_agent,
    present_device_measurement,
    present_lease,
    present_measurement,
)
from service.measurements.queries import (
    leases_of,
    list_agents,
    list_device_measurements,
    list_measurements,
    measurement_by_id,
)
from service.measurements.queue import cancel, complete, enqueue, extend, fail, take
from service.measurements.refine import Refiner
from service.measurements.register import register
from service.measurements.wanted import measurements_wanted
from service.paging import Limit, Next, cut_page, last_id
from service.problems import NotFoundError
from service.recommendations.present import present_recommendation
from service.recommendations.queries import recommendation_by_id
from service.wire.measurements import (
    AgentOut,
    CompletionIn,
    DeviceMeasurementIn,
    DeviceMeasurementOut,
    FailureIn,
    HeartbeatIn,
    LeaseIn,
    LeaseOut,
    MeasurementIn,
    MeasurementOut,
    MeasurementStatus,
    RegistrationIn,
    WantedListOut,
)
from service.wire.pages import Page

router = APIRouter(tags=["measurements"], route_class=GuardedRoute)
Filter = Annotated[str | None, Query(max_length=120)]
FigureStatus = Literal["accepted", "quarantined"]
AgentId = Annotated[str, Path(max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9._\-]*$")]


@router.post(
    "/v1/measurements",
    status_code=status.HTTP_201_CREATED,
    summary="Queue a measurement",
    responses={200: {"model": MeasurementOut, "description": STORED_BEFORE}},
)
def post_measurement(
    request: Request,
    caller: Editor,
    session: WriteSession,
    asked: MeasurementIn,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> MeasurementOut:
    now = _clock(request)()
    named = named_request(request, caller, idempotency_key, asked)
    first = claim(session, named, now)
    queued = measurement_by_id(session, first) if first is not None else None
    if queued is None:
        known = names_of(request.app).fresh(database_of(request))
        queued = enqueue(session, asked, caller.name, known, now)
        settle(session, named, queued.id)
    else:
        response.status_code = status.HTTP_200_OK
    response.headers["Location"] = f"/v1/measurements/{queued.id}"
    return present_measurement(queued, leases_of(session, [queued.id]).get(queued.id, ()), now)


@router.get("/v1/measurements", summary="List wanted measurements, oldest first")
def get_measurements(
    request: Request,
    _caller: Reader,
    session: ReadSession,
    limit: Limit = 100,
    after: Next = None,
    status: MeasurementStatus | None = None,
    device: Filter = None,
) -> Page[MeasurementOut]:
    now = _clock(request)()
    found = list_measurements(
        session, after=last_id("next", after), limit=limit + 1, status=status, device=device, now=now
    )
    page, cursor = cut_page(found.rows, limit)
    leases = leases_of(session, [row.id for row in page])
    shown = [present_measurement(row, leases.get(row.id, ()), now) for row in page]
    return Page(items=shown, next=cursor, total=found.total)


@router.post(
    "/v1/measurements/lease", response_model=LeaseOut, summary="Take the most urgent measurement",
    responses={204: {"description": "Nothing to measure on this device"}},
)  # fmt: skip
def post_lease(request: Request, _caller: Agent, session: WriteSession, asked: LeaseIn) -> LeaseOut | Response:
    now = _clock(request)()
    taken = take(session, asked, now)
    if taken is None:
        return Response(status_code=status.HTTP_204_NO_CONTENT)
    row, lease = taken
    return present_lease(row, lease, leases_of(session, [row.id])[row.id], now)


@router.get("/v1/measurements/{measurement_id}", summary="One wanted measurement with its attempts")
def get_measurement(request: Request, _caller: Reader, session: ReadSession, measurement_id: str) -> MeasurementOut:
    row = measurement_by_id(session, measurement_id)
    if row is None:
        raise NotFoundError(f"no measurement {measurement_id[:80]!r}")
    return present_measurement(row, leases_of(session, [row.id]).get(row.id, ()), _clock(request)())


@router.post("/v1/measurements/{measurement_id}/heartbeat", summary="Keep a lease")
def post_heartbeat(
    request: Request, _caller: Agent, session: WriteSession, measurement_id: str, asked: HeartbeatIn
) -> MeasurementOut:
    now = _clock(request)()
    row = extend(session, measurement_id, asked.lease, asked.lease_s, now)
    return present_measurement(row, leases_of(session, [row.id])[row.id], now)


@router.post("/v1/measurements/{measurement_id}/complete", summary="End a lease with results")
def post_complete(
    request: Request, _caller: Agent, session: WriteSession, measurement_id: str, asked: CompletionIn
) -> MeasurementOut:
    now = _clock(request)()
    row = complete(session, measurement_id, asked.lease, asked.benchmarks, now)
    return present_measurement(row, leases_of(session, [row.id])[row.id], now)


@router.post("/v1/measurements/{measurement_id}/fail", summary="End a lease without results")
def post_fail(
    request: Request, _caller: Agent, session: WriteSession, measurement_id: str, asked: FailureIn
) -> MeasurementOut:
    now = _clock(request)()
    row = fail(session, measurement_id, asked.lease, asked.reason, now)
    return present_measurement(row, leases_of(session, [row.id])[row.id], now)


@router.post("/v1/measurements/{measurement_id}/cancel", summary="Take a measurement out of the queue")
def post_cancel(request: Request, _caller: Editor, session: WriteSession, measurement_id: str) -> MeasurementOut:
    row = cancel(session, measurement_id)
    return present_measurement(row, leases_of(session, [row.id]).get(row.id, ()), _clock(request)())


@router.put("/v1/agents/{agent_id}", summary="Report an agent; again as its heartbeat")
def put_agent(
    request: Request, _caller: Agent, session: WriteSession, agent_id: AgentId, asked: RegistrationIn
) -> AgentOut:
    return present_agent(register(session, agent_id, asked, _clock(request)()))


@router.get("/v1/agents", summary="List agents")
def get_agents(
    _caller: Reader,
    session: ReadSession,
    limit: Limit = 100,
    after: Next = None,
) -> Page[AgentOut]:
    found = list_agents(session, after=last_id("next", after), limit=limit + 1)
    page, cursor = cut_page(found.rows, limit)
    return Page(items=[present_agent(row) for row in page], next=cursor, total=found.total)


@router.get(
    "/v1/recommendations/{recommendation_id}/measurements-wanted",
    summary="Which measurement would most change a recommendation",
)
def get_measurements_wanted(
    request: Request, _caller: Reader, session: ReadSession, recommendation_id: str
) -> WantedListOut:
    row = recommendation_by_id(session, recommendation_id)
    if row is None:
        raise NotFoundError(f"no recommendation {recommendation_id[:80]!r}")
    snapshot = request.app.state.snapshots.at(session, _clock(request)())
    return WantedListOut(items=measurements_wanted(session, present_recommendation(row), snapshot))


@router.post(
    "/v1/device-measurements",
    status_code=status.HTTP_201_CREATED,
    summary="Upload micro-measurements of a device",
    responses={200: {"model": DeviceMeasurementOut, "description": "It was stored before"}},
)
def post_device_measurement(
    request: Request,
    caller: Agent,
    session: WriteSession,
    asked: DeviceMeasurementIn,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> DeviceMeasurementOut:
    now = _clock(request)()
    named = named_request(request, caller, idempotency_key, asked)
    claim(session, named, now)
    taken = take_figures(session, asked, caller.name, now)  # the same figures are one record with or without a key
    settle(session, named, taken.row.id)
    if not taken.is_new:
        response.status_code = status.HTTP_200_OK
    return present_device_measurement(taken.row, Refiner(session).refined([taken.row]))


@router.get("/v1/device-measurements", summary="List micro-measurements of devices, oldest first")
def get_device_measurements(
    _caller: Reader,
    session: ReadSession,
    limit: Limit = 100,
    after: Next = None,
    device: Filter = None,
    status: FigureStatus | None = None,
) -> Page[DeviceMeasurementOut]:
    found = list_device_measurements(
        session, after=last_id("next", after), limit=limit + 1, device=device, status=status
    )
    page, cursor = cut_page(found.rows, limit)
    refiner = Refiner(session)
    shown = [present_device_measurement(row, refiner.refined([row])) for row in page]
    return Page(items=shown, next=cursor, total=found.total)


def _clock(request: Request) -> Clock:
    clock: Clock = request.app.state.clock
    return clock
