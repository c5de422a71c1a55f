"""How long further replicas take to answer, whether none may stand by, and what those that do cost."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import ValidationError

from catalog.readiness import PARTS, ReadinessRow, read_readiness
from service.deployments.plan import ReplicaKind
from service.deployments.readiness import readiness
from service.wire.deployments import ReadinessOut
from tests.service.deployments.plans import AWS, OWN, SPOT, line, plan, workload


def one(made: list[ReadinessOut]) -> ReadinessOut:
    (found,) = made
    return found


def test_the_whole_is_the_sum_of_its_parts_and_each_has_a_source() -> None:
    found = one(readiness(plan([workload("chat")], [line("chat", AWS)]), None))
    assert [part.part for part in found.parts] == list(PARTS)
    assert found.fast_s == pytest.approx(sum(part.fast_s for part in found.parts))
    assert found.slow_s == pytest.approx(sum(part.slow_s for part in found.parts))
    assert all(0.0 < part.fast_s <= part.slow_s for part in found.parts)
    assert all("https://" in part.source or "this project" in part.source for part in found.parts)
    assert found.spares is None


def test_weights_arrive_at_their_rate_on_every_machine_of_a_replica() -> None:
    """40 GB a device in the sample: two devices of one machine load 80 GB, eight of two machines 160 GB each."""
    (row,) = (r for r in read_readiness() if r.part == "weights")
    assert row.fast_bytes_per_s is not None
    for layout, on_one in (({"tensor_parallel": 2}, 80e9), ({"tensor_parallel": 8, "pipeline_parallel": 2}, 320e9)):
        found = one(readiness(plan([workload("chat")], [line("chat", OWN, layout=layout)]), None))
        (weights,) = (part for part in found.parts if part.part == "weights")
        assert weights.fast_s == pytest.approx(on_one / row.fast_bytes_per_s)


def test_machines_that_are_bought_are_there() -> None:
    assert "node" not in [p.part for p in one(readiness(plan([workload("c")], [line("c", OWN)]), None)).parts]


def test_what_nobody_published_is_named_and_no_whole_is_made_up() -> None:
    settings = {"engine": "llama.cpp", "engine_settings": {"name": "llama.cpp"}}
    found = one(readiness(plan([workload("chat")], [line("chat", AWS, **settings)]), 5.0))
    assert found.unknown == ["engine"]
    assert found.slow_s is None
    assert found.spares is None
    assert found.fast_s > 0.0
    assert not one(readiness(plan([waiting(60_000)], [line("chat", AWS, **settings)]), None)).scale_to_zero


def waiting(ttft_ms: float | None) -> Any:
    return workload("chat", **({} if ttft_ms is None else {"targets": {"ttft_ms": {"p95": ttft_ms}}}))


def test_none_may_stand_by_where_targets_allow_a_first_token_that_late() -> None:
    slow = one(readiness(plan([waiting(None)], [line("chat", AWS)]), None)).slow_s
    assert slow is not None
    for ttft_ms, allowed in ((None, True), (slow * 1e3 + 1.0, True), (slow * 1e3 - 1.0, False), (500.0, False)):
        assert one(readiness(plan([waiting(ttft_ms)], [line("chat", AWS)]), None)).scale_to_zero is allowed


class TestSpares:
    """A replica of the sample serves 12.5 / 2 requests a second for $10 / 2 an hour."""

    def test_a_rise_is_served_while_further_replicas_start(self) -> None:
        deployed = plan([workload("chat")], [line("chat", AWS)])
        slow = one(readiness(deployed, None)).slow_s
        assert slow is not None
        exact = 3 * 6.25 * 60.0 / slow
        for ramp, replicas in ((0.0, 0), (exact * 0.999, 3), (exact * 1.001, 4)):
            spares = one(readiness(deployed, ramp)).spares
            assert spares is not None
            assert spares.replicas == replicas
            assert Decimal(spares.usd_per_hour) == 5 * replicas

    def test_kinds_share_the_rise_as_they_share_the_load(self) -> None:
        lines = [line("chat", AWS, serves_requests_per_s=30.0), line("chat", SPOT, serves_requests_per_s=10.0)]
        found = readiness(plan([workload("chat")], lines), 100.0)
        counts = [one.spares.replicas for one in found if one.spares is not None]
        assert counts[0] == pytest.approx(counts[1], abs=1)  # three times the rise, by replicas three times as fast

    def test_replicas_that_serve_nothing_bring_none(self) -> None:
        deployed = plan([workload("chat")], [line("chat", AWS), line("chat", SPOT, serves_requests_per_s=0.0)])
        found = readiness(deployed, 1.0)
        assert found[1].spares is not None
        assert found[1].spares.replicas == 0


def test_memory_that_is_not_known_leaves_the_weights_open() -> None:
    deployed = plan([workload("chat")], [line("chat", AWS)])
    kinds: tuple[ReplicaKind, ...] = tuple(replace(kind, memory=None) for kind in deployed.kinds)
    assert one(readiness(replace(deployed, kinds=kinds), None)).unknown == ["weights"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"part": "node", "fast_s": 10.0, "slow_s": 5.0},
        {"part": "node", "fast_s": 10.0},
        {"part": "weights", "fast_s": 1.0, "slow_s": 2.0},
        {"part": "weights", "fast_bytes_per_s": 1e9, "slow_bytes_per_s": 2e9},
        {"part": "engine", "fast_s": 0.0, "slow_s": 2.0},
        {"part": "image", "fast_s": 1.0, "slow_s": 2.0, "fast_bytes_per_s": 1.0},
    ],
)
def test_rows_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    good = read_readiness()[0].model_dump()
    stated = {"engine": "*", "provenance": good["provenance"], **wrong}
    with pytest.raises(ValidationError):
        ReadinessRow.model_validate(stated)


class TestOverHttp:
    @pytest.fixture
    def recommendation(self, client: TestClient) -> str:
        traffic = {
            "requests_per_s": 5.0,
            "prompt_tokens": {"distribution": "fixed", "tokens": 500},
            "output_tokens": {"distribution": "fixed", "tokens": 100},
        }
        body = {
            "workloads": [{"name": "chat", "llm": "llama-3.1-8b", "traffic": traffic, "engines": ["vllm"]}],
            "limits": {"devices": ["h100-sxm", "h200-sxm"], "providers": ["aws"]},
            "alternatives": 0,
        }
        answer = client.post("/v1/recommendations", json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def test_a_plan_says_how_long_a_replica_takes_and_what_standing_by_costs(
        self, client: TestClient, recommendation: str
    ) -> None:
        path = f"/v1/recommendations/{recommendation}/deployments"
        plain = client.get(path, params={"target": "kubernetes"}).json()["readiness"]
        assert plain[0]["slow_s"] > plain[0]["fast_s"] > 200.0
        assert plain[0]["spares"] is None
        rising = client.get(path, params={"target": "kubernetes", "ramp": "2"}).json()["readiness"]
        assert rising[0]["spares"]["replicas"] >= 1
        assert float(rising[0]["spares"]["usd_per_hour"]) > 0.0

    @pytest.mark.parametrize("ramp", ["-1", "nan", "inf", "1e7", "fast", ""])
    def test_ramps_that_are_none_are_refused(self, client: TestClient, recommendation: str, ramp: str) -> None:
        answer = client.get(
            f"/v1/recommendations/{recommendation}/deployments", params={"target": "vllm", "ramp": ramp}
        )
        assert answer.status_code == 422, answer.text
        assert "ramp" in answer.text
