"""What a controller reads first: which alternative is cheapest and how sure that is, when it pays, and what is not the same."""

import json
from decimal import Decimal
from pathlib import Path
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


def _line(node: str, offer: str, nodes: int, usd: str, **changes: Any) -> dict[str, Any]:
    return {**PLAN_LINE, "node": node, "offer": offer, "nodes": nodes, "usd_per_hour": usd, **changes}


@pytest.fixture(autouse=True)
def stored(client: TestClient, app: FastAPI) -> None:
    assert client.get("/healthz").status_code == 200
    database = app.state.database
    store_recommendation(database, "rec_plan", RESULT)
    busy = {"workload": WORKLOAD, "utilisation_fraction": 0.85 / 1.5, "replicas": 2}
    store_recommendation(database, "rec_spare", {**RESULT, "plan": [{**PLAN_LINE, **busy}]})
    swedish = _line(NODE, "aws:p5.48xlarge:eu-north-1:on_demand", 2, "110.08")
    store_recommendation(database, "rec_sweden", {**RESULT, "plan": [swedish]})
    spare = {"limits": {"survive": {"nodes": 1}}}
    store_recommendation(database, "rec_safe", RESULT, RECOMMENDATION | spare)
    fp8 = {"precision": {"weights": "fp8", "kv_cache": "fp8"}}
    store_recommendation(database, "rec_fp8", {**RESULT, "plan": [{**PLAN_LINE, **fp8}]})
    store_recommendation(
        database,
        "rec_slices",
        {**RESULT, "plan": [_line(SLICE, "gcp:a2-highgpu-1g:us-central1:on_demand", 5, "18.36")]},
    )


def _made(client: TestClient, body: dict[str, Any]) -> dict[str, Any]:
    answer = client.post(URL, json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def _with_catalogs(**changes: Any) -> dict[str, Any]:
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


class TestCheapest:
    @pytest.mark.parametrize("operator", ["enterprise", "neocloud", "hyperscaler"])
    @pytest.mark.parametrize("months", [24, 60])
    def test_the_stated_case_is_in_the_middle_of_its_draws_and_the_headline_agrees_or_says_why(
        self, client: TestClient, operator: str, months: int
    ) -> None:
        answer = _made(client, _with_catalogs(operator=operator, horizon_months=months, monte_carlo={"draws": 1000}))
        for alternative in answer["alternatives"]:
            found = alternative["uncertainty"]
            low, high = (Decimal(found["npv_usd"][p]) for p in ("p25", "p75"))
            assert low - Decimal("0.01") <= Decimal(alternative["npv_usd"]) <= high + Decimal("0.01"), alternative[
                "name"
            ]
            assert found["stated_in_middle_half"]
        cheapest = answer["cheapest"]
        least = min(answer["alternatives"], key=lambda a: Decimal(a["npv_usd"]))
        assert cheapest["name"] == least["name"]
        assert cheapest["chance"] == least["uncertainty"]["cheapest_fraction"]
        assert (cheapest["why_not"] is None) == cheapest["agrees"]
        assert Decimal(cheapest["value_at_stake_usd"]) >= 0
        assert "net present value" in cheapest["measure"]

    def test_without_draws_no_chance_is_claimed(self, client: TestClient) -> None:
        cheapest = _made(client, {**COMPARISON, "monte_carlo": {"draws": 0}})["cheapest"]
        assert cheapest["chance"] is cheapest["agrees"] is cheapest["value_at_stake_usd"] is None

    def test_three_figures_that_would_matter_most(self, client: TestClient) -> None:
        answer = _made(client, _with_catalogs())
        effects = [Decimal(w["effect_usd"]) for w in answer["wanted"]]
        assert len(effects) == 3
        assert effects == sorted(effects, reverse=True)
        assert answer["wanted"][0]["state"] == "/alternatives/*/purchase/staff_fte_per_node"
        # stated, it is not asked for any more
        body = _with_catalogs()
        body["alternatives"][2]["purchase"] = {"staff_fte_per_node": 0.25}
        assert "staff_fte_per_node" not in {w["input"] for w in _made(client, body)["wanted"]}

    def test_a_summary_of_three_sentences(self, client: TestClient) -> None:
        answer = _made(client, COMPARISON)
        assert answer["summary"].count(". ") == 2
        assert answer["cheapest"]["name"] in answer["summary"]
        assert answer["cheapest"]["runner_up"] in answer["summary"]


class TestBreakEven:
    def test_it_does_not_depend_on_the_horizon(self, client: TestClient) -> None:
        """Not of machines bought, leased (for longer than the shortest horizon) or there already."""
        others: dict[str, dict[str, Any]] = {
            "lease": {"acquisition": "lease", "lease": {"term_months": 36, "buyout_usd_per_node": "30000"}},
            "keep": {"acquisition": "purchase", "owned": {"age_months": 30}},
        }
        found: dict[str, list[list[float]]] = {}
        for months in (24, 36, 48, 60):
            body = _with_catalogs(horizon_months=months, monte_carlo={"draws": 0})
            body["alternatives"] += [
                {"name": name, "recommendation": "rec_plan", **how} for name, how in others.items()
            ]
            for one in _made(client, body)["alternatives"]:
                if one["name"] in ("buy", *others):
                    pair = next(p for p in one["break_even"] if p["against"] == "rent on demand")
                    crossings = [pair[measure]["crossings"] for measure in ("undiscounted", "discounted", "cash")]
                    found.setdefault(one["name"], []).append([month for each in crossings for month in each])
        assert len(found["buy"][0]) >= 3
        assert len(found["lease"][0]) >= 3
        for curves in found.values():
            for month in zip(*curves, strict=True):
                assert max(month) - min(month) < 1e-6

    def test_money_has_a_price(self, client: TestClient) -> None:
        buy = next(a for a in _made(client, _with_catalogs())["alternatives"] if a["name"] == "buy")
        pair = next(p for p in buy["break_even"] if p["against"] == "rent on demand")
        assert pair["undiscounted"]["month"] < pair["discounted"]["month"] < pair["cash"]["month"]


class TestGrowth:
    def _spare(self, carries: float | None = None) -> list[dict[str, Any]]:
        return [
            {"name": how, "recommendation": "rec_spare", "acquisition": acquisition, "carries": carries}
            for how, acquisition in (("rent", "on_demand"), ("commit", "reserved_1y_no_upfront"), ("buy", "purchase"))
        ]

    def test_a_little_growth_costs_next_to_nothing_while_there_is_room(self, client: TestClient) -> None:
        base = {**COMPARISON, "horizon_months": 12, "monte_carlo": {"draws": 0}, "alternatives": self._spare()}
        flat, grown = (_made(client, {**base, "growth_percent_per_month": g}) for g in (0.0, 0.1))
        for before, after in zip(flat["alternatives"], grown["alternatives"], strict=True):
            assert after["parts"][0]["carries"] == pytest.approx(1.5)
            assert abs(Decimal(after["total_usd"]) / Decimal(before["total_usd"]) - 1) <= Decimal("0.02")

    def test_what_the_plan_says_may_be_stated_otherwise(self, client: TestClient) -> None:
        body = {**COMPARISON, "growth_percent_per_month": 0.1, "monte_carlo": {"draws": 0}}
        tight, _, _ = _made(client, {**body, "alternatives": self._spare(carries=1.0)})["alternatives"]
        assert tight["computed_from"][0]["nodes_by_month"][:2] == [2.0, 3.0]
        roomy, _, _ = _made(client, {**body, "alternatives": self._spare()})["alternatives"]
        assert set(roomy["computed_from"][0]["nodes_by_month"]) == {2.0}


class TestWholeMachines:
    def test_slices_of_a_cloud_are_bought_as_servers(self, client: TestClient) -> None:
        body = only("buy", alternatives=[{"name": "buy", "recommendation": "rec_slices", "acquisition": "purchase"}])
        buy = _made(
            client,
            {**body, "alternatives": [{"name": "buy", "recommendation": "rec_slices", "acquisition": "purchase"}]},
        )["alternatives"][0]
        part = buy["parts"][0]
        assert (part["nodes"], part["devices"], part["sold_as_devices"]) == (1, 8, 8)
        assert part["carries"] == pytest.approx(8 / 5)
        assert any("3 of them spare" in note for note in buy["notes"])

    def test_a_tray_is_bought_with_its_rack(self, client: TestClient) -> None:
        body = only("API", workloads=RECOMMENDATION["workloads"])
        body["alternatives"].append(
            {"name": "tray", "fleet": [{"node": "gb200-nvl72-tray", "count": 2}], "acquisition": "purchase"}
        )
        tray = _made(client, body)["alternatives"][1]
        assert (tray["parts"][0]["nodes"], tray["parts"][0]["devices"]) == (1, 72)
        assert any("whole" in note for note in tray["notes"])
        price = next(i for i in tray["computed_from"][0]["inputs"] if i["input"] == "purchase_usd_per_node")
        assert price["typical"] == 4_400_000
        cooling = next(i for i in tray["computed_from"][0]["inputs"] if i["input"] == "power_usage_effectiveness")
        assert cooling["typical"] == 1.3  # stated by the request, before that of liquid cooling

    def test_a_node_with_a_price_of_its_own_is_bought_as_it_is(self, client: TestClient) -> None:
        body = only("buy", machines=[{"node": SLICE, "usd_per_node": "14000", "peak_kw_per_node": 0.9}])
        body["alternatives"] = [{"name": "buy", "recommendation": "rec_slices", "acquisition": "purchase"}]
        part = _made(client, body)["alternatives"][0]["parts"][0]
        assert (part["nodes"], part["devices"], part["sold_as_devices"]) == (5, 5, None)
        assert part["peak_kw_per_node"] == pytest.approx(0.9)


class TestStatedFigures:
    def _body(self, **changes: Any) -> dict[str, Any]:
        small = [{**RECOMMENDATION["workloads"][0], "llm": "llama-3.1-8b"}]
        small[0]["traffic"] = {**small[0]["traffic"], "requests_per_s": 0.1}
        body = only("API", workloads=small, monte_carlo={"draws": 100}, **changes)
        body["alternatives"].append({"name": "desk", "fleet": [DESK], "acquisition": "purchase"})
        return body

    def test_everything_missing_is_named_at_once_with_where_to_state_it(self, client: TestClient) -> None:
        refused = client.post(URL, json=self._body())
        assert refused.status_code == 422
        detail = refused.json()["errors"][0]["detail"]
        assert "machines[].usd_per_node" in detail
        assert "machines[].peak_kw_per_node" in detail

    def test_a_workstation_can_be_bought_with_its_price_and_power(self, client: TestClient) -> None:
        stated = {"node": DESK["node"], "usd_per_node": "16500", "peak_kw_per_node": 1.1}
        desk = _made(client, self._body(machines=[stated]))["alternatives"][1]
        lines = {line["line"]: Decimal(line["total_usd"]) for line in desk["lines"]}
        assert lines["purchase"] == 16_500
        assert lines["power"] > 0
        assert not {"space", "network", "staff"} & lines.keys()
        assert any("stands by a desk" in note for note in desk["notes"])

    def test_a_node_stated_twice_or_unknown_is_refused(self, client: TestClient) -> None:
        one = {"node": DESK["node"], "usd_per_node": "16500"}
        twice = client.post(URL, json=self._body(machines=[one, one]))
        assert twice.json()["errors"][0]["pointer"] == "/machines/1/node"
        unknown = client.post(URL, json=self._body(machines=[{"node": "desk-9000"}]))
        assert unknown.json()["errors"][0]["pointer"] == "/machines/0/node"


class TestWarnings:
    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"electricity": {"usd_per_kwh": "0"}}, "electricity is stated as free"),
            ({"colocation_usd_per_kw_month": "0"}, "space is stated as free"),
            ({"purchase": {"usd_per_node": "1"}}, "1.00 USD: the least a source gives is"),
            ({"purchase": {"usd_per_node": "0"}}, "is stated as free"),
            ({"purchase": {"finance_rate_percent": 11, "finance_months": 60}}, "60 months outlasts the horizon of 36"),
            ({"purchase": {"residual_fraction": 1.0}}, "lose nothing of their value"),
            ({"purchase": {"staff_fte_per_node": 0}}, "staff is stated as free"),
            ({"purchase": {"network_usd_per_node": "0"}}, "network is stated as free"),
            ({"purchase": {"maintenance_percent_per_year": 0}}, "maintenance is stated as free"),
            ({"market": {"rent_percent_per_year": -60}}, "change by -60 % a year: sources have -26.7 to +15.5 %"),
            ({"market": {"api_percent_per_year": 5}}, "API prices are stated to change by +5 %"),
            ({"discount_rate_percent": -3}, "the discount rate is negative"),
            ({"inflation_percent_per_year": -3}, "inflation is negative"),
            ({"ramp_months": 48}, "longer than the horizon of 36"),
            ({"horizon_months": 12}, "36 months outlasts the horizon of 12: what is left is owed there"),
            ({"api": {"model": "perplexity/pplx-7b-online"}}, "tokens (input) are free by the list of"),
            ({"api": {"usd_per_million_input_tokens": "0", "usd_per_million_output_tokens": "0"}}, "stated as free"),
        ],
    )
    def test_what_is_free_or_far_off_is_on_the_face_of_the_answer(
        self, client: TestClient, changes: dict[str, Any], said: str
    ) -> None:
        body = {**COMPARISON, "alternatives": [dict(a) for a in COMPARISON["alternatives"]]}
        for field, value in changes.items():
            if field in ("purchase", "api"):
                body["alternatives"][2 if field == "purchase" else 3][field] = value
            else:
                body[field] = value
        assert any(said in warning for warning in _made(client, body)["warnings"])

    @pytest.mark.parametrize(
        ("lease", "months", "said"),
        [
            ({"term_months": 36, "usd_per_node_month": "0"}, 36, "leased for nothing"),
            ({"term_months": 36, "usd_per_node_month": "1000"}, 36, "less than half of its price"),
            ({"term_months": 36, "usd_per_node_month": "50000"}, 36, "more than twice its price"),
            ({"term_months": 36}, 12, "the lease of 36 months outlasts the horizon of 12: what is left is owed there"),
        ],
    )
    def test_a_lease_far_from_what_machines_cost_or_longer_than_the_horizon(
        self, client: TestClient, lease: dict[str, Any], months: int, said: str
    ) -> None:
        body = _leased(lease, horizon_months=months)
        assert any(said in warning for warning in _made(client, body)["warnings"])

    def test_a_rent_below_its_own_electricity(self, client: TestClient) -> None:
        body = {**COMPARISON, "alternatives": [
            {"name": "gift", "fleet": [{"node": NODE, "count": 4, "usd_per_node_hour": "0.10"}], "acquisition": "on_demand"}
        ], "workloads": RECOMMENDATION["workloads"]}  # fmt: skip
        assert any("less than its electricity" in warning for warning in _made(client, body)["warnings"])

    def test_an_ordinary_request_warns_of_nothing_but_its_commitment(self, client: TestClient) -> None:
        assert _made(client, COMPARISON)["warnings"] == []


class TestSameService:
    def test_emissions_are_those_of_the_place(self, client: TestClient) -> None:
        body = {**COMPARISON, "electricity": {"region": "us"}, "monte_carlo": {"draws": 0}}
        body["alternatives"] = [
            {"name": name, "recommendation": name, "acquisition": how}
            for name, how in (("rec_plan", "on_demand"), ("rec_sweden", "on_demand"))
        ] + [{"name": "buy", "recommendation": "rec_plan", "acquisition": "purchase"}]
        virginia, sweden, own = _made(client, body)["alternatives"]
        assert virginia["parts"][0]["region"] == "us-east-1"
        assert virginia["parts"][0]["kg_co2e_per_kwh"] > 5 * sweden["parts"][0]["kg_co2e_per_kwh"]
        assert virginia["co2e_kg"] / virginia["energy_kwh"] == pytest.approx(virginia["parts"][0]["kg_co2e_per_kwh"])
        assert own["parts"][0]["kg_co2e_per_kwh"] is None or own["co2e_kg"] > 0

    def test_what_one_plan_survives_and_another_does_not(self, client: TestClient) -> None:
        body = {**COMPARISON, "monte_carlo": {"draws": 0}}
        body["alternatives"] = [
            {"name": name, "recommendation": name, "acquisition": "on_demand"} for name in ("rec_plan", "rec_safe")
        ]
        plain, safe = _made(client, body)["alternatives"]
        assert plain["survives"] == {"nodes": 0, "providers": 0, "regions": 0}
        assert safe["survives"]["nodes"] == 1
        assert any("the loss of one node takes 50%" in note and "USD" in note for note in plain["notes"])
        assert not any("loss of one node" in note for note in safe["notes"])

    def test_another_precision_is_said(self, client: TestClient, app: FastAPI) -> None:
        body = {**COMPARISON, "monte_carlo": {"draws": 0}}
        bf16 = {"precision": {"weights": "bf16", "kv_cache": "bf16"}}
        store_recommendation(app.state.database, "rec_bf16", {**RESULT, "plan": [{**PLAN_LINE, **bf16}]})
        body["alternatives"] = [
            {"name": name, "recommendation": name, "acquisition": "on_demand"} for name in ("rec_fp8", "rec_bf16")
        ]
        for alternative in _made(client, body)["alternatives"]:
            assert any("not the same precision" in note for note in alternative["notes"])


class TestBesideMachines:
    def test_data_sent_out_is_priced_by_its_provider_and_of_rented_nodes_only(self, client: TestClient) -> None:
        body = only("rent on demand", monte_carlo={"draws": 0})
        body["alternatives"][0] |= {"egress_gb_per_month": 1000.0, "storage_usd_per_month": "50"}
        rent = _made(client, body)["alternatives"][0]
        lines = {line["line"]: Decimal(line["total_usd"]) for line in rent["lines"]}
        assert lines["egress"] == 1000 * Decimal("0.09") * 36
        assert lines["rented_storage"] == 50 * 36
        owned = only("buy", monte_carlo={"draws": 0})
        owned["alternatives"][0]["egress_gb_per_month"] = 1.0
        assert client.post(URL, json=owned).status_code == 422

    def test_machines_that_fail_are_more_machines_where_that_is_asked_for(self, client: TestClient) -> None:
        body = only("buy", monte_carlo={"draws": 0})
        body["alternatives"][0]["purchase"] = {"availability_fraction": 0.98, "decommissioning_usd_per_node": "900"}
        buy = _made(client, body)["alternatives"][0]
        assert buy["parts"][0]["nodes"] == 3
        assert any("3 of" in note and "2 work on average" in note for note in buy["notes"])
        lines = {line["line"]: Decimal(line["total_usd"]) for line in buy["lines"]}
        assert lines["decommissioning"] == 2700


def _leased(lease: dict[str, Any], **changes: Any) -> dict[str, Any]:
    body = only("buy", monte_carlo={"draws": 0}, **changes)
    body["alternatives"] = [
        {"name": "lease", "recommendation": "rec_plan", "acquisition": "lease", "lease": lease},
        {"name": "buy", "recommendation": "rec_plan", "acquisition": "purchase"},
    ]
    return body


class TestLease:
    def test_a_rate_that_is_not_stated_comes_from_the_lessors_and_the_price(self, client: TestClient) -> None:
        """A lessor who pays the price and gets the rates and what machines fetch earns what the catalog says lessors do."""
        answer = _made(client, _leased({"term_months": 36}))
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
        lease, buy = _made(client, _leased(terms))["alternatives"]
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
        body = _leased({"term_months": 36, "usd_per_node_month": "4000"})
        body["alternatives"][0]["recommendation"] = "rec_slices"
        del body["alternatives"][1]
        part = _made(client, body)["alternatives"][0]["parts"][0]
        assert (part["nodes"], part["sold_as_devices"]) == (1, 8)


class TestMachinesThereAlready:
    def test_what_was_paid_is_sunk_and_what_they_would_fetch_counts(self, client: TestClient) -> None:
        body = only("buy", monte_carlo={"draws": 0})
        owned = {"age_months": 24, "usd_paid_per_node": "300000"}
        body["alternatives"] = [
            {"name": "keep", "recommendation": "rec_plan", "acquisition": "purchase", "owned": owned},
            {"name": "buy", "recommendation": "rec_plan", "acquisition": "purchase"},
        ]
        keep, buy = _made(client, body)["alternatives"]
        lines = {line["line"]: Decimal(line["total_usd"]) for line in keep["lines"]}
        assert keep["sunk_usd"] == "600000.000000"
        assert buy["sunk_usd"] is None
        fetched = 600_000 * (1 - 0.55 * 24 / 36)
        assert float(lines["foregone_sale"]) == pytest.approx(fetched)
        assert any("600,000.00 USD paid for them is sunk" in note for note in keep["notes"])
        # at 60 months they are replaced, at the price of then
        assert [month for month, nodes in enumerate(keep["computed_from"][0]["started_by_month"]) if nodes] == []
        longer = _made(client, {**body, "horizon_months": 48})["alternatives"][0]
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
        parts = _made(client, body)["alternatives"][0]["computed_from"]
        rates = [next(i["typical"] for i in p["inputs"] if i["input"] == "lease_usd_per_node_month") for p in parts]
        assert len(set(rates)) == 2


class TestCommitments:
    def test_what_demand_does_not_need_is_said(self, client: TestClient) -> None:
        body = only("reserve 3 years", growth_percent_per_month=-4.0, monte_carlo={"draws": 0})
        reserve = _made(client, body)["alternatives"][0]
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
        monthly, half, ahead, listed = (Decimal(a["total_usd"]) for a in _made(client, body)["alternatives"])
        assert monthly > half > ahead
        assert listed < monthly


def test_the_committed_example_is_answered(client: TestClient) -> None:
    body = json.loads(Path("examples/tco-rent-buy-api.json").read_text(encoding="utf-8"))
    answer = _made(client, body)
    assert [a["name"] for a in answer["alternatives"]] == ["rent", "commit for 3 years", "buy", "API"]
    assert all(a["parts"][0]["carries"] > 1.0 for a in answer["alternatives"][:3])  # the planner's word on a fleet
    assert answer["alternatives"][0]["precision"]


class TestApiModels:
    def _body(self, model: str) -> dict[str, Any]:
        body = only("API", workloads=RECOMMENDATION["workloads"], monte_carlo={"draws": 0})
        body["alternatives"][0]["api"] = {"model": model}
        return body

    def test_a_model_is_priced_by_its_sellers_list(self, client: TestClient) -> None:
        answer = _made(client, self._body("novita/meta-llama/llama-3.3-70b-instruct"))
        prices = {d["input"]: d for d in answer["defaults"] if d["alternative"] == "API"}
        assert prices["api_usd_per_million_input_tokens"]["typical"] == 0.135
        assert prices["api_usd_per_million_output_tokens"]["typical"] == 0.4
        assert prices["api_usd_per_million_input_tokens"]["origins"][0]["checked"] == "data_set"

    def test_of_several_sellers_the_cheapest_for_these_requests_and_it_says_so(self, client: TestClient) -> None:
        answer = _made(client, self._body("llama-3.3-70b-instruct"))
        notes = answer["alternatives"][0]["notes"]
        assert any("sellers list llama-3.3-70b-instruct" in note for note in notes)

    def test_an_unknown_model_is_refused_with_what_is_near(self, client: TestClient) -> None:
        refused = client.post(URL, json=self._body("novita/meta-llama/llama-3.3-70b-instrukt"))
        assert refused.status_code == 422
        error = refused.json()["errors"][0]
        assert error["pointer"] == "/alternatives/0/api/model"
        assert "llama-3.3-70b-instruct" in error["detail"]

    def test_neither_a_model_nor_prices(self, client: TestClient) -> None:
        body = self._body("x")
        body["alternatives"][0]["api"] = {"usd_per_million_input_tokens": "1"}
        assert client.post(URL, json=body).status_code == 422
