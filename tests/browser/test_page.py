"""The page as its readers use it: plan, follow a suggestion, compare, price, start, upload, be refused, cancel."""

import json
import re
from copy import deepcopy
from itertools import groupby
from typing import Any

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect

from service.cli.main import main
from tests.bench.server_process import ServerProcess
from tests.browser.conftest import PATIENCE_MS, REQUEST

SMALL = "devices=h100-sxm,l40s&providers=verda,hyperstack"


def money(amount: str) -> str:
    return f"${float(amount):,.2f}"


class TestPlanning:
    def test_a_preset_becomes_a_plan_with_its_proof(self, page: Page, server: ServerProcess) -> None:
        page.goto("/")
        page.get_by_role("button", name="Batch").click()
        expect(page.get_by_label("Language model")).to_have_value("llama-3.1-8b")
        page.goto(f"/#/plan/new?preset=batch&{SMALL}")
        expect(page.get_by_role("button", name="Remove verda")).to_be_visible()
        page.get_by_role("button", name="Find the cheapest plan").first.click()
        expect(page.get_by_text("Proven cheapest")).to_be_visible(timeout=PATIENCE_MS)
        stored = re.search(r"rec_\w+", page.url)
        assert stored is not None, "the address is the plan's own"
        answer = httpx.get(f"{server.address}/v1/recommendations/{stored[0]}").json()
        expect(page.locator(".price")).to_contain_text(money(answer["totals"]["usd_per_hour"]))
        expect(page.locator(".proof")).to_contain_text(money(answer["solve"]["bound_usd_per_hour"]))
        assert answer["request"]["workloads"][0]["targets"]["e2e_ms"] == {"p95": 120_000}
        assert answer["request"]["limits"]["providers"] == ["verda", "hyperstack"]

    def test_a_suggested_relaxation_is_planned(self, page: Page, plans: list[dict[str, Any]]) -> None:
        binding = plans[0]["binding"][0]
        page.goto(f"/#/plan/{plans[0]['id']}")
        link = page.get_by_role("button", name=re.compile("^relax to")).first
        expect(link).to_be_visible()
        link.click()
        expect(page.get_by_role("heading", name="What the requirements cost")).to_be_hidden()
        page.wait_for_url(re.compile(r"rec_(?!.*" + plans[0]["id"][4:] + ")"), timeout=PATIENCE_MS)
        expect(page.locator(".price")).not_to_contain_text(money(plans[0]["totals"]["usd_per_hour"]))
        name, shown_as = {
            "targets.ttft_ms.p95": ("TTFT p95, ms", 1.0), "targets.tpot_ms.p95": ("TPOT p95, ms", 1.0),
            "utilisation_limit_fraction": ("Busy at most, %", 100.0),
        }[binding["limit"]]  # fmt: skip
        expect(page.get_by_label(name)).to_have_value(f"{binding['relaxing_to'] * shown_as:g}")

    def test_what_loosening_does_not_save_is_said_and_true(
        self, page: Page, server: ServerProcess, plans: list[dict[str, Any]]
    ) -> None:
        answer = plans[0]
        assert answer["solve"]["status"] == "proven_optimal"
        stated = answer["request"]["workloads"][0]["targets"]
        costly = {b["limit"] for b in answer["binding"]}
        free = [
            (metric, percentile)
            for metric in ("ttft_ms", "tpot_ms", "e2e_ms")
            for percentile in stated[metric]
            if f"targets.{metric}.{percentile}" not in costly
        ]
        assert free, "else this shows nothing"
        page.goto(f"/#/plan/{answer['id']}")
        names = " or ".join(
            f"{metric.split('_')[0].upper()} {percentile} to {stated[metric][percentile] * 1.2:,.4g} ms"
            for metric, percentile in free
        )
        expect(page.get_by_text(re.compile(re.escape(f"Loosening {names} saves nothing")))).to_be_visible()
        for metric, percentile in free:
            looser = json.loads(json.dumps(answer["request"]))
            looser["workloads"][0]["targets"][metric][percentile] *= 1.2
            other = httpx.post(f"{server.address}/v1/recommendations", json=looser, timeout=120).json()
            assert other["totals"]["usd_per_hour"] == answer["totals"]["usd_per_hour"]

    def test_the_first_view_says_that_it_shows_the_newest_plan(self, page: Page, plans: list[dict[str, Any]]) -> None:
        page.goto("/")
        expect(page.get_by_text("The newest plan stored here.")).to_be_visible()
        page.get_by_role("link", name="Start another").click()
        expect(page.get_by_role("button", name="Find the cheapest plan").first).to_be_visible()
        assert plans[0]["id"] not in page.url

    def test_an_opened_plan_fills_the_form_and_a_changed_target_is_planned(
        self, page: Page, plans: list[dict[str, Any]]
    ) -> None:
        page.goto(f"/#/plan/{plans[0]['id']}")
        expect(page.get_by_label("Requests per second")).to_have_value("60")
        page.get_by_label("Requests per second").fill("2")
        page.get_by_label("Requests per second").press("Enter")
        page.wait_for_url(re.compile("job_"))
        page.wait_for_url(re.compile("rec_"), timeout=PATIENCE_MS)
        expect(page.get_by_text("2 requests/s").first).to_be_visible()

    def test_a_refused_request_says_at_which_field(self, page: Page) -> None:
        page.goto("/#/plan/new?preset=chat")
        page.get_by_label("Language model").fill("llama-3.1-7b")
        page.get_by_role("button", name="Find the cheapest plan").first.click()
        expect(page.get_by_role("alert")).to_contain_text("llama-3.1-70b")
        expect(page.get_by_label("Language model")).to_have_attribute("aria-invalid", "true")
        expect(page.get_by_label("Language model")).to_be_focused()

    def test_a_job_is_followed_and_cancelled(self, page: Page, server: ServerProcess) -> None:
        page.goto("/#/plan/new?preset=chat&time=300")
        page.get_by_role("button", name="Find the cheapest plan").first.click()
        expect(page.get_by_text("Searching for the cheapest plan")).to_be_visible()
        page.get_by_role("button", name="Cancel").click()
        expect(page.get_by_text("Cancelled: nothing was stored")).to_be_visible(timeout=PATIENCE_MS)
        newest = httpx.get(f"{server.address}/v1/jobs", params={"limit": 1}).json()["items"][0]
        assert newest["state"] == "cancelled"
        page.goto("/#/jobs")
        expect(page.get_by_role("row", name=re.compile(newest["id"]))).to_contain_text("cancelled")


class TestAboutAPlan:
    def test_trade_offs_are_drawn_and_listed(self, page: Page, plans: list[dict[str, Any]]) -> None:
        page.goto(f"/#/plan/{plans[0]['id']}/pareto?against=targets.tpot_ms.p95")
        expect(page.get_by_role("img", name=re.compile("Cost against TPOT"))).to_be_visible(timeout=PATIENCE_MS)
        rows = page.get_by_role("region", name="Plans on the front").get_by_role("row")
        assert rows.count() >= 2

    def test_two_plans_side_by_side(self, page: Page, plans: list[dict[str, Any]]) -> None:
        page.goto(f"/#/compare?a={plans[0]['id']}&b={plans[1]['id']}")
        both = page.get_by_role("row", name=re.compile("^USD per hour"))
        expect(both).to_contain_text(money(plans[0]["totals"]["usd_per_hour"]))
        expect(both).to_contain_text(money(plans[1]["totals"]["usd_per_hour"]))

    def test_a_third_plan_beside_two(self, page: Page, plans: list[dict[str, Any]]) -> None:
        first, second = (plan["id"] for plan in plans)
        page.goto(f"/#/compare?a={first}&b={second}&c={first}")
        cells = page.get_by_role("row", name=re.compile("^USD per hour")).get_by_role("cell")
        expect(cells.last).to_contain_text(f"{money(plans[0]['totals']['usd_per_hour'])} (the same)")
        expect(page.get_by_role("heading", name="To go from the first to the third")).to_be_visible()
        page.get_by_label("Third", exact=True).select_option("")
        expect(page.get_by_role("columnheader", name="third")).to_have_count(0)
        assert "c=" not in page.url

    def test_what_the_scheduler_is_told_is_shown_of_a_line_and_side_by_side(
        self, page: Page, plans: list[dict[str, Any]]
    ) -> None:
        first, second = (f"steps ≤ {plan['plan'][0]['engine_settings']['max_batched_tokens']:,}," for plan in plans)
        seats = f"{plans[0]['plan'][0]['engine_settings']['max_sequences']:,} seats"
        page.goto(f"/#/plan/{plans[0]['id']}")
        expect(page.locator("article.line").first).to_contain_text(f"{first} {seats}")
        page.goto(f"/#/compare?a={plans[0]['id']}&b={plans[1]['id']}")
        row = page.get_by_role("row", name=re.compile("^scheduler"))
        expect(row).to_contain_text(first)
        expect(row).to_contain_text(second)

    def test_plans_to_compare_are_told_apart_by_what_was_asked(self, page: Page, plans: list[dict[str, Any]]) -> None:
        first, second = (plan["id"] for plan in plans)
        page.goto(f"/#/compare?a={first}&b={second}")
        targets = [plan["request"]["workloads"][0]["targets"]["tpot_ms"]["p95"] for plan in plans]
        for side, target in zip(("First", "Second"), targets, strict=True):
            expect(page.get_by_label(side, exact=True).locator("option:checked")).to_contain_text(
                f"TPOT p95 ≤ {target:g} ms"
            )
        expect(page.get_by_role("row", name=re.compile("^limited to"))).not_to_contain_text("1000")

    def test_what_it_costs_over_years(self, page: Page, plans: list[dict[str, Any]]) -> None:
        page.goto(f"/#/plan/{plans[0]['id']}/cost")
        expect(page.get_by_role("img", name=re.compile("Paid so far"))).to_be_visible(timeout=PATIENCE_MS)
        known = page.get_by_label("API: a known price of this model")
        expect(known.get_by_role("option").nth(1)).to_contain_text("in,")
        known.select_option(index=1)
        expect(page.get_by_label("API: USD per million output tokens")).not_to_have_value("")
        page.get_by_label("API: USD per million input tokens").fill("0.05")
        page.get_by_label("API: USD per million output tokens").fill("0.10")
        page.get_by_role("button", name="Compare", exact=True).click()
        rows = page.get_by_role("region", name=re.compile("^Alternatives")).get_by_role("row")
        expect(rows.filter(has_text="API")).to_have_count(1)
        expect(rows.filter(has_text="Rent on demand")).to_have_count(1)

    def test_a_price_that_no_seller_states_is_said_beside_the_choice(self, page: Page, server: ServerProcess) -> None:
        body = deepcopy(REQUEST) | {"limits": {"devices": ["b200-sxm"], "providers": ["nebius"]}, "alternatives": 0}
        made = httpx.post(f"{server.address}/v1/recommendations", json=body, timeout=120).json()
        page.goto(f"/#/plan/{made['id']}/cost")
        expect(page.locator(".rent")).to_contain_text("Commit for 3 years", timeout=PATIENCE_MS)
        expect(page.get_by_text("No seller states the price of Commit for 3 years")).to_be_visible()

    def test_a_name_neither_widens_the_page_nor_turns_a_line_round(self, page: Page, server: ServerProcess) -> None:
        """Names are whatever was sent: 120 letters without a gap, a mark that writes the rest from right to left."""
        for name in ("A" * 120, "chat \u202e"):
            body = deepcopy(REQUEST) | {"limits": {"devices": ["h100-sxm"], "providers": ["aws"]}, "alternatives": 0}
            body["workloads"][0]["name"] = name
            httpx.post(f"{server.address}/v1/recommendations", json=body, timeout=120).raise_for_status()
        page.set_viewport_size({"width": 390, "height": 800})
        page.goto("/#/cost")
        expect(page.get_by_role("link", name=re.compile("^A{120}"))).to_be_visible(timeout=PATIENCE_MS)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        turned = page.get_by_role("link", name=re.compile("^chat \u202e")).first
        link, line = turned.bounding_box(), turned.locator("xpath=..").bounding_box()
        assert link is not None
        assert line is not None
        assert link["x"] - line["x"] < 2, "what stands after it has not moved before it"
        price = turned.evaluate(
            "a => { const r = document.createRange(); r.selectNode(a.nextSibling); return r.getClientRects()[0].left; }"
        )
        assert price >= link["x"]

    def test_what_moves_the_cost_is_drawn_as_a_tornado(
        self, page: Page, server: ServerProcess, plans: list[dict[str, Any]]
    ) -> None:
        page.goto(f"/#/plan/{plans[0]['id']}/cost")
        page.get_by_role("link", name="Link to this comparison").click(timeout=PATIENCE_MS)
        stored = re.search(r"tco_\w+", page.url)
        assert stored is not None
        said = httpx.get(f"{server.address}/v1/tco/comparisons/{stored[0]}").json()
        cheapest = next(one for one in said["alternatives"] if one["name"] == said["cheapest"]["name"])
        picture = page.get_by_role("img", name=re.compile(f"^What moves {cheapest['name']}"))
        expect(picture).to_be_visible()
        widths = [
            float(width)
            for width in picture.locator("rect").evaluate_all("all => all.map(one => one.getAttribute('width'))")
        ]
        rows = cheapest["sensitivity"][:8]
        assert len(widths) == 2 * len(rows)
        spans = [widths[i] + widths[i + 1] for i in range(0, len(widths), 2)]
        assert spans == sorted(spans, reverse=True), "the largest effect is at the top"
        ratio = float(rows[0]["effect_usd"]) / float(rows[-1]["effect_usd"])
        assert spans[0] / spans[-1] == pytest.approx(ratio, rel=0.1), "bars are as long as their effects"
        expect(page.get_by_role("img", name=re.compile("^How sure that is"))).to_be_visible()

    def test_operators_stand_under_the_roof_of_their_device(self, page: Page, plans: list[dict[str, Any]]) -> None:
        page.goto(f"/#/plan/{plans[0]['id']}")
        page.get_by_role("link", name="Roofline").click()
        picture = page.get_by_role("img", name=re.compile(f"^Roofline of {plans[0]['plan'][0]['device']}"))
        expect(picture.first).to_be_visible(timeout=PATIENCE_MS)
        rows = page.get_by_role("region", name=re.compile("operators")).first.get_by_role("row")
        assert picture.first.locator("circle").count() == rows.count() - 1
        shares = [row.get_by_role("cell").last.inner_text() for row in rows.all()[1:]]
        assert all(0 < int(share.removesuffix(" %")) <= 100 for share in shares)

    def test_files_that_start_it(self, page: Page, plans: list[dict[str, Any]]) -> None:
        page.goto(f"/#/plan/{plans[0]['id']}/run")
        expect(page.locator("pre").first).to_contain_text("vllm serve")
        page.get_by_label("For", exact=True).select_option("kubernetes")
        expect(page.locator("pre").first).to_contain_text("apiVersion")

    def test_why_not_another_device(self, page: Page, plans: list[dict[str, Any]]) -> None:
        page.goto(f"/#/plan/{plans[0]['id']}/why")
        page.get_by_label("Device", exact=True).fill("a100-sxm-80")
        page.get_by_role("button", name="Why not this?").click()
        expect(page.locator(".verdict")).to_contain_text("a100-sxm-80", timeout=PATIENCE_MS)
        beside = page.get_by_role("region", name=re.compile("^Beside the plan"))
        with_it = beside.get_by_role("row", name=re.compile("a100-sxm-80")).last  # after alternatives that have it too
        expect(with_it.get_by_role("cell")).to_have_count(6)
        for cell in with_it.get_by_role("cell").all():
            assert cell.inner_text() not in {"", "–"}, "its price, machines, layout, worth and latencies"

    def test_the_curl_command_asks_the_same(
        self, browser: Browser, server: ServerProcess, plans: list[dict[str, Any]]
    ) -> None:
        context = browser.new_context(base_url=server.address, permissions=["clipboard-read", "clipboard-write"])
        page = context.new_page()
        page.goto(f"/#/plan/{plans[0]['id']}")
        page.get_by_role("button", name="Copy as curl: this request").click()
        expect(page.get_by_role("status")).to_contain_text("copied")
        copied = page.evaluate("navigator.clipboard.readText()")
        context.close()
        body = json.loads(copied[copied.index("-d '") + 4 : copied.rindex("'")])
        assert body == plans[0]["request"]
        assert f"{server.address}/v1/recommendations" in copied


class TestEstimates:
    def test_a_deployment_of_ones_own_without_json(self, page: Page, server: ServerProcess) -> None:
        page.goto("/#/estimate")
        page.get_by_label("Language model").fill("llama-3.1-8b")
        page.get_by_label("Device", exact=True).fill("h100-sxm")
        page.get_by_label("Tensor parallel").fill("1")
        page.get_by_label("Requests per second").fill("3")
        page.get_by_role("button", name="Estimate", exact=True).click()
        latencies = page.get_by_role("region", name="Latencies, ms")
        expect(latencies.get_by_role("row")).to_have_count(5, timeout=PATIENCE_MS)
        body = {
            "llm": "llama-3.1-8b", "device": "h100-sxm", "layout": {"tensor_parallel": 1}, "precision": {"weights": "fp8"},
            "traffic": {
                "prompt_tokens": {"distribution": "lognormal", "mean": 1200, "p95": 4000},
                "output_tokens": {"distribution": "lognormal", "mean": 300, "p95": 900},
            },
            "load": {"kind": "open", "requests_per_s": 3},
        }  # fmt: skip
        (one,) = httpx.post(f"{server.address}/v1/estimates", json={"estimates": [body]}).json()["estimates"]
        expect(latencies.get_by_role("row", name=re.compile("^TPOT"))).to_contain_text(
            f"{one['tpot_ms']['p95']['expected']:.3g}"
        )
        address = page.url
        page.goto("/#/glossary")
        page.goto(address)
        expect(page.get_by_label("Requests per second")).to_have_value("3")
        expect(latencies.get_by_role("row")).to_have_count(5, timeout=PATIENCE_MS)

    def test_what_does_not_fit_is_said_with_its_bytes(self, page: Page) -> None:
        page.goto("/#/estimate?llm=llama-3.1-70b&device=l40s&prompt_mean=1200&output_mean=300&rate=1")
        expect(page.get_by_role("heading", name="It does not fit")).to_be_visible(timeout=PATIENCE_MS)

    def test_a_refusal_stands_at_its_field(self, page: Page) -> None:
        page.goto("/#/estimate?llm=llama-3.1-8b&device=l40s&prompt_mean=1200&output_mean=300")
        expect(page.get_by_role("alert")).to_be_visible(timeout=PATIENCE_MS)
        expect(page.get_by_label("Requests per second")).to_have_attribute("aria-invalid", "true")

    def test_a_replica_of_a_plan_is_taken_over(self, page: Page, plans: list[dict[str, Any]]) -> None:
        page.goto(f"/#/plan/{plans[0]['id']}")
        page.get_by_role("link", name="Estimate this replica").first.click()
        expect(page.get_by_label("Device", exact=True)).to_have_value(plans[0]["plan"][0]["device"])
        expect(page.get_by_role("region", name="Latencies, ms")).to_be_visible(timeout=PATIENCE_MS)


class TestFleets:
    def test_the_workload_of_a_plan_is_planned_over_time(
        self, page: Page, server: ServerProcess, plans: list[dict[str, Any]]
    ) -> None:
        page.goto(f"/#/plan/{plans[0]['id']}/cost")
        page.get_by_role("link", name="plan a fleet over time").click()
        page.get_by_label("Months").fill("12")
        page.get_by_label("Other hours, % of the peak").fill("25")
        page.get_by_role("button", name="Find the cheapest fleet").click()
        page.wait_for_url(re.compile("fleet_"), timeout=3 * PATIENCE_MS)
        stored = re.search(r"fleet_\w+", page.url)
        assert stored is not None
        answer = httpx.get(f"{server.address}/v1/fleets/{stored[0]}").json()
        demand = answer["request"]["workloads"][0]["demand"]
        assert demand["weekday_requests_per_s"][7:9] == [15.0, 60.0]
        assert demand["weekend_requests_per_s"][12] == 30.0
        assert answer["request"]["limits"]["devices"] == REQUEST["limits"]["devices"]
        expect(page.locator(".price")).to_contain_text(f"${float(answer['totals']['usd']):,.0f}")

    def test_ways_of_running_a_workload_are_told_apart_by_their_steps(self, page: Page, fleet: dict[str, Any]) -> None:
        page.goto(f"/#/fleets/{fleet['id']}")
        rows = page.get_by_role("region", name="Ways of running the workloads").get_by_role("row")
        expect(rows).to_have_count(1 + len(fleet["deployments"]))
        for one in fleet["deployments"]:
            steps = f"{one['engine']}, steps ≤ {one['max_batched_tokens']:,}"
            expect(rows.filter(has_text=one["device"]).filter(has_text=steps)).not_to_have_count(0)

    def test_stacks_are_as_high_as_the_nodes_in_use(self, page: Page, fleet: dict[str, Any]) -> None:
        page.goto(f"/#/fleets/{fleet['id']}?month=3")
        expect(page.get_by_label("Month", exact=True)).to_have_value("3")
        picture = page.get_by_role("img", name=re.compile("^A week of month 4"))
        expect(picture).to_be_visible()
        runs = [position for position, _ in groupby(fleet["calendar"][3])]
        assert len(runs) > 1
        in_use = [sum(n["nodes"] for n in fleet["periods"][position]["nodes"]) for position in runs]
        heights = picture.locator("g").evaluate_all(
            "all => all.map(g => [...g.querySelectorAll('rect')].reduce((sum, one) => sum + Number(one.getAttribute('height')), 0))"
        )
        assert len(heights) == len(runs)
        assert [height / max(heights) for height in heights] == pytest.approx([n / max(in_use) for n in in_use])
        first = fleet["periods"][runs[0]]
        expect(picture.locator("g title").first).to_contain_text("Monday 00:00 to ")
        expect(picture.locator("g title").first).to_contain_text(
            f"{sum(first['requests_per_s'].values()):.3g} requests/s"
        )
        page.get_by_label("Month", exact=True).select_option("11")
        expect(page.get_by_role("img", name=re.compile("^A week of month 12"))).to_be_visible()
        assert page.url.endswith("month=11")
        expect(page.get_by_role("region", name=re.compile("^Nodes by the hour"))).to_have_count(
            1 if fleet["operation"]["stock"] else 0
        )


class TestBenchmarks:
    def run_of(self, server: ServerProcess) -> dict[str, Any]:
        """A run that a device nobody measured would have, a fifth slower than predicted."""
        llm, device, clients, prompt, output = "llama-3.2-3b", "a100-sxm-80", 8, 512, 128
        asked = {
            "llm": llm,
            "device": device,
            "traffic": {
                "prompt_tokens": {"distribution": "fixed", "tokens": prompt},
                "output_tokens": {"distribution": "fixed", "tokens": output},
            },
            "load": {"kind": "closed", "concurrency": clients, "requests": 200},
        }
        answer = httpx.post(f"{server.address}/v1/estimates", json={"estimates": [asked]}, timeout=60).json()
        predicted = answer["estimates"][0]
        ttft, tpot = (1.2 * predicted[name]["mean"]["expected"] for name in ("ttft_ms", "tpot_ms"))
        e2e = ttft + tpot * (output - 1)
        return {
            "context": {"device": device, "devices": 1, "llm": llm, "engine": {"name": "vllm", "version": "0.24.0"},
                        "precision": {"weights": "bf16", "kv_cache": "bf16"}},
            "load": asked["load"],
            "traffic": asked["traffic"],
            "results": {
                "completed": 200, "failed": 0, "ttft_ms": {"mean": ttft}, "tpot_ms": {"mean": tpot},
                "e2e_ms": {"mean": e2e}, "output_tokens_per_s": 1000 * clients * output / e2e,
            },
        }  # fmt: skip

    def test_a_dropped_file_moves_the_prediction(self, page: Page, server: ServerProcess) -> None:
        page.goto("/#/benchmarks")
        expect(page.get_by_text("Drop a benchmark file here")).to_be_visible()
        dropped = page.evaluate_handle(
            """text => {
                const data = new DataTransfer();
                data.items.add(new File([text], "run.json", { type: "application/json" }));
                return data;
            }""",
            json.dumps(self.run_of(server)),
        )
        page.dispatch_event(".drop", "drop", {"dataTransfer": dropped})
        expect(page.get_by_role("heading", name="run.json: accepted")).to_be_visible(timeout=PATIENCE_MS)
        expect(page.get_by_text("Predictions now use correction set")).to_be_visible()
        row = page.get_by_role("region", name="Measured against predicted").get_by_role("row", name=re.compile("TPOT"))
        cells = row.get_by_role("cell").all_inner_texts()
        before, now = (float(text.split(" (")[0].replace(",", "")) for text in cells[1:3])
        assert now > before * 1.02

    def test_what_a_file_does_not_say_is_asked_for(self, page: Page) -> None:
        page.goto("/#/benchmarks")
        path = "tests/fixtures/benchmarks/vllm_bench_serve.json"
        page.get_by_label("Benchmark file").set_input_files(path)
        expect(page.locator(".problem")).to_contain_text("device")

    def test_a_tools_file_shows_what_was_predicted_before_and_now(self, page: Page) -> None:
        page.goto("/#/benchmarks")
        page.get_by_label("Device").fill("h200-sxm")
        page.get_by_label("Model").fill("qwen2.5-7b")
        page.get_by_label("Weights").select_option("bf16")
        page.get_by_label("Benchmark file").set_input_files(
            "tests/fixtures/benchmarks/vllm_bench_serve_h200_closed.json"
        )
        row = page.get_by_role("region", name="Measured against predicted").get_by_role("row", name=re.compile("TTFT"))
        expect(row).to_be_visible(timeout=PATIENCE_MS)
        measured, before, now = row.get_by_role("cell").all_inner_texts()
        assert measured == "232 ms"
        assert before.endswith(" ms")
        assert before != now


class TestTokens:
    @pytest.fixture
    def guarded(
        self, server: ServerProcess, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> Any:
        """The same service while a token is configured; afterwards it is revoked."""
        monkeypatch.setenv("CLUSTERWRIGHT_DATABASE_URL", server.environment["CLUSTERWRIGHT_DATABASE_URL"])
        assert main(["token", "create", "reader", "--role", "reader"]) == 0
        said = capsys.readouterr()
        yield said.out.strip()
        token_id = re.search(r"token (\S+) with", said.err)
        assert token_id is not None
        assert main(["token", "revoke", token_id[1]]) == 0

    def test_a_token_is_asked_for_used_and_not_kept(self, context: BrowserContext, guarded: str) -> None:
        page = context.new_page()
        page.goto("/#/catalog/devices")
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("needs a token")
        dialog.get_by_label("Token").fill("wrong")
        dialog.get_by_role("button", name="Use it").click()
        expect(dialog).to_contain_text("not accepted")
        dialog.get_by_label("Token").fill(guarded)
        dialog.get_by_role("button", name="Use it").click()
        expect(page.get_by_role("link", name="h100-sxm", exact=True)).to_be_visible()
        assert page.evaluate("JSON.stringify(localStorage)").find(guarded) == -1
        assert context.cookies() == []
        other = context.new_page()
        other.goto("/#/catalog/devices")
        expect(other.get_by_role("dialog")).to_be_visible()


class TestNoPlan:
    def test_what_stands_in_the_way_is_said_and_what_would_do_is_planned(
        self, page: Page, server: ServerProcess
    ) -> None:
        body = deepcopy(REQUEST)
        body["workloads"][0]["targets"] = {"ttft_ms": {"p95": 2}, "tpot_ms": {"p95": 1}}
        answer = httpx.post(f"{server.address}/v1/recommendations", json=body, timeout=120).json()
        assert answer["outcome"] == "infeasible"
        page.goto(f"/#/plan/{answer['id']}")
        expect(page.get_by_text("No plan exists")).to_be_visible()
        expect(page.get_by_role("heading", name="In conflict")).to_be_visible()
        expect(page.get_by_text("workloads chat")).to_have_count(0)
        page.get_by_role("button", name=re.compile("^relax to")).first.click()
        expect(page.get_by_text("Proven cheapest")).to_be_visible(timeout=PATIENCE_MS)


def test_every_measured_run_is_drawn_against_its_prediction(page: Page) -> None:
    page.goto("/#/accuracy")
    page.get_by_role("button", name="Draw every run").click()
    drawn = page.get_by_role("img", name=re.compile("Predicted against measured: mean TTFT"))
    expect(drawn).to_be_visible(timeout=3 * PATIENCE_MS)
    assert drawn.locator("circle").count() > 100
    page.get_by_label("Metric", exact=True).select_option(label="mean TPOT, ms")
    expect(page.get_by_role("img", name=re.compile("Predicted against measured: mean TPOT"))).to_be_visible()
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = false; })")
    assert Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"] == []
