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
        assert shown["price"]["usd_per_hour"] == "55.040000"
        assert shown["usd_per_device_hour"] == "6.880000"
        assert "data-receipts" in shown["price"]["source"]
        assert shown["price"]["age_days"] == 12  # 9 to 21 November, the last time it was seen
        assert (shown["provider_class"], shown["device_class"], shown["named_place"]) == (
            "hyperscaler", "datacentre", True,
        )  # fmt: skip

    def test_earlier_steps_stay(self, client: TestClient) -> None:
        shown = client.get("/v1/offers/aws:p5.48xlarge:us-east-1:on_demand/prices").json()["items"]
        # karpenter-provider-aws price file of 2026-07-20: 55.04 USD an hour for 8 H100.
        assert "karpenter" in shown[0]["source"]
        assert [step["valid_from"][:10] for step in shown] == ["2026-07-20", "2026-11-09"]

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

    @pytest.mark.parametrize(
        ("asked", "same"),
        [
            ({"provider": "AWS"}, {"provider": "aws"}),
            ({"device": "H100"}, {"device": "h100-sxm"}),
            ({"device": "NVIDIA H200 NVL"}, {"device": "h200-nvl"}),
            ({"region": "US-EAST-1"}, {"region": "us-east-1"}),
            ({"node": "AWS-P5.48xlarge"}, {"node": "aws-p5.48xlarge"}),
        ],
    )
    def test_filters_take_names_as_people_write_them(
        self, client: TestClient, asked: dict[str, str], same: dict[str, str]
    ) -> None:
        found = client.get("/v1/offers", params=asked).json()["items"]
        assert found
        assert found == client.get("/v1/offers", params=same).json()["items"]

    def test_filters_by_class_and_place(self, client: TestClient) -> None:
        parameters = {"device_class": "datacentre", "provider_class": "specialist", "named_place": True, "limit": 500}
        items = client.get("/v1/offers", params=parameters).json()["items"]
        assert {o["provider"] for o in items} == {"denvr", "hyperstack", "jarvislabs", "nebius", "verda"}
        assert {(o["device_class"], o["provider_class"], o["named_place"]) for o in items} == {
            ("datacentre", "specialist", True)
        }
        elsewhere = client.get("/v1/offers", params=parameters | {"named_place": False}).json()["items"]
        assert {"us", "global", "all"} <= {o["region"] for o in elsewhere}

    def test_a_class_that_is_none_is_refused_by_name(self, client: TestClient) -> None:
        answer = client.get("/v1/offers", params={"provider_class": "hyperscalers"})
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["parameter"] == "provider_class"

    def test_unknown_commitment_is_refused_by_name(self, client: TestClient) -> None:
        answer = client.get("/v1/offers", params={"commitment": "on-demand"})
        assert answer.status_code == 422
        assert "did you mean 'on_demand'" in answer.json()["errors"][0]["detail"]

    def test_unknown_is_404_with_close_matches(self, client: TestClient) -> None:
        answer = client.get("/v1/offers/aws:p5.48xlarge:us-east-11:on_demand")
        assert answer.status_code == 404
        assert "aws:p5.48xlarge:us-east-1:on_demand" in answer.json()["close_matches"]


class TestGetUnpriced:
    def entries(self, client: TestClient, **parameters: Any) -> dict[str, dict[str, Any]]:
        page = client.get("/v1/offers/unpriced", params={"limit": 500} | parameters)
        assert page.status_code == 200, page.text
        assert page.json()["next"] is None
        return {entry["id"]: entry for entry in page.json()["items"]}

    def test_says_what_has_no_price(self, client: TestClient) -> None:
        found = self.entries(client, provider="AWS", device="H100")
        assert found["aws:p5.48xlarge:1y"]["detail"] == "aws p5.48xlarge: no 1-year price known"
        assert found["aws:p5.48xlarge:3y"]["detail"] == "aws p5.48xlarge: no 3-year price known"
        assert "us-east-1" in found["aws:p5.48xlarge:1y"]["regions_without"]
        assert found["aws:p5.48xlarge:1y"]["regions_with"] == []

    def test_what_has_a_price_everywhere_is_not_there(self, client: TestClient) -> None:
        found = self.entries(client, provider="gcp", device="h100-sxm")
        assert "gcp:a3-megagpu-8g:1y" not in found
        assert "gcp:a3-megagpu-8g:3y" not in found

    def test_a_price_takes_a_region_out(self, client: TestClient) -> None:
        before = self.entries(client, provider="oci", device="h200-sxm")["oci:BM.GPU.H200.8:1y"]
        assert before["regions_without"] == ["all"]
        quotes = "offer,usd_per_hour\noci:BM.GPU.H200.8:all:reserved_1y,60.00\n"
        body = {"provider": "oci", "payload": quotes, "valid_from": "2026-11-01T00:00:00Z", "source": "a quote of ours"}
        assert client.post("/v1/offers/import", json=body).status_code == 200
        after = self.entries(client, provider="oci", device="h200-sxm")
        assert "oci:BM.GPU.H200.8:1y" not in after
        assert "oci:BM.GPU.H200.8:3y" in after

    def test_pages_hold_every_entry_once(self, client: TestClient) -> None:
        ids: list[str] = []
        parameters: dict[str, Any] = {"limit": 50, "provider_class": "hyperscaler"}
        while True:
            page = client.get("/v1/offers/unpriced", params=parameters).json()
            ids.extend(entry["id"] for entry in page["items"])
            if page["next"] is None:
                break
            parameters["next"] = page["next"]
        assert len(ids) > 100
        assert ids == sorted(set(ids))
        assert {one.split(":")[0] for one in ids} == {"aws", "azure", "gcp", "oci"}


class TestPostOffer:
    @pytest.mark.parametrize(
        ("provider", "region", "provider_class", "named_place"),
        [
            ("own", "dc2", None, True),
            ("own", "Global", None, False),
            ("aws", "eu-central-1", "hyperscaler", True),
            ("runpod", "global", "marketplace", False),
            ("runpod", "EU-RO-1", "specialist", True),
        ],
    )
    def test_stands_as_its_provider_does(
        self, client: TestClient, provider: str, region: str, provider_class: str | None, named_place: bool
    ) -> None:
        body = OFFER | {"provider": provider, "region": region, "instance": "stands"}
        made = client.post("/v1/offers", json=body).json()
        assert (made["provider_class"], made["named_place"], made["device_class"]) == (
            provider_class, named_place, "datacentre",
        )  # fmt: skip

    def test_with_a_price(self, client: TestClient) -> None:
        answer = client.post("/v1/offers", json=OFFER | {"price": PRICE})
        assert answer.status_code == 201
        assert answer.json()["id"] == "own:hgx:dc1:purchase"
        assert answer.json()["price"]["usd_per_hour"] == "12.480000"
        assert client.post("/v1/offers", json=OFFER | {"price": PRICE}).status_code == 200
        assert client.post("/v1/offers", json=OFFER | {"max_nodes": 3}).status_code == 409

    @pytest.mark.parametrize(("field", "name"), [("provider", "our own"), ("region", "hall 2")])
    def test_what_a_name_may_be_made_of_is_said_in_words(self, client: TestClient, field: str, name: str) -> None:
        (error,) = client.post("/v1/offers", json=OFFER | {field: name}).json()["errors"]
        assert error["pointer"] == f"/{field}"
        assert name in error["detail"]
        assert "letters, digits, dots, hyphens and underscores" in error["detail"]
        assert "^" not in error["detail"]

    def test_a_device_known_by_another_name_may_have_no_such_offer(self, client: TestClient) -> None:
        """An empty list, not an unknown device."""
        answer = client.get("/v1/offers", params={"device": "h100", "commitment": "spot", "provider": "lambda"})
        assert (answer.status_code, answer.json()["items"]) == (200, [])

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
        "amount", ["", "abc", "NaN", "Infinity", "-1", 12.48, True, [], "1e400", "0.0000001", "99999999999"]
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
