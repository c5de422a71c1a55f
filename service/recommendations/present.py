"""Stored recommendation → wire."""

from decimal import Decimal

from service.recommendations.tables import RecommendationTable
from service.wire.recommendations import InputsOut, RecommendationOut, RecommendationSummaryOut


def present_recommendation(stored: RecommendationTable) -> RecommendationOut:
    """The stored result as it was written, with its id, inputs and request."""
    inputs = InputsOut(
        price_as_of=stored.price_as_of,
        catalog_digest=stored.catalog_digest,
        correction_set=stored.correction_set,
        version=stored.version,
    )
    return RecommendationOut.model_validate(
        stored.result | {"id": stored.id, "created_at": stored.created_at, "inputs": inputs, "request": stored.request}
    )


def present_summary(stored: RecommendationTable) -> RecommendationSummaryOut:
    workloads = stored.request["workloads"]
    amount = stored.usd_per_hour
    return RecommendationSummaryOut(
        id=stored.id,
        created_at=stored.created_at,
        outcome=stored.outcome,
        objective=stored.objective,
        workloads=[w["name"] for w in workloads],
        llms=[w["llm"] for w in workloads],
        usd_per_hour=None if amount is None else Decimal(amount),
    )
