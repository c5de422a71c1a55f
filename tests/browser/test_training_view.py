"""Training on the page: a job is planned, questioned and started; refusals are said."""

import re

import httpx
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.bench.server_process import ServerProcess
from tests.browser.conftest import PATIENCE_MS
from tests.browser.test_page import money


class TestTraining:
    def test_a_job_is_planned_questioned_and_started(self, page: Page, server: ServerProcess) -> None:
        page.goto(
            "/#/training?llm=llama-3.1-8b&method=lora&tokens=50&sequence_tokens=4096&device=h100-sxm&max_devices=8"
        )
        expect(page.get_by_role("heading", name="Start it")).to_be_visible(timeout=PATIENCE_MS)
        (stored,) = httpx.get(f"{server.address}/v1/training/recommendations", params={"limit": 1}).json()["items"]
        answer = httpx.get(f"{server.address}/v1/training/recommendations/{stored['id']}").json()
        expect(page.get_by_role("heading", name=re.compile(re.escape(money(answer["solve"]["usd"]))))).to_be_visible()
        page.get_by_label("Device", exact=True).last.fill("a100-sxm-80")
        page.get_by_role("button", name="Why not this?").click()
        expect(page.get_by_text("Left out by limits.devices")).to_be_visible(timeout=PATIENCE_MS)
        page.get_by_label("With", exact=True).select_option("slurm")
        page.get_by_role("button", name="Make the files").click()
        expect(page.get_by_text("#SBATCH --nodes=1")).to_be_visible(timeout=PATIENCE_MS)
        assert Axe().run(page).violations_count == 0
        page.goto(f"/#/training/{stored['id']}")
        expect(page.get_by_role("heading", name="Start it")).to_be_visible(timeout=PATIENCE_MS)

    def test_a_refusal_is_said(self, page: Page) -> None:
        page.goto("/#/training?llm=nobody-9b&tokens=50")
        expect(page.get_by_role("alert")).to_be_visible(timeout=PATIENCE_MS)
