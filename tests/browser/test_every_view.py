"""Every view in both themes: no accessibility violation, nothing from elsewhere, small and quick."""

import gzip
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page, ViewportSize, expect

from service.page.routes import FILES

VIEWS = {
    "answer": "#/plan/{plan}",
    "new": "#/plan/new?preset=rag",
    "why": "#/plan/{plan}/why",
    "trade-offs": "#/plan/{plan}/pareto",
    "roofline": "#/plan/{plan}/roofline",
    "estimate": "#/estimate?llm=llama-3.1-8b&device=h100-sxm&prompt_mean=1200&prompt_p95=4000&output_mean=300&rate=2",
    "estimate form": "#/estimate",
    "estimate of sessions": "#/estimate?llm=llama-3.1-8b&device=h100-sxm&turns=4&user_mean=200&think=20&output_mean=300&rate=2",
    "cost": "#/plan/{plan}/cost",
    "run": "#/plan/{plan}/run",
    "compare": "#/compare?a={plan}&b={other}",
    "costs": "#/cost",
    "fleets": "#/fleets",
    "fleet form": "#/fleets/new?plan={plan}",
    "fleet": "#/fleets/{fleet}",
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


OPEN_DETAILS = """document.querySelectorAll('details').forEach((one) => {
    one.open = one.querySelectorAll('tr').length < 40;  // more rows of the same take long and show nothing new
})"""
PHONE = ViewportSize(width=390, height=800)
EVERYTHING = {"resultTypes": ["violations"]}
CONTRAST = EVERYTHING | {"runOnly": ["color-contrast"]}
"""All of accessibility that the theme changes."""


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_is_accessible_in_both_themes_and_fits_a_phone(
    context: BrowserContext, plans: list[dict[str, Any]], fleet: dict[str, Any], view: str
) -> None:
    page = context.new_page()
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.goto("/" + VIEWS[view].format(plan=plans[0]["id"], other=plans[1]["id"], fleet=fleet["id"]))
    expect(page.locator("[aria-busy=true], .loading")).to_have_count(0, timeout=30_000)
    page.evaluate(OPEN_DETAILS)
    expect(page.locator(".loading")).to_have_count(0, timeout=30_000)
    assert found(page, EVERYTHING) == []
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    assert found(page, CONTRAST) == []
    page.set_viewport_size(PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"] + 1


def found(page: Page, options: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """Violations, each with where."""
    violations = Axe().run(page, options=options).response["violations"]
    return [(v["id"], [node["html"][:160] for node in v["nodes"]][:3]) for v in violations]


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
    page.wait_for_load_state("networkidle")
    sent = page.evaluate("performance.getEntriesByType('resource').reduce((sum, one) => sum + one.transferSize, 0)")
    assert sent <= MOST_COMPRESSED_BYTES
    took_ms = page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
    assert took_ms <= INTERACTIVE_WITHIN_MS
