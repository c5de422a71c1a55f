"""Tokens of makers who serve on their own machines, and machines of which only speeds are published, as lines of a plan."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from service.recommendations.published import sellers
from tests.service.bodies import changed
from tests.service.tco_bodies import COMPARISON
from tests.service.test_sourcing import BODY, answered, usd

PROMPT, REPLY = 500, 100


def asked(llm: str = "llama-3.1-8b", rate: float = 0.5, **limits: Any) -> dict[str, Any]:
    body = changed(BODY, "limits", limits) | {"time_limit_s": 20, "alternatives": 1}
    (workload,) = body["workloads"]
    workload |= {
        "llm": llm,
        "context_tokens": 1024,
        "traffic": {"requests_per_s": rate, "prompt_tokens": PROMPT, "output_tokens": REPLY},
    }
    workload.pop("targets", None)
    workload.pop("precision", None)
    return body


def test_nobody_is_sent_tokens_unasked(client: TestClient) -> None:
    found = answered(client, asked())
    assert found["published_lines"] == []
    assert found["plan"]


def test_tokens_are_bought_where_they_are_cheapest(client: TestClient) -> None:
    machines = answered(client, asked())
    found = answered(client, asked(by_the_token=["groq"]))
    assert found["outcome"] == "optimal"
    assert found["plan"] == found["fleet"] == []
    (line,) = found["published_lines"]
    sold = line["by_the_token"]
    hour = 0.5 * 3600 * (
        PROMPT * float(sold["usd_per_million_input_tokens"]) + REPLY * float(sold["usd_per_million_output_tokens"])
    ) / 1e6  # fmt: skip
    assert float(line["usd_per_hour"]) == pytest.approx(hour, abs=1e-6)
    assert float(usd(found)) == pytest.approx(hour, abs=1e-6)
    assert hour < float(usd(machines))
    assert (line["device"], line["provider"], line["basis"], line["nodes"]) == ("groq-lpu-v1", "groq", "measured", 0)
    assert line["share_fraction"] == pytest.approx(1.0)
    assert line["tpot_ms"]["low"] < line["tpot_ms"]["expected"] < line["tpot_ms"]["high"]
    assert line["evidence"]
    totals = found["totals"]
    assert (totals["nodes"], totals["devices"], totals["power_kw"]) == (0, 0, None)
    assert totals["serves_requests_per_s"] == pytest.approx(0.5)
    assert [one["about"] for one in found["cautions"]] == ["published_speed"]
    dearer = {one["why"]: one["extra_usd_per_hour"] for one in found["alternatives"]}["cheapest without groq-lpu-v1"]
    assert float(usd(found)) + float(dearer) == pytest.approx(float(usd(machines)), abs=1e-5)


def test_machines_are_rented_where_they_are_cheaper(client: TestClient) -> None:
    found = answered(client, asked(rate=30.0, by_the_token=["groq"]))
    assert found["plan"]
    assert float(usd(found)) <= float(usd(answered(client, asked(rate=30.0))))


def test_what_an_account_may_send_is_kept(client: TestClient) -> None:
    """Groq takes 250,000 tokens a minute: 6.94 requests a second of 600 tokens, 11 twentieths of 12."""
    found = answered(client, asked(rate=12.0, by_the_token=["groq"], devices=["groq-lpu-v1", "l4"], sourcing="any"))
    for line in found["published_lines"]:
        assert line["serves_requests_per_s"] * (PROMPT + REPLY) * 60 <= line["by_the_token"]["tokens_per_minute"]
    served = sum(line["serves_requests_per_s"] for line in (*found["plan"], *found["published_lines"]))
    assert served == pytest.approx(12.0)
    alone = answered(client, asked(rate=12.0, by_the_token=["groq"], devices=["groq-lpu-v1"], sourcing="any"))
    assert alone["outcome"] == "infeasible"
    few = answered(client, asked("gpt-oss-120b", 5.0, by_the_token=["sambanova"], devices=["sn40l"]))
    assert {one["reason"] for one in few["rejected"]} >= {"rate_limit"}


def test_a_budget_holds_of_tokens_too(client: TestClient) -> None:
    found = answered(client, asked(by_the_token=["groq"], devices=["groq-lpu-v1"], max_usd_per_hour="0.05"))
    assert found["outcome"] == "infeasible"
    assert "limits.max_usd_per_hour" in {one["limit"] for one in found["relaxations"]}


def test_a_target_faster_than_what_was_published_is_not_kept(client: TestClient) -> None:
    body = asked("gpt-oss-120b", 1.0, by_the_token=["groq", "cerebras"], devices=["groq-lpu-v1", "cerebras-wse3"])
    body["workloads"][0]["targets"] = {"tpot_ms": {"p95": 1.5}}
    found = answered(client, body)
    assert [line["provider"] for line in found["published_lines"]] == ["cerebras"]
    assert {one["device"]: one["reason"] for one in found["rejected"]}["groq-lpu-v1"] == "target_missed"


def test_who_is_not_admitted_is_named(client: TestClient) -> None:
    row = answered(client, asked(devices=["groq-lpu-v1"]))["rejected"][0]
    assert row["device"] == "groq-lpu-v1"
    assert 'limits.by_the_token ["groq"]' in row["nearest"]


def test_a_model_that_is_served_no_more_is_not_planned(client: TestClient) -> None:
    found = answered(client, asked(by_the_token=["cerebras"], devices=["cerebras-wse3"]))
    assert found["outcome"] == "infeasible"
    assert any("serves llama-3.1-8b no more" in (one["nearest"] or "") for one in found["rejected"])
    assert not any(one["by_token"] for one in found["rejected"])


@pytest.mark.parametrize(
    ("limits", "more", "pointer", "said"),
    [
        ({"by_the_token": ["grok"]}, {}, "/limits/by_the_token/0", "did you mean 'groq'"),
        ({"by_the_token": []}, {}, "/limits/by_the_token", ""),
        ({"by_the_token": [7]}, {}, "/limits/by_the_token/0", ""),
        ({"by_the_token": ["groq"], "spare_nodes": 1}, {}, "/limits/by_the_token", "losses"),
        ({"by_the_token": ["groq"], "fault_tolerance": {"providers": 1}}, {}, "/limits/by_the_token", "losses"),
        ({"by_the_token": ["groq"], "max_power_kw": 3}, {}, "/limits/by_the_token", "power"),
        ({"by_the_token": ["groq"]}, {"objective": "power"}, "/limits/by_the_token", "cost"),
    ],
)
def test_what_tokens_cannot_be_part_of_is_refused(
    client: TestClient, limits: dict[str, Any], more: dict[str, Any], pointer: str, said: str
) -> None:
    answer = client.post("/v1/recommendations", json=asked(**limits) | more)
    assert answer.status_code == 422
    errors = answer.json()["errors"]
    assert any(one["pointer"].startswith(pointer) and said in one["detail"] for one in errors), errors


def test_other_questions_about_such_a_plan_are_refused(client: TestClient) -> None:
    found = answered(client, asked(by_the_token=["groq"]))
    refused = client.post(f"/v1/recommendations/{found['id']}/why-not", json={"devices": ["h100-sxm"]})
    assert refused.status_code == 409
    rented = {"name": "rent", "recommendation": found["id"], "acquisition": "on_demand"}
    body = COMPARISON | {"alternatives": [rented, COMPARISON["alternatives"][-1]]}
    compared = client.post("/v1/tco/comparisons", json=body)
    assert compared.status_code == 422
    assert "published speeds" in compared.text
    again = client.get(f"/v1/recommendations/{found['id']}").json()
    assert again["published_lines"] == found["published_lines"]


def test_every_seller_has_a_service() -> None:
    assert sellers() == {"groq", "cerebras", "sambanova"}


@pytest.mark.parametrize("device", ["hexagon-x-elite", "intel-npu-4", "ane-m4"])
def test_what_serves_one_stream_is_bought(client: TestClient, device: str) -> None:
    body = asked(rate=0.05, devices=[device])
    body["workloads"][0]["precision"] = {"weights": ["int4"]}
    found = answered(client, body)
    (line,) = found["published_lines"]
    assert (line["device"], line["commitment"], line["by_the_token"]) == (device, "purchase", None)
    assert "USD a node" in line["price_source"]
    assert found["totals"]["nodes"] == line["nodes"] > 0
    assert line["nodes"] * 0.85 / (line["e2e_ms"]["high"] / 1e3) >= 0.05 * (1 - 1e-9)
    body["workloads"][0]["targets"] = {"ttft_ms": {"p95": 60_000}}
    refused = answered(client, body)
    assert refused["outcome"] == "infeasible"
    assert "is not published" in refused["rejected"][0]["nearest"]


def test_other_formats_than_were_measured_are_not_planned(client: TestClient) -> None:
    found = answered(client, asked(rate=0.05, devices=["hexagon-x-elite"]))
    assert [one["reason"] for one in found["rejected"]] == ["format_not_in_engine"]
