"""A trace of 100,000 requests read, described and planned: seconds and most memory.

    python -m tests.bench.traces            # all three, each in a process of its own
    python -m tests.bench.traces --requests 1000000

The bar is 10 s and 300 MB for the last. The trace is made: sessions of a few turns over shared system prompts, blocks of 512 tokens,
prompts of about 8,000 tokens.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BLOCK_TOKENS = 512
SYSTEM_PROMPTS = 20
PLAN = ("llama-3.1-8b", "--rate", "4", "--ttft-p95", "8000", "--tpot-p95", "100", "--provider", "aws", "--device", "h200-sxm")  # fmt: skip
BAR = " (bar 10 s, 300 MB = 286 MiB)"
COMMAND = "import sys; from service.cli import main; sys.exit(main())"


def write_trace(path: Path, requests: int) -> None:
    """JSONL with timestamps in milliseconds and hashes of blocks."""
    draw = random.Random(1)
    fresh = iter(range(10**9))
    systems = [[next(fresh) for _ in range(draw.randint(1, 8))] for _ in range(SYSTEM_PROMPTS)]
    sessions: list[list[int]] = []
    now_ms = 0.0
    with path.open("w", encoding="utf-8") as file:
        for _ in range(requests):
            now_ms += draw.gammavariate(0.5, 500.0)
            is_turn = bool(sessions) and draw.random() < 0.6
            blocks = sessions.pop(draw.randrange(len(sessions))) if is_turn else draw.choice(systems)
            blocks = blocks + [next(fresh) for _ in range(draw.randint(1, 12))]
            if len(blocks) < 60:
                sessions = [*sessions[-2_000:], blocks]
            tokens = len(blocks) * BLOCK_TOKENS - draw.randrange(BLOCK_TOKENS)
            row = {
                "timestamp": round(now_ms), "input_length": tokens,
                "output_length": 1 + round(draw.lognormvariate(5.0, 0.9)), "hash_ids": blocks,
            }  # fmt: skip
            file.write(json.dumps(row) + "\n")


def measured(name: str, arguments: list[str], bar: str = "") -> None:
    """Wall and processor seconds, and the most memory of any child so far."""
    since, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", COMMAND, *arguments], check=False, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr[-2_000:]}")
    processor_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    wall_s = time.perf_counter() - since
    print(f"{name}: {wall_s:.1f} s wall, {processor_s:.1f} s processor, at most {after.ru_maxrss / 1024:.0f} MiB{bar}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=100_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CLUSTERWRIGHT_HOME"] = folder
        for step in ("migrate", "seed"):
            subprocess.run([sys.executable, "-c", COMMAND, step], check=True, stdout=subprocess.DEVNULL)
        path = Path(folder) / "trace.jsonl"
        write_trace(path, asked.requests)
        print(f"{asked.requests:,} requests, {path.stat().st_size / 1e6:.0f} MB")
        measured("read and described", ["trace", "describe", str(path)])
        measured("planned without a trace", ["plan", *PLAN, "--prompt", "8000:16000", "--output", "220:600"])
        measured("read, described and planned", ["plan", *PLAN, "--trace", str(path), "--cache-tokens", "2000000"], BAR)


if __name__ == "__main__":
    main()
