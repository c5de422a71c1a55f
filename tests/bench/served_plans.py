"""What choosing how many processes answer saves: ``python -m tests.bench.served_plans``.

Requests for small models at high rates, each planned three times: with one process that answers, trusted with all that it passes on;
with one, trusted with what was measured to be served; and as plans are. In USD an hour, with candidates, simulations and the processor
seconds of each answer.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import numpy as np
from rich.console import Console
from rich.table import Table

from solver.engine import profiles
from solver.prediction import front_end
from tests.bench.captured_plans import request, served, usd_per_hour

RATES = {"llama-3.2-1b": 300.0, "llama-3.1-8b": 100.0, "gpt-oss-20b": 100.0, "qwen3-30b-a3b": 100.0}
LENGTHS = ((100, 300), (300, 200), (1200, 300))
TARGETS = {"ttft_ms": {"p95": 1500}, "tpot_ms": {"p95": 50}}
SMALL_RATE = 10.0
"""At which one process is enough for all of them: what the choice costs where there is none."""


@contextmanager
def one_process(busy_fraction: float | None = None) -> Iterator[None]:
    """Plans whose engines answer from one process, trusted with so much of its time; None: with what was measured."""
    with patch.dict(profiles.PLANNED_SERVERS, clear=True):
        if busy_fraction is None:
            yield
            return
        with patch.object(front_end, "planned_busy_fraction", lambda _: busy_fraction):
            yield


WAYS: dict[str, Callable[[], Any]] = {
    "one, all it passes on": lambda: one_process(math.inf),
    "one": one_process,
    "as plans are": nullcontext,
}


def shown(answer: dict[str, Any]) -> str:
    return ", ".join(
        f"{one['replicas']} on {one['nodes']} × {one['node']} ({one['engine_settings']['api_servers']}, "
        f"{100 * one['predicted']['front_end_fraction']:.0f} %)"
        for one in answer.get("plan", [])
    )


def main() -> None:
    table = Table(
        "model",
        "prompt, reply",
        "requests/s",
        *WAYS,
        "candidates",
        "simulations",
        "processor s",
        "plan (processes, busy)",
    )
    shares, times, small_times = [], [], []
    headers = {"Prefer": "wait=300"}
    with served() as trusting, served() as alone, served() as chosen:  # of its own each: search spaces are kept
        clients = dict(zip(WAYS, (trusting, alone, chosen), strict=True))
        for llm in RATES:
            for prompt, output in LENGTHS:
                for rate in (RATES[llm], SMALL_RATE):
                    body = request(llm, prompt, output, None, 0, TARGETS, {llm: rate})
                    answers, took = {}, {}
                    for name, way in WAYS.items():
                        began = time.process_time()
                        with way():
                            answers[name] = clients[name].post("/v1/recommendations", json=body, headers=headers).json()
                        took[name] = time.process_time() - began
                    usd = [usd_per_hour(one) for one in answers.values()]
                    ratio = took["as plans are"] / took["one, all it passes on"]
                    if rate == SMALL_RATE:
                        small_times.append(ratio)
                    else:
                        shares.append((usd[2] / usd[1], usd[2] / usd[0]))
                        times.append(ratio)
                    solves = [one["solve"] for one in answers.values()]
                    table.add_row(
                        llm, f"{prompt}, {output}", f"{rate:g}", *(f"{one:.2f}" for one in usd),
                        ", ".join(str(one["candidates"]) for one in solves), ", ".join(str(one["simulations"]) for one in solves),
                        ", ".join(f"{one:.1f}" for one in took.values()), shown(answers["as plans are"]),
                    )  # fmt: skip
    Console(width=220).print(table)
    to_one, to_trusting = np.array(shares).T
    for what, found in (("one process", to_one), ("one that is trusted with all", to_trusting)):
        print(
            f"over {what}: {np.median(found):.2f} of the price at the median of {len(found)}, {found.min():.2f} to {found.max():.2f}; "
            f"{np.sum(found < 0.999)} cheaper, {np.sum(found > 1.001)} dearer"
        )
    print(
        f"{np.median(times):.2f} times the processor time at the median, {np.median(small_times):.2f} times at {SMALL_RATE:g} requests/s"
    )


if __name__ == "__main__":
    main()
