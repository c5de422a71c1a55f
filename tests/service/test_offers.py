"""GET and POST /v1/offers, prices."""

from decimal import Decimal
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.conftest import FixedClock

OFFER: dict[str, Any] = {
    "provider": "own", "instance": "hgx", "region": "dc1", "commitment": "purchase", "node": "aws-p5.48xlarge",
}  # fmt: skip
PRICE: dict[str, Any] = {"usd_per_hour": "12.480000", "valid_from": "2026-01-01T00:00:00Z", "source": "our contract 17"}


class TestGetOffers:
    def test_shows_price_source_and_age(self, client: TestClient) -> None:
        shown = client.get("/v1/offers/aws:p5.48xlarge:us-east-1:on_demand").json()
        # karpenter-provider-aws price file of 2026-07-20: 55.04 USD an hour for 8 H100.
        assert shown["price"]["usd_per_hour"] == "55.040000"
        assert shown["usd_per_device_hour"] == "6.880000"
        assert "karpenter" in shown["price"]["source"]
        assert shown["price"]["age_days"] == 124  # 20 July to 21 November

    def test_before_the_first_step_there_is_no_price(self, client: TestClient) -> None:
        shown = client.get(
            "/v1/offers/aws:p5.48xlarge:us-east-1:on_demand", params={"price_as_of": "2020-01-01T00:00:00Z"}
        ).json()
        assert shown["price"] is None

    def test_filters(self, client: TestClient) -> None:
        found = client.get("/v1/offers", params={"device": "h100-sxm", "provider": "aws", "commitment": "on_demand"})
        items = found.json()["items"]
        assert items
        assert {(o["device"], o["provider"], o["commitment"]) for o in items} == {("h100-sxm", "aws", "on_demand")}

    def test_unknown_commitment_is_refused_by_name(self, client: TestClient) -> None:
        answer = client.get("/v1/offers", params={"commitment": "on-demand"})
        assert answer.status_code == 422
        assert "did you mean 'on_demand'" in answer.json()["errors"][0]["detail"]

    def test_unknown_is_404_with_close_matches(self, client: TestClient) -> None:
        answer = client.get("/v1/offers/aws:p5.48xlarge:us-east-11:on_demand")
        assert answer.status_code == 404
        assert "aws:p5.48xlarge:us-east-1:on_demand" in answer.json()["close_matches"]


class TestPostOffer:
    def test_with_a_price(self, client: TestClient) -> None:
        answer = client.post("/v1/offers", json=OFFER | {"price": PRICE})
        assert answer.status_code == 201
        assert answer.json()["id"] == "own:hgx:dc1:purchase"
        assert answer.json()["price"]["usd_per_hour"] == "12.480000"
        assert client.post("/v1/offers", json=OFFER | {"price": PRICE}).status_code == 200
        assert client.post("/v1/offers", json=OFFER | {"max_nodes": 3}).status_code == 409

    def test_unknown_node_names_close_matches(self, client: TestClient) -> None:
        answer = client.post("/v1/offers", json=OFFER | {"instance": "x1", "node": "aws-p5.48xlarg"})
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"] == "/node"
        assert "aws-p5.48xlarge" in answer.json()["errors"][0]["detail"]

    def test_a_wrong_price_leaves_no_offer(self, client: TestClient) -> None:
        body = OFFER | {"instance": "x2", "price": PRICE | {"usd_per_hour": "cheap"}}
        assert client.post("/v1/offers", json=body).status_code == 422
        assert client.get("/v1/offers/own:x2:dc1:purchase").status_code == 404


class TestPostPrice:
    def offer(self, client: TestClient, instance: str) -> str:
        made = client.post("/v1/offers", json=OFFER | {"instance": instance, "price": PRICE})
        assert made.status_code == 201, made.text
        return str(made.json()["id"])

    def test_is_a_step_function(self, client: TestClient) -> None:
        offer = self.offer(client, "steps")
        later = {"usd_per_hour": "10.5", "valid_from": "2026-06-01T00:00:00Z", "source": "our contract 18"}
        assert client.post(f"/v1/offers/{offer}/prices", json=later).status_code == 201
        gone = {"usd_per_hour": None, "valid_from": "2026-09-01T00:00:00Z", "source": "contract ended"}
        assert client.post(f"/v1/offers/{offer}/prices", json=gone).status_code == 201
        at = {
            day: (client.get(f"/v1/offers/{offer}", params={"price_as_of": f"{day}T00:00:00Z"}).json()["price"] or {})
            for day in ("2025-12-31", "2026-01-01", "2026-05-31", "2026-06-01", "2026-09-01")
        }
        assert [p.get("usd_per_hour") for p in at.values()] == [None, "12.480000", "12.480000", "10.500000", None]

    def test_another_amount_for_the_same_instant_is_a_conflict(self, client: TestClient, clock: FixedClock) -> None:
        offer = self.offer(client, "conflict")
        assert client.post(f"/v1/offers/{offer}/prices", json=PRICE).status_code == 200
        wrong = PRICE | {"usd_per_hour": "13.00"}
        assert client.post(f"/v1/offers/{offer}/prices", json=wrong).status_code == 409
        believed = clock().isoformat()
        clock.advance(days=1)
        assert client.post(f"/v1/offers/{offer}/prices", json=wrong | {"correction": True}).status_code == 201
        now = client.get(f"/v1/offers/{offer}").json()["price"]["usd_per_hour"]
        then = client.get(f"/v1/offers/{offer}", params={"believed_at": believed}).json()["price"]["usd_per_hour"]
        assert (now, then) == ("13.000000", "12.480000")
        assert len(client.get(f"/v1/offers/{offer}/prices").json()["items"]) == 2

    @pytest.mark.parametrize(
        "amount", ["", "abc", "NaN", "Infinity", "-1", "0", 12.48, True, [], "1e400", "0.0000001", "99999999999"]
    )
    def test_what_is_no_price_is_refused(self, client: TestClient, amount: Any) -> None:
        answer = client.post(
            "/v1/offers/aws:p5.48xlarge:us-east-1:on_demand/prices", json=PRICE | {"usd_per_hour": amount}
        )
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"] == "/usd_per_hour"

    def test_a_time_without_offset_is_refused(self, client: TestClient) -> None:
        body = PRICE | {"valid_from": "2026-01-01T00:00:00"}
        answer = client.post("/v1/offers/aws:p5.48xlarge:us-east-1:on_demand/prices", json=body)
        assert answer.status_code == 422

    def test_unknown_offer_is_404(self, client: TestClient) -> None:
        assert client.post("/v1/offers/own:none:dc1:purchase/prices", json=PRICE).status_code == 404

    def test_amounts_are_exact(self, client: TestClient) -> None:
        offer = self.offer(client, "exact")
        for month, amount in enumerate(("0.000001", "0.1", "3.333333", "9999999.999999"), start=2):
            body = {"usd_per_hour": amount, "valid_from": f"2026-0{month}-01T00:00:00Z", "source": "exactness"}
            assert client.post(f"/v1/offers/{offer}/prices", json=body).status_code == 201
        stored = client.get(f"/v1/offers/{offer}/prices").json()["items"]
        assert [Decimal(s["usd_per_hour"]) for s in stored[1:]] == [
            Decimal("0.000001"), Decimal("0.1"), Decimal("3.333333"), Decimal("9999999.999999"),
        ]  # fmt: skip
