"""Counts the bytes of a request body while they arrive and stops reading above the limit (413)."""

from contextlib import suppress

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.problems import problem_response


class _TooLargeError(Exception):
    pass


class BodyLimit:
    """ASGI middleware. Import routes take whole files of other tools, fleets a year's demand; they have their own limit."""

    def __init__(self, app: ASGIApp, *, limit_bytes: int, import_limit_bytes: int) -> None:
        self.app = app
        self.limit_bytes = limit_bytes
        self.import_limit_bytes = import_limit_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path = scope["path"].rstrip("/")
        limit = self.import_limit_bytes if path.endswith(("/import", "/v1/fleets")) else self.limit_bytes
        declared = dict(scope["headers"]).get(b"content-length", b"")
        if declared.isdigit() and int(declared) > limit:
            await self._refuse(limit)(scope, receive, send)
            return
        received = 0
        answered = refused = False

        async def counted() -> Message:
            nonlocal received, refused
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                refused = True
                raise _TooLargeError
            return message

        async def noted(message: Message) -> None:
            nonlocal answered
            if refused and not answered:
                return  # what the application makes of the torn body is not the answer
            answered = answered or message["type"] == "http.response.start"
            await send(message)

        with suppress(_TooLargeError):
            await self.app(scope, counted, noted)
        if refused and not answered:
            await self._refuse(limit)(scope, receive, send)

    @staticmethod
    def _refuse(limit: int) -> ASGIApp:
        return problem_response(
            "body-too-large", f"the body may have at most {limit} bytes", headers={"Connection": "close"}
        )
