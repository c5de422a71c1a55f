"""Planning from a fleet that runs, over HTTP."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.service.bodies import changed
from tests.service.test_why import SMALL, recommended

H100 = "aws:p5.48xlarge:us-east-1:on_demand"


def from_fleet(client: TestClient, current: dict[str, Any], body: dict[str, Any] = SMALL) -> dict[str, Any]:
    return recommended(client, changed(body, "current", current))


def fleet(answer: dict[str, Any]) -> dict[str, int]:
    return {f["offer"]: f["nodes"] for f in answer["fleet"]}


class TestFromAPlan:
    def test_the_same_request_changes_nothing(self, client: TestClient) -> None:
        rec = recommended(client)
        again = from_fleet(client, {"recommendation": rec["id"]})
        assert again["replanning"]["decision"] == "unchanged"
        assert again["replanning"]["nodes"] == []
        assert again["totals"]["usd_per_hour"] == rec["totals"]["usd_per_hour"]
        assert fleet(again) == fleet(rec)
        refused = client.post(f"/v1/recommendations/{again['id']}/why-not", json={"devices": ["l40s"]})
        assert refused.status_code == 409

    def test_more_traffic_pays_for_its_switch(self, client: TestClient) -> None:
        rec = recommended(client)
        busier = changed(SMALL, "workloads/0/traffic/requests_per_s", 40.0)
        switching = {"usd_per_node_added": "7", "usd_per_node_removed": "3", "overlap_hours": 2, "payback_hours": 10}
        made = from_fleet(client, {"recommendation": rec["id"], "switching": switching}, busier)
        told = made["replanning"]
        assert told["decision"] == "switched"
        assert told["kept_usd_per_hour"] is None
        price = {f["offer"]: float(f["usd_per_hour"]) / f["nodes"] for f in (*rec["fleet"], *made["fleet"])}
        once = 0.0
        for change in told["nodes"]:
            assert change["before"] == fleet(rec).get(change["offer"], 0)
            assert change["after"] == fleet(made).get(change["offer"], 0)
            more = change["after"] - change["before"]
            once += 7 * more if more > 0 else -more * (3 + 2 * price[change["offer"]])
        assert float(told["switching_usd"]) == pytest.approx(once)
        total = float(made["totals"]["usd_per_hour"]) + once / 10
        assert float(told["total_usd_per_hour"]) == pytest.approx(total)
        assert made["solve"]["usd_per_hour"] == told["total_usd_per_hour"]
        served = sum(line["serves_requests_per_s"] for line in made["plan"])
        assert served == pytest.approx(40.0, rel=1e-5)


class TestFromNodes:
    def test_kept_unless_it_saves_enough(self, client: TestClient) -> None:
        dear = {"nodes": {H100: {"nodes": 3}}}
        made = from_fleet(client, dear)
        assert made["replanning"]["decision"] == "switched"
        saves = float(made["replanning"]["saves_usd_per_hour"])
        assert saves > 0
        rent = 3 * 55.04
        assert float(made["replanning"]["kept_usd_per_hour"]) == pytest.approx(rent)
        assert any(word.startswith("release 3 ") and word.endswith(H100) for word in made["replanning"]["words"])
        kept = from_fleet(client, dear | {"keep_unless": {"saving_usd_per_hour": f"{saves + 1:.2f}"}})
        assert kept["replanning"]["decision"] == "kept"
        assert kept["outcome"] == "feasible"
        assert kept["solve"]["status"] == "kept_current"
        assert kept["solve"]["gap_fraction"] > 0
        assert fleet(kept) == {H100: 3}
        assert float(kept["totals"]["usd_per_hour"]) == pytest.approx(rent)
        moved = from_fleet(client, dear | {"keep_unless": {"saving_percent": 1}})
        assert moved["replanning"]["decision"] == "switched"

    def test_committed_nodes_are_paid_until_their_term_ends(self, client: TestClient) -> None:
        def asked(until: str) -> dict[str, Any]:
            return from_fleet(client, {"nodes": {H100: {"nodes": 1, "committed_until": until}}})

        running = asked("2027-11-21T00:00:00Z")
        assert running["replanning"]["idle_but_paid"] == {H100: 1}
        assert fleet(running)[H100] == 1
        assert asked("2025-11-21T00:00:00Z")["replanning"]["idle_but_paid"] == {}


class TestBadInput:
    def test_unknown_fleets_are_refused_by_name(self, client: TestClient) -> None:
        nodes = {"aws:p5.48xlarge:us-east-1:on-demand": {"nodes": 1}, "my/cellar": {"nodes": 2}}
        response = client.post("/v1/recommendations", json=changed(SMALL, "current", {"nodes": nodes}))
        assert response.status_code == 422
        errors = response.json()["errors"]
        assert [e["pointer"] for e in errors] == [
            "/current/nodes/aws:p5.48xlarge:us-east-1:on-demand", "/current/nodes/my~1cellar",
        ]  # fmt: skip
        assert f"did you mean '{H100}'" in errors[0]["detail"]

    @pytest.mark.parametrize(
        ("current", "pointer"),
        [
            ({}, "/current"),
            ({"recommendation": "rec_x", "nodes": {H100: {"nodes": 1}}}, "/current"),
            ({"recommendation": "rec_none"}, "/current/recommendation"),
            ({"nodes": {H100: {"nodes": 0}}}, f"/current/nodes/{H100}/nodes"),
            ({"nodes": {H100: {"nodes": 1}}, "switching": {"overlap_hours": 1}}, "/current/switching"),
            ({"nodes": {H100: {"nodes": 1}}, "switching": {"usd_per_node_added": 1.5}}, "/current/switching/usd_per_node_added"),
        ],
    )  # fmt: skip
    def test_what_is_wrong_is_pointed_at(self, client: TestClient, current: dict[str, Any], pointer: str) -> None:
        response = client.post("/v1/recommendations", json=changed(SMALL, "current", current))
        assert response.status_code == 422, response.text
        assert response.json()["errors"][0]["pointer"] == pointer

    def test_other_objectives_have_no_switch(self, client: TestClient) -> None:
        body = changed(changed(SMALL, "objective", "power"), "current", {"nodes": {H100: {"nodes": 1}}})
        assert client.post("/v1/recommendations", json=body).status_code == 422
