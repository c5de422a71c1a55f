"""POST /v1/benchmarks/training-runs over HTTP: what is read from logs, what is refused, what it does to estimates and plans."""

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service.benchmarks.reading_error import ReadingError
from service.benchmarks.training_runs.importers import READERS, read_hf_trainer, read_megatron, read_torchtitan

PATH = "/v1/benchmarks/training-runs"
LOGS = Path(__file__).parent.parent / "fixtures" / "training"
RUN: dict[str, Any] = {
    "llm": "llama-3.1-8b", "device": "h100-sxm", "devices": 8, "method": "pretrain", "sequence_tokens": 8192,
    "global_batch_sequences": 16, "micro_batch_sequences": 2, "stack": "torchtitan", "layout": {"tensor_parallel": 1},
}  # fmt: skip


def log(name: str) -> str:
    return (LOGS / name).read_text(encoding="utf-8")


class TestLogs:
    def test_torchtitan_after_its_first_steps(self) -> None:
        read = read_torchtitan(log("torchtitan.log"))
        assert (read.tokens_per_s_per_device, read.peak_memory_gib, read.steps) == (5762.0, 76.98, 3)

    def test_megatron_by_its_time_and_batch(self) -> None:
        read = read_megatron(log("megatron.log"))
        assert read.step_s == pytest.approx(8.0)
        assert (read.global_batch_sequences, read.peak_memory_gib) == (128, 65.0)

    def test_trainer_by_its_summary_however_it_was_kept(self) -> None:
        printed = read_hf_trainer(log("hf_trainer.log"))
        assert (printed.step_s, printed.global_batch_sequences) == (2.5, 32)
        summary = {"train_runtime": 640.0, "train_samples_per_second": 12.8, "train_steps_per_second": 0.4}
        assert read_hf_trainer(json.dumps(summary)) == printed
        assert read_hf_trainer(json.dumps({"log_history": [{"loss": 1.0}, summary]})) == printed
        assert read_hf_trainer(json.dumps(summary | {"train_tokens_per_second": 9_000.0})).tokens_per_s == 9_000.0

    def test_trainer_of_release_5_writes_figures_as_text(self) -> None:
        printed = read_hf_trainer(log("hf_trainer_5.log"))
        assert printed.step_s == pytest.approx(1.0 / 0.4)
        assert printed.global_batch_sequences == 4

    @pytest.mark.parametrize("tool", sorted(READERS))
    @pytest.mark.parametrize("text", ["{", "nothing here", "[]", '{"train_runtime": 1}', "step: 1 tps: 0", "\x00" * 50])
    def test_what_says_no_rate_is_refused(self, tool: str, text: str) -> None:
        with pytest.raises(ReadingError):
            READERS[tool](text)


def uploaded(client: TestClient, **changes: Any) -> dict[str, Any]:
    answer = client.post(PATH, json=RUN | changes)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_log_is_stored_once_and_listed(client: TestClient) -> None:
    asked = {"log": {"tool": "torchtitan", "content": log("torchtitan.log")}}
    run = uploaded(client, **asked)
    assert (run["tokens_per_s_per_device"], run["status"], run["stack"]) == (5762.0, "accepted", "torchtitan")
    again = client.post(PATH, json=RUN | asked)
    assert (again.status_code, again.json()["id"]) == (200, run["id"])
    assert client.get(run["link"]).json() == run
    page = client.get(PATH, params={"llm": "llama-3.1-8b"}).json()
    assert [one["id"] for one in page["items"]] == [run["id"]]
    assert client.get(PATH, params={"device": "b200-sxm"}).json()["items"] == []
    assert client.post(f"{run['link']}/retract").json()["status"] == "retracted"


def test_it_corrects_later_estimates_until_it_is_retracted(client: TestClient) -> None:
    case = {key: RUN[key] for key in RUN if key != "devices"} | {"devices": 64, "global_batch_sequences": 128}
    ask = {"estimates": [case]}
    before = client.post("/v1/training/estimates", json=ask).json()["estimates"][0]
    run = uploaded(client, tokens_per_s_per_device=3_000.0)
    after = client.post("/v1/training/estimates", json=ask).json()["estimates"][0]
    factor = 3_000.0 / run["predicted_tokens_per_s_per_device"]
    rate = "tokens_per_s_per_device"
    assert after[rate]["expected"] == pytest.approx(before[rate]["expected"] * factor)
    assert after[rate]["high"] / after[rate]["low"] < before[rate]["high"] / before[rate]["low"]
    assert run["id"] in after["evidence"]
    assert client.post(f"{run['link']}/retract").json()["status"] == "retracted"
    assert client.post("/v1/training/estimates", json=ask).json()["estimates"][0] == before


def test_it_says_nothing_about_another_method_precision_or_software(client: TestClient) -> None:
    uploaded(client, tokens_per_s_per_device=3_100.0)
    for change in ({"method": "lora"}, {"precision": "fp8"}, {"stack": "megatron-bridge"}, {"device": "h200-sxm"}):
        answer = client.post("/v1/training/estimates", json={"estimates": [RUN | change]}).json()["estimates"][0]
        assert not any(name.startswith("trun_") for name in answer["evidence"]), change


def test_plans_are_made_with_it(client: TestClient) -> None:
    job = {
        "name": "tune",
        "llm": "llama-3.1-8b",
        "method": "lora",
        "tokens": 5e7,
        "sequence_tokens": 4096,
        "max_devices": 1,
    }
    asked = {"jobs": [job], "limits": {"devices": ["h100-sxm"]}}
    before = client.post("/v1/training/recommendations", json=asked).json()
    line = before["plan"][0]
    slow = line["tokens_per_s_per_device"]["expected"] / 2
    run = uploaded(
        client, devices=1, method="lora", sequence_tokens=4096, global_batch_sequences=line["global_batch_sequences"],
        stack=None, layout={}, micro_batch_sequences=None, tokens_per_s_per_device=slow,
    )  # fmt: skip
    after = client.post("/v1/training/recommendations", json=asked).json()
    assert after["plan"][0]["duration_days"]["expected"] == pytest.approx(2 * line["duration_days"]["expected"])
    assert run["id"] in after["plan"][0]["evidence"]


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({}, ""),
        ({"tokens_per_s_per_device": 5e3, "step_s": 1.0}, ""),
        ({"tokens_per_s_per_device": 5e3, "llm": "nobody-9b"}, "/llm"),
        ({"tokens_per_s_per_device": 5e3, "device": "abacus"}, "/device"),
        ({"tokens_per_s_per_device": 5e3, "device": "inferentia2"}, "/device"),
        ({"tokens_per_s_per_device": 5e6}, "/tokens_per_s_per_device"),
        ({"tokens_per_s_per_device": 5e3, "peak_memory_gib": 200.0}, "/peak_memory_gib"),
        ({"step_s": 4.0, "global_batch_sequences": None}, "/global_batch_sequences"),
        ({"step_s": 4.0, "sequence_tokens": None}, "/sequence_tokens"),
        ({"log": {"tool": "megatron", "content": "no such line"}}, "/log/content"),
        ({"log": {"tool": "abacus", "content": "x"}}, "/log/tool"),
        ({"tokens_per_s_per_device": 5e3, "layout": {"tensor_parallel": 3}}, "/layout/tensor_parallel"),
    ],
)
def test_bad_input_names_the_field(client: TestClient, changes: dict[str, Any], pointer: str) -> None:
    answer = client.post(PATH, json=RUN | changes)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["pointer"] == pointer


def test_a_run_that_is_not_stored_is_not_found(client: TestClient) -> None:
    assert client.get(f"{PATH}/trun_none").status_code == 404
    assert client.post(f"{PATH}/trun_none/retract").status_code == 404
