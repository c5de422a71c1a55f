"""The agent's commands against a real service and a real engine."""

import gzip
import json
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.agent.cli import main
from service.agent.load import arrivals_s
from service.agent.spool import Spool
from tests.bench.server_process import ServerProcess

FIXTURES = Path(__file__).parents[1] / "fixtures" / "benchmarks"
DEPLOYMENT = [
    "--device", "h200-sxm", "--llm", "llama-3.1-8b", "--tensor-parallel", "1", "--weights", "bf16", "--engine", "vllm",
]  # fmt: skip
LOAD = ["--model", "m", "--prompt-tokens", "16:32", "--output-tokens", "20", "--vocabulary-tokens", "1000"]


def bench(service: ServerProcess, engine: str, spool: Path, *more: str) -> int:
    return main(
        ["bench", "--url", service.address, "--endpoint", engine, "--spool", str(spool), "--warm-up", "4",
         *LOAD, *DEPLOYMENT, *more]
    )  # fmt: skip


class TestBench:
    def test_a_sweep_is_measured_and_uploaded(self, service: ServerProcess, engine: str, tmp_path: Path) -> None:
        records = tmp_path / "records.jsonl.gz"
        code = bench(
            service, engine, tmp_path, "--concurrency", "2,4", "--rate", "20", "--requests", "24",
            "--records", str(records), "--notes", "sweep",
        )  # fmt: skip
        assert code == 0
        assert not list(Spool(tmp_path).waiting())
        answers = [json.loads(f.read_text())["answer"] for f in sorted((tmp_path / "sent").glob("*.note.json"))]
        assert [a["status"] for a in answers] == ["accepted"] * 3
        stored = httpx.get(f"{service.address}/v1/benchmarks/{answers[0]['id']}").json()["benchmark"]
        assert stored["load"]["concurrency"] == 2
        assert stored["results"]["completed"] == 24
        assert stored["context"]["agent"]["version"]
        with gzip.open(records, "rt") as lines:
            rows = [json.loads(line) for line in lines]
        assert len(rows) == 72
        each = [(r["e2e_ms"] - r["ttft_ms"]) / (r["output_tokens"] - 1) for r in rows if r["point"] == "2 clients"]
        assert len(each) == 24
        assert stored["results"]["tpot_ms"]["mean"] == pytest.approx(sum(each) / 24, rel=1e-3)
        assert min(each) > 9.5  # a token every 10 ms, later where the machine is busy

    def test_without_upload_the_result_is_printed(
        self, service: ServerProcess, engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert bench(service, engine, tmp_path, "--concurrency", "2", "--no-upload") == 0
        assert json.loads(capsys.readouterr().out)["load"]["kind"] == "closed"

    def test_a_burst_is_printed_with_the_load_that_follows_it(
        self, service: ServerProcess, engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        records = tmp_path / "records.jsonl.gz"
        code = bench(
            service, engine, tmp_path, "--rate", "40", "--at-once", "5", "--requests", "9", "--no-upload", "--records",
            str(records),
        )  # fmt: skip
        assert code == 0
        load = json.loads(capsys.readouterr().out)["load"]
        assert (load["kind"], load["requests_per_s"], load["at_once"]) == ("open", 40.0, 5)
        with gzip.open(records, "rt") as lines:
            sent_s = sorted(json.loads(line)["sent_s"] for line in lines)
        assert sent_s == pytest.approx(arrivals_s(40.0, 9, seed=1, at_once=5), abs=0.1)

    def test_an_engine_that_is_not_there(self, service: ServerProcess, tmp_path: Path) -> None:
        assert bench(service, "http://127.0.0.1:9", tmp_path, "--concurrency", "1") == 2

    def test_what_is_measured_must_be_said(self, service: ServerProcess, engine: str, tmp_path: Path) -> None:
        arguments = ["bench", "--url", service.address, "--endpoint", engine, "--spool", str(tmp_path), *LOAD]
        assert main([*arguments, "--concurrency", "1", "--device", "h200-sxm"]) == 2

    def test_a_service_out_of_reach_leaves_the_result_in_the_spool(self, engine: str, tmp_path: Path) -> None:
        arguments = ["bench", "--url", "http://127.0.0.1:9", "--within-s", "0", "--endpoint", engine]
        code = main([*arguments, "--spool", str(tmp_path), "--concurrency", "2", *LOAD, *DEPLOYMENT])
        assert code == 3
        assert len(list(Spool(tmp_path).waiting())) == 1


class TestUpload:
    def test_the_spool_is_sent_when_the_service_is_back(
        self, service: ServerProcess, engine: str, tmp_path: Path
    ) -> None:
        offline = ["bench", "--url", "http://127.0.0.1:9", "--within-s", "0", "--endpoint", engine]
        main([*offline, "--spool", str(tmp_path), "--concurrency", "3", *LOAD, *DEPLOYMENT])
        assert main(["upload", "--url", service.address, "--spool", str(tmp_path)]) == 0
        assert not list(Spool(tmp_path).waiting())

    def test_a_service_that_restarts_meanwhile(self, service: ServerProcess, tmp_path: Path) -> None:
        spool = Spool(tmp_path)
        for number in range(5):
            spool.add("/v1/benchmarks", _run(f"restart {number}"))
        service.kill()
        sent: list[int] = []
        thread = threading.Thread(
            target=lambda: sent.append(main(["upload", "--url", service.address, "--spool", str(tmp_path)]))
        )
        with socket.create_server(("127.0.0.1", service.port)) as nobody:
            thread.start()
            nobody.accept()[0].close()  # it has tried, and was hung up on
        service.start()
        thread.join()
        assert sent == [0]
        assert len(list((tmp_path / "sent").glob("*.note.json"))) == 5

    def test_a_refused_result_does_not_hold_up_the_others(self, service: ServerProcess, tmp_path: Path) -> None:
        spool = Spool(tmp_path)
        spool.add("/v1/benchmarks", {"context": {"device": "nothing"}})
        spool.add("/v1/benchmarks", _run("after a refused one"))
        assert main(["upload", "--url", service.address, "--spool", str(tmp_path)]) == 1
        assert len(list((tmp_path / "refused").glob("*.note.json"))) == 1
        assert len(list((tmp_path / "sent").glob("*.note.json"))) == 1

    def test_a_file_cut_short_is_set_aside(self, service: ServerProcess, tmp_path: Path) -> None:
        spool = Spool(tmp_path)
        kept = spool.add("/v1/benchmarks", _run("cut"))
        kept.file.write_text(kept.file.read_text()[:50])
        assert main(["upload", "--url", service.address, "--spool", str(tmp_path)]) == 0
        assert kept.file.name in [f.name for f in (tmp_path / "refused").iterdir()]

    def test_the_same_result_twice_is_one_file_and_one_record(self, service: ServerProcess, tmp_path: Path) -> None:
        spool = Spool(tmp_path)
        spool.add("/v1/benchmarks", _run("twice"))
        spool.add("/v1/benchmarks", _run("twice"))
        assert len(list(spool.waiting())) == 1
        main(["upload", "--url", service.address, "--spool", str(tmp_path)])
        spool.add("/v1/benchmarks", _run("twice"))
        main(["upload", "--url", service.address, "--spool", str(tmp_path)])
        ids = {json.loads(f.read_text())["answer"]["id"] for f in (tmp_path / "sent").glob("*.note.json")}
        assert len(ids) == 1

    def test_a_revoked_token_keeps_everything(self, service: ServerProcess, tmp_path: Path) -> None:
        spool = Spool(tmp_path)
        spool.add("/v1/benchmarks", _run("revoked"))
        assert main(["upload", "--url", service.address, "--token", "revoked", "--spool", str(tmp_path)]) == 3
        assert len(list(spool.waiting())) == 1


class TestImport:
    def test_files_of_other_tools(self, service: ServerProcess, tmp_path: Path) -> None:
        files = [str(FIXTURES / name) for name in ("vllm_bench_serve.json", "genai_perf.csv")]
        code = main(
            ["import", "--url", service.address, "--spool", str(tmp_path), "--devices", "1", *DEPLOYMENT, *files]
        )
        assert code == 0
        answers = [json.loads(f.read_text())["answer"] for f in (tmp_path / "sent").glob("*.note.json")]
        assert {a["tool"] for a in answers} == {"vllm-bench-serve", "genai-perf"}

    def test_binary_and_unknown_files_are_told(self, service: ServerProcess, tmp_path: Path) -> None:
        junk, text = tmp_path / "junk.bin", tmp_path / "notes.txt"
        junk.write_bytes(b"\xff\xfe\x00")
        text.write_text("not a benchmark")
        arguments = ["import", "--url", service.address, "--spool", str(tmp_path / "spool"), "--devices", "1"]
        assert main([*arguments, *DEPLOYMENT, str(junk), str(text)]) == 1


class TestWork:
    def test_a_wanted_measurement_is_taken_measured_and_completed(
        self, service: ServerProcess, engine: str, tmp_path: Path
    ) -> None:
        wanted = {
            "device": "h200-sxm", "devices": 1, "llm": "llama-3.1-8b", "precision": {"weights": "bf16"},
            "engine": {"name": "vllm"},
            "traffic": {
                "prompt_tokens": {"distribution": "fixed", "tokens": 16},
                "output_tokens": {"distribution": "fixed", "tokens": 10},
            },
            "loads": [{"kind": "closed", "concurrency": 2, "requests": 8}],
        }  # fmt: skip
        queued = httpx.post(f"{service.address}/v1/measurements", json=wanted).json()["id"]
        code = main(
            ["work", "--url", service.address, "--spool", str(tmp_path), "--endpoint", engine, "--once",
             "--device", "h200-sxm", "--devices", "1", "--agent-id", "test-host"]
        )  # fmt: skip
        assert code == 0
        done = httpx.get(f"{service.address}/v1/measurements/{queued}").json()
        assert done["status"] == "done", done
        (result,) = done["benchmarks"]
        assert httpx.get(f"{service.address}/v1/benchmarks/{result}").json()["status"] == "accepted"
        assert "test-host" in [a["id"] for a in httpx.get(f"{service.address}/v1/agents").json()["items"]]

    def test_what_cannot_be_started_goes_back_and_is_given_up(self, service: ServerProcess, tmp_path: Path) -> None:
        wanted = {
            "device": "l40s", "devices": 1, "llm": "llama-3.1-8b", "precision": {"weights": "bf16"},
            "engine": {"name": "tensorrt-llm"}, "most_attempts": 2,
            "traffic": {
                "prompt_tokens": {"distribution": "fixed", "tokens": 16},
                "output_tokens": {"distribution": "fixed", "tokens": 10},
            },
            "loads": [{"kind": "closed", "concurrency": 1}],
        }  # fmt: skip
        queued = httpx.post(f"{service.address}/v1/measurements", json=wanted).json()["id"]
        arguments = ["work", "--url", service.address, "--spool", str(tmp_path), "--once"]
        assert main([*arguments, "--device", "l40s", "--devices", "1"]) == 0
        dead = httpx.get(f"{service.address}/v1/measurements/{queued}").json()
        assert dead["status"] == "dead"
        assert "this agent starts vllm" in dead["attempts"][0]["detail"]


class TestOnAGpuHost:
    def test_it_runs_with_httpx_and_pydantic_alone(self) -> None:
        """No module of the service's other layers and no other package is imported."""
        program = (
            "import sys; import service.agent.cli, service.agent.commands; "
            "top = {m.split('.')[0] for m in sys.modules}; "
            "print(sorted(top & {'fastapi', 'sqlalchemy', 'sqlmodel', 'numpy', 'scipy', 'solver', 'catalog', 'yaml'}))"
        )
        answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert answer.stdout.strip() == "[]"

    def test_probe_answers_anywhere(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["probe", "--offline", "--json", "--spool", str(tmp_path)]) == 0
        assert json.loads(capsys.readouterr().out)["devices"]


def _run(notes: str) -> dict[str, Any]:
    return {
        "context": {
            "device": "h200-sxm", "devices": 1, "llm": "llama-3.1-8b", "precision": {"weights": "bf16"},
            "engine": {"name": "vllm"}, "notes": notes,
        },
        "load": {"kind": "closed", "concurrency": 4, "requests": 40},
        "results": {
            "completed": 40, "failed": 0, "duration_s": 10.0, "requests_per_s": 4.0, "output_tokens_per_s": 400.0,
            "ttft_ms": {"mean": 80.0}, "tpot_ms": {"mean": 9.0}, "e2e_ms": {"mean": 971.0},
        },
    }  # fmt: skip
