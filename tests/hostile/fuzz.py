"""Schemathesis against a service of its own, round after round with new seeds, until enough requests were answered.

    make nightly FUZZ="--requests 100000 --url postgresql+psycopg://…"
    python -m tests.hostile.fuzz --requests 2000

Checks every answer against the service's OpenAPI document (status, media type, body). What the service itself counted is
printed: requests by status, 5xx, answers that took more than 10 s. Without --url, a fresh SQLite database; run it once for each.
503 is the answer of a service that is busy, and is counted apart from 500. Exit code 1 where a bar is missed.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import httpx

from tests.bench.server_process import ServerProcess
from tests.hostile.corpus import prepared

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
HANGS_AFTER_S = 10.0
ANSWERED = re.compile(r'^clusterwright_requests_total\{.*status="(\d+)"\} ([0-9.e+]+)$', re.MULTILINE)
WITHIN = re.compile(r'^clusterwright_request_seconds_bucket\{le="10\.0",.*\} ([0-9.e+]+)$', re.MULTILINE)
COUNTED = re.compile(r"^clusterwright_request_seconds_count\{.*\} ([0-9.e+]+)$", re.MULTILINE)


def answered(address: str) -> tuple[Counter[str], int]:
    """Requests by status, and how many took more than 10 s, as the service counts."""
    text = httpx.get(f"{address}/metrics", timeout=60).text
    statuses: Counter[str] = Counter()
    for status, count in ANSWERED.findall(text):
        statuses[status] += round(float(count))
    slow = sum(map(float, COUNTED.findall(text))) - sum(map(float, WITHIN.findall(text)))
    return statuses, round(slow)


def one_round(address: str, seed: int, examples: int, folder: Path) -> bool:
    """Whether schemathesis found nothing. Its findings are printed."""
    done = subprocess.run(
        [str(Path(sys.executable).with_name("schemathesis")), "run", f"{address}/openapi.json", "--checks", CHECKS,
         "--max-examples", str(examples), "--seed", str(seed), "--workers", "4", "--continue-on-failure", "--no-shrink",
         "--request-timeout", "60", "--generation-database", "none", "--no-color", "--phases", "examples,coverage,fuzzing",
         "--suppress-health-check", "all", "--exclude-path-regex", "/events$"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = "unique failure" in done.stdout
    if found or "generated" not in done.stdout:
        print(done.stdout[-8_000:], done.stderr[-2_000:], sep="\n")
    for line in re.findall(r"Runtime Error: .*", done.stdout):
        print(f"schemathesis itself: {line}")  # of its generators, on some schemas; the other operations were tested
    return not found and "generated" in done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="a database that may be written to; a fresh SQLite file when left out")
    parser.add_argument("--requests", type=int, default=100_000, help="at least so many (default: %(default)s)")
    parser.add_argument("--examples", type=int, default=50, help="of an operation in a round (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the first round (default: %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        url = options.url or f"sqlite:///{folder}/fuzzed.sqlite"
        prepared(url)
        server = ServerProcess(url, folder / "log")
        server.start()
        try:
            rounds = clean = 0
            statuses, slow = answered(server.address)
            while sum(statuses.values()) < options.requests:
                clean += one_round(server.address, options.seed + rounds, options.examples, folder)
                rounds += 1
                before, (statuses, slow) = sum(statuses.values()), answered(server.address)
                if sum(statuses.values()) == before:
                    raise RuntimeError("a round sent nothing")
        finally:
            server.stop()
        tracebacks = (folder / "log").read_text().count("Traceback")
    failures = sum(count for status, count in statuses.items() if status in ("500", "502", "504"))
    print(
        f"{sum(statuses.values())} requests in {rounds} rounds ({clean} clean) on {url.partition(':')[0]}: {dict(sorted(statuses.items()))}"
    )
    print(
        f"500: {failures}, 503: {statuses['503']}, more than {HANGS_AFTER_S:.0f} s: {slow}, tracebacks logged: {tracebacks}"
    )
    raise SystemExit(bool(failures or slow or tracebacks or clean < rounds))


if __name__ == "__main__":
    main()
