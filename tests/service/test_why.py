"""Questions about a stored recommendation over HTTP: answers compared with recommendations of their own."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.service.bodies import RECOMMENDATION, changed

FEW_DEVICES = ["h100-sxm", "h200-sxm", "l40s", "a100-sxm-80", "mi300x"]
SMALL = changed(changed(RECOMMENDATION, "limits", {"devices": FEW_DEVICES}), "alternatives", 0)


def recommended(client: TestClient, body: dict[str, Any] = SMALL) -> dict[str, Any]:
    response = client.post("/v1/recommendations", json=body)
    assert response.status_code == 201, response.text
    answer: dict[str, Any] = response.json()
    return answer


def asked(client: TestClient, rec: dict[str, Any], question: str, body: dict[str, Any]) -> dict[str, Any]:
    response = client.post(f"/v1/recommendations/{rec['id']}/{question}", json=body)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


class TestWhyNot:
    def test_each_thing_is_priced_or_refused_with_reasons(self, client: TestClient) -> None:
        rec = recommended(client)
        used = {line["device"] for line in rec["plan"]}
        other = next(d for d in ("h100-sxm", "h200-sxm", "mi300x", "a100-sxm-80") if d not in used)
        body = {
            "devices": [*sorted(used), other, "l4"],
            "precisions": [{"weights": "int4"}],
            "layouts": [{"tensor_parallel": 1, "pipeline_parallel": 1}],
            "time_limit_s": 60,
        }
        answer = asked(client, rec, "why-not", body)
        assert answer["base"]["usd_per_hour"] == rec["totals"]["usd_per_hour"]
        assert answer["base"]["changed"] == []
        by_name = {a["name"]: a for a in answer["answers"]}
        for device in used:
            assert by_name[device]["in_plan"]
            assert by_name[device]["forced_in"]["says"] == "no measurable change"
        forced = by_name[other]
        assert not forced["in_plan"]
        assert forced["excluded_by"] == []
        assert forced["forced_in"]["outcome"] == "optimal"
        assert float(forced["forced_in"]["extra_usd_per_hour"] or 0) >= 0
        assert other in {line["device"] for line in forced["forced_in"]["plan"]}
        assert {line["device"] for line in forced["only"]["plan"]} == {other}
        assert float(forced["only"]["usd_per_hour"]) >= float(forced["forced_in"]["usd_per_hour"]) - 1e-6
        assert by_name["l4"]["excluded_by"] == ["limits.devices"]
        assert by_name["weights int4"]["excluded_by"] == ["precision.weights"]
        assert by_name["weights int4"]["forced_in"]["outcome"] in ("optimal", "feasible")
        alone = by_name["TP1 PP1"]["only"]
        assert alone["outcome"] != "infeasible" or by_name["TP1 PP1"]["reasons"]

    def test_only_is_what_a_request_of_its_own_costs(self, client: TestClient) -> None:
        rec = recommended(client)
        only = asked(client, rec, "why-not", {"devices": ["h100-sxm"]})["answers"][0]["only"]
        own = recommended(client, changed(SMALL, "limits", {"devices": ["h100-sxm"]}))
        assert float(only["usd_per_hour"]) == pytest.approx(float(own["totals"]["usd_per_hour"]), rel=0.03)

    def test_what_cannot_be_says_by_how_much(self, client: TestClient) -> None:
        tight = changed(SMALL, "workloads/0/targets", {"tpot_ms": {"p95": 12}})
        rec = recommended(client, tight)
        answer = asked(client, rec, "why-not", {"devices": ["l40s"], "offers": [], "providers": []})
        l40s = answer["answers"][0]
        assert l40s["forced_in"]["outcome"] == "infeasible"
        missed = next(r for r in l40s["reasons"] if r["reason"] == "tpot_above_target")
        assert missed["limit"] == "targets.tpot_ms.p95"
        assert missed["best_ms"] > missed["target_ms"] == pytest.approx(12)
        assert missed["above_percent"] == pytest.approx(100 * (missed["best_ms"] / 12 - 1))

    def test_a_limit_that_leaves_no_room_is_named(self, client: TestClient) -> None:
        rec = recommended(client)
        budget = f"{float(rec['totals']['usd_per_hour']) + 0.01:.6f}"
        capped = recommended(client, changed(SMALL, "limits/max_usd_per_hour", budget))
        answer = asked(client, capped, "why-not", {"providers": ["aws"]})["answers"][0]
        assert answer["forced_in"]["outcome"] == "infeasible"
        assert answer["limits"] == ["limits.max_usd_per_hour"]

    def test_unknown_names_are_all_said(self, client: TestClient) -> None:
        rec = recommended(client)
        body = {"devices": ["h100-sxm", "h1000"], "offers": ["nowhere"], "providers": ["awz"], "workload": "chit"}
        response = client.post(f"/v1/recommendations/{rec['id']}/why-not", json=body)
        assert response.status_code == 422
        pointers = [e["pointer"] for e in response.json()["errors"]]
        assert pointers == ["/devices/1", "/offers/0", "/providers/0", "/workload"]
        assert "did you mean 'aws'" in response.json()["errors"][2]["detail"]
        for wrong in ({}, {"devices": []}, {"layouts": [{}]}, {"precisions": [{}]}, {"device": ["h100-sxm"]}):
            refused = client.post(f"/v1/recommendations/{rec['id']}/why-not", json=wrong)
            assert refused.status_code == 422, wrong

    def test_no_recommendation_no_plan(self, client: TestClient) -> None:
        body = {"devices": ["h100-sxm"]}
        assert client.post("/v1/recommendations/rec_none/why-not", json=body).status_code == 404
        hopeless = recommended(client, changed(SMALL, "workloads/0/targets", {"tpot_ms": {"p95": 0.01}}))
        assert hopeless["outcome"] == "infeasible"
        response = client.post(f"/v1/recommendations/{hopeless['id']}/why-not", json=body)
        assert response.status_code == 409
        assert "no plan to compare with" in response.json()["detail"]

    def test_a_price_corrected_since_is_said(self, client: TestClient) -> None:
        rec = recommended(client)
        line = rec["plan"][0]
        steps = client.get(f"/v1/offers/{line['offer']}/prices").json()["items"]
        price = {
            "usd_per_hour": "99.5", "valid_from": steps[-1]["valid_from"], "source": "a corrected test price",
            "correction": True,
        }  # fmt: skip
        assert client.post(f"/v1/offers/{line['offer']}/prices", json=price).status_code in (200, 201)
        answer = asked(client, rec, "why-not", {"offers": [line["offer"]]})
        assert answer["base"]["changed"] == ["catalog_digest", "usd_per_hour"]
        assert answer["base"]["stored_usd_per_hour"] == rec["totals"]["usd_per_hour"]
        assert float(answer["base"]["usd_per_hour"]) > float(rec["totals"]["usd_per_hour"])
        back = {**price, "usd_per_hour": steps[-1]["usd_per_hour"]}
        assert client.post(f"/v1/offers/{line['offer']}/prices", json=back).status_code in (200, 201)


class TestPriceCurve:
    def test_points_are_plans_and_tighter_is_never_much_cheaper(self, client: TestClient) -> None:
        rec = recommended(client)
        body = {"of": "targets.tpot_ms.p95", "points": [1, 30, 50, 100], "time_limit_s": 60}
        curve = asked(client, rec, "price-curve", body)
        assert curve["workload"] == "chat"
        impossible, tight, here, loose = curve["points"]
        assert impossible["solved"]["outcome"] == "infeasible"
        missed = next(r for r in impossible["reasons"] if r["reason"] == "tpot_above_target")
        assert missed["best_ms"] > 1
        assert here["is_requested"]
        assert here["solved"]["usd_per_hour"] == rec["totals"]["usd_per_hour"]
        prices = [float(p["solved"]["usd_per_hour"]) for p in (tight, here, loose)]
        assert prices[0] * 1.03 >= prices[1] >= prices[2] / 1.03
        own = recommended(client, changed(SMALL, "workloads/0/targets/tpot_ms/p95", 100))
        assert prices[2] == pytest.approx(float(own["totals"]["usd_per_hour"]), rel=0.03)

    def test_rate_spares_and_context(self, client: TestClient) -> None:
        rec = recommended(client)
        rate = asked(client, rec, "price-curve", {"of": "requests_per_s", "points": [5, 40]})
        few, many = (float(p["solved"]["usd_per_hour"]) for p in rate["points"])
        assert few < float(rec["totals"]["usd_per_hour"]) < many
        spares = asked(client, rec, "price-curve", {"of": "spare_nodes", "points": [0, 1]})
        assert spares["workload"] is None
        assert float(spares["points"][1]["solved"]["extra_usd_per_hour"]) > 0

    def test_bad_questions(self, client: TestClient) -> None:
        rec = recommended(client)
        for body, pointer in (
            ({"of": "targets.e2e_ms.p95"}, "/points"),
            ({"of": "context_tokens", "points": [10]}, "/points/0"),
            ({"of": "confidence_percent", "points": [99.9]}, "/points/0"),
            ({"of": "spare_nodes", "points": [0.5]}, "/points/0"),
            ({"of": "requests_per_s", "points": [0]}, "/points/0"),
            ({"of": "requests_per_s", "workload": "chit"}, "/workload"),
            ({"of": "spare_nodes", "workload": "chat"}, "/workload"),
            ({"of": "targets.tpot_ms.p96"}, "/of"),
            ({"of": "requests_per_s", "points": ["NaN"]}, "/points/0"),
        ):
            response = client.post(f"/v1/recommendations/{rec['id']}/price-curve", json=body)
            assert response.status_code == 422, body
            assert response.json()["errors"][0]["pointer"] == pointer, response.text


class TestNearOptimal:
    def test_plans_are_within_and_what_is_indispensable_is_proven(self, client: TestClient) -> None:
        rec = recommended(client)
        base = float(rec["totals"]["usd_per_hour"])
        near = asked(client, rec, "near-optimal", {"within_percent": 60, "count": 2, "time_limit_s": 60})
        assert near["diversity_proven"] is False
        assert {w["name"] for w in near["without"]} == {x for f in rec["fleet"] for x in (f["device"], f["offer"])}
        fleets = [frozenset((x["offer"], x["nodes"]) for x in p["solved"]["plan"]) for p in near["plans"]]
        assert len(fleets) == len(set(fleets)) <= 2
        for plan in near["plans"]:
            assert base - 1e-6 <= float(plan["solved"]["usd_per_hour"]) <= base * 1.6
            assert not set(plan["without"]) & {x for n in plan["solved"]["plan"] for x in (n["device"], n["offer"])}
        nearest = asked(client, rec, "near-optimal", {"within_percent": 0, "count": 1, "time_limit_s": 60})
        for one in nearest["without"]:
            price = one["solved"]["usd_per_hour"]
            assert one["indispensable"] == (price is None or float(price) > base * (1 + 1e-6))

    def test_other_objectives_have_no_price_to_stay_near(self, client: TestClient) -> None:
        one_device = changed(SMALL, "limits/devices", ["h200-sxm"])
        rec = recommended(client, changed(one_device, "objective", "power"))
        response = client.post(f"/v1/recommendations/{rec['id']}/near-optimal", json={})
        assert response.status_code == 422
