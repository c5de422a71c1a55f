"""What a controller reads first: which alternative is cheapest and how sure that is, when it pays, and what is not the same."""

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from service.tco.summary import summary_of
from solver.tco.compare import CostComparison, Doubt, compare
from solver.tco.sampling import Sampling
from tests.service.bodies import RECOMMENDATION
from tests.service.tco_bodies import COMPARISON, NODE, PLAN_LINE, RESULT, only, store_recommendation
from tests.service.tco_plans import DESK, SLICE, URL, leased, made, stored, with_catalogs
from tests.solver.tco.examples import rented, scenario

__all__ = ["stored"]


class TestCheapest:
    @pytest.mark.parametrize("operator", ["enterprise", "neocloud", "hyperscaler"])
    @pytest.mark.parametrize("months", [24, 60])
    def test_the_stated_case_is_in_the_middle_of_its_draws_and_the_headline_agrees_or_says_why(
        self, client: TestClient, operator: str, months: int
    ) -> None:
        answer = made(client, with_catalogs(operator=operator, horizon_months=months, monte_carlo={"draws": 1000}))
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
        cheapest = made(client, {**COMPARISON, "monte_carlo": {"draws": 0}})["cheapest"]
        assert cheapest["chance"] is cheapest["agrees"] is cheapest["value_at_stake_usd"] is None

    def test_three_figures_that_would_matter_most(self, client: TestClient) -> None:
        answer = made(client, with_catalogs())
        effects = [Decimal(w["effect_usd"]) for w in answer["wanted"]]
        assert len(effects) == 3
        assert effects == sorted(effects, reverse=True)
        assert answer["wanted"][0]["state"] == "/alternatives/*/purchase/staff_fte_per_node"
        # stated, it is not asked for any more
        body = with_catalogs()
        body["alternatives"][2]["purchase"] = {"staff_fte_per_node": 0.25}
        assert "staff_fte_per_node" not in {w["input"] for w in made(client, body)["wanted"]}

    def test_a_summary_of_three_sentences(self, client: TestClient) -> None:
        answer = made(client, COMPARISON)
        assert answer["summary"].count(". ") == 2
        assert answer["cheapest"]["name"] in answer["summary"]
        assert answer["cheapest"]["runner_up"] in answer["summary"]

    def test_a_price_that_no_seller_states_is_said_in_the_headline(self, client: TestClient, app: FastAPI) -> None:
        """A commitment at a ratio to the price on demand was called the cheapest way, and only a note said that nobody sells it."""
        offers = client.get(
            "/v1/offers", params={"provider": "nebius", "commitment": "on_demand", "device": "b200-sxm"}
        )
        offer = next(one for one in offers.json()["items"] if one["devices"] == 8)
        line = PLAN_LINE | {"node": offer["node"], "offer": offer["id"], "usd_per_hour": offer["price"]["usd_per_hour"]}
        store_recommendation(app.state.database, "rec_nebius", RESULT | {"plan": [line]})
        ways = [
            {"name": way, "recommendation": "rec_nebius", "acquisition": way} for way in ("on_demand", "reserved_3y")
        ]
        answer = made(client, {"horizon_months": 36, "utilisation_fraction": 0.6, "alternatives": ways})
        assert answer["cheapest"]["name"] == "reserved_3y"
        assert answer["alternatives"][1]["parts"][0]["rent_basis"] == "ratio"
        assert "No seller states the price of reserved_3y" in answer["summary"]
        assert made(client, {"horizon_months": 1, "utilisation_fraction": 0.6, "alternatives": ways})[
            "summary"
        ].startswith("Over 1 month on_demand")
        assert "No seller" not in made(client, COMPARISON)["summary"]


def doubtful(usd_at_low: float, usd_at_high: float, name: str = "rent_change_fraction_per_year") -> CostComparison:
    """Two alternatives of which one is cheapest in every draw, and one input that moves its lead."""
    base = compare([rented(), rented("dear", usd_per_hour=60.0)], scenario(), Sampling(draws=50, seed=1))
    return replace(base, doubts=(Doubt(name, usd_at_low, usd_at_high),))


class TestAlone:
    """What no draw shows, where all prices move together, is said beside "100 % of the draws"."""

    def test_an_input_that_alone_turns_the_choice_is_named(self) -> None:
        said = summary_of(doubtful(-32_063.0, 278_043.0), 36)
        assert said.endswith("rent_change_fraction_per_year alone at its low end would put dear ahead by 32,063 USD.")
        assert "at its high end" in summary_of(doubtful(5.0, -7.0), 36)

    def test_one_that_does_not_is_not(self) -> None:
        assert "alone" not in summary_of(doubtful(1.0, 2.0), 36)
        assert "alone" not in summary_of(doubtful(-1.0, 2.0, "electricity_usd_per_kwh"), 36)


class TestBreakEven:
    def test_it_does_not_depend_on_the_horizon(self, client: TestClient) -> None:
        """Not of machines bought, leased (for longer than the shortest horizon) or there already."""
        others: dict[str, dict[str, Any]] = {
            "lease": {"acquisition": "lease", "lease": {"term_months": 36, "buyout_usd_per_node": "30000"}},
            "keep": {"acquisition": "purchase", "owned": {"age_months": 30}},
        }
        found: dict[str, list[list[float]]] = {}
        for months in (24, 36, 48, 60):
            body = with_catalogs(horizon_months=months, monte_carlo={"draws": 0})
            body["alternatives"] += [
                {"name": name, "recommendation": "rec_plan", **how} for name, how in others.items()
            ]
            for one in made(client, body)["alternatives"]:
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
        buy = next(a for a in made(client, with_catalogs())["alternatives"] if a["name"] == "buy")
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
        flat, grown = (made(client, {**base, "growth_percent_per_month": g}) for g in (0.0, 0.1))
        for before, after in zip(flat["alternatives"], grown["alternatives"], strict=True):
            assert after["parts"][0]["carries"] == pytest.approx(1.5)
            assert abs(Decimal(after["total_usd"]) / Decimal(before["total_usd"]) - 1) <= Decimal("0.02")

    def test_what_the_plan_says_may_be_stated_otherwise(self, client: TestClient) -> None:
        body = {**COMPARISON, "growth_percent_per_month": 0.1, "monte_carlo": {"draws": 0}}
        tight, _, _ = made(client, {**body, "alternatives": self._spare(carries=1.0)})["alternatives"]
        assert tight["computed_from"][0]["nodes_by_month"][:2] == [2.0, 3.0]
        roomy, _, _ = made(client, {**body, "alternatives": self._spare()})["alternatives"]
        assert set(roomy["computed_from"][0]["nodes_by_month"]) == {2.0}


class TestWholeMachines:
    def test_slices_of_a_cloud_are_bought_as_servers(self, client: TestClient) -> None:
        body = only("buy", alternatives=[{"name": "buy", "recommendation": "rec_slices", "acquisition": "purchase"}])
        buy = made(
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
        tray = made(client, body)["alternatives"][1]
        assert (tray["parts"][0]["nodes"], tray["parts"][0]["devices"]) == (1, 72)
        assert any("whole" in note for note in tray["notes"])
        price = next(i for i in tray["computed_from"][0]["inputs"] if i["input"] == "purchase_usd_per_node")
        assert price["typical"] == 4_400_000
        cooling = next(i for i in tray["computed_from"][0]["inputs"] if i["input"] == "power_usage_effectiveness")
        assert cooling["typical"] == 1.3  # stated by the request, before that of liquid cooling

    def test_a_node_with_a_price_of_its_own_is_bought_as_it_is(self, client: TestClient) -> None:
        body = only("buy", machines=[{"node": SLICE, "usd_per_node": "14000", "peak_kw_per_node": 0.9}])
        body["alternatives"] = [{"name": "buy", "recommendation": "rec_slices", "acquisition": "purchase"}]
        part = made(client, body)["alternatives"][0]["parts"][0]
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
        body = self._body()
        body["alternatives"][1]["fleet"] = [{"node": "gh200-144-1", "count": 1}]
        refused = client.post(URL, json=body)
        assert refused.status_code == 422
        detail = refused.json()["errors"][0]["detail"]
        assert "machines[].usd_per_node" in detail
        assert "machines[].peak_kw_per_node" in detail

    def test_a_workstation_can_be_bought_with_its_price_and_power(self, client: TestClient) -> None:
        stated = {"node": DESK["node"], "usd_per_node": "16500", "peak_kw_per_node": 1.1}
        desk = made(client, self._body(machines=[stated]))["alternatives"][1]
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
        assert any(said in warning for warning in made(client, body)["warnings"])

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
        body = leased(lease, horizon_months=months)
        assert any(said in warning for warning in made(client, body)["warnings"])

    def test_a_rent_below_its_own_electricity(self, client: TestClient) -> None:
        body = {**COMPARISON, "alternatives": [
            {"name": "gift", "fleet": [{"node": NODE, "count": 4, "usd_per_node_hour": "0.10"}], "acquisition": "on_demand"}
        ], "workloads": RECOMMENDATION["workloads"]}  # fmt: skip
        assert any("less than its electricity" in warning for warning in made(client, body)["warnings"])

    def test_an_ordinary_request_warns_of_nothing_but_its_commitment(self, client: TestClient) -> None:
        assert made(client, COMPARISON)["warnings"] == []


class TestSameService:
    def test_emissions_are_those_of_the_place(self, client: TestClient) -> None:
        body = {**COMPARISON, "electricity": {"region": "us"}, "monte_carlo": {"draws": 0}}
        body["alternatives"] = [
            {"name": name, "recommendation": name, "acquisition": how}
            for name, how in (("rec_plan", "on_demand"), ("rec_sweden", "on_demand"))
        ] + [{"name": "buy", "recommendation": "rec_plan", "acquisition": "purchase"}]
        virginia, sweden, own = made(client, body)["alternatives"]
        assert virginia["parts"][0]["region"] == "us-east-1"
        assert virginia["parts"][0]["kg_co2e_per_kwh"] > 5 * sweden["parts"][0]["kg_co2e_per_kwh"]
        assert virginia["co2e_kg"] / virginia["energy_kwh"] == pytest.approx(virginia["parts"][0]["kg_co2e_per_kwh"])
        assert own["parts"][0]["kg_co2e_per_kwh"] is None or own["co2e_kg"] > 0

    def test_what_one_plan_survives_and_another_does_not(self, client: TestClient) -> None:
        body = {**COMPARISON, "monte_carlo": {"draws": 0}}
        body["alternatives"] = [
            {"name": name, "recommendation": name, "acquisition": "on_demand"} for name in ("rec_plan", "rec_safe")
        ]
        plain, safe = made(client, body)["alternatives"]
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
        for alternative in made(client, body)["alternatives"]:
            assert any("not the same precision" in note for note in alternative["notes"])


class TestBesideMachines:
    def test_data_sent_out_is_priced_by_its_provider_and_of_rented_nodes_only(self, client: TestClient) -> None:
        body = only("rent on demand", monte_carlo={"draws": 0})
        body["alternatives"][0] |= {"egress_gb_per_month": 1000.0, "storage_usd_per_month": "50"}
        rent = made(client, body)["alternatives"][0]
        lines = {line["line"]: Decimal(line["total_usd"]) for line in rent["lines"]}
        assert lines["egress"] == 1000 * Decimal("0.09") * 36
        assert lines["rented_storage"] == 50 * 36
        owned = only("buy", monte_carlo={"draws": 0})
        owned["alternatives"][0]["egress_gb_per_month"] = 1.0
        assert client.post(URL, json=owned).status_code == 422

    def test_machines_that_fail_are_more_machines_where_that_is_asked_for(self, client: TestClient) -> None:
        body = only("buy", monte_carlo={"draws": 0})
        body["alternatives"][0]["purchase"] = {"availability_fraction": 0.98, "decommissioning_usd_per_node": "900"}
        buy = made(client, body)["alternatives"][0]
        assert buy["parts"][0]["nodes"] == 3
        assert any("3 of" in note and "2 work on average" in note for note in buy["notes"])
        lines = {line["line"]: Decimal(line["total_usd"]) for line in buy["lines"]}
        assert lines["decommissioning"] == 2700


def test_the_committed_example_is_answered(client: TestClient) -> None:
    body = json.loads(Path("examples/tco-rent-buy-api.json").read_text(encoding="utf-8"))
    answer = made(client, body)
    assert [a["name"] for a in answer["alternatives"]] == ["rent", "commit for 3 years", "buy", "API"]
    assert all(a["parts"][0]["carries"] > 1.0 for a in answer["alternatives"][:3])  # the planner's word on a fleet
    assert answer["alternatives"][0]["precision"]


class TestApiModels:
    def _body(self, model: str) -> dict[str, Any]:
        body = only("API", workloads=RECOMMENDATION["workloads"], monte_carlo={"draws": 0})
        body["alternatives"][0]["api"] = {"model": model}
        return body

    def test_a_model_is_priced_by_its_sellers_list(self, client: TestClient) -> None:
        answer = made(client, self._body("novita/meta-llama/llama-3.3-70b-instruct"))
        prices = {d["input"]: d for d in answer["defaults"] if d["alternative"] == "API"}
        assert prices["api_usd_per_million_input_tokens"]["typical"] == 0.135
        assert prices["api_usd_per_million_output_tokens"]["typical"] == 0.4
        assert prices["api_usd_per_million_input_tokens"]["origins"][0]["checked"] == "data_set"

    def test_of_several_sellers_the_cheapest_for_these_requests_and_it_says_so(self, client: TestClient) -> None:
        answer = made(client, self._body("llama-3.3-70b-instruct"))
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
