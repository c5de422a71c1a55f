"""Traffic that cannot be, over HTTP: whatever is sent, the answer is a problem document or an outcome that says why."""

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient
from httpx import Response

from tests.service.bodies import changed, estimated

LINES = 10_000_000
ROW = {"timestamp": 0, "input_length": 40, "output_length": 8, "hash_ids": [1]}
CASE: dict[str, Any] = {
    "llm": "llama-3.1-8b",
    "device": "h100-sxm",
    "traffic": {"prompt_tokens": 200, "output_tokens": 100},
    "load": {"kind": "closed", "concurrency": 8, "requests": 32},
}


def posted(client: TestClient, payload: str) -> Response:
    typed = {"Content-Type": "application/json"}
    return client.post("/v1/traces", content=json.dumps({"payload": payload}), headers=typed)


def lines(*rows: dict[str, Any]) -> str:
    return "\n".join(json.dumps(row) for row in rows)


def problem(answer: Response, status: int) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = answer.json()
    assert {"type", "title", "status"} <= document.keys()
    return document


class TestTraces:
    @pytest.mark.parametrize(
        ("rows", "said"),
        [
            ([ROW, {k: v for k, v in ROW.items() if k != "input_length"}], "line 2: `input_length` is missing"),
            ([ROW, {k: v for k, v in ROW.items() if k != "timestamp"}], "line 2: `timestamp` is missing"),
            ([ROW, ROW | {"output_length": None}, ROW], "line 2: `output_length` is missing"),
            ([ROW | {"timestamp": 9}, ROW | {"timestamp": 3}], "line 2: `timestamp` goes back behind line 1"),
            ([ROW, ROW | {"timestamp": float("inf")}], "line 2: `timestamp` is not a number"),
        ],
    )
    def test_holes_in_fields_and_clocks_that_run_backwards(
        self, client: TestClient, rows: list[dict[str, Any]], said: str
    ) -> None:
        (error,) = problem(posted(client, lines(*rows)), 422)["errors"]
        assert error["pointer"] == "/payload"
        assert said in error["detail"]

    def test_a_hole_in_time_is_stated(self, client: TestClient) -> None:
        """Two hours of requests with eight hours of nothing between: a trace like any other, whose longest silence is said."""
        clock = [60_000 * n for n in range(60)] + [36_000_000 + 60_000 * n for n in range(60)]
        answer = posted(client, lines(*(ROW | {"timestamp": at} for at in clock)))
        assert answer.status_code == 201, answer.text
        gap = answer.json()["arrivals"]["longest_gap_s"]
        assert gap == pytest.approx(36_000 - 59 * 60)

    def test_ten_million_lines(self, client: TestClient) -> None:
        """They are more than a body may be: refused before any is read."""
        document = problem(posted(client, "input_length,output_length\n" + "1,1\n" * LINES), 413)
        assert "bytes" in document["detail"]


class TestRequests:
    def test_sessions_longer_than_the_context(self, client: TestClient) -> None:
        """They end where the next turn would not fit, which is said; a first turn that does not fit is the client's mistake."""
        sessions = {"turns": 400, "user_tokens": 1000, "think_time_s": 5}
        traffic = {"output_tokens": 500, "sessions": sessions}
        found = estimated(client, CASE | {"traffic": traffic, "engine": {"max_context_tokens": 16_384}})
        assert found["outcome"] == "estimated"
        first = estimated(client, CASE | {"traffic": traffic, "engine": {"max_context_tokens": 1_000}})
        assert first["outcome"] == "unsupported"
        workload = {
            "name": "w",
            "llm": "llama-3.1-8b",
            "traffic": traffic | {"requests_per_s": 1},
            "targets": {"ttft_ms": {"p95": 9000}},
        }
        body = {
            "workloads": [workload | {"context_tokens": 1_000}],
            "alternatives": 0,
            "limits": {"devices": ["h100-sxm"]},
        }
        (error,) = problem(client.post("/v1/recommendations", json=body), 422)["errors"]
        assert error["pointer"].startswith("/workloads/0")

    def test_adapters_larger_than_the_base(self, client: TestClient) -> None:
        adapters = {"count": 1, "rank": 600}
        found = estimated(client, CASE | {"llm": "qwen3-0.6b", "adapters": adapters})
        assert (found["outcome"], found["reason"]) == ("unsupported", "invalid_input")
        many = estimated(client, CASE | {"adapters": {"count": 10_000, "rank": 256}})
        assert many["outcome"] in ("does_not_fit", "unsupported")
        workload = {
            "name": "w", "llm": "qwen3-0.6b", "traffic": CASE["traffic"] | {"requests_per_s": 1}, "adapters": adapters,
            "targets": {"ttft_ms": {"p95": 9000}},
        }  # fmt: skip
        answer = client.post("/v1/recommendations", json={"workloads": [workload], "limits": {"devices": ["h100-sxm"]}})
        assert "no smaller than the matrices" in json.dumps(problem(answer, 422))

    @pytest.mark.parametrize(
        ("llm", "media"),
        [
            ("kimi-k2.5", {"images": {"width_px": 512, "height_px": 512}}),
            ("gemma-3-4b", {"video": {"seconds": 5, "frames_per_s": 2, "width_px": 512, "height_px": 512}}),
            ("qwen3-vl-8b", {"audio": {"seconds": 5}}),
        ],
    )
    def test_an_encoder_without_figures(self, client: TestClient, llm: str, media: dict[str, Any]) -> None:
        found = estimated(client, CASE | {"llm": llm, "traffic": CASE["traffic"] | media})
        assert (found["outcome"], found["reason"]) == ("unsupported", "figure_missing")
        (field,) = media
        workload = {
            "name": "w",
            "llm": llm,
            "traffic": CASE["traffic"] | media | {"requests_per_s": 1},
            "targets": {"ttft_ms": {"p95": 9}},
        }
        (error,) = problem(client.post("/v1/recommendations", json={"workloads": [workload]}), 422)["errors"]
        assert error["pointer"] == f"/workloads/0/traffic/{field}"


class TestOverheads:
    """Structured output, calls of tools, guided decoding and drafting rest on a figure with a source, or are refused."""

    def test_grammars_take_what_their_source_says(self, client: TestClient) -> None:
        shared = changed(CASE, "traffic/structured_fraction", 1.0)
        plain, guided = estimated(client, CASE), estimated(client, shared)
        (mask,) = [term for term in guided["step"] if term["term"] == "grammar_masks"]
        assert mask["ms"] == pytest.approx(0.05 * 8, rel=0.3)
        assert guided["basis"] == "borrowed"
        assert guided["tpot_ms"]["mean"]["expected"] > plain["tpot_ms"]["mean"]["expected"]

    def test_drafts_are_accepted_as_the_request_states_of_its_traffic(self, client: TestClient) -> None:
        draft = {"method": "ngram", "draft_tokens": 4, "draft_step_fraction": 0.0, "draft_cost_source": "none to run"}
        unstated = CASE | {"engine": {"name": "vllm", "speculative": draft}}
        answer = client.post("/v1/estimates", json={"estimates": [unstated]})
        assert "acceptance_fraction" in json.dumps(problem(answer, 422))
        each = [
            estimated(
                client, CASE | {"engine": {"name": "vllm", "speculative": draft | {"acceptance_fraction": share}}}
            )
            for share in (0.2, 0.8)
        ]
        assert each[0]["tpot_ms"]["mean"]["expected"] > each[1]["tpot_ms"]["mean"]["expected"]

    def test_what_a_draft_costs_is_stated_or_missing(self, client: TestClient) -> None:
        draft = {"method": "head", "draft_tokens": 4, "acceptance_fraction": 0.6}
        found = client.post(
            "/v1/estimates", json={"estimates": [CASE | {"engine": {"name": "vllm", "speculative": draft}}]}
        )
        assert found.status_code in (200, 422)
        assert "draft_step_fraction" in found.text or "figure_missing" in found.text
