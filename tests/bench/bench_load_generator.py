"""How true the load generator measures: 256 streams, a token every 10 ms on each, from a local server.

    python -m tests.bench.bench_load_generator [--streams 256] [--interval-ms 10] [--tokens 512]

Prints TPOT against the interval that the server really kept (asked for 10 ms, a busy machine gives more), what was
dropped, and the share of one core the client took.
Exits with 1 when TPOT is off by 2 % or more or anything was dropped.
"""

import argparse
import asyncio
import subprocess
import sys
import time
from pathlib import Path

from service.agent.lengths import FixedTokens, UniformTokens
from service.agent.load import ClosedLoop, SentTraffic, plan_requests, run_load
from service.agent.stream import Endpoint

ROOT = Path(__file__).resolve().parents[2]

TOLERANCE = 0.02


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=256)
    parser.add_argument("--interval-ms", type=float, default=10.0)
    parser.add_argument("--tokens", type=int, default=512)
    arguments = parser.parse_args()
    server = subprocess.Popen(
        [sys.executable, str(ROOT / "tests/agent/streaming_server.py"), "--interval-ms", str(arguments.interval_ms)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        endpoint = Endpoint(f"http://127.0.0.1:{int(server.stdout.readline())}", "m")
        traffic = SentTraffic(UniformTokens(819, 1024), FixedTokens(arguments.tokens), vocabulary_tokens=32_000)
        planned = plan_requests(endpoint, traffic, arguments.streams, seed=1)
        cpu_s = time.process_time()
        run = asyncio.run(run_load(endpoint, planned, ClosedLoop(arguments.streams, arguments.streams)))
        cpu_s = time.process_time() - cpu_s
    finally:
        server.terminate()
        kept_ms = float(server.communicate()[0]) * 1e3
    results = run.results()
    error = results["tpot_ms"]["mean"] / kept_ms - 1.0
    dropped = arguments.streams * arguments.tokens - sum(len(record.chunk_s) for record in run.completed)
    tpot_ms, itl_p99_ms = results["tpot_ms"]["mean"], results["itl_ms"]["p99"]
    print(
        f"{arguments.streams} streams, {results['output_tokens_per_s']:.0f} tokens/s: "
        f"server's interval {kept_ms:.3f} ms, TPOT {tpot_ms:.3f} ms ({error:+.2%}), ITL p99 {itl_p99_ms:.2f} ms, "
        f"failed {results['failed']}, tokens dropped {dropped}, client {cpu_s / run.duration_s:.0%} of one core"
    )
    return 0 if abs(error) < TOLERANCE and not dropped and not results["failed"] else 1


if __name__ == "__main__":
    sys.exit(main())
