"""Uploading, importing, listing and deciding about measured results over HTTP, on every database."""

import copy
import datetime as dt
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from service.benchmarks.comparison import Loop, PredictedRun
from service.benchmarks.queries import accepted_benchmarks
from tests.conftest import FixedClock

FIXTURES = Path(__file__).parents[1] / "fixtures" / "benchmarks"
CONTEXT: dict[str, Any] = {
    "device": "h200-sxm", "devices": 1, "llm": "llama-3.1-8b", "precision": {"weights": "bf16"},
    "engine": {"name": "vllm", "version": "0.24.0"},
}  # fmt: skip

# 4 clients, 40 requests of 100 tokens in 10 s: 4 requests/s, 400 tokens/s; 80 + 9 · 99 = 971 ms; 3.9 in flight.
RUN: dict[str, Any] = {
    "context": CONTEXT,
    "load": {"kind": "closed", "concurrency": 4, "requests": 40},
    "traffic": {
        "prompt_tokens": {"distribution": "fixed", "tokens": 500},
        "output_tokens": {"distribution": "fixed", "tokens": 100},
    },
    "results": {
        "completed": 40, "failed": 0, "duration_s": 10.0, "requests_per_s": 4.0, "output_tokens_per_s": 400.0,
        "ttft_ms": {"mean": 80.0, "p50": 78.0, "p90": 95.0}, "tpot_ms": {"mean": 9.0, "p50": 9.0, "p90": 9.4},
        "e2e_ms": {"mean": 971.0, "p50": 970.0, "p90": 1010.0},
    },
}  # fmt: skip
NOT_FIXTURES = {"README.md", "truth.json", "synthesise.py", "__pycache__"}
counter = iter(range(1_000_000))


def a_run(**results: Any) -> dict[str, Any]:
    """A right run that no other test uploaded."""
    run = copy.deepcopy(RUN)
    run["context"]["notes"] = f"run {next(counter)}"
    run["results"].update(results)
    return run


def an_import(name: str, **context: Any) -> dict[str, Any]:
    notes = {"notes": f"import {next(counter)}"}
    return {"context": CONTEXT | notes | context, "payload": (FIXTURES / name).read_text()}


def pointers(response: Any) -> list[str]:
    assert response.status_code == 422, response.text
    assert response.headers["content-type"] == "application/problem+json"
    return [error["pointer"] for error in response.json()["errors"]]


class TestPostBenchmark:
    def test_a_plausible_result_is_accepted(self, client: TestClient) -> None:
        answer = client.post("/v1/benchmarks", json=a_run())
        assert answer.status_code == 201
        receipt = answer.json()
        assert (receipt["status"], receipt["reasons"]) == ("accepted", [])
        assert set(receipt["predicted_over_measured"]) == {"ttft_ms", "tpot_ms", "e2e_ms", "output_tokens_per_s"}

    def test_an_implausible_one_is_quarantined_with_figures(self, client: TestClient) -> None:
        answer = client.post("/v1/benchmarks", json=a_run(output_tokens_per_s=800.0)).json()
        assert answer["status"] == "quarantined"
        assert "throughput_identity: 4 requests/s · 100 tokens = 400 tokens/s, stated 800" in answer["reasons"]

    def test_the_stored_result_echoes_defaults(self, client: TestClient) -> None:
        stored = client.get(f"/v1/benchmarks/{client.post('/v1/benchmarks', json=a_run()).json()['id']}").json()
        context = stored["benchmark"]["context"]
        assert context["layout"] == {
            "tensor_parallel": 1, "pipeline_parallel": 1, "data_parallel": 1, "expert_parallel": 1,
        }  # fmt: skip
        assert context["precision"] == {"weights": "bf16", "kv_cache": "bf16"}
        assert {check["name"] for check in stored["checks"]} >= {"littles_law", "roofline", "units", "power"}

    def test_faster_than_the_device_can_read_its_weights(self, client: TestClient) -> None:
        """8 B parameters of 16 bits are 15 GiB: at 4.8 TB/s no token takes less than 3.3 ms."""
        scaled = {"ttft_ms": {"mean": 80.0}, "tpot_ms": {"mean": 1.5}, "e2e_ms": {"mean": 228.5}}
        rates = {"requests_per_s": 17.0, "output_tokens_per_s": 1700.0, "duration_s": 40 / 17.0}
        answer = client.post("/v1/benchmarks", json=a_run(**scaled, **rates)).json()
        assert answer["status"] == "quarantined"
        assert answer["reasons"][0].startswith("roofline: faster than the device can be: TPOT 1.5 ms, roofline 3.")

    def test_what_does_not_fit_is_flagged(self, client: TestClient) -> None:
        run = a_run()
        run["context"] |= {"device": "l4", "llm": "llama-3.1-70b"}
        answer = client.post("/v1/benchmarks", json=run).json()
        assert any("bytes per device" in warning for warning in answer["warnings"])

    def test_predicted_before_and_after(self, client: TestClient) -> None:
        run_id = client.post("/v1/benchmarks", json=a_run()).json()["id"]
        stored = client.get(f"/v1/benchmarks/{run_id}").json()
        assert stored["before"]["predicted_over_measured"] == stored["predicted_over_measured"]
        assert set(stored["after"]["predicted_over_measured"]) == set(stored["predicted_over_measured"])

    def test_layout_and_precision_may_stand_in_the_engines_arguments(self, client: TestClient) -> None:
        run = a_run()
        run["context"] |= {"devices": 2, "precision": {}}
        run["context"]["engine"]["arguments"] = ["--tensor-parallel-size", "2", "--quantization", "fp8"]
        stored = client.get(f"/v1/benchmarks/{client.post('/v1/benchmarks', json=run).json()['id']}").json()
        assert stored["benchmark"]["context"]["layout"]["tensor_parallel"] == 2
        assert stored["benchmark"]["context"]["precision"]["weights"] == "fp8"

    @pytest.mark.parametrize(
        ("path", "value", "pointer"),
        [
            ("context.device", "h2000", "/context/device"),
            ("context.llm", "llama-99", "/context/llm"),
            ("context.node", "no-such-node", "/context/node"),
            ("context.devices", 2, "/context/layout"),
            ("context.layout", {"tensor_parallel": 2}, "/context/layout"),
            ("context.precision", {}, "/context/precision/weights"),
            ("context.precision", {"weights": "fp7"}, "/context/precision/weights"),
            ("context.notes", "a\x00b", "/context/notes"),
            ("context.measured_at", "yesterday", "/context/measured_at"),
            ("context.measured_at", "2026-11-21T12:00:00", "/context/measured_at"),
            ("results.completed", "40", "/results/completed"),
            ("results.duration_s", -1.0, "/results/duration_s"),
            ("results.ttft_ms", {"mean": -80.0}, "/results/ttft_ms/mean"),
            ("results.ttft_ms", {"mean": "80"}, "/results/ttft_ms/mean"),
            ("results.ttft_ms", {"p97": 80.0}, "/results/ttft_ms/p97"),
            ("results", {"completed": 3}, "/results"),
            ("load", {"kind": "closed", "concurrency": 0}, "/load/concurrency"),
            ("load", {"kind": "bursty"}, "/load"),
            ("surprise", 1, "/surprise"),
        ],
    )
    def test_wrong_fields_are_named(self, client: TestClient, path: str, value: Any, pointer: str) -> None:
        run = a_run()
        *way, last = path.split(".")
        here = run
        for step in way:
            here = here[step]
        here[last] = value
        assert pointer in pointers(client.post("/v1/benchmarks", json=run))

    def test_every_number_as_a_string_is_refused(self, client: TestClient) -> None:
        def quoted(value: Any) -> Any:
            if isinstance(value, dict):
                return {k: quoted(v) for k, v in value.items()}
            return str(value) if isinstance(value, (int, float)) else value

        assert len(pointers(client.post("/v1/benchmarks", json=quoted(a_run())))) >= 15

    @pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
    def test_numbers_that_json_does_not_have(self, client: TestClient, constant: str) -> None:
        body = json.dumps(a_run()).replace("400.0", constant)
        answer = client.post("/v1/benchmarks", content=body, headers={"content-type": "application/json"})
        assert answer.status_code in (400, 422)

    @pytest.mark.parametrize("body", [b"", b"\x00\x01\xff", b'{"context": {"dev', b"[" * 50_000, b"null", b"[]"])
    def test_junk(self, client: TestClient, body: bytes) -> None:
        answer = client.post("/v1/benchmarks", content=body, headers={"content-type": "application/json"})
        assert answer.status_code in (400, 422)

    def test_a_clock_an_hour_ahead_is_quarantined(self, client: TestClient, clock: FixedClock) -> None:
        run = a_run()
        run["context"]["measured_at"] = (clock.now + dt.timedelta(hours=1)).isoformat()
        answer = client.post("/v1/benchmarks", json=run).json()
        assert answer["status"] == "quarantined"
        assert "60 minutes after it was received" in answer["reasons"][0]


class TestIdempotency:
    def test_the_same_upload_again_is_the_first_record(self, client: TestClient) -> None:
        run = a_run()
        first, again = client.post("/v1/benchmarks", json=run), client.post("/v1/benchmarks", json=run)
        assert (first.status_code, again.status_code) == (201, 200)
        assert first.json() == again.json()

    def test_order_of_keys_and_white_space_do_not_count(self, client: TestClient) -> None:
        run = a_run()
        first = client.post("/v1/benchmarks", json=run).json()
        body = json.dumps(dict(reversed(run.items())), indent=4)
        again = client.post("/v1/benchmarks", content=body, headers={"content-type": "application/json"})
        assert (again.status_code, again.json()["id"]) == (200, first["id"])

    def test_a_key_used_for_another_body_is_a_conflict(self, client: TestClient) -> None:
        key = {"Idempotency-Key": f"key-{next(counter)}"}
        run, other = a_run(), a_run()
        first = client.post("/v1/benchmarks", json=run, headers=key)
        assert client.post("/v1/benchmarks", json=run, headers=key).json() == first.json()
        assert client.post("/v1/benchmarks", json=other, headers=key).status_code == 409
        assert client.post("/v1/benchmarks", json=other).status_code == 201

    def test_a_key_on_a_repeated_body_is_remembered(self, client: TestClient) -> None:
        key = {"Idempotency-Key": f"key-{next(counter)}"}
        run = a_run()
        client.post("/v1/benchmarks", json=run)
        assert client.post("/v1/benchmarks", json=run, headers=key).status_code == 200
        assert client.post("/v1/benchmarks", json=a_run(), headers=key).status_code == 409

    def test_an_import_and_its_key(self, client: TestClient) -> None:
        key = {"Idempotency-Key": f"key-{next(counter)}"}
        body = an_import("vllm_bench_serve.jsonl")
        first, again = (client.post("/v1/benchmarks/import", json=body, headers=key) for _ in range(2))
        assert (first.status_code, again.status_code) == (201, 200)
        assert first.json() == again.json()
        assert len(first.json()["runs"]) == 2

    def test_eight_at_once_give_one_record(self, client: TestClient, app: FastAPI) -> None:
        run = a_run()
        answers: list[Any] = []
        threads = [
            threading.Thread(target=lambda: answers.append(client.post("/v1/benchmarks", json=run))) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(a.status_code for a in answers) == [200] * 7 + [201]
        assert len({a.json()["id"] for a in answers}) == 1
        with app.state.database.reading() as session:
            notes = [row.document["context"]["notes"] for row in accepted_benchmarks(session)]
        assert notes.count(run["context"]["notes"]) == 1


class TestImport:
    @pytest.mark.parametrize(
        "name",
        sorted(p.name for p in FIXTURES.iterdir() if p.suffix != ".py" and p.name not in ("README.md", "truth.json")),
    )
    def test_every_fixture_is_taken_in(self, client: TestClient, name: str) -> None:
        two_gpus = {"devices": 2} if "inferencex" in name else {}
        answer = client.post("/v1/benchmarks/import", json=an_import(name, **two_gpus))
        assert answer.status_code == 201, answer.text
        assert answer.json()["status"] in ("accepted", "quarantined")

    @pytest.mark.parametrize(
        "name", ["vllm_bench_serve.json", "genai_perf.json", "llmd_report_v0_2.json", "aiperf.json"]
    )
    def test_sound_runs_are_accepted(self, client: TestClient, clock: FixedClock, name: str) -> None:
        clock.advance(days=1)  # the files were written on the day of the tests' clock
        answer = client.post("/v1/benchmarks/import", json=an_import(name)).json()
        assert (answer["status"], answer["reasons"]) == ("accepted", [])

    def test_a_client_that_set_the_pace_is_quarantined(self, client: TestClient) -> None:
        body = an_import("llmperf_summary.json")
        body["payload"] = json.loads(body["payload"]) | {"num_concurrent_requests": 5}
        answer = client.post("/v1/benchmarks/import", json=body).json()
        assert answer["status"] == "quarantined"
        assert "of the clients were idle" in answer["reasons"][0]

    def test_understated_tpot_is_quarantined(self, client: TestClient) -> None:
        body = an_import("inference_perf.json")
        body["payload"] = json.loads(body["payload"])
        body["payload"]["successes"]["latency"]["time_per_output_token"]["mean"] /= 2
        answer = client.post("/v1/benchmarks/import", json=body).json()
        assert answer["reasons"][0].startswith("latency_identity: TTFT 21.75 ms + TPOT 5.001 ms")

    @pytest.mark.parametrize(
        ("key", "status"), [("std_ttft_ms", 201), ("made_up", 201), ("mean_ttft_ms", 422), ("output_throughput", 422)]
    )
    def test_python_tools_write_nan(self, client: TestClient, key: str, status: int) -> None:
        """In a figure that is used it is refused; elsewhere the run is taken in, whatever the database makes of NaN."""
        body = an_import("vllm_bench_serve.json")
        body["payload"] = json.dumps(json.loads(body["payload"]) | {key: float("nan")})
        assert client.post("/v1/benchmarks/import", json=body).status_code == status

    def test_what_the_tool_calls_invalid_is_quarantined(self, client: TestClient) -> None:
        answer = client.post("/v1/benchmarks/import", json=an_import("mlperf_offline_invalid.txt")).json()
        assert "file: MLPerf calls the result INVALID" in answer["reasons"]

    def test_a_contradiction_between_file_and_context_is_quarantined(self, client: TestClient) -> None:
        answer = client.post(
            "/v1/benchmarks/import", json=an_import("vllm_bench_serve.json", llm="llama-3.1-70b")
        ).json()
        assert answer["status"] == "quarantined"
        assert "(llama-3.1-8b), the context says llama-3.1-70b" in answer["reasons"][0]

    def test_what_nobody_states_is_asked_for_by_name(self, client: TestClient) -> None:
        body = {"context": {}, "payload": (FIXTURES / "inference_perf.json").read_text()}
        assert pointers(client.post("/v1/benchmarks/import", json=body)) == [
            "/context/device", "/context/llm", "/context/devices", "/context/engine",
        ]  # fmt: skip

    def test_a_file_may_state_everything(self, client: TestClient) -> None:
        body = {
            "context": {"precision": {"weights": "bf16"}},
            "payload": (FIXTURES / "llmd_report_v0_2.json").read_text(),
        }
        stored = client.get(f"/v1/benchmarks/{client.post('/v1/benchmarks/import', json=body).json()['id']}").json()
        context = stored["benchmark"]["context"]
        assert (context["device"], context["llm"], context["engine"]["name"]) == ("h200-sxm", "llama-3.1-8b", "vllm")

    @pytest.mark.parametrize("payload", ["", None, "junk", {"a": 1}, [], 7, "{", "\ud800"])
    def test_junk_is_named(self, client: TestClient, payload: Any) -> None:
        body = json.dumps({"context": CONTEXT, "payload": payload})
        answer = client.post("/v1/benchmarks/import", content=body, headers={"content-type": "application/json"})
        assert "/payload" in pointers(answer)

    def test_200_megabytes_are_too_many(self, client: TestClient) -> None:
        body = b'{"payload": "' + b"x" * 200_000_000 + b'"}'
        answer = client.post("/v1/benchmarks/import", content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 413


class TestGet:
    def test_filters_and_pages(self, client: TestClient) -> None:
        ids = [client.post("/v1/benchmarks", json=a_run()).json()["id"] for _ in range(3)]
        bad = client.post("/v1/benchmarks", json=a_run(failed=30)).json()["id"]
        listed: list[str] = []
        query = "/v1/benchmarks?status=accepted&device=h200-sxm&engine=vllm&limit=2"
        page = client.get(query).json()
        while True:
            listed += [row["id"] for row in page["items"]]
            if page["next"] is None:
                break
            page = client.get(f"{query}&next={page['next']}").json()
        assert set(ids) <= set(listed)
        assert listed == sorted(set(listed))
        assert bad not in listed
        quarantined = client.get("/v1/benchmarks?status=quarantined&limit=500").json()["items"]
        assert bad in [row["id"] for row in quarantined]

    def test_unknown_id(self, client: TestClient) -> None:
        assert client.get("/v1/benchmarks/bench_nothing").status_code == 404


class TestDecisions:
    def test_release_and_retract_are_recorded(self, client: TestClient, app: FastAPI) -> None:
        run_id = client.post("/v1/benchmarks", json=a_run(failed=30)).json()["id"]
        assert run_id not in _accepted(app)
        released = client.post(f"/v1/benchmarks/{run_id}/release", json={"reason": "failures were the proxy's"}).json()
        assert (released["status"], run_id in _accepted(app)) == ("accepted", True)
        retracted = client.post(f"/v1/benchmarks/{run_id}/retract", json={"reason": "wrong model loaded"}).json()
        assert (retracted["status"], run_id in _accepted(app)) == ("retracted", False)
        assert [e["action"] for e in retracted["events"]] == ["release", "retract"]
        assert retracted["reasons"] == released["reasons"]

    def test_the_same_decision_twice_is_a_conflict(self, client: TestClient) -> None:
        run_id = client.post("/v1/benchmarks", json=a_run()).json()["id"]
        assert client.post(f"/v1/benchmarks/{run_id}/release", json={"reason": "why not"}).status_code == 409
        assert client.post(f"/v1/benchmarks/{run_id}/retract", json={"reason": "a mistake"}).status_code == 200
        assert client.post(f"/v1/benchmarks/{run_id}/retract", json={"reason": "a mistake"}).status_code == 409

    def test_a_repeated_upload_of_a_retracted_result_says_so(self, client: TestClient) -> None:
        run = a_run()
        run_id = client.post("/v1/benchmarks", json=run).json()["id"]
        client.post(f"/v1/benchmarks/{run_id}/retract", json={"reason": "a mistake"})
        assert client.post("/v1/benchmarks", json=run).json()["status"] == "retracted"

    def test_a_reason_is_needed(self, client: TestClient) -> None:
        run_id = client.post("/v1/benchmarks", json=a_run()).json()["id"]
        assert client.post(f"/v1/benchmarks/{run_id}/retract", json={"reason": ""}).status_code == 422
        assert client.post("/v1/benchmarks/bench_none/retract", json={"reason": "because"}).status_code == 404


class TestRoles:
    def test_who_may_do_what(self, client: TestClient, with_role: Callable[[str], dict[str, str]]) -> None:
        reader, agent, editor = (with_role(role) for role in ("reader", "agent", "editor"))
        assert client.post("/v1/benchmarks", json=a_run()).status_code == 401
        assert client.post("/v1/benchmarks", json=a_run(), headers=reader).status_code == 403
        run_id = client.post("/v1/benchmarks", json=a_run(), headers=agent).json()["id"]
        assert client.get(f"/v1/benchmarks/{run_id}", headers=reader).status_code == 200
        body = {"reason": "a mistake"}
        assert client.post(f"/v1/benchmarks/{run_id}/retract", json=body, headers=agent).status_code == 403
        assert client.post(f"/v1/benchmarks/{run_id}/retract", json=body, headers=editor).status_code == 200


class TestLoop:
    """With a planner: its roofline bounds results, its predictions are compared, changes are announced."""

    def test_faster_than_the_roofline(self, client: TestClient, app: FastAPI) -> None:
        app.state.benchmark_loop = Loop(predict=lambda _session, _upload: PredictedRun(bound_tpot_ms=20.0))
        answer = client.post("/v1/benchmarks", json=a_run()).json()
        assert answer["reasons"] == ["roofline: faster than the device can be: TPOT 9 ms, roofline 20 ms"]

    def test_predicted_over_measured(self, client: TestClient, app: FastAPI) -> None:
        predicted = PredictedRun(ttft_ms=100.0, tpot_ms=8.1, output_tokens_per_s=420.0)
        app.state.benchmark_loop = Loop(predict=lambda _session, _upload: predicted)
        answer = client.post("/v1/benchmarks", json=a_run()).json()
        assert answer["predicted_over_measured"] == pytest.approx(
            {"ttft_ms": 1.25, "tpot_ms": 0.9, "output_tokens_per_s": 1.05}
        )

    def test_only_accepted_runs_are_announced_and_a_failing_hook_undoes_the_upload(
        self, client: TestClient, app: FastAPI
    ) -> None:
        announced: list[str] = []
        app.state.benchmark_loop = Loop(changed=lambda _session, ids: announced.extend(ids))
        good = client.post("/v1/benchmarks", json=a_run()).json()["id"]
        client.post("/v1/benchmarks", json=a_run(failed=30))
        assert announced == [good]

        def fails(_session: Any, _ids: list[str]) -> None:
            raise RuntimeError("no")

        app.state.benchmark_loop = Loop(changed=fails)
        run = a_run()
        assert client.post("/v1/benchmarks", json=run).status_code == 500
        app.state.benchmark_loop = None
        assert client.post("/v1/benchmarks", json=run).status_code == 201


def _accepted(app: FastAPI) -> list[str]:
    with app.state.database.reading() as session:
        return [row.id for row in accepted_benchmarks(session)]
