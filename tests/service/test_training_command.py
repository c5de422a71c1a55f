"""``clusterwright training why-not``, ``deploy`` and ``upload``, against an application in this process."""

import json

import pytest
from fastapi.testclient import TestClient

from service.cli import training, training_stored
from service.cli.main import build_parser
from service.settings import Settings
from tests.service.test_training_runs import LOGS
from tests.service.test_why_commands import Asked

JOB = {
    "name": "tune",
    "llm": "llama-3.1-8b",
    "method": "lora",
    "tokens": 5e7,
    "sequence_tokens": 4096,
    "max_devices": 8,
}


def test_each_command_says_what_the_api_does(
    client: TestClient, settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = {"jobs": [JOB], "limits": {"devices": ["h100-sxm"]}}
    plan = client.post("/v1/training/recommendations", json=asked).json()
    monkeypatch.setattr(Asked, "http", client, raising=False)
    monkeypatch.setattr(training_stored, "Client", Asked)
    parser = build_parser()

    def said(*words: str) -> str:
        assert training_stored.stored_command(parser.parse_args(["training", *words]), settings) == 0
        return capsys.readouterr().out

    other = said("why-not", plan["id"], "--device", "a100-sxm-80")
    assert "left out by limits.devices" in other
    assert "more than the plan" in other
    assert "#SBATCH --nodes=1" in said("deploy", plan["id"], "--target", "slurm")
    files = json.loads(said("deploy", plan["id"], "--json"))["files"]
    assert [file["path"] for file in files] == ["tune.sh"]
    uploaded = said(
        "upload", str(LOGS / "torchtitan.log"), "--tool", "torchtitan", "--llm", "llama-3.1-8b", "--device", "h100-sxm",
        "--devices", "8", "--method", "pretrain", "--sequence", "8192", "--batch", "16", "--stack", "torchtitan",
    )  # fmt: skip
    assert "5,762 tokens/s a device" in uploaded
    trainer = (
        "upload", str(LOGS / "hf_trainer_5.log"), "--tool", "hf_trainer", "--llm", "llama-3.1-8b", "--device", "h100-sxm",
        "--sequence", "4096", "--micro-batch", "2", "--stack", "hf-trainer",
    )  # fmt: skip
    as_it_was = said(*trainer, "--recompute", "full")
    assert abs(float(as_it_was.split("predicted ")[1].split(" %")[0])) < 25.0


def test_a_file_that_is_not_there_is_said(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "training",
        "upload",
        "/nowhere.log",
        "--tool",
        "megatron",
        "--llm",
        "llama-3.1-8b",
        "--device",
        "h100-sxm",
    ]
    assert training_stored.stored_command(build_parser().parse_args(words), settings) == 2
    assert "/nowhere.log" in capsys.readouterr().err


def test_a_commitment_and_hours_of_the_day_are_asked_for_and_told(
    client: TestClient, settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Asked, "http", client, raising=False)
    monkeypatch.setattr(training, "Client", Asked)
    parser = build_parser()
    job = ("train", "llama-3.1-8b", "--method", "lora", "--tokens", "50M", "--sequence", "4096", "--max-devices", "8")
    reserved = parser.parse_args([*job, "--device", "a100-sxm-40", "--commitment", "reserved_1y_no_upfront"])
    assert training.train_command(reserved, settings) == 0
    said = capsys.readouterr().out
    assert "committed to 1 × gcp:a2-highgpu-1g" in said
    assert "for 12 months" in said
    headline = said.splitlines()[0]
    assert "committed for 12 months, nothing more by the hour" in headline
    assert "$0.00" not in said
    bought = parser.parse_args([*job, "--device", "h100-sxm", "--buy", "hgx-h100-8=1", "--buy", "all", "--json"])
    assert training.train_command(bought, settings) == 0
    (owned,) = json.loads(capsys.readouterr().out)["own"]
    assert owned["region"] == "own"
    assert "hgx-h100-8" in [one["node"] for one in owned["machines"]]
    by_hour = parser.parse_args(
        [*job, "--days", "5", "--serving", "rec_1", "--serving-hourly-profile", ",".join(["0.5"] * 24)]
    )
    assert by_hour.serving_hourly_profile == [0.5] * 24
