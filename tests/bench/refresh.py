"""How long a new correction set takes after one upload, with many results stored.

    python -m tests.bench.refresh --url sqlite:////tmp/refresh.sqlite --results 10000

The database must be migrated and seeded. The results are stored under one configuration: the worst case.
"""

import argparse
import copy
import datetime as dt
import time
from functools import partial

from service.access import Caller, Role
from service.benchmarks.intake import Submission, canonical_run, check
from service.benchmarks.names import CatalogNames
from service.benchmarks.predict import planner_loop
from service.benchmarks.storing import prepare, store
from service.clock import system_clock
from service.corrections.learn import refresh
from service.database import Database
from service.wire.benchmarks import BenchmarkUpload
from tests.bench.kill_storm import RUN


def fill(database: Database, results: int) -> None:
    """Store plausible results through intake itself, many to a transaction."""
    loop, names = planner_loop(), CatalogNames().fresh(database)
    started = dt.datetime.now(dt.UTC).isoformat()
    caller = Caller("bench", Role.agent)
    for first in range(0, results, 500):
        batch = []
        with database.reading() as reading:
            for number in range(first, min(first + 500, results)):
                body = copy.deepcopy(RUN)
                body["context"]["notes"] = f"refresh {started} {number}"
                upload = BenchmarkUpload.model_validate(body)
                submission = Submission(caller.name, None, upload.model_dump(mode="json"), system_clock())
                assert loop.predict is not None
                checked = check(canonical_run(upload), submission.received_at, names, partial(loop.predict, reading))
                batch.append(prepare(caller, submission, checked))
        with database.writing() as writing:
            store(writing, batch, loop.changed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--results", type=int, default=10_000)
    arguments = parser.parse_args()
    database = Database(arguments.url)
    fill(database, arguments.results)
    with database.writing() as session:
        refresh(session, system_clock())
    took, busy = [], []
    for _ in range(5):
        fill(database, 1)
        started, processor = time.perf_counter(), time.process_time()
        with database.writing() as session:
            assert refresh(session, system_clock()) is not None
        took.append((time.perf_counter() - started) * 1e3)
        busy.append((time.process_time() - processor) * 1e3)
    print(
        f"refresh after one upload, {arguments.results} stored: {min(took):.1f} to {max(took):.1f} ms, "
        f"of which processor {min(busy):.1f} to {max(busy):.1f} ms"
    )


if __name__ == "__main__":
    main()
