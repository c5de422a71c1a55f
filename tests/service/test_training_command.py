"""``clusterwright training why-not``, ``deploy`` and ``upload``, against an application in this process."""

import json

import pytest
from fastapi.testclient import TestClient

from service.cli import training_stored
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
