"""Stored training plans: read again, asked why not, started."""

from typing import Any

import pytest
import yaml
from fastapi.testclient import TestClient

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
    assert ("--recompute-num-layers" in said) == (line["layout"]["recompute"] == "full")


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
