"""Buying, discounting and regions in POST /v1/fleets."""

from decimal import Decimal
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.service.bodies import changed
from tests.service.test_fleets import FLEET, posted

SITE: dict[str, Any] = {
    "region": "frankfurt",
    "machines": [{"node": "hgx-h100-8", "purchase": {"usd_per_node": "200000"}}],
    "purchase_months": [0],
    "electricity": {"region": "de"},
}
OWNING = FLEET | {
    "horizon": {"months": 36, "periods_per_month": 2},
    "limits": {"providers": ["aws"], "regions": ["us-east-1", "eu-west-2", "frankfurt"], "devices": ["h100-sxm"]},
    "own": [SITE],
    "time_limit_s": 30,
}
CENT = Decimal("0.01")


def total(amounts: dict[str, str]) -> Decimal:
    return sum((Decimal(amount) for amount in amounts.values()), Decimal(0))


class TestOwning:
    def test_costs_what_the_comparison_of_costs_says(self, client: TestClient) -> None:
        answer = posted(client, OWNING)
        (bought,) = (c for c in answer["commitments"] if c["commitment"] == "purchase")
        assert (bought["offer"], bought["provider"], bought["region"]) == (
            "own:frankfurt:hgx-h100-8",
            "own",
            "frankfurt",
        )
        assert total(bought["lines"]) == pytest.approx(Decimal(bought["usd"]), abs=CENT)
        assert Decimal(answer["totals"]["purchase_usd"]) == pytest.approx(Decimal(bought["usd"]), abs=CENT)
        assert Decimal(bought["lines"]["residual"]) < 0
        asked = {
            "horizon_months": 36, "utilisation_fraction": 1.0, "electricity": {"region": "de"},
            "workloads": [{**{k: v for k, v in FLEET["workloads"][0].items() if k != "demand"},
                           "traffic": FLEET["workloads"][0]["traffic"] | {"requests_per_s": 1.0}}],
            "alternatives": [{"name": "buy", "fleet": [{"node": "hgx-h100-8", "count": 1}], "acquisition": "purchase",
                              "purchase": {"usd_per_node": "200000"}}],
        }  # fmt: skip
        compared = client.post("/v1/tco/comparisons", json=asked).json()["alternatives"][0]
        nodes = bought["nodes"]
        assert Decimal(bought["usd"]) == pytest.approx(nodes * Decimal(compared["total_usd"]), abs=CENT)
        assert Decimal(bought["present_usd"]) == pytest.approx(nodes * Decimal(compared["npv_usd"]), abs=CENT)
        (used,) = answer["own"]
        assert any(d["input"] == "electricity_usd_per_kwh" and d["origins"] for d in used["defaults"])
        assert used["machines"][0]["defaults"]

    def test_what_is_minimised_is_present_value(self, client: TestClient) -> None:
        answer = posted(client, OWNING)
        totals = answer["totals"]
        assert answer["solve"]["usd"] == totals["present_usd"]
        assert Decimal(answer["solve"]["bound_usd"]) <= Decimal(totals["present_usd"]) < Decimal(totals["usd"])
        assert Decimal(totals["on_demand_present_usd"]) < Decimal(totals["on_demand_usd"])
        assert "cost of capital of the operator enterprise" in answer["discount"]["source"]
        hourly = sum(
            Decimal(p["usd_per_hour"]) * Decimal(p["hours"]) / Decimal(1 + answer["discount"]["percent_per_year"] / 100)
            ** (Decimal(p["month"] + 1) / 12)
            for p in answer["periods"]
        )  # fmt: skip
        committed = sum(Decimal(c["present_usd"]) for c in answer["commitments"])
        assert hourly + committed == pytest.approx(Decimal(totals["present_usd"]), rel=Decimal("1e-6"))

    def test_at_a_stated_rate_without_owning(self, client: TestClient) -> None:
        body = changed(
            changed(FLEET, "horizon", {"months": 36, "periods_per_month": 1}), "discount_rate_percent_per_year", 8
        )
        answer = posted(client, body)
        assert answer["discount"] == {"percent_per_year": 8.0, "source": "the request"}
        assert Decimal(answer["totals"]["present_usd"]) < Decimal(answer["totals"]["usd"])
        undiscounted = posted(client, changed(body, "discount_rate_percent_per_year", 0))
        assert undiscounted["totals"]["present_usd"] == undiscounted["totals"]["usd"]

    def test_a_room_holds_no_more_than_its_power(self, client: TestClient) -> None:
        steady = changed(OWNING, "workloads/0/demand", {"kind": "profile", "weekday_requests_per_s": [30.0] * 24})
        roomy = posted(client, steady)
        (bought,) = (c for c in roomy["commitments"] if c["commitment"] == "purchase")
        peak = roomy["own"][0]["machines"][0]["peak_kw_per_node"]
        assert bought["nodes"] > 1
        tight = posted(client, changed(steady, "own/0/site", {"cooling_kw": 1.5 * peak}))
        assert [c["nodes"] for c in tight["commitments"] if c["commitment"] == "purchase"] == [1]

    def test_a_machine_without_a_price(self, client: TestClient) -> None:
        named = changed(OWNING, "own/0/machines", [{"node": "hgx-h100-4"}])
        refused = client.post("/v1/fleets", json=named)
        assert refused.status_code == 422
        (error,) = refused.json()["errors"]
        assert error["pointer"] == "/own/0/machines/0/node"
        assert "figure_missing: purchase_usd_per_node" in error["detail"]
        answer = posted(client, changed(OWNING, "own/0/machines", None))
        assert any("hgx-h100-4" in one["why"] and "figure_missing" in one["why"] for one in answer["left_out"])
        assert {m["node"] for m in answer["own"][0]["machines"]} == {"hgx-h100-8"}


class TestRegions:
    def test_a_pinned_workload_stays_where_it_is_pinned(self, client: TestClient) -> None:
        answer = posted(client, changed(OWNING, "workloads/0/regions", {"only": ["eu-west-2", "frankfurt"]}))
        assert {n["region"] for p in answer["periods"] for n in p["nodes"]} <= {"eu-west-2", "frankfurt"}
        hourly = changed(changed(OWNING, "own", []), "limits/regions", ["us-east-1", "eu-west-2"])
        by_the_hour = posted(client, changed(hourly, "workloads/0/regions", {"only": ["eu-west-2"]}))
        assert {n["region"] for p in by_the_hour["periods"] for n in p["nodes"]} == {"eu-west-2"}
        assert Decimal(by_the_hour["totals"]["usd"]) > 0

    def test_round_trips_count_towards_the_first_token(self, client: TestClient) -> None:
        far = changed(OWNING, "workloads/0/network_ms_by_region", {"us-east-1": 900, "eu-west-2": 20, "frankfurt": 999})
        answer = posted(client, far)
        assert {n["region"] for p in answer["periods"] for n in p["nodes"]} == {"eu-west-2"}
        assert {d["network_ms"] for d in answer["deployments"]} == {20.0}

    def test_limits_that_contradict_a_workload_are_named(self, client: TestClient) -> None:
        body = changed(changed(OWNING, "own", []), "limits/regions", ["us-east-1"])
        other = OWNING["workloads"][0] | {"name": "records", "regions": {"only": ["eu-west-2"]}}
        answer = posted(client, changed(body, "workloads", [OWNING["workloads"][0], other]))
        assert answer["outcome"] == "infeasible"
        (reason,) = answer["reasons"]
        assert reason.startswith("records: ")
        assert "limits.regions" in reason


@pytest.mark.parametrize(
    ("path", "value", "pointer", "says"),
    [
        ("own/0/electricity", {"usd_per_kwh": "100"}, "/own/0/electricity/usd_per_kwh", "at most 10 USD/kWh"),
        ("discount_rate_percent_per_year", 1_000, "/discount_rate_percent_per_year", "100"),
        ("discount_rate_percent_per_year", -1, "/discount_rate_percent_per_year", "0"),
        ("own/0/machines", [{"node": "hgx-h100-9"}], "/own/0/machines/0/node", "did you mean"),
        ("own/0/machines", [{"node": "hgx-h200-8"}], "/own/0/machines/0/node", "limits.devices leaves out"),
        ("own/0/electricity", {"region": "dee"}, "/own/0/electricity/region", "electricity region"),
        ("own/0/region", "berlin", "/own/0/region", "limits.regions leaves out 'berlin'"),
        ("own/0/operator", "bank", "/own/0/operator", "unknown 'bank'"),
        ("own/0/purchase_months", [0, 36], "/own/0/purchase_months/1", "not one of the 36"),
        ("own/0/site", {"circuit_v": 120, "circuit_a": 15}, "/own/0/machines/0/node", "does not fit: circuit"),
        ("own", [SITE, SITE], "", "two sites in the region"),
        ("limits/commitments", ["on_demand"], "", "leaves out purchase"),
        ("workloads/0/regions", {"only": ["mars"]}, "/workloads/0/regions/only/0", "no region 'mars'"),
        ("workloads/0/network_ms_by_region", {"us-east-1": 5, "eu-west-2": 5}, "/workloads/0/network_ms_by_region",
         "no figure for frankfurt"),
    ],
)  # fmt: skip
def test_mistakes_are_pointed_at(client: TestClient, path: str, value: Any, pointer: str, says: str) -> None:
    response = client.post("/v1/fleets", json=changed(OWNING, path, value))
    assert response.status_code == 422, response.text
    errors = response.json()["errors"]
    assert any(e["pointer"].startswith(pointer) and says in e["detail"] for e in errors), errors
