"""SQL about stored recommendations."""

from sqlmodel import Session, col, select

from service.recommendations.tables import RecommendationTable


def list_recommendations(
    session: Session, *, before: str | None, limit: int, outcome: str | None = None
) -> list[RecommendationTable]:
    """Newest first: ids sort by time."""
    wanted = select(RecommendationTable).order_by(col(RecommendationTable.id).desc()).limit(limit)
    if before is not None:
        wanted = wanted.where(RecommendationTable.id < before)
    if outcome is not None:
        wanted = wanted.where(RecommendationTable.outcome == outcome)
    return list(session.exec(wanted).all())


def recommendation_by_id(session: Session, recommendation_id: str) -> RecommendationTable | None:
    return session.get(RecommendationTable, recommendation_id)
