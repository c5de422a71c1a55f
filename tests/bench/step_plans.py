"""What choosing the largest step of vLLM's scheduler saves: ``python -m tests.bench.step_plans``.

Requests for dense models and mixtures, each planned twice: with steps of 8,192 tokens alone, which vLLM takes on such devices unless
told, and as plans are made. In USD an hour, with the lines of either and the processor seconds of the answer.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from rich.console import Console
from rich.table import Table

from solver.engine import profiles
from tests.bench.captured_plans import request, served, usd_per_hour

RATES = {
    "llama-3.1-70b": 10.0, "qwen3-32b": 15.0, "llama-3.1-8b": 40.0, "qwen3-235b-a22b": 15.0, "gpt-oss-120b": 40.0, "deepseek-r1": 8.0,
}  # fmt: skip
LENGTHS = ((1200, 300), (4000, 300))
TARGETS = (
    {"ttft_ms": {"p95": 1500}, "tpot_ms": {"p95": 50}},
    {"ttft_ms": {"p95": 1500}, "tpot_ms": {"p95": 25}},
    {"ttft_ms": {"p95": 3000}},
)


@contextmanager
def steps_as_asked() -> Iterator[None]:
    """Plans whose engines take steps of 8,192 tokens."""
    with patch.dict(profiles.PLANNED_STEPS, clear=True):
        yield


def shown(answer: dict[str, Any]) -> str:
    return ", ".join(
        f"{one['nodes']} × {one['node']} {one['engine_settings']['max_batched_tokens']}"
        for one in answer.get("plan", [])
    )


def main() -> None:
    table = Table(
        "model", "prompt", "targets, ms", "USD/h, steps of 8,192", "as plans are", "share", "processor s", "plan"
    )
    shares, times = [], []
    headers = {"Prefer": "wait=300"}
    with served() as as_asked, served() as client:  # of its own each: search spaces are kept
        for llm in RATES:
            for prompt, output in LENGTHS:
                for targets in TARGETS:
                    body = request(llm, prompt, output, None, 0, targets, RATES)
                    began = time.process_time()
                    with steps_as_asked():
                        before = as_asked.post("/v1/recommendations", json=body, headers=headers).json()
                    between = time.process_time()
                    after = client.post("/v1/recommendations", json=body, headers=headers).json()
                    took = between - began, time.process_time() - between
                    usd = usd_per_hour(before), usd_per_hour(after)
                    shares.append(usd[1] / usd[0])
                    times.append(took[1] / took[0])
                    limits = ", ".join(f"{name.split('_')[0]} {limit['p95']}" for name, limit in targets.items())
                    table.add_row(
                        llm, str(prompt), limits, f"{usd[0]:.2f}", f"{usd[1]:.2f}", f"{shares[-1]:.2f}", f"{took[0]:.1f}, {took[1]:.1f}",
                        shown(after),
                    )  # fmt: skip
    Console(width=200).print(table)
    known = [share for share in shares if not np.isnan(share)]
    print(
        f"{np.median(known):.2f} of the price at the median of {len(known)}, {min(known):.2f} to {max(known):.2f}; "
        f"{np.mean([share < 0.999 for share in known]):.2f} of them cheaper; {np.median(times):.1f} times the processor time"
    )


if __name__ == "__main__":
    main()
