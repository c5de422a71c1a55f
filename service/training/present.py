"""Stored training plans → wire."""

from decimal import Decimal

from service.training.tables import TrainingPlanTable
from service.wire.training_plans import TrainingPlanSummaryOut, TrainingRecommendationOut


def present_stored(row: TrainingPlanTable) -> TrainingRecommendationOut:
    """The stored result as it was written, with its id and address."""
    own = {"id": row.id, "link": f"/v1/training/recommendations/{row.id}", "created_at": row.created_at}
    return TrainingRecommendationOut.model_validate(row.result | own)


def present_summary(row: TrainingPlanTable) -> TrainingPlanSummaryOut:
    """A line of the list; requests and results are not read for it."""
    return TrainingPlanSummaryOut(
        id=row.id,
        created_at=row.created_at,
        outcome=row.outcome,
        jobs=[job["name"] for job in row.jobs],
        llms=[job["llm"] for job in row.jobs],
        usd=None if row.usd is None else Decimal(row.usd),
    )
