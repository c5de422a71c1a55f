"""Files that start training: every option that they print is one that the programme documents."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service.training.deployments import MEGATRON_FORMATS, TORCHTITAN_FORMATS, TRAINER_FORMATS
from tests.service.test_training_answers import PATH, TRAIN, files_of
from tests.service.test_training_plans import TUNE, planned

DOCUMENTED: dict[str, set[str]] = {
    programme: set(row["options"])
    for programme, row in tomllib.loads(
        (Path(__file__).parents[1] / "fixtures/training/documented_options.toml").read_text()
    ).items()
}
ALL_WEIGHTS = TUNE | {"method": "full", "global_batch_sequences": 32}
TITAN = {"stack": "torchtitan", "precision": "bf16"}
PREFER = {"name": "prefer", "llm": "llama-3.1-8b", "method": "dpo", "adapters": "qlora", "samples": 60_000, "sequence_tokens": 1024,
          "global_batch_sequences": 128, "max_devices": 8}  # fmt: skip
CASES: list[tuple[dict[str, Any], str, str]] = [
    (TUNE, "torchrun", "trl"),
    (TUNE | {"precision": "fp16", "method": "qlora"}, "slurm", "trl"),
    (ALL_WEIGHTS | {"sharding": "zero3", "recompute": "full", "layout": {"data_parallel": 8}}, "torchrun", "trl"),
    (PREFER | {"reference": "precomputed"}, "slurm", "trl"),
    (TRAIN, "megatron", "megatron"),
    (TRAIN | {"layout": {"pipeline_parallel": 4, "virtual_pipeline": 2}, "recompute": "full"}, "slurm", "megatron"),
    (TRAIN | {"sharding": "zero3", "recompute": "selective", "stack": "megatron-bridge", "precision": "bf16"}, "slurm", "megatron"),
    (TRAIN | TITAN | {"layout": {"pipeline_parallel": 4, "virtual_pipeline": 2}}, "torchtitan", "torchtitan"),
    (TRAIN | TITAN | {"precision": "fp8"}, "slurm", "torchtitan"),
]  # fmt: skip
"""Job, target, and the programme that it is started with."""


@pytest.mark.parametrize(("job", "target", "programme"), CASES)
def test_every_option_is_documented(client: TestClient, job: dict[str, Any], target: str, programme: str) -> None:
    plan = planned(client, job, devices=["h100-sxm"])
    files = files_of(client, plan, target)
    for path, content in files.items():
        if path.endswith(".toml"):
            told = {f"{table}.{key}" for table, values in tomllib.loads(content).items() for key in values}
            assert told <= DOCUMENTED[programme]
            continue
        assert set(re.findall(r"^#SBATCH --([a-z-]+)", content, re.MULTILINE)) <= DOCUMENTED["sbatch"]
        (line,) = (one for one in content.splitlines() if "torchrun" in one)
        launcher, start, own = line.partition(" -m " if " -m " in line else " pretrain_gpt.py")
        assert start
        assert set(re.findall(r"(?<=\s)--([\w.-]+)", launcher)) <= DOCUMENTED["torchrun"]
        printed = set(re.findall(r"(?<=\s)--([\w.-]+)", own))
        assert printed
        assert printed <= DOCUMENTED[programme], printed - DOCUMENTED[programme]


def test_slurm_gives_a_job_the_slow_end_of_its_interval(client: TestClient) -> None:
    plan = planned(client, TRAIN, devices=["h100-sxm"])
    (line,) = plan["plan"]
    (script,) = (content for path, content in files_of(client, plan, "slurm").items() if path.endswith(".sbatch"))
    ((days, hours),) = re.findall(r"^#SBATCH --time=(\d+)-(\d\d):00:00$", script, re.MULTILINE)
    slow = 24 * line["duration_days"]["high"]
    assert slow <= 24 * int(days) + int(hours) < slow + 1


@pytest.mark.parametrize(
    ("job", "target", "formats"),
    [
        (ALL_WEIGHTS, "torchrun", TRAINER_FORMATS),
        (TRAIN, "megatron", MEGATRON_FORMATS),
        (TRAIN | {"stack": "torchtitan"}, "torchtitan", TORCHTITAN_FORMATS),
    ],
)
def test_a_precision_is_told_or_refused(
    client: TestClient, job: dict[str, Any], target: str, formats: dict[str, Any]
) -> None:
    for precision in ("bf16", "fp8", "nvfp4"):
        asked = {"jobs": [job | {"precision": precision}], "limits": {"devices": ["b200-sxm"]}}
        plan = client.post(PATH, json=asked).json()
        assert plan["outcome"] == "optimal"
        answer = client.get(f"{plan['link']}/deployments", params={"target": target})
        assert answer.status_code == (200 if precision in formats else 409), precision


def test_adapters_are_put_where_they_were_predicted(client: TestClient) -> None:
    """TRL would load frozen weights at 32 bits and PEFT put adapters on two matrices of a layer."""
    (script,) = files_of(client, planned(client, TUNE, devices=["h100-sxm"]), "torchrun").values()
    assert "--dtype bfloat16" in script
    assert "--lora_target_modules all-linear" in script
