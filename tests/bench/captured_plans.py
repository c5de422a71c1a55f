"""What telling vLLM to capture larger steps saves: ``python -m tests.bench.captured_plans``.

Requests for mixtures of experts, each planned twice: as plans are made, and with engines that are told no more than vLLM captures
unless told, 512 tokens, of gpt-oss 1,024. In USD an hour, with the lines of either.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from fastapi.testclient import TestClient
from rich.console import Console
from rich.table import Table

from service.clock import system_clock
from service.main import create_app
from service.settings import Settings
from solver.recommend import recommend
from solver.workload import EngineSettings, Workload
from tests.bench.planner import seeded_database

UNLESS_TOLD, UNLESS_TOLD_GPT_OSS = 512, 1024
MODELS = ("qwen3-30b-a3b", "gpt-oss-120b", "deepseek-r1", "qwen3-235b-a22b")
LENGTHS = ((300, 200), (1200, 300), (4000, 300))
RATES = {"qwen3-30b-a3b": 60.0, "gpt-oss-120b": 60.0}
RATE = 20.0
TARGETS = {"ttft_ms": {"p95": 1500}, "tpot_ms": {"p95": 50}}


@contextmanager
def captured(tokens: int | None) -> Iterator[None]:
    """Plans whose engines are told to capture so many tokens; None: as plans are."""
    own = recommend.engine_settings

    def settings(engine: EngineSettings, workload: Workload) -> EngineSettings:
        return replace(own(engine, workload), max_captured_tokens=tokens)

    with patch.object(recommend, "engine_settings", settings):
        yield


def request(
    llm: str,
    prompt: int,
    output: int,
    devices: list[str] | None,
    seed: int,
    targets: dict[str, Any] = TARGETS,
    rates: dict[str, float] = RATES,
) -> dict[str, Any]:
    """seed: plans are kept by their request, so that the second one must differ in what changes nothing."""
    traffic = {
        "requests_per_s": rates.get(llm, RATE),
        "prompt_tokens": {"distribution": "lognormal", "mean": prompt, "p95": 3 * prompt},
        "output_tokens": {"distribution": "lognormal", "mean": output, "p95": 3 * output},
    }
    body = {"workloads": [{"name": f"w{seed}", "llm": llm, "traffic": traffic, "targets": targets}], "time_limit_s": 60}
    return body | {"alternatives": 0, "limits": {"devices": devices} if devices else {}}


def shown(answer: dict[str, Any]) -> str:
    return ", ".join(f"{one['nodes']} × {one['node']} {one['engine']}" for one in answer.get("plan", []))


@contextmanager
def served() -> Iterator[TestClient]:
    """A service of its own."""
    with tempfile.TemporaryDirectory() as folder:
        url = seeded_database(Path(folder) / "plans.sqlite")
        app = create_app(Settings(database_url=url), system_clock)
        with TestClient(app, base_url="http://localhost", client=("127.0.0.1", 1)) as client:
            yield client


def usd_per_hour(answer: dict[str, Any]) -> float:
    """NaN where there is no plan."""
    return float(answer["totals"]["usd_per_hour"]) if answer.get("plan") else float("nan")


def main() -> None:
    with served() as client:
        show(client)


def show(client: TestClient) -> None:
    table = Table("model", "prompt, reply", "devices", "USD/h, as vLLM starts", "as plans are", "share", "plans")
    shares = []
    for llm in MODELS:
        for prompt, output in LENGTHS:
            for devices in (None, ["h100-sxm"]):
                answers = []
                unless_told = UNLESS_TOLD_GPT_OSS if llm.startswith("gpt-oss") else UNLESS_TOLD
                for number, tokens in enumerate((unless_told, None)):
                    with captured(tokens):
                        body = request(llm, prompt, output, devices, number)
                        answers.append(
                            client.post("/v1/recommendations", json=body, headers={"Prefer": "wait=300"}).json()
                        )
                usd = [usd_per_hour(one) for one in answers]
                shares.append(usd[1] / usd[0])
                table.add_row(
                    llm, f"{prompt}, {output}", ", ".join(devices or ["any"]), f"{usd[0]:.2f}", f"{usd[1]:.2f}",
                    f"{shares[-1]:.2f}", " | ".join(map(shown, answers)),
                )  # fmt: skip
    Console(width=200).print(table)
    known = [share for share in shares if not np.isnan(share)]
    print(f"{np.median(known):.2f} of the price at the median of {len(known)}, {min(known):.2f} to {max(known):.2f}")


if __name__ == "__main__":
    main()
