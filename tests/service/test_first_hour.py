"""What a newcomer types in the first hour, and what is said to it."""

import json

import pytest
from fastapi.testclient import TestClient

from service.cli import calibrate, why
from service.cli.client import _answer
from service.cli.exit_codes import CommandError, ExitCode
from service.cli.main import build_parser
from service.cli.plan_view import show_recommendation
from service.cli.tables import list_rows
from service.deployments.generate import TARGETS
from service.deployments.targets import DEPLOYMENT_TARGETS, ENGINE_TARGETS
from service.settings import Settings
from service.why.curve_words import curve_says
from service.wire.why import CurvePointOut
from tests.service.test_why import asked, recommended
from tests.service.test_why_commands import Asked


class Refused(Asked):
    """One whose refusals end the command, as the real client's do."""

    def post(self, path: str, body: dict[str, object]) -> object:
        return _answer(self.http.post(path, json=body))


@pytest.fixture
def rec(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    monkeypatch.setattr(Asked, "http", client, raising=False)
    monkeypatch.setattr(why, "Client", Refused)
    return recommended(client)


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


class TestNames:
    def test_a_requirement_may_be_named_in_short(self, client: TestClient, rec: dict[str, object]) -> None:
        curve = asked(client, rec, "price-curve", {"of": "tpot", "points": [50]})
        assert curve["of"] == "targets.tpot_ms.p95"
        front = asked(client, rec, "pareto", {"against": "power", "points": [1000]})
        assert front["against"] == "power_kw"

    @pytest.mark.parametrize(
        ("question", "body", "known"),
        [
            ("pareto", {"against": "latency"}, "power_kw"),
            ("pareto", {"against": "e2e"}, "targets.ttft_ms.p95"),
            ("price-curve", {"of": "targets.tpot_ms.p96"}, "did you mean 'targets.tpot_ms.p9"),
            ("price-curve", {"of": 5}, "known: targets.ttft_ms.mean"),
        ],
    )
    def test_unknown_ones_are_answered_with_those_there_are(
        self, client: TestClient, question: str, body: dict[str, object], known: str
    ) -> None:
        refused = client.post(f"/v1/recommendations/rec_none/{question}", json=body)
        assert refused.status_code == 422
        (error,) = refused.json()["errors"]
        assert known in error["detail"]
        assert "pattern" not in error["detail"]

    def test_things_the_plan_does_without_in_any_case(self, client: TestClient, rec: dict[str, object]) -> None:
        answer = asked(client, rec, "why-not", {"devices": ["H100"], "providers": ["AWS"]})
        assert [one["name"] for one in answer["answers"]] == ["h100-sxm", "aws"]

    def test_why_not_without_a_thing_says_which_options_name_one(
        self, rec: dict[str, object], settings: Settings
    ) -> None:
        with pytest.raises(CommandError, match="--device, --offer, --provider") as refused:
            why.why_not_command(build_parser().parse_args(["why-not", str(rec["id"])]), settings)
        assert refused.value.code == ExitCode.bad_input

    def test_what_is_wrong_with_a_whole_request_is_said_once(self, client: TestClient) -> None:
        with pytest.raises(CommandError) as refused:
            _answer(client.post("/v1/recommendations/rec_none/why-not", json={}))
        assert "None" not in str(refused.value)
        assert str(refused.value).count("name between") == 1


class TestWords:
    def test_a_curve_that_does_not_move_says_so(
        self, rec: dict[str, object], settings: Settings, capsys: pytest.CaptureFixture[str]
    ) -> None:
        line = ["price-curve", str(rec["id"]), "context", "16384", "32768"]
        assert why.price_curve_command(build_parser().parse_args(line), settings) == 0
        text = said(capsys)
        assert "one plan is the cheapest at all of these values" in text
        assert "no measurable change" not in text

    def test_a_curve_that_moves_says_from_where_to_where(self, client: TestClient, rec: dict[str, object]) -> None:
        curve = asked(client, rec, "price-curve", {"of": "requests_per_s", "points": [5, 40]})
        few, many = (float(point["solved"]["usd_per_hour"]) for point in curve["points"])
        assert curve["says"] == f"the cheapest plan costs {many:,.2f} USD an hour at 40 and {few:,.2f} at 5"

    def test_a_curve_says_where_there_is_no_plan(self) -> None:
        none = {
            "outcome": "infeasible", "usd_per_hour": None, "gap_fraction": None, "measurable": False,
            "extra_usd_per_hour": None, "extra_power_kw": None, "less_served_fraction": None, "says": "", "plan": [],
        }  # fmt: skip
        point = {"value": 12.0, "is_requested": False, "solved": none, "reasons": []}
        assert curve_says([CurvePointOut.model_validate(point)], None) == "no plan exists at 12"
        one = point | {"solved": none | {"outcome": "optimal", "usd_per_hour": "18.330000"}}
        words = curve_says([CurvePointOut.model_validate(one)], 24.44)
        assert words == "the cheapest plan costs 18.33 USD an hour at 12", "one value does not show what limits"

    def test_what_limits_a_plan_is_said_and_every_target_named(
        self, rec: dict[str, object], capsys: pytest.CaptureFixture[str]
    ) -> None:
        from service.cli.output import standard_output

        limit = {"limit": "targets.tpot_ms.p95", "workload": "chat", "relaxing_to": 60.0, "saves_usd_per_hour": "5.1"}
        show_recommendation(rec | {"binding": [limit]}, standard_output(), lambda _offer: None)
        text = said(capsys)
        assert "what limits it: targets.tpot_ms.p95 of chat: 60 would save $5.10 an hour" in text
        for target in ("vllm", *(set(DEPLOYMENT_TARGETS) - set(ENGINE_TARGETS))):
            assert target in text.split("start it:")[1]

    def test_an_engine_without_files_is_not_said_to_have_some(
        self, rec: dict[str, object], capsys: pytest.CaptureFixture[str]
    ) -> None:
        from service.cli.output import standard_output

        plan = rec["plan"]
        assert isinstance(plan, list)
        on_a_mac = [line | {"engine": "mlx"} for line in plan]
        show_recommendation(rec | {"plan": on_a_mac}, standard_output(), lambda _offer: None)
        text = said(capsys)
        assert "no files are written for that engine" in text
        assert "--target" not in text

    def test_every_target_there_is_has_its_name_in_the_help(self) -> None:
        assert tuple(TARGETS) == DEPLOYMENT_TARGETS

    def test_misses_have_no_exponent(self, client: TestClient, rec: dict[str, object]) -> None:
        curve = asked(client, rec, "price-curve", {"of": "ttft", "points": [1]})
        (point,) = curve["points"]
        assert "e+" not in json.dumps(point["reasons"])


class TestTables:
    def test_accuracy_begins_with_the_result_and_is_whole_in_a_pipe(
        self, settings: Settings, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert calibrate.accuracy_command(build_parser().parse_args(["accuracy"]), settings) == 0
        first, *rows = capsys.readouterr().out.splitlines()
        assert first.startswith("runs of\tn\tTPOT mean")
        assert not any("gemm_efficiency" in row for row in rows)
        assert calibrate.accuracy_command(build_parser().parse_args(["accuracy", "--constants"]), settings) == 0
        text = capsys.readouterr().out
        assert text.index("TPOT mean") < text.index("gemm_efficiency_16bit")

    def test_offers_are_listed_from_the_cheapest_device(self) -> None:
        offers = [
            {"id": "a", "usd_per_device_hour": None, "price": None},
            {"id": "b", "usd_per_device_hour": "12.0", "price": {"usd_per_hour": "96"}},
            {"id": "c", "usd_per_device_hour": "9.0", "price": {"usd_per_hour": "72"}},
        ]
        assert [row[0] for row in list_rows("offers", offers)] == ["c", "b", "a"]
