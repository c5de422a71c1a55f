"""A draft model beside a served one on one H100 SXM under vLLM 0.24: what is predicted of closed loads, and what was measured.

    python -m tests.bench.drafting              prints the table, beside what was measured
    python -m tests.bench.drafting --json       predictions alone, to be kept before anything is measured

Qwen3 8B in bf16, alone and with Qwen3 0.6B drafting three tokens, each accepted with probability 0.7. The engine was started with
weights of no meaning and told to accept at that rate (`rejection_sample_method: synthetic`), so acceptance is no part of the error.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from service.clock import system_clock
from service.main import create_app
from service.settings import Settings
from tests.bench.planner import seeded_database

PREDICTED = Path(__file__).with_name("drafting_predicted.jsonl")
MEASURED = Path(__file__).with_name("drafting_measured.jsonl")
DRAFTING: dict[str, Any] = {
    "method": "draft_model", "draft_llm": "qwen3-0.6b", "draft_tokens": 3, "acceptance_fraction": 0.7,
}  # fmt: skip
LENGTHS = ((512, 256), (2048, 256))
CLIENTS = (1, 8, 32, 64)
ROUNDS = 3
"""Requests of each client."""
FIGURES = ("ttft_ms", "tpot_ms")


def cases() -> Iterator[dict[str, Any]]:
    for drafting in (None, DRAFTING):
        for prompt, output in LENGTHS:
            for clients in CLIENTS:
                engine: dict[str, Any] = {"name": "vllm"}
                yield {
                    "llm": "qwen3-8b",
                    "device": "h100-sxm",
                    "precision": {"weights": "bf16"},
                    "engine": engine | ({"speculative": drafting} if drafting else {}),
                    "traffic": {"prompt_tokens": prompt, "output_tokens": output},
                    "load": {"kind": "closed", "concurrency": clients, "requests": ROUNDS * clients},
                }


def named(case: dict[str, Any]) -> str:
    traffic, drafts = case["traffic"], "speculative" in case["engine"]
    lengths = f"{traffic['prompt_tokens']}/{traffic['output_tokens']}"
    return f"{'drafted' if drafts else 'plain'} {lengths} c={case['load']['concurrency']}"


def predictions() -> Iterator[dict[str, Any]]:
    bodies = list(cases())
    with tempfile.TemporaryDirectory() as folder:
        app = create_app(Settings(database_url=seeded_database(Path(folder) / "drafting.sqlite")), system_clock)
        with TestClient(app, base_url="http://localhost", client=("127.0.0.1", 1)) as client:
            answer = client.post("/v1/estimates", json={"estimates": bodies}).raise_for_status().json()
    for body, found in zip(bodies, answer["estimates"], strict=True):
        said = {name: found[name]["mean"] for name in FIGURES}
        yield {"case": named(body), "basis": found["basis"], **said}


def read(path: Path) -> dict[str, dict[str, Any]]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {row["case"]: row for row in map(json.loads, lines)}


def show() -> None:
    measured = read(MEASURED)
    for row in predictions():
        parts = []
        for name in FIGURES:
            said = row[name]
            part = f"{name} {said['expected']:8.2f} ({said['low']:.2f} to {said['high']:.2f})"
            if seen := measured.get(row["case"]):
                part += f"  measured {seen[name]:8.2f}, {100 * (said['expected'] / seen[name] - 1):+6.1f} %"
            parts.append(part)
        print(f"{row['case']:24} " + "   ".join(parts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    if parser.parse_args().json:
        for row in predictions():
            print(json.dumps(row))
    else:
        show()


if __name__ == "__main__":
    main()
