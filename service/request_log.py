"""One log line and one request id for every request; counters for Prometheus. Never a body, a query or a token."""

import logging
import logging.config
import re
import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from ulid import ULID

from service.metrics import Metrics
from service.problems import internal_problem

log = logging.getLogger("clusterwright.requests")
GIVEN_ID = re.compile(rb"[A-Za-z0-9._\-]{1,64}")
QUIET = frozenset({"/healthz", "/readyz", "/metrics"})


def configure_logging(level: str) -> None:
    """Plain lines on standard error; standard output belongs to the command line's answers."""
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
            "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
            "root": {"level": level.upper(), "handlers": ["stderr"]},
            "loggers": {
                "httpx": {"level": "WARNING"},
                "alembic": {"level": "WARNING"},
                "procrastinate": {"level": "WARNING"},
            },
        }
    )


class RequestLog:
    """ASGI middleware, outermost."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = dict(scope["headers"]).get(b"x-request-id", b"")
        request_id = given.decode() if GIVEN_ID.fullmatch(given) else f"req_{ULID()}"
        scope.setdefault("state", {})["request_id"] = request_id
        started = time.perf_counter()
        status = 500

        async def with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers: list[Any] = message.setdefault("headers", [])
                if not any(name.lower() == b"x-request-id" for name, _ in headers):
                    headers.append((b"x-request-id", request_id.encode()))
            await send(message)

        started_answer = False

        async def noted(message: Message) -> None:
            nonlocal started_answer
            started_answer = True
            await with_id(message)

        try:
            await self.app(scope, receive, noted)
        except Exception as error:
            if started_answer:
                raise  # half an answer is out: only closing the connection tells
            log.error("unexpected failure, request %s", request_id, exc_info=error)
            await internal_problem(request_id)(scope, receive, with_id)
        finally:
            seconds = time.perf_counter() - started
            route = getattr(scope.get("route"), "path", "unmatched")
            self.metrics.observe_request(scope["method"], route, status, seconds)
            if scope["path"] not in QUIET:
                log.info("%s %s %d %.1f ms %s", scope["method"], route, status, seconds * 1e3, request_id)
