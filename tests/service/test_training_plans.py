"""POST /v1/training/recommendations over HTTP."""

import datetime as dt
from typing import Any

import pytest
from fastapi.testclient import TestClient

import service.clock
from service.training import recommend
from solver.fleet.highs import SolverAnswer
from solver.training import programme
from tests.conftest import FixedClock

PATH = "/v1/training/recommendations"
TUNE: dict[str, Any] = {
    "name": "tune", "llm": "llama-3.1-8b", "method": "lora", "tokens": 50_000_000, "sequence_tokens": 4096, "max_devices": 8,
}  # fmt: skip
LIMITS = {"devices": ["a100-sxm-80", "h100-sxm"]}


def planned(client: TestClient, *jobs: dict[str, Any], **limits: Any) -> dict[str, Any]:
    answer = client.post(PATH, json={"jobs": list(jobs), "limits": LIMITS | limits})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_job_in_time_and_budget_is_planned_with_its_proof(client: TestClient, clock: FixedClock) -> None:
    deadline = clock() + dt.timedelta(days=5)
    found = planned(client, TUNE | {"deadline": deadline.isoformat(), "max_usd": "200"})
    assert (found["outcome"], found["solve"]["status"]) == ("optimal", "proven_optimal")
    (line,) = found["plan"]
    assert float(line["usd"]) <= 200
    assert dt.datetime.fromisoformat(line["finishes_at"]) <= deadline
    assert line["usd"] == found["solve"]["usd"]
    (front,) = found["fronts"]
    costs = [float(point["usd"]) for point in front["points"]]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == float(line["usd"])
    assert sum(point["duration_days"] * 24 < 1 for point in front["points"]) <= 1, "hours are paid whole"


def test_no_run_is_shorter_than_its_first_step_or_paid_for_less_than_an_hour(client: TestClient) -> None:
    """A single token was trained on 1,024 of the largest nodes, for nothing."""
    found = planned(client, TUNE | {"tokens": 1, "max_devices": 4096}, devices=None)
    (line,) = found["plan"]
    assert float(line["usd"]) >= float(line["usd_per_node_hour"]) * line["nodes"] > 0
    tokens = line["global_batch_sequences"] * line["sequence_tokens"]
    rate = line["tokens_per_s_per_device"]["expected"] * line["devices"]
    assert line["duration_days"]["expected"] * 86_400 >= tokens / rate * 0.999
    whole = planned(client, TUNE | {"global_batch_sequences": 12_207})  # as many as there are: one step
    assert whole["outcome"] == "optimal"


def test_what_cannot_be_done_says_what_would_do(client: TestClient) -> None:
    found = planned(client, TUNE | {"max_usd": "0.01"})
    assert found["outcome"] == "infeasible"
    assert found["conflicts"]
    (change,) = [one for one in found["relaxations"] if one["limit"] == "max_usd"]
    again = planned(client, TUNE | {"max_usd": change["relaxing_to"]})
    assert again["outcome"] == "optimal"
    assert again["solve"]["usd"] == change["usd"]


def test_no_job_begins_before_it_is_asked_for(client: TestClient, clock: FixedClock) -> None:
    """Jobs that were to begin in 1999 were planned, on machines of today."""
    day = dt.timedelta(days=1)
    past = {"jobs": [TUNE], "limits": LIMITS, "starts_at": (clock() - day).isoformat()}
    for headers in ({}, {"Prefer": "respond-async"}):
        refused = client.post(PATH, json=past, headers=headers)
        assert refused.status_code == 422
        assert [error["pointer"] for error in refused.json()["errors"]] == ["/starts_at"]
    for allowed in (past | {"starts_at": clock().isoformat()}, past | {"price_as_of": (clock() - day).isoformat()}):
        made = client.post(PATH, json=allowed)
        assert made.status_code == 201, made.text
        clock.advance(days=40)
        asked = client.post(f"{PATH}/{made.json()['id']}/why-not", json={"device": "h100-sxm"})
        assert asked.status_code == 200, "a plan is asked about after its jobs have begun"


@pytest.mark.parametrize(
    ("job", "limits", "pointer"),
    [
        ({"deadline": "2020-01-01T00:00:00Z"}, {}, "/jobs/0/deadline"),
        ({"llm": "nobody-9b"}, {}, "/jobs/0/llm"),
        ({"tokens": None}, {}, "/jobs/0"),
        ({"samples": 10}, {}, "/jobs/0"),
        ({}, {"commitments": ["spot"]}, "/limits"),
        ({"sequence_tokens": 9_000_000}, {}, "/jobs/0/sequence_tokens"),
        ({"global_batch_sequences": 12_208}, {}, "/jobs/0/global_batch_sequences"),
        ({"layout": {"tensor_parallel": 64}}, {}, "/jobs/0/layout/tensor_parallel"),
        ({"layout": {"pipeline_parallel": 64}}, {}, "/jobs/0/layout/pipeline_parallel"),
        ({"layout": {"expert_parallel": 8}}, {}, "/jobs/0/layout/expert_parallel"),
        ({"method": "grpo"}, {}, "/jobs/0/method"),
        ({}, {"commitments": ["purchase"]}, ""),
        ({}, {"devices": ["h100-sxm", "h1000"]}, "/limits/devices/1"),
        ({}, {"devices": ["inferentia2"]}, "/limits/devices/0"),
        ({}, {"providers": ["nobody"]}, "/limits/providers/0"),
        ({}, {"regions": ["nowhere"]}, "/limits/regions/0"),
        ({}, {"offers": {"nobody:h100": {"max_nodes": 1}}}, "/limits/offers/nobody:h100"),
    ],
)
def test_bad_input_names_the_field(
    client: TestClient, job: dict[str, Any], limits: dict[str, Any], pointer: str
) -> None:
    answer = client.post(PATH, json={"jobs": [TUNE | job], "limits": LIMITS | limits})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == pointer


@pytest.mark.parametrize("name", ["devices", "providers", "regions"])
def test_a_choice_of_nothing_is_a_mistake(client: TestClient, name: str) -> None:
    answer = client.post(PATH, json={"jobs": [TUNE], "limits": {name: []}})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == f"/limits/{name}"


def test_chips_for_inference_alone_are_refused_by_name(client: TestClient) -> None:
    alone = client.post(PATH, json={"jobs": [TUNE], "limits": {"devices": ["inferentia2"]}})
    assert "inferentia2: nothing published says that it trains" in alone.json()["errors"][0]["detail"]
    beside = planned(client, TUNE, devices=["inferentia2", "h100-sxm"])
    assert beside["plan"][0]["device"] == "h100-sxm"


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        ({"global_batch_sequences": 7, "micro_batch_sequences": 2}, "7 sequences a step in micro-batches of 2"),
        ({"llm": "llama-3.1-405b", "method": "full"}, "in the layout that needs least"),
    ],
)
def test_of_each_job_it_is_said_why_nothing_trains_it(client: TestClient, job: dict[str, Any], reason: str) -> None:
    found = planned(client, TUNE, TUNE | job | {"name": "wrong"})
    assert found["outcome"] == "infeasible"
    (told,) = found["conflicts"]
    assert told.startswith("wrong: ")
    assert reason in told


def test_an_old_price_is_the_first_doubt(client: TestClient) -> None:
    found = planned(client, TUNE, sourcing={"max_price_age_days": 0})
    (line,) = found["plan"]
    assert line["ask_for_quote"]
    assert f"{line['price_age_days']} days before this plan: ask {line['provider']} for a quote" in found["cautions"][0]
    young = planned(client, TUNE, sourcing={"max_price_age_days": 36_500})
    assert not young["plan"][0]["ask_for_quote"]
    assert not any("for a quote" in caution for caution in young["cautions"])


def test_a_commitment_is_paid_for_its_term_however_short_the_job(client: TestClient) -> None:
    """One offer under two commitments: the hours of a year cost more than a job of hours, two jobs that follow each other pay once."""
    reserved = planned(client, TUNE, commitments=["reserved_1y_no_upfront"])
    (one,), (line,) = reserved["commitments"], reserved["plan"]
    assert (one["offer"], one["term_months"], one["nodes"]) == (line["offer"], 12, line["nodes"])
    assert (float(line["usd"]), reserved["solve"]["usd"]) == (0.0, one["usd"])
    assert 0.0 < one["used_fraction"] < 0.05
    assert any("whole term" in caution for caution in reserved["cautions"])
    assert reserved["solve"]["status"] == "proven_optimal"
    either = planned(client, TUNE, commitments=["on_demand", "reserved_1y_no_upfront"])
    assert (either["commitments"], either["plan"][0]["offer"].endswith("on_demand")) == ([], True)
    assert float(either["solve"]["usd"]) < float(one["usd"])
    two = planned(client, TUNE, TUNE | {"name": "second"}, commitments=["reserved_1y_no_upfront"])
    assert two["solve"]["usd"] == one["usd"]
    assert sum(own["nodes"] for own in two["commitments"]) == one["nodes"]
    answer = client.post(
        PATH, json={"jobs": [TUNE | {"max_usd": "200"}], "limits": LIMITS | {"commitments": ["reserved_1y_no_upfront"]}}
    )
    assert answer.json()["outcome"] == "infeasible"


def test_no_more_is_worked_out_once_time_is_over(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that every estimate of a job on machines moves by a second; all of them were made, whatever the limit."""
    now, computed = [0.0], recommend._computed

    def slow(*arguments: Any) -> Any:
        now[0] += 1.0
        return computed(*arguments)

    monkeypatch.setattr(service.clock, "time_limits_run_by", lambda: now[0])
    monkeypatch.setattr(recommend, "_computed", slow)
    answer = client.post(PATH, json={"jobs": [TUNE | {"max_devices": 16}], "time_limit_s": 3})
    assert answer.status_code == 503, answer.text
    assert "time_limit_s" in answer.json()["detail"]
    assert now[0] < 10.0, "an offer that is begun is looked at with all its numbers of nodes"


def test_no_plan_in_time_is_not_said_to_be_none(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was answered as infeasible."""
    monkeypatch.setattr(programme, "solve_with_highs", lambda *_: SolverAnswer("no_plan_found", None, 0.0))
    answer = client.post(PATH, json={"jobs": [TUNE], "limits": LIMITS})
    assert answer.status_code == 503, answer.text
