"""SQL about measured training runs."""

import datetime as dt
from collections.abc import Iterable

from sqlalchemy.orm import defer
from sqlmodel import Session, col, or_, select

from service.benchmarks.training_runs.tables import TrainingRunTable
from service.listing import Listed, listed

LONG = ("log",)


def training_run_by_id(session: Session, run_id: str) -> TrainingRunTable | None:
    return session.get(TrainingRunTable, run_id)


def list_training_runs(
    session: Session, *, after: str | None, limit: int, llm: str | None, device: str | None
) -> Listed[TrainingRunTable]:
    """In the order of their ids; logs, which may be megabytes, are not read."""
    wanted = select(TrainingRunTable)
    if llm is not None:
        wanted = wanted.where(col(TrainingRunTable.llm) == llm)
    if device is not None:
        wanted = wanted.where(col(TrainingRunTable.device) == device)
    short = [defer(getattr(TrainingRunTable, name)) for name in LONG]
    return listed(session, wanted, TrainingRunTable.id, limit=limit, after=after, options=short)


def runs_in_force(session: Session, llms: Iterable[str], instant: dt.datetime) -> list[TrainingRunTable]:
    """Runs of the models that were stored by then and not yet retracted, oldest first."""
    table = TrainingRunTable
    wanted = (
        select(table)
        .where(col(table.llm).in_(set(llms)), col(table.recorded_at) <= instant)
        .where(or_(col(table.retracted_at).is_(None), col(table.retracted_at) > instant))
        .order_by(col(table.recorded_at), col(table.id))
        .options(*[defer(getattr(table, name)) for name in LONG])
    )
    return list(session.exec(wanted).all())
