"""Devices that nobody rents out: a request that names one is planned with machines that are bought, and says so."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.service.bodies import changed
from tests.service.test_own_machines import EARLIER, nothing_left_behind
from tests.service.test_sourcing import BODY, answered

__all__ = ["nothing_left_behind"]

FEW: dict[str, Any] = changed(BODY, "workloads/0/traffic/requests_per_s", 0.05) | {"time_limit_s": 20}
del FEW["workloads"][0]["targets"]


def limited_to(device: str, weights: str = "bf16", **limits: Any) -> dict[str, Any]:
    body = changed(FEW, "limits", {"devices": [device], **limits})
    body["workloads"][0]["precision"] = {"weights": [weights]}
    return body


@pytest.mark.parametrize(
    ("device", "weights"), [("m4-max", "q4_k_m"), ("gaudi3", "bf16"), ("n300", "bf16"), ("jetson-agx-orin-64", "fp16")]
)
def test_what_nobody_rents_out_is_bought(client: TestClient, device: str, weights: str) -> None:
    found = answered(client, limited_to(device, weights))
    assert found["outcome"] == "optimal"
    (line,) = found["plan"]
    assert (line["provider"], line["commitment"], line["device"]) == ("own", "purchase", device)
    assert line["source"]["own"]
    assert line["source"]["provider_class"] is None
    (told,) = [one for one in found["cautions"] if one["about"] == "bought"]
    assert "USD a node" in told["detail"]
    assert "kept for 60 months" in told["detail"]
    quote = client.get(f"/v1/recommendations/{found['id']}/quote").json()
    assert quote["lines"][0]["price_source"] == told["detail"]
    assert "cost to buy" in quote["lines"][0]["confirm"][0]


def test_the_hour_is_that_of_a_fleet_that_buys_the_machine(client: TestClient) -> None:
    """60 months of it: price and electricity, less what it is sold for; nothing for space and people by a desk."""
    found = answered(client, limited_to("m4-max", "q4_k_m"))
    hour = float(found["totals"]["usd_per_hour"]) / found["totals"]["nodes"]
    price, kw, tariff = 3499.0, 0.145, 0.1
    assert 0.5 * price / 43_800 < hour < price / 43_800 + kw * tariff * 2 + 0.3 * price / 43_800


def test_what_is_rented_is_not_bought(client: TestClient) -> None:
    found = answered(client, limited_to("h100-sxm"))
    assert {line["commitment"] for line in found["plan"]} == {"on_demand"}


def test_an_own_offer_comes_before_a_purchase(client: TestClient) -> None:
    own = {
        "provider": "us", "instance": "a-mac", "region": "desk", "commitment": "on_demand", "node": "mac-studio-m4-max",
        "price": {"usd_per_hour": "9", "valid_from": EARLIER, "source": "a lease"},
    }  # fmt: skip
    assert client.post("/v1/offers", json=own).status_code == 201
    found = answered(client, limited_to("m4-max", "q4_k_m"))
    assert {line["commitment"] for line in found["plan"]} == {"on_demand"}


def test_who_commits_to_something_else_does_not_buy(client: TestClient) -> None:
    found = answered(client, limited_to("gaudi3", commitments=["spot"]))
    assert found["outcome"] == "infeasible"
    assert found["rejected"][0]["reason"] == "not_allowed"


def test_requests_that_name_no_device_know_of_no_purchase(client: TestClient) -> None:
    body = changed(FEW, "limits", {"commitments": None, "sourcing": "any"})
    assert "purchase" not in {line["commitment"] for line in answered(client, body)["plan"]}
    assert client.get("/v1/offers", params={"commitment": "purchase"}).json()["total"] == 0


def test_what_lacks_a_price_says_which(client: TestClient) -> None:
    found = answered(client, limited_to("mi210"))
    assert "nor can it be bought: no sourced value for purchase_usd_per_node" in found["rejected"][0]["nearest"]


@pytest.mark.parametrize(
    ("device", "llm", "reason", "seller"),
    [
        ("groq-lpu-v1", "llama-3.1-8b", "no_offer", "groq/"),
        ("cerebras-wse3", "gpt-oss-120b", "figure_missing", "cerebras/"),
    ],
)
def test_a_maker_that_sells_tokens_is_named(
    client: TestClient, device: str, llm: str, reason: str, seller: str
) -> None:
    body = changed(limited_to(device), "workloads/0/llm", llm)
    del body["workloads"][0]["precision"]
    found = answered(client, body | {"time_limit_s": 3})
    row = found["rejected"][0]
    assert (row["device"], row["reason"]) == (device, reason)
    assert row["by_token"], row
    for one in row["by_token"]:
        assert one["id"].startswith(seller)
        assert llm in one["id"].lower()
        assert float(one["usd_per_million_output_tokens"]) > 0
    assert "USD a million of prompts" in row["nearest"]


def test_a_maker_of_machines_alone_sells_no_tokens(client: TestClient) -> None:
    assert answered(client, limited_to("mi210") | {"time_limit_s": 3})["rejected"][0]["by_token"] == []
