"""Sends the hostile corpus to a service of its own and prints what each kind cost.

    python -m tests.hostile.corpus [--url postgresql+psycopg://…] [--show 5]

Bars: the same process answers before and after, no 5xx, each case within 2 s and 100 MB. Memory is the peak of the service's
own resident set over what it was before the case; the processes that read files for it have a limit of their own
(CLUSTERWRIGHT_IMPORT_MEMORY_LIMIT_BYTES). Without --url, a fresh SQLite database. Exit code 1 where a bar is missed.
"""

import argparse
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

import httpx

from catalog.read import read_catalog
from service.clock import system_clock
from service.database import Database
from service.migrate import migrate
from service.seeding import seed
from tests.bench.server_process import ServerProcess
from tests.hostile.cases import Case, corpus
from tests.hostile.traffic import estimates

MOST_S = 2.0
MOST_BYTES = 100_000_000
HANGS_AFTER_S = 60.0


@dataclass(frozen=True)
class Outcome:
    """status 0: disconnected without an answer. processor_s: of the service and the processes it ended."""

    case: Case
    status: int
    seconds: float
    processor_s: float
    grown_bytes: int

    @property
    def misses(self) -> str:
        if self.status >= 500 and self.status not in (503, 507):
            return f"{self.status}"
        if self.seconds > MOST_S:
            return f"{self.seconds:.2f} s ({self.processor_s:.2f} of processor time)"
        return f"{self.grown_bytes / 1e6:.0f} MB" if self.grown_bytes > MOST_BYTES else ""


def prepared(url: str) -> None:
    database = Database(url)
    migrate(database)
    with database.writing() as session:
        seed(session, read_catalog(), system_clock)
    database.close()


def status_kb(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise RuntimeError(f"/proc does not say {name}")


def processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / 100.0


def send(client: httpx.Client, case: Case, pid: int) -> Outcome:
    Path(f"/proc/{pid}/clear_refs").write_text("5")  # the peak starts anew
    before, spent = status_kb(pid, "VmRSS"), processor_s(pid)
    began = time.monotonic()
    try:
        headers = {
            name.encode(): value if isinstance(value, bytes) else value.encode() for name, value in case.headers.items()
        }
        status = client.request(case.method, case.path, content=case.content, headers=headers).status_code
    except httpx.TransportError as error:
        status = 0 if not isinstance(error, httpx.TimeoutException) else 599
    seconds = time.monotonic() - began
    return Outcome(case, status, seconds, processor_s(pid) - spent, max(0, status_kb(pid, "VmHWM") - before) * 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="a database that may be written to; a fresh SQLite file when left out")
    parser.add_argument("--show", type=int, default=10, help="cases that miss a bar to show (default: %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = options.url or f"sqlite:///{folder}/hostile.sqlite"
        prepared(url)
        server = ServerProcess(url, Path(folder) / "log")
        server.start()
        pid = server.pid
        try:
            with httpx.Client(base_url=server.address, timeout=HANGS_AFTER_S) as client:
                client.post(
                    "/v1/benchmarks/import", json={"payload": "a: 1"}
                )  # the clean process is started by the first
                outcomes = [send(client, case, pid) for case in (*corpus(), *estimates())]
                alive = client.get("/healthz").status_code == 200 and server.pid == pid
        finally:
            server.stop()
        tracebacks = (Path(folder) / "log").read_text().count("Traceback")
    by_kind: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        by_kind[outcome.case.kind].append(outcome)
    for kind, of_kind in by_kind.items():
        print(
            f"{kind:10} {len(of_kind):4} cases: longest {max(o.seconds for o in of_kind):5.2f} s"
            f" ({max(o.processor_s for o in of_kind):5.2f} s of processor time),"
            f" most {max(o.grown_bytes for o in of_kind) / 1e6:4.0f} MB, answers {dict(Counter(o.status for o in of_kind))}"
        )
    missed = [outcome for outcome in outcomes if outcome.misses]
    print(
        f"{len(outcomes)} cases, process alive: {alive}, tracebacks logged: {tracebacks}, bars missed by {len(missed)}"
    )
    for outcome in sorted(missed, key=lambda o: -o.seconds)[: options.show]:
        print(f"  {outcome.misses}: {outcome.case.kind} {outcome.case.name} → {outcome.case.path[:60]}")
    raise SystemExit(bool(missed) or not alive or tracebacks > 0)


if __name__ == "__main__":
    main()
