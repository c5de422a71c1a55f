"""Machines of one's own: free of charge or at a cost of one's own, asked how much they carry, and withdrawn again."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tests.conftest import FixedClock
from tests.service.bodies import changed
from tests.service.test_sourcing import BODY, answered, usd

EARLIER = "2026-01-01T00:00:00Z"


@pytest.fixture(autouse=True)
def nothing_left_behind(client: TestClient) -> Iterator[None]:
    """Tests of a file share a database where it is PostgreSQL: what one adds is withdrawn."""
    yield
    for offer in client.get("/v1/offers", params={"origin": "user", "limit": 100}).json()["items"]:
        gone = {"usd_per_hour": None, "valid_from": "2026-01-01T00:00:00Z", "source": "withdrawn", "correction": True}
        client.post(f"/v1/offers/{offer['id']}/prices", json=gone)


def owned(client: TestClient, nodes: int = 1, price: str = "0") -> str:
    offers = client.get("/v1/offers", params={"provider": "aws", "device": "h100-sxm", "limit": 50}).json()["items"]
    node = next(one["node"] for one in offers if one["devices"] == 8)
    own = {
        "provider": "us", "instance": f"h100x8-{uuid.uuid4().hex[:8]}", "region": "hall-2", "commitment": "on_demand",
        "node": node, "max_nodes": nodes,
        "price": {"usd_per_hour": price, "valid_from": EARLIER, "source": "paid for in 2024"},
    }  # fmt: skip
    made = client.post("/v1/offers", json=own)
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


def most(client: TestClient, **limits: Any) -> dict[str, Any]:
    body = changed(BODY, "objective", "throughput") | {"limits": {"providers": ["us"], **limits}}
    del body["workloads"][0]["traffic"]["requests_per_s"]
    return answered(client, body)


def test_how_much_ones_own_machines_carry_needs_no_rate_and_no_dollars(client: TestClient) -> None:
    offer = owned(client)
    found = most(client)
    assert [line["offer"] for line in found["plan"]] == [offer] * len(found["plan"])
    assert all(line["source"]["own"] for line in found["plan"])
    assert usd(found) == 0
    carried = found["totals"]["serves_requests_per_s"]
    assert carried > 10.0
    assert found["totals"]["nodes"] == 1
    assert sum(line["replicas"] * line["layout"]["tensor_parallel"] for line in found["plan"]) == 8
    # Asked for that rate, and for a little more, the same machines say the same.
    at = changed(BODY, "limits", {"providers": ["us"]})
    assert (
        answered(client, changed(at, "workloads/0/traffic/requests_per_s", carried * 0.99))["outcome"] != "infeasible"
    )
    assert (
        answered(client, changed(at, "workloads/0/traffic/requests_per_s", carried * 1.05))["outcome"] == "infeasible"
    )


def test_what_is_paid_for_is_used_first_and_no_more_of_it_than_needed(client: TestClient) -> None:
    offer = owned(client, nodes=4)
    plan = answered(client, changed(BODY, "workloads/0/traffic/requests_per_s", 5.0))
    assert {line["offer"] for line in plan["plan"]} == {offer}
    assert plan["totals"]["nodes"] == 1
    assert plan["totals"]["usd_per_hour"] == "0.000000"


def test_a_cost_of_ones_own_counts_like_a_price(client: TestClient) -> None:
    owned(client, price="12.5")
    found = most(client, max_usd_per_hour="20")
    assert str(usd(found)) == "12.500000"


def test_withdrawn_machines_are_gone(client: TestClient) -> None:
    offer = owned(client)
    gone = client.post(
        f"/v1/offers/{offer}/prices",
        json={"usd_per_hour": None, "valid_from": "2026-06-01T00:00:00Z", "source": "sold"},
    )
    assert gone.status_code == 201, gone.text
    refused = answered(client, changed(BODY, "limits", {"providers": ["us"]}))
    assert refused["outcome"] == "infeasible"


def test_a_throughput_without_an_end_is_refused(client: TestClient) -> None:
    for later in ({}, {"Prefer": "respond-async"}):
        response = client.post("/v1/recommendations", json=BODY | {"objective": "throughput"}, headers=later)
        assert response.status_code == 422, "mistakes are answered before anything is queued"
    assert "states no number" in response.json()["errors"][0]["detail"]


@pytest.mark.parametrize("price", ["-1", "0.0000001", 0.5])
def test_bad_prices(client: TestClient, price: object) -> None:
    body = {"usd_per_hour": price, "valid_from": EARLIER, "source": "a guess"}
    assert client.post(f"/v1/offers/{owned(client)}/prices", json=body).status_code == 422


def test_a_commitment_that_saves_nothing_says_so(client: TestClient) -> None:
    offers = client.get("/v1/offers", params={"provider": "verda", "device": "h100-sxm", "limit": 50}).json()["items"]
    cheap = next(one for one in offers if one["commitment"] == "on_demand" and one["price"])
    dear = {
        "provider": "verda", "instance": cheap["instance"], "region": cheap["region"], "commitment": "reserved_1y",
        "node": cheap["node"], "price": {"usd_per_hour": "9.000000", "valid_from": EARLIER, "source": "an offer by mail"},
    }  # fmt: skip
    made = client.post("/v1/offers", json=dear)
    assert made.status_code in (201, 409), made.text
    limits = {"providers": ["verda"], "devices": ["h100-sxm"], "commitments": ["reserved_1y"]}
    found = answered(client, changed(BODY, "limits", limits))
    assert "commitment_dearer" in {caution["about"] for caution in found["cautions"]}


def test_the_next_plan_waits_for_no_new_search_space(client: TestClient, app: FastAPI, clock: FixedClock) -> None:
    """What an offer, a price or a model of one's own adds changes no prediction of what was there: the catalog is another, and what
    was tabulated and simulated of it stays known."""

    def known() -> tuple[str, str]:
        with app.state.database.reading() as session:
            snapshot = app.state.snapshots.at(session, clock())
            return snapshot.digest, snapshot.key

    before = known()
    offer = owned(client)
    step = {"usd_per_hour": "3", "valid_from": "2026-02-01T00:00:00Z", "source": "dearer"}
    assert client.post(f"/v1/offers/{offer}/prices", json=step).status_code == 201
    after = known()
    assert after[0] != before[0]
    assert after[1] == before[1]


def test_a_number_is_named_where_it_was_stated(client: TestClient) -> None:
    """Of two nodes that one has, more is not had by asking for more: ``limits.offers`` was named, which could not go beyond them."""
    offer = owned(client, nodes=2)
    carried = most(client)["totals"]["serves_requests_per_s"]
    wanted = changed(BODY, "workloads/0/traffic/requests_per_s", carried * 1.5)

    def refused(**limits: Any) -> dict[str, Any]:
        found = answered(client, wanted | {"limits": {"providers": ["us"], **limits}})
        assert found["outcome"] == "infeasible"
        return found

    for limits, name, conflict in (
        ({}, f"offers.{offer}.max_nodes", "offers.max_nodes"),
        ({"offers": {offer: {"max_nodes": 5}}}, f"offers.{offer}.max_nodes", "offers.max_nodes"),
        ({"offers": {offer: {"max_nodes": 1}}}, f"limits.offers.{offer}.max_nodes", "limits.offers"),
    ):
        found = refused(**limits)
        assert conflict in {limit for one in found["conflicts"] for limit in one["limits"]}
        (more,) = [one for one in found["relaxations"] if one["limit"].endswith(f"{offer}.max_nodes")]
        assert more["limit"] == name
    few = changed(BODY, "workloads/0/traffic/requests_per_s", carried * 0.75)
    alone = answered(client, few | {"limits": {"providers": ["us"], "offers": {offer: {"max_nodes": 1}}}})
    (more,) = [one for one in alone["relaxations"] if one["limit"] == f"limits.offers.{offer}.max_nodes"]
    relaxed = {"providers": ["us"], "offers": {offer: {"max_nodes": int(more["relaxing_to"])}}}
    assert answered(client, few | {"limits": relaxed})["outcome"] == "optimal"
