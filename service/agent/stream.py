"""A streaming HTTP client for load generation: one request at a time on one connection, parsed from raw bytes.

A general HTTP client spends more time on one server-sent event than an engine spends on making it, and a client
that falls behind measures itself. This one does per event only what a measurement needs: note the time, see that it
carries a token, and read the JSON of the first and the last event.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

EVENT_END = b"\n\n"
DATA = b"data:"
ERROR_BODY_LIMIT_BYTES = 500


class StreamError(Exception):
    """The answer did not arrive whole: refused, broken off, timed out, or not what was asked for."""


@dataclass(frozen=True)
class Endpoint:
    """An OpenAI-compatible server, and how to ask it."""

    base_url: str
    """Scheme, host and port, without `/v1`: `http://127.0.0.1:8000`."""
    served_model: str
    api: str = "completions"
    """`completions` or `chat`."""
    api_key: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"an endpoint is an http or https URL, got {self.base_url!r}")
        if self.api not in {"completions", "chat"}:
            raise ValueError(f"the api is 'completions' or 'chat', got {self.api!r}")

    @property
    def host(self) -> str:
        return urlsplit(self.base_url).hostname or ""

    @property
    def port(self) -> int:
        parts = urlsplit(self.base_url)
        return parts.port or (443 if parts.scheme == "https" else 80)

    @property
    def is_encrypted(self) -> bool:
        return urlsplit(self.base_url).scheme == "https"

    @property
    def path(self) -> str:
        prefix = urlsplit(self.base_url).path.rstrip("/")
        return prefix + ("/v1/completions" if self.api == "completions" else "/v1/chat/completions")

    def encode(self, body: bytes) -> bytes:
        """The whole request, head and body, ready for the socket."""
        head = [
            f"POST {self.path} HTTP/1.1",
            f"Host: {self.host}:{self.port}",
            "Content-Type: application/json",
            "Accept: text/event-stream",
            "Connection: keep-alive",
            f"Content-Length: {len(body)}",
        ]
        if self.api_key:
            head.append(f"Authorization: Bearer {self.api_key}")
        return "\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + body


@dataclass
class StreamedAnswer:
    """What one answer held. Times are `time.perf_counter()` readings."""

    sent_at: float
    chunk_at: list[float] = field(default_factory=list, repr=False)
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    """Prompt tokens found in the cache of prefixes, where the server says so."""
    events: list[bytes] | None = field(default=None, repr=False)
    """Every event as it came; None where they are not kept."""
    error: str | None = None

    def take_event(self, event: bytes, now: float) -> None:
        """Note one server-sent event.

        After the first token an event counts as carrying one unless it is the closing usage report, whose list of
        choices is empty; only the first events and the closing ones are parsed as JSON.
        """
        if self.events is not None:
            self.events.append(event)
        if b'"completion_tokens"' in event:
            self._take_parsed(event, now)
        elif self.chunk_at and b'"choices"' in event:
            self.chunk_at.append(now)
        elif event.strip() != b"[DONE]":
            self._take_parsed(event, now)

    def _take_parsed(self, event: bytes, now: float) -> None:
        try:
            payload = json.loads(event)
        except ValueError:
            self.error = f"an event is not JSON: {event[:80]!r}"
            return
        if not isinstance(payload, dict) or payload.get("error") or "choices" not in payload:
            if self.error is None:
                self.error = f"the server sent an error: {event[:ERROR_BODY_LIMIT_BYTES].decode('utf-8', 'replace')}"
            return
        if payload["choices"] and _carries_token(payload["choices"][0]):
            self.chunk_at.append(now)
        usage = payload.get("usage")
        if isinstance(usage, dict):
            self.prompt_tokens = usage.get("prompt_tokens")
            self.output_tokens = usage.get("completion_tokens")
            details = usage.get("prompt_tokens_details")
            if isinstance(details, dict):
                self.cached_tokens = details.get("cached_tokens")


def _carries_token(choice: dict[str, object]) -> bool:
    """Whether a choice holds generated text: a chat's opening event names the role and holds none."""
    delta = choice.get("delta")
    if isinstance(delta, dict):
        return any(delta.get(key) for key in ("content", "reasoning_content", "reasoning", "tool_calls"))
    return "text" in choice


class StreamingConnection(asyncio.Protocol):
    """One HTTP/1.1 connection that streams one answer at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._answer: StreamedAnswer | None = None
        self._finished: asyncio.Future[None] | None = None
        self._raw = b""
        self._events = b""
        self._status: int | None = None
        self._chunked = False
        self._body_left: int | None = None
        self._keep_alive = True
        self.idle_since = time.perf_counter()

    @classmethod
    async def open(cls, endpoint: Endpoint) -> StreamingConnection:
        """Connect. Raises OSError when the server cannot be reached."""
        loop = asyncio.get_running_loop()
        context = ssl.create_default_context() if endpoint.is_encrypted else None
        _, connection = await loop.create_connection(cls, endpoint.host, endpoint.port, ssl=context)
        return connection

    @property
    def is_reusable(self) -> bool:
        return (
            self._transport is not None
            and not self._transport.is_closing()
            and self._answer is None
            and self._keep_alive
        )

    async def stream(self, request: bytes, timeout_s: float, events: list[bytes] | None = None) -> StreamedAnswer:
        """Send an encoded request and wait for the whole answer; failures are told in its `error`, never raised.

        events: where the answer's events are kept; None: they are not.
        """
        assert self._transport is not None
        assert self._answer is None
        self._raw = self._events = b""
        self._status = self._body_left = None
        self._chunked = False
        self._finished = asyncio.get_running_loop().create_future()
        answer = self._answer = StreamedAnswer(sent_at=time.perf_counter(), events=events)
        self._transport.write(request)
        try:
            async with asyncio.timeout(timeout_s):
                await self._finished
        except TimeoutError:
            answer.error = f"no complete answer within {timeout_s:g} s"
            self.close()
        except StreamError as error:
            answer.error = str(error)
            self.close()
        finally:
            self._answer = self._finished = None
            self.idle_since = time.perf_counter()
        return answer

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # asyncio.Protocol -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if self._finished is None or self._finished.done():
            return
        if self._status == 200 and not self._chunked and self._body_left is None:
            self._finish()  # an HTTP/1.0 answer ends with its connection
        else:
            self._fail(f"the connection broke off: {exc or 'closed by the server'}")

    def data_received(self, data: bytes) -> None:
        if self._answer is None:
            return
        now = time.perf_counter()
        self._raw = self._raw + data if self._raw else data
        try:
            if self._status is None and not self._take_head():
                return
            self._take_body(now)
        except (ValueError, IndexError):
            self._fail(f"not an HTTP answer: {self._raw[:80]!r}")

    # HTTP framing -----------------------------------------------------------------------------------------------

    def _take_head(self) -> bool:
        end = self._raw.find(b"\r\n\r\n")
        if end < 0:
            return False
        lines = self._raw[:end].decode("latin-1").split("\r\n")
        self._raw = self._raw[end + 4 :]
        self._status = int(lines[0].split(" ", 2)[1])
        headers = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])
        }
        self._chunked = "chunked" in headers.get("transfer-encoding", "").lower()
        self._keep_alive = headers.get("connection", "").lower() != "close"
        if "content-length" in headers:
            self._body_left = int(headers["content-length"])
        return True

    def _take_body(self, now: float) -> None:
        if self._chunked:
            self._take_chunks(now)
            return
        body, self._raw = self._raw, b""
        self._take_text(body, now)
        if self._body_left is not None:
            self._body_left -= len(body)
            if self._body_left <= 0:
                self._finish()

    def _take_chunks(self, now: float) -> None:
        raw, at = self._raw, 0
        while True:
            line_end = raw.find(b"\r\n", at)
            if line_end < 0:
                break
            size = int(raw[at:line_end].split(b";", 1)[0], 16)
            body_at = line_end + 2
            if len(raw) < body_at + size + 2:
                break
            if size == 0:
                self._raw = b""
                self._finish()
                return
            self._take_text(raw[body_at : body_at + size], now)
            at = body_at + size + 2
        self._raw = raw[at:]

    def _take_text(self, text: bytes, now: float) -> None:
        assert self._answer is not None
        self._events = self._events + text if self._events else text
        if self._status != 200:
            return
        if b"\r" in text:
            self._events = self._events.replace(b"\r\n", b"\n")
        while (end := self._events.find(EVENT_END)) >= 0:
            event, self._events = self._events[:end], self._events[end + 2 :]
            if event.startswith(DATA):
                self._answer.take_event(event[len(DATA) :], now)

    def _finish(self) -> None:
        if self._finished is None or self._finished.done():
            return
        if self._status != 200:
            body = self._events[:ERROR_BODY_LIMIT_BYTES].decode("utf-8", "replace")
            self._fail(f"the server answered {self._status}: {body}")
        else:
            self._finished.set_result(None)

    def _fail(self, why: str) -> None:
        if self._finished is not None and not self._finished.done():
            self._finished.set_exception(StreamError(why))
