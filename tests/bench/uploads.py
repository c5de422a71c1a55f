"""How many uploads a second the service stores, how long one takes at half that rate, and what one costs.

    python -m tests.bench.uploads --url postgresql+psycopg://… --seconds 15 --rate-bar 300

First as fast as ``--clients`` clients can, then at half the bar in an open loop: an upload's time runs from the moment
it was due. Every upload is another plausible result, of one of several configurations, and counts when its 201 came
back. The database must be migrated and seeded, and lie on this machine.

Client, service and database share the machine; on one that does other work too, the rate says little and processor
time per upload says what the service takes. ``capacity`` is what two cores would give if all three ran on nothing else.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from sqlalchemy import text
from sqlalchemy.engine import make_url

from service.database import Database
from tests.bench.kill_storm import RUN
from tests.bench.server_process import ServerProcess

CONFIGURATIONS = [
    (device, llm) for device in ("h200-sxm", "h100-sxm") for llm in ("llama-3.1-8b", "qwen3-8b", "qwen2.5-7b", "llama-3-8b")
]  # fmt: skip
CORES = 2
CLOCK_TICKS_PER_S = 100
IDLE_REUSE_S = 2.0
"""The service closes a connection that was idle for some seconds; one idle for longer than this is opened anew."""


@dataclass(frozen=True)
class Costs:
    """Processor seconds since the start of the processes."""

    service_s: float
    database_s: float
    client_s: float


@dataclass(frozen=True)
class Phase:
    """One load: what was stored of what was sent, how long each took, and processor milliseconds per stored upload."""

    stored: int
    failed: int
    seconds: float
    p50_ms: float
    p99_ms: float
    service_ms: float
    database_ms: float
    client_ms: float

    @property
    def rate(self) -> float:
        return self.stored / self.seconds

    @property
    def capacity(self) -> float:
        """Uploads a second at which client, service and database would fill two cores, or the service one of them.

        The service's Python runs on one core at a time.
        """
        return min(CORES * 1e3 / (self.service_ms + self.database_ms + self.client_ms), 1e3 / self.service_ms)

    def line(self, name: str) -> str:
        return (
            f"{name}: {self.rate:.0f}/s stored ({self.stored} in {self.seconds:.1f} s, {self.failed} failed), "
            f"p50 {self.p50_ms:.1f} ms, p99 {self.p99_ms:.1f} ms; processor ms per upload: service "
            f"{self.service_ms:.2f}, database {self.database_ms:.2f}, load generator {self.client_ms:.2f}; "
            f"capacity of {CORES} cores {self.capacity:.0f}/s"
        )


class Uploader:
    """One keep-alive connection that posts prepared bodies; a plain socket, so that the client costs little."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._used_at = 0.0

    async def post(self, body: bytes) -> int:
        if self._streams is None or time.perf_counter() > self._used_at + IDLE_REUSE_S:
            if self._streams is not None:
                self._streams[1].close()
            self._streams = await asyncio.open_connection("127.0.0.1", self.port)
        self._used_at = time.perf_counter()
        reader, writer = self._streams
        writer.write(
            b"POST /v1/benchmarks HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        )
        answer = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(answer.split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        return int(answer.split(b" ", 2)[1])


def bodies(name: str) -> Iterator[bytes]:
    """Plausible results without end, no two alike: latencies up to 2 % apart, rates to match."""
    templates = []
    for device, llm in CONFIGURATIONS:
        run = json.loads(json.dumps(RUN))
        run["context"] |= {"device": device, "llm": llm, "notes": "NOTES"}
        run["results"] |= {
            "duration_s": "DURATION", "requests_per_s": "REQUESTS", "output_tokens_per_s": "TOKENS",
            "ttft_ms": {"mean": "TTFT"}, "tpot_ms": {"mean": "TPOT"}, "e2e_ms": {"mean": "E2E"},
        }  # fmt: skip
        template = json.dumps(run).replace("%", "%%")
        for place in ("DURATION", "REQUESTS", "TOKENS", "TTFT", "TPOT", "E2E"):
            template = template.replace(f'"{place}"', f"%({place})r")
        templates.append(template.replace("NOTES", "%(NOTES)s"))
    for number in count():
        slower = 1.0 + (number % 401 - 200) * 1e-4
        figures = {
            "DURATION": 10.0 * slower, "REQUESTS": 4.0 / slower, "TOKENS": 400.0 / slower,
            "TTFT": 80.0 * slower, "TPOT": 9.0 * slower, "E2E": 971.0 * slower, "NOTES": f"{name}-{number}",
        }  # fmt: skip
        yield (templates[number % len(templates)] % figures).encode()


async def as_fast_as_possible(port: int, clients: int, seconds: float, name: str) -> tuple[list[float], int, float]:
    """Latencies of stored uploads, how many failed, and how long it took."""
    waiting = bodies(name)
    latencies: list[float] = []
    failed = 0
    started = time.perf_counter()

    async def client() -> None:
        nonlocal failed
        uploader = Uploader(port)
        while (sent := time.perf_counter()) < started + seconds:
            status = await uploader.post(next(waiting))
            if status == 201:
                latencies.append(time.perf_counter() - sent)
            else:
                failed += 1

    await asyncio.gather(*(client() for _ in range(clients)))
    return latencies, failed, time.perf_counter() - started


async def at_rate(port: int, rate: float, seconds: float, name: str) -> tuple[list[float], int, float]:
    """The same; latencies from the moment an upload was due, so that waiting for a slow service counts."""
    waiting = bodies(name)
    idle = [Uploader(port) for _ in range(32)]
    latencies: list[float] = []
    failed = 0
    started = time.perf_counter()

    async def one(due: float, body: bytes) -> None:
        nonlocal failed
        uploader = idle.pop() if idle else Uploader(port)
        status = await uploader.post(body)
        idle.append(uploader)
        if status == 201:
            latencies.append(time.perf_counter() - due)
        else:
            failed += 1

    async with asyncio.TaskGroup() as under_way:
        for number in range(int(rate * seconds)):
            due = started + number / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            under_way.create_task(one(due, next(waiting)))
    return latencies, failed, time.perf_counter() - started


def processor_s(pid: int) -> float:
    """Of a process and all its threads; 0 when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS_PER_S


def database_s(url: str) -> float:
    """Of the backends that serve this database; SQLite works inside the service."""
    if make_url(url).get_backend_name() == "sqlite":
        return 0.0
    database = Database(url, pool_size=1)
    with database.reading() as session:
        backends = session.connection().execute(
            text("SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
        ).scalars()  # fmt: skip
        total = sum(processor_s(pid) for pid in backends)
    database.close()
    return total


def measured(server: ServerProcess, url: str, load: Coroutine[Any, Any, tuple[list[float], int, float]]) -> Phase:
    """Run one load and take the difference of the clocks."""

    def costs() -> Costs:
        return Costs(processor_s(server.pid), database_s(url), time.process_time())

    before = costs()
    latencies, failed, seconds = asyncio.run(load)
    after = costs()
    ordered = sorted(latencies)
    per_upload_ms = 1e3 / len(ordered)
    return Phase(
        stored=len(ordered),
        failed=failed,
        seconds=seconds,
        p50_ms=ordered[len(ordered) // 2] * 1e3,
        p99_ms=ordered[int(len(ordered) * 0.99)] * 1e3,
        service_ms=(after.service_s - before.service_s) * per_upload_ms,
        database_ms=(after.database_s - before.database_s) * per_upload_ms,
        client_ms=(after.client_s - before.client_s) * per_upload_ms,
    )


def measure(url: str, clients: int, seconds: float, rate_bar: float) -> tuple[Phase, Phase]:
    """The service as fast as it goes, and at half the bar."""
    name = f"bench-{time.time_ns():x}"
    with tempfile.TemporaryDirectory() as folder:
        server = ServerProcess(url, Path(folder) / "server.log", log_level="info")
        server.start()
        try:
            asyncio.run(as_fast_as_possible(server.port, 4, 2.0, f"{name}-warm"))
            fast = measured(server, url, as_fast_as_possible(server.port, clients, seconds, f"{name}-fast"))
            paced = measured(server, url, at_rate(server.port, rate_bar / 2, seconds, f"{name}-paced"))
        finally:
            server.stop()
    return fast, paced


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True, help="a migrated and seeded database")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--rate-bar", type=float, default=300.0, help="uploads a second to reach")
    arguments = parser.parse_args()
    fast, paced = measure(arguments.url, arguments.clients, arguments.seconds, arguments.rate_bar)
    print(fast.line(f"{arguments.clients} clients"))
    print(paced.line(f"{arguments.rate_bar / 2:.0f}/s offered"))


if __name__ == "__main__":
    main()
