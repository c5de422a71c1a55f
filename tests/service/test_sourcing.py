"""The buying policy over HTTP: what plans may be bought from by default, what it costs, and how it is relaxed."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.service.bodies import changed

BODY: dict[str, Any] = {
    "workloads": [
        {
            "name": "chat",
            "llm": "llama-3.1-8b",
            "context_tokens": 8192,
            "traffic": {
                "requests_per_s": 30.0,
                "prompt_tokens": {"distribution": "uniform", "low": 400, "high": 800},
                "output_tokens": {"distribution": "uniform", "low": 100, "high": 200},
            },
            "targets": {"ttft_ms": {"p95": 1000}, "tpot_ms": {"p95": 40}, "confidence_percent": 50},
        }
    ],
    "alternatives": 0,
    "time_limit_s": 30,
}


@pytest.fixture(autouse=True)
def nothing_left_behind(client: TestClient) -> Iterator[None]:
    """Tests of a file share a database where it is PostgreSQL: what one adds is withdrawn."""
    yield
    for offer in client.get("/v1/offers", params={"origin": "user", "limit": 100}).json()["items"]:
        gone = {"usd_per_hour": None, "valid_from": "2026-01-01T00:00:00Z", "source": "withdrawn", "correction": True}
        client.post(f"/v1/offers/{offer['id']}/prices", json=gone)


def answered(client: TestClient, body: dict[str, Any]) -> dict[str, Any]:
    response = client.post("/v1/recommendations", json=body, headers={"Prefer": "wait=60"})
    assert response.status_code in (200, 201), response.text
    found: dict[str, Any] = response.json()
    return found


def usd(answer: dict[str, Any]) -> Decimal:
    return Decimal(answer["totals"]["usd_per_hour"])


def test_default_plans_name_their_place_and_come_from_one_seller(client: TestClient) -> None:
    plan = answered(client, BODY)["plan"]
    assert {(line["provider"], line["region"]) for line in plan} == {(plan[0]["provider"], plan[0]["region"])}
    for line in plan:
        source = line["source"]
        assert source["named_place"]
        assert source["provider_class"] in ("hyperscaler", "specialist")
        assert source["device_class"] == "datacentre"
        assert source["price_confidence"] in ("high", "medium")
        assert source["price_age_days"] >= 0


def test_what_the_policy_costs_is_the_difference_of_two_plans(client: TestClient) -> None:
    kept = answered(client, BODY)
    free = answered(client, changed(BODY, "limits", {"sourcing": "any"}))
    assert free["sourcing"] == []
    whole = kept["sourcing"][0]
    assert whole["rule"] is None
    assert Decimal(whole["saves_usd_per_hour"]) == usd(kept) - usd(free) > 0
    assert Decimal(whole["usd_per_hour"]) == usd(free)
    for change in kept["sourcing"][1:]:
        name = change["rule"].removeprefix("limits.sourcing.")
        lifted = answered(
            client, changed(BODY, "limits", {"sourcing": {name: None if name != "named_place" else False}})
        )
        assert Decimal(change["saves_usd_per_hour"]) == usd(kept) - usd(lifted), change["rule"]


def test_one_place_costs_as_much_as_the_best_of_all_places_alone(client: TestClient) -> None:
    """The reference: every region that any offer of the policy names, planned for on its own."""
    body = changed(BODY, "limits", {"devices": ["b200-sxm", "l40s"]})
    kept = answered(client, body)
    places = {
        (one["provider"], one["region"])
        for device in body["limits"]["devices"]
        for one in client.get("/v1/offers", params={"device": device, "commitment": "on_demand", "limit": 500}).json()[
            "items"
        ]
        if one["named_place"] and one["provider_class"] != "marketplace"
    }
    assert len(places) > 5
    prices = []
    for provider, region in sorted(places):
        alone = changed(changed(body, "limits/providers", [provider]), "limits/regions", [region])
        found = answered(client, alone)
        prices += [usd(found)] if found["plan"] else []
    assert usd(kept) == min(prices)


def test_who_names_a_marketplace_or_a_card_means_it(client: TestClient) -> None:
    body = changed(
        BODY,
        "limits",
        {
            "providers": ["vast"],
            "devices": ["rtx-5090"],
            "sourcing": {"named_place": False, "min_price_confidence": None},
        },
    )
    plan = answered(client, body)["plan"]
    assert {line["source"]["provider_class"] for line in plan} == {"marketplace"}
    assert {line["source"]["device_class"] for line in plan} == {"consumer"}


def test_a_policy_that_nothing_meets_names_the_rule_and_the_cheapest_way_out(client: TestClient) -> None:
    body = changed(BODY, "limits", {"providers": ["vast"], "sourcing": {"max_providers": None, "max_regions": None}})
    refused = answered(client, body)
    assert refused["outcome"] == "infeasible"
    ways = {one["limit"]: one for one in refused["relaxations"]}
    assert any(name.startswith("limits.sourcing") for name in ways)
    cheapest = min((one for one in ways.values() if one["usd_per_hour"]), key=lambda one: Decimal(one["usd_per_hour"]))
    name = cheapest["limit"].removeprefix("limits.sourcing.")
    relaxed = (
        changed(body, "limits/sourcing", "any")
        if cheapest["limit"] == "limits.sourcing"
        else changed(body, f"limits/sourcing/{name}", False if name == "named_place" else None)
    )
    assert usd(answered(client, relaxed)) == pytest.approx(Decimal(cheapest["usd_per_hour"]), rel=Decimal("0.01"))


def test_the_users_own_machines_pass_every_rule(client: TestClient) -> None:
    own = {
        "provider": "us", "instance": "desk", "region": "marketplace", "commitment": "on_demand", "node": "runpod-rtx-5090",
        "price": {"usd_per_hour": "0.010000", "valid_from": "2026-01-01T00:00:00Z", "source": "ours", "confidence": "low"},
    }  # fmt: skip
    node = client.get("/v1/offers", params={"device": "rtx-5090", "limit": 1}).json()["items"][0]["node"]
    made = client.post("/v1/offers", json=own | {"node": node})
    assert made.status_code == 201, made.text
    plan = answered(client, changed(BODY, "workloads/0/traffic/requests_per_s", 1.0))["plan"]
    assert [line["provider"] for line in plan] == ["us"]
    assert plan[0]["source"]["price_age_days"] is None


def test_old_prices_ask_for_a_quote(client: TestClient) -> None:
    strict = answered(client, changed(BODY, "limits", {"sourcing": {"max_price_age_days": 0}}))
    assert all(line["source"]["ask_for_quote"] for line in strict["plan"])
    assert {c["about"] for c in strict["cautions"]} >= {"old_price"}
    open_ = answered(client, changed(BODY, "limits", {"sourcing": {"max_price_age_days": None}}))
    assert not any(line["source"]["ask_for_quote"] for line in open_["plan"])


def test_one_replica_is_called_an_outage_unless_spares_are_kept(client: TestClient) -> None:
    small = changed(BODY, "workloads/0/traffic/requests_per_s", 1.0)
    single = answered(client, small)
    assert sum(line["replicas"] for line in single["plan"]) == 1
    assert [c["about"] for c in single["cautions"] if c["about"] != "unmeasured" and "node" in c["detail"]] == [
        "one_replica"
    ]
    spared = answered(client, changed(small, "limits", {"spare_nodes": 1}))
    assert not {c["about"] for c in spared["cautions"]} & {"one_replica", "one_node", "no_spare"}


def test_fewer_bits_are_offered_and_not_taken(client: TestClient) -> None:
    native = answered(client, BODY)
    assert {(line["precision"]["weights"], line["precision"]["kv_cache"]) for line in native["plan"]} == {
        ("bf16", "bf16")
    }
    both = {"weights": ["bf16", "fp8"], "kv_cache": ["bf16", "fp8"]}
    asked = answered(client, changed(BODY, "workloads/0/precision", both))
    assert asked["lower_precision"] is None
    assert Decimal(native["lower_precision"]["saves_usd_per_hour"]) == usd(native) - usd(asked)
    experts = answered(client, changed(BODY, "workloads/0/llm", "gpt-oss-20b"))
    assert {line["precision"]["weights"] for line in experts["plan"]} == {"mxfp4"}


@pytest.mark.parametrize(
    ("sourcing", "said"),
    [
        ({"max_price_age_days": -1}, "/limits/sourcing"),
        ({"provider_classes": ["hyperscalar"]}, "/limits/sourcing"),
        ({"provider_classes": []}, "/limits/sourcing"),
        ({"max_regions": 0}, "/limits/sourcing"),
        ({"age": 3}, "/limits/sourcing"),
        ("all", "/limits/sourcing"),
    ],
)
def test_bad_policies_are_refused(client: TestClient, sourcing: object, said: str) -> None:
    response = client.post("/v1/recommendations", json=changed(BODY, "limits", {"sourcing": sourcing}))
    assert response.status_code == 422
    assert any(error["pointer"].startswith(said) for error in response.json()["errors"])


def test_classes_in_capitals_are_the_same(client: TestClient) -> None:
    body = changed(BODY, "limits", {"sourcing": {"provider_classes": ["Hyperscaler"]}})
    assert {line["source"]["provider_class"] for line in answered(client, body)["plan"]} == {"hyperscaler"}


def test_a_requests_policy_may_outlive_a_provider(client: TestClient) -> None:
    plan = answered(client, changed(BODY, "limits", {"devices": ["l40s"], "fault_tolerance": {"providers": 1}}))["plan"]
    assert len({line["provider"] for line in plan}) == 2


def test_rejections_speak_of_what_was_asked_only(client: TestClient) -> None:
    body = changed(BODY, "workloads/0/targets", {"ttft_ms": {"p95": 1}, "tpot_ms": {"p95": 1}}) | {"time_limit_s": 5}
    refused = answered(client, changed(body, "limits", {"devices": ["l4", "t4"]}))
    assert refused["outcome"] == "infeasible"
    assert {one["device"] for one in refused["rejected"]} == {"l4", "t4"}


@pytest.mark.parametrize(
    ("device", "reason", "says"),
    [
        ("mi210", "no_offer", "POST /v1/offers"),
        ("mi325x", "not_allowed", "limits.sourcing"),
        ("cerebras-wse2", "figure_missing", "nobody has published"),
    ],
)
def test_what_nobody_sells_is_said(client: TestClient, device: str, reason: str, says: str) -> None:
    refused = answered(client, changed(BODY, "limits", {"devices": [device]}))
    assert refused["outcome"] == "infeasible"
    row = refused["rejected"][0]
    assert (row["device"], row["reason"]) == (device, reason)
    assert says in row["nearest"]
