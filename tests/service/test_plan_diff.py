"""Two stored plans compared, over HTTP."""

from decimal import Decimal
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from service.recommendations.tables import RecommendationTable
from tests.conftest import NOW


def stored(name: str, usd: str | None, lines: list[dict[str, Any]], fleet: dict[str, int]) -> RecommendationTable:
    nodes = [{"offer": o, "node": "hgx", "device": "h100-sxm", "nodes": n} for o, n in fleet.items()]
    return RecommendationTable(
        id=f"rec_{name}", created_at=NOW, outcome="optimal" if lines else "infeasible", objective="cost",
        usd_per_hour=None if usd is None else Decimal(usd),
        price_as_of=NOW, catalog_digest="d", correction_set=None, version="1", request={},
        result={"plan": lines, "fleet": nodes},
    )  # fmt: skip


def line(offer: str, replicas: int, tensor_parallel: int = 4, data_parallel: int = 1) -> dict[str, Any]:
    return {
        "workload": "chat", "offer": offer, "node": "hgx", "device": "h100-sxm", "engine": "vllm", "nodes": 1,
        "replicas": replicas, "precision": {"weights": "fp8", "kv_cache": "bf16"},
        "layout": {"tensor_parallel": tensor_parallel, "pipeline_parallel": 1,
                   "data_parallel": data_parallel, "expert_parallel": 1},
    }  # fmt: skip


def test_nodes_and_replicas_that_change_are_said(client: TestClient, app: FastAPI) -> None:
    with app.state.database.writing() as session:
        session.merge(stored("a", "60.0", [line("aws:x", 6), line("gcp:y", 1, 8)], {"aws:x": 3, "gcp:y": 1}))
        session.merge(stored("b", "41.5", [line("aws:x", 2), line("lambda:z", 3)], {"aws:x": 1, "lambda:z": 2}))
        session.merge(stored("c", None, [], {}))
    diff = client.get("/v1/recommendations/rec_b/diff?against=rec_a").json()
    assert diff["usd_per_hour_change"] == "-18.500000"
    assert (diff["before"]["nodes"], diff["after"]["nodes"]) == (4, 3)
    moved = {c["offer"]: (c["before"], c["after"]) for c in diff["nodes"]}
    assert moved == {"aws:x": (3, 1), "gcp:y": (1, 0), "lambda:z": (0, 2)}
    replicas = {(c["offer"], c["layout"]["tensor_parallel"]): (c["before"], c["after"]) for c in diff["replicas"]}
    assert replicas == {("aws:x", 4): (6, 2), ("gcp:y", 8): (1, 0), ("lambda:z", 4): (0, 3)}
    assert diff["words"][0] == "saves 18.50 USD an hour"
    assert "release 2 of 3 hgx nodes (h100-sxm) at aws:x" in diff["words"]
    assert "rent 2 hgx nodes (h100-sxm) at lambda:z" in diff["words"]
    assert "chat: stop 1 × TP8, weights fp8, KV bf16, h100-sxm at gcp:y" in diff["words"]
    assert [word.split(": ")[-1].split(" ")[0] for word in diff["words"][1:]] == [  # what is new serves before the old goes
        "rent", "start", "stop", "stop", "release", "release",
    ]  # fmt: skip
    back = client.get("/v1/recommendations/rec_a/diff?against=rec_b").json()
    assert back["words"][0] == "costs 18.50 USD an hour more"
    assert {(c["offer"], c["after"], c["before"]) for c in back["nodes"]} == {
        (c["offer"], c["before"], c["after"]) for c in diff["nodes"]
    }
    same = client.get("/v1/recommendations/rec_a/diff?against=rec_a").json()
    assert same["same"]
    assert same["words"] == ["nothing changes"]
    nothing = client.get("/v1/recommendations/rec_c/diff?against=rec_a").json()
    assert nothing["usd_per_hour_change"] is None
    assert nothing["after"] == {"recommendation": "rec_c", "outcome": "infeasible", "usd_per_hour": None, "nodes": 0}


def test_replicas_that_begin_to_draft_are_started_anew(client: TestClient, app: FastAPI) -> None:
    drafting = {
        "method": "ngram", "draft_tokens": 4, "acceptance_fraction": 0.6, "draft_step_fraction": 0.0, "draft_cost_source": "test",
    }  # fmt: skip
    plain = line("aws:x", 2) | {"engine_settings": {"name": "vllm", "speculative": None}}
    with app.state.database.writing() as session:
        session.merge(stored("d", "20.0", [plain], {"aws:x": 1}))
        session.merge(
            stored("e", "20.0", [plain | {"engine_settings": {"name": "vllm", "speculative": drafting}}], {"aws:x": 1})
        )
    diff = client.get("/v1/recommendations/rec_e/diff?against=rec_d").json()
    assert not diff["same"]
    assert [change["speculative"] for change in diff["replicas"]] == [None, drafting]
    how = "2 × TP4, weights fp8, KV bf16, h100-sxm at aws:x"
    assert diff["words"][1:] == [f"chat: stop {how}", f"chat: start {how}, drafting 4 tokens a step"]


@pytest.mark.parametrize(
    ("name", "before", "after", "said"),
    [
        ("max_batched_tokens", 8192, 2048, ("steps of at most 8,192 tokens", "steps of at most 2,048 tokens")),
        ("max_sequences", 1024, 256, ("1,024 seats", "256 seats")),
        ("max_captured_tokens", None, 4096, ("", "graphs of at most 4,096 tokens")),
        ("api_servers", 1, 4, ("", "4 processes that answer")),
    ],
)
def test_replicas_whose_scheduler_is_told_something_else_are_started_anew(
    client: TestClient, app: FastAPI, name: str, before: int | None, after: int, said: tuple[str, str]
) -> None:
    told = {
        "name": "vllm",
        "max_batched_tokens": 512,
        "max_sequences": 512,
        "max_captured_tokens": None,
        "api_servers": 1,
    }
    names = {value: f"{name}_{value}" for value in (before, after)}
    with app.state.database.writing() as session:
        for value, plan in names.items():
            lines = [line("aws:x", 2) | {"engine_settings": told | {name: value}}]
            session.merge(stored(plan, "20.0", lines, {"aws:x": 1}))
    diff = client.get(f"/v1/recommendations/rec_{names[after]}/diff?against=rec_{names[before]}").json()
    assert not diff["same"]
    assert not diff["nodes"]
    assert sorted((change[name] or 0, change["before"], change["after"]) for change in diff["replicas"]) == sorted(
        [(before or 0, 2, 0), (after, 0, 2)]
    )
    _, stop, start = diff["words"]
    assert stop.startswith("chat: stop 2 × TP4")
    assert start.startswith("chat: start 2 × TP4")
    assert stop != start.replace("start", "stop", 1)
    assert said[0] in stop
    assert said[1] in start


def test_classes_that_move_to_replicas_of_other_steps_say_which(client: TestClient, app: FastAPI) -> None:
    """Replicas of both sizes stay; what moves is traffic."""

    def lines(share: float) -> list[dict[str, Any]]:
        routed = [{"traffic_class": "short", "share_fraction": part} for part in (share, 1.0 - share)]
        return [
            line("aws:x", 1) | {"engine_settings": {"max_batched_tokens": tokens}, "classes": [one]}
            for tokens, one in zip((8192, 512), routed, strict=True)
        ]

    with app.state.database.writing() as session:
        session.merge(stored("f", "20.0", lines(0.75), {"aws:x": 1}))
        session.merge(stored("g", "20.0", lines(0.25), {"aws:x": 1}))
    diff = client.get("/v1/recommendations/rec_g/diff?against=rec_f").json()
    assert not diff["replicas"]
    moved = {one["max_batched_tokens"]: (one["before_fraction"], one["after_fraction"]) for one in diff["routing"]}
    assert moved == {8192: (0.75, 0.25), 512: (0.25, 0.75)}
    assert len(set(diff["words"])) == len(diff["words"])
    assert any("from 25 to 75 %" in words and "steps of at most 512 tokens" in words for words in diff["words"])


def test_unknown_and_missing(client: TestClient) -> None:
    assert client.get("/v1/recommendations/rec_none/diff?against=rec_nor").status_code == 404
    assert client.get("/v1/recommendations/rec_none/diff").status_code == 422
