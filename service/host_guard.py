"""Refuses requests whose Host header is missing, double or not a host: what parses it otherwise fails open or fails."""

import re

from starlette.types import ASGIApp, Receive, Scope, Send

from service.problems import problem_response

HOST = re.compile(rb"(?:[A-Za-z0-9](?:[A-Za-z0-9\-_.]{0,252}[A-Za-z0-9.])?|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")


class HostGuard:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            hosts = [value for name, value in scope["headers"] if name == b"host"]
            if len(hosts) != 1 or not HOST.fullmatch(hosts[0]):
                refusal = problem_response(
                    "malformed-body", "one Host header that names a host is needed", title="Bad Host header"
                )
                await refusal(scope, receive, send)
                return
        await self.app(scope, receive, send)
