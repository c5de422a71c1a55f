"""SQL about stored recommendations."""

from sqlmodel import Session

from service.answers.queries import answer_by_id
from service.recommendations.tables import RecommendationTable


def recommendation_by_id(session: Session, recommendation_id: str) -> RecommendationTable | None:
    return answer_by_id(session, RecommendationTable, recommendation_id)
