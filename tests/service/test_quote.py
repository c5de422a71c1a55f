"""What to confirm before a plan is signed: by offer, with how far each price may rise, tried by raising it."""

from decimal import Decimal
from typing import Any

from fastapi.testclient import TestClient

from tests.service.bodies import changed
from tests.service.test_sourcing import BODY, answered, usd

LATER = "2026-11-21T11:00:00Z"


def quoted(client: TestClient, recommendation: dict[str, Any]) -> dict[str, Any]:
    response = client.get(f"/v1/recommendations/{recommendation['id']}/quote", params={"time_limit_s": 60})
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def at_price(client: TestClient, offer: str, price: Decimal, body: dict[str, Any]) -> dict[str, Any]:
    step = {
        "usd_per_hour": f"{price:.6f}", "valid_from": LATER, "source": "a quote", "correction": True,
    }  # fmt: skip
    response = client.post(f"/v1/offers/{offer}/prices", json=step)
    assert response.status_code in (200, 201), response.text
    return answered(client, body)


def test_a_price_may_rise_as_far_as_is_said_and_no_further(client: TestClient) -> None:
    body = changed(
        BODY, "limits", {"providers": ["aws", "verda"], "devices": ["h100-sxm", "h200-sxm", "l40s", "b200-sxm"]}
    )
    plan = answered(client, body)
    quote = quoted(client, plan)
    assert Decimal(quote["usd_per_hour"]) == usd(plan)
    assert [line["offer"] for line in quote["lines"]] == [one["offer"] for one in plan["fleet"]]
    line = quote["lines"][0]
    most = Decimal(line["may_rise_to_usd_per_hour"])
    assert not line["at_least"]
    assert line["then"]
    today = Decimal(line["usd_per_hour"])
    assert most >= today
    below = at_price(client, line["offer"], today + (most - today) * Decimal("0.98"), body)
    assert {one["offer"]: one["nodes"] for one in below["fleet"]} == {
        one["offer"]: one["nodes"] for one in plan["fleet"]
    }
    above = at_price(client, line["offer"], most * Decimal("1.01"), body)
    assert {one["offer"]: one["nodes"] for one in above["fleet"]} != {
        one["offer"]: one["nodes"] for one in plan["fleet"]
    }
    assert usd(above) <= usd(plan) + line["nodes"] * (most * Decimal("1.01") - today)


def test_a_contract_is_confirmed_as_a_contract(client: TestClient) -> None:
    """A price of one's own with a seller the catalog knows is not a machine that stands in one's hall."""
    offer = {
        "provider": "aws", "instance": "p5.48xlarge", "region": "us-east-1", "commitment": "reserved_1y", "node": "aws-p5.48xlarge",
        "price": {"usd_per_hour": "20", "valid_from": "2026-01-01T00:00:00Z", "source": "contract 7"},
    }  # fmt: skip
    stored = client.post("/v1/offers", json=offer)
    assert stored.status_code == 201, stored.text
    limits = {"providers": ["aws"], "commitments": ["reserved_1y"], "devices": ["h100-sxm"]}
    (line,) = quoted(client, answered(client, changed(BODY, "limits", limits)))["lines"]
    assert line["offer"] == stored.json()["id"]
    assert line["confirm"] == ["that the contract covers 1 machine of p5.48xlarge in us-east-1 at 20.00 USD an hour"]
    withdrawn = {"usd_per_hour": None, "valid_from": "2026-01-02T00:00:00Z", "source": "over"}
    assert client.post(f"/v1/offers/{line['offer']}/prices", json=withdrawn).status_code in (200, 201)


def test_a_quota_is_named_as_the_provider_names_it(client: TestClient) -> None:
    quote = quoted(client, answered(client, changed(BODY, "limits", {"providers": ["aws"], "devices": ["h100-sxm"]})))
    line = quote["lines"][0]
    assert [one["name"] for one in line["quotas"]] == ["Running On-Demand P instances"]
    vcpus = client.get(f"/v1/nodes/{line['node']}").json()["vcpus"]
    assert line["quotas"][0]["needs"] == vcpus * line["nodes"]
    assert line["place"]
    words = " ".join(line["confirm"])
    assert all(word in words for word in ("price:", "stock:", "region:", "quota:", line["instance"], line["region"]))


def test_a_place_without_a_name_is_asked_about(client: TestClient) -> None:
    quote = quoted(client, answered(client, changed(BODY, "limits", {"providers": ["tensorwave"], "sourcing": "any"})))
    assert "names no place" in " ".join(quote["lines"][0]["confirm"])


def test_the_only_offer_may_rise_as_far_as_was_tried(client: TestClient) -> None:
    offers = client.get("/v1/offers", params={"provider": "verda", "device": "h100-sxm", "limit": 50}).json()["items"]
    offer = next(one for one in offers if one["commitment"] == "on_demand" and one["price"])
    node = offer["node"]
    own = {
        "provider": "us", "instance": "rack", "region": "hall", "commitment": "on_demand", "node": node,
        "price": {"usd_per_hour": "1.000000", "valid_from": "2026-01-01T00:00:00Z", "source": "ours"},
    }  # fmt: skip
    assert client.post("/v1/offers", json=own).status_code == 201
    quote = quoted(client, answered(client, changed(BODY, "limits", {"providers": ["us"]})))
    line = quote["lines"][0]
    assert line["at_least"]
    assert line["may_rise_percent"] == 300.0
    assert line["then"] == []
    assert "your own" in line["confirm"][0]


def test_what_costs_nothing_has_no_price_that_could_rise(client: TestClient) -> None:
    offers = client.get("/v1/offers", params={"provider": "verda", "device": "h100-sxm", "limit": 50}).json()["items"]
    own = {
        "provider": "we", "instance": "rack", "region": "hall", "commitment": "on_demand", "node": offers[0]["node"],
        "price": {"usd_per_hour": "0", "valid_from": "2026-01-01T00:00:00Z", "source": "ours"},
    }  # fmt: skip
    assert client.post("/v1/offers", json=own).status_code == 201
    line = quoted(client, answered(client, changed(BODY, "limits", {"providers": ["we"]})))["lines"][0]
    assert (line["may_rise_to_usd_per_hour"], line["may_rise_percent"], line["at_least"]) == (None, None, False)


def test_bad_questions(client: TestClient) -> None:
    assert client.get("/v1/recommendations/rec_nothing/quote").status_code == 404
    impossible = changed(BODY, "workloads/0/targets", {"ttft_ms": {"p95": 0.001}})
    refused = answered(client, changed(impossible, "limits", {"devices": ["l40s"]}))
    assert refused["outcome"] == "infeasible"
    assert client.get(f"/v1/recommendations/{refused['id']}/quote").status_code == 409
    assert client.get(f"/v1/recommendations/{refused['id']}/quote", params={"time_limit_s": -1}).status_code == 422
