"""Plans whose caches may take memory of the host: chosen where that is cheaper, on nodes that have it, and never at a loss."""

import dataclasses
import random

import numpy as np
import pytest

from solver.deployment.documented import check_host_cache
from solver.errors import UnsupportedError
from solver.hardware import Node, Offer
from solver.lengths import lognormal_lengths, uniform_lengths
from solver.recommend.recommend import screened
from solver.sessions import session_traffic
from solver.units import bytes_from_gib
from solver.workload import Sessions, Workload
from tests.seeds import cases
from tests.solver.planning_cases import A100, H100, L4, L40S, MEMO, offer, plan, planning, workload

GIB = bytes_from_gib(1)
SIZES = (32 * GIB, 128 * GIB)


def with_host_memory(node: Node, gib_per_device: float) -> Node:
    return dataclasses.replace(
        node, id=f"{node.id}-{gib_per_device:g}", host_memory_bytes=gib_per_device * node.devices * GIB
    )


ROOMY, TIGHT, UNKNOWN = with_host_memory(H100, 200), with_host_memory(L40S, 48), A100
NODES = (ROOMY, TIGHT, UNKNOWN)
OFFERS = (offer(ROOMY, 24.0), offer(TIGHT, 7.2), offer(UNKNOWN, 7.0))


def chats(rate: float = 20.0, think_s: float = 300.0, caches: tuple[float, ...] = SIZES, **changes: object) -> Workload:
    """Users that think for minutes, so that devices forget most sessions before their next turn."""
    sessions = Sessions(uniform_lengths(3, 9), lognormal_lengths(400, 1200), think_s, system_tokens=1500)
    traffic, _ = session_traffic(sessions, lognormal_lengths(200, 500), None)
    return workload(rate=rate, traffic=traffic, host_caches_bytes=caches, **changes)


def market(rng: random.Random) -> tuple[tuple[Node, ...], tuple[Offer, ...]]:
    nodes = tuple(
        with_host_memory(one, rng.choice([0, 48, 96, 200])) if rng.random() < 0.8 else one
        for one in (H100, L40S, L4, A100)
    )
    return nodes, tuple(offer(node, rng.choice([0.7, 1.0, 1.5]) * 3.0 * node.devices) for node in nodes)


def test_candidates_are_there_with_each_size_that_their_nodes_hold() -> None:
    found = screened(planning(chats(), offers=OFFERS, nodes=NODES), chats(), MEMO).only.space
    offered = {
        node: {p.host_cache_bytes for p in found.platforms if node in p.node_ids}
        for node in (ROOMY.id, TIGHT.id, UNKNOWN.id)
    }
    assert offered == {ROOMY.id: {0.0, *SIZES}, TIGHT.id: {0.0, SIZES[0]}, UNKNOWN.id: {0.0}}
    assert np.flatnonzero(found.without_host_cache).size == sum(
        found.platforms[row.platform].host_cache_bytes == 0.0 for row in found.rows
    )


def test_candidates_without_are_screened_as_where_none_is_permitted() -> None:
    bare, both = (screened(planning(w, offers=OFFERS, nodes=NODES), w, MEMO).only for w in (chats(caches=()), chats()))
    plain = np.flatnonzero(both.space.without_host_cache)
    nodes_of = [one.space.platforms for one in (bare, both)]
    own = {
        (nodes_of[1][both.space.rows[i].platform].node_ids, both.space.rows[i].layout): both.most_requests_per_s[i]
        for i in plain.tolist()
    }
    alone = {
        (nodes_of[0][row.platform].node_ids, row.layout): bare.most_requests_per_s[i]
        for i, row in enumerate(bare.space.rows)
    }
    assert own == alone


def test_nodes_that_state_no_host_memory_are_named() -> None:
    every = plan(chats(), offers=OFFERS, nodes=NODES).rejected
    reasons = {(r.device_id, r.reason, r.detail) for r in every}
    assert ("a100-sxm-80", "figure_missing", "host_memory_gib") in reasons
    small = chats(caches=(100 * GIB,))
    reasons = {(r.device_id, r.reason) for r in plan(small, offers=OFFERS, nodes=NODES).rejected}
    assert ("l40s", "host_memory_exceeded") in reasons
    unasked = plan(chats(caches=()), offers=OFFERS, nodes=NODES).rejected
    assert not any(r.reason.startswith("host") or r.detail == "host_memory_gib" for r in unasked)


def test_sglang_has_only_tiers_larger_than_the_devices_cache() -> None:
    """It does not start with others; a plan and an estimate say the same."""
    asked = chats(engines=("sglang",))
    space = screened(planning(asked, offers=OFFERS, nodes=NODES), asked, MEMO).only.space
    tiers = np.array([space.platforms[row.platform].host_cache_bytes for row in space.rows])
    assert (tiers > 0.0).any()
    assert (tiers[tiers > 0.0] > space.memory.kv_cache_bytes[tiers > 0.0]).all()
    assert any(one.reason == "host_cache_below_device" for one in space.dropped)
    with pytest.raises(UnsupportedError) as refused:
        check_host_cache("sglang", 10.0 * GIB, 10.0 * GIB)
    assert refused.value.reason == "host_cache_below_device"
    check_host_cache("vllm", 10.0 * GIB, 10.0 * GIB)
    check_host_cache("sglang", 0.0, 10.0 * GIB)


def test_requests_that_are_no_turns_have_no_use_for_it() -> None:
    plain = workload(host_caches_bytes=SIZES)
    space = screened(planning(plain, offers=OFFERS, nodes=NODES), plain, MEMO).only.space
    assert space.without_host_cache.all()


def test_what_it_saves_is_the_difference_of_two_plans() -> None:
    asked = {"offers": OFFERS[:2], "nodes": NODES}
    bare = plan(chats(100.0, 120.0, caches=()), **asked)
    found = plan(chats(100.0, 120.0), **asked, alternatives=1)
    assert bare.usd_per_hour is not None
    assert found.usd_per_hour is not None
    assert found.usd_per_hour < bare.usd_per_hour
    assert any(entry.configuration.engine.host_cache_bytes in SIZES for entry in found.entries)
    (without,) = [one for one in found.alternatives if one.why == "cheapest without host memory under the cache"]
    assert without.extra_usd_per_hour == pytest.approx(bare.usd_per_hour - found.usd_per_hour, abs=1e-6)
    assert not any(entry.configuration.engine.host_cache_bytes for entry in without.entries)


def test_where_the_device_holds_all_nothing_is_taken() -> None:
    """Sessions that never outlast the cache: with and without are alike, and the plan stays without."""
    found = plan(chats(8.0, think_s=1.0), offers=OFFERS, nodes=NODES)
    assert found.usd_per_hour == plan(chats(8.0, think_s=1.0, caches=()), offers=OFFERS, nodes=NODES).usd_per_hour
    assert not any(entry.configuration.engine.host_cache_bytes for entry in found.entries)


@pytest.mark.parametrize("seed", range(cases(12, few=3)))
def test_being_permitted_never_costs_more(seed: int) -> None:
    rng = random.Random(seed)
    nodes, offers = market(rng)
    rate, think_s = rng.choice([3.0, 15.0, 50.0]), rng.choice([10.0, 120.0, 900.0])
    bare, one, permitted = (
        plan(chats(rate, think_s, caches), offers=offers, nodes=nodes) for caches in ((), SIZES[:1], SIZES)
    )
    assert permitted.solve.status == "proven_optimal"
    assert (permitted.usd_per_hour or 0.0) > 0.0
    assert (permitted.usd_per_hour or 0.0) <= (one.usd_per_hour or 0.0) + 1e-9 <= (bare.usd_per_hour or 0.0) + 2e-9
    by_node = {node.id: node for node in nodes}
    for entry in permitted.entries:
        node = by_node[entry.offer.node.id]
        assert entry.configuration.engine.host_cache_bytes * node.devices <= node.host_memory_bytes


def with_disk(node: Node, gib_per_device: float, gbytes_per_s: float) -> Node:
    return dataclasses.replace(
        node,
        id=f"{node.id}-disk",
        local_disk_bytes=gib_per_device * node.devices * GIB,
        local_disk_bytes_per_s=gbytes_per_s * node.devices * 1e9,
    )


FAST, FULL, SILENT = with_disk(ROOMY, 1000, 6.0), with_disk(ROOMY, 100, 6.0), with_disk(ROOMY, 1000, 0.0)
DISK = 400 * GIB


def thinkers(rate: float, disk: float, **changes: object) -> Workload:
    """Users that come back after a minute or two, and a little host memory."""
    return chats(rate, 90.0, (16 * GIB,), disk_cache_bytes=disk, **changes)


def test_a_disk_is_there_under_each_size_of_host_memory_where_nodes_have_it() -> None:
    nodes = tuple(dataclasses.replace(node, id=f"{node.id}-{i}") for i, node in enumerate((FAST, FULL, SILENT, ROOMY)))
    asked = thinkers(5.0, DISK)
    space = screened(
        planning(asked, offers=tuple(offer(one, 24.0) for one in nodes), nodes=nodes), asked, MEMO
    ).only.space
    tiers = {
        (node.id, p.host_cache_bytes, p.disk_cache_bytes, p.disk_bytes_per_s)
        for node in nodes for p in space.platforms if node.id in p.node_ids
    }  # fmt: skip
    bare = {(node.id, host, 0.0, 0.0) for node in nodes for host in (0.0, 16 * GIB)}
    assert tiers == bare | {(nodes[0].id, 16 * GIB, DISK, 6e9)}
    reasons = {(one.reason, one.detail) for one in space.dropped}
    assert ("figure_missing", "local_disk_read_gbytes_per_s") in reasons
    assert ("figure_missing", "local_disk_gib") in reasons
    assert "local_disk_exceeded" in {reason for reason, _ in reasons}


def test_a_stated_rate_counts_where_none_is_documented() -> None:
    asked = thinkers(5.0, DISK, disk_bytes_per_s=3e9)
    space = screened(planning(asked, offers=(offer(SILENT, 24.0),), nodes=(SILENT,)), asked, MEMO).only.space
    assert {p.disk_bytes_per_s for p in space.platforms if p.disk_cache_bytes} == {3e9}


def test_what_a_disk_saves_is_the_difference_of_two_plans() -> None:
    market = {"offers": (offer(FAST, 24.0),), "nodes": (FAST,)}
    bare = plan(thinkers(110.0, 0.0), **market)
    found = plan(thinkers(110.0, DISK), **market, alternatives=1)
    assert bare.usd_per_hour is not None
    assert found.usd_per_hour is not None
    assert found.solve.status == "proven_optimal"
    assert found.usd_per_hour < bare.usd_per_hour
    assert {entry.configuration.engine.disk_cache_bytes for entry in found.entries} == {DISK}
    (without,) = [one for one in found.alternatives if one.why == "cheapest without a disk under the cache"]
    assert without.extra_usd_per_hour == pytest.approx(bare.usd_per_hour - found.usd_per_hour, abs=1e-6)


def test_a_slow_disk_is_left_alone() -> None:
    """Reading takes longer than computing anew: never dearer for being permitted."""
    slow = with_disk(ROOMY, 1000, 0.05)
    market = {"offers": (offer(slow, 24.0),), "nodes": (slow,)}
    assert plan(thinkers(40.0, DISK), **market).usd_per_hour == plan(thinkers(40.0, 0.0), **market).usd_per_hour
