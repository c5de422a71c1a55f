"""Costs of stored training plans: rented while they train, committed to, bought; by the machinery of plans that serve."""

import math
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from service.database import Database
from service.training.tables import TrainingPlanTable
from tests.conftest import NOW
from tests.service import command
from tests.service.recomputed_costs import lines_of
from tests.service.sheet_formulas import Workbook
from tests.service.tco_bodies import NODE, OFFER
from tests.service.test_training_plans import TUNE, planned

URL = "/v1/tco/comparisons"
CENT = 0.005
BASE: dict[str, Any] = {
    "horizon_months": 36, "utilisation_fraction": 0.4, "discount_rate_percent": 8.0, "electricity": {"usd_per_kwh": "0.09"},
    "power_usage_effectiveness": 1.3, "monte_carlo": {"draws": 0},
}  # fmt: skip
SAME_MARKET = {"rent_percent_per_year": 0.0, "hardware_percent_per_year": 0.0}
LIMITS = {"devices": ["h100-sxm"]}


@pytest.fixture
def plan(client: TestClient) -> dict[str, Any]:
    return planned(client, TUNE, **LIMITS)


def ways(plan_id: str, *acquisitions: str | None, **more: Any) -> list[dict[str, Any]]:
    return [{"name": str(one), "training_plan": plan_id, "acquisition": one, **more} for one in acquisitions]


def compared(client: TestClient, alternatives: list[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    body = {name: value for name, value in (BASE | changes).items() if value is not None}
    answer = client.post(URL, json={**body, "alternatives": alternatives})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def refused(client: TestClient, alternatives: list[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    body = {name: value for name, value in (BASE | changes).items() if value is not None}
    answer = client.post(URL, json={**body, "alternatives": alternatives})
    assert answer.status_code == 422, answer.text
    found: dict[str, Any] = answer.json()["errors"][0]
    return found


def test_done_once_a_month_it_costs_what_the_plan_says_every_month(client: TestClient, plan: dict[str, Any]) -> None:
    answer = compared(
        client, ways(plan["id"], None), utilisation_fraction=None, training_runs_per_month=1, horizon_months=12,
        market=SAME_MARKET,
    )  # fmt: skip
    (rent,) = answer["alternatives"]
    trained = answer["demand"]["trained"]
    assert trained["runs"] == pytest.approx(12)
    assert trained["tokens_per_run"] == TUNE["tokens"]
    assert float(rent["total_usd"]) == pytest.approx(12 * float(plan["solve"]["usd"]), abs=CENT)
    assert float(rent["usd_per_million_tokens"]) == pytest.approx(
        float(plan["solve"]["usd"]) / TUNE["tokens"] * 1e6, rel=1e-5
    )
    assert rent["input_tokens"] == pytest.approx(12 * TUNE["tokens"])


@pytest.mark.parametrize("often", [0.02, 0.4, 1.0])
def test_every_line_agrees_with_other_code_and_with_the_workbook(
    client: TestClient, plan: dict[str, Any], often: float
) -> None:
    asked = ways(plan["id"], None, "reserved_1y", "spot", "purchase")
    asked.append({**ways(plan["id"], "lease")[0], "lease": {"term_months": 24}})
    answer = compared(client, asked, utilisation_fraction=often, income_tax_percent=20.0)
    book = Workbook(client.get(answer["link"], params={"format": "xlsx"}).content)
    for number, one in enumerate(answer["alternatives"], start=1):
        theirs = lines_of(answer, one)
        ours = {line["line"]: [float(usd) for usd in line["usd_by_month"]] for line in one["lines"]}
        assert ours.keys() == theirs.keys()
        titles = {book.text(f"calc {number}.1", column, 3): column for column in range(1, 70)}
        for line, flows in ours.items():
            assert flows == pytest.approx(theirs[line], abs=CENT), (one["name"], line)
            computed = [book.value(f"calc {number}.1", titles[line], 4 + month) for month in range(len(flows))]
            assert computed == pytest.approx(flows, abs=CENT), (one["name"], line)


def test_break_even_is_the_share_of_time_at_which_both_cost_the_same(client: TestClient, plan: dict[str, Any]) -> None:
    answer = compared(client, ways(plan["id"], None, "reserved_3y"))
    (pair,) = answer["alternatives"][0]["break_even"]
    share = pair["utilisation_fraction"]
    assert 0 < share < 1
    assert pair["cheaper_below"] == "None"
    again = compared(client, ways(plan["id"], None, "reserved_3y"), utilisation_fraction=share)
    npvs = [float(one["npv_usd"]) for one in again["alternatives"]]
    assert npvs[0] == pytest.approx(npvs[1], rel=1e-6)


def test_rented_energy_is_that_of_the_hours_it_trains(client: TestClient, plan: dict[str, Any]) -> None:
    """Owned machines idle between runs, rented ones are somebody else's then."""
    rent, own = compared(client, ways(plan["id"], None, "purchase"), utilisation_fraction=0.1)["alternatives"]
    busy = compared(client, ways(plan["id"], None), utilisation_fraction=0.2)["alternatives"][0]
    assert busy["it_energy_kwh"] == pytest.approx(2 * rent["it_energy_kwh"])
    assert own["it_energy_kwh"] > 2 * rent["it_energy_kwh"]


def store_plan(database: Database, plan_id: str, lines: list[dict[str, Any]], like: dict[str, Any], **job: Any) -> None:
    """A stored plan with other lines, and other jobs where stated."""
    with database.writing() as session:
        first = session.get(TrainingPlanTable, like["id"])
        assert first is not None
        request = {**first.request, "jobs": [{**first.request["jobs"][0], **job}]}
        session.add(
            TrainingPlanTable(**{
                **first.model_dump(), "id": plan_id, "created_at": NOW, "request": request,
                "result": {
                    **first.result, "plan": lines, "commitments": like["commitments"], "conflicts": ["too late"],
                },
                "outcome": "optimal" if lines else "infeasible",
            })
        )  # fmt: skip


def test_a_plan_that_is_sooner_done_works_for_less_of_the_time(
    client: TestClient, app: FastAPI, plan: dict[str, Any]
) -> None:
    (line,) = plan["plan"]
    hours = math.ceil(line["duration_days"]["expected"] * 24 - 1e-6)
    begins = "2026-11-20T00:00:00Z"
    slow = {
        **line,
        "starts_at": begins,
        "finishes_at": "2026-11-20T08:00:00Z",
        "node": NODE,
        "offer": OFFER,
        "nodes": 1,
        "usd": "80.00",
    }
    fast = {**slow, "finishes_at": "2026-11-20T02:00:00Z", "nodes": 3, "usd": "60.00"}
    assert hours > 0
    store_plan(app.state.database, "train_slow", [slow], plan)
    store_plan(app.state.database, "train_fast", [fast], plan)
    answer = compared(
        client, [*ways("train_slow", None), {"name": "fast", "training_plan": "train_fast"}], utilisation_fraction=0.5,
        horizon_months=1, market=SAME_MARKET,
    )  # fmt: skip
    runs = 730 * 0.5 / 8
    assert [float(one["total_usd"]) for one in answer["alternatives"]] == pytest.approx(
        [80 * runs, 60 * runs], abs=CENT
    )
    assert [one["computed_from"][0]["busy_fraction"] for one in answer["alternatives"]] == [1.0, 0.25]


def test_interruptions_stop_all_nodes_of_a_job(client: TestClient, app: FastAPI, plan: dict[str, Any]) -> None:
    (line,) = plan["plan"]
    whole = {
        **line,
        "starts_at": "2026-11-20T00:00:00Z",
        "finishes_at": "2026-11-20T08:00:00Z",
        "node": NODE,
        "offer": OFFER,
    }
    for name, nodes in (("train_one", 1), ("train_sixteen", 16)):
        store_plan(app.state.database, name, [{**whole, "nodes": nodes, "usd": f"{nodes * 80}.00"}], plan)
    one = compared(client, ways("train_one", "spot"))["alternatives"][0]
    sixteen = compared(client, ways("train_sixteen", "spot"))["alternatives"][0]
    assert sixteen["computed_from"][0]["interrupted_together"] == 16
    lost = 0.5 * 0.25 / 730
    assert float(sixteen["total_usd"]) / float(one["total_usd"]) == pytest.approx(
        16 * (1 - lost) / (1 - 16 * lost), rel=1e-6
    )


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"training_runs_per_month": 1}, ""),
        ({"utilisation_fraction": None}, ""),
        ({"growth_percent_per_month": 2.0}, ""),
        ({"ramp_months": 3}, ""),
        ({"utilisation_fraction": None, "hourly_profile": [0.5] * 24}, ""),
        ({"utilisation_fraction": None, "training_runs_per_month": 1e5}, "/training_runs_per_month"),
    ],
)
def test_what_does_not_go_with_training_is_refused(
    client: TestClient, plan: dict[str, Any], changes: dict[str, Any], pointer: str
) -> None:
    assert refused(client, ways(plan["id"], None), **changes)["pointer"] == pointer


def test_plans_that_do_not_do_the_same_are_refused(client: TestClient, app: FastAPI, plan: dict[str, Any]) -> None:
    (line,) = plan["plan"]
    database = app.state.database
    store_plan(database, "train_more", [line], plan, tokens=9e7)
    store_plan(database, "train_other", [line], plan, name="else")
    store_plan(database, "train_idle", [{**line, "offer": f"idle:{line['offer']}"}], plan)
    term = {
        "offer": "o",
        "commitment": "reserved_1y",
        "nodes": 1,
        "term_months": 12,
        "usd": "9.0",
        "used_fraction": 0.1,
    }
    store_plan(database, "train_term", [line], {**plan, "commitments": [term]})
    store_plan(database, "train_nights", [{**line, "daily_hours": [0, 1, 2]}], plan)
    store_plan(database, "train_none", [], plan)
    for name, reason in (
        ("train_more", "tokens of job 'tune' differ"),
        ("train_other", "not the same jobs"),
        ("train_idle", "what a fleet or a served plan leaves idle"),
        ("train_nights", "gives back, at its hours"),
        ("train_term", "committed to for a term"),
        ("train_none", "infeasible (too late)"),
        ("train_nowhere", "no training plan"),
    ):
        wrong = refused(client, [*ways(plan["id"], None), {"name": "other", "training_plan": name}])
        assert wrong["pointer"] == "/alternatives/1/training_plan"
        assert reason in wrong["detail"]
    assert (
        "do not do the same"
        in refused(
            client, [*ways(plan["id"], None), {"name": "API", "api": {"model": "aws/meta.llama3-1-70b-instruct-v1:0"}}]
        )["detail"]
    )
    assert "training plans" in refused(
        client,
        [{"name": "fleet", "fleet": [{"node": NODE, "count": 1}], "acquisition": "purchase"}],
        utilisation_fraction=None, training_runs_per_month=1,
    )["detail"]  # fmt: skip


def test_the_command_compares_a_training_plan(app: FastAPI, plan: dict[str, Any]) -> None:
    url = str(app.state.database.engine.url)
    done = command.run("tco", plan["id"], "--buy", "--commit", "reserved_1y", "--runs-per-month", "4", url=url)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "tune done 144 times (--runs-per-month), 7,200 million tokens" in said
    assert "reserved_1y" in said
