"""POST and GET /v1/tco/comparisons."""

import csv
import io
import zipfile
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from service.tco.tables import ComparisonTable
from tests.service.bodies import RECOMMENDATION, changed
from tests.service.sheet_formulas import Workbook
from tests.service.tco_bodies import COMPARISON, INFEASIBLE, NODE, OFFER, RESULT, only, store_recommendation

URL = "/v1/tco/comparisons"


@pytest.fixture(autouse=True)
def stored(client: TestClient, app: FastAPI) -> None:
    assert client.get("/healthz").status_code == 200
    database = app.state.database
    store_recommendation(database, "rec_plan", RESULT)
    store_recommendation(database, "rec_infeasible", INFEASIBLE)
    totals = {**RESULT["totals"], "served_fraction": 0.5}
    budget = changed(RECOMMENDATION | {"limits": {"max_usd_per_hour": "1.0"}}, "objective", "throughput")
    store_recommendation(database, "rec_half", {**RESULT, "totals": totals}, budget)
    faster = changed(RECOMMENDATION, "workloads/0/targets/tpot_ms/p95", 20)
    store_recommendation(database, "rec_faster", RESULT, faster)


def _money(answer: Any) -> Decimal:
    assert isinstance(answer, str)
    return Decimal(answer)


def _refused(client: TestClient, body: dict[str, Any], pointer: str) -> str:
    answer = client.post(URL, json=body)
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found = {e.get("pointer"): e["detail"] for e in answer.json()["errors"]}
    assert pointer in found, found
    return found[pointer]


class TestPost:
    def test_lines_sum_to_totals_to_the_last_place(self, client: TestClient) -> None:
        answer = client.post(URL, json=COMPARISON)
        assert answer.status_code == 201, answer.text
        body = answer.json()
        assert answer.headers["location"] == body["link"]
        assert [a["name"] for a in body["alternatives"]] == ["rent on demand", "reserve 3 years", "buy", "API"]
        for alternative in body["alternatives"]:
            assert sum(_money(line["total_usd"]) for line in alternative["lines"]) == _money(alternative["total_usd"])
            assert sum(map(_money, alternative["usd_by_month"])) == _money(alternative["total_usd"])
            assert sum(_money(x["present_value_usd"]) for x in alternative["lines"]) == _money(alternative["npv_usd"])
            assert len(alternative["usd_by_month"]) == 37
            assert {p["against"] for p in alternative["break_even"]} == {
                a["name"] for a in body["alternatives"] if a is not alternative
            }
            effects = [_money(s["effect_usd"]) for s in alternative["sensitivity"]]
            assert effects == sorted(effects, reverse=True)

    def test_rent_is_the_plans_price_for_every_hour(self, client: TestClient) -> None:
        body = only("rent on demand", market={"rent_percent_per_year": 0})
        rent = client.post(URL, json=body).json()["alternatives"][0]
        assert _money(rent["total_usd"]) == Decimal("110.08") * 730 * 36
        assert rent["parts"][0]["rent_basis"] == "plan"
        assert rent["energy_kwh"] > 0

    def test_a_commitment_without_a_stored_price_takes_a_sourced_ratio_and_says_so(self, client: TestClient) -> None:
        body = client.post(URL, json=only("reserve 3 years")).json()
        reserve = body["alternatives"][0]
        ratio = next(d for d in body["defaults"] if d["input"] == "rent_ratio_to_on_demand")
        assert reserve["parts"][0]["rent_basis"] == "ratio"
        assert ratio["alternative"] == "reserve 3 years"
        assert ratio["origins"][0]["source"]
        rounded = round(110.08 * ratio["typical"] * 730 * 36, 6)
        assert float(reserve["total_usd"]) == pytest.approx(rounded)
        assert any("ratio" in note for note in reserve["notes"])

    def test_a_commitment_with_a_stored_price_takes_that(self, client: TestClient) -> None:
        price = {"usd_per_hour": "22.5", "valid_from": "2026-11-01T00:00:00Z", "source": "own contract"}
        offer = {"provider": "aws", "instance": "p5.48xlarge", "region": "us-east-1", "commitment": "reserved_3y"}
        offer |= {"node": NODE, "price": price}
        assert client.post("/v1/offers", json=offer).status_code in (200, 201)
        reserve = client.post(URL, json=only("reserve 3 years")).json()["alternatives"][0]
        assert reserve["parts"][0]["rent_basis"] == "stored_offer"
        assert _money(reserve["total_usd"]) == 2 * Decimal("22.5") * 730 * 36

    def test_buying_shows_every_line_and_every_default_with_its_source(self, client: TestClient) -> None:
        body = client.post(URL, json=only("buy")).json()
        lines = {line["line"] for line in body["alternatives"][0]["lines"]}
        assert {"purchase", "network", "storage", "spares", "power", "cooling", "space", "maintenance", "staff",
                "insurance", "residual"} == lines  # fmt: skip
        inputs = {d["input"] for d in body["defaults"]}
        assert "purchase_usd_per_node" in inputs
        assert not inputs & {"power_usage_effectiveness", "electricity_usd_per_kwh", "discount_fraction_per_year"}
        for default in body["defaults"]:
            assert default["origins"] or default["how"], default
            assert default["low"] <= default["typical"] <= default["high"]

    def test_a_loan_has_interest_on_a_line_of_its_own(self, client: TestClient) -> None:
        body = only("buy")
        body["alternatives"][0]["purchase"] = {"finance_rate_percent": 11.0, "finance_months": 48}
        buy = client.post(URL, json=body).json()["alternatives"][0]
        assert _money(next(x for x in buy["lines"] if x["line"] == "finance")["total_usd"]) > 0
        assert _money(buy["usd_by_month"][0]) == 0

    def test_book_and_market_value_fall_until_machines_are_renewed(self, client: TestClient) -> None:
        body = only("buy", horizon_months=72)
        buy = client.post(URL, json=body).json()["alternatives"][0]
        for values in (
            buy["depreciation"]["book_value_usd_by_month"],
            buy["depreciation"]["market_value_usd_by_month"],
        ):
            assert len(values) == 73
            assert all(Decimal(a) > Decimal(b) for a, b in pairwise(values[:60]))
            assert Decimal(values[60]) > Decimal(values[59])
        machines = sum(_money(x["usd_by_month"][0]) for x in buy["lines"] if x["line"] in ("purchase", "spares"))
        assert _money(buy["depreciation"]["market_value_usd_by_month"][0]) == pytest.approx(machines)
        # sold after 60 months at what the market gives for them then
        sold = next(x for x in buy["lines"] if x["line"] == "residual")["usd_by_month"]
        assert -_money(sold[60]) == pytest.approx(machines * Decimal("0.15"))
        assert -_money(sold[72]) == pytest.approx(_money(buy["depreciation"]["market_value_usd_by_month"][72]))

    def test_no_use_leaves_costs_per_token_undefined(self, client: TestClient) -> None:
        rent = client.post(URL, json=only("rent on demand", utilisation_fraction=0.0)).json()["alternatives"][0]
        assert rent["usd_per_million_tokens"] is None
        assert "undefined" in rent["undefined_because"]
        assert _money(rent["total_usd"]) > 0

    def test_another_currency_at_the_stated_rate(self, client: TestClient) -> None:
        body = only("API", currency={"code": "EUR", "usd_per_unit": "1.25"}, workloads=RECOMMENDATION["workloads"])
        api = client.post(URL, json=body).json()["alternatives"][0]
        assert _money(api["total_in_currency"]) * Decimal("1.25") == pytest.approx(_money(api["total_usd"]))

    def test_without_a_tariff_the_national_average_and_its_carbon_are_taken(self, client: TestClient) -> None:
        body = client.post(URL, json=only("buy", electricity={})).json()
        assert {"electricity_usd_per_kwh", "grid_kg_co2e_per_kwh"} <= {d["input"] for d in body["defaults"]}
        assert body["alternatives"][0]["co2e_kg"] > 0

    def test_a_tariff_of_nowhere_claims_no_carbon(self, client: TestClient) -> None:
        assert client.post(URL, json=only("buy")).json()["alternatives"][0]["co2e_kg"] is None

    def test_the_same_request_gives_the_same_figures(self, client: TestClient) -> None:
        first, again = (client.post(URL, json=COMPARISON).json() for _ in range(2))
        assert first["alternatives"] == again["alternatives"]
        assert first["id"] != again["id"]

    def test_ten_alternatives_over_sixty_months_with_a_thousand_draws(self, client: TestClient) -> None:
        ten = [{**a, "name": f"{a['name']} {n}"} for n in range(3) for a in COMPARISON["alternatives"]][:10]
        body = {**COMPARISON, "horizon_months": 60, "monte_carlo": {"draws": 1000}, "alternatives": ten}
        answer = client.post(URL, json=body)
        assert answer.status_code == 201
        assert [a["name"] for a in answer.json()["alternatives"]] == [a["name"] for a in ten]
        assert {len(a["break_even"]) for a in answer.json()["alternatives"]} == {len(ten) - 1}


class TestFairness:
    def test_an_infeasible_recommendation(self, client: TestClient) -> None:
        body = changed(only("rent on demand"), "alternatives/0/recommendation", "rec_infeasible")
        detail = _refused(client, body, "/alternatives/0/recommendation")
        assert "infeasible" in detail
        assert "no layout reaches 1 ms" in detail

    def test_a_recommendation_that_serves_a_part(self, client: TestClient) -> None:
        body = changed(only("rent on demand"), "alternatives/0/recommendation", "rec_half")
        assert "serves 50.0% of the traffic" in _refused(client, body, "/alternatives/0/recommendation")

    def test_a_plan_of_endless_traffic_says_what_rate_to_plan_with(self, client: TestClient, app: FastAPI) -> None:
        endless = {**RESULT, "totals": {"served_fraction": None, "serves_requests_per_s": 71.96}}
        store_recommendation(app.state.database, "rec_endless", endless)
        body = changed(only("rent on demand"), "alternatives/0/recommendation", "rec_endless")
        detail = _refused(client, body, "/alternatives/0/recommendation")
        assert "no rate of requests" in detail
        assert "carries 71.96" in detail

    def test_an_unknown_recommendation(self, client: TestClient) -> None:
        body = changed(only("rent on demand"), "alternatives/0/recommendation", "rec_nothing")
        _refused(client, body, "/alternatives/0/recommendation")

    def test_other_targets(self, client: TestClient) -> None:
        body = changed(COMPARISON, "alternatives/1/recommendation", "rec_faster")
        detail = _refused(client, body, "/alternatives/1/recommendation")
        assert "targets" in detail

    def test_workloads_of_the_request_must_be_those_of_the_recommendation(self, client: TestClient) -> None:
        own = changed(RECOMMENDATION, "workloads/0/traffic/requests_per_s", 5.0)["workloads"]
        assert "traffic" in _refused(client, only("rent on demand", workloads=own), "/alternatives/0/recommendation")

    def test_nobody_says_what_is_served(self, client: TestClient) -> None:
        _refused(client, only("API"), "/workloads")

    def test_workloads_of_the_request_serve_apis_alone(self, client: TestClient) -> None:
        answer = client.post(URL, json=only("API", workloads=RECOMMENDATION["workloads"]))
        assert answer.status_code == 201
        demand = answer.json()["demand"]
        assert demand["input_tokens"] == pytest.approx(1200, rel=0.01)

    def test_a_fleet_that_cannot_serve_is_refused_with_the_planners_reason(self, client: TestClient) -> None:
        body = only("rent on demand")
        body["alternatives"].append(_fleet("small", "hgx-h200-8", 1))
        detail = _refused(client, body, "/alternatives/1/fleet")
        assert detail.startswith("'small' cannot serve the workload: ")
        assert "traffic.requests_per_s of" in detail
        assert "fleet.0.count of" in detail
        assert "limits." not in detail

    def test_lengths_that_cannot_be_are_pointed_at(self, client: TestClient) -> None:
        path = "workloads/0/traffic/prompt_tokens"
        workloads = changed(RECOMMENDATION, path, {"mean": 100, "p95": 9000})["workloads"]
        detail = _refused(client, only("API", workloads=workloads), f"/{path}")
        assert "no lognormal" in detail

    def test_a_recommendation_of_the_planner_is_compared(self, client: TestClient) -> None:
        limits = {"providers": ["aws"], "devices": ["h100-sxm"], "regions": ["us-east-1"]}
        made = client.post("/v1/recommendations", json=RECOMMENDATION | {"limits": limits}).json()
        assert made["outcome"] == "optimal"
        rent = client.post(
            URL, json=changed(only("rent on demand"), "alternatives/0/recommendation", made["id"])
        ).json()
        assert _money(rent["alternatives"][0]["usd_by_month"][1]) == _money(made["totals"]["usd_per_hour"]) * 730

    def test_a_fleet_that_can_serve_is_compared(self, client: TestClient) -> None:
        body = only("rent on demand")
        body["alternatives"].append(_fleet("enough", "hgx-h200-8", 4))
        answer = client.post(URL, json=body)
        assert answer.status_code == 201, answer.text
        assert answer.json()["alternatives"][1]["parts"][0]["devices"] == 32

    def test_a_fleet_may_have_more_to_spare_than_demand_may_grow(self, client: TestClient) -> None:
        """It was refused for carrying 1e10 times the demand, which nobody had stated."""
        (workload,) = changed(RECOMMENDATION, "workloads/0/traffic/requests_per_s", 1e-9)["workloads"]
        body = {
            "workloads": [workload],
            "utilisation_fraction": 0.5,
            "alternatives": [_fleet("idle", "hgx-h200-8", 1)],
        }
        answer = client.post(URL, json=body)
        assert answer.status_code == 201, answer.text
        assert answer.json()["alternatives"][0]["parts"][0]["devices"] == 8


def _fleet(name: str, node: str, count: int) -> dict[str, Any]:
    return {"name": name, "fleet": [{"node": node, "count": count}], "acquisition": "purchase"}


class TestBadInput:
    @pytest.mark.parametrize(
        ("path", "value", "pointer"),
        [
            ("horizon_months", 400, "/horizon_months"),
            ("discount_rate_percent", -100, "/discount_rate_percent"),
            ("power_usage_effectiveness", 0.9, "/power_usage_effectiveness"),
            ("utilisation_fraction", 1.5, "/utilisation_fraction"),
            ("utilisation_fraction", 1e-320, "/utilisation_fraction"),
            ("growth_percent_per_month", 60, "/growth_percent_per_month"),
            ("electricity/usd_per_kwh", "-0.09", "/electricity/usd_per_kwh"),
            ("electricity/usd_per_kwh", 0.09, "/electricity/usd_per_kwh"),
            ("electricity/region", "atlantis", "/electricity/region"),
            ("alternatives/2/purchase/residual_fraction", 1.1, "/alternatives/2/purchase/residual_fraction"),
            ("alternatives/2/purchase/usd_per_node", "-1", "/alternatives/2/purchase/usd_per_node"),
            ("alternatives/2/purchase/depreciation_months", 0, "/alternatives/2/purchase/depreciation_months"),
            ("alternatives/3/api/usd_per_million_input_tokens", "-0.6",
             "/alternatives/3/api/usd_per_million_input_tokens"),
            ("alternatives/3/api/usd_per_million_input_tokens", "1000000", "/alternatives/3"),
            ("alternatives/1/name", "buy", "/alternatives/2/name"),
            ("alternatives/1/name", " ", "/alternatives/1/name"),
            ("alternatives/1/acquisition", "borrow", "/alternatives/1/acquisition"),
            ("alternatives/1/acquisition", "lease", "/alternatives/1"),
            ("alternatives/1/lease", {"term_months": 36}, "/alternatives/1"),
            ("alternatives/2/owned", {"age_months": 60}, "/alternatives/2/owned/age_months"),
            ("alternatives/2/owned", {"age_months": 6, "nodes": 3}, "/alternatives/2/owned/nodes"),
            ("alternatives/2/owned", {"age_months": -6}, "/alternatives/2/owned/age_months"),
            ("alternatives/1/owned", {"age_months": 6}, "/alternatives/1"),
            ("alternatives/3/payment_timing", "in_advance", "/alternatives/3"),
            ("alternatives/2/payment_timing", "in_advance", "/alternatives/2"),
            ("alternatives/0/commitment_used_fraction", 0.8, "/alternatives/0/commitment_used_fraction"),
            ("alternatives/1/commitment_used_fraction", 0, "/alternatives/1/commitment_used_fraction"),
            ("alternatives/2/commitment_used_fraction", 0.8, "/alternatives/2"),
            ("currency", {"code": "EUR"}, "/currency/usd_per_unit"),
            ("currency", {"code": "USD", "usd_per_unit": "1.1"}, "/currency"),
            ("alternatives/0/payment", "all_upfront", "/alternatives/0/payment"),
            ("alternatives/0/follows_demand", True, "/alternatives/0/follows_demand"),
            ("currency", {"code": "XXZ", "usd_per_unit": "1"}, "/currency/code"),
            ("currency", {"code": "EUR", "usd_per_unit": "0"}, "/currency/usd_per_unit"),
            ("operator", "baker", "/operator"),
            ("monte_carlo/draws", 10**9, "/monte_carlo/draws"),
            ("alternatives", [], "/alternatives"),
            ("colour", "red", "/colour"),
        ],
    )  # fmt: skip
    def test_is_refused_by_name(self, client: TestClient, path: str, value: Any, pointer: str) -> None:
        assert _refused(client, changed(COMPARISON, path, value), pointer)

    @pytest.mark.parametrize(
        ("changes", "pointer", "said"),
        [
            ({"lease": {"usd_per_node_month": "9000"}}, "/alternatives/0/lease/term_months", "required"),
            ({"lease": {"term_months": 0}}, "/alternatives/0/lease/term_months", "greater than or equal to 1"),
            ({"lease": {"term_months": 36, "usd_per_node_month": "-1"}}, "/alternatives/0/lease/usd_per_node_month", "0"),
            ({"lease": {"term_months": 36, "usd_per_node_month": "9", "implicit_rate_percent": 12}},
             "/alternatives/0/lease", "not both"),
            ({"purchase": {"finance_rate_percent": 8}}, "/alternatives/0/lease", "leave finance_rate_percent"),
            ({"purchase": {"depreciation_months": 60}}, "/alternatives/0/purchase/depreciation_months", "go back"),
            ({"lease": {"term_months": 72, "buyout_usd_per_node": "1"}}, "/alternatives/0/lease/term_months", "shorter"),
            ({"egress_gb_per_month": 5}, "/alternatives/0", "of rented nodes"),
            ({"owned": {"age_months": 5}}, "/alternatives/0", "acquisition purchase"),
        ],
    )  # fmt: skip
    def test_a_lease_that_contradicts_itself(
        self, client: TestClient, changes: dict[str, Any], pointer: str, said: str
    ) -> None:
        body = only("buy", monte_carlo={"draws": 0})
        body["alternatives"][0] |= {"acquisition": "lease", "lease": {"term_months": 36}, "purchase": {}} | changes
        assert said in _refused(client, body, pointer)

    def test_an_alternative_is_one_thing(self, client: TestClient) -> None:
        body = only("rent on demand")
        body["alternatives"][0]["api"] = COMPARISON["alternatives"][3]["api"]
        assert "exactly one" in _refused(client, body, "/alternatives/0")

    def test_an_unknown_node(self, client: TestClient) -> None:
        body = only("API", workloads=RECOMMENDATION["workloads"])
        body["alternatives"].append(
            {"name": "own", "fleet": [{"node": "hgx-h300-8", "count": 2}], "acquisition": "purchase"}
        )
        assert "hgx-h200-8" in _refused(client, body, "/alternatives/1/fleet/0/node")

    def test_a_price_nobody_states_is_missing_not_guessed(self, client: TestClient) -> None:
        body = only("API", workloads=RECOMMENDATION["workloads"])
        body["alternatives"].append(
            {"name": "TPU", "fleet": [{"node": "gcp-ct6e-standard-8t", "count": 2}], "acquisition": "purchase"}
        )
        assert "figure_missing" in _refused(client, body, "/alternatives/1/fleet/0")

    def test_an_offer_of_another_node(self, client: TestClient) -> None:
        body = only("API", workloads=RECOMMENDATION["workloads"])
        body["alternatives"].append(
            {"name": "own", "acquisition": "on_demand", "fleet": [{"node": "hgx-h200-8", "count": 2, "offer": OFFER}]}
        )
        assert NODE in _refused(client, body, "/alternatives/1/fleet/0/offer")


class TestSite:
    """The plan's two 8 × H100 nodes draw 10.96 kW each."""

    @pytest.mark.parametrize(
        ("site", "reason"),
        [
            ({"cooling_kw": 20}, "room_power: needs 21920 W, 20000 W available"),
            ({"feed_kw": 25}, "room_power: needs 21920 W, 19230.8 W available"),  # 25 kW / 1.3
            ({"racks": 1, "rack_kw": 15}, "racks: needs 2 racks, 1 racks available"),
            ({"racks": 1, "nodes_per_rack": 1}, "racks: needs 2 racks, 1 racks available"),
            ({"circuit_v": 208, "circuit_a": 30, "circuit_phases": 3}, "circuit: needs 10960 W, 8646.4 W available"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, client: TestClient, site: dict[str, Any], reason: str) -> None:
        assert reason in _refused(client, only("buy", site=site), "/alternatives/0")

    def test_what_fits_is_compared_and_rented_machines_stand_elsewhere(self, client: TestClient) -> None:
        site = {"cooling_kw": 25, "feed_kw": 30, "racks": 2, "rack_kw": 12}
        assert client.post(URL, json=only("buy", site=site)).status_code == 201
        assert client.post(URL, json=only("rent on demand", site={"cooling_kw": 1})).status_code == 201

    def test_half_a_circuit_is_refused(self, client: TestClient) -> None:
        _refused(client, only("buy", site={"circuit_v": 208}), "/site")


class TestGet:
    def test_gives_back_what_was_answered(self, client: TestClient) -> None:
        made = client.post(URL, json=COMPARISON).json()
        assert client.get(made["link"]).json() == made
        assert len(made["id"]) == len("tco_") + 32

    def test_csv_is_tidy_and_any_sum_of_it_is_a_sum_of_costs(self, client: TestClient) -> None:
        made = client.post(URL, json=COMPARISON).json()
        answer = client.get(made["link"], params={"format": "csv"})
        assert answer.headers["content-type"].startswith("text/csv")
        assert "attachment" in answer.headers["content-disposition"]
        rows = list(csv.DictReader(io.StringIO(answer.text)))
        assert list(rows[0]) == ["alternative", "kind", "line", "month", "usd", "discount_factor"]
        assert sum(Decimal(row["usd"]) for row in rows) == sum(_money(a["total_usd"]) for a in made["alternatives"])
        for alternative in made["alternatives"]:
            own = [row for row in rows if row["alternative"] == alternative["name"]]
            assert sum(Decimal(row["usd"]) for row in own) == _money(alternative["total_usd"])
            worth = sum(Decimal(row["usd"]) * Decimal(row["discount_factor"]) for row in own)
            assert worth == pytest.approx(_money(alternative["npv_usd"]), abs=Decimal("0.01"))
            assert {int(row["month"]) for row in own} == set(range(37))

    @pytest.mark.parametrize("before", ["", " ", "\n", "\r\n", "\t", "\u00a0", "\u200b", "\ufeff", "\u3000 "])
    @pytest.mark.parametrize("sign", ["=", "+", "-", "@", "＝", "＋", "－", "＠"])
    def test_no_cell_is_a_formula(self, client: TestClient, before: str, sign: str) -> None:
        body = only("API", workloads=RECOMMENDATION["workloads"], monte_carlo={"draws": 0})
        body["alternatives"][0]["name"] = f"{before}{sign}HYPERLINK(1)"
        made = client.post(URL, json=body).json()
        text = client.get(made["link"], params={"format": "csv"}).text
        names = {row["alternative"] for row in csv.DictReader(io.StringIO(text, newline=""))}
        assert names == {f"'{before}{sign}HYPERLINK(1)"}

    def test_workbook_opens_and_holds_the_figures(self, client: TestClient) -> None:
        made = client.post(URL, json=COMPARISON).json()
        answer = client.get(made["link"], params={"format": "xlsx"})
        book = zipfile.ZipFile(io.BytesIO(answer.content))
        names = [name for name in book.namelist() if name.startswith("xl/charts/chart")]
        assert len(names) == 3  # cumulative cost, tornado, draws
        summary = Workbook(answer.content)
        texts = [summary.text("summary", 2, row) for row in range(1, 12)]
        assert made["summary"] in texts
        assert made["cheapest"]["name"] in texts
        notes = {summary.text("notes", 2, row) for row in range(2, 60)}
        assert {note for a in made["alternatives"] for note in a["notes"]} <= notes

    def test_one_stored_by_an_earlier_version_says_so(self, client: TestClient, app: FastAPI) -> None:
        made = client.post(URL, json=COMPARISON).json()
        with app.state.database.writing() as session:
            row = session.get(ComparisonTable, made["id"])
            row.result = {**row.result, "cheapest": "buy"}
            session.add(row)
        answer = client.get(made["link"])
        assert answer.status_code == 404
        assert "was answered by version" in answer.json()["detail"]

    def test_unknown(self, client: TestClient) -> None:
        assert client.get(f"{URL}/tco_{'0' * 32}").status_code == 404
        assert client.get(f"{URL}/x", params={"format": "pdf"}).status_code == 422


class TestRoles:
    @pytest.mark.parametrize(("role", "status"), [("reader", 201), ("agent", 201), ("editor", 201), (None, 401)])
    def test_any_role_compares_and_reads(
        self, client: TestClient, with_role: Callable[[str], dict[str, str]], role: str | None, status: int
    ) -> None:
        editor = with_role("editor")
        headers = with_role(role) if role else {}
        assert client.post(URL, json=COMPARISON, headers=headers).status_code == status
        link = client.post(URL, json=COMPARISON, headers=editor).json()["link"]
        assert client.get(link, headers=headers).status_code == (200 if role else 401)
