"""What a budget may be relaxed to is a budget that a request may state, and gives a plan at the price that is said."""

from decimal import Decimal
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.service.bodies import changed
from tests.service.test_sourcing import BODY, answered


@pytest.mark.parametrize(
    ("llm", "rate"),
    [
        ("llama-3.1-8b", 25.0),
        ("qwen3-32b", 25.0),
        ("qwen3-30b-a3b", 60.0),
        ("gemma-4-26b-a4b", 35.0),
        ("llama-3.1-8b", 333.0),
    ],
)
def test_a_budget_relaxed_as_said_gives_a_plan_at_the_price_said(client: TestClient, llm: str, rate: float) -> None:
    body: dict[str, Any] = changed(changed(BODY, "workloads/0/llm", llm), "workloads/0/traffic/requests_per_s", rate)
    poor = body | {"limits": {"max_usd_per_hour": "0.20", "sourcing": "any"}}
    refused = answered(client, poor)
    assert refused["outcome"] == "infeasible"
    (budget,) = [one for one in refused["relaxations"] if one["limit"] == "limits.max_usd_per_hour"]
    stated = str(budget["relaxing_to"])
    assert -Decimal(stated).as_tuple().exponent <= 6, stated
    plan = answered(client, poor | {"limits": poor["limits"] | {"max_usd_per_hour": stated}})
    assert plan["outcome"] in ("optimal", "within_gap", "feasible")
    assert float(plan["totals"]["usd_per_hour"]) == pytest.approx(float(budget["usd_per_hour"]), rel=0.02)
