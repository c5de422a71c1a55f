"""Talking to the service: one request, and requests that are tried again until they are answered."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from service.agent import VERSION

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 60.0
TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504, 507})
"""Answers that say "not now". Every upload carries its key, so trying again is always safe."""
NO_ACCESS = frozenset({401, 403})


class ServiceUnreachableError(Exception):
    """The service did not answer in the time allowed."""


class AccessRefusedError(Exception):
    """The token is missing, unknown, revoked, or of the wrong role. Trying again does not help."""


class RequestRefusedError(Exception):
    """The service understood and said no. ``problem`` is its answer."""

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        details = [
            f"{e.get('pointer', e.get('parameter', ''))}: {e.get('detail', '')}" for e in problem.get("errors", [])
        ]
        super().__init__(f"{status}: {'; '.join(details) or problem.get('detail') or problem.get('title') or ''}")
        self.status = status
        self.problem = problem


def waits_s(draw: random.Random) -> Iterator[float]:
    """Growing pauses between tries, up to a minute, each drawn from half to the whole, so that agents spread out."""
    longest = FIRST_WAIT_S
    while True:
        yield draw.uniform(longest / 2, longest)
        longest = min(LONGEST_WAIT_S, longest * 2)


@dataclass
class ServiceClient:
    """The service at ``url``. ``sleep`` and ``monotonic`` are arguments so that waiting can be tested."""

    url: str
    token: str | None = field(default=None, repr=False)
    timeout_s: float = 60.0
    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic
    say: Callable[[str], None] = lambda _text: None

    def __post_init__(self) -> None:
        headers = {"User-Agent": f"clusterwright-agent/{VERSION}"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        self._http = httpx.Client(base_url=self.url, headers=headers, timeout=self.timeout_s)
        self._draw = random.Random()

    def close(self) -> None:
        self._http.close()

    def request(
        self, method: str, path: str, body: Any = None, *, key: str | None = None, params: dict[str, Any] | None = None
    ) -> Any:
        """One try. The answer's JSON, None for an empty answer.

        Raises ServiceUnreachableError (network, or an answer that says "not now"), AccessRefusedError,
        RequestRefusedError.
        """
        headers = {"Idempotency-Key": key} if key else {}
        try:
            answer = self._http.request(method, path, json=body, headers=headers, params=params)
        except httpx.HTTPError as error:
            raise ServiceUnreachableError(f"{self.url}: {type(error).__name__}: {error}") from None
        if answer.is_success:
            return answer.json() if answer.content else None
        problem = _problem(answer)
        if answer.status_code in NO_ACCESS:
            raise AccessRefusedError(f"{answer.status_code}: {problem.get('detail', answer.reason_phrase)}")
        if answer.status_code in TRY_AGAIN:
            raise ServiceUnreachableError(f"{answer.status_code}: {problem.get('detail', answer.reason_phrase)}")
        raise RequestRefusedError(answer.status_code, problem)

    def request_until_answered(
        self, method: str, path: str, body: Any = None, *, key: str | None = None, within_s: float = float("inf")
    ) -> Any:
        """Try again with growing pauses while the service cannot be reached; raises what the last try raised."""
        until = self.monotonic() + within_s
        for wait_s in waits_s(self._draw):
            try:
                return self.request(method, path, body, key=key)
            except ServiceUnreachableError as error:
                if self.monotonic() + wait_s > until:
                    raise
                self.say(f"{error}; trying again in {wait_s:.1f} s")
                self.sleep(wait_s)
        raise AssertionError("waits never end")


def _problem(answer: httpx.Response) -> dict[str, Any]:
    try:
        problem = answer.json()
    except ValueError:
        return {"detail": answer.text[:300]}
    return problem if isinstance(problem, dict) else {"detail": str(problem)[:300]}
