"""SQL about stored training plans."""

from sqlalchemy.orm import defer
from sqlmodel import Session, select

from service.listing import Listed, listed
from service.training.tables import TrainingPlanTable

LONG = ("request", "result")


def list_training_plans(session: Session, *, before: str | None, limit: int) -> Listed[TrainingPlanTable]:
    """Newest first: ids sort by time. Requests and results are not read."""
    short = [defer(getattr(TrainingPlanTable, name)) for name in LONG]
    wanted = select(TrainingPlanTable)
    return listed(session, wanted, TrainingPlanTable.id, limit=limit, after=before, newest_first=True, options=short)


def training_plan_by_id(session: Session, plan_id: str) -> TrainingPlanTable | None:
    return session.get(TrainingPlanTable, plan_id)
