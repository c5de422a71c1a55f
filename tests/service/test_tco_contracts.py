"""Leases, machines that are there already, and what of a commitment is used."""

from decimal import Decimal

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tests.service.tco_bodies import COMPARISON, PLAN_LINE, RESULT, only, store_recommendation
from tests.service.tco_plans import URL, leased, made, stored

__all__ = ["stored"]


class TestLease:
    def test_a_rate_that_is_not_stated_comes_from_the_lessors_and_the_price(self, client: TestClient) -> None:
        """A lessor who pays the price and gets the rates and what machines fetch earns what the catalog says lessors do."""
        answer = made(client, leased({"term_months": 36}))
        lease = answer["alternatives"][0]
        used = {one["input"]: one for one in lease["computed_from"][0]["inputs"]}
        price, rate = (used[name]["typical"] for name in ("purchase_usd_per_node", "lease_usd_per_node_month"))
        monthly = 1.15 ** (1 / 12)
        earned = sum(rate / monthly**month for month in range(1, 37)) + 0.45 * price / monthly**36
        assert earned == pytest.approx(price, rel=1e-9)
        assert not used["lease_usd_per_node_month"]["stated"]
        row = next(d for d in answer["defaults"] if d["input"] == "lease_usd_per_node_month")
        assert any("implicit rate" in origin["source"] for origin in row["origins"])
        assert row["low"] < row["typical"] < row["high"]
        assert any("no monthly rate is stated" in note for note in lease["notes"])

    def test_its_lines(self, client: TestClient) -> None:
        terms = {"term_months": 24, "usd_per_node_month": "9000", "buyout_usd_per_node": "50000"}
        lease, buy = made(client, leased(terms))["alternatives"]
        lines = {line["line"]: Decimal(line["total_usd"]) for line in lease["lines"]}
        assert (lease["kind"], lease["acquisition"], lease["parts"][0]["rent_basis"]) == ("lease", "lease", "lease")
        assert lines["lease"] == 2 * 24 * 9000
        assert lines["buyout"] == 2 * 50_000
        assert "purchase" not in lines
        bought = {line["line"]: Decimal(line["total_usd"]) for line in buy["lines"]}
        for same in ("power", "space", "staff", "maintenance", "insurance", "network", "residual"):
            assert lines[same] == bought[same]
        assert buy["computed_from"][0]["lease_months"] is None
        assert (
            lease["depreciation"]["market_value_usd_by_month"][23]
            < lease["depreciation"]["market_value_usd_by_month"][25]
        )

    def test_a_slice_is_leased_as_a_server(self, client: TestClient) -> None:
        body = leased({"term_months": 36, "usd_per_node_month": "4000"})
        body["alternatives"][0]["recommendation"] = "rec_slices"
        del body["alternatives"][1]
        part = made(client, body)["alternatives"][0]["parts"][0]
        assert (part["nodes"], part["sold_as_devices"]) == (1, 8)


class TestMachinesThereAlready:
    def test_what_was_paid_is_sunk_and_what_they_would_fetch_counts(self, client: TestClient) -> None:
        body = only("buy", monte_carlo={"draws": 0})
        owned = {"age_months": 24, "usd_paid_per_node": "300000"}
        body["alternatives"] = [
            {"name": "keep", "recommendation": "rec_plan", "acquisition": "purchase", "owned": owned},
            {"name": "buy", "recommendation": "rec_plan", "acquisition": "purchase"},
        ]
        keep, buy = made(client, body)["alternatives"]
        lines = {line["line"]: Decimal(line["total_usd"]) for line in keep["lines"]}
        assert keep["sunk_usd"] == "600000.000000"
        assert buy["sunk_usd"] is None
        fetched = 600_000 * (1 - 0.55 * 24 / 36)
        assert float(lines["foregone_sale"]) == pytest.approx(fetched)
        assert any("600,000.00 USD paid for them is sunk" in note for note in keep["notes"])
        # at 60 months they are replaced, at the price of then
        assert [month for month, nodes in enumerate(keep["computed_from"][0]["started_by_month"]) if nodes] == []
        longer = made(client, {**body, "horizon_months": 48})["alternatives"][0]
        assert [m for m, nodes in enumerate(longer["computed_from"][0]["started_by_month"]) if nodes] == [36]

    def test_of_several_kinds_it_must_be_said_which(self, client: TestClient, app: FastAPI) -> None:
        other = {**PLAN_LINE, "node": "aws-p5en.48xlarge", "offer": "aws:p5en.48xlarge:us-east-1:on_demand"}
        store_recommendation(app.state.database, "rec_kinds", {**RESULT, "plan": [PLAN_LINE, other]})
        body = only("buy", monte_carlo={"draws": 0})
        body["alternatives"][0] |= {"recommendation": "rec_kinds", "owned": {"age_months": 6, "nodes": 1}}
        refused = client.post(URL, json=body)
        assert refused.json()["errors"][0]["pointer"] == "/alternatives/0/owned/nodes"
        lease = {"term_months": 36, "usd_per_node_month": "9000"}
        del body["alternatives"][0]["owned"]
        body["alternatives"][0] |= {"acquisition": "lease", "lease": lease, "purchase": {}}
        refused = client.post(URL, json=body)
        assert refused.json()["errors"][0]["pointer"] == "/alternatives/0/lease/usd_per_node_month"
        body["alternatives"][0]["lease"] = {"term_months": 36}  # each at the lessor's rate on its own price
        parts = made(client, body)["alternatives"][0]["computed_from"]
        rates = [next(i["typical"] for i in p["inputs"] if i["input"] == "lease_usd_per_node_month") for p in parts]
        assert len(set(rates)) == 2


class TestCommitments:
    def test_what_demand_does_not_need_is_said(self, client: TestClient) -> None:
        body = only("reserve 3 years", growth_percent_per_month=-4.0, monte_carlo={"draws": 0})
        reserve = made(client, body)["alternatives"][0]
        used = reserve["computed_from"][0]
        idle = sum(used["nodes_by_month"]) - sum(used["needed_by_month"])
        assert idle > 0
        assert any(f"{idle:,.0f} of 72 node-months" in note for note in reserve["notes"])

    def test_paying_ahead_is_not_dearer(self, client: TestClient) -> None:
        body = {**COMPARISON, "discount_rate_percent": 0, "monte_carlo": {"draws": 0}, "horizon_months": 12}
        body["alternatives"] = [
            {"name": name, "recommendation": "rec_plan", "acquisition": acquisition, "payment": payment}
            for name, acquisition, payment in (
                ("monthly", "reserved_1y_no_upfront", "no_upfront"),
                ("half", "reserved_1y_no_upfront", "partial_upfront"),
                ("all", "reserved_1y_no_upfront", "all_upfront"),
                ("listed", "reserved_1y", "all_upfront"),
            )
        ]
        monthly, half, ahead, listed = (Decimal(a["total_usd"]) for a in made(client, body)["alternatives"])
        assert monthly > half > ahead
        assert listed < monthly
