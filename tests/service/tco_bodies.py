"""Requests for comparisons, and stored recommendations to compare."""

import copy
from decimal import Decimal
from typing import Any

from service.database import Database
from service.recommendations.tables import RecommendationTable
from service.wire.recommendations import RecommendationIn
from tests.conftest import NOW
from tests.service.bodies import RECOMMENDATION

OFFER = "aws:p5.48xlarge:us-east-1:on_demand"
NODE = "aws-p5.48xlarge"
USD_PER_HOUR = "110.080000"

PLAN_LINE: dict[str, Any] = {"node": NODE, "offer": OFFER, "nodes": 2, "usd_per_hour": USD_PER_HOUR}
RESULT: dict[str, Any] = {"outcome": "optimal", "plan": [PLAN_LINE], "totals": {"served_fraction": 1.0}}
INFEASIBLE: dict[str, Any] = {
    "outcome": "infeasible",
    "plan": [],
    "totals": None,
    "conflicts": [{"limits": ["targets.ttft_ms.p95"], "detail": "no layout reaches 1 ms to the first token"}],
}
"""What comparisons read of a stored recommendation; whole ones are made by the planner in TestFairness."""

COMPARISON: dict[str, Any] = {
    "horizon_months": 36, "discount_rate_percent": 8.0, "utilisation_fraction": 0.6, "growth_percent_per_month": 0.0,
    "electricity": {"usd_per_kwh": "0.09", "region": None}, "power_usage_effectiveness": 1.3,
    "monte_carlo": {"draws": 200},
    "alternatives": [
        {"name": "rent on demand", "recommendation": "rec_plan", "acquisition": "on_demand"},
        {"name": "reserve 3 years", "recommendation": "rec_plan", "acquisition": "reserved_3y"},
        {"name": "buy", "recommendation": "rec_plan", "acquisition": "purchase",
         "purchase": {"residual_fraction": 0.15, "depreciation_months": 60}},
        {"name": "API", "api": {"usd_per_million_input_tokens": "0.60", "usd_per_million_output_tokens": "0.80",
                                "usd_per_million_cached_tokens": "0.10"}},
    ],
}  # fmt: skip


def store_recommendation(
    database: Database, name: str, result: dict[str, Any], request: dict[str, Any] | None = None
) -> None:
    """A row as the service stores one; the request with every default filled in."""
    asked = RecommendationIn.model_validate(request or RECOMMENDATION)
    price = Decimal(USD_PER_HOUR) if result["plan"] else None
    with database.writing() as session:
        if session.get(RecommendationTable, name) is not None:
            return
        session.add(
            RecommendationTable(
                id=name, created_at=NOW, outcome=result["outcome"], objective=asked.objective,
                usd_per_hour=price, price_as_of=NOW,
                catalog_digest="0" * 64, version="test", request=asked.model_dump(mode="json"),
                result=result,
            )
        )  # fmt: skip


def only(*names: str, **changes: Any) -> dict[str, Any]:
    """The comparison with these alternatives, and top-level fields changed."""
    body = copy.deepcopy(COMPARISON) | changes
    body["alternatives"] = [a for a in body["alternatives"] if a["name"] in names]
    return body
