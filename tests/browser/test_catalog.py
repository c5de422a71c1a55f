"""The catalog on the page: what it suggests, filters, opens and finds."""

import httpx
from playwright.sync_api import Page, expect

from tests.bench.server_process import ServerProcess


class TestCatalog:
    def test_inputs_suggest_what_the_catalog_knows(self, page: Page) -> None:
        page.goto("/#/plan/new?preset=chat")
        page.get_by_label("Language model").focus()
        expect(page.locator("datalist option[value='qwen3-32b']")).to_have_count(1)
        page.get_by_text("Limits and choices").click()
        page.get_by_label("Regions", exact=True).focus()
        expect(page.locator("datalist option[value='us-east-1']")).to_have_count(1)

    def test_offers_are_filtered_and_opened_with_their_source(self, page: Page) -> None:
        page.goto("/#/catalog/offers?device=h200-sxm&provider=aws")
        link = page.get_by_role("link", name="aws:p5en.48xlarge:us-east-1:on_demand", exact=True)
        link.click()
        expect(page.get_by_role("region", name="Every price step")).to_contain_text("Vantage")

    def test_a_record_has_units_and_names_what_is_not_known(self, page: Page, server: ServerProcess) -> None:
        device = httpx.get(f"{server.address}/v1/devices/h100-sxm").json()
        page.goto("/#/catalog/devices/h100-sxm")
        expect(page.get_by_text(f"{device['memory_bandwidth_gb_per_s']:,.0f} GB/s", exact=True)).to_be_visible()
        unknown = [name for name, value in device.items() if value is None]
        assert unknown, "else this shows nothing"
        expect(page.get_by_text("Not known, and never guessed")).to_be_visible()
        expect(page.get_by_role("definition").filter(has_text="null")).to_have_count(0)
        page.get_by_text("Where each figure is from").click()

    def test_search_narrows_the_list(self, page: Page) -> None:
        page.goto("/#/catalog/devices")
        expect(page.get_by_role("link", name="a100-sxm-80", exact=True)).to_be_visible()
        page.keyboard.press("/")
        page.keyboard.type("mi300x")
        expect(page.get_by_role("link", name="a100-sxm-80", exact=True)).to_be_hidden()
        expect(page.get_by_role("link", name="mi300x", exact=True)).to_be_visible()
