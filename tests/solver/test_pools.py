"""Recommendations with prefill and decode in pools of their own: chosen when cheaper, confirmed, and compared."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from solver.candidates.screening import screen
from solver.candidates.tabulated import build_space
from solver.deployment.kv_transfer import ServingPool, kv_link
from solver.errors import InvalidInputError
from solver.lengths import lognormal_lengths, uniform_lengths
from solver.limit import FaultTolerance, Quota
from solver.planning.types import PlanEntry, PlanLimits, Recommendation
from solver.recommend.replan import CurrentFleet, HeldNodes, SwitchingCost, replan
from solver.replay.disaggregated import replay_disaggregated
from solver.workload import Load, Targets, Traffic, TrafficClass, Workload
from tests.llm_shapes import shape
from tests.solver.planning_cases import MEMO, node, offer, plan, planning, workload
from tests.solver.samples import device, priors

GBIT = 1e9 / 8
H100 = node("h100x8-net", device("h100-sxm"), 8, network=3_200 * GBIT)
H200 = node("h200x8-net", device("h200-sxm"), 8, network=3_200 * GBIT)
H100_ALONE = node("h100x8-alone", device("h100-sxm"), 8)
NODES = (H100, H200, H100_ALONE)
OFFERS = (offer(H100, 24.0), offer(H200, 30.0))
LONG = Traffic(lognormal_lengths(6_000, 12_000), lognormal_lengths(300, 900))
EITHER: tuple[Any, ...] = ("aggregated", "disaggregated")


def steady(roles: tuple[Any, ...] = EITHER, **changes: Any) -> Workload:
    """Long prompts, and replies that must not stutter while others' prompts come in."""
    asked: dict[str, Any] = {
        "llm": "llama-3.1-70b", "rate": 6.0, "traffic": LONG, "ttft": {"p95": 2.0}, "tpot": {"p95": 0.022},
        "weight_formats": ("fp8",), "kv_cache_formats": ("fp8",), "utilisation_limit_fraction": 0.85,
    }  # fmt: skip
    return workload(roles=roles, **(asked | changes))


@cache
def chosen() -> Recommendation:
    return plan(steady(), offers=OFFERS, nodes=NODES, alternatives=1)


def of_role(found: Recommendation, role: str) -> list[PlanEntry]:
    return [entry for entry in found.entries if entry.role == role]


class TestChosen:
    def test_cheaper_and_by_how_much(self) -> None:
        found = chosen()
        plain = plan(steady(("aggregated",)), offers=OFFERS, nodes=NODES)
        assert found.pools is not None
        assert found.pools.chosen
        assert found.pools.saves_usd_per_hour == pytest.approx(plain.usd_per_hour - found.usd_per_hour)
        assert found.usd_per_hour < plain.usd_per_hour
        (other,) = found.alternatives
        assert other.extra_usd_per_hour == found.pools.saves_usd_per_hour
        assert {entry.role for entry in other.entries} == {"aggregated"}

    def test_the_plan_adds_up(self) -> None:
        found = chosen()
        assert {entry.role for entry in found.entries} >= {"prefill", "decode"}
        whole = sum(e.serves_requests_per_s for e in of_role(found, "aggregated"))
        for role in ("prefill", "decode"):
            assert whole + sum(e.serves_requests_per_s for e in of_role(found, role)) == pytest.approx(6.0, rel=1e-5)
        price = {o.id: o.usd_per_hour for o in OFFERS}
        assert found.usd_per_hour == pytest.approx(sum(price[o] * n for o, n in found.nodes.items()))
        assert sum(e.usd_per_hour for e in found.entries) == pytest.approx(found.usd_per_hour)
        assert all(0 < e.utilisation_fraction <= 0.85 + 1e-6 for e in found.entries)
        assert found.solve.outcome == "optimal"
        assert found.solve.bound == pytest.approx(found.usd_per_hour)

    def test_it_meets_its_targets_in_simulation_with_the_headroom_asked_for(self) -> None:
        found = chosen()
        node_of = {n.id: n for n in NODES}
        for first in of_role(found, "prefill"):
            for second in of_role(found, "decode"):
                pools = [ServingPool(e.configuration, e.replicas, node_of[e.offer.node.id]) for e in (first, second)]
                rate = min(first.serves_requests_per_s, second.serves_requests_per_s) / 0.85
                load = Load("open", requests_per_s=rate)
                run = replay_disaggregated(*pools, kv_link("network", *pools), LONG, load, requests=1_500).statistics
                assert run.time_to_first_token_s["p95"] <= 2.0 * 1.03
                assert run.time_per_output_token_s["p95"] <= 0.022 * 1.03

    def test_lines_are_predicted_together(self) -> None:
        for entry in chosen().entries:
            assert entry.estimate is not None
            assert entry.estimate.basis in ("analytical", "borrowed")
            assert entry.estimate.time_per_output_token_s["p95"].expected <= 0.022 * 1.03
            assert entry.power_w > 0


class TestNotChosen:
    def test_short_prompts_need_no_pools_and_their_price_is_told(self) -> None:
        easy = workload(roles=EITHER, rate=20.0)
        found = plan(easy, offers=OFFERS, nodes=NODES, alternatives=1)
        plain = plan(replace(easy, roles=("aggregated",)), offers=OFFERS, nodes=NODES)
        assert found.pools is not None
        assert not found.pools.chosen
        assert found.usd_per_hour == plain.usd_per_hour
        assert found.pools.extra_usd_per_hour is not None
        assert found.pools.extra_usd_per_hour >= 0
        pooled = found.alternatives[-1]
        assert {entry.role for entry in pooled.entries} == {"prefill", "decode"}

    def test_without_a_network_there_are_none(self) -> None:
        found = plan(steady(rate=1.0), offers=(offer(H100_ALONE, 24.0),), nodes=NODES, alternatives=1)
        assert found.pools is not None
        assert not found.pools.chosen
        assert found.alternatives[-1].extra_usd_per_hour is None

    def test_a_workload_that_does_not_ask_gets_the_answer_it_always_got(self) -> None:
        assert plan(workload(rate=2.0), offers=OFFERS, nodes=NODES).pools is None

    def test_traffic_classes_are_refused(self) -> None:
        kinds = tuple(TrafficClass(name, 1.0, LONG, Targets({"p95": 2.0}, {"p95": 0.022})) for name in ("a", "b"))
        easy = replace(steady(), classes=kinds)
        found = plan(easy, offers=OFFERS, nodes=NODES)
        assert found.pools is not None
        assert "traffic classes" in (found.pools.reason or "")
        with pytest.raises(InvalidInputError, match="traffic classes"):
            plan(replace(easy, roles=("disaggregated",)), offers=OFFERS, nodes=NODES)

    def test_only_pools_admitted(self) -> None:
        only = workload(roles=("disaggregated",), rate=20.0)
        found = plan(only, offers=OFFERS, nodes=NODES)
        assert {entry.role for entry in found.entries} == {"prefill", "decode"}
        nowhere = plan(only, offers=(offer(H100_ALONE, 24.0),), nodes=NODES)
        assert nowhere.entries == ()
        assert nowhere.solve.outcome == "infeasible"


def simulated(found: Recommendation, rate_factor: float = 1.0 / 0.85) -> list[Any]:
    """Every prefill line with every decode line of its region, at what they serve over the utilisation limit."""
    runs = []
    for first in of_role(found, "prefill"):
        for second in of_role(found, "decode"):
            if first.offer.region == second.offer.region:
                pools = [ServingPool(e.configuration, e.replicas, e.offer.node) for e in (first, second)]
                rate = min(first.serves_requests_per_s, second.serves_requests_per_s) * rate_factor
                load = Load("open", requests_per_s=rate)
                link = kv_link("network", *pools)
                runs.append(replay_disaggregated(*pools, link, LONG, load, requests=1_500).statistics)
    assert runs
    return runs


WEST = tuple(replace(o, id=f"{o.id}-west", region="there") for o in OFFERS)


class TestEveryLimit:
    """What a plan of replicas that do both keeps to, one with prefill and decode apart keeps to as well."""

    def test_end_to_end(self) -> None:
        free = chosen()
        worst = max(run.end_to_end_s["p95"] for run in simulated(free))
        found = plan(steady(e2e={"p95": worst * 0.9}), offers=OFFERS, nodes=NODES)
        assert found.pools is not None
        assert found.pools.chosen
        assert found.usd_per_hour >= free.usd_per_hour
        for run in simulated(found):
            assert run.end_to_end_s["p95"] <= worst * 0.9 * 1.03

    def test_least_replicas_in_each_phase(self) -> None:
        found = plan(steady(min_replicas=7), offers=OFFERS, nodes=NODES)
        assert found.pools is not None
        assert found.pools.chosen
        both = sum(e.replicas for e in of_role(found, "aggregated"))
        for role in ("prefill", "decode"):
            assert both + sum(e.replicas for e in of_role(found, role)) >= 7

    def test_spare_nodes(self) -> None:
        found = plan(steady(), offers=OFFERS, nodes=NODES, limits=PlanLimits(spare_nodes=1))
        assert found.pools is not None
        assert found.pools.chosen
        used = {entry.offer.id for entry in found.entries}
        assert found.usd_per_hour >= chosen().usd_per_hour + sum(o.usd_per_hour for o in OFFERS if o.id in used)

    def test_the_loss_of_a_region(self) -> None:
        found = plan(
            steady(),
            offers=OFFERS + WEST,
            nodes=NODES,
            limits=PlanLimits(fault_tolerance=FaultTolerance(regions=1, utilisation_limit_fraction=0.95)),
        )
        assert found.pools is not None
        assert found.pools.chosen
        for region in ("here", "there"):
            able = {
                role: sum(e.capacity_requests_per_s for e in of_role(found, role) if e.offer.region == region)
                for role in ("aggregated", "prefill", "decode")
            }
            assert 0.95 * (able["aggregated"] + min(able["prefill"], able["decode"])) >= 6.0 * (1 - 1e-6)
        assert found.worst_losses[0].utilisation_fraction <= 0.95 + 1e-6

    def test_quotas_spot_and_power(self) -> None:
        quotas = (Quota("q", frozenset(o.id for o in OFFERS), 32),)
        power_w = chosen().power_w * 1.2
        found = plan(
            steady(), offers=OFFERS, nodes=NODES,
            limits=PlanLimits(max_spot_fraction=0.5, quotas=quotas, max_power_w=power_w),
        )  # fmt: skip
        assert found.pools is not None
        assert found.pools.chosen
        assert sum(found.nodes.values()) * 8 <= 32
        assert found.power_w <= power_w
        assert sum(entry.power_w for entry in found.entries) == pytest.approx(found.power_w)
        nothing = plan(
            steady(), offers=OFFERS, nodes=NODES, limits=PlanLimits(quotas=(replace(quotas[0], max_devices=8),))
        )
        assert not nothing.entries

    def test_users_far_away(self) -> None:
        found = plan(steady(network_s_by_region={"here": 0.3, "there": 0.1}), offers=OFFERS + WEST, nodes=NODES)
        assert found.pools is not None
        assert found.pools.chosen
        for entry in found.entries:
            assert entry.network_s == {"here": 0.3, "there": 0.1}[entry.offer.region]

    def test_most_within_a_budget(self) -> None:
        budget = chosen().usd_per_hour
        found = plan(
            steady(), offers=OFFERS, nodes=NODES, limits=PlanLimits(max_usd_per_hour=budget), objective="throughput"
        )
        assert found.throughput_multiple is not None
        assert found.throughput_multiple >= 1.0 - 1e-6
        assert found.usd_per_hour <= budget * (1 + 1e-6)

    def test_what_binds_is_told(self) -> None:
        found = plan(steady(), offers=OFFERS, nodes=NODES, explain=True)
        assert found.pools is not None
        assert found.pools.chosen
        assert all(one.gains > 0 for one in found.binding)

    def test_from_a_fleet_that_runs(self) -> None:
        free = chosen()
        held = tuple(HeldNodes(o, free.nodes[o.id]) for o in OFFERS if o.id in free.nodes)
        cost = SwitchingCost(usd_per_node_added=1_000.0, usd_per_node_removed=1_000.0, payback_h=100.0)
        again = replan(planning(steady(), offers=OFFERS, nodes=NODES), CurrentFleet(held, cost), MEMO)
        assert again.decision == "unchanged"
        assert dict(again.found.nodes) == dict(free.nodes)
        assert {entry.role for entry in again.found.entries} >= {"prefill", "decode"}


def test_screening_is_optimistic() -> None:
    """What a role carries in simulation is never above what screening believed of it: else a good candidate is lost."""
    asked = steady(traffic=Traffic(uniform_lengths(500, 3_000), uniform_lengths(100, 400)), rate=1.0)
    space = build_space(
        shape("llama-3.1-70b"), (H200,), priors(), ("fp8",), ("fp8",),
        replace(planning().engine, max_context_tokens=asked.context_tokens),
    )  # fmt: skip
    capacities = screen(asked, space).roles
    assert capacities is not None
    rows = [r for r in np.flatnonzero(capacities.decode > 0).tolist() if space.rows[r].layout.pipeline_parallel == 1]
    assert rows
    for row in rows:
        pools = [ServingPool(space.configuration(row), n, H200) for n in (4, 1)]
        load = Load("open", requests_per_s=float(capacities.decode[row]) * 1.1)
        if load.requests_per_s > 3.0 * capacities.prefill[row]:
            continue  # four prefill replicas do not feed it
        run = replay_disaggregated(*pools, kv_link("network", *pools), asked.traffic, load, requests=1_500).statistics
        assert run.time_per_output_token_s["p95"] > 0.022 * 0.97
