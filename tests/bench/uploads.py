"""How many uploads a second the service stores, and how long one takes at half that rate.

    python -m tests.bench.uploads --url postgresql+psycopg://… --seconds 15 --rate-bar 300

First as fast as ``--clients`` clients can, then at half the bar in an open loop. The database must be migrated and
seeded. Client and service share the machine.
"""

import argparse
import asyncio
import copy
import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.bench.kill_storm import RUN
from tests.bench.server_process import ServerProcess


@dataclass(frozen=True)
class UploadReport:
    uploads_per_s: float
    offered_per_s: float
    answered: int
    failed: int
    p50_ms: float
    p99_ms: float


class Uploader:
    """One keep-alive connection that posts prepared bodies; a plain socket, so that the client costs little."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, body: bytes) -> int:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self._streams
        head = (
            "POST /v1/benchmarks HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = int(answer.split("content-length:")[1].split("\r\n")[0])
        await reader.readexactly(length)
        return int(answer.split(" ")[1])


def bodies(name: str, count: int) -> list[bytes]:
    made = []
    for number in range(count):
        run = copy.deepcopy(RUN)
        run["context"]["notes"] = f"{name}-{number}"
        made.append(json.dumps(run).encode())
    return made


async def as_fast_as_possible(port: int, clients: int, seconds: float, name: str) -> float:
    waiting = iter(bodies(name, int(seconds * 2000)))
    stored = 0
    until = time.perf_counter() + seconds

    async def client() -> None:
        nonlocal stored
        uploader = Uploader(port)
        while time.perf_counter() < until:
            status = await uploader.post(next(waiting))
            stored += status == 201

    started = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    return stored / (time.perf_counter() - started)


async def at_rate(port: int, rate: float, seconds: float, name: str) -> tuple[list[float], int]:
    """Latencies from the moment an upload was due, so that waiting for a slow service counts."""
    prepared = bodies(name, int(rate * seconds))
    idle: list[Uploader] = [Uploader(port) for _ in range(32)]
    latencies, failed = [], 0
    started = time.perf_counter() + 0.2

    async def one(number: int) -> None:
        nonlocal failed
        due = started + number / rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        uploader = idle.pop() if idle else Uploader(port)
        status = await uploader.post(prepared[number])
        idle.append(uploader)
        latencies.append(time.perf_counter() - due)
        failed += status != 201

    await asyncio.gather(*(one(number) for number in range(len(prepared))))
    return latencies, failed


def measure(url: str, clients: int, seconds: float, rate_bar: float) -> UploadReport:
    name = f"bench-{time.time_ns():x}"
    with tempfile.TemporaryDirectory() as folder:
        server = ServerProcess(url, Path(folder) / "server.log")
        server.start()
        try:
            asyncio.run(as_fast_as_possible(server.port, 4, 2.0, f"{name}-warm"))
            stored_per_s = asyncio.run(as_fast_as_possible(server.port, clients, seconds, f"{name}-fast"))
            latencies, failed = asyncio.run(at_rate(server.port, rate_bar / 2, seconds, f"{name}-paced"))
        finally:
            server.stop()
    ordered = sorted(latencies)
    return UploadReport(
        uploads_per_s=stored_per_s,
        offered_per_s=rate_bar / 2,
        answered=len(ordered),
        failed=failed,
        p50_ms=ordered[len(ordered) // 2] * 1e3,
        p99_ms=ordered[int(len(ordered) * 0.99)] * 1e3,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True, help="a migrated and seeded database")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--rate-bar", type=float, default=300.0, help="uploads a second to reach")
    arguments = parser.parse_args()
    print(measure(arguments.url, arguments.clients, arguments.seconds, arguments.rate_bar))  # noqa: T201


if __name__ == "__main__":
    main()
