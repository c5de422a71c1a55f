"""Predict many training runs. One bad case does not spoil the rest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fastapi.concurrency import run_in_threadpool

from service.clock import Clock, elapsed_s
from service.database import Database
from service.llms.queries import hub_names_by_id, llm_ids, llms_by_ids
from service.metrics import Metrics
from service.names_meant import device_name_meant, llm_name_meant
from service.problems import FieldError, InvalidFieldsError, close_matches, unknown_name
from service.recommendations.catalog_snapshot import CatalogSnapshot, SnapshotCache
from service.recommendations.from_rows import llm_from_row
from service.solver_pool import SolverPool
from service.training.inputs import training_model
from service.training.measured import MeasuredRun, measured_runs
from service.training.predict import REFUSED_FIELDS, predict_training
from service.wire.training import (
    TrainingEstimatedOut,
    TrainingEstimateIn,
    TrainingEstimatesIn,
    TrainingEstimatesOut,
    TrainingUnsupportedOut,
)
from solver.errors import FigureMissingError, UnsupportedError
from solver.hardware import Node
from solver.llm_shape import LlmShape


@dataclass(frozen=True)
class Refused:
    """A case that is not predicted. field: where the request is wrong; None: nothing in it is, a figure is missing."""

    answer: TrainingUnsupportedOut
    field: str | None


@dataclass(frozen=True)
class ResolvedCase:
    """One run whose names are all known."""

    asked: TrainingEstimateIn
    shape: LlmShape
    snapshot: CatalogSnapshot
    runs: Sequence[MeasuredRun]
    """Stored ones of the models asked about."""

    @property
    def node(self) -> Node | None:
        return None if self.asked.node is None else self.snapshot.nodes[self.asked.node]


async def create_training_estimates(
    asked: TrainingEstimatesIn,
    *,
    database: Database,
    snapshots: SnapshotCache,
    pool: SolverPool,
    metrics: Metrics,
    clock: Clock,
    time_limit_s: float,
) -> TrainingEstimatesOut:
    """In the order asked. Raises InvalidFieldsError when every case is refused for what the request says, and when they take
    longer than the limit together.
    """
    cases = await run_in_threadpool(_resolve_all, asked, database, snapshots, clock)
    outcomes = await pool.run("training estimates", lambda: _outcomes(cases, time_limit_s))
    wrong = [
        FieldError(one.answer.detail, pointer=f"/estimates/{n}/{one.field}")
        for n, one in enumerate(outcomes)
        if isinstance(one, Refused) and one.field is not None
    ]
    if len(wrong) == len(outcomes):
        raise InvalidFieldsError(wrong)
    answers = [one.answer if isinstance(one, Refused) else one for one in outcomes]
    for answer in answers:
        metrics.count_outcome("training_estimate", answer.outcome)
    return TrainingEstimatesOut(estimates=answers)


def _resolve_all(
    asked: TrainingEstimatesIn, database: Database, snapshots: SnapshotCache, clock: Clock
) -> list[ResolvedCase | Refused]:
    """Names → shapes, devices and nodes, in one read transaction."""
    with database.reading() as session:
        snapshot = snapshots.at(session, clock())
        hub_names = hub_names_by_id(session)
        memory = snapshot.memory_gib_by_device
        meant = [
            one.model_copy(
                update={
                    "llm": llm_name_meant(one.llm, hub_names),
                    "device": one.device if one.device in memory else device_name_meant(one.device, memory),
                }
            )
            for one in asked.estimates
        ]
        rows = llms_by_ids(session, {one.llm for one in meant})
        shapes = {row.id: llm_from_row(row.row) for row in rows}
        known = llm_ids(session) if len(shapes) < len({one.llm for one in meant}) else []
        runs = measured_runs(session, shapes, clock())
    return [_resolve(one, shapes, snapshot, known, runs) for one in meant]


def _resolve(
    asked: TrainingEstimateIn, shapes: Mapping[str, LlmShape], snapshot: CatalogSnapshot, known_llms: Sequence[str],
    runs: Sequence[MeasuredRun],
) -> ResolvedCase | Refused:  # fmt: skip
    if asked.llm not in shapes:
        return _unknown("llm", asked.llm, known_llms)
    if asked.device not in snapshot.device_ids:
        return _unknown("device", asked.device, sorted(snapshot.device_ids))
    if asked.device in snapshot.refused:
        detail = f"{asked.device}: no sourced value for {snapshot.refused[asked.device]}"
        return Refused(unsupported("figure_missing", detail), None)
    if asked.node is not None:
        if asked.node not in snapshot.nodes:
            return _unknown("node", asked.node, sorted(snapshot.nodes))
        held = snapshot.nodes[asked.node].device.id
        if held != asked.device:
            return Refused(
                unsupported("node_of_another_device", f"{asked.node} holds {held}, not {asked.device}"), "node"
            )
    return ResolvedCase(asked, shapes[asked.llm], snapshot, runs)


def _unknown(kind: str, name: str, known: Sequence[str]) -> Refused:
    return Refused(unsupported(f"unknown_{kind}", unknown_name(kind, name, known), close_matches(name, known)), kind)


def unsupported(reason: str, detail: str, close: Sequence[str] = ()) -> TrainingUnsupportedOut:
    return TrainingUnsupportedOut(outcome="unsupported", reason=reason, detail=detail, close_matches=list(close))


def _outcomes(cases: Sequence[ResolvedCase | Refused], time_limit_s: float) -> list[TrainingEstimatedOut | Refused]:
    """Raises InvalidFieldsError when time is up before the last; begun ones are finished."""
    until = elapsed_s() + time_limit_s
    outcomes: list[TrainingEstimatedOut | Refused] = []
    for case in cases:
        if elapsed_s() > until:
            detail = (
                f"the first {len(outcomes)} of {len(cases)} estimates took the {time_limit_s:g} s that a request may;"
                " send about so many at a time"
            )
            raise InvalidFieldsError([FieldError(detail, pointer="/estimates")])
        outcomes.append(case if isinstance(case, Refused) else _outcome(case))
    return outcomes


def _outcome(case: ResolvedCase) -> TrainingEstimatedOut | Refused:
    try:
        return predict_training(case.asked, case.shape, case.snapshot, case.node, training_model(), case.runs)
    except UnsupportedError as error:
        return Refused(unsupported(error.reason, str(error)), REFUSED_FIELDS.get(error.reason, "layout"))
    except FigureMissingError as error:
        return Refused(unsupported("figure_missing", str(error)), None)
