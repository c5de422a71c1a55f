"""Predict many fixed deployments. One bad case does not spoil the rest."""

from fastapi.concurrency import run_in_threadpool

from service.clock import Clock
from service.database import Database
from service.estimates.predict import Case, Outcome, predict
from service.estimates.present import outcome_of, unsupported
from service.llms.queries import llm_ids, llms_by_ids
from service.metrics import Metrics
from service.problems import FieldError, InvalidFieldsError, close_matches, unknown_name
from service.recommendations.catalog_snapshot import CatalogSnapshot, SnapshotCache
from service.recommendations.snapshot import llm_from_row
from service.solver_pool import SolverPool
from service.wire.estimates import EstimateIn, EstimatesIn, EstimatesOut, UnsupportedOut
from solver.errors import SolverError
from solver.llm_shape import LlmShape

UNKNOWN = frozenset({"unknown_llm", "unknown_device"})


async def create_estimates(
    asked: EstimatesIn,
    *,
    database: Database,
    snapshots: SnapshotCache,
    pool: SolverPool,
    metrics: Metrics,
    clock: Clock,
) -> EstimatesOut:
    """In the order asked. Raises InvalidFieldsError when not one case names an llm and a device that exist."""
    resolved = await run_in_threadpool(_resolve_all, asked, database, snapshots, clock)
    if all(isinstance(case, UnsupportedOut) and case.reason in UNKNOWN for case in resolved):
        raise InvalidFieldsError(
            _field_error(n, case) for n, case in enumerate(resolved) if isinstance(case, UnsupportedOut)
        )
    outcomes = await pool.run("estimates", lambda: [_outcome(case) for case in resolved])
    for outcome in outcomes:
        metrics.count_outcome("estimate", outcome.outcome)
    return EstimatesOut(estimates=outcomes)


def _resolve_all(
    asked: EstimatesIn, database: Database, snapshots: SnapshotCache, clock: Clock
) -> list[Case | UnsupportedOut]:
    """Names → shapes and devices, in one read transaction."""
    with database.reading() as session:
        now = clock()
        snapshot = snapshots.at(session, now)
        rows = llms_by_ids(session, {e.llm for e in asked.estimates})
        shapes = {row.id: llm_from_row(row.row) for row in rows}
        known_llms = llm_ids(session) if len(shapes) < len({e.llm for e in asked.estimates}) else []
    return [_resolve(e, shapes, snapshot, known_llms) for e in asked.estimates]


def _resolve(
    asked: EstimateIn, shapes: dict[str, LlmShape], snapshot: CatalogSnapshot, known_llms: list[str]
) -> Case | UnsupportedOut:
    if asked.llm not in shapes:
        close = close_matches(asked.llm, known_llms)
        return unsupported(asked, "unknown_llm", unknown_name("llm", asked.llm, known_llms), close)
    if asked.device not in snapshot.device_ids:
        close = close_matches(asked.device, snapshot.device_ids)
        return unsupported(asked, "unknown_device", unknown_name("device", asked.device, snapshot.device_ids), close)
    if asked.device in snapshot.refused:
        figure = snapshot.refused[asked.device]
        return unsupported(asked, "figure_missing", f"{asked.device}: no sourced value for {figure}")
    return Case(asked, shapes[asked.llm], snapshot.devices[asked.device], snapshot)


def _outcome(case: Case | UnsupportedOut) -> Outcome:
    if isinstance(case, UnsupportedOut):
        return case
    try:
        return predict(case)
    except SolverError as error:
        return outcome_of(case.asked, error)


def _field_error(position: int, case: UnsupportedOut) -> FieldError:
    field = case.reason.removeprefix("unknown_")
    return FieldError(case.detail, pointer=f"/estimates/{position}/{field}")
