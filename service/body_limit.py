"""Counts the bytes of a request body while they arrive and stops reading above the limit (413), or when time is up (408)."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.problems import problem_response
from service.settings import Settings


def limit_of(path: str, settings: Settings) -> int:
    """Most bytes of a body sent to this path."""
    large = path.rstrip("/").endswith(("/import", "/v1/fleets", "/v1/traces"))
    return settings.import_body_limit_bytes if large else settings.body_limit_bytes


class _RefusedError(Exception):
    pass


class BodyLimit:
    """ASGI middleware. Import routes and traces take whole files of other tools, fleets a year's demand; they have their own limit."""

    def __init__(self, app: ASGIApp, *, settings: Settings) -> None:
        self.app = app
        self.settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        limit = limit_of(scope["path"], self.settings)
        declared = dict(scope["headers"]).get(b"content-length", b"")
        if declared.isdigit() and int(declared) > limit:
            await self._too_large(limit)(scope, receive, send)
            return
        received = 0
        answered = False
        refusal: Callable[[], ASGIApp] | None = None
        until = asyncio.get_running_loop().time() + self.settings.body_timeout_s
        arrived = not declared.strip(b"0") and b"transfer-encoding" not in dict(scope["headers"])

        async def counted() -> Message:
            nonlocal received, refusal, arrived
            if arrived:
                return await receive()
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError:
                refusal = self._too_slow
                raise _RefusedError from None
            arrived = arrived or not message.get("more_body", False)
            received += len(message.get("body", b""))
            if received > limit:
                refusal = partial(self._too_large, limit)
                raise _RefusedError
            return message

        async def noted(message: Message) -> None:
            nonlocal answered
            if refusal is not None and not answered:
                return  # what the application makes of the torn body is not the answer
            if message["type"] == "http.response.start":
                answered = True
                if not arrived:  # a body that was never read is not waited for
                    message.setdefault("headers", []).append((b"connection", b"close"))
            await send(message)

        with suppress(_RefusedError):
            await self.app(scope, counted, noted)
        if refusal is not None and not answered:
            await refusal()(scope, receive, send)

    def _too_slow(self) -> ASGIApp:
        detail = f"the body must arrive within {self.settings.body_timeout_s:g} s"
        return problem_response("too-slow", detail, headers={"Connection": "close"})

    @staticmethod
    def _too_large(limit: int) -> ASGIApp:
        return problem_response(
            "body-too-large", f"the body may have at most {limit} bytes", headers={"Connection": "close"}
        )
