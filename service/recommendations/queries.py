"""SQL about stored recommendations."""

from sqlmodel import Session, select

from service.listing import Listed, listed
from service.recommendations.tables import RecommendationTable


def list_recommendations(
    session: Session, *, before: str | None, limit: int, outcome: str | None = None
) -> Listed[RecommendationTable]:
    """Newest first: ids sort by time."""
    wanted = select(RecommendationTable)
    if outcome is not None:
        wanted = wanted.where(RecommendationTable.outcome == outcome)
    return listed(session, wanted, RecommendationTable.id, limit=limit, after=before, newest_first=True)


def recommendation_by_id(session: Session, recommendation_id: str) -> RecommendationTable | None:
    return session.get(RecommendationTable, recommendation_id)
