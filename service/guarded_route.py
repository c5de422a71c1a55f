"""What every route does before its body is parsed."""

from collections.abc import Callable, Coroutine
from email.message import Message
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from service.access import Admission
from service.body_limit import limit_of
from service.json_bounds import MEMORY_PER_BODY_BYTE, check_json
from service.problems import NotJsonError

CHECKED_AT_ONCE_BYTES = 100_000


class GuardedRoute(APIRoute):
    """Lets callers in before their body is read, and refuses bodies that are not said to be JSON, are nested too deeply or hold
    too many values before they are built.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        takes_body = self.body_field is not None
        doors = [d.call for d in self.dependant.dependencies if isinstance(d.call, Admission)]

        async def guarded(request: Request) -> Response:
            for door in doors:
                await door.let_in(request)
            if takes_body:
                body = await request.body()
                content_type = request.headers.get("content-type")
                if body and not is_json(content_type):
                    raise NotJsonError(content_type)
                most = MEMORY_PER_BODY_BYTE * limit_of(request.url.path, request.app.state.settings)
                if len(body) <= CHECKED_AT_ONCE_BYTES:
                    check_json(body, most)
                else:
                    await run_in_threadpool(check_json, body, most)
            return await handle(request)

        return guarded


def is_json(content_type: str | None) -> bool:
    """Whether a media type is JSON's, by its name or its suffix (RFC 6839, 3.1), as FastAPI reads bodies. A body that says nothing is
    not: a web page may send one anywhere without asking (CORS).

    >>> [is_json(one) for one in ("application/json; charset=utf-8", "application/merge-patch+json", "text/plain", None)]
    [True, True, False, False]
    """
    if not content_type:
        return False
    message = Message()
    message["content-type"] = content_type
    subtype = message.get_content_subtype()
    return message.get_content_maintype() == "application" and (subtype == "json" or subtype.endswith("+json"))
