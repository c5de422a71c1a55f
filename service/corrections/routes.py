"""GET /v1/accuracy."""

from typing import Annotated

from fastapi import APIRouter, Query

from service.access import Reader
from service.corrections.present import present_accuracy
from service.corrections.queries import UPLOADS, correction_set_by_number, newest_correction_set
from service.corrections.watch import drifts
from service.database import ReadSession
from service.guarded_route import GuardedRoute
from service.problems import NotFoundError
from service.wire.accuracy import AccuracyOut, DriftsOut

router = APIRouter(prefix="/v1/accuracy", tags=["accuracy"], route_class=GuardedRoute)


@router.get(
    "", summary="Predicted against measured, per device, engine, LLM and precision, leave-one-configuration-out"
)
def get_accuracy(
    _caller: Reader,
    session: ReadSession,
    device: str | None = None,
    engine: str | None = None,
    llm: str | None = None,
    correction_set: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
) -> AccuracyOut:
    row = (
        newest_correction_set(session) if correction_set is None else correction_set_by_number(session, correction_set)
    )
    if row is not None and row.origin == UPLOADS:  # its accuracy is that of the catalog release it is laid over
        row = correction_set_by_number(session, row.content["base"])
    if row is None and correction_set is not None:
        raise NotFoundError(f"there is no correction set {correction_set}")
    return present_accuracy(row, device=device, engine=engine, llm=llm)


@router.get("/drift", summary="Where an engine or a driver changed what is measured")
def get_drift(_caller: Reader, session: ReadSession, device: str | None = None, engine: str | None = None) -> DriftsOut:
    return DriftsOut(items=drifts(session, device, engine))
