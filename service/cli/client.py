"""How the command line talks to /v1: over HTTP, or to the application inside this process when none is running."""

import asyncio
import json
from typing import Any

import httpx

from service.cli.exit_codes import CommandError, ExitCode
from service.settings import IN_THIS_PROCESS, Settings

DEFAULT_URL = "http://127.0.0.1:8000"
TIMEOUT_S = 310.0
"""Longer than the longest time limit of a recommendation."""
PROBE_TIMEOUT_S = 0.5


class Client:
    """One way to ask: ``url`` when given or when the default address answers, else, or where it is ``local``, in this process."""

    def __init__(self, settings: Settings, url: str | None) -> None:
        self._settings = settings
        asked = url or settings.url
        self.url = None if asked == IN_THIS_PROCESS else asked or _listening()

    def get(self, path: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
        return self._send("GET", path, parameters=parameters)

    def post(self, path: str, body: Any = None, *, prefer: str | None = None) -> dict[str, Any]:
        """Without a running service nobody would compute a job, so the answer is waited for unless ``prefer`` says."""
        return self._send("POST", path, body=body, prefer=prefer or (None if self.url else f"wait={TIMEOUT_S:.0f}"))

    def pages(self, path: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        """Every entry of a list, page after page."""
        items: list[dict[str, Any]] = []
        cursor: str | None = None
        while True:
            page = self.get(path, parameters | {"limit": 500} | ({"next": cursor} if cursor else {}))
            items.extend(page["items"])
            cursor = page["next"]
            if cursor is None:
                return items

    def file(self, path: str, parameters: dict[str, Any]) -> bytes:
        """What is answered as a file."""
        response = self._respond("GET", path, parameters=parameters)
        if not response.is_success:
            _answer(response)
        return response.content

    def _send(
        self,
        method: str,
        path: str,
        *,
        parameters: dict[str, Any] | None = None,
        body: Any = None,
        prefer: str | None = None,
    ) -> dict[str, Any]:
        return _answer(self._respond(method, path, parameters=parameters, body=body, prefer=prefer))

    def _respond(
        self,
        method: str,
        path: str,
        *,
        parameters: dict[str, Any] | None = None,
        body: Any = None,
        prefer: str | None = None,
    ) -> httpx.Response:
        token = self._settings.token.get_secret_value() if self._settings.token else None
        arguments: dict[str, Any] = {
            "params": {k: v for k, v in (parameters or {}).items() if v is not None},
            "headers": ({"Authorization": f"Bearer {token}"} if token else {}) | ({"Prefer": prefer} if prefer else {}),
        }
        if body is not None:
            arguments["content"] = _encoded(body)
            arguments["headers"]["Content-Type"] = "application/json"
        try:
            if self.url is None:
                response = asyncio.run(self._in_process(method, path, arguments))
            else:
                response = httpx.request(method, self.url.rstrip("/") + path, timeout=TIMEOUT_S, **arguments)
        except httpx.HTTPError as error:
            raise CommandError(f"cannot reach {self.url}: {error}") from None
        except (httpx.InvalidURL, UnicodeEncodeError):
            raise CommandError(
                f"{path[:80]!a} is no address: a name or id holds what none has", ExitCode.bad_input
            ) from None
        return response

    async def _in_process(self, method: str, path: str, arguments: dict[str, Any]) -> httpx.Response:
        from service.main import create_app
        from service.process_memory import hold_together

        hold_together()
        app = create_app(self._settings, run_jobs=False)
        transport = httpx.ASGITransport(app=app, client=("127.0.0.1", 0))
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=TIMEOUT_S) as client,
        ):
            return await client.request(method, path, **arguments)


def _encoded(body: Any) -> bytes:
    """The body as JSON. Raises CommandError for numbers and texts that JSON in UTF-8 does not have; files may hold both."""
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except UnicodeEncodeError:
        raise CommandError("the request holds text that is not UTF-8", ExitCode.bad_input) from None
    except ValueError:
        raise CommandError("the request holds NaN or Infinity: state a finite number", ExitCode.bad_input) from None


def _listening() -> str | None:
    """The default address, if a service of ours answers there."""
    try:
        alive = httpx.get(f"{DEFAULT_URL}/healthz", timeout=PROBE_TIMEOUT_S)
        return DEFAULT_URL if alive.json().get("status") == "alive" else None
    except (httpx.HTTPError, ValueError, AttributeError):
        return None


def _answer(response: httpx.Response) -> dict[str, Any]:
    try:
        document: dict[str, Any] = response.json()
    except ValueError:
        raise CommandError(f"the service answered {response.status_code} with something that is not JSON") from None
    if response.is_success:
        return document
    lines = [f"{document.get('title', 'problem')}: {document.get('detail', '')}"]
    for error in document.get("errors", []):
        place = error.get("pointer") or error.get("parameter")
        if place or error["detail"] not in lines[0]:  # what is wrong with the whole request is said already
            lines.append(f"  {place}: {error['detail']}" if place else f"  {error['detail']}")
    code = ExitCode.bad_input if response.status_code < 500 and response.status_code != 429 else ExitCode.failed
    raise CommandError("\n".join(lines), code)
