"""Accepted results make the next prediction better; quarantined and retracted ones do not."""

import copy
import time
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from service.corrections.learn import refresh
from service.corrections.queries import changed_cells, newest_number
from tests.conftest import FixedClock
from tests.service.bodies import ESTIMATE, RECOMMENDATION

numbers = iter(range(1_000_000))
LLMS = iter(
    (
        "qwen2.5-7b",
        "qwen2.5-14b",
        "qwen2.5-32b",
        "qwen2.5-3b",
        "qwen3-4b",
        "qwen3-8b",
        "qwen3-14b",
        "qwen3-32b",
        "llama-3.1-8b",
        "llama-3.2-3b",
        "gemma-2-9b",
        "gemma-2-27b",
        "phi-4-14b",
        "llama-2-7b",
        "llama-2-13b",
        "qwen3-1.7b",
        "gemma-2-2b",
    )
)
BYSTANDER = "llama-3-8b"
"""A model that no test uploads runs of: drawn for one, as it was, it moved with what it was held against."""
# A configuration the catalog release has no run of; 4 clients, 40 requests of 100 tokens.
DEPLOYMENT: dict[str, Any] = {
    "device": "h100-sxm", "llm": "qwen3-32b", "layout": {"tensor_parallel": 2}, "precision": {"weights": "bf16"},
}  # fmt: skip
TRAFFIC: dict[str, Any] = {
    "prompt_tokens": {"distribution": "fixed", "tokens": 500},
    "output_tokens": {"distribution": "fixed", "tokens": 100},
}


@pytest.fixture
def llm() -> str:
    """A dense model no other test of this module uses, so that tests sharing a database do not meet."""
    return next(LLMS)


def estimate(client: TestClient, llm: str, **changes: Any) -> Any:
    load = {"kind": "closed", "concurrency": 4, "requests": 40}
    case = copy.deepcopy(ESTIMATE) | DEPLOYMENT | {"llm": llm, "traffic": TRAFFIC, "load": load} | changes
    (answer,) = client.post("/v1/estimates", json={"estimates": [case]}).json()["estimates"]
    assert answer["outcome"] == "estimated", answer
    return answer


def slower(client: TestClient, llm: str, factor: float, version: str = "0.24.0", **results: Any) -> Any:
    """A run that took ``factor`` times the prediction, in every latency."""
    predicted = estimate(client, llm)
    ttft = predicted["ttft_ms"]["mean"]["expected"] * factor
    tpot = predicted["tpot_ms"]["mean"]["expected"] * factor
    e2e = ttft + 99 * tpot
    rate = 3.8 / (e2e / 1e3)
    run = {
        "context": DEPLOYMENT | {
            "llm": llm, "devices": 2, "engine": {"name": "vllm", "version": version},
            "notes": f"loop {next(numbers)}",
        },
        "load": {"kind": "closed", "concurrency": 4, "requests": 40},
        "traffic": TRAFFIC,
        "results": {
            "completed": 40, "failed": 0, "duration_s": 40 / rate, "requests_per_s": rate,
            "output_tokens_per_s": rate * 100, "ttft_ms": {"mean": ttft}, "tpot_ms": {"mean": tpot},
            "e2e_ms": {"mean": e2e},
        } | results,
    }  # fmt: skip
    answer = client.post("/v1/benchmarks", json=run)
    assert answer.status_code == 201, answer.text
    return answer.json()


def settled(app: FastAPI) -> int:
    """Wait until no change is waiting for a new set; its number."""
    for _ in range(1_200):  # a minute on the busiest machine; some milliseconds on others
        with app.state.database.reading() as session:
            if not changed_cells(session, 1):
                return newest_number(session)
        time.sleep(0.05)
    raise AssertionError("no correction set was made")


class TestLoop:
    def test_accepted_results_move_the_prediction_towards_them(
        self, client: TestClient, app: FastAPI, llm: str
    ) -> None:
        before = estimate(client, llm)
        other = estimate(client, BYSTANDER)
        run_id = slower(client, llm, 1.3)["id"]
        settled(app)
        after = estimate(client, llm)
        assert (after["basis"], after["evidence"]) == ("measured", [run_id])
        ratio = after["tpot_ms"]["mean"]["expected"] / before["tpot_ms"]["mean"]["expected"]
        assert ratio == pytest.approx(1.3 ** (1 / 3), rel=1e-3)  # one result counts one third, two agree with physics
        assert estimate(client, BYSTANDER) == other  # other models do not move

    def test_other_configurations_of_the_model_follow_less_far(
        self, client: TestClient, app: FastAPI, llm: str
    ) -> None:
        asked = {"precision": {"weights": "fp8"}}
        before, touched = estimate(client, llm, **asked), estimate(client, llm)
        run_id = slower(client, llm, 1.3)["id"]
        settled(app)
        after, now = estimate(client, llm, **asked), estimate(client, llm)
        assert run_id in after["evidence"]
        assert after["basis"] == before["basis"]
        moved = after["tpot_ms"]["mean"]["expected"] / before["tpot_ms"]["mean"]["expected"]
        whole = now["tpot_ms"]["mean"]["expected"] / touched["tpot_ms"]["mean"]["expected"]
        run = whole**3  # of its own cell one result counts one third
        assert moved == pytest.approx(run ** (1 / 2.4), rel=1e-4)  # kin_run_shrinkage 1.4
        client.post(f"/v1/benchmarks/{run_id}/retract", json={"reason": "a mistake"})
        settled(app)
        assert estimate(client, llm, **asked) == before

    def test_before_and_after(self, client: TestClient, app: FastAPI, llm: str) -> None:
        receipt = slower(client, llm, 1.4)
        number = settled(app)
        stored = client.get(f"/v1/benchmarks/{receipt['id']}").json()
        assert stored["after"]["correction_set"] == number
        before, after = (stored[key]["predicted_over_measured"]["tpot_ms"] for key in ("before", "after"))
        assert abs(after - 1) < abs(before - 1)

    def test_quarantined_results_move_nothing(self, client: TestClient, app: FastAPI, llm: str) -> None:
        before = estimate(client, llm)
        assert slower(client, llm, 1.3, failed=40)["status"] == "quarantined"
        settled(app)
        assert estimate(client, llm) == before

    def test_released_it_counts_and_retracted_it_does_not(self, client: TestClient, app: FastAPI, llm: str) -> None:
        before = estimate(client, llm)
        run_id = slower(client, llm, 1.3, failed=40)["id"]
        client.post(f"/v1/benchmarks/{run_id}/release", json={"reason": "the proxy failed"})
        settled(app)
        assert run_id in estimate(client, llm)["evidence"]
        client.post(f"/v1/benchmarks/{run_id}/retract", json={"reason": "wrong model"})
        settled(app)
        assert estimate(client, llm) == before

    def test_sets_are_numbered_and_kept(self, client: TestClient, app: FastAPI, llm: str) -> None:
        slower(client, llm, 1.1)
        first = settled(app)
        slower(client, llm, 1.2)
        second = settled(app)
        assert second > first > 1_000_000
        assert client.get(f"/v1/accuracy?correction_set={first}").status_code == 200

    def test_a_crash_between_upload_and_set_loses_nothing(
        self, client: TestClient, app: FastAPI, llm: str, clock: FixedClock
    ) -> None:
        app.state.corrections.close()
        run_id = slower(client, llm, 1.3)["id"]
        assert run_id not in estimate(client, llm)["evidence"]
        with app.state.database.writing() as session:  # what the next process does first
            assert refresh(session, clock()) is not None
        assert run_id in estimate(client, llm)["evidence"]
        with app.state.database.writing() as session:
            assert refresh(session, clock()) is None


class TestDrift:
    def test_a_new_version_that_is_slower_is_told(self, client: TestClient, llm: str) -> None:
        for factor in (1.0, 1.01, 0.99, 1.0):
            slower(client, llm, factor, version="0.30.0")
        for factor in (1.25, 1.26, 1.24, 1.25):
            slower(client, llm, factor, version="0.31.0")
        found = client.get("/v1/accuracy/drift?device=h100-sxm&engine=vllm").json()["items"]
        tpot = next(d for d in found if (d["metric"], d["to_version"]) == ("time_per_output_token", "0.31.0"))
        assert tpot["from_version"] == "0.30.0"
        assert tpot["median_change_fraction"] == pytest.approx(0.25, abs=0.06)
        assert client.get("/v1/accuracy/drift?device=l40s").json()["items"] == []


class TestMeasurementsWanted:
    def test_the_most_decisive_first_and_ready_to_queue(self, client: TestClient) -> None:
        plan = client.post("/v1/recommendations", json=RECOMMENDATION).json()
        wanted = client.get(f"/v1/recommendations/{plan['id']}/measurements-wanted").json()["items"]
        decides = [float(w["decides_usd_per_hour"]) for w in wanted]
        assert decides == sorted(decides, reverse=True)
        assert decides[0] > 0
        assert {line["device"] for line in plan["plan"]} <= {w["measurement"]["device"] for w in wanted}
        queued = client.post("/v1/measurements", json=wanted[0]["measurement"])
        assert queued.status_code == 201, queued.text
        assert queued.json()["wanted"]["recommendation"] == plan["id"]

    def test_an_unknown_recommendation(self, client: TestClient) -> None:
        assert client.get("/v1/recommendations/rec_none/measurements-wanted").status_code == 404
