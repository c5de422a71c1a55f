"""A small local engine for tests: speaks the streaming completions API and emits tokens at a steady interval.

Run as a program it prints its port and serves until it is ended:  python streaming_server.py --interval-ms 10
"""

from __future__ import annotations

import argparse
import asyncio
import json
from dataclasses import dataclass, field


@dataclass
class StreamingServer:
    """Emits a token every `interval_s` on each stream, in step, as an engine that batches its requests does."""

    interval_s: float = 0.01
    first_token_after_s: float = 0.0
    refuse_every: int = 0
    """Answer every n-th request with 503."""
    break_every: int = 0
    """Break off every n-th request after its third token."""
    with_usage: bool = True
    requests_seen: int = 0
    in_flight: int = 0
    most_in_flight: int = 0
    _ticks: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def start(self) -> tuple[asyncio.Server, int]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024)
        return server, server.sockets[0].getsockname()[1]

    async def tick(self) -> None:
        """The engine's steps: wakes all streams at once, at times that do not drift."""
        loop = asyncio.get_running_loop()
        next_at = loop.time()
        while True:
            next_at += self.interval_s
            await asyncio.sleep(max(next_at - loop.time(), 0.0))
            async with self._ticks:
                self._ticks.notify_all()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                body = json.loads(await reader.readexactly(length))
                self.requests_seen += 1
                self.in_flight += 1
                self.most_in_flight = max(self.most_in_flight, self.in_flight)
                try:
                    if not await self._answer(writer, body, self.requests_seen):
                        return
                finally:
                    self.in_flight -= 1
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, body: dict[str, object], number: int) -> bool:
        if self.refuse_every and number % self.refuse_every == 0:
            message = b'{"error":{"message":"overloaded"}}'
            writer.write(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: %d\r\n\r\n" % len(message) + message)
            return True
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        if self.first_token_after_s:
            await asyncio.sleep(self.first_token_after_s)
        tokens = int(str(body["max_tokens"]))
        prompt = body["prompt"]
        event = json.dumps(
            {
                "id": "cmpl-0123456789abcdef",
                "object": "text_completion",
                "created": 1763700000,
                "model": body["model"],
                "choices": [{"index": 0, "text": " w1234", "logprobs": None, "finish_reason": None}],
                "usage": None,
            },
            separators=(",", ":"),
        ).encode()
        for token in range(tokens):
            async with self._ticks:
                await self._ticks.wait()
            if self.break_every and number % self.break_every == 0 and token == 3:
                return False
            _write_chunk(writer, b"data: " + event + b"\n\n")
        if self.with_usage:
            usage = {"prompt_tokens": len(prompt), "completion_tokens": tokens}  # type: ignore[arg-type]
            _write_chunk(writer, b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\n")
        _write_chunk(writer, b"data: [DONE]\n\n")
        writer.write(b"0\r\n\r\n")
        return True


def _write_chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(b"%x\r\n%b\r\n" % (len(data), data))


async def _main(interval_s: float) -> None:
    engine = StreamingServer(interval_s=interval_s)
    server, port = await engine.start()
    print(port, flush=True)  # noqa: T201 - the program's one line of output
    async with server:
        await engine.tick()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--interval-ms", type=float, default=10.0)
    asyncio.run(_main(parser.parse_args().interval_ms / 1e3))
