"""Devices that nobody sells: the answer says from which price one would win, and at that price it does."""

import math
import uuid
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.service.bodies import changed
from tests.service.test_own_machines import EARLIER, nothing_left_behind
from tests.service.test_sourcing import BODY, answered, usd

__all__ = ["nothing_left_behind"]


def asked_for(client: TestClient, device: str, **more: Any) -> dict[str, Any]:
    refused = answered(client, changed(BODY | more, "limits", {"devices": [device]}))
    assert refused["outcome"] == "infeasible"
    row = refused["rejected"][0]
    assert (row["device"], row["reason"]) == (device, "no_offer")
    assert isinstance(row, dict)
    return row


def offered(client: TestClient, node: str, price: float) -> str:
    own = {
        "provider": "us", "instance": f"unsold-{uuid.uuid4().hex[:8]}", "region": "hall-2", "commitment": "on_demand",
        "node": node, "price": {"usd_per_hour": f"{price:.6f}", "valid_from": EARLIER, "source": "a quote"},
    }  # fmt: skip
    made = client.post("/v1/offers", json=own)
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


@pytest.mark.parametrize("device", ["mi210", "max-1550"])
def test_below_the_price_said_it_wins_and_above_it_does_not(client: TestClient, device: str) -> None:
    row = asked_for(client, device)
    wins = row["wins_below"]
    assert f"win below {math.floor(float(wins['usd_per_hour']) * 100) / 100:,.2f} USD an hour" in row["nearest"]
    best = answered(client, BODY)
    assert float(wins["best_usd_per_hour"]) == pytest.approx(float(usd(best)))
    assert float(wins["usd_per_hour"]) * wins["nodes"] == pytest.approx(float(usd(best)), abs=1e-5)
    dear = offered(client, wins["node"], float(wins["usd_per_hour"]) * 1.02)
    assert dear not in {line["offer"] for line in answered(client, BODY)["plan"]}
    cheap = offered(client, wins["node"], float(wins["usd_per_hour"]) * 0.98)
    won = answered(client, BODY)
    assert {line["offer"] for line in won["plan"]} == {cheap}
    assert won["totals"]["nodes"] == wins["nodes"]


def test_what_cannot_serve_the_request_wins_at_no_price(client: TestClient) -> None:
    row = asked_for(client, "mi210", workloads=[BODY["workloads"][0] | {"targets": {"tpot_ms": {"p95": 0.5}}}])
    assert row["wins_below"] is None
    assert "would win" not in row["nearest"]


def test_other_objectives_have_no_such_price(client: TestClient) -> None:
    assert asked_for(client, "mi210", objective="power")["wins_below"] is None
