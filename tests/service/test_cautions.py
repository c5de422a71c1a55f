"""What a buyer should know before signing, of lines made by hand."""

import copy
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from catalog.read import read_catalog
from service.recommendations.cautions import cautions
from service.recommendations.from_rows import llm_from_row
from service.wire.plan_lines import LineSourceOut, PlanLineOut
from service.wire.recommendations import RecommendationIn
from tests.service.bodies import RECOMMENDATION
from tests.service.deployments.plans import AWS, line


def about(
    plan: list[PlanLineOut], offers: Sequence[Any] = (), stated: dict[str, Any] | None = None
) -> list[tuple[str, str]]:
    body = copy.deepcopy(RECOMMENDATION)
    body["workloads"][0] |= stated or {}
    asked = RecommendationIn.model_validate(body)
    shapes = {w.llm: llm_from_row(read_catalog().llms[w.llm].model_dump(mode="json")) for w in asked.workloads}
    named = [one.model_copy(update={"workload": asked.workloads[0].name}) for one in plan]
    return [(caution.about, caution.detail) for caution in cautions(asked, named, offers, {}, shapes)]


def test_a_capacity_block_is_no_month_of_rent() -> None:
    block = line("chat", AWS).model_copy(update={"commitment": "capacity_block"})
    found = dict(about([block]))
    assert "paid in advance" in found["capacity_block"]
    assert "capacity_block" not in dict(about([line("chat", AWS)]))


def test_spot_machines_may_be_taken_back_and_that_is_said_first() -> None:
    spot = line("chat", AWS).model_copy(update={"commitment": "spot", "nodes": 3})
    found = about([spot, spot, line("chat", AWS)])
    assert [kind for kind, _ in found].count("spot") == 1
    kind, detail = found[0]
    assert kind == "spot"
    assert "these 6 machines back at any time" in detail, "three of each layout"
    assert "spot" not in dict(about([line("chat", AWS)]))


def test_of_spot_machines_it_says_what_they_cost_where_they_are_kept() -> None:
    spot = line("chat", AWS).model_copy(update={"commitment": "spot", "nodes": 1})
    kept = SimpleNamespace(
        id="kept", provider=spot.provider, region=spot.region, node=SimpleNamespace(id=spot.node), commitment="on_demand",
        usd_per_hour=12.5,
    )  # fmt: skip
    assert "this machine back" in dict(about([spot], [kept]))["spot"]
    assert "on demand each is 12.50 USD an hour" in dict(about([spot], [kept]))["spot"]
    elsewhere = SimpleNamespace(**(vars(kept) | {"region": "elsewhere"}))
    assert "on demand" not in dict(about([spot], [elsewhere]))["spot"]


def test_of_several_lines_it_says_which_may_miss_a_target() -> None:
    wide = {"expected": 40.0, "low": 10.0, "high": 9_000.0}
    every = {
        f"{metric}_ms": dict.fromkeys(("mean", "p50", "p90", "p95", "p99"), wide)
        for metric in ("ttft", "tpot", "e2e", "itl")
    }
    tight = line("chat", AWS, predicted=every | {"output_tokens_per_s": wide, "power_w": None})
    said = [detail for kind, detail in about([tight, tight]) if kind == "interval_crosses_target"]
    assert said
    assert all(f"on {tight.node}" in detail for detail in said)
    assert not any(tight.node in detail for kind, detail in about([tight]) if kind == "interval_crosses_target")


def test_a_device_that_nobody_measured_is_said_to_be_one() -> None:
    chat = line("chat", AWS)
    for basis, words in (("analytical", "not seen on it"), ("borrowed", "sibling")):
        unmeasured = chat.model_copy(update={"basis": basis})
        said = [detail for kind, detail in about([unmeasured, unmeasured]) if kind == "unmeasured"]
        assert len(said) == 1, "once for a device"
        assert words in said[0]
        assert chat.device in said[0]
    for basis in ("measured", "corrected"):
        assert "unmeasured" not in dict(about([chat.model_copy(update={"basis": basis})]))


def test_a_device_that_was_measured_without_adapters_is_not_said_never_to_have_been() -> None:
    borrowed = line("chat", AWS).model_copy(update={"basis": "borrowed"})
    said = dict(about([borrowed], stated={"adapters": {"count": 2, "rank": 16}}))["unmeasured"]
    assert "with adapters is behind this" in said
    assert "has been measured" not in said
    assert "has been measured" in dict(about([borrowed]))["unmeasured"]


def test_several_processes_need_processors_that_not_every_seller_states() -> None:
    """Four a copy of attention that answer, one that schedules, one a device: 6 of each of eight replicas on one device."""

    def offers(processors: float) -> list[Any]:
        return [SimpleNamespace(id=AWS, commitment="spot", node=SimpleNamespace(devices=8, host_processors=processors))]

    several, one = (line("chat", AWS, engine_settings={"api_servers": n}) for n in (4, 1))
    said = [detail for kind, detail in about([several, several], offers(0.0)) if kind == "front_end"]
    assert len(said) == 1, "once for a machine"
    assert "answers from 4 processes" in said[0]
    assert " 48 on " in said[0]
    assert "front_end" not in dict(about([several], offers(192.0)))
    assert "front_end" not in dict(about([one], offers(0.0)))
    behind = several.model_copy(update={"basis": "borrowed"})
    assert "with several processes that answer is behind this" in dict(about([behind], offers(192.0)))["unmeasured"]


def test_spot_machines_of_all_layouts_are_counted() -> None:
    spot = line("chat", AWS).model_copy(update={"commitment": "spot"})
    two, one = (spot.model_copy(update={"nodes": nodes}) for nodes in (2, 1))
    assert "these 3 machines" in dict(about([two, one]))["spot"]


def test_what_holds_of_an_offer_is_said_once_of_all_its_layouts() -> None:
    chat = line("chat", AWS)
    old = LineSourceOut(
        provider_class=None, device_class=None, named_place=True, price_confidence="high", price_age_days=308, ask_for_quote=True, own=False
    )  # fmt: skip
    for update in ({"source": old}, {"commitment": "spot"}, {"commitment": "capacity_block"}):
        one = chat.model_copy(update=update)
        other = one.model_copy(update={"offer": f"{one.offer}:elsewhere"})
        (kind,) = {kind for kind, _ in about([one])} - {kind for kind, _ in about([chat])}
        assert [said for said, _ in about([one, one])].count(kind) == 1
        assert [said for said, _ in about([one, other])].count(kind) == 2, "two offers are asked about twice"
