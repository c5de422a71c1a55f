"""GET / and /docs: the page, a client of /v1 like any other, and Swagger UI. Both work without the internet.

They hold no data, so they are open: what they show they ask /v1 for, with the token that their user enters.
"""

from pathlib import Path

import fastapi_offline
from fastapi import APIRouter, FastAPI
from fastapi.responses import FileResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.datastructures import MutableHeaders
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.guarded_route import GuardedRoute

FILES = Path(__file__).with_name("static")
SWAGGER_UI_FILES = Path(fastapi_offline.__file__).with_name("static")
"""Swagger UI as fastapi-offline packs it: its script and its style sheet."""

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Nothing inline, nothing from elsewhere: a name in an answer that looks like a script is text."""

HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",  # asked for again each time, and answered 304: a new version is seen at once
}

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)


@router.get("/")
def get_page() -> Response:
    return FileResponse(FILES / "index.html", headers=HEADERS)


@router.get("/docs")
def get_docs() -> Response:
    return FileResponse(FILES / "docs.html", headers=HEADERS)


@router.get("/favicon.ico")
def get_icon() -> Response:
    return FileResponse(FILES / "icon.svg", headers=HEADERS)


class SafeHeaders:
    """ASGI wrapper: every answer has the headers of the page."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await self.app(scope, receive, with_headers)


def install_page(app: FastAPI) -> None:
    """The routes, and the files they need under ``/page`` and ``/docs/ui``, compressed for who can read it."""
    app.include_router(router)
    for path, folder in (("/page", FILES), ("/docs/ui", SWAGGER_UI_FILES)):
        app.mount(path, SafeHeaders(GZipMiddleware(StaticFiles(directory=folder))))
