"""Adapters over one base, over HTTP: estimated, planned, deployed, and refused where they cannot be."""

import json
from typing import Any, ClassVar

import pytest
from fastapi.testclient import TestClient

from tests.bench.adapters_images import MEASURED, OTHER_HOST
from tests.service.bodies import changed, estimated

ESTIMATE: dict[str, Any] = {
    "llm": "llama-3.1-8b",
    "device": "h100-sxm",
    "traffic": {"prompt_tokens": 512, "output_tokens": 128},
    "load": {"kind": "closed", "concurrency": 16, "requests": 64},
}
ADAPTERS: dict[str, Any] = {"count": 32, "rank": 16}
PLAN: dict[str, Any] = {
    "workloads": [
        {
            "name": "tenants",
            "llm": "llama-3.1-8b",
            "traffic": {"requests_per_s": 8, "prompt_tokens": 512, "output_tokens": 128},
            "targets": {"tpot_ms": {"p95": 40}},
            "adapters": ADAPTERS,
        }
    ],
    "limits": {"devices": ["h100-sxm"], "sourcing": "any"},
    "alternatives": 0,
}


class TestEstimates:
    def test_they_take_memory_and_time_and_nobody_measured_them(self, client: TestClient) -> None:
        plain, adapted = estimated(client, ESTIMATE), estimated(client, ESTIMATE | {"adapters": ADAPTERS})
        assert adapted["outcome"] == "estimated", adapted
        held = adapted["adapters"]
        assert (held["slots"], held["rank"], held["mib_each"], held["resident_fraction"]) == (32, 16, 80.0, 1.0)
        assert held["gib_on_device"] == 2.5
        assert adapted["memory"]["weights_gib"] == pytest.approx(plain["memory"]["weights_gib"] + 2.5, abs=0.002)
        assert adapted["memory"]["kv_cache_tokens"] < plain["memory"]["kv_cache_tokens"]
        assert 1 < held["different_in_batch"] < 16
        assert adapted["tpot_ms"]["mean"]["expected"] > plain["tpot_ms"]["mean"]["expected"]
        assert (plain["basis"], adapted["basis"], plain["adapters"]) == ("measured", "borrowed", None)
        named = {term["term"] for term in adapted["step"]}
        assert {"adapters", "adapter_overhead"} <= named

    def test_what_has_no_slot_is_loaded_and_fewer_run_at_once(self, client: TestClient) -> None:
        few = estimated(client, ESTIMATE | {"adapters": ADAPTERS | {"slots": 4}})
        held = few["adapters"]
        assert held["resident_fraction"] == pytest.approx(4 / 32, abs=0.01)
        assert held["load_ms"] == pytest.approx(80 * 2**20 / 63e9 * 1e3, rel=1.0)
        every = estimated(client, ESTIMATE | {"adapters": ADAPTERS})
        assert (
            few["ttft_ms"]["mean"]["expected"] > 2.0 * every["ttft_ms"]["mean"]["expected"]
        )  # sixteen name 12.8 on average
        assert few["tpot_ms"]["mean"]["expected"] < every["tpot_ms"]["mean"]["expected"]
        skewed = estimated(client, ESTIMATE | {"adapters": ADAPTERS | {"slots": 4, "zipf_exponent": 1.5}})
        assert skewed["adapters"]["resident_fraction"] > held["resident_fraction"]

    @pytest.mark.parametrize(
        ("body", "reason"),
        [
            ({"engine": {"name": "llama.cpp"}}, "adapters_not_in_engine"),
            ({"adapters": {"count": 2, "rank": 1024}}, "adapter_rank_not_in_engine"),
            ({"llm": "mixtral-8x7b"}, "adapters_not_modelled"),
            ({"adapters": {"count": 10_000, "rank": 64}}, None),
        ],
    )
    def test_what_cannot_be_is_refused_by_name(
        self, client: TestClient, body: dict[str, Any], reason: str | None
    ) -> None:
        found = estimated(client, ESTIMATE | {"adapters": ADAPTERS} | body)
        if reason is None:
            assert found["outcome"] == "does_not_fit"
        else:
            assert (found["outcome"], found["reason"]) == ("unsupported", reason), found

    def test_adapters_larger_than_what_they_adapt_are_refused(self, client: TestClient) -> None:
        body = ESTIMATE | {"llm": "qwen3-0.6b", "adapters": {"count": 1, "rank": 600}}
        found = estimated(client, body)
        assert (found["outcome"], found["reason"]) == ("unsupported", "invalid_input")
        assert "no smaller than the matrices" in found["detail"]

    @pytest.mark.parametrize(
        "adapters",
        [
            {"count": 0}, {"count": 10**9}, {"count": 2, "rank": 0}, {"count": 2, "slots": 3}, {"count": 2, "shares": [0.5]},
            {"count": 2, "shares": [0.5, 0.4]}, {"count": 1, "shares": [1.0], "zipf_exponent": 1}, {"count": 2, "rank": "many"},
            {"count": 2, "target_modules": []}, {"count": 2, "target_modules": ["lm_head"]}, {},
        ],
    )  # fmt: skip
    def test_mistakes_are_said(self, client: TestClient, adapters: dict[str, Any]) -> None:
        answer = client.post("/v1/estimates", json={"estimates": [ESTIMATE | {"adapters": adapters}]})
        assert answer.status_code == 422
        assert "/estimates/0/adapters" in answer.json()["errors"][0]["pointer"]


class TestMixedRanks:
    RANKS: ClassVar[list[int]] = [8] * 20 + [64] * 12
    MIXED: ClassVar[dict[str, Any]] = {"count": 32, "rank": RANKS, "slots": 8, "zipf_exponent": 0.5}

    def of(self, client: TestClient, engine: str, **given: Any) -> dict[str, Any]:
        return estimated(client, ESTIMATE | {"engine": {"name": engine}, "adapters": self.MIXED | given})

    def test_slots_have_room_for_the_largest(self, client: TestClient) -> None:
        for engine in ("vllm", "sglang"):
            found, largest = self.of(client, engine), self.of(client, engine, rank=64)
            assert found["outcome"] == "estimated", found
            assert found["adapters"]["rank"] == 64
            assert 8 < found["adapters"]["mean_rank"] < 64
            assert found["adapters"]["gib_on_device"] == largest["adapters"]["gib_on_device"]
            assert found["memory"] == largest["memory"]
            assert found["adapters"]["load_ms"] < largest["adapters"]["load_ms"]

    def test_time_is_the_largests_where_an_engine_multiplies_all_of_a_slot(self, client: TestClient) -> None:
        held = {"slots": 32}
        padded, largest = (self.of(client, "vllm", **held, rank=rank)["step"] for rank in (self.RANKS, 64))
        assert padded == largest
        own, largest = (self.of(client, "sglang", **held, rank=rank)["tpot_ms"]["mean"] for rank in (self.RANKS, 64))
        assert own["expected"] < largest["expected"]

    def test_the_order_is_that_of_popularity(self, client: TestClient) -> None:
        first = self.of(client, "vllm", zipf_exponent=2, rank=[64] + [8] * 31)["adapters"]
        last = self.of(client, "vllm", zipf_exponent=2, rank=[8] * 31 + [64])["adapters"]
        shares = self.of(client, "vllm", zipf_exponent=None, shares=[0.9] + [0.1 / 31] * 31, rank=[64] + [8] * 31)
        assert first["mean_rank"] > 30 > last["mean_rank"]
        assert shares["adapters"]["mean_rank"] == pytest.approx(0.9 * 64 + 0.1 * 8, rel=0.01)

    @pytest.mark.parametrize(
        ("rank", "status"), [([8] * 31, 422), ([], 422), ([8] * 31 + [0], 422), ([8] * 31 + ["x"], 422), ([[8]], 422)]
    )
    def test_ranks_that_are_none_are_refused(self, client: TestClient, rank: Any, status: int) -> None:
        body = ESTIMATE | {"adapters": self.MIXED | {"rank": rank}}
        response = client.post("/v1/estimates", json={"estimates": [body]})
        assert response.status_code == status, response.text
        assert all(one["pointer"].startswith("/estimates/0/adapters") for one in response.json()["errors"])

    def test_one_that_is_too_large_is_enough(self, client: TestClient) -> None:
        found = self.of(client, "vllm", rank=[8] * 31 + [1024])
        assert (found["outcome"], found["reason"]) == ("unsupported", "adapter_rank_not_in_engine")
        body = changed(PLAN, "workloads/0/adapters", self.MIXED | {"rank": [8] * 31 + [4096]})
        refused = client.post("/v1/recommendations", json=body)
        assert refused.status_code == 422
        assert "no smaller than the matrices" in refused.text

    def test_a_plan_tells_the_engine_the_largest(self, client: TestClient) -> None:
        answer = client.post("/v1/recommendations", json=changed(PLAN, "workloads/0/adapters", self.MIXED)).json()
        assert answer["request"]["workloads"][0]["adapters"]["rank"] == self.RANKS
        files = client.get(f"/v1/recommendations/{answer['id']}/deployments", params={"target": "vllm"}).json()["files"]
        assert any("--max-lora-rank 64" in one["content"] for one in files)


class TestPlans:
    def test_one_base_serves_all_tenants(self, client: TestClient) -> None:
        plain = changed(PLAN, "workloads/0/adapters", None)
        with_them, without = (client.post("/v1/recommendations", json=body).json() for body in (PLAN, plain))
        assert with_them["outcome"] == without["outcome"] == "optimal", with_them
        dearer = float(with_them["totals"]["usd_per_hour"]) >= float(without["totals"]["usd_per_hour"])
        slower = (
            with_them["plan"][0]["predicted"]["tpot_ms"]["mean"]["expected"]
            > without["plan"][0]["predicted"]["tpot_ms"]["mean"]["expected"]
        )
        assert dearer
        assert slower
        assert {line["engine"] for line in with_them["plan"]} == {"vllm"}

    def test_deployments_tell_the_engine(self, client: TestClient) -> None:
        made = client.post("/v1/recommendations", json=PLAN).json()
        answer = client.get(f"/v1/recommendations/{made['id']}/deployments", params={"target": "vllm"})
        assert answer.status_code == 200, answer.text
        text = answer.text
        for option in ("--enable-lora", "--max-loras 32", "--max-lora-rank 16", "--max-cpu-loras 32"):
            assert option in text

    def test_what_is_too_large_is_a_mistake_of_the_request(self, client: TestClient) -> None:
        body = changed(PLAN, "workloads/0/adapters", {"count": 1, "rank": 4096})
        answer = client.post("/v1/recommendations", json=body)
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"] == "/workloads/0/adapters"

    def test_an_engine_without_adapters_is_refused_by_name(self, client: TestClient) -> None:
        body = changed(PLAN, "workloads/0/engines", ["llama.cpp"])
        answer = client.post("/v1/recommendations", json=body)
        assert answer.status_code == 422 or answer.json()["outcome"] == "infeasible", answer.text
        assert "adapters" in answer.text or "engine" in answer.text


class TestMeasuredLoads:
    """Adapters were measured after all intervals had been fitted, on runs without any."""

    def test_intervals_hold_what_was_measured_and_say_something(self, client: TestClient) -> None:
        """They were as wide as for a class of models of which no run is known, and that twice over."""
        files = (MEASURED, OTHER_HOST)
        runs = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
        inside: dict[str, list[bool]] = {"ttft_ms": [], "tpot_ms": []}
        for run in runs:
            if not run.get("adapters") or not run.get("output"):
                continue
            load = {"kind": "closed", "concurrency": run["concurrency"], "requests": run["requests"]}
            found = estimated(client, self.body(run) | {"load": load})
            assert found["basis"] == "borrowed"
            for metric, held in inside.items():
                interval = found[metric]["mean"]
                held.append(interval["low"] <= run[metric] <= interval["high"])
                assert interval["high"] < 4.0 * interval["low"], (run["id"], metric, interval)
        for held in inside.values():
            assert len(held) >= 8
            assert sum(held) >= 0.85 * len(held), inside

    @staticmethod
    def body(run: dict[str, Any]) -> dict[str, Any]:
        adapters = {"count": run["adapters"], "rank": run["rank"], "zipf_exponent": run["zipf"]}
        adapters["slots"] = min(run["slots"], run["adapters"])
        lengths = {f"{kind}_tokens": {"distribution": "fixed", "tokens": run[kind]} for kind in ("prompt", "output")}
        return {"llm": run["llm"], "device": "h100-sxm", "traffic": lengths, "adapters": adapters}
