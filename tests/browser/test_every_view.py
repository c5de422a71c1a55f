"""Every view in both themes: no accessibility violation, nothing from elsewhere, small and quick."""

import gzip
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from service.page.routes import FILES
from tests.bench.server_process import ServerProcess

VIEWS = {
    "answer": "#/plan/{plan}",
    "new": "#/plan/new?preset=rag",
    "why": "#/plan/{plan}/why",
    "trade-offs": "#/plan/{plan}/pareto",
    "cost": "#/plan/{plan}/cost",
    "run": "#/plan/{plan}/run",
    "compare": "#/compare?a={plan}&b={other}",
    "costs": "#/cost",
    "accuracy": "#/accuracy",
    "benchmarks": "#/benchmarks",
    "benchmark": "#/benchmarks/l8b-bf16-tp1-4096-256-c64_b",
    "devices": "#/catalog/devices",
    "offer": "#/catalog/offers/aws:p5en.48xlarge:us-east-1:on_demand",
    "jobs": "#/jobs",
    "glossary": "#/glossary",
    "nothing": "#/plan/rec_none",
}
MOST_COMPRESSED_BYTES = 600_000
INTERACTIVE_WITHIN_MS = 1_000


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_view_is_accessible(
    browser: Browser, server: ServerProcess, plans: list[dict[str, Any]], theme: Any
) -> None:
    context = browser.new_context(base_url=server.address, color_scheme=theme, reduced_motion="reduce")
    page = context.new_page()
    found = {}
    rules = {} if theme == "light" else {"runOnly": ["color-contrast"]}  # all that a theme changes
    for name, address in VIEWS.items():
        page.goto("about:blank")
        page.goto("/" + address.format(plan=plans[0]["id"], other=plans[1]["id"]))
        expect(page.locator("main[aria-busy], [aria-busy=true], .loading")).to_have_count(0, timeout=20_000)
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        expect(page.locator(".loading")).to_have_count(0, timeout=20_000)
        violations = Axe().run(page, options=rules).response["violations"]
        if violations:
            found[name] = [(v["id"], [n["html"][:160] for n in v["nodes"]][:3]) for v in violations]
    context.close()
    assert found == {}


def test_the_documentation_works_without_the_internet(page: Page) -> None:
    page.goto("/docs")
    expect(page.locator("#operations-recommendations-post_recommendation_v1_recommendations_post")).to_be_visible(
        timeout=30_000
    )


def test_the_page_is_small() -> None:
    files = [p for p in Path(FILES).iterdir() if p.suffix in {".html", ".css", ".js", ".json", ".svg"}]
    assert sum(len(gzip.compress(p.read_bytes())) for p in files) <= MOST_COMPRESSED_BYTES


def test_the_page_is_interactive_at_once(page: Page, plans: list[dict[str, Any]]) -> None:  # noqa: ARG001  something to show
    page.goto("/")
    page.reload()
    expect(page.get_by_role("button", name="Find the cheapest plan").first).to_be_enabled()
    took_ms = page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
    assert took_ms <= INTERACTIVE_WITHIN_MS


def test_nothing_overflows_a_phone(browser: Browser, server: ServerProcess, plans: list[dict[str, Any]]) -> None:
    context = browser.new_context(base_url=server.address, viewport={"width": 390, "height": 800})
    page = context.new_page()
    wide = []
    for name, address in VIEWS.items():
        page.goto("about:blank")
        page.goto("/" + address.format(plan=plans[0]["id"], other=plans[1]["id"]))
        expect(page.locator("main[aria-busy], [aria-busy=true], .loading")).to_have_count(0, timeout=20_000)
        if page.evaluate("document.documentElement.scrollWidth") > 391:
            wide.append(name)
    context.close()
    assert wide == []
