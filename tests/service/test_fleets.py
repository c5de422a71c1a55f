"""POST and GET /v1/fleets over HTTP."""

import re
from decimal import Decimal
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

import service.clock
from service.answers.queries import answer_by_id
from service.fleets.job import FLEET_JOB
from service.fleets.plan import plan
from service.fleets.prepare import read_fleet_inputs
from service.fleets.tables import FleetTable
from service.jobs.kind import Attempt, Progress, WorkerContext
from service.recommendations.catalog_snapshot import SnapshotCache
from service.recommendations.spaces import SpaceCache
from service.settings import Settings
from service.wire.fleets import FleetIn
from solver.capacity.sustained_rate import Bracket, CandidateReplica
from solver.horizon import fleet
from solver.horizon.problem import HorizonProblem
from tests.conftest import NOW
from tests.service.bodies import changed, estimated

DAY = [2.0, 1.5, 1.2, 1.0, 1.0, 1.5, 3.0, 6.0, 9.0, 12.0, 14.0, 15.0, 15.0, 15.0, 14.0, 14.0, 13.0, 12.0, 10.0, 8.0,
       6.0, 5.0, 4.0, 3.0]  # fmt: skip
FLEET: dict[str, Any] = {
    "workloads": [
        {
            "name": "chat",
            "llm": "llama-3.1-70b",
            "traffic": {
                "prompt_tokens": {"distribution": "lognormal", "mean": 1200, "p95": 4000},
                "output_tokens": {"distribution": "lognormal", "mean": 300, "p95": 900},
            },
            "demand": {
                "kind": "profile",
                "weekday_requests_per_s": DAY,
                "weekend_requests_per_s": [round(v / 2, 3) for v in DAY],
            },
            "targets": {"ttft_ms": {"p95": 1000}, "tpot_ms": {"p95": 50}},
        }
    ],
    "horizon": {"months": 36, "periods_per_month": 6},
    "limits": {"providers": ["nebius", "market"], "devices": ["h100-sxm", "h200-sxm"], "sourcing": "any"},
    "time_limit_s": 120,
    "gap_fraction": 0.02,
}


def posted(client: TestClient, body: dict[str, Any]) -> dict[str, Any]:
    response = client.post("/v1/fleets", json=body, headers={"Prefer": "wait=300"})
    assert response.status_code == 201, response.text
    answer: dict[str, Any] = response.json()
    return answer


class TestPlan:
    def test_reserves_the_base_and_rents_the_peaks(self, client: TestClient) -> None:
        answer = posted(client, FLEET)
        totals, solve = answer["totals"], answer["solve"]
        assert answer["outcome"] in ("optimal", "feasible")
        assert solve["gap_fraction"] <= 0.03
        assert Decimal(solve["bound_usd"]) <= Decimal(totals["usd"]) < Decimal(totals["on_demand_usd"])
        parts = ("purchase_usd", "reserved_usd", "on_demand_part_usd", "spot_usd")
        assert sum(Decimal(totals[p]) for p in parts) == pytest.approx(Decimal(totals["usd"]), abs=Decimal("0.00001"))
        reserved = answer["commitments"]
        assert {c["commitment"] for c in reserved} == {"reserved_3y"}
        assert all(c["start_month"] == 0 and 0.0 < c["used_fraction"] <= 1.0 for c in reserved)
        assert answer["demand"]["periods"] == 36 * 6
        assert answer["demand"]["peak_requests_per_s"] == {"chat": 15.0}
        assert 0.0 < answer["demand"]["overstated_fraction"] < 0.2
        self.every_period_is_served(answer)
        for one in answer["deployments"]:  # what is said of a way of running it is all that an estimate takes
            found = estimated(
                client,
                {
                    "llm": "llama-3.1-70b", "traffic": FLEET["workloads"][0]["traffic"],
                    "load": {"kind": "open", "requests_per_s": one["requests_per_s"]},
                    "engine": {"name": one["engine"], "max_batched_tokens": one["max_batched_tokens"]},
                } | {name: one[name] for name in ("device", "node", "layout", "precision")},
            )  # fmt: skip
            assert found["ttft_ms"]["p95"]["expected"] <= 1000
            assert found["tpot_ms"]["p95"]["expected"] <= 50

        again = client.get(f"/v1/fleets/{answer['id']}")
        assert again.json() == answer
        listed = client.get("/v1/fleets", params={"limit": 1}).json()["items"][0]
        assert (listed["id"], listed["usd"], listed["months"]) == (answer["id"], totals["usd"], 36)

    @staticmethod
    def every_period_is_served(answer: dict[str, Any]) -> None:
        rate = {d["id"]: d["requests_per_s"] for d in answer["deployments"]}
        hours = 0.0
        for period in answer["periods"]:
            served = sum(rate[r["deployment"]] * r["replicas"] for r in period["replicas"])
            assert served >= period["requests_per_s"]["chat"] * (1 - 1e-6)
            hours += period["hours"]
        assert hours == pytest.approx(36 * 730)
        assert max(p["requests_per_s"]["chat"] for p in answer["periods"]) == max(DAY)

    def test_the_same_inputs_give_the_same_plan(self, client: TestClient, app: FastAPI) -> None:
        body = changed(changed(FLEET, "horizon/months", 1), "limits/commitments", ["on_demand"])
        answer = posted(client, body)
        with app.state.database.reading() as session:
            stored = answer_by_id(session, FleetTable, answer["id"])
            assert stored is not None
            asked = FleetIn.model_validate(stored.request)
            workbench = WorkerContext(app.state.database, SnapshotCache(), SpaceCache())
            inputs = read_fleet_inputs(session, asked, stored.price_as_of, workbench)
            expected = stored.result
        again = plan(inputs).model_dump(mode="json")
        for result in (again, expected):
            del result["solve"]["seconds"]
            del result["operation"]["freedoms"]  # what a rule saves is looked for as long as the clock allows
        assert again == expected

    def test_infeasible_is_an_answer(self, client: TestClient) -> None:
        answer = posted(client, changed(FLEET, "workloads/0/targets", {"ttft_ms": {"p95": 0.001}}))
        assert answer["outcome"] == "infeasible"
        assert answer["totals"] is None
        assert answer["rejected"]

    def test_a_demand_above_all_nodes_says_how_much_these_serve(self, client: TestClient) -> None:
        """It said that even parts of nodes do not serve it."""
        answer = posted(client, changed(FLEET, "workloads/0/demand/weekday_requests_per_s", [1e9] * 24))
        assert answer["outcome"] == "infeasible"
        (reason,) = answer["reasons"]
        served = re.fullmatch(r"chat: asks for 1e\+09 requests/s at its peak; all nodes offered serve (\S+)", reason)
        assert served is not None, reason
        assert 1e3 < float(served[1]) < 1e9

    def test_a_job_computes_and_stores_the_same(self, app: FastAPI, client: TestClient) -> None:
        accepted = client.post("/v1/fleets", json=FLEET, headers={"Prefer": "respond-async"})
        assert accepted.status_code == 202
        assert accepted.json()["kind"] == "fleet"
        client.post(f"/v1/jobs/{accepted.json()['id']}/cancel")
        told: list[Progress] = []
        bench = WorkerContext(app.state.database, SnapshotCache(), SpaceCache())
        asked = FleetIn.model_validate(changed(FLEET, "horizon", {"months": 1, "periods_per_month": 3}))
        answer = FLEET_JOB.compute(asked, Attempt("job_1", NOW, bench, told.append))
        with app.state.database.writing() as session:
            stored = FLEET_JOB.store(session, asked, answer, NOW)
        assert client.get(f"/v1/fleets/{stored}").json()["outcome"] in ("optimal", "feasible")
        assert any(one.usd_per_hour is not None for one in told)


class TestBadInput:
    @pytest.mark.parametrize(
        ("path", "value", "pointer", "says"),
        [
            ("workloads/0/demand", {"kind": "series", "step_s": 3600, "requests_per_s": [1.0, None, 2.0]},
             "/workloads/0/demand", "gap: no value at position 1"),
            ("workloads/0/demand", {"kind": "series", "step_s": 3600, "requests_per_s": [1.0, -2.0]},
             "/workloads/0/demand", "position 1 is negative"),
            ("workloads/0/demand", {"kind": "series", "step_s": 3600, "requests_per_s": [1.0, 10**400]},
             "/workloads/0/demand", "position 1 holds 1000"),
            ("workloads/0/demand", {"kind": "series", "step_s": 3600, "requests_per_s": [1.0, "NaN"]},
             "/workloads/0/demand", "position 1 holds no number"),
            ("workloads/0/demand", {"kind": "series", "step_s": 2500, "requests_per_s": [1.0, 2.0]},
             "/workloads/0/demand", "neither divides an hour"),
            ("workloads/0/demand", {"kind": "series", "step_s": 3600, "requests_per_s": [0.0, 0.0]},
             "/workloads/0/demand", "zero at every point"),
            ("workloads/0/demand", {"kind": "series", "points": [
                {"at": "2027-01-01T00:00:00Z", "requests_per_s": 1}, {"at": "2027-01-01T01:00:00Z", "requests_per_s": 1},
                {"at": "2027-01-01T03:00:00Z", "requests_per_s": 1}]}, "/workloads/0/demand", "gap of 7200 s"),
            ("workloads/0/demand", {"kind": "series", "points": [
                {"at": "2027-01-01T00:00:00Z", "requests_per_s": 1}, {"at": "2027-01-01T01:00:00Z", "requests_per_s": 1},
                {"at": "2027-01-01T00:30:00Z", "requests_per_s": 1}]}, "/workloads/0/demand", "time does not go on"),
            ("workloads/0/demand", {"kind": "series", "step_s": 86400, "requests_per_s": [1.0] * 2000},
             "/workloads/0/demand", "the series covers 48000 hours"),
            ("workloads/0/demand/weekday_requests_per_s", [1.0] * 23, "/workloads/0/demand", ""),
            ("horizon/months", 0, "/horizon/months", ""),
            ("limits/commitments", ["capacity_block"], "/limits/commitments/0", "not planned over time"),
            ("limits/commitments", ["spot"], "", "state `spot` with its share"),
            ("limits/providers", ["nebiuss"], "/limits/providers/0", "did you mean"),
            ("workloads/0/llm", "llama-3.1-70", "/workloads/0/llm", "did you mean"),
            ("horizonn", {}, "/horizonn", ""),
        ],
    )  # fmt: skip
    def test_is_pointed_at(self, client: TestClient, path: str, value: Any, pointer: str, says: str) -> None:
        response = client.post("/v1/fleets", json=changed(FLEET, path, value))
        assert response.status_code == 422, response.text
        errors = response.json()["errors"]
        assert any(e["pointer"].startswith(pointer) and says in e["detail"] for e in errors), errors

    def test_a_term_longer_than_the_horizon(self, client: TestClient) -> None:
        body = changed(changed(FLEET, "horizon/months", 12), "limits/commitments", ["on_demand", "reserved_3y"])
        refused = client.post("/v1/fleets", json=body)
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["pointer"] == "/limits/commitments/1"
        assert "liability" in refused.json()["errors"][0]["detail"]
        left_open = posted(client, changed(body, "limits/commitments", None))
        assert {"commitment": "reserved_3y", "why": "its 36 months end after the horizon of 12"} in left_open[
            "left_out"
        ]
        counted = posted(client, changed(body, "commitment_tail", "liability"))
        assert all(
            Decimal(c["beyond_horizon_usd"]) == pytest.approx(Decimal(c["usd"]) * 2 / 3, abs=Decimal("0.01"))
            for c in counted["commitments"]
            if c["start_month"] == 0
        )

    def test_workloads_that_contradict_each_other(self, client: TestClient) -> None:
        other = FLEET["workloads"][0]
        series = [other | {"name": n, "demand": {"kind": "series", "step_s": 3600, "requests_per_s": [1.0] * hours}}
                  for n, hours in (("a", 24), ("b", 168))]  # fmt: skip
        response = client.post("/v1/fleets", json=changed(FLEET, "workloads", series))
        assert response.status_code == 422
        assert "must cover the same time" in response.json()["errors"][0]["detail"]
        late = other | {"name": "batch", "demand": None, "batch": {"requests": 1000, "from_month": 40}}
        response = client.post("/v1/fleets", json=changed(FLEET, "workloads", [other, late]))
        assert response.json()["errors"][0]["pointer"] == "/workloads/1/batch"


class TestSeries:
    def test_a_year_of_minutes_is_clustered_and_said_so(self, client: TestClient, settings: Settings) -> None:
        minutes = [round(DAY[m // 60 % 24] * (0.9 + 0.1 * ((m * 7919) % 97) / 96), 3) for m in range(525_600)]
        minutes[200_000] = 31.5
        body = changed(FLEET, "workloads/0/demand", {"kind": "series", "step_s": 60, "requests_per_s": minutes})
        body = changed(body, "horizon", {"months": 12, "periods_per_month": 2})
        assert settings.import_body_limit_bytes > 4_000_000
        answer = posted(client, body)
        fit = answer["demand"]
        assert (fit["points"], fit["hours"], fit["periods"]) == (525_600, 8_760, 24)
        assert fit["peak_requests_per_s"]["chat"] == 31.5
        assert max(p["requests_per_s"]["chat"] for p in answer["periods"]) == 31.5
        assert 0.0 < fit["overstated_fraction"] < 1.0
        assert answer["request"]["workloads"][0]["demand"]["requests_per_s"]["count"] == 525_600


class TestSeveralNodes:
    def test_a_model_larger_than_a_node_takes_whole_nodes_of_one_offer(self, client: TestClient) -> None:
        large = FLEET["workloads"][0] | {
            "llm": "deepseek-r1", "targets": {"ttft_ms": {"p95": 5000}, "tpot_ms": {"p95": 150}},
            "precision": {"weights": ["fp8"], "kv_cache": ["bf16"]},
        }  # fmt: skip
        body = changed(FLEET, "workloads", [large])
        body = changed(body, "limits", {"providers": ["aws"], "regions": ["us-east-1"], "devices": ["h100-sxm"]})
        answer = posted(client, changed(body, "horizon", {"months": 1, "periods_per_month": 3}))
        spanned = {d["id"]: d["nodes_per_replica"] for d in answer["deployments"]}
        assert set(spanned.values()) == {2}
        for period in answer["periods"]:
            nodes = {n["offer"]: n["nodes"] for n in period["nodes"]}
            assert len(nodes) == 1
            assert sum(nodes.values()) == sum(spanned[r["deployment"]] * r["replicas"] for r in period["replicas"])


class TestSpotAndBatch:
    def test_spot_within_its_share_with_spares(self, client: TestClient) -> None:
        body = changed(changed(FLEET, "spot", {"max_fraction": 0.4}), "horizon", {"months": 1, "periods_per_month": 4})
        answer = posted(client, body)
        assert answer["spot"]["unavailable_fraction"] > 0.0
        assert any("assumption" in source for source in answer["spot"]["sources"])
        offers = {n["offer"] for period in answer["periods"] for n in period["nodes"]}
        devices = {offer: client.get(f"/v1/offers/{offer}").json()["devices"] for offer in offers}
        for period in answer["periods"]:
            all_devices = sum(n["nodes"] * devices[n["offer"]] for n in period["nodes"])
            spot = sum(n["nodes"] * devices[n["offer"]] for n in period["nodes"] if n["commitment"] == "spot")
            assert spot <= 0.4 * all_devices + 1e-9
            assert spot == 0 or sum(n["spare"] for n in period["nodes"]) >= 1

    def test_batch_work_is_done_by_its_deadline(self, client: TestClient) -> None:
        batch = FLEET["workloads"][0] | {"name": "nightly", "demand": None, "targets": {},
                                         "batch": {"requests": 2_000_000, "to_month": 1}}  # fmt: skip
        body = changed(FLEET, "workloads", [FLEET["workloads"][0], batch])
        body = changed(body, "horizon", {"months": 2, "periods_per_month": 4})
        answer = posted(client, body)
        done = {0: 0.0, 1: 0.0}
        for period in answer["periods"]:
            done[period["month"]] += period["requests_per_s"]["nightly"] * period["hours"] * 3600.0
        assert done[0] >= 2_000_000 * (1 - 1e-6)
        assert done[1] == 0.0


def test_a_fleet_that_simulation_refused_when_time_ended_is_no_answer(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was answered as a plan, of the status that says it was confirmed."""
    monkeypatch.setattr("solver.horizon.fleet._correct", lambda *_: 1)
    body = changed(changed(FLEET, "limits/devices", ["h100-sxm"]), "horizon", {"months": 1, "periods_per_month": 2})
    response = client.post("/v1/fleets", json=changed(body, "time_limit_s", 5), headers={"Prefer": "wait=300"})
    assert response.status_code == 503, response.text
    assert "holds in simulation" in response.json()["detail"]


class TestTimeEnds:
    BODY = changed(FLEET, "horizon", {"months": 2, "periods_per_month": 4})

    def test_confirmed_deployments_answer_where_others_were_refused(
        self, client: TestClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Beside the bound of all: what is only believed is no plan, and what is confirmed no proof."""
        correct, held = fleet._correct, set[float]()

        def refused(problem: HorizonProblem, used: set[int], screened: Any, brackets: Any, in_time: Any) -> int:
            """Something more of every choice, as far as the search is told."""
            count = correct(problem, used, screened, brackets, in_time)
            held.update(one.holds * screened[w].workload.utilisation_limit_fraction for (w, _), one in brackets.items())
            return count + 1

        monkeypatch.setattr(fleet, "_correct", refused)
        monkeypatch.setattr(fleet, "MOST_SOLVES", 1)
        answer = posted(client, self.BODY)
        assert {one["requests_per_s"] for one in answer["deployments"]} <= held
        assert Decimal(answer["solve"]["bound_usd"]) <= Decimal(answer["solve"]["usd"])
        assert answer["solve"]["gap_fraction"] >= 0.0

    @pytest.mark.parametrize("limit_s", [3.0, 10.0])
    def test_nothing_is_sampled_or_simulated_once_time_is_over(
        self, client: TestClient, monkeypatch: pytest.MonkeyPatch, limit_s: float
    ) -> None:
        """By a clock that every simulation moves by a second; sampling rounds went on until all they chose was confirmed."""
        now = [0.0]
        bracket = CandidateReplica.bracket

        def slow(self: CandidateReplica, *how: Any) -> Bracket:
            now[0] += 1.0
            return bracket(self, *how)

        monkeypatch.setattr(service.clock, "time_limits_run_by", lambda: now[0])
        monkeypatch.setattr(CandidateReplica, "bracket", slow)
        body = changed(changed(self.BODY, "limits", {"sourcing": "any"}), "time_limit_s", limit_s)
        response = client.post("/v1/fleets", json=body, headers={"Prefer": "wait=300"})
        assert response.status_code in (201, 503), response.text
        assert now[0] <= limit_s + 1.0

    def test_no_more_is_screened_once_time_is_over(self, client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
        """By a clock that every workload's screening moves by two seconds; all of them were screened, and the whole solved."""
        now, screen = [0.0], fleet.screen

        def slow(*arguments: Any, **how: Any) -> Any:
            now[0] += 2.0
            return screen(*arguments, **how)

        monkeypatch.setattr(service.clock, "time_limits_run_by", lambda: now[0])
        monkeypatch.setattr(fleet, "screen", slow)
        workloads = [self.BODY["workloads"][0] | {"name": f"chat {i}"} for i in range(4)]
        body = changed(changed(self.BODY, "workloads", workloads), "time_limit_s", 3)
        response = client.post("/v1/fleets", json=body, headers={"Prefer": "wait=300"})
        assert response.status_code == 503, response.text
        assert "time_limit_s" in response.json()["detail"]
        assert now[0] == 4.0
