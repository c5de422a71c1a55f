"""Fronts of cost against a target or power over HTTP: each point a plan that a request of its own would get."""

import itertools
import math
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.service.bodies import RECOMMENDATION, changed
from tests.service.test_why import asked, recommended

EIGHT_BITS_TOO = {"weights": ["bf16", "fp8"], "kv_cache": ["bf16", "fp8"]}
SELLERS = ["aws", "hyperstack", "lambda", "nebius", "runpod", "verda"]
SMALL = changed(
    changed(
        RECOMMENDATION, "limits", {"devices": ["h100-sxm", "h200-sxm", "l40s"], "providers": SELLERS, "sourcing": "any"}
    ),
    "workloads/0/precision",
    EIGHT_BITS_TOO,
) | {"alternatives": 0}


def check_front(front: dict[str, Any]) -> None:
    """No point dominates another; what was removed is dominated; stretches follow one another."""
    pairs = [(p["value"], float(p["solved"]["usd_per_hour"])) for p in front["points"]]
    assert pairs == sorted(pairs)
    prices = [price for _, price in pairs]
    assert all(tighter > looser for tighter, looser in itertools.pairwise(prices))
    for point in front["points"]:
        assert point["value"] <= point["limit"] * (1 + 1e-5)
        assert point["solved"]["outcome"] in ("optimal", "feasible")
        assert point["solved"]["gap_fraction"] is not None
    price_of = dict(pairs)
    for removed in front["dominated"]:
        assert removed["by"] <= removed["value"] + 1e-6
        assert price_of[removed["by"]] <= float(removed["usd_per_hour"])
    ends = [(s["above"], s["up_to"]) for s in front["stretches"]]
    assert ends == sorted(ends)
    assert all(above < up_to for above, up_to in ends)


class TestTargets:
    def test_an_automatic_front_runs_from_the_tightest_plan_to_the_cheapest(self, client: TestClient) -> None:
        rec = recommended(client, SMALL)
        own = float(rec["totals"]["usd_per_hour"])
        front = asked(client, rec, "pareto", {"against": "targets.tpot_ms.p95", "time_limit_s": 60})
        check_front(front)
        points = front["points"]
        assert front["workload"] == "chat"
        assert front["reaches_cheapest"]
        assert len(points) >= 4
        # The recommendation's own target is among those tried, so the front holds nothing dearer at it.
        within = [p for p in points if p["value"] <= 50]
        assert float(within[-1]["solved"]["usd_per_hour"]) == pytest.approx(own, rel=1e-6)
        free = recommended(client, changed(SMALL, "workloads/0/targets", {"ttft_ms": {"p95": 1000}}))
        cheapest = float(points[-1]["solved"]["usd_per_hour"])
        assert cheapest == pytest.approx(float(free["totals"]["usd_per_hour"]), rel=0.03)
        assert 0 < front["none_below"] < points[0]["value"]
        for point in points:
            assert 0 < point["predicted"] <= point["value"] * 1.05
        tightest = recommended(client, changed(SMALL, "workloads/0/targets/tpot_ms/p95", points[1]["value"] * 1.0001))
        assert float(tightest["totals"]["usd_per_hour"]) == pytest.approx(
            float(points[1]["solved"]["usd_per_hour"]), rel=0.03
        )

    def test_more_points_never_lose_a_better_one(self, client: TestClient) -> None:
        rec = recommended(client, SMALL)
        few = asked(client, rec, "pareto", {"against": "targets.ttft_ms.p95", "points": [1, 600, 2000]})
        more = asked(
            client, rec, "pareto", {"against": "targets.ttft_ms.p95", "points": [1, 600, 900, 1400, 2000, 2000]}
        )
        check_front(few)
        check_front(more)
        assert [u["limit"] for u in few["unreached"]] == [1]
        assert few["none_below"] == 1
        assert not few["reaches_cheapest"]
        assert not few["complete"]
        for point in few["points"]:
            assert any(
                other["value"] <= point["value"]
                and float(other["solved"]["usd_per_hour"]) <= float(point["solved"]["usd_per_hour"])
                for other in more["points"]
            )


class TestPower:
    def test_from_the_least_power_to_the_cheapest_plan(self, client: TestClient) -> None:
        rec = recommended(client, SMALL)
        own = float(rec["totals"]["usd_per_hour"])
        front = asked(client, rec, "pareto", {"against": "power_kw", "time_limit_s": 60})
        check_front(front)
        assert front["workload"] is None
        unmetered = {one["node"] for one in front["left_out"]}
        assert unmetered
        assert {one["figure"] for one in front["left_out"]} <= {"host_power_w", "power_limit_w"}
        assert not unmetered & {line["node"] for p in front["points"] for line in p["solved"]["plan"]}
        if not unmetered & {line["node"] for line in rec["plan"]}:
            assert float(front["points"][-1]["solved"]["usd_per_hour"]) == pytest.approx(own, rel=1e-6)
        below = {"against": "power_kw", "points": [front["none_below"] * 0.98], "time_limit_s": 60}
        least = asked(client, rec, "pareto", below)
        assert least["points"] == []
        assert least["unreached"][0]["outcome"] == "infeasible"
        middle = front["points"][len(front["points"]) // 2]
        capped = recommended(client, changed(SMALL, "limits/max_power_kw", middle["limit"]))
        assert float(capped["totals"]["usd_per_hour"]) == pytest.approx(
            float(middle["solved"]["usd_per_hour"]), rel=0.03
        )

    def test_where_nobody_publishes_the_power_the_front_is_empty_and_says_so(self, client: TestClient) -> None:
        patient = changed(SMALL, "workloads/0/targets", {"ttft_ms": {"p95": 10_000}, "tpot_ms": {"p95": 500}})
        rec = recommended(client, changed(patient, "limits/devices", ["a100-sxm-80"]))
        front = asked(client, rec, "pareto", {"against": "power_kw"})
        assert front["points"] == []
        assert not front["complete"]
        assert {line["node"] for line in rec["plan"]} <= {one["node"] for one in front["left_out"]}
        assert [(u["limit"], u["outcome"]) for u in front["unreached"]] == [(None, "infeasible")]


class TestCarbon:
    def test_emissions_are_power_times_the_grids_of_the_regions_used(self, client: TestClient) -> None:
        rec = recommended(client, SMALL)
        front = asked(client, rec, "pareto", {"against": "carbon_kg_co2e_per_hour", "time_limit_s": 60})
        check_front(front)
        assert len(front["points"]) >= 2
        grids = {(g["provider"], g["region"]): g for g in front["grids"]}
        on_one_grid = 0
        for point in front["points"]:
            places = [(line["provider"], line["region"]) for line in point["solved"]["plan"]]
            assert set(places) <= set(grids)
            factors = [grids[p]["grid_kg_co2e_per_kwh"] * grids[p]["power_usage_effectiveness"] for p in places]
            assert min(factors) > 0
            if len(set(factors)) == 1:
                # One grid: what the plan emits is a power, and that a plausible one for its devices.
                kilowatts = point["value"] / factors[0]
                devices = sum(
                    line["replicas"]
                    * math.prod(line["layout"][d] for d in ("tensor_parallel", "pipeline_parallel", "data_parallel"))
                    for line in point["solved"]["plan"]
                )
                assert 0.2 < kilowatts / devices < 3.0
                on_one_grid += 1
        assert on_one_grid > 0
        assert all(grid["sources"] for grid in front["grids"])
        left_out = front["left_out"]
        assert any(one["figure"] == "grid_kg_co2e_per_kwh" and one["region"] == "global" for one in left_out)
        assert not {(o["provider"], o["region"]) for o in left_out if o["region"]} & set(grids)

    def test_the_cleanest_plan_is_no_dirtier_on_a_grid_that_the_request_cleans(self, client: TestClient) -> None:
        rec = recommended(client, SMALL)
        known = asked(client, rec, "pareto", {"against": "carbon_kg_co2e_per_hour", "time_limit_s": 60})
        stated = {
            "against": "carbon_kg_co2e_per_hour",
            "grid_kg_co2e_per_kwh_by_region": {"us": 0.001},
            "time_limit_s": 60,
        }
        cleaned = asked(client, rec, "pareto", stated)
        check_front(cleaned)
        assert cleaned["points"][0]["value"] < known["points"][0]["value"]
        of_us = [g for g in cleaned["grids"] if g["region"] == "us"]
        assert of_us
        assert all(g["grid"] is None and "grid_kg_co2e_per_kwh: the request" in g["sources"] for g in of_us)

    def test_a_limit_nothing_keeps(self, client: TestClient) -> None:
        rec = recommended(client, SMALL)
        front = asked(client, rec, "pareto", {"against": "carbon_kg_co2e_per_hour", "points": [1e-6, 1e6]})
        assert [u["limit"] for u in front["unreached"]] == [1e-6]
        assert front["unreached"][0]["outcome"] == "infeasible"
        assert len(front["points"]) == 1


def test_bad_questions(client: TestClient) -> None:
    rec = recommended(client, SMALL)
    for body, pointer in (
        ({}, "/against"),
        ({"against": "targets.e2e_ms.p95"}, "/against"),
        ({"against": "water"}, "/against"),
        ({"against": "carbon_kg_co2e_per_hour", "workload": "chat"}, "/workload"),
        (
            {"against": "carbon_kg_co2e_per_hour", "grid_kg_co2e_per_kwh_by_region": {"FIN": -1}},
            "/grid_kg_co2e_per_kwh_by_region/FIN",
        ),
        (
            {"against": "carbon_kg_co2e_per_hour", "grid_kg_co2e_per_kwh_by_region": {"FIM": 0.1}},
            "/grid_kg_co2e_per_kwh_by_region/FIM",
        ),
        ({"against": "power_kw", "grid_kg_co2e_per_kwh_by_region": {"FIN": 0.1}}, "/grid_kg_co2e_per_kwh_by_region"),
        ({"against": "power_kw", "points": []}, "/points"),
        ({"against": "power_kw", "points": [1.0] * 21}, "/points"),
        ({"against": "power_kw", "points": [0]}, "/points/0"),
        ({"against": "power_kw", "points": ["NaN"]}, "/points/0"),
        ({"against": "power_kw", "workload": "chat"}, "/workload"),
        ({"against": "targets.tpot_ms.p95", "workload": "chit"}, "/workload"),
        ({"against": "power_kw", "steps": 3}, "/steps"),
    ):
        response = client.post(f"/v1/recommendations/{rec['id']}/pareto", json=body)
        assert response.status_code == 422, body
        assert response.json()["errors"][0]["pointer"] == pointer, response.text


def test_nothing_to_trade(client: TestClient) -> None:
    body = {"against": "power_kw"}
    assert client.post("/v1/recommendations/rec_none/pareto", json=body).status_code == 404
    one_device = changed(SMALL, "limits/devices", ["h200-sxm"])
    hopeless = recommended(client, changed(one_device, "workloads/0/targets", {"tpot_ms": {"p95": 0.01}}))
    assert client.post(f"/v1/recommendations/{hopeless['id']}/pareto", json=body).status_code == 409
    power = recommended(client, changed(one_device, "objective", "power"))
    refused = client.post(f"/v1/recommendations/{power['id']}/pareto", json=body)
    assert refused.status_code == 422
    assert "objective is power" in refused.json()["detail"]
    two = changed(one_device, "workloads", [{**SMALL["workloads"][0], "name": name} for name in ("a", "b")])
    several = recommended(client, two)
    unnamed = client.post(f"/v1/recommendations/{several['id']}/pareto", json={"against": "targets.tpot_ms.p95"})
    assert unnamed.status_code == 422
    assert unnamed.json()["errors"][0]["pointer"] == "/workload"
