"""Requests for comparisons, and stored recommendations to compare."""

import copy
from typing import Any

from service.database import Database
from service.recommendations.tables import RecommendationTable
from service.wire.recommendations import RecommendationIn, ResultOut
from tests.conftest import NOW
from tests.service.bodies import RECOMMENDATION

OFFER = "aws:p5.48xlarge:us-east-1:on_demand"
NODE = "aws-p5.48xlarge"
USD_PER_HOUR = "110.080000"
INTERVAL = {"expected": 1.0, "low": 0.9, "high": 1.1}
PERCENTILES = dict.fromkeys(("mean", "p50", "p90", "p95", "p99"), INTERVAL)

PLAN_LINE: dict[str, Any] = {
    "workload": "chat", "offer": OFFER, "provider": "aws", "region": "us-east-1", "commitment": "on_demand",
    "node": NODE, "device": "h100-sxm", "nodes": 2, "replicas": 4,
    "layout": {"tensor_parallel": 4}, "precision": {"weights": "fp8", "kv_cache": "bf16"},
    "max_concurrency": 48, "serves_requests_per_s": 20.0, "utilisation_fraction": 0.7,
    "predicted": {"ttft_ms": PERCENTILES, "tpot_ms": PERCENTILES, "e2e_ms": PERCENTILES,
                  "output_tokens_per_s": INTERVAL, "power_w": None},
    "basis": "corrected", "usd_per_hour": USD_PER_HOUR,
}  # fmt: skip
RESULT: dict[str, Any] = {
    "outcome": "optimal",
    "solve": {"status": "proven_optimal", "usd_per_hour": USD_PER_HOUR, "bound_usd_per_hour": USD_PER_HOUR,
              "gap_fraction": 0.0, "candidates": 10, "solver": "highs", "seconds": 0.1},
    "plan": [PLAN_LINE],
    "totals": {"usd_per_hour": USD_PER_HOUR, "usd_per_month": "80358.400000", "usd_per_million_output_tokens": "5.0",
               "usd_per_million_tokens": "1.0", "power_kw": None, "nodes": 2, "devices": 16, "served_fraction": 1.0},
    "alternatives": [], "binding": [], "rejected": [], "conflicts": [], "relaxations": [],
}  # fmt: skip
INFEASIBLE: dict[str, Any] = {
    **RESULT,
    "outcome": "infeasible",
    "solve": {**RESULT["solve"], "status": "proven_infeasible", "usd_per_hour": None, "bound_usd_per_hour": None},
    "plan": [],
    "totals": None,
    "conflicts": [{"limits": ["targets.ttft_ms.p95"], "detail": "no layout reaches 1 ms to the first token"}],
}

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
    """As the service stores one: request and result validated, with every default filled in."""
    asked = RecommendationIn.model_validate(request or RECOMMENDATION)
    found = ResultOut.model_validate(result)
    with database.writing() as session:
        if session.get(RecommendationTable, name) is not None:
            return
        session.add(
            RecommendationTable(
                id=name, created_at=NOW, outcome=found.outcome, objective=asked.objective,
                usd_per_hour=found.totals.usd_per_hour if found.totals else None, price_as_of=NOW,
                catalog_digest="0" * 64, version="test", request=asked.model_dump(mode="json"),
                result=found.model_dump(mode="json"),
            )
        )  # fmt: skip


def only(*names: str, **changes: Any) -> dict[str, Any]:
    """The comparison with these alternatives, and top-level fields changed."""
    body = copy.deepcopy(COMPARISON) | changes
    body["alternatives"] = [a for a in body["alternatives"] if a["name"] in names]
    return body
