"""Training jobs planned together with a workload that is served: which of a recommendation's plans, and on what the jobs run."""

import datetime as dt
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tests.conftest import NOW, FixedClock
from tests.service.tco_bodies import RESULT, store_recommendation
from tests.service.test_training_plans import LIMITS, PATH, TUNE

KEPT = "aws:p5.4xlarge:us-east-1:reserved_1y"
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


NIGHTS = [0.25] * 8 + [1.0] * 16
"""Hours 0 to 7, when one of four replicas is enough."""


def served_by_day() -> dict[str, Any]:
    """Four nodes by the hour, or four that cost less and are paid for all the time."""

    def line(offer: str, usd: str) -> dict[str, Any]:
        _, node, region, commitment = offer.split(":")
        named = {"provider": "aws", "region": region, "commitment": commitment, "node": f"aws-{node}"}
        return entry(offer, 4, usd) | named | {"replicas": 4}

    own, other = line(PLENTY, "16.00"), line(KEPT, "12.20")
    alternative = {"why": "with commitments", "extra_usd_per_hour": "-3.80", "plan": [other]}
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
    store_recommendation(app.state.database, "rec_day", served_by_day())
    by_the_hour = served_by_day() | {"alternatives": []}
    store_recommendation(app.state.database, "rec_far_day", by_the_hour)
    store_recommendation(app.state.database, "rec_none", {**RESULT, "plan": [], "totals": None, "conflicts": []})
    return asked


def test_serving_moves_where_that_makes_both_cheaper(ask: Any) -> None:
    alone, both = ask(None), ask("rec_near")
    assert alone["plan"][0]["offer"] == SCARCE
    serving = both["serving"]
    assert (both["solve"]["status"], serving["why"]) == ("proven_optimal", "without verda")
    assert both["plan"][0]["offer"] == SCARCE
    assert serving["nodes"] == [{"offer": PLENTY, "nodes": 1, "nodes_by_hour": []}]
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


def test_nodes_that_are_kept_train_at_night_where_that_makes_both_cheaper(ask: Any) -> None:
    """Given back at night, nodes by the hour cost less to serve with alone; kept ones leave three to the job then."""
    long = TUNE | {"deadline": (NOW + dt.timedelta(days=28)).isoformat(), "tokens": 1.5e9, "max_devices": 2}
    limits = LIMITS | PLACES | {"offers": {PLENTY: {"max_nodes": 8}, SCARCE: {"max_nodes": 0}}}
    night = ask("rec_day", jobs=[long], limits=limits, serving_hourly_profile=NIGHTS)
    serving, (line,) = night["serving"], night["plan"]
    assert (night["solve"]["status"], serving["why"]) == ("proven_optimal", "with commitments")
    assert serving["nodes"] == [{"offer": KEPT, "nodes": 4, "nodes_by_hour": [1] * 8 + [4] * 16}]
    assert (line["offer"], line["daily_hours"], float(line["usd"])) == (f"idle:{KEPT}", list(range(8)), 0.0)
    assert any("pays for and does not use then" in caution for caution in night["cautions"])
    assert float(night["solve"]["usd"]) == pytest.approx(12.20 * 24 * 28)
    by_the_hour = 4.0 * (8 * 1 + 16 * 4) * 28
    assert by_the_hour < float(night["solve"]["usd"]) < float(serving["usd_apart"])


def test_nodes_by_the_hour_are_given_back_at_night_and_their_quota_is_free_then(ask: Any) -> None:
    """Four of the four there are serve by day; a job has three of them at night and pays for these hours alone."""
    long = TUNE | {"deadline": (NOW + dt.timedelta(days=14)).isoformat(), "tokens": 2e8, "max_devices": 1}
    limits = LIMITS | PLACES | {"offers": {PLENTY: {"max_nodes": 4}, SCARCE: {"max_nodes": 0}}}
    assert ask("rec_far_day", jobs=[long], limits=limits)["outcome"] == "infeasible"
    found = ask("rec_far_day", jobs=[long], limits=limits, serving_hourly_profile=NIGHTS)
    (line,) = found["plan"]
    assert (found["outcome"], line["offer"], line["daily_hours"]) == ("optimal", PLENTY, list(range(8)))
    assert float(found["serving"]["usd"]) == pytest.approx(4.0 * (8 * 1 + 16 * 4) * 14)
    assert sum("gives nodes of" in caution for caution in found["cautions"]) == 1
    price = ask(None, jobs=[long], limits=limits)["plan"][0]
    per_hour = float(price["usd"]) / -(-24 * price["duration_days"]["expected"] // 1)
    paid_hours = float(line["usd"]) / per_hour
    assert 8 * (line["duration_days"]["expected"] - 1) < paid_hours <= 8 * line["duration_days"]["expected"]


@pytest.mark.parametrize(
    ("name", "changes", "pointer"),
    [
        ("rec_nowhere", {}, "/serving"),
        ("rec_none", {}, "/serving"),
        ("rec_near", {"beside_fleet": "fleet_1"}, ""),
        ("rec_near", {"jobs": [TUNE]}, ""),
        (None, {"serving_hourly_profile": NIGHTS}, ""),
        ("rec_near", {"serving_hourly_profile": [1.0] * 23}, "/serving_hourly_profile"),
    ],
)
def test_what_cannot_be_served_beside_is_refused(
    ask: Any, name: str | None, changes: dict[str, Any], pointer: str
) -> None:
    assert ask(name, 422, **changes)["errors"][0]["pointer"] == pointer
