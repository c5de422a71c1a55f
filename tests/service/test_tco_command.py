"""The command tco, against an application in this process."""

import io
import json
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from rich.console import Console

from service.cli import tco
from service.cli.client import _answer
from service.cli.exit_codes import CommandError
from service.cli.main import build_parser
from service.settings import Settings
from tests.service.sheet_formulas import Workbook
from tests.service.tco_bodies import PLAN_LINE, RESULT, store_recommendation

MODEL = "novita/meta-llama/llama-3.3-70b-instruct"


class Asked:
    """A client of the command line that asks the test's application."""

    http: TestClient

    def __init__(self, _settings: Settings, _url: str | None) -> None: ...

    def post(self, path: str, body: dict[str, object]) -> object:
        return _answer(self.http.post(path, json=body))

    def file(self, path: str, parameters: dict[str, str]) -> bytes:
        return self.http.get(path, params=parameters).content


@pytest.fixture(autouse=True)
def asked(client: TestClient, app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    assert client.get("/healthz").status_code == 200
    store_recommendation(app.state.database, "rec_plan", RESULT)
    monkeypatch.setattr(Asked, "http", client, raising=False)
    monkeypatch.setattr(tco, "Client", Asked)


def test_rent_buy_and_api_of_a_stored_plan_in_one_command(
    settings: Settings, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "costs.xlsx"
    line = ["tco", "rec_plan", "--buy", "--api", MODEL]
    arguments = build_parser().parse_args([*line, "--out", str(out)])
    assert tco.tco_command(arguments, settings) == 0
    printed = capsys.readouterr()
    assert printed.err.strip() == f"wrote {out}"
    rows = [line.split("\t") for line in printed.out.splitlines() if "\t" in line]
    assert [row[0] for row in rows] == ["alternative", "rent", "buy", f"API {MODEL}"]
    assert rows[-1][5] in ("cheaper at once", "never") or "month" in rows[-1][5]
    said = " ".join(printed.out.split())
    assert "is cheapest at" in said
    assert "in present value" in said
    assert "pays back" in said
    assert "worth up to" in said
    assert Workbook(out.read_bytes()).formulas > 1000
    arguments = build_parser().parse_args([*line, "--json"])
    assert tco.tco_command(arguments, settings) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [a["name"] for a in answer["alternatives"]] == ["rent", "buy", f"API {MODEL}"]
    shown = Console(width=200, record=True, file=io.StringIO(), force_terminal=True)
    tco.show_comparison(answer, shown)
    rows = [
        [cell.strip() for cell in line.split("│")[1:-1]] for line in shown.export_text().splitlines() if "│" in line
    ]
    for row, one in zip(rows, answer["alternatives"], strict=True):
        assert row[:3] == [one["name"], *(f"{float(one[usd]):,.0f}" for usd in ("total_usd", "npv_usd"))]
        assert row[4].endswith("%")


def test_commitments_prices_of_ones_own_and_a_file_of_another_kind(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = build_parser().parse_args(
        [
            "tco",
            "rec_plan",
            "--buy",
            "--usd-per-node",
            "250000",
            "--peak-kw",
            "10.2",
            "--commit",
            "reserved_3y",
            "--json",
        ]
    )
    assert tco.tco_command(arguments, settings) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [a["name"] for a in answer["alternatives"]] == ["rent", "reserved_3y", "buy"]
    buy = answer["alternatives"][2]["computed_from"][0]["inputs"]
    stated = {one["input"]: one["typical"] for one in buy if one["stated"]}
    assert stated["purchase_usd_per_node"] == 250_000
    assert stated["peak_w_per_node"] == pytest.approx(10_200)
    with pytest.raises(CommandError, match=r"neither \.xlsx nor \.csv"):
        tco.tco_command(build_parser().parse_args(["tco", "rec_plan", "--out", "costs.pdf"]), settings)


def test_a_lease_beside_it(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["tco", "rec_plan", "--lease", "36", "--usd-per-node-month", "9400", "--json"]
    assert tco.tco_command(build_parser().parse_args(line), settings) == 0
    lease = json.loads(capsys.readouterr().out)["alternatives"][1]
    assert next(one["total_usd"] for one in lease["lines"] if one["line"] == "lease") == "676800.000000"
    assert tco.tco_command(build_parser().parse_args(["tco", "rec_plan", "--lease", "36", "--json"]), settings) == 0
    assert "a lessor's quote is better" in " ".join(json.loads(capsys.readouterr().out)["alternatives"][1]["notes"])


def test_a_machine_without_a_price_says_how_to_state_one(
    settings: Settings, app: FastAPI, capsys: pytest.CaptureFixture[str]
) -> None:
    line = {**PLAN_LINE, "node": "digitalocean-mi350x", "offer": "digitalocean:MI350X:global:on_demand"}
    store_recommendation(app.state.database, "rec_unpriced", {**RESULT, "plan": [line]})
    with pytest.raises(CommandError, match="--usd-per-node"):
        tco.tco_command(build_parser().parse_args(["tco", "rec_unpriced", "--buy"]), settings)
    stated = ["tco", "rec_unpriced", "--buy", "--usd-per-node", "210000", "--peak-kw", "11", "--json"]
    assert tco.tco_command(build_parser().parse_args(stated), settings) == 0
    buy = json.loads(capsys.readouterr().out)["alternatives"][1]
    assert (buy["parts"][0]["nodes"], buy["parts"][0]["devices"]) == (1, 8)  # two slices are parts of one server
    purchase = next(line for line in buy["lines"] if line["line"] == "purchase")
    assert purchase["total_usd"] == "210000.000000"
