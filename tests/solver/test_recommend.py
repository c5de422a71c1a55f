"""Whole recommendations on a small market: plans hold, prices and targets move them the right way, refusals are useful."""

import math
import random
from dataclasses import replace

import pytest

from solver.candidates.screening import screen
from solver.capacity.goal import Goal
from solver.capacity.sustained_rate import is_settled
from solver.lengths import fixed_lengths, uniform_lengths
from solver.limit import Limit, LimitKind
from solver.planning.types import PlanLimits, PlanningInput, Recommendation
from solver.recommend.recommend import recommend, solve_request, space_of
from solver.replay.long_run import LongRun
from solver.replay.one_stream import replay
from solver.traffic_classes import with_rate, with_targets_of
from solver.why.resolve import Clock
from solver.why.why_not import Thing, why_not
from solver.workload import Load, Targets, Traffic, Workload
from tests.solver.planning_cases import (
    A100,
    CHAT,
    H100,
    L4,
    L40S,
    MEMO,
    OFFERS,
    SHORT,
    TPOT_P95,
    cost,
    node,
    offer,
    plan,
    planning,
    without,
    without_power,
    workload,
)
from tests.solver.samples import device

LONG = Traffic(uniform_lengths(1000, 6000), uniform_lengths(100, 500))


def holds(found: Recommendation, *workloads: Workload, tolerance: float = 1.10) -> None:
    """Every entry meets its targets at its planned rate in a longer simulation with other arrivals.

    Percentiles of two runs differ by some per cent; a load that cannot be sustained differs by far more.
    """
    assert found.solve.outcome == "optimal"
    assert found.entries
    by_name = {w.name: w for w in workloads}
    for entry in found.entries:
        asked = by_name[entry.workload]
        rate = entry.serves_requests_per_s / entry.replicas
        if rate > 0:
            made = entry.configuration
            result = replay(
                made, made.tables(), asked.traffic, Load("open", requests_per_s=rate), seed=99, requests=4_000
            )
            assert Goal(asked.only.targets).ratio_of(LongRun((result,))) <= tolerance, (
                entry.offer.id,
                entry.configuration.layout,
            )
    for asked in workloads:
        served = sum(e.serves_requests_per_s for e in found.entries if e.workload == asked.name)
        assert served == pytest.approx(asked.requests_per_s * (found.throughput_multiple or 1.0), rel=1e-5)


class TestPlans:
    @pytest.mark.parametrize(
        "asked",
        [
            workload(),
            workload(rate=200.0),
            workload(ttft={"p99": 0.3}, tpot={"p50": 0.012}),
            workload(ttft={}, tpot={"p95": 0.02}, e2e={"p90": 6.0}),
            workload(rate=3.0, traffic=LONG),
            workload(traffic=SHORT, rate=400.0),
            workload(utilisation_limit_fraction=0.6, rate=60.0),
            workload(llm="llama-3.1-70b", rate=5.0, tpot={"p95": 0.06}),
            workload(weight_formats=("bf16", "fp8"), kv_cache_formats=("bf16", "fp8"), rate=100.0),
            workload(traffic=replace(CHAT, shared_prefix_fraction=0.5), rate=60.0),
        ],
        ids=["chat", "busy", "tight", "end-to-end", "long", "short", "headroom", "70b", "precisions", "prefix"],
    )
    def test_targets_hold_in_a_longer_simulation(self, asked: Workload) -> None:
        holds(plan(asked), asked)

    def test_totals_follow_from_entries(self) -> None:
        found = plan(workload(rate=100.0))
        prices = {o.id: o.usd_per_hour for o in OFFERS}
        assert found.usd_per_hour == pytest.approx(sum(prices[o] * n for o, n in found.nodes.items()))
        assert found.usd_per_hour == pytest.approx(sum(e.usd_per_hour for e in found.entries))
        assert found.power_w == pytest.approx(sum(e.power_w for e in found.entries))
        assert all(0 < e.utilisation_fraction <= 1 + 1e-9 for e in found.entries)

    def test_headroom_is_kept(self) -> None:
        found = plan(workload(utilisation_limit_fraction=0.5, rate=60.0))
        assert all(e.utilisation_fraction <= 0.5 + 1e-9 for e in found.entries)
        assert cost(found) >= cost(plan(workload(rate=60.0)))

    def test_the_same_again(self) -> None:
        one, other = plan(workload(rate=37.0)), plan(workload(rate=37.0))
        assert replace(one, solve=replace(other.solve, solver_seconds=one.solve.solver_seconds)) == replace(
            other, solve=replace(other.solve, solver_seconds=one.solve.solver_seconds)
        )

    def test_every_entry_says_what_to_expect(self) -> None:
        for entry in plan(workload(rate=100.0)).entries:
            assert entry.estimate is not None
            predicted = entry.estimate.time_per_output_token_s["p95"]
            assert predicted.low <= predicted.expected <= predicted.high
            assert predicted.expected <= 0.05


class TestSeveral:
    def test_workloads_share_nodes(self) -> None:
        """Two small streams fit on one node of four: apart they would need two."""
        one, two = workload("one", rate=5.0), workload("two", rate=5.0)
        together = plan(one, two, offers=[offer(A100, 7.0)])
        holds(together, one, two)
        assert together.nodes == {"a100x4": 1}
        assert cost(together) <= cost(plan(one, offers=[offer(A100, 7.0)])) + cost(plan(two, offers=[offer(A100, 7.0)]))

    def test_several_models(self) -> None:
        small, large = workload("small"), workload("large", "llama-3.1-70b", 3.0, tpot={"p95": 0.06})
        holds(plan(small, large), small, large)

    def test_demand_in_two_halves_costs_no_more_than_whole(self) -> None:
        whole = cost(plan(workload(rate=120.0)))
        halves = cost(plan(workload("a", rate=60.0), workload("b", rate=60.0)))
        assert halves >= whole - 1e-9  # separate replicas cannot do better
        assert halves <= 2 * cost(plan(workload(rate=60.0)))

    def test_mixture_of_experts_on_one_device_and_spread(self) -> None:
        sparse = workload(llm="qwen3-30b-a3b", rate=20.0)
        holds(plan(sparse), sparse)
        large = workload(llm="qwen3-235b-a22b", rate=2.0, tpot={"p95": 0.06})
        found = plan(large)
        holds(found, large)
        assert all(e.configuration.layout.devices_per_replica >= 8 for e in found.entries)

    def test_pcie_only_nodes_serve_what_no_card_holds(self) -> None:
        """140 GB of weights on 44 GB cards that only PCIe joins."""
        asked = workload(llm="llama-3.1-70b", rate=0.2, ttft={"p95": 10.0}, tpot={"p95": 0.3})
        eight = node("l40sx8", device("l40s"), 8)
        found = plan(asked, offers=[offer(eight, 14.0)], nodes=(eight,))
        holds(found, asked)
        layouts = [e.configuration.layout for e in found.entries]
        assert all(4 <= layout.devices_per_replica <= 8 for layout in layouts)

    def test_models_wider_than_a_node_span_several(self) -> None:
        joined = node("h100x8-net", device("h100-sxm"), 8, network=400e9)
        asked = workload(llm="deepseek-v3", rate=0.5, tpot={"p95": 0.2}, ttft={"p95": 5.0})
        found = plan(asked, offers=[offer(joined, 24.0)], nodes=(joined,))
        holds(found, asked)
        assert min(found.nodes.values()) >= 2


class TestMoney:
    """Random markets: what changes for the better never makes a plan dearer."""

    @pytest.mark.parametrize("seed", range(6))
    def test_prices_offers_targets_and_rates(self, seed: int) -> None:
        rng = random.Random(seed)
        offers = tuple(replace(o, usd_per_hour=round(o.usd_per_hour * rng.uniform(0.6, 1.5), 2)) for o in OFFERS)
        asked = workload(rate=rng.choice([5.0, 30.0, 120.0]), tpot={"p95": rng.choice([0.015, 0.03])})
        base = plan(asked, offers=offers)
        for one in offers:
            cheaper = [replace(o, usd_per_hour=o.usd_per_hour * 0.8) if o.id == one.id else o for o in offers]
            assert cost(plan(asked, offers=cheaper)) <= cost(base) + 1e-9
        for used in base.nodes:
            assert cost(plan(asked, offers=without(offers, [used]))) >= cost(base) - 1e-9
        tighter = Targets({"p95": 0.5}, {"p95": 0.8 * asked.only.targets.time_per_output_token_s["p95"]})
        assert cost(plan(with_targets_of(asked, 0, tighter), offers=offers)) >= cost(base) - 1e-9
        assert cost(plan(with_rate(asked, asked.requests_per_s * 1.5), offers=offers)) >= cost(base) - 1e-9
        assert cost(plan(asked, offers=offers, limits=PlanLimits(spare_nodes=1))) > cost(base)

    @pytest.mark.parametrize("seed", range(8))
    def test_nothing_forced_in_makes_it_cheaper(self, seed: int) -> None:
        """Candidates that the search passed over may turn out better than their kin: the plan must know that."""
        rng = random.Random(100 + seed)
        offers = tuple(replace(o, usd_per_hour=round(o.usd_per_hour * rng.uniform(0.6, 1.5), 2)) for o in OFFERS)
        asked = workload(
            rate=rng.choice([5.0, 30.0, 120.0]),
            ttft={"p95": rng.choice([0.3, 1.0])},
            tpot={"p95": rng.choice([0.015, 0.03])},
            traffic=rng.choice([CHAT, SHORT]),
        )
        solved_request = solve_request(planning(asked, offers=list(offers)), MEMO)
        assert solved_request.result.plan is not None
        used = solved_request.result.plan.nodes_by_offer()
        for one in offers:
            if one.id in used:
                continue
            found = why_not(
                solved_request, Thing("offer", one.id, (one,), frozenset({one.node.device.id})), None, MEMO, Clock(30)
            )
            assert found.forced_in.extra is None or found.forced_in.extra >= -1e-6, one.id

    def test_an_offer_nobody_needs_changes_nothing(self) -> None:
        dear = offer(H100, 1_000.0, suffix="-dear")
        assert cost(plan(offers=[*OFFERS, dear])) == cost(plan())

    def test_limits_of_offers_are_kept(self) -> None:
        found = plan(workload(rate=100.0), offers=[offer(A100, 7.0, most=1), offer(L40S, 9.0)])
        assert found.nodes["a100x4"] == 1
        assert found.nodes["l40sx4"] >= 1


class TestOracle:
    """The optimum of every combination of node counts, over what every candidate sustains in simulation."""

    NODES = (L40S, L4, A100)

    def per_node(self, asked: PlanningInput) -> dict[str, float]:
        """Most requests/s one node carries: its devices filled with the best replicas, each at what it sustains."""
        one = screen(asked.workloads[0], space_of(asked, asked.workloads[0], MEMO))
        found: dict[str, float] = {}
        for on in self.NODES:
            best = [0.0] * (on.devices + 1)
            rows = [
                (int(one.space.devices_per_replica[row]), one.only.candidate(row).bracket(is_settled).holds)
                for row, entry in enumerate(one.space.rows)
                if on.id in one.space.platforms[entry.platform].node_ids
            ]
            for free in range(1, on.devices + 1):
                best[free] = max([best[free - 1]] + [best[free - size] + rate for size, rate in rows if size <= free])
            found[on.id] = best[on.devices]
        return found

    def cheapest(self, asked: PlanningInput, per_node: dict[str, float], factor: float) -> float:
        best = math.inf
        offers = [o for o in asked.offers if per_node[o.node.id] > 0]

        def choose(position: int, left: float, spent: float) -> None:
            nonlocal best
            if left <= 1e-9:
                best = min(best, spent)
            elif position < len(offers) and spent < best:
                one = offers[position]
                carries = per_node[one.node.id] * factor
                most = math.ceil(left / carries) if one.max_nodes is None else one.max_nodes
                for count in range(min(most, math.ceil(left / carries)) + 1):
                    choose(position + 1, left - count * carries, spent + count * one.usd_per_hour)

        choose(0, asked.workloads[0].requests_per_s, 0.0)
        return best

    @pytest.mark.parametrize("seed", range(10))
    def test_equals_enumeration(self, seed: int) -> None:
        rng = random.Random(seed)
        prices = {"l40sx4": 7.2, "l4x1": 0.8, "a100x4": 7.0}
        offers = [
            offer(on, round(prices[on.id] * rng.uniform(0.5, 1.6), 2), rng.choice([None, 1, 2])) for on in self.NODES
        ]
        asked = planning(
            workload(
                rate=rng.choice([1.0, 8.0, 30.0, 70.0]),
                ttft={"p95": rng.choice([0.2, 0.5, 2.0])},
                tpot={rng.choice(["mean", "p95"]): rng.choice([0.02, 0.04])},
                traffic=rng.choice([CHAT, SHORT]),
            ),
            offers=offers,
            nodes=self.NODES,
        )
        per_node = self.per_node(asked)
        # What is sustained is known to one per cent, and what a plan asks of a replica need not be on the ladder.
        least, most = (self.cheapest(asked, per_node, factor) for factor in (1.01, 1.0))
        found = recommend(asked, MEMO)
        assert found.solve.outcome == ("optimal" if math.isfinite(most) else "infeasible")
        assert least - 1e-6 <= cost(found) <= most + 1e-6


class TestOtherObjectives:
    def test_most_traffic_for_a_budget(self) -> None:
        asked = workload(rate=10.0)
        limits = PlanLimits(max_usd_per_hour=50.0)
        found = plan(asked, objective="throughput", limits=limits)
        assert found.usd_per_hour <= 50.0 + 1e-9
        assert found.throughput_multiple is not None
        holds(found, asked, tolerance=1.15)  # filled to the brim, where values grow fastest
        more = plan(asked, objective="throughput", limits=PlanLimits(max_usd_per_hour=100.0))
        assert more.throughput_multiple is not None
        assert more.throughput_multiple >= found.throughput_multiple
        # what the budget serves costs no less than the budget allows
        again = plan(with_rate(asked, 10.0 * found.throughput_multiple))
        assert cost(again) <= 50.0 + 1e-6

    def test_least_power(self) -> None:
        asked = workload(rate=60.0)
        frugal, cheap = plan(asked, objective="power"), plan(asked)
        holds(frugal, asked)
        assert frugal.power_w <= cheap.power_w + 1e-6
        assert cost(frugal) >= cost(cheap) - 1e-9
        limited = plan(asked, limits=PlanLimits(max_power_w=frugal.power_w * 1.01))
        assert limited.power_w <= frugal.power_w * 1.01
        assert cost(limited) >= cost(cheap) - 1e-9

    def test_spare_nodes_stand_idle(self) -> None:
        found = plan(workload(rate=60.0), offers=[offer(A100, 7.0)], limits=PlanLimits(spare_nodes=1))
        busy = plan(workload(rate=60.0), offers=[offer(A100, 7.0)])
        assert found.nodes["a100x4"] == busy.nodes["a100x4"] + 1

    def test_unknown_power_is_left_out_where_power_counts_and_says_so(self) -> None:
        dark = without_power(A100)
        offers, nodes = [offer(dark, 1.0), offer(H100, 24.0)], (dark, H100)
        assert set(plan(offers=offers, nodes=nodes).nodes) == {dark.id}
        for asked in ({"limits": PlanLimits(max_power_w=1e6)}, {"objective": "power"}):
            found = plan(offers=offers, nodes=nodes, **asked)
            assert set(found.nodes) == {"h100x8"}
            reasons = {(r.device_id, r.reason) for r in found.rejected}
            assert (dark.device.id, "figure_missing") in reasons


class TestExplanations:
    def test_what_a_target_costs(self) -> None:
        """Where a fifth looser target takes a node less, the limit is named with the price of that node."""
        targets = [0.006 * 1.05**step for step in range(16)]
        prices = [plan(workload(tpot={"p95": target})).usd_per_hour for target in targets]
        found = False
        for target, price in zip(targets, prices, strict=True):
            looser = plan(workload(tpot={"p95": target * 1.2})).usd_per_hour
            if price > 0.0 and 0.0 < looser < price - 1.0:
                tight = plan(workload(tpot={"p95": target}), explain=True)
                assert any(b.limit.target == TPOT_P95 and b.gains > 0 for b in tight.binding)
                found = True
        assert found

    def test_what_the_room_for_bursts_costs(self) -> None:
        """Where giving up half of what the utilisation limit keeps free takes nodes less, it is named, with what they cost."""
        named = 0
        for rate in (30.0, 45.0, 60.0, 75.0, 90.0):
            asked = workload(rate=rate, utilisation_limit_fraction=0.6)
            tight = plan(asked, explain=True)
            fuller = plan(replace(asked, utilisation_limit_fraction=0.8)).usd_per_hour
            said = [b for b in tight.binding if b.limit == Limit(LimitKind.UTILISATION, workload=0)]
            assert bool(said) == (fuller < tight.usd_per_hour - 1e-6)
            for one in said:
                assert one.relaxing_to == 0.8
                assert one.gains == pytest.approx(tight.usd_per_hour - fuller, abs=1e-6)
            named += len(said)
        assert named
        assert not any(b.limit.kind is LimitKind.UTILISATION for b in plan(workload(rate=60.0), explain=True).binding)

    def test_alternatives_without_the_chosen_device_are_dearer(self) -> None:
        found = plan(workload(rate=60.0), alternatives=2, explain=True)
        assert found.alternatives
        for other in found.alternatives:
            assert other.extra_usd_per_hour is None or other.extra_usd_per_hour >= -1e-9
            used = {e.offer.node.device.id for e in found.entries}
            assert not other.entries or {e.offer.node.device.id for e in other.entries} != used

    def test_one_token_prompts_and_replies(self) -> None:
        asked = workload(traffic=Traffic(fixed_lengths(1), fixed_lengths(1)), tpot={}, rate=50.0)
        holds(plan(asked), asked)
