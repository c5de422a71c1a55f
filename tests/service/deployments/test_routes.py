"""GET /v1/recommendations/{id}/deployments and the command deploy, over a real plan."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service.cli.main import main
from service.recommendations.tables import RecommendationTable
from tests.conftest import NOW

LIMITS = {"devices": ["h100-sxm", "h200-sxm"], "providers": ["aws"]}


@pytest.fixture
def recommendation(client: TestClient) -> dict[str, Any]:
    body = {
        "workloads": [
            {
                "name": "it's $(chat)",
                "llm": "llama-3.1-8b",
                "context_tokens": 8192,
                "traffic": {
                    "requests_per_s": 5.0,
                    "prompt_tokens": {"distribution": "fixed", "tokens": 500},
                    "output_tokens": {"distribution": "fixed", "tokens": 100},
                },
                "precision": {"weights": ["bf16"], "kv_cache": ["bf16"]},
            }
        ],
        "limits": LIMITS,
        "alternatives": 0,
    }
    answer = client.post("/v1/recommendations", json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def deployment(client: TestClient, recommendation: str, **parameters: str) -> Any:
    return client.get(f"/v1/recommendations/{recommendation}/deployments", params=parameters)


def test_a_plan_becomes_files_twice_the_same(client: TestClient, recommendation: dict[str, Any]) -> None:
    answer = deployment(client, recommendation["id"], target="vllm")
    assert answer.status_code == 200, answer.text
    assert answer.content == deployment(client, recommendation["id"], target="vllm").content
    found = answer.json()
    assert found["engine_versions"] == {"vllm": "0.24.0"}
    assert "vllm serve meta-llama/Llama-3.1-8B" in found["files"][0]["content"]
    assert "--max-model-len 8192" in found["files"][0]["content"]
    assert recommendation["id"] in found["check"]
    newer = deployment(client, recommendation["id"], target="kubernetes", engine_version="0.33.0")
    assert newer.json()["engine_versions"] == {"vllm": "0.33.0"}


def test_unknown_targets_and_versions_name_close_ones(client: TestClient, recommendation: dict[str, Any]) -> None:
    wrong = deployment(client, recommendation["id"], target="kubernets", engine_version="0.33.1")
    assert wrong.status_code == 422
    (target, version) = wrong.json()["errors"]
    assert target["parameter"] == "target"
    assert "kubernetes" in target["detail"]
    assert version["parameter"] == "engine_version"
    assert "0.33.0" in version["detail"]
    assert deployment(client, recommendation["id"]).status_code == 422
    assert deployment(client, "rec_none", target="vllm").status_code == 404


def test_what_a_target_cannot_express_is_409(client: TestClient, recommendation: dict[str, Any]) -> None:
    store(client, recommendation["id"], "rec_pools", plan=[recommendation["plan"][0] | {"role": "prefill"}])
    refused = deployment(client, "rec_pools", target="kubernetes")
    assert refused.status_code == 409
    (one,) = refused.json()["cannot_express"]
    assert "it's $(chat) (prefill)" in one["part"]
    assert "router" in one["reason"]


def test_plans_from_before_engine_settings_say_so(client: TestClient, recommendation: dict[str, Any]) -> None:
    store(client, recommendation["id"], "rec_old", plan=[recommendation["plan"][0] | {"engine_settings": None}])
    refused = deployment(client, "rec_old", target="vllm")
    assert refused.status_code == 409
    assert "make the recommendation again" in refused.json()["detail"]


def test_without_a_plan_there_are_no_files(client: TestClient, recommendation: dict[str, Any]) -> None:
    store(client, recommendation["id"], "rec_none_found", outcome="infeasible", plan=[], totals=None, fleet=[])
    refused = deployment(client, "rec_none_found", target="vllm")
    assert refused.status_code == 409
    assert "no plan" in refused.json()["detail"]


def store(client: TestClient, like: str, name: str, **result: Any) -> None:
    """A recommendation like a stored one, with parts of its result replaced."""
    database = client.app.state.database  # a FastAPI application
    with database.writing() as session:
        row = session.get(RecommendationTable, like)
        changed = row.result | result
        session.merge(
            RecommendationTable(
                id=name, created_at=NOW, outcome=changed["outcome"], objective="cost", usd_per_hour=None,
                price_as_of=NOW, catalog_digest="d", correction_set=None, version="1", request=row.request, result=changed,
            )
        )  # fmt: skip


def test_the_command_writes_scripts_that_a_shell_reads(
    recommendation: dict[str, Any], seeded_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("CLUSTERWRIGHT_DATABASE_URL", seeded_url)
    monkeypatch.setattr("service.cli.client._listening", lambda: None)
    folder = tmp_path / "servers"
    assert main(["deploy", recommendation["id"], "--target", "vllm", "--out", str(folder)]) == 0
    assert "clusterwright agent bench" in capsys.readouterr().out
    (script,) = folder.iterdir()
    assert script.stat().st_mode & 0o111
    subprocess.run(["sh", "-n", str(script)], check=True)
    stand_in = tmp_path / "bin" / "vllm"
    stand_in.parent.mkdir()
    stand_in.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    stand_in.chmod(0o755)
    done = subprocess.run(
        [str(script)], env={"PATH": f"{stand_in.parent}:/usr/bin:/bin", "PORT": "9123"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    words = done.stdout.splitlines()
    assert words[:2] == ["serve", "meta-llama/Llama-3.1-8B"]
    assert words[words.index("--port") + 1] == "9123"
    assert main(["deploy", recommendation["id"], "--target", "nothing", "--out", str(folder)]) == 2
