"""Training on the page: a job is planned, questioned and started; refusals are said."""

import re
from typing import Any

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

    def test_a_large_pretraining_run_is_typed_in_and_planned(self, page: Page, server: ServerProcess) -> None:
        """Two trillion tokens through 70B in 60 days, on whatever is cheapest."""
        page.goto("/#/training")
        page.get_by_label("Language model").fill("llama-3.1-70b")
        page.get_by_label("Method").select_option("pretrain")
        page.get_by_label("Million tokens").fill("2000000")
        page.get_by_label("Days", exact=True).fill("60")
        page.get_by_label("At most, US dollars").fill("")
        page.get_by_role("button", name="Plan the training").click()
        expect(page.get_by_role("heading", name="Start it")).to_be_visible(timeout=PATIENCE_MS)
        (stored,) = httpx.get(f"{server.address}/v1/training/recommendations", params={"limit": 1}).json()["items"]
        answer = httpx.get(f"{server.address}/v1/training/recommendations/{stored['id']}").json()
        assert answer["solve"]["status"] == "proven_optimal"
        expect(page.get_by_role("heading", name=re.compile(re.escape(money(answer["solve"]["usd"]))))).to_be_visible()
        assert answer["cautions"]
        expect(page.get_by_text(answer["cautions"][0])).to_be_visible()

    def test_a_plan_is_priced_over_years(self, page: Page) -> None:
        page.goto(
            "/#/training?llm=llama-3.1-8b&method=lora&tokens=50&sequence_tokens=4096&device=h100-sxm&max_devices=8"
        )
        expect(page.get_by_role("heading", name="What it costs over time")).to_be_visible(timeout=PATIENCE_MS)
        page.get_by_label("Times a month").fill("4")
        page.get_by_role("button", name="Compare").click()
        expect(page.get_by_text("job done 144 times")).to_be_visible(timeout=PATIENCE_MS)
        expect(page.get_by_text(re.compile("Rent while it trains is cheapest over 36 months"))).to_be_visible()
        assert Axe().run(page).violations_count == 0
        page.get_by_role("link", name="Link to this comparison").click()
        expect(page.get_by_text("job done 144 times")).to_be_visible(timeout=PATIENCE_MS)

    def test_preferences_are_planned_with_adapters_and_started(self, page: Page, server: ServerProcess) -> None:
        page.goto("/#/training")
        page.get_by_label("Language model").fill("llama-3.1-8b")
        page.get_by_label("Method").select_option("dpo lora")
        page.get_by_label("Device", exact=True).fill("h100-sxm")
        page.get_by_label("Devices at most").fill("8")
        page.get_by_role("button", name="Plan the training").click()
        expect(page.get_by_role("heading", name="Start it")).to_be_visible(timeout=PATIENCE_MS)
        (stored,) = httpx.get(f"{server.address}/v1/training/recommendations", params={"limit": 1}).json()["items"]
        assert stored["jobs"] == ["job"]
        asked = httpx.get(f"{server.address}/v1/training/recommendations/{stored['id']}").json()
        assert "dpo" in page.url
        expect(page.get_by_text("no published run of preference tuning was compared")).to_be_visible()
        page.get_by_role("button", name="Make the files").click()
        expect(page.get_by_text("trl.scripts.dpo")).to_be_visible(timeout=PATIENCE_MS)
        assert asked["plan"]
        assert Axe().run(page).violations_count == 0
        page.reload()
        expect(page.get_by_label("Method")).to_have_value("dpo lora")

    def test_a_job_is_planned_beside_what_is_served(
        self, page: Page, server: ServerProcess, plans: list[dict[str, Any]]
    ) -> None:
        page.goto("/#/training")
        served = page.get_by_label("Together with what is served")
        expect(served.locator("option")).not_to_have_count(1)
        served.select_option(plans[0]["id"])
        page.get_by_label("Served by the hour").fill(", ".join(["0.2"] * 8 + ["1"] * 16))
        page.get_by_label("Device", exact=True).fill("h100-sxm")
        page.get_by_label("Devices at most").fill("8")
        page.get_by_role("button", name="Plan the training").click()
        expect(page.get_by_role("heading", name="Served beside")).to_be_visible(timeout=PATIENCE_MS)
        (stored,) = httpx.get(f"{server.address}/v1/training/recommendations", params={"limit": 1}).json()["items"]
        answer = httpx.get(f"{server.address}/v1/training/recommendations/{stored['id']}").json()
        assert answer["serving"]["recommendation"] == plans[0]["id"]
        expect(page.get_by_text(f"{money(answer['serving']['usd'])} until the last deadline")).to_be_visible()
        assert Axe().run(page).violations_count == 0
        page.reload()
        expect(page.get_by_role("heading", name="Served beside")).to_be_visible(timeout=PATIENCE_MS)
        expect(page.get_by_label("Together with what is served")).to_have_value(plans[0]["id"])
        page.get_by_label("Days", exact=True).fill("")
        page.get_by_role("button", name="Plan the training").click()
        expect(page.get_by_text("state one of every job")).to_be_visible(timeout=PATIENCE_MS)

    def test_a_machine_may_be_bought_and_is_told_with_what_is_due(self, page: Page, server: ServerProcess) -> None:
        """It is weighed at the catalog's price, in present value; the address keeps what was asked."""
        page.goto(
            "/#/training?llm=llama-3.1-8b&tokens=400000&sequence_tokens=4096&days=75&device=h100-sxm&max_devices=8"
        )
        expect(page.get_by_role("heading", name="What ending sooner costs: job")).to_be_visible(timeout=PATIENCE_MS)
        page.get_by_label("May be bought").fill("hgx-h100-8")
        page.get_by_label("Kept, months").fill("60")
        page.get_by_role("button", name="Plan the training").click()
        expect(page.get_by_text("in present value at 10 % a year")).to_be_visible(timeout=PATIENCE_MS)
        (stored,) = httpx.get(f"{server.address}/v1/training/recommendations", params={"limit": 1}).json()["items"]
        answer = httpx.get(f"{server.address}/v1/training/recommendations/{stored['id']}").json()
        assert [one["node"] for one in answer["own"][0]["machines"]] == ["hgx-h100-8"]
        assert "buy=hgx-h100-8" in page.url
        assert Axe().run(page).violations_count == 0

    def test_nodes_that_are_committed_to_say_what_they_cost(self, page: Page, server: ServerProcess) -> None:
        asked = {
            "jobs": [{"name": "job", "llm": "llama-3.1-8b", "method": "lora", "tokens": 5e7, "sequence_tokens": 4096}],
            "limits": {"devices": ["a100-sxm-40"], "commitments": ["reserved_1y_no_upfront"]},
        }
        plan = httpx.post(f"{server.address}/v1/training/recommendations", json=asked, timeout=60).json()
        page.goto(f"/#/training/{plan['id']}")
        heading = page.get_by_role("heading", name=re.compile("committed for 12 months, nothing more by the hour"))
        expect(heading).to_contain_text(money(plan["commitments"][0]["usd"]), timeout=PATIENCE_MS)

    def test_a_refusal_is_said(self, page: Page) -> None:
        page.goto("/#/training?llm=nobody-9b&tokens=50")
        expect(page.get_by_role("alert")).to_be_visible(timeout=PATIENCE_MS)
