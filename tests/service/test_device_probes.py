"""A probe of a device moves that device's predictions, cites itself, and gives way to what serving runs taught."""

import copy
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from service.corrections.learn import refresh
from service.corrections.queries import changed_cells
from tests.conftest import FixedClock
from tests.service.bodies import ESTIMATE

TRAFFIC: dict[str, Any] = {
    "prompt_tokens": {"distribution": "fixed", "tokens": 500},
    "output_tokens": {"distribution": "fixed", "tokens": 100},
}
CLOSED = {"kind": "closed", "concurrency": 4, "requests": 12}
# Datasheet peaks: memory GB/s, dense bf16 TFLOP/s, link GB/s in one direction; devices nobody has fitted.
PEAKS = {
    "mi300x": (5300.0, 1307.4, 64.0),
    "a100-sxm-80": (2039.0, 312.0, 300.0),
    "l40s": (864.0, 362.0, None),
    "h800-sxm": (3350.0, 989.4, 200.0),
    "h200-sxm": (4800.0, 989.5, 450.0),
}


def settled(app: FastAPI) -> None:
    """Make what waits into a new set, as the worker does a moment later."""
    while True:
        with app.state.database.writing() as session:
            refresh(session, app.state.clock())
            if not changed_cells(session, 1):
                return


def probe(device: str, share: float, **changes: Any) -> dict[str, Any]:
    """Figures of a device that reaches this share of its datasheet's rates."""
    memory, dense, link = PEAKS[device]
    figures: dict[str, Any] = {
        "device": device, "name": f"test {share}", "torch": "2.11.0",
        "copy": [
            {"bytes": 64_000_000, "read_plus_write_gb_per_s": 0.7 * share * memory},
            {"bytes": 2_048_000_000, "read_plus_write_gb_per_s": share * memory},
        ],
        "gemm": [{"dtype": "bf16", "m": 8192, "n": 8192, "k": 8192, "tflop_per_s": share * dense}],
    }  # fmt: skip
    if link is not None:
        figures["all_reduce"] = [
            {"world_size": 2, "bytes": size, "us": 20.0 + size / (share * link * 1e3)}
            for size in (8_388_608, 67_108_864)
        ]
    return figures | changes


def upload(client: TestClient, app: FastAPI, figures: dict[str, Any]) -> Any:
    answer = client.post("/v1/device-measurements", json=figures)
    assert answer.status_code == 201, answer.text
    settled(app)
    return answer.json()


def estimate(client: TestClient, device: str, **changes: Any) -> Any:
    case = copy.deepcopy(ESTIMATE) | {
        "device": device, "llm": "llama-3.1-8b", "layout": {}, "precision": {"weights": "bf16"}, "traffic": TRAFFIC,
        "load": CLOSED,
    } | changes  # fmt: skip
    (answer,) = client.post("/v1/estimates", json={"estimates": [case]}).json()["estimates"]
    assert answer["outcome"] == "estimated", answer
    return answer


def tpot(answer: Any) -> float:
    return float(answer["tpot_ms"]["mean"]["expected"])


@pytest.mark.parametrize("device", ["mi300x", "a100-sxm-80"])
def test_an_accepted_probe_moves_its_device_and_is_cited(client: TestClient, app: FastAPI, device: str) -> None:
    before, other = estimate(client, device), estimate(client, "l40s")
    answer = upload(client, app, probe(device, 0.4))
    assert (answer["status"], answer["reasons"]) == ("accepted", [])
    read = next(r for r in answer["refines"] if r["constant"] == "weight_read_efficiency")
    assert read["probed_fraction"] == pytest.approx(0.4)
    assert read["value"] == pytest.approx(0.4 * read["engine_share"])
    assert read["low"] < read["value"] < read["high"]
    slow = estimate(client, device)
    assert answer["id"] in slow["evidence"]
    assert answer["id"] not in before["evidence"]
    # Decoding eight billion weights is bound by reading them: half the share is nearly twice the time.
    assert tpot(slow) > 1.3 * tpot(before)
    better = upload(client, app, probe(device, 0.9))
    fast = estimate(client, device)
    assert tpot(fast) < tpot(slow)  # the median of the two
    assert {answer["id"], better["id"]} <= set(fast["evidence"])
    assert estimate(client, "l40s") == other
    listed = client.get("/v1/device-measurements", params={"device": device}).json()["items"]
    assert [len(item["refines"]) for item in listed] == [len(answer["refines"])] * 2


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"copy": [{"bytes": 2_048_000_000, "read_plus_write_gb_per_s": 9000.0}]}, "at 9000 GB/s, peak 864"),
        ({"gemm": [{"dtype": "bf16", "m": 8192, "n": 8192, "k": 8192, "tflop_per_s": 1979.0}]}, "dense peak 362"),
        ({"copy": [{"bytes": 2_048_000_000, "read_plus_write_gb_per_s": 0.8}]}, "are the units right?"),
        ({"gemm": [{"dtype": "bf16", "m": 8192, "n": 8192, "k": 8192, "tflop_per_s": 0.3}]}, "are the units right?"),
        ({"name": "NVIDIA H200"}, "which is h200-sxm, not l40s"),
        (
            {"all_reduce": [{"world_size": 2, "bytes": b, "us": 900.0} for b in (8_388_608, 67_108_864)]},
            "take no longer the more bytes they move",
        ),
    ],
)
def test_nonsense_is_quarantined_and_moves_nothing(
    client: TestClient, app: FastAPI, changes: dict[str, Any], reason: str
) -> None:
    before = estimate(client, "l40s")
    answer = upload(client, app, probe("l40s", 0.5, **changes))
    assert answer["status"] == "quarantined"
    assert reason in " ".join(answer["reasons"])
    assert answer["refines"] == []
    assert estimate(client, "l40s") == before


def test_an_all_reduce_faster_than_the_link_is_quarantined(client: TestClient, app: FastAPI) -> None:
    sizes = (8_388_608, 67_108_864)
    fast = [{"world_size": 2, "bytes": size, "us": size / 1e6} for size in sizes]  # 1,000 GB/s
    answer = upload(client, app, probe("h200-sxm", 0.5, all_reduce=fast))
    assert answer["status"] == "quarantined"
    assert "GB/s, the link 450" in answer["reasons"][0]


def test_what_serving_runs_of_the_device_fitted_stays(client: TestClient, app: FastAPI) -> None:
    before = estimate(client, "h200-sxm")
    answer = upload(client, app, probe("h200-sxm", 0.3))
    assert answer["status"] == "accepted"
    assert estimate(client, "h200-sxm") == before


def test_a_configuration_with_runs_of_its_own_is_not_counted_twice(
    client: TestClient, app: FastAPI, clock: FixedClock
) -> None:
    clock.advance(days=1)
    before = estimate(client, "h800-sxm")
    ttft, tpot_ms = before["ttft_ms"]["mean"]["expected"] * 1.3, tpot(before) * 1.3
    e2e = ttft + 99 * tpot_ms
    rate = 3.8 / (e2e / 1e3)
    run = {
        "context": {
            "device": "h800-sxm", "devices": 1, "llm": "llama-3.1-8b", "precision": {"weights": "bf16"},
            "engine": {"name": "vllm", "version": "0.24.0"}, "notes": "probed and measured",
        },
        "load": CLOSED | {"requests": 40}, "traffic": TRAFFIC,
        "results": {
            "completed": 40, "failed": 0, "duration_s": 40 / rate, "requests_per_s": rate,
            "output_tokens_per_s": rate * 100, "ttft_ms": {"mean": ttft}, "tpot_ms": {"mean": tpot_ms},
            "e2e_ms": {"mean": e2e},
        },
    }  # fmt: skip
    run_id = client.post("/v1/benchmarks", json=run).json()["id"]
    settled(app)
    measured, unmeasured = estimate(client, "h800-sxm"), estimate(client, "h800-sxm", llm="qwen3-8b")
    assert run_id in measured["evidence"]
    probe_id = upload(client, app, probe("h800-sxm", 0.3))["id"]
    assert estimate(client, "h800-sxm") == measured
    moved = estimate(client, "h800-sxm", llm="qwen3-8b")
    assert probe_id in moved["evidence"]
    assert tpot(moved) > tpot(unmeasured)
    # A further run is compared with what the factors start from, probed or not.
    run["context"]["notes"] = "probed and measured again"  # type: ignore[index]
    again = client.post("/v1/benchmarks", json=run).json()["id"]
    settled(app)
    twice = estimate(client, "h800-sxm")
    assert {run_id, again} <= set(twice["evidence"])
    assert tpot(measured) < tpot(twice) < tpot_ms


def test_a_probe_starts_new_search_spaces(client: TestClient, app: FastAPI, clock: FixedClock) -> None:
    """Plans are made from spaces kept by the facts they start from; constants are among those."""
    with app.state.database.reading() as session:
        before = app.state.snapshots.at(session, clock()).key
    upload(client, app, probe("l40s", 0.6))
    with app.state.database.reading() as session:
        after = app.state.snapshots.at(session, clock())
    assert after.key != before
    assert any(prior.device == "l40s" and prior.evidence for prior in after.priors)
