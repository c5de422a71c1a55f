"""Sessions, adapters and images in the page's forms and in what it shows of plans and estimates."""

import json
import re
from typing import Any

import httpx
from playwright.sync_api import Page, Request, expect

from tests.bench.server_process import ServerProcess
from tests.browser.conftest import PATIENCE_MS

SESSIONS = {"Turns of a session": "5", "Turns p95": "9", "User tokens a turn": "120", "User tokens p95": "400",
            "Think time, s": "30", "System prompt": "1500"}  # fmt: skip
SMALL = "preset=chat&devices=h100-sxm&providers=verda&llm=llama-3.1-8b&rate=20"


def fill(page: Page, fields: dict[str, str]) -> None:
    page.get_by_text("Sessions, adapters, images, hidden tokens").click()
    for label, value in fields.items():
        page.get_by_label(label, exact=True).fill(value)


def fact(page: Page, name: str) -> Any:
    return page.locator("dl.facts > div").filter(has=page.get_by_text(name, exact=True)).locator("dd").first


def estimated(page: Page) -> dict[str, Any]:
    """The estimate that is asked for once the form is sent; the answer to what the page asked before may come after that is."""
    with page.expect_request("**/v1/estimates", timeout=PATIENCE_MS) as sent:
        page.get_by_role("button", name="Estimate", exact=True).click()
    answer = sent.value.response()
    assert answer is not None
    (one,) = answer.json()["estimates"]
    assert one["outcome"] == "estimated", one
    found: dict[str, Any] = one
    return found


def test_sessions_are_planned_and_what_is_found_is_shown(page: Page, server: ServerProcess) -> None:
    page.goto(f"/#/plan/new?{SMALL}")
    fill(page, SESSIONS)
    expect(page.get_by_label("Prompt mean")).to_be_disabled()
    page.get_by_role("button", name="Find the cheapest plan").first.click()
    page.wait_for_url(re.compile("rec_"), timeout=3 * PATIENCE_MS)
    stored = re.search(r"rec_\w+", page.url)
    assert stored is not None
    answer = httpx.get(f"{server.address}/v1/recommendations/{stored[0]}").json()
    asked = answer["request"]["workloads"][0]["traffic"]
    assert asked["prompt_tokens"] is None
    assert asked["sessions"] | {
        "turns": {"distribution": "lognormal", "mean": 5.0, "p95": 9.0}, "think_time_s": 30.0,
        "user_tokens": {"distribution": "lognormal", "mean": 120.0, "p95": 400.0},
        "system_prompt_tokens": 1500, "routing": "sticky", "replicas": None,
    } == asked["sessions"]  # fmt: skip
    found = answer["plan"][0]["predicted"]
    assert found["prefix_hit_fraction"] > 0.1
    expect(fact(page, "prompts found in the cache")).to_have_text(f"{100 * found['prefix_hit_fraction']:.1f} %")
    expect(fact(page, "turns of a session go to")).to_have_text("one replica")
    expect(page.get_by_label("Think time, s")).to_have_value("30")
    expect(page.get_by_label("Prompt mean")).to_have_value("")
    page.get_by_text("Memory of a device, time of a step").first.click()
    expect(page.get_by_role("heading", name="Memory of the fullest device")).to_be_visible(timeout=PATIENCE_MS)
    page.get_by_role("link", name="Estimate this replica").first.click()
    expect(fact(page, "prompts found in the cache")).to_be_visible(timeout=PATIENCE_MS)


def test_turns_that_are_spread_are_estimated(page: Page) -> None:
    with page.expect_response(
        "**/v1/estimates", timeout=PATIENCE_MS
    ):  # an address that states a load is answered at once
        page.goto("/#/estimate?llm=llama-3.1-8b&device=h100-sxm&turns=5&user_mean=120&think=30&output_mean=300&rate=4")
    page.get_by_label("Turns go to").select_option("random")
    page.get_by_label("Among replicas").fill("3")
    found = estimated(page)
    assert found["routed_over"] == 3
    expect(fact(page, "turns of a session go to")).to_have_text("3 replicas")
    expect(fact(page, "prompts found in the cache")).to_have_text(f"{100 * found['prefix_hit_fraction']:.1f} %")


def sent_json(request: Request) -> dict[str, Any]:
    """The body that the page sent."""
    found: dict[str, Any] = json.loads(request.post_data or "{}")
    return found


def test_documents_and_host_memory_are_asked_for(page: Page) -> None:
    page.goto(f"/#/plan/new?{SMALL}")
    fill(page, SESSIONS | {"Different system prompts": "20", "Document": "4000", "Different documents": "300",
                           "Host memory for caches, GiB": "64", "Disk under it, GiB": "500", "Read at, GB/s": "2.5"})  # fmt: skip
    with page.expect_request("**/v1/recommendations", timeout=PATIENCE_MS) as sent:
        page.get_by_role("button", name="Find the cheapest plan").first.click()
    workload = sent_json(sent.value)["workloads"][0]
    asked = {"system_prompts": 20, "document_tokens": 4000, "documents": 300}
    assert workload["traffic"]["sessions"] | asked == workload["traffic"]["sessions"]
    assert workload["host_cache_gib"] == 64
    assert (workload["disk_cache_gib"], workload["disk_read_gbytes_per_s"]) == (500, 2.5)


def test_host_memory_of_an_address_is_estimated(page: Page) -> None:
    with page.expect_request("**/v1/estimates", timeout=PATIENCE_MS) as sent:
        page.goto(
            "/#/estimate?llm=llama-3.1-8b&device=h100-sxm&turns=5&user_mean=120&think=30&output_mean=300&rate=4"
            "&document=2000&documents=40&host=32"
        )
    (one,) = sent_json(sent.value)["estimates"]
    assert one["engine"] == {"host_cache_gib": 32}
    assert one["traffic"]["sessions"]["documents"] == 40


def test_a_session_half_stated_is_refused_at_its_field(page: Page) -> None:
    page.goto(f"/#/plan/new?{SMALL}")
    fill(page, {name: value for name, value in SESSIONS.items() if name != "Think time, s"})
    page.get_by_role("button", name="Find the cheapest plan").first.click()
    expect(page.get_by_label("Think time, s")).to_have_attribute("aria-invalid", "true")


def test_adapters_of_an_estimate_are_asked_for_and_shown(page: Page) -> None:
    page.goto("/#/estimate?rate=1")
    page.get_by_label("Language model").fill("llama-3.1-8b")
    page.get_by_label("Device", exact=True).fill("h100-sxm")
    page.get_by_label("Tensor parallel").fill("1")
    page.get_by_label("Weights in").select_option("")
    fill(page, {"Adapters": "32", "Rank": "32", "Adapters on a device": "8"})
    held = estimated(page)["adapters"]
    assert (held["slots"], held["rank"]) == (8, 32)
    expect(fact(page, "adapters on a device")).to_contain_text("8 of rank 32")
    expect(fact(page, "found on the device")).to_have_text(f"{100 * held['resident_fraction']:.0f} %")
    assert "adapters=32" in page.url


def test_images_of_an_estimate_are_asked_for_and_shown(page: Page) -> None:
    page.goto("/#/estimate")
    page.get_by_label("Language model").fill("qwen3-vl-8b")
    page.get_by_label("Device", exact=True).fill("h100-sxm")
    page.get_by_label("Tensor parallel").fill("1")
    page.get_by_label("Weights in").select_option("")
    fill(page, {"Images a request": "2", "Width, pixels": "1024", "Height, pixels": "768"})
    images = estimated(page)["images"]
    expect(fact(page, "an image, video or recording is")).to_contain_text(f"{images['tokens_each']:,} tokens")
    page.get_by_label("Height, pixels", exact=True).fill("")
    page.get_by_role("button", name="Estimate", exact=True).click()
    expect(page.get_by_label("Height, pixels", exact=True)).to_have_attribute(
        "aria-invalid", "true", timeout=PATIENCE_MS
    )


def test_items_sent_as_token_ids_are_asked_for(page: Page) -> None:
    page.goto("/#/estimate?llm=qwen3-embedding-0.6b&device=h100-sxm&prompt_mean=512&output_mean=1&rate=20")
    page.get_by_label("Tensor parallel").fill("1")
    texts = estimated(page)["ttft_ms"]["mean"]["expected"]
    fill(page, {"Items sent as token ids": "1"})
    with page.expect_request("**/v1/estimates", timeout=PATIENCE_MS) as sent:
        ids = estimated(page)["ttft_ms"]["mean"]["expected"]
    (one,) = sent_json(sent.value)["estimates"]
    assert one["traffic"]["token_ids_fraction"] == 1
    assert ids > texts + 7, "512 of them, 16 us each"
    assert "ids=1" in page.url


def test_a_model_that_replies_takes_no_items(page: Page) -> None:
    page.goto(f"/#/plan/new?{SMALL}")
    fill(page, {"Items sent as token ids": "1"})
    page.get_by_role("button", name="Find the cheapest plan").first.click()
    expect(page.get_by_label("Items sent as token ids")).to_have_attribute("aria-invalid", "true")


BROUGHT: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "qwen3-vl-8b": (
        {"Video, s": "10.5", "Frames a second": "2", "Video width, pixels": "640", "Video height, pixels": "480"},
        {"video": {"per_request": 1, "seconds": 10.5, "frames_per_s": 2, "width_px": 640, "height_px": 480}},
    ),
    "voxtral-mini-3b": ({"Recording, s": "45", "Recordings a request": "2"}, {"audio": {"per_request": 2, "seconds": 45}}),
    "llama-3.1-8b": (
        {"Hidden tokens mean": "800", "Hidden tokens p95": "2400", "Replies held to a grammar": "0.5", "Already in the cache": "0.25"},
        {"thinking_tokens": {"distribution": "lognormal", "mean": 800, "p95": 2400}, "structured_fraction": 0.5,
         "shared_prefix_fraction": 0.25},
    ),
}  # fmt: skip


def test_videos_recordings_hidden_tokens_and_grammars_are_asked_for(page: Page) -> None:
    for llm, (fields, stated) in BROUGHT.items():
        page.goto("/#/jobs")
        page.goto(f"/#/estimate?llm={llm}&device=h100-sxm&prompt_mean=300&output_mean=50&rate=0.5")
        fill(page, fields)
        with page.expect_request("**/v1/estimates", timeout=PATIENCE_MS) as sent:
            found = estimated(page)
        (one,) = sent_json(sent.value)["estimates"]
        assert one["traffic"] | stated == one["traffic"]
        if llm == "llama-3.1-8b":
            expect(page.get_by_role("rowheader", name="first answer")).to_be_visible()
        else:
            expect(fact(page, "an image, video or recording is")).to_contain_text(
                f"{found['images']['tokens_each']:,} tokens"
            )


def test_a_plan_keeps_hidden_tokens_and_their_target(page: Page, server: ServerProcess) -> None:
    page.goto(f"/#/plan/new?{SMALL}")
    page.get_by_label("First answer p95, ms").fill("500")
    page.get_by_role("button", name="Find the cheapest plan").first.click()
    expect(page.get_by_label("First answer p95, ms")).to_have_attribute("aria-invalid", "true", timeout=PATIENCE_MS)
    page.get_by_label("First answer p95, ms").fill("60000")
    fill(page, {"Hidden tokens mean": "200"})
    page.get_by_role("button", name="Find the cheapest plan").first.click()
    page.wait_for_url(re.compile("rec_"), timeout=3 * PATIENCE_MS)
    stored = re.search(r"rec_\w+", page.url)
    assert stored is not None
    workload = httpx.get(f"{server.address}/v1/recommendations/{stored[0]}").json()["request"]["workloads"][0]
    assert workload["traffic"]["thinking_tokens"] == {"distribution": "fixed", "tokens": 200}
    assert workload["targets"]["ttfat_ms"] == {"p95": 60_000}
    expect(page.get_by_label("Hidden tokens mean")).to_have_value("200")
    expect(page.get_by_label("First answer p95, ms")).to_have_value("60000")
