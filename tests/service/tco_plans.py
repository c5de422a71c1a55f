"""Stored plans that comparisons of costs are made of, and how they are asked for."""

from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tests.service.bodies import RECOMMENDATION
from tests.service.tco_bodies import COMPARISON, NODE, PLAN_LINE, RESULT, only, store_recommendation

URL = "/v1/tco/comparisons"
WORKLOAD = RECOMMENDATION["workloads"][0]["name"]
DESK = {"node": "workstation-rtx-6000-ada-2", "count": 1}
SLICE = "gcp-a2-highgpu-1g"


def line_of(node: str, offer: str, nodes: int, usd: str, **changes: Any) -> dict[str, Any]:
    return {**PLAN_LINE, "node": node, "offer": offer, "nodes": nodes, "usd_per_hour": usd, **changes}


@pytest.fixture(autouse=True)
def stored(client: TestClient, app: FastAPI) -> None:
    assert client.get("/healthz").status_code == 200
    database = app.state.database
    store_recommendation(database, "rec_plan", RESULT)
    busy = {"workload": WORKLOAD, "utilisation_fraction": 0.85 / 1.5, "replicas": 2}
    store_recommendation(database, "rec_spare", {**RESULT, "plan": [{**PLAN_LINE, **busy}]})
    swedish = line_of(NODE, "aws:p5.48xlarge:eu-north-1:on_demand", 2, "110.08")
    store_recommendation(database, "rec_sweden", {**RESULT, "plan": [swedish]})
    spare = {"limits": {"fault_tolerance": {"nodes": 1}}}
    store_recommendation(database, "rec_safe", RESULT, RECOMMENDATION | spare)
    fp8 = {"precision": {"weights": "fp8", "kv_cache": "fp8"}}
    store_recommendation(database, "rec_fp8", {**RESULT, "plan": [{**PLAN_LINE, **fp8}]})
    store_recommendation(
        database,
        "rec_slices",
        {**RESULT, "plan": [line_of(SLICE, "gcp:a2-highgpu-1g:us-central1:on_demand", 5, "18.36")]},
    )


def made(client: TestClient, body: dict[str, Any]) -> dict[str, Any]:
    answer = client.post(URL, json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def with_catalogs(**changes: Any) -> dict[str, Any]:
    """The comparison with nothing stated that the catalog knows."""
    body = {
        **COMPARISON,
        "electricity": {},
        "discount_rate_percent": None,
        "power_usage_effectiveness": None,
        **changes,
    }
    body["alternatives"] = [{**a, "purchase": {}} if a["name"] == "buy" else dict(a) for a in body["alternatives"]]
    return body


def leased(lease: dict[str, Any], **changes: Any) -> dict[str, Any]:
    body = only("buy", monte_carlo={"draws": 0}, **changes)
    body["alternatives"] = [
        {"name": "lease", "recommendation": "rec_plan", "acquisition": "lease", "lease": lease},
        {"name": "buy", "recommendation": "rec_plan", "acquisition": "purchase"},
    ]
    return body
