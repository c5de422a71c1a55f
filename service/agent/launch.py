"""Start the engine that is to be measured, and stop it again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

STOP_WITHIN_S = 60.0
ASK_EVERY_S = 1.0
LOG_TAIL_CHARACTERS = 1_500
MOST_COUNT = 100_000_000
_WEIGHT_FLAGS = {
    "bf16": ["--dtype", "bfloat16"], "fp16": ["--dtype", "float16"], "fp32": ["--dtype", "float32"],
    "fp8": ["--quantization", "fp8"], "nf4": ["--quantization", "bitsandbytes"],
    "mxfp4": [], "nvfp4": [], "int4": [], "int8": [],
}  # fmt: skip
"""Formats the engine makes from 16-bit weights itself; the others come with the checkpoint."""


class LaunchError(Exception):
    """The engine cannot be started, or did not become ready. Holds the end of its log."""


@dataclass(frozen=True)
class EngineStart:
    """What to start: names as in the catalog, degrees of one replica."""

    engine: str
    model: str
    """Path or Hugging Face id."""
    weights: str
    kv_cache: str
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    data_parallel: int = 1
    expert_parallel: int = 1
    max_sequences: int | None = None
    max_context_tokens: int | None = None
    memory_fraction: float | None = None
    max_batched_tokens: int | None = None
    max_captured_tokens: int | None = None
    api_servers: int = 1
    """For each copy of attention."""

    @property
    def devices(self) -> int:
        return self.tensor_parallel * self.pipeline_parallel * self.data_parallel


def serve_command(deployment: EngineStart, port: int, extra: Sequence[str] = ()) -> list[str]:
    """The engine's command line.

    Raises LaunchError for an engine this agent cannot start, or a format it cannot serve.

    >>> serve_command(EngineStart("vllm", "m", "fp8", "bf16", tensor_parallel=2, max_sequences=64), 8000)[3:]
    ['serve', 'm', '--port', '8000', '--tensor-parallel-size', '2', '--quantization', 'fp8', '--max-num-seqs', '64']
    >>> serve_command(EngineStart("vllm", "m", "bf16", "bf16", data_parallel=2, api_servers=4), 8000)[-2:]
    ['--api-server-count', '8']
    """
    if deployment.engine != "vllm":
        raise LaunchError(f"this agent starts vllm, not {deployment.engine}; start it yourself and give --endpoint")
    for name in ("tensor_parallel", "pipeline_parallel", "data_parallel", "expert_parallel", "api_servers"):
        _require_count(name, getattr(deployment, name))
    for name in ("max_sequences", "max_context_tokens", "max_batched_tokens", "max_captured_tokens"):
        if getattr(deployment, name) is not None:
            _require_count(name, getattr(deployment, name))
    if deployment.weights not in _WEIGHT_FLAGS:
        raise LaunchError(f"vllm does not serve weights in {deployment.weights}")
    command = [sys.executable, "-m", "vllm.entrypoints.cli.main", "serve", deployment.model, "--port", str(port)]
    for flag, degree in (
        ("--tensor-parallel-size", deployment.tensor_parallel),
        ("--pipeline-parallel-size", deployment.pipeline_parallel),
        ("--data-parallel-size", deployment.data_parallel),
    ):
        if degree > 1:
            command += [flag, str(degree)]
    if deployment.expert_parallel > 1:
        command.append("--enable-expert-parallel")  # a boolean there: experts spread over all ranks
    command += _WEIGHT_FLAGS[deployment.weights]
    if deployment.kv_cache == "fp8":
        command += ["--kv-cache-dtype", "fp8"]
    for flag, value in (
        ("--max-num-seqs", deployment.max_sequences),
        ("--max-model-len", deployment.max_context_tokens),
        ("--gpu-memory-utilization", deployment.memory_fraction),
        ("--max-num-batched-tokens", deployment.max_batched_tokens),
        ("--max-cudagraph-capture-size", deployment.max_captured_tokens),
    ):
        if value is not None:
            command += [flag, f"{value:g}" if isinstance(value, float) else str(value)]
    if deployment.api_servers > 1:  # told of all copies of attention together
        command += ["--api-server-count", str(deployment.api_servers * deployment.data_parallel)]
    return command + list(extra)


def _require_count(name: str, value: object) -> None:
    """Figures of a plan come from the service, and a word in their place would be an option of the engine."""
    if type(value) is not int or not 1 <= value <= MOST_COUNT:
        raise LaunchError(f"refused {name} {str(value)[:40]!r}: not a count")


class EngineProcess:
    """A running engine: ready on entering the context, stopped with all its workers on leaving it."""

    def __init__(self, command: Sequence[str], port: int, log: Path, ready_within_s: float = 1_800.0) -> None:
        self.command = list(command)
        self.base_url = f"http://127.0.0.1:{port}"
        self.log = log
        self.ready_within_s = ready_within_s
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            with self.log.open("ab") as log:
                self._process = subprocess.Popen(
                    self.command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
                )
        except OSError as error:
            raise LaunchError(f"{self.command[0]}: {error}") from None
        try:
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        until = time.monotonic() + self.ready_within_s
        while time.monotonic() < until:
            if self._process.poll() is not None:
                raise LaunchError(f"the engine stopped with {self._process.returncode}: {self._tail()}")
            try:
                if httpx.get(f"{self.base_url}/health", timeout=5.0).status_code == 200:
                    return
            except httpx.HTTPError:
                pass
            time.sleep(ASK_EVERY_S)
        raise LaunchError(f"the engine was not ready after {self.ready_within_s:.0f} s: {self._tail()}")

    def stop(self) -> None:
        """SIGTERM to the engine and its workers, SIGKILL to what is left after a minute."""
        process, self._process = self._process, None
        if process is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, number)
                process.wait(STOP_WITHIN_S)
            except subprocess.TimeoutExpired:
                continue
            except ProcessLookupError:
                process.wait()
            return

    def _tail(self) -> str:
        try:
            return self.log.read_text(errors="replace")[-LOG_TAIL_CHARACTERS:].strip()
        except OSError:
            return ""


@dataclass(frozen=True)
class RecommendedWork:
    """One line of a plan as something to start and to measure: one replica with its share of the traffic."""

    line: dict[str, Any]
    workload: dict[str, Any]

    @property
    def requests_per_s(self) -> float:
        return float(self.line["serves_requests_per_s"]) / max(1, int(self.line["replicas"]))

    def deployment(self, model: str) -> EngineStart:
        """One replica with exactly what the prediction assumed.

        Raises LaunchError for a plan stored before it said what that was.
        """
        layout, precision, settings = self.line["layout"], self.line["precision"], self.line.get("engine_settings")
        if settings is None:
            raise LaunchError("the plan was stored before engine settings were; make the recommendation again")
        if settings.get("speculative") is not None:
            raise LaunchError(
                "the plan drafts: start the engine by the files of 'clusterwright deploy', and give --endpoint"
            )
        return EngineStart(
            engine=self.line["engine"],
            model=model,
            weights=precision["weights"],
            kv_cache=precision["kv_cache"],
            tensor_parallel=layout["tensor_parallel"],
            pipeline_parallel=layout["pipeline_parallel"],
            data_parallel=layout["data_parallel"],
            expert_parallel=layout["expert_parallel"],
            max_sequences=settings["max_sequences"],
            max_context_tokens=settings["max_context_tokens"],
            memory_fraction=settings["memory_fraction"],
            max_batched_tokens=settings["max_batched_tokens"],
            max_captured_tokens=settings.get("max_captured_tokens"),
            api_servers=settings.get("api_servers", 1),
        )


def recommended_work(recommendation: dict[str, Any], device: str | None, workload: str | None) -> RecommendedWork:
    """The plan's line for this device and workload. Raises LaunchError when it has none, or several."""
    lines = [
        line
        for line in recommendation.get("plan") or []
        if (device is None or line["device"] == device) and (workload is None or line["workload"] == workload)
        if line["serves_requests_per_s"] > 0 and line.get("role", "aggregated") == "aggregated"
        if line.get("partition") is None  # only whole devices are measured
    ]
    if not lines:
        raise LaunchError(
            f"recommendation {recommendation.get('id')} has no such line: {recommendation.get('outcome')}"
        )
    if len({(line["device"], line["workload"]) for line in lines}) > 1:
        raise LaunchError("the plan has several lines: name --device and --workload")
    named = {w["name"]: w for w in recommendation["request"]["workloads"]}
    return RecommendedWork(lines[0], named[lines[0]["workload"]])
