"""Training jobs on what a stored fleet leaves over: its idle nodes at night, and what of quotas it does not take."""

import datetime as dt
import random
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service.training.beside_fleet import beside, idle_hours
from service.wire.fleet_answers import CommitmentOut, FleetResultOut, PeriodNodesOut, PeriodOut
from tests.conftest import FixedClock
from tests.service.test_fleets import FLEET, posted
from tests.solver.test_estimate_roles import node

PATH = "/v1/training/recommendations"
MACHINE = node("h100-sxm", 0.0)
TUNE: dict[str, Any] = {
    "name": "tune", "llm": "llama-3.1-8b", "method": "lora", "tokens": 2_000_000_000, "sequence_tokens": 4096,
    "max_devices": 16,
}  # fmt: skip


def fleet_of(draw: random.Random, *, is_used: bool) -> FleetResultOut:
    """Two reserved offers, terms that begin at different months, and hours with random use, or none."""
    commitments = [
        CommitmentOut.model_construct(
            offer=draw.choice(["r1", "r2"]), provider="p", region="r", commitment="reserved_1y", node="n", device="d",
            start_month=draw.randint(0, 1), term_months=12, nodes=draw.randint(1, 4),
        )
        for _ in range(draw.randint(1, 3))
    ]  # fmt: skip
    periods, calendar = [], []
    for month in range(3):
        positions = []
        there = {o: sum(c.nodes for c in commitments if c.offer == o and c.start_month <= month) for o in ("r1", "r2")}
        for _ in range(draw.randint(1, 5)):
            nodes = [
                PeriodNodesOut(offer=o, commitment="reserved_1y", nodes=draw.randint(0, is_used * there[o]), spare=0)
                for o in there
            ]
            nodes.append(PeriodNodesOut(offer="h", commitment="on_demand", nodes=draw.randint(0, 5), spare=0))
            positions.append(len(periods))
            periods.append(PeriodOut.model_construct(month=month, hours=1.0, nodes=nodes))
        calendar.append([draw.choice(positions) for _ in range(draw.choice([168, 730]))])
    return FleetResultOut.model_construct(commitments=commitments, periods=periods, calendar=calendar)


@pytest.mark.parametrize("seed", range(40))
def test_no_hour_of_any_day_is_promised_a_node_in_use(seed: int) -> None:
    result = fleet_of(random.Random(seed), is_used=seed % 4 > 0)
    offers = {one.offer for one in result.commitments}
    months = 1 + seed % 3
    found = beside("fleet_x", result, {"n": MACHINE}, months, {"h": 7})
    least = {offer: [1_000] * 24 for offer in offers}
    most = 0
    for month in range(months):
        week = len(result.calendar[month]) == 168
        for n, position in enumerate(result.calendar[month]):
            hour = (n if week else 730 * month + n) % 24
            used = {one.offer: one.nodes for one in result.periods[position].nodes}
            most = max(most, used["h"])
            for offer in offers:
                there = sum(c.nodes for c in result.commitments if c.offer == offer and c.start_month <= month)
                least[offer][hour] = min(least[offer][hour], there - used[offer])
    assert found.free == {f"idle:{o}": tuple(hours) for o, hours in least.items() if max(hours) > 0}
    assert found.taken == {"h": most}
    assert found.quotas == {"h": 7}


def test_an_hour_counts_where_enough_is_free() -> None:
    free = tuple(4 if hour < 6 else 1 for hour in range(24))
    assert idle_hours(free, 2) == (0, 1, 2, 3, 4, 5)
    assert idle_hours(free, 1) == ()


class TestBesideAFleet:
    @pytest.fixture
    def fleet(self, client: TestClient) -> dict[str, Any]:
        """Reserved for its peaks, since nothing else may be had: at night half of it is idle."""
        limits = FLEET["limits"] | {"commitments": ["reserved_3y"]}
        asked = {"horizon": {"months": 36, "periods_per_month": 6}, "gap_fraction": 0.05, "limits": limits}
        return posted(client, FLEET | asked)

    def test_jobs_use_its_nights_and_its_quotas(
        self, client: TestClient, fleet: dict[str, Any], clock: FixedClock
    ) -> None:
        deadline = (clock() + dt.timedelta(days=60)).isoformat()
        asked = {"jobs": [TUNE | {"deadline": deadline}], "limits": {"devices": ["h100-sxm", "h200-sxm"]}}
        alone = client.post(PATH, json=asked).json()
        answer = client.post(PATH, json=asked | {"beside_fleet": fleet["id"]})
        assert answer.status_code == 201, answer.text
        found = answer.json()
        assert found["outcome"] == "optimal"
        assert float(found["solve"]["usd"]) <= float(alone["solve"]["usd"])
        (line,) = found["plan"]
        assert line["offer"].startswith("idle:")
        assert float(line["usd"]) == 0.0
        assert any("leaves idle" in one for one in found["cautions"])
        beside, gap = found["beside"], float(fleet["solve"]["usd"]) - float(fleet["solve"]["bound_usd"])
        assert (beside["fleet"], beside["fleet_usd"], beside["usd"]) == (
            fleet["id"],
            fleet["solve"]["usd"],
            fleet["solve"]["usd"],
        )
        assert float(beside["joint_saving_at_most_usd"]) == pytest.approx(gap, abs=0.01)
        for month in range(2):
            own = [
                c for c in fleet["commitments"] if f"idle:{c['offer']}" == line["offer"] and c["start_month"] <= month
            ]
            for n, position in enumerate(fleet["calendar"][month]):
                if line["daily_hours"] and n % 24 not in line["daily_hours"]:
                    continue
                nodes = fleet["periods"][position]["nodes"]
                used = sum(one["nodes"] for one in nodes if f"idle:{one['offer']}" == line["offer"])
                assert used + line["nodes"] <= sum(c["nodes"] for c in own)
        assert client.get(found["link"]).json() == found
        why = client.post(f"{found['link']}/why-not", json={"device": "h100-sxm"})
        assert why.status_code == 200, why.text

    def test_a_fleet_that_is_not_there(self, client: TestClient) -> None:
        answer = client.post(PATH, json={"jobs": [TUNE], "beside_fleet": "fleet_none"})
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/beside_fleet")
