"""SQL about correction sets, residuals and changed cells."""

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Executable, String, bindparam, func, insert, or_
from sqlmodel import Session, col, delete, select
from ulid import ULID

from service.benchmarks.queries import STATUS_AFTER
from service.benchmarks.tables import BenchmarkEventTable, BenchmarkTable
from service.corrections.cells import device_note
from service.corrections.tables import BenchmarkResidualTable, ChangedCellTable, CorrectionSetTable

OF_CATALOG, UPLOADS = "catalog", "uploads"


class AcceptedResidual(NamedTuple):
    """One accepted run of a cell, newest first in lists."""

    benchmark_id: str
    engine_version: str | None
    residuals: dict[str, float]
    load: tuple[float, float, float] | None = None
    """Clients of a replica and the mean prompt, of a closed loop."""


class VersionedResidual(NamedTuple):
    """One accepted run with what it ran on; oldest first in lists."""

    device_id: str
    engine: str
    engine_version: str | None
    driver: str | None
    residuals: dict[str, float]


def newest_correction_set(session: Session) -> CorrectionSetTable | None:
    """The newest whole set, from the catalog's files."""
    wanted = select(CorrectionSetTable).where(CorrectionSetTable.origin == OF_CATALOG)
    return session.exec(wanted.order_by(col(CorrectionSetTable.number).desc()).limit(1)).first()


def newest_number(session: Session) -> int:
    """The number of the newest set of either origin; 0 when there is none."""
    return session.exec(select(func.max(CorrectionSetTable.number))).one() or 0


def sets_from_uploads(session: Session, after: int) -> Sequence[CorrectionSetTable]:
    wanted = select(CorrectionSetTable).where(
        CorrectionSetTable.origin == UPLOADS, col(CorrectionSetTable.number) > after
    )
    return session.exec(wanted.order_by(col(CorrectionSetTable.number))).all()


def correction_set_by_number(session: Session, number: int) -> CorrectionSetTable | None:
    return session.get(CorrectionSetTable, number)


def known_numbers(session: Session) -> Sequence[int]:
    return session.exec(select(CorrectionSetTable.number).order_by(col(CorrectionSetTable.number))).all()


def add_correction_set(session: Session, row: CorrectionSetTable) -> None:
    session.add(row)


@cache
def _note_cells() -> Executable:
    """Built once, as statements on the way of every upload are."""
    noted = (
        select(  # a run has one cell, whichever catalog release it was compared with
            (col(BenchmarkResidualTable.benchmark_id) + bindparam("mark", type_=String)).label("id"),
            BenchmarkResidualTable.cell,
        )
        .distinct()
        .where(col(BenchmarkResidualTable.benchmark_id).in_(bindparam("ids", expanding=True)))
    )
    return insert(ChangedCellTable).from_select(["id", "cell"], noted)


def note_cells(session: Session, benchmark_ids: Sequence[str]) -> None:
    """Remember the cells of these runs as changed."""
    session.connection().execute(_note_cells(), {"mark": f":{ULID()}", "ids": list(benchmark_ids)})


def note_device(session: Session, measurement_id: str, device: str) -> None:
    """Remember that a device was probed."""
    session.add(ChangedCellTable(id=f"{measurement_id}:{ULID()}", cell=device_note(device)))


def changed_cells(session: Session, most: int) -> dict[str, str]:
    """The notes that wait: id → configuration."""
    wanted = select(ChangedCellTable.id, ChangedCellTable.cell).order_by(ChangedCellTable.id).limit(most)
    return dict(session.exec(wanted).all())


def take_notes(session: Session, ids: Collection[str]) -> int:
    """Take notes off the list, in this transaction; how many were still on it."""
    result = session.connection().execute(delete(ChangedCellTable).where(col(ChangedCellTable.id).in_(ids)))
    return result.rowcount


def accepted_residuals(session: Session, cell: str, base: int, most: int) -> list[AcceptedResidual]:
    """The newest accepted runs of a cell, by their current status."""
    wanted = (
        select(BenchmarkTable.id, BenchmarkTable.engine_version, BenchmarkResidualTable.residuals)
        .join(BenchmarkResidualTable, col(BenchmarkResidualTable.benchmark_id) == col(BenchmarkTable.id))
        .where(BenchmarkResidualTable.cell == cell, BenchmarkResidualTable.base == base, _is_accepted())
        .order_by(col(BenchmarkTable.id).desc())
        .limit(most)
    )
    return [AcceptedResidual(*row) for row in session.exec(wanted).all()]


def loads_of(session: Session, ids: Collection[str]) -> dict[str, tuple[Any, Any, Any]]:
    """Load, traffic and layout that runs state, by id."""
    document = col(BenchmarkTable.document)
    wanted = select(BenchmarkTable.id, document["load"], document["traffic"], document["context", "layout"]).where(
        col(BenchmarkTable.id).in_(list(ids))
    )
    return {name: (load, traffic, layout) for name, load, traffic, layout in session.exec(wanted).all()}


def versioned_residuals(session: Session, base: int, most: int) -> list[VersionedResidual]:
    """The newest accepted runs of all cells, oldest first."""
    wanted = (
        select(BenchmarkTable, BenchmarkResidualTable.residuals)
        .join(BenchmarkResidualTable, col(BenchmarkResidualTable.benchmark_id) == col(BenchmarkTable.id))
        .where(BenchmarkResidualTable.base == base, _is_accepted())
        .order_by(col(BenchmarkTable.id).desc())
        .limit(most)
    )
    return [
        VersionedResidual(run.device_id, run.engine, run.engine_version, run.document["context"]["driver"], residuals)
        for run, residuals in reversed(session.exec(wanted).all())
    ]


def _is_accepted() -> ColumnElement[bool]:
    """Whether a run's current status is accepted: by its last event, or as given at intake when there is none."""
    last_event = (
        select(func.max(BenchmarkEventTable.id))
        .where(BenchmarkEventTable.benchmark_id == BenchmarkTable.id)
        .correlate(BenchmarkTable)
        .scalar_subquery()
    )
    last_action = select(BenchmarkEventTable.action).where(BenchmarkEventTable.id == last_event).scalar_subquery()
    accepting = [action for action, status in STATUS_AFTER.items() if status == "accepted"]
    return or_(last_action.is_(None) & (col(BenchmarkTable.status) == "accepted"), last_action.in_(accepting))
