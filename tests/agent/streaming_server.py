"""A small local engine for tests: speaks the streaming completions API and emits tokens at a steady interval.

Run as a program it prints its port, serves until it is ended, and then prints the interval it really kept, in seconds:
python streaming_server.py --interval-ms 10
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
from dataclasses import dataclass, field


class Stream:
    """One answer on its way: the engine writes to all of them in turn, so that it can keep time for hundreds."""

    def __init__(self, writer: asyncio.StreamWriter, event: bytes, left: int) -> None:
        self._transport = writer.transport
        self._event = event
        self._left = left
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def emit(self) -> bool:
        """Send one token; False when it was the last, or nobody listens any more."""
        if not self._transport.is_closing():
            self._transport.write(self._event)
            self._left -= 1
        if self._left > 0 and not self._transport.is_closing():
            return True
        if not self.finished.done():
            self.finished.set_result(None)
        return False


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
    with_token_ids: bool = False
    """Name generated tokens where asked to, as vLLM does."""
    prompts: list[list[int]] = field(default_factory=list)
    """Every prompt of token ids, in the order they came."""
    requests_seen: int = 0
    in_flight: int = 0
    most_in_flight: int = 0
    steps: int = 0
    stepped_s: float = 0.0
    """How many steps were made, and how long they took: what the interval truly was on a busy machine."""
    _streams: list[Stream] = field(default_factory=list)

    async def start(self) -> tuple[asyncio.Server, int]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024)
        return server, server.sockets[0].getsockname()[1]

    async def tick(self) -> None:
        """The engine's steps: a token to every stream at once, at times that do not drift."""
        loop = asyncio.get_running_loop()
        started_at = next_at = loop.time()
        while True:
            next_at += self.interval_s
            await asyncio.sleep(max(next_at - loop.time(), 0.0))
            self._streams = [stream for stream in self._streams if stream.emit()]
            self.steps += 1
            self.stepped_s = loop.time() - started_at

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

    def _found(self, prompt: list[int]) -> int:
        """The longest beginning that a prompt before this one had, replies left out."""
        earlier = self.prompts[:-1]
        return max((_alike(one, prompt) for one in earlier), default=0)

    async def _answer(self, writer: asyncio.StreamWriter, body: dict[str, object], number: int) -> bool:
        if self.refuse_every and number % self.refuse_every == 0:
            message = b'{"error":{"message":"overloaded"}}'
            writer.write(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: %d\r\n\r\n" % len(message) + message)
            return True
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        if self.first_token_after_s:
            await asyncio.sleep(self.first_token_after_s)
        tokens = int(str(body["max_tokens"]))
        broken = bool(self.break_every) and number % self.break_every == 0
        if isinstance(ids_of_prompt := body.get("prompt"), list):
            self.prompts.append(ids_of_prompt)
        ids = [REPLY_TOKEN] if self.with_token_ids and body.get("return_token_ids") else None
        stream = Stream(writer, _token_event(body, ids), left=3 if broken else tokens)
        self._streams.append(stream)
        await stream.finished
        if broken:
            return False
        if self.with_usage:
            prompt = body["prompt"]
            assert isinstance(prompt, list)
            usage: dict[str, object] = {"prompt_tokens": len(prompt), "completion_tokens": tokens}
            if self.with_token_ids:
                usage["prompt_tokens_details"] = {"cached_tokens": self._found(prompt)}
            writer.write(_chunk(b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\n"))
        writer.write(_chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
        return True


def _alike(one: list[int], other: list[int]) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _token_event(body: dict[str, object], token_ids: list[int] | None) -> bytes:
    event = {
        "id": "cmpl-0123456789abcdef",
        "object": "text_completion",
        "created": 1763700000,
        "model": body["model"],
        "choices": [
            {"index": 0, "text": " w1234", "logprobs": None, "finish_reason": None}
            | ({} if token_ids is None else {"token_ids": token_ids})
        ],
        "usage": None,
    }
    return _chunk(b"data: " + json.dumps(event, separators=(",", ":")).encode() + b"\n\n")


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


REPLY_TOKEN = 99
"""Below the ids that prompts are drawn from."""


async def _main(interval_s: float) -> None:
    engine = StreamingServer(interval_s=interval_s)
    server, port = await engine.start()
    print(port, flush=True)
    steps = asyncio.create_task(engine.tick())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, steps.cancel)
    async with server:
        with contextlib.suppress(asyncio.CancelledError):
            await steps
        print(engine.stepped_s / max(engine.steps, 1), flush=True)
        os._exit(0)  # open streams are of no interest any more


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--interval-ms", type=float, default=10.0)
    asyncio.run(_main(parser.parse_args().interval_ms / 1e3))
