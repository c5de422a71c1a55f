"""uvicorn's HTTP protocol with bounds on what one connection may hold: bytes and time of a head, time of a body, number.

httptools buffers a head of any length for any time. Whoever sends slowly, or a header without end, is answered 408 or
431 and disconnected.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.problems import problem_response

GRACE_S = 5.0
"""A slow body is answered 408 by the application first (``service.body_limit``); the connection ends so much later."""


@dataclass(frozen=True)
class HttpLimits:
    """head: request line and headers. body_timeout_s: from the end of the head to the end of the body."""

    head_bytes: int
    head_timeout_s: float
    body_timeout_s: float
    connections: int


def bounded_http(limits: HttpLimits) -> type[HttpToolsProtocol]:
    """The protocol class for ``uvicorn.Config(http=…)``."""

    class BoundedHttp(HttpToolsProtocol):
        """One connection: idle or receiving a head (``_in_head``), receiving a body, or answering."""

        _in_head = True
        _head_bytes = 0
        _refusal: tuple[int, str] | None = None
        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn narrows the base's parameter
            super().connection_made(transport)
            if len(self.connections) > limits.connections:
                self._refuse(503, f"more than {limits.connections} connections are open")
            else:
                self._end_after(limits.head_timeout_s)

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_clock()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self.transport.is_closing():
                return
            if self._in_head:
                self._head_bytes += len(data)
                if self._deadline is None:
                    self._end_after(limits.head_timeout_s)
            super().data_received(data)
            if self._in_head and self._head_bytes > limits.head_bytes:
                self._too_long()

        def on_headers_complete(self) -> None:
            size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
            if size > limits.head_bytes:
                self._refusal = (431, f"request line and headers may have at most {limits.head_bytes} bytes")
                raise ValueError("too long")  # the parser stops and asks for a 400, which becomes this refusal
            self._in_head = False
            self._end_after(limits.body_timeout_s + GRACE_S)
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            self._stop_clock()
            self._in_head, self._head_bytes = True, 0
            super().on_message_complete()

        def send_400_response(self, msg: str) -> None:
            self._refuse(*(self._refusal or (400, msg)))

        def _too_long(self) -> None:
            if not self.transport.is_closing():
                self._refuse(431, f"request line and headers may have at most {limits.head_bytes} bytes")

        def _end_after(self, seconds: float) -> None:
            self._stop_clock()
            self._deadline = self.loop.call_later(seconds, self._late)

        def _stop_clock(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

        def _late(self) -> None:
            self._deadline = None
            if self.transport.is_closing():
                return
            if self._in_head and self._head_bytes:
                self._refuse(408, f"request line and headers must arrive within {limits.head_timeout_s:g} s")
            else:
                self.transport.close()

        def _refuse(self, status: int, detail: str) -> None:
            """A problem document without the application, and the end of the connection."""
            self._stop_clock()
            if self.cycle is not None and not self.cycle.response_complete:
                self.transport.close()  # an earlier request of this connection is being answered
                return
            self.transport.write(_refusal_bytes(status, detail))
            self.transport.close()

    return BoundedHttp


_SLUGS = {400: "malformed-body", 408: "too-slow", 431: "headers-too-large", 503: "unavailable"}
_REASONS = {
    400: "Bad Request",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}


def _refusal_bytes(status: int, detail: str) -> bytes:
    response: Any = problem_response(_SLUGS[status], detail, headers={"Connection": "close"})
    head = f"HTTP/1.1 {status} {_REASONS[status]}\r\n".encode()
    return head + b"".join(n + b": " + v + b"\r\n" for n, v in response.raw_headers) + b"\r\n" + bytes(response.body)
