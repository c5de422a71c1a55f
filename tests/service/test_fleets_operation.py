"""Rules of operation of POST /v1/fleets: by default, lifted, in the answer, and on the command line."""

import io
from decimal import Decimal
from typing import Any

import pytest
from fastapi.testclient import TestClient
from rich.console import Console

from service.cli.fleet_view import show_fleet
from service.fleets.present import echoed
from tests.service.bodies import changed
from tests.service.test_fleets import FLEET, posted

SMALL = changed(FLEET, "horizon", {"months": 2, "periods_per_month": 12})
SMALL = changed(SMALL, "limits/commitments", ["on_demand"])
RULES = {"max_configurations": 1, "min_up_hours": 6, "max_change_percent_per_hour": 20}
COLUMNS = 80


KNOWN: dict[str, dict[str, Any]] = {}
"""The one answer that most tests look at, planned once."""


@pytest.fixture
def ruled(client: TestClient) -> dict[str, Any]:
    if not KNOWN:
        KNOWN["ruled"] = posted(client, changed(SMALL, "limits/operation", RULES))
    return KNOWN["ruled"]


def nodes_by_hour(answer: dict[str, Any]) -> dict[str, list[list[int]]]:
    """Nodes taken by the hour in each hour of each month, by offer."""
    hourly = [{n["offer"]: n["nodes"] for n in p["nodes"] if n["commitment"] == "on_demand"} for p in answer["periods"]]
    offers = sorted({offer for one in hourly for offer in one})
    return {offer: [[hourly[t].get(offer, 0) for t in month] for month in answer["calendar"]] for offer in offers}


class TestAnswer:
    def test_keeps_to_the_rules(self, ruled: dict[str, Any]) -> None:
        """Recomputed from the answer alone: configurations, how long every level of nodes is on, replicas that change."""
        assert (
            len({(d["workload"], d["id"]) for d in ruled["deployments"]}) == ruled["operation"]["configurations"] == 1
        )
        assert [len(month) for month in ruled["calendar"]] == [168, 168]
        comes_and_goes = 0
        for months in nodes_by_hour(ruled).values():
            for hours in months:
                for level in range(1, max(hours) + 1):
                    on = [n >= level for n in hours]
                    starts = [h for h in range(168) if on[h] and not on[h - 1]]
                    comes_and_goes += len(starts)
                    assert all(all(on[(h + k) % 168] for k in range(6)) for h in starts)
        assert comes_and_goes > 0
        (rate,) = (d["requests_per_s"] for d in ruled["deployments"])
        most = max(1, int(0.2 * ruled["demand"]["peak_requests_per_s"]["chat"] / rate + 1e-9))
        replicas = [sum(r["replicas"] for r in period["replicas"]) for period in ruled["periods"]]
        for month in ruled["calendar"]:
            assert all(abs(replicas[b] - replicas[month[h - 1]]) <= most for h, b in enumerate(month))

    def test_says_what_stock_it_counts_on(self, ruled: dict[str, Any]) -> None:
        by_hour = nodes_by_hour(ruled)
        assert {one["offer"] for one in ruled["operation"]["stock"]} == set(by_hour)
        for one in ruled["operation"]["stock"]:
            months = by_hour[one["offer"]]
            assert one["most_nodes"] == max(max(month) for month in months)
            assert one["most_started"] == max(month[h] - month[h - 1] for month in months for h in range(168))
            assert one["assumed_nodes"] == 1_000
        spent = sum(Decimal(one["usd"]) for one in ruled["operation"]["stock"])
        assert spent == pytest.approx(Decimal(ruled["totals"]["on_demand_part_usd"]), abs=Decimal("0.01"))
        assert ruled["operation"]["least_hours_up"] >= 6

    def test_says_what_each_rule_costs(self, client: TestClient, ruled: dict[str, Any]) -> None:
        paid = Decimal(ruled["solve"]["usd"])
        freedoms = {one["rule"]: one for one in ruled["operation"]["freedoms"]}
        assert set(freedoms) in ({None}, {None, *RULES})
        for one in freedoms.values():
            assert 0 <= Decimal(one["saves_usd"]) <= Decimal(one["saves_at_most_usd"])
            assert Decimal(one["usd"]) + Decimal(one["saves_usd"]) == pytest.approx(paid, abs=Decimal("0.001"))
        free = posted(client, changed(SMALL, "limits/operation", "any"))
        assert free["operation"]["freedoms"] == []
        assert Decimal(free["solve"]["usd"]) == pytest.approx(Decimal(freedoms[None]["usd"]), rel=Decimal("0.02"))
        assert Decimal(free["solve"]["bound_usd"]) <= paid

    def test_defaults_are_in_the_request_that_is_echoed(self, client: TestClient) -> None:
        answer = posted(client, changed(SMALL, "horizon/months", 1))
        assert answer["request"]["limits"]["operation"] == {
            "max_configurations": 2, "min_up_hours": 4, "max_change_percent_per_hour": 25.0,
        }  # fmt: skip
        assert answer["operation"]["configurations"] <= 2
        assert answer["operation"]["least_hours_up"] is None or answer["operation"]["least_hours_up"] >= 4

    def test_a_request_stored_before_there_were_rules_says_that_it_had_none(self, ruled: dict[str, Any]) -> None:
        request = ruled["request"]
        before = request | {"limits": {k: v for k, v in request["limits"].items() if k != "operation"}}
        assert echoed(before)["limits"]["operation"] == "any"
        assert echoed(request)["limits"]["operation"] == RULES

    def test_a_rule_in_the_way_is_named(self, client: TestClient) -> None:
        """One node of each of two machines serves the peak together with the other only."""
        limits = {
            "providers": ["nebius"], "regions": ["eu-north1"], "commitments": ["on_demand"],
            "devices": ["h100-sxm", "h200-sxm"], "max_nodes_per_offer": 1, "operation": "any",
        }  # fmt: skip
        body = changed(changed(SMALL, "limits", limits), "horizon", {"months": 1, "periods_per_month": 4})
        assert len({d["device"] for d in posted(client, body)["deployments"]}) == 2
        refused = posted(client, changed(body, "limits/operation", {"max_configurations": 1}))
        assert refused["outcome"] == "infeasible"
        assert any("limits.operation.max_configurations" in reason for reason in refused["reasons"])
        assert refused["operation"] is None
        allowed = posted(client, changed(body, "limits/operation", {"max_configurations": 2}))
        assert allowed["operation"]["stock"][0]["assumed_nodes"] == 1


class TestBadInput:
    @pytest.mark.parametrize(
        ("value", "pointer"),
        [
            ("none", "/limits/operation"),
            ({"max_configurations": 0}, "/limits/operation"),
            ({"min_up_hours": 169}, "/limits/operation"),
            ({"max_change_percent_per_hour": 0}, "/limits/operation"),
            ({"min_hours_up": 3}, "/limits/operation"),
        ],
    )
    def test_is_pointed_at(self, client: TestClient, value: Any, pointer: str) -> None:
        response = client.post("/v1/fleets", json=changed(SMALL, "limits/operation", value))
        assert response.status_code == 422
        assert all(error["pointer"].startswith(pointer) for error in response.json()["errors"])


class TestCommandLine:
    def test_the_table_fits_eighty_columns(self, ruled: dict[str, Any]) -> None:
        console = Console(width=COLUMNS, record=True, force_terminal=False, file=io.StringIO())
        show_fleet(ruled, console)
        said = console.export_text()
        tables = [line for line in said.splitlines() if line[:1] in "┏┃┡│└├"]
        assert tables
        assert max(len(line) for line in tables) <= COLUMNS
        assert "what to buy, what to reserve, what to switch on" in said
        for one in ruled["operation"]["stock"]:
            assert one["offer"] in said
        assert "weekday" in said
        assert "without rules of operation" in said
