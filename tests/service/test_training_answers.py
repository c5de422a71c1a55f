"""Stored training plans: read again, asked why not, started."""

import tomllib
from typing import Any

import pytest
import yaml
from fastapi.testclient import TestClient

from service.main import create_app
from service.settings import Settings
from tests.conftest import FixedClock
from tests.service.conftest import LOOPBACK
from tests.service.test_jobs import wait_for

PATH = "/v1/training/recommendations"
TUNE: dict[str, Any] = {
    "name": "tune", "llm": "llama-3.1-8b", "method": "lora", "tokens": 50_000_000, "sequence_tokens": 4096, "max_devices": 8,
}  # fmt: skip
TRAIN: dict[str, Any] = {
    "name": "train", "llm": "llama-3.1-70b", "method": "pretrain", "precision": "fp8", "sequence_tokens": 8192,
    "global_batch_sequences": 512, "tokens": 1e10, "max_devices": 256,
}  # fmt: skip


def planned(client: TestClient, *jobs: dict[str, Any], **limits: Any) -> dict[str, Any]:
    answer = client.post(PATH, json={"jobs": list(jobs), "limits": limits})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.fixture
def tune(client: TestClient) -> dict[str, Any]:
    return planned(client, TUNE, devices=["h100-sxm"])


def test_a_plan_is_read_again_as_it_was(client: TestClient, tune: dict[str, Any]) -> None:
    assert client.get(tune["link"]).json() == tune
    page = client.get(PATH).json()
    assert [(one["id"], one["usd"], one["llms"]) for one in page["items"]] == [
        (tune["id"], tune["solve"]["usd"], ["llama-3.1-8b"])
    ]
    assert client.get(f"{PATH}/train_none").status_code == 404


def test_the_same_key_is_the_same_plan(client: TestClient) -> None:
    asked = {"jobs": [TUNE], "limits": {"devices": ["h100-sxm"]}}
    first, again = (client.post(PATH, json=asked, headers={"Idempotency-Key": "k"}) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == first.json()


def test_a_plan_as_a_job_is_the_plan(seeded_url: str, clock: FixedClock) -> None:
    settings = Settings(database_url=seeded_url, shutdown_grace_s=0.5, jobs_in_service=1)
    asked, later = {"jobs": [TUNE], "limits": {"devices": ["h100-sxm"]}}, {"Prefer": "respond-async"}
    with TestClient(create_app(settings, clock), base_url="http://localhost", client=LOOPBACK) as client:
        answer = client.post(PATH, json=asked, headers=later)
        assert (answer.status_code, answer.json()["kind"]) == (202, "training_recommendation")
        job = wait_for(client, answer.json()["id"], "succeeded", "failed")
        assert job["problem"] is None
        found, now = client.get(job["result"]).json(), planned(client, TUNE, devices=["h100-sxm"])
        for one in (found, now):
            one.pop("id"), one.pop("link"), one.pop("created_at"), one["solve"].pop("seconds")
        assert found == now
        for wrong in ({"jobs": [TUNE | {"llm": "nobody-9b"}]}, asked | {"beside_fleet": "fleet_none"}):
            assert client.post(PATH, json=wrong, headers=later).status_code == 422


def test_why_not_is_what_the_same_request_for_that_device_costs(client: TestClient, tune: dict[str, Any]) -> None:
    answer = client.post(f"{tune['link']}/why-not", json={"device": "a100-sxm-80"}).json()
    alone = planned(client, TUNE, devices=["a100-sxm-80"])
    assert answer["usd"] == alone["solve"]["usd"]
    assert float(answer["extra_usd"]) == pytest.approx(float(answer["usd"]) - float(tune["solve"]["usd"]))
    assert answer["excluded_by"] == ["limits.devices"]
    assert not answer["in_plan"]
    assert answer["plan"][0]["device"] == "a100-sxm-80"
    own = client.post(f"{tune['link']}/why-not", json={"device": "h100-sxm"}).json()
    assert (own["in_plan"], own["extra_usd"], own["excluded_by"]) == (True, "0.000000", [])


@pytest.mark.parametrize(
    ("asked", "pointer"),
    [({}, ""), ({"device": "abacus"}, "/device"), ({"device": "h100-sxm", "job": "nobody"}, "/job")],
)
def test_why_not_of_what_is_not_there(
    client: TestClient, tune: dict[str, Any], asked: dict[str, Any], pointer: str
) -> None:
    answer = client.post(f"{tune['link']}/why-not", json=asked)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)


def files_of(client: TestClient, plan: dict[str, Any], target: str) -> dict[str, str]:
    answer = client.get(f"{plan['link']}/deployments", params={"target": target})
    assert answer.status_code == 200, answer.text
    return {file["path"]: file["content"] for file in answer.json()["files"]}


def test_fsdp_recomputes_layers_itself(client: TestClient) -> None:
    """The Trainer's own way would gather the weights once more."""
    job = TUNE | {
        "method": "full",
        "sharding": "zero3",
        "recompute": "full",
        "global_batch_sequences": 32,
        "layout": {"data_parallel": 8},
        "stack": "hf-trl",
    }
    plan = planned(client, job, devices=["h100-sxm"])
    (line,) = plan["plan"]
    assert (line["layout"]["sharding"], line["layout"]["recompute"]) == ("zero3", "full")
    assert line["devices"] > 1
    (script,) = files_of(client, plan, "torchrun").values()
    assert "--fsdp 'full_shard auto_wrap'" in script
    assert """--fsdp_config '{"activation_checkpointing": true}'""" in script
    assert "--gradient_checkpointing false" in script


def test_files_for_other_software_than_the_plans_say_so(client: TestClient) -> None:
    """Of a plan made for Megatron those for TorchTitan said nothing, and those for the Trainer called its weights random."""
    job = TUNE | {
        "method": "pretrain",
        "tokens": 2e9,
        "sequence_tokens": 8192,
        "global_batch_sequences": 128,
        "max_devices": 8,
    }
    told = {}
    for stack, target in (
        ("megatron", "megatron"), ("megatron", "torchtitan"), ("megatron", "slurm"), ("torchtitan", "torchtitan"),
        ("torchtitan", "torchrun"), ("maxtext", "slurm"),
    ):  # fmt: skip
        plan = planned(client, job | {"stack": stack}, devices=["h100-sxm"])
        answer = client.get(f"{plan['link']}/deployments", params={"target": target}).json()
        told[stack, target] = {note["about"]: note["text"] for note in answer["notes"]}
    for (stack, target), notes in told.items():
        is_own = target in (stack, "slurm") and stack != "maxtext"
        assert ("speed of tune" in notes) != is_own, (stack, target)
        begins = "begins from meta-llama" if target == "torchrun" or stack == "maxtext" else "random weights"
        assert notes["checkpoint of tune"].startswith(begins)
        assert ("LEARNING_RATE" in notes) == (target == "megatron" or (stack, target) == ("megatron", "slurm"))
        assert ("TorchTitan" in notes) == (target == "torchtitan")
    assert "predicted for megatron" in told["megatron", "torchtitan"]["speed of tune"]


def test_layers_recomputed_in_part_are_said_to_be_so(client: TestClient) -> None:
    job = TUNE | {
        "llm": "llama-3.1-70b", "method": "pretrain", "precision": "fp8", "tokens": 2e9, "sequence_tokens": 8192,
        "global_batch_sequences": 512, "max_devices": 8, "stack": "megatron",
    }  # fmt: skip
    plan = planned(client, job, devices=["b200-sxm"])
    (line,) = plan["plan"]
    assert 0.0 < line["layout"]["recomputed_layers_fraction"] < 1.0
    for target in ("megatron", "torchtitan"):
        answer = client.get(f"{plan['link']}/deployments", params={"target": target}).json()
        assert ("recomputing of tune" in {note["about"] for note in answer["notes"]}) == (target == "torchtitan")


def test_adapters_are_started_as_they_were_planned(client: TestClient, tune: dict[str, Any]) -> None:
    (line,) = tune["plan"]
    layout = line["layout"]
    (script,) = files_of(client, tune, "torchrun").values()
    words = script.split()
    said = {words[n]: words[n + 1] for n in range(len(words) - 1)}
    each = int(said["--per_device_train_batch_size"]) * int(said["--gradient_accumulation_steps"])
    assert each * layout["data_parallel"] == line["global_batch_sequences"]
    assert int(said["--nnodes"]) * int(said["--nproc-per-node"]) == line["devices"]
    assert int(said["--max_steps"]) * line["global_batch_sequences"] * 4096 == pytest.approx(5e7, rel=0.01)
    assert "--use_peft" in words
    slurm = files_of(client, tune, "slurm")["tune.sbatch"]
    assert f"#SBATCH --nodes={line['nodes']}" in slurm
    for target in ("megatron", "torchtitan"):
        assert client.get(f"{tune['link']}/deployments", params={"target": target}).status_code == 409
    answer = client.get(f"{tune['link']}/deployments", params={"target": "abacus"})
    assert (answer.status_code, answer.json()["errors"][0]["parameter"]) == (422, "target")


def test_preferences_are_planned_in_pairs_and_started_as_pairs(client: TestClient) -> None:
    prefer = {"name": "prefer", "llm": "llama-3.1-8b", "method": "dpo", "adapters": "lora", "samples": 60_000,
              "sequence_tokens": 1024, "global_batch_sequences": 128, "max_devices": 8}  # fmt: skip
    plan = planned(client, prefer | {"reference": "precomputed"}, devices=["h100-sxm"])
    with_each_step = planned(client, prefer, devices=["h100-sxm"])
    days = [one["plan"][0]["duration_days"]["expected"] for one in (plan, with_each_step)]
    assert days[0] == pytest.approx(days[1], rel=0.2), "once is as long as with each step, at one epoch"
    (line,) = plan["plan"]
    (script,) = files_of(client, plan, "torchrun").values()
    words = script.split()
    said = {words[n]: words[n + 1] for n in range(len(words) - 1)}
    pairs = int(said["--per_device_train_batch_size"]) * int(said["--gradient_accumulation_steps"])
    assert pairs * line["layout"]["data_parallel"] == 64
    assert int(said["--max_steps"]) == round(60_000 / 64)
    assert "trl.scripts.dpo" in words
    assert said["--precompute_ref_log_probs"] == "true"
    assert "--packing" not in words
    assert client.get(f"{plan['link']}/deployments", params={"target": "torchtitan"}).status_code == 409
    bad = client.post(PATH, json={"jobs": [TUNE | {"adapters": "lora"}]})
    assert (bad.status_code, bad.json()["errors"][0]["pointer"]) == (422, "/jobs/0")


def test_megatron_is_told_the_layout(client: TestClient) -> None:
    plan = planned(client, TRAIN, devices=["h100-sxm"])
    (line,) = plan["plan"]
    (script,) = files_of(client, plan, "megatron").values()
    words = script.split()
    said = {words[n]: words[n + 1] for n in range(len(words) - 1)}
    for option, degree in (
        ("tensor-model-parallel-size", "tensor_parallel"),
        ("pipeline-model-parallel-size", "pipeline_parallel"),
        ("context-parallel-size", "context_parallel"),
        ("micro-batch-size", "micro_batch_sequences"),
    ):
        assert int(said[f"--{option}"]) == line["layout"][degree], option
    assert (said["--num-layers"], said["--hidden-size"], said["--num-query-groups"]) == ("80", "8192", "8")
    assert said["--global-batch-size"] == "512"
    assert "--fp8-param-gather" in words, "what is sent in 8 bits in the prediction is sent so"
    assert {"--tokenizer-model", "--lr", "--load"} <= said.keys(), "without them it does not start, or not go on"
    assert ("--recompute-num-layers" in said) == (line["layout"]["recompute"] == "full")


def test_torchtitan_is_told_the_model_and_its_parts(client: TestClient) -> None:
    job = TRAIN | {
        "precision": "bf16",
        "stack": "torchtitan",
        "layout": {"pipeline_parallel": 4, "virtual_pipeline": 2},
    }
    plan = planned(client, job, devices=["h100-sxm"])
    files = files_of(client, plan, "torchtitan")
    told = tomllib.loads(files["train.toml"])
    assert told["model"] == {"name": "llama3", "flavor": "70B"}
    assert told["parallelism"]["pipeline_parallel_schedule"] == "Interleaved1F1B"
    assert told["parallelism"]["pipeline_parallel_layers_per_stage"] == 10
    assert told["checkpoint"]["enable_checkpoint"] is True
    assert '"$DATA"' in files["train.sh"]
    other = planned(client, TUNE | {"llm": "qwen3-8b", "method": "full", "stack": "torchtitan"}, devices=["h100-sxm"])
    assert client.get(f"{other['link']}/deployments", params={"target": "torchtitan"}).status_code == 409


def test_skypilot_takes_the_plans_cloud_or_says_that_it_cannot(client: TestClient) -> None:
    plan = planned(client, TUNE, devices=["h100-sxm"], providers=["aws"])
    (line,) = plan["plan"]
    (text,) = files_of(client, plan, "skypilot").values()
    task = yaml.safe_load(text)
    assert task["num_nodes"] == line["nodes"]
    assert task["resources"]["infra"] == "aws"
    assert task["resources"]["accelerators"] == f"H100:{line['devices'] // line['nodes']}"


def test_no_plan_has_no_files(client: TestClient) -> None:
    plan = planned(client, TUNE | {"max_usd": "0.01"}, devices=["h100-sxm"])
    assert client.get(f"{plan['link']}/deployments", params={"target": "torchrun"}).status_code == 409
