"""``clusterwright fleet`` against an application in this process."""

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service.cli import ask, jobs
from service.cli.main import build_parser
from service.settings import Settings
from tests.service.bodies import changed
from tests.service.test_fleets import FLEET
from tests.service.test_fleets_owning import OWNING

BODY = changed(FLEET, "horizon", {"months": 36, "periods_per_month": 2})


class Asked:
    """A client of the command line that asks the test's application; ``waits`` answers of it are unfinished jobs."""

    http: TestClient
    answers: list[dict[str, Any]]
    waits = 0

    def __init__(self, _settings: Settings, _url: str | None) -> None: ...

    def post(self, path: str, body: Any, *, prefer: str | None = None) -> Any:
        assert path == "/v1/fleets"
        response = self.http.post(path, json=body, headers={"Prefer": prefer or "wait=300"})
        assert response.is_success, response.text
        answer = response.json()
        if response.status_code == 202:
            self.http.post(f"/v1/jobs/{answer['id']}/cancel")
            return answer
        self.answers.append(answer)
        if not self.waits:
            return answer
        return {"id": "job_1", "state": "queued", "events": "", "progress": None, "result": None, "problem": None}

    def get(self, path: str) -> Any:
        if not path.startswith("/v1/jobs/"):
            return self.http.get(path).json()
        Asked.waits -= 1
        done = self.waits == 0
        return {
            "id": "job_1", "state": "succeeded" if done else "running", "progress": None, "problem": None,
            "result": f"/v1/fleets/{self.answers[-1]['id']}" if done else None,
        }  # fmt: skip


@pytest.fixture
def asked(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> type[Asked]:
    monkeypatch.setattr(Asked, "http", client, raising=False)
    monkeypatch.setattr(Asked, "answers", [], raising=False)
    monkeypatch.setattr(Asked, "waits", 0)
    monkeypatch.setattr(ask, "Client", Asked)
    monkeypatch.setattr(jobs, "LOOK_EVERY_S", 0.0)
    monkeypatch.setenv("COLUMNS", "160")
    return Asked


def run(tmp_path: Path, settings: Settings, body: Any, *options: str) -> int:
    file = tmp_path / "fleet.json"
    file.write_text(json.dumps(body))
    return ask.fleet_command(build_parser().parse_args(["fleet", str(file), *options]), settings)


def test_says_what_to_commit_to_what_it_saves_and_the_gap(
    asked: type[Asked], tmp_path: Path, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, settings, BODY) == 0
    said = " ".join(capsys.readouterr().out.split())
    answer = asked.answers[0]
    totals = answer["totals"]
    assert f"${float(totals['usd']):,.0f} for 36 months" in said
    assert f"saved: ${float(totals['saved_usd']):,.0f}" in said
    assert f"reserved ${float(totals['reserved_usd']):,.0f}" in said
    assert f"no plan costs less than ${float(answer['solve']['bound_usd']):,.0f}" in said
    for one in answer["commitments"]:
        assert one["offer"] in said
        assert f"{float(one['usd']):,.0f}" in said
    assert {n["offer"] for p in answer["periods"] for n in p["nodes"]} <= set(said.split())
    assert answer["id"] in said
    assert answer["deployments"]
    for one in answer["deployments"]:
        assert f"{one['engine']}, steps ≤ {one['max_batched_tokens']:,}" in said


def test_says_what_is_bought_where_and_its_present_value(
    asked: type[Asked], tmp_path: Path, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, settings, OWNING) == 0
    said = " ".join(capsys.readouterr().out.split())
    totals = asked.answers[0]["totals"]
    (bought,) = (c for c in asked.answers[0]["commitments"] if c["commitment"] == "purchase")
    assert f"in present value at 10 % a year: ${float(totals['present_usd']):,.0f}" in said
    assert f"own:frankfurt:hgx-h100-8: purchase ${float(bought['lines']['purchase']):,.0f}" in said
    assert f"sold for ${-float(bought['lines']['residual']):,.0f}" in said
    assert f"bought ${float(totals['purchase_usd']):,.0f}" in said


def test_follows_the_job_that_a_long_request_becomes(
    asked: type[Asked], tmp_path: Path, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    asked.waits = 3
    assert run(tmp_path, settings, changed(BODY, "horizon/months", 1), "--json") == 0
    assert json.loads(capsys.readouterr().out) == asked.answers[0]
    assert asked.waits == 0


def test_async_prints_the_job_and_infeasible_is_an_exit_code(
    asked: type[Asked], tmp_path: Path, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, settings, BODY, "--async") == 0
    assert capsys.readouterr().out.startswith("job_")
    assert not asked.answers
    assert run(tmp_path, settings, changed(BODY, "workloads/0/targets", {"ttft_ms": {"p95": 0.001}})) == 1
    said = capsys.readouterr().out
    assert "infeasible" in said
    assert f"{asked.answers[0]['rejected'][0]['device']}: " in said
