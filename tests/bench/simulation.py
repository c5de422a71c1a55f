"""Simulated requests per second of one lane, beside the loop in plain Python: ``python -m tests.bench.simulation``.

Times are of the processor (one thread, the best of several runs), so that neighbours on the machine count less.
"""

import argparse
import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from solver.deployment.configuration import Configuration
from solver.engine.compile import compile_simulation
from solver.engine.kernel.columns import engine, replayed
from solver.engine.replayable import one_prefix
from solver.lengths import lognormal_lengths
from solver.replay import one_stream as replaying
from solver.workload import EngineSettings, Load, Traffic
from tests.llm_shapes import shape
from tests.solver.engine import oracle_simulate
from tests.solver.samples import configuration

COUNTS = (1_000, 10_000, 100_000, 1_000_000)
REQUESTS_PER_S, CLIENTS = 20.0, 64
ORACLE_UP_TO = 100_000


def least_s(job: Callable[[], Any], times: int) -> float:
    """Processor seconds of this thread, the least of several runs."""
    spent = []
    for _ in range(times):
        started = time.thread_time()
        job()
        spent.append(time.thread_time() - started)
    return min(spent)


def simulated_per_s(counts: Sequence[int], *, closed: bool, runs: int = 3) -> list[float]:
    """Requests a processor second that one lane replays, for each of these numbers of requests, the best of ``runs``."""
    compile_simulation()
    deployed, traffic = _deployed(), _traffic()
    on, found = engine(deployed.tables(), deployed.schedule(), closed=closed), []
    for count in counts:
        prompts, outputs, unit = replaying.sampled_requests(traffic, count, 1)
        arrivals = None if closed else unit / REQUESTS_PER_S
        run = partial(replayed, on, prompts, outputs, CLIENTS if closed else 0, arrivals, one_prefix(prompts, 0.0))
        run()
        found.append(count / least_s(run, runs))
    return found


def _deployed() -> Configuration:
    return configuration(
        shape("llama-3.1-8b"), "h100-sxm", engine=EngineSettings(max_batched_tokens=8192, max_sequences=256)
    )


def _traffic() -> Traffic:
    return Traffic(lognormal_lengths(1000.0, 2500.0), lognormal_lengths(250.0, 600.0))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.simulation", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="runs of which the best counts (default 5)")
    runs = parser.parse_args().runs
    console = Console()
    started = time.perf_counter()
    compiled = compile_simulation()
    loaded_s = time.perf_counter() - started
    deployed, traffic = _deployed(), _traffic()
    tables, schedule = deployed.tables(), deployed.schedule()
    table = Table(title="llama-3.1-8b on one H100, 1,000 + 250 tokens, 64 clients or 20 requests per second")
    for heading in ("load", "requests", "requests/s", "plain Python, requests/s", "times", "events a request"):
        table.add_column(heading, justify="right")
    for closed in (False, True):
        on = engine(tables, schedule, closed=closed)
        for count in COUNTS:
            prompts, outputs, unit = replaying.sampled_requests(traffic, count, 1)
            arrivals = unit / REQUESTS_PER_S
            compiled_run = partial(
                replayed, on, prompts, outputs, CLIENTS if closed else 0, None if closed else arrivals, one_prefix(prompts, 0.0)
            )  # fmt: skip
            events = compiled_run().end.events
            fast_s = least_s(compiled_run, runs)
            row = [f"{count / fast_s:,.0f}", "", ""]
            if count <= ORACLE_UP_TO:
                load: dict[str, Any] = {"concurrency": CLIENTS} if closed else {"arrivals_s": arrivals.tolist()}
                given = prompts.tolist(), outputs.tolist()
                plain_s = least_s(partial(oracle_simulate.simulate, tables, schedule, *given, **load), 2)
                row = [row[0], f"{count / plain_s:,.0f}", f"{plain_s / fast_s:.0f}"]
            table.add_row("closed" if closed else "open", f"{count:,}", *row, f"{events / count:.2f}")
    console.print(table)
    light = Load("open", requests_per_s=8.0)
    replaying.replay(deployed, tables, traffic, light, requests=6_000)
    whole_s = least_s(lambda: replaying.replay(deployed, deployed.tables(), traffic, light, requests=6_000), 4 * runs)
    tables_s = least_s(deployed.tables, 4 * runs)
    console.print(
        f"replay of 6,000 requests with its tables and statistics: {whole_s * 1e3:.1f} ms, tables {tables_s * 1e3:.1f} ms"
    )
    console.print(
        f"{'compiled' if compiled else 'plain Python'}, loaded in {loaded_s:.2f} s; numpy {np.__version__}, "
        f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f} at the end"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
