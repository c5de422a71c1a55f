"""Training jobs planned together with a workload that is served: which of a recommendation's plans, and on what the jobs run."""

import datetime as dt
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tests.conftest import FixedClock
from tests.service.tco_bodies import RESULT, store_recommendation
from tests.service.test_training_plans import LIMITS, PATH, TUNE

SCARCE = "verda:1H100.80S.32V:FIN:on_demand"
PLENTY = "aws:p5.4xlarge:us-east-1:on_demand"
PLACES = {"devices": ["h100-sxm"], "providers": ["verda", "aws"], "regions": ["FIN", "us-east-1"], "sourcing": "any"}
DAYS = 2


def entry(offer: str, nodes: int, usd: str) -> dict[str, Any]:
    return {"node": offer.split(":")[1], "offer": offer, "nodes": nodes, "usd_per_hour": usd, "workload": "chat"}


def served(extra: str) -> dict[str, Any]:
    """The cheap plan takes the only node of the offer that training would have too; the alternative costs ``extra`` more an hour."""
    own = entry(SCARCE, 1, "3.25")
    other = entry(PLENTY, 1, f"{3.25 + float(extra):.2f}")
    alternative = {"why": "without verda", "extra_usd_per_hour": extra, "plan": [other]}
    return {**RESULT, "plan": [own], "fleet": [own], "alternatives": [alternative]}


@pytest.fixture
def ask(client: TestClient, app: FastAPI, clock: FixedClock) -> Any:
    assert client.get("/healthz").status_code == 200
    job = TUNE | {"deadline": (clock() + dt.timedelta(days=DAYS)).isoformat(), "max_devices": 1}
    offers = {SCARCE: {"max_nodes": 1}, PLENTY: {"max_nodes": 2}}

    def asked(name: str | None, status: int = 201, **changes: Any) -> dict[str, Any]:
        body = {"jobs": [job], "limits": LIMITS | PLACES | {"offers": offers}, "serving": name} | changes
        answer = client.post(PATH, json=body)
        assert answer.status_code == status, answer.text
        found: dict[str, Any] = answer.json()
        return found

    store_recommendation(app.state.database, "rec_near", served("0.05"))
    store_recommendation(app.state.database, "rec_far", served("90.00"))
    store_recommendation(app.state.database, "rec_none", {**RESULT, "plan": [], "totals": None, "conflicts": []})
    return asked


def test_serving_moves_where_that_makes_both_cheaper(ask: Any) -> None:
    alone, both = ask(None), ask("rec_near")
    assert alone["plan"][0]["offer"] == SCARCE
    serving = both["serving"]
    assert (both["solve"]["status"], serving["why"]) == ("proven_optimal", "without verda")
    assert both["plan"][0]["offer"] == SCARCE
    assert serving["nodes"] == [{"offer": PLENTY, "nodes": 1}]
    assert float(serving["usd"]) == pytest.approx(3.30 * 24 * DAYS)
    assert float(both["solve"]["usd"]) == pytest.approx(float(serving["usd"]) + float(both["plan"][0]["usd"]))
    assert float(both["solve"]["usd"]) < float(serving["usd_apart"])
    assert serving["considered"] == 2


def test_serving_stays_where_moving_costs_more_than_it_frees(ask: Any) -> None:
    both = ask("rec_far")
    serving = both["serving"]
    assert serving["why"] is None
    assert both["plan"][0]["offer"] == PLENTY
    assert both["solve"]["usd"] == serving["usd_apart"]


@pytest.mark.parametrize(
    ("name", "changes", "pointer"),
    [
        ("rec_nowhere", {}, "/serving"),
        ("rec_none", {}, "/serving"),
        ("rec_near", {"beside_fleet": "fleet_1"}, ""),
        ("rec_near", {"jobs": [TUNE]}, ""),
    ],
)
def test_what_cannot_be_served_beside_is_refused(ask: Any, name: str, changes: dict[str, Any], pointer: str) -> None:
    assert ask(name, 422, **changes)["errors"][0]["pointer"] == pointer
