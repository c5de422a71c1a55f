"""A served page and a real browser: Debian's Chromium, driven by Playwright. Without a Chromium these tests are skipped."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.bench.server_process import ServerProcess

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
PATIENCE_MS = 45_000
"""For plans: a busy machine takes several times what an idle one does."""
REQUEST: dict[str, Any] = {
    "workloads": [
        {
            "name": "chat",
            "llm": "llama-3.1-8b",
            "traffic": {
                "requests_per_s": 60.0,
                "prompt_tokens": {"distribution": "lognormal", "mean": 1200, "p95": 4000},
                "output_tokens": {"distribution": "lognormal", "mean": 300, "p95": 900},
            },
            "targets": {"ttft_ms": {"p95": 1000}, "tpot_ms": {"p95": 20}},
        }
    ],
    "limits": {"devices": ["h100-sxm", "l40s", "a100-sxm-80"], "providers": ["verda", "hyperstack", "aws"]},
}


@pytest.fixture(scope="session")
def chromium() -> str:
    """Where it is; without one nothing here is tested."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium, or name one in CHROMIUM")
    return CHROMIUM


# By file: Playwright keeps an event loop running in this thread until it is stopped, and other files run loops of their own.
@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def server(
    chromium: str,  # noqa: ARG001  no browser, no server
    tmp_path_factory: pytest.TempPathFactory,
    seeded_template: Path,
) -> Iterator[ServerProcess]:
    """One for all files: a start of the service takes longer than most tests."""
    path = tmp_path_factory.mktemp("page") / "served.sqlite"
    shutil.copy(seeded_template, path)
    server = ServerProcess(f"sqlite:///{path}", path.with_suffix(".log"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def plans(server: ServerProcess) -> list[dict[str, Any]]:
    """Two stored plans: of the request, and of the same with a looser target."""
    looser = json.loads(json.dumps(REQUEST))
    looser["workloads"][0]["targets"]["tpot_ms"]["p95"] = 100
    made = []
    for body in (REQUEST, looser):
        answer = httpx.post(f"{server.address}/v1/recommendations", json=body, timeout=120)
        assert answer.status_code == 201, answer.text
        made.append(answer.json())
    return made


@pytest.fixture(scope="session")
def fleet(server: ServerProcess) -> dict[str, Any]:
    """A stored fleet of the request's workload, busy by day."""
    (workload,) = json.loads(json.dumps(REQUEST))["workloads"]
    workload["traffic"].pop("requests_per_s")
    workload["demand"] = {"kind": "profile", "weekday_requests_per_s": [20.0] * 8 + [60.0] * 12 + [20.0] * 4}
    body = {"workloads": [workload], "horizon": {"months": 12, "periods_per_month": 4}, "limits": REQUEST["limits"]}
    body |= {"gap_fraction": 0.05}
    answer = httpx.post(f"{server.address}/v1/fleets", json=body, headers={"Prefer": "wait=120"}, timeout=180)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


@pytest.fixture
def context(browser: Browser, server: ServerProcess) -> Iterator[BrowserContext]:
    context = browser.new_context(base_url=server.address, viewport={"width": 1360, "height": 900})
    yield context
    context.close()


class Watched:
    """What a page asked for and complained about."""

    def __init__(self, page: Page) -> None:
        self.hosts: set[str] = set()
        self.complaints: list[str] = []
        page.on("request", lambda r: self.hosts.add(r.url.split("/")[2]) if r.url.startswith("http") else None)
        page.on("pageerror", lambda e: self.complaints.append(str(e)))
        page.on("console", lambda m: self.complaints.append(m.text) if self._is_complaint(m.text) else None)

    @staticmethod
    def _is_complaint(text: str) -> bool:
        return "Content Security Policy" in text or "Error:" in text


@pytest.fixture
def page(context: BrowserContext, server: ServerProcess) -> Iterator[Page]:
    """A tab that must talk to this service alone, break no policy and raise nothing."""
    page = context.new_page()
    page.set_default_timeout(15_000)
    watched = Watched(page)
    yield page
    page.close()
    assert watched.hosts <= {server.address.removeprefix("http://")}
    assert watched.complaints == []
