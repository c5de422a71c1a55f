"""The commands that ask about a stored recommendation, against an application in this process."""

import json

import pytest
from fastapi.testclient import TestClient

from service.cli import why
from service.cli.main import build_parser
from service.settings import Settings
from tests.service.test_why import recommended


class Asked:
    """A client of the command line that asks the test's application."""

    http: TestClient

    def __init__(self, _settings: Settings, _url: str | None) -> None: ...

    def post(self, path: str, body: dict[str, object]) -> object:
        return self.http.post(path, json=body).json()

    def get(self, path: str, parameters: dict[str, str]) -> object:
        return self.http.get(path, params=parameters).json()


def test_each_command_says_what_the_api_does(
    client: TestClient, settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rec = recommended(client)
    used = rec["plan"][0]["device"]
    monkeypatch.setattr(Asked, "http", client, raising=False)
    monkeypatch.setattr(why, "Client", Asked)
    parser = build_parser()
    arguments = parser.parse_args(["why-not", rec["id"], "--device", used, "--device", "l4"])
    assert why.why_not_command(arguments, settings) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"{used}: it is in the plan" in said
    assert "your limits.devices leaves it out" in said
    arguments = parser.parse_args(["price-curve", rec["id"], "requests_per_s", "10", "20", "--json"])
    assert why.price_curve_command(arguments, settings) == 0
    assert [p["value"] for p in json.loads(capsys.readouterr().out)["points"]] == [10, 20]
    arguments = parser.parse_args(["pareto", rec["id"], "power_kw", "1", "1000"])
    assert why.pareto_command(arguments, settings) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "no plan below 1" in said
    assert "sampled: more plans may lie in between" in said
    assert why.diff_command(parser.parse_args(["diff", rec["id"], rec["id"]]), settings) == 0
    assert capsys.readouterr().out.strip() == "nothing changes"
