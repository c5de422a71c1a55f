"""Can the load generator keep up? 256 streams, a token every 10 ms on each: 25,600 tokens a second.

    python -m tests.bench.load_generator --streams 256 --tokens 500

The engine is a local process that emits in step; what the generator measures is compared with its interval.
"""

import argparse
import asyncio
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from service.agent.lengths import FixedLength
from service.agent.load import ClosedLoop, Traffic, plan_requests, run_load
from service.agent.stream import Endpoint

ENGINE = Path(__file__).parents[1] / "agent" / "streaming_server.py"


@dataclass(frozen=True)
class GeneratorReport:
    streams: int
    tokens_per_s: float
    tpot_ms_mean: float
    tpot_ms_p99: float
    interval_ms: float
    off_percent: float
    failed: int
    missing_tokens: int


def measure(streams: int, tokens: int, interval_ms: float) -> GeneratorReport:
    with subprocess.Popen(
        [sys.executable, str(ENGINE), "--interval-ms", str(interval_ms)], stdout=subprocess.PIPE
    ) as engine:
        assert engine.stdout is not None
        endpoint = Endpoint(f"http://127.0.0.1:{int(engine.stdout.readline())}", "m")
        try:
            traffic = Traffic(FixedLength(16), FixedLength(tokens), vocabulary_tokens=1_000)
            planned = plan_requests(endpoint, traffic, streams, seed=1)
            run = asyncio.run(run_load(endpoint, planned, ClosedLoop(streams, streams)))
        finally:
            engine.kill()
    results = run.results()
    tpot = results["tpot_ms"]
    return GeneratorReport(
        streams=streams,
        tokens_per_s=results["output_tokens_per_s"],
        tpot_ms_mean=tpot["mean"],
        tpot_ms_p99=tpot["p99"],
        interval_ms=interval_ms,
        off_percent=100 * (tpot["mean"] / interval_ms - 1),
        failed=len(run.failed),
        missing_tokens=streams * tokens - sum(record.output_tokens for record in run.completed),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=256)
    parser.add_argument("--tokens", type=int, default=500)
    parser.add_argument("--interval-ms", type=float, default=10.0)
    arguments = parser.parse_args()
    print(measure(arguments.streams, arguments.tokens, arguments.interval_ms))  # noqa: T201


if __name__ == "__main__":
    main()
