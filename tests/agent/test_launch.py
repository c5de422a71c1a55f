"""Starting and stopping an engine, and reading a recommendation as something to measure."""

import socket
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.agent.launch import EngineProcess, EngineStart, LaunchError, recommended_work, serve_command

ENGINE = Path(__file__).parent / "local_engine.py"
PLAN: dict[str, Any] = {
    "id": "rec_1", "outcome": "optimal",
    "request": {
        "workloads": [
            {
                "name": "chat", "llm": "llama-3.1-70b", "context_tokens": 32768,
                "traffic": {
                    "requests_per_s": 20.0,
                    "prompt_tokens": {"distribution": "lognormal", "mean": 1200, "p95": 4000},
                    "output_tokens": {"distribution": "fixed", "tokens": 300},
                },
            }
        ]
    },
    "plan": [
        {
            "workload": "chat", "device": "h200-sxm", "engine": "vllm", "nodes": 2, "replicas": 8,
            "layout": {"tensor_parallel": 2, "pipeline_parallel": 1, "data_parallel": 1, "expert_parallel": 1},
            "precision": {"weights": "fp8", "kv_cache": "fp8"}, "max_concurrency": 48, "serves_requests_per_s": 20.0,
            "engine_settings": {
                "name": "vllm", "version": None, "max_sequences": 512, "max_batched_tokens": 8192, "memory_fraction": 0.92,
                "max_context_tokens": 32768,
            },
        }
    ],
}  # fmt: skip


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class TestEngineProcess:
    def test_ready_inside_gone_after(self, tmp_path: Path) -> None:
        port = free_port()
        command = [sys.executable, str(ENGINE), "--port", str(port)]
        with EngineProcess(command, port, tmp_path / "engine.log", ready_within_s=20) as engine:
            assert httpx.get(f"{engine.base_url}/v1/models").status_code == 200
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{engine.base_url}/v1/models")

    def test_stopped_when_the_measurement_fails(self, tmp_path: Path) -> None:
        port = free_port()
        command = [sys.executable, str(ENGINE), "--port", str(port)]
        engine = EngineProcess(command, port, tmp_path / "engine.log", ready_within_s=20)
        with pytest.raises(RuntimeError, match="no"), engine:
            raise RuntimeError("no")
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{engine.base_url}/v1/models")

    def test_an_engine_that_stops_tells_the_end_of_its_log(self, tmp_path: Path) -> None:
        command = [sys.executable, "-c", "print('CUDA out of memory'); raise SystemExit(3)"]
        engine = EngineProcess(command, free_port(), tmp_path / "engine.log", ready_within_s=20)
        with pytest.raises(LaunchError, match="stopped with 3: CUDA out of memory"), engine:
            pass

    def test_an_engine_that_is_never_ready_is_stopped(self, tmp_path: Path) -> None:
        command = [sys.executable, "-c", "import time; time.sleep(60)"]
        engine = EngineProcess(command, free_port(), tmp_path / "engine.log", ready_within_s=1.5)
        with pytest.raises(LaunchError, match="not ready after"), engine:
            pass

    def test_a_program_that_does_not_exist(self, tmp_path: Path) -> None:
        engine = EngineProcess(["/no/such/program"], free_port(), tmp_path / "engine.log")
        with pytest.raises(LaunchError, match="No such file"), engine:
            pass


class TestRecommendation:
    def test_one_replica_with_its_share_of_the_traffic(self) -> None:
        work = recommended_work(PLAN, None, None)
        assert work.requests_per_s == 2.5
        deployment = work.deployment("/models/llama-70b")
        assert deployment == EngineStart(
            "vllm", "/models/llama-70b", "fp8", "fp8", tensor_parallel=2,
            max_sequences=512, max_context_tokens=32768, memory_fraction=0.92, max_batched_tokens=8192,
        )  # fmt: skip
        assert deployment.devices == 2
        assert serve_command(deployment, 8300, ["--load-format", "dummy"])[3:] == [
            "serve", "/models/llama-70b", "--port", "8300", "--tensor-parallel-size", "2", "--quantization", "fp8",
            "--kv-cache-dtype", "fp8", "--max-num-seqs", "512", "--max-model-len", "32768",
            "--gpu-memory-utilization", "0.92", "--max-num-batched-tokens", "8192", "--load-format", "dummy",
        ]  # fmt: skip

    def test_ranks_that_share_the_experts_are_started_together(self) -> None:
        line = PLAN["plan"][0] | {
            "layout": {"tensor_parallel": 1, "pipeline_parallel": 1, "data_parallel": 4, "expert_parallel": 4}
        }
        deployment = recommended_work(PLAN | {"plan": [line]}, None, None).deployment("m")
        assert deployment.devices == 4
        command = serve_command(deployment, 8300)
        assert command[command.index("--data-parallel-size") + 1] == "4"
        assert "--enable-expert-parallel" in command

    def test_a_plan_that_does_not_say_what_it_assumed_is_not_started(self) -> None:
        line = PLAN["plan"][0] | {"engine_settings": None}
        with pytest.raises(LaunchError, match="make the recommendation again"):
            recommended_work(PLAN | {"plan": [line]}, None, None).deployment("m")

    def test_a_plan_that_drafts_is_not_started_without_its_drafts(self) -> None:
        settings = PLAN["plan"][0]["engine_settings"] | {"speculative": {"method": "ngram", "draft_tokens": 4}}
        line = PLAN["plan"][0] | {"engine_settings": settings}
        with pytest.raises(LaunchError, match="clusterwright deploy"):
            recommended_work(PLAN | {"plan": [line]}, None, None).deployment("m")

    @pytest.mark.parametrize(
        ("device", "plan", "message"),
        [
            ("mi300x", PLAN, "has no such line: optimal"),
            (None, PLAN | {"plan": [], "outcome": "infeasible"}, "has no such line: infeasible"),
            (None, PLAN | {"plan": [*PLAN["plan"], PLAN["plan"][0] | {"device": "l40s"}]}, "several lines"),
        ],
    )
    def test_what_cannot_be_measured(self, device: str | None, plan: dict[str, Any], message: str) -> None:
        with pytest.raises(LaunchError, match=message):
            recommended_work(plan, device, None)

    @pytest.mark.parametrize(("engine", "weights"), [("tensorrt-llm", "fp8"), ("vllm", "q4_k_m")])
    def test_what_cannot_be_started(self, engine: str, weights: str) -> None:
        with pytest.raises(LaunchError):
            serve_command(EngineStart(engine, "m", weights, "bf16"), 8300)
