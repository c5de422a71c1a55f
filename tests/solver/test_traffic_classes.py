"""Workloads of several traffic classes: planned together, each against its own targets, and confirmed as they mix."""

import math
import random
from dataclasses import replace

import numpy as np
import pytest

from service.recommendations.present_result import present_result
from solver.candidates.rejections import rejections
from solver.candidates.screening import with_targets
from solver.capacity.sustained_rate import is_settled
from solver.confirmation.brackets import Brackets
from solver.confirmation.confirmations import Confirmations
from solver.confirmation.mix_capacities import with_class_sets, with_mix_capacity
from solver.confirmation.mixes import MOST_MIXES, be_pessimistic, factors_of_mix, mix_holds, mix_ratios
from solver.errors import InvalidInputError, SaturatedError
from solver.fleet import solve_fleet, verify
from solver.lengths import uniform_lengths
from solver.limit import Limit, LimitKind, TargetLimit
from solver.planning.assemble import assemble
from solver.planning.placements import mix_capacity
from solver.planning.types import PlanLimits, Recommendation
from solver.prediction.streams import estimate_mixed
from solver.recommend.recommend import SpaceMemo, recommend, screened, solve_request
from solver.replay.one_stream import replay
from solver.replay.streams import RequestStream, replay_mixed, stream_counts
from solver.traffic_classes import ALONE, ClassSet, each_alone, with_rate
from solver.why.price_curve import PricedRequirement, price_curve
from solver.why.resolve import Clock
from solver.workload import Load, Targets, Traffic, TrafficClass, Workload, mixed_traffic
from tests.solver.planning_cases import A100, CHAT, H100, L4, L40S, MEMO, node, offer, plan, planning, workload
from tests.solver.samples import device

SHORT = Traffic(uniform_lengths(50, 300), uniform_lengths(50, 200))
LONG = Traffic(uniform_lengths(4_000, 12_000), uniform_lengths(50, 200))
WRITING = Traffic(uniform_lengths(200, 600), uniform_lengths(500, 1_500))
KINDS = (SHORT, LONG, WRITING, CHAT)
CONTEXT = 16_384


def kind(name: str, rate: float, traffic: Traffic, ttft_s: float = 1.0, tpot_s: float = 0.05) -> TrafficClass:
    return TrafficClass(name, rate, traffic, Targets({"p95": ttft_s}, {"p95": tpot_s}))


def mixed(*classes: TrafficClass, **changes: object) -> Workload:
    return replace(workload(context_tokens=CONTEXT), classes=classes, **changes)


ASSISTANT = (kind("short", 30.0, SHORT, 0.3, 0.03), kind("long", 3.0, LONG, 3.0, 0.1))


def random_classes(rng: random.Random, count: int) -> tuple[TrafficClass, ...]:
    return tuple(
        kind(f"k{k}", rng.uniform(1.0, 12.0), traffic, rng.choice((0.5, 1.0, 4.0)), rng.choice((0.03, 0.06, 0.2)))
        for k, traffic in enumerate(rng.sample(KINDS, count))
    )


def holds(found: Recommendation, asked: Workload, tolerance: float = 1.15) -> None:
    """Every line's mix meets each class's targets in a longer simulation with other arrivals, and everybody is served."""
    by_name = {one.name: one for one in asked.classes}
    served = dict.fromkeys(by_name, 0.0)
    for entry in found.entries:
        streams = [RequestStream(by_name[c.name].traffic, c.requests_per_s / entry.replicas) for c in entry.classes]
        for one in entry.classes:
            served[one.name] += one.requests_per_s
        if not streams:
            continue
        made = entry.configuration
        result = replay_mixed(made, made.tables(), streams, seed=99, requests=4_000)
        for one, of in zip(entry.classes, result.streams, strict=True):
            targets = by_name[one.name].targets
            for name, limit in targets.time_to_first_token_s.items():
                assert of.time_to_first_token_s[name] <= limit * tolerance, (entry.offer.id, one.name)
            for name, limit in targets.time_per_output_token_s.items():
                assert of.time_per_output_token_s[name] <= limit * tolerance, (entry.offer.id, one.name)
    for name, one in by_name.items():
        assert served[name] == pytest.approx(one.requests_per_s, rel=1e-5)


class TestPlans:
    @pytest.mark.parametrize("seed", range(6))
    def test_serve_every_class_within_its_targets(self, seed: int) -> None:
        rng = random.Random(seed)
        asked = mixed(*random_classes(rng, rng.choice((2, 3))))
        found = plan(asked)
        assert found.solve.outcome == "optimal"
        holds(found, asked)
        for name in {one.name for one in asked.classes}:
            shares = [c.share_fraction for e in found.entries for c in e.classes if c.name == name]
            assert math.fsum(shares) == pytest.approx(1.0)
        for entry in found.entries:
            assert 0.0 < entry.utilisation_fraction <= 1.0 + 1e-6
            assert entry.serves_requests_per_s == pytest.approx(math.fsum(c.requests_per_s for c in entry.classes))

    @pytest.mark.parametrize("seed", range(6))
    def test_classes_that_are_alike_are_one_stream(self, seed: int) -> None:
        rng = random.Random(seed)
        traffic, rate, parts = rng.choice(KINDS), rng.uniform(5.0, 40.0), rng.choice((2, 3, 5))
        tpot_s, ttft_s = rng.choice((0.03, 0.06)), rng.choice((1.0, 4.0))
        whole = plan(
            workload(context_tokens=CONTEXT, rate=rate, traffic=traffic, ttft={"p95": ttft_s}, tpot={"p95": tpot_s})
        )
        weights = [rng.uniform(0.1, 1.0) for _ in range(parts)]
        pieces = [kind(f"k{k}", rate * w / math.fsum(weights), traffic, ttft_s, tpot_s) for k, w in enumerate(weights)]
        divided = plan(mixed(*pieces))
        assert divided.usd_per_hour == pytest.approx(whole.usd_per_hour, rel=1e-9)
        assert divided.solve.objective == pytest.approx(whole.solve.objective, rel=1e-9)
        assert sum(e.serves_requests_per_s for e in divided.entries) == pytest.approx(rate)

    @pytest.mark.parametrize("seed", range(4))
    def test_cost_does_not_depend_on_names_order_or_halves(self, seed: int) -> None:
        rng = random.Random(seed)
        first, second = random_classes(rng, 2)
        base = plan(mixed(first, second)).usd_per_hour
        assert plan(mixed(second, replace(first, name="other"))).usd_per_hour == pytest.approx(base, rel=1e-6)
        half = first.requests_per_s / 2.0
        halves = (replace(first, requests_per_s=half), replace(first, name="twin", requests_per_s=half))
        assert plan(mixed(*halves, second)).usd_per_hour == pytest.approx(base, rel=1e-6)

    def test_no_more_than_workloads_of_their_own(self) -> None:
        """Classes may share replicas; separate workloads may too, but each at whole replicas of its own."""
        together = plan(mixed(*ASSISTANT))
        apart = plan(*(replace(one, name=one.only.name or "") for one in each_alone(mixed(*ASSISTANT))))
        assert together.usd_per_hour <= apart.usd_per_hour * (1.0 + 1e-9)

    def test_two_kinds_of_device_where_neither_alone_is_as_cheap(self) -> None:
        """Short replies go to small devices, long prompts to large ones: forced onto one of them, both cost more."""
        single = node("h100x1", device("h100-sxm"), 1)
        small, large, nodes = offer(L4, 0.25), offer(single, 3.0), (single, L4)
        asked = mixed(kind("short", 30.0, SHORT, 1.0, 0.1), kind("long", 2.0, LONG, 0.8, 0.05))
        found = plan(asked, offers=(small, large), nodes=nodes)
        holds(found, asked)
        shares = {
            e.offer.node.device.id: {c.name: c.share_fraction for c in e.classes}
            for e in sorted(found.entries, key=lambda e: e.serves_requests_per_s)
        }
        assert shares["l4"]["short"] > 0.8
        assert shares["h100-sxm"]["long"] == pytest.approx(1.0)
        assert not plan(asked, offers=(small,), nodes=nodes).entries
        assert plan(asked, offers=(large,), nodes=nodes).usd_per_hour > 1.2 * found.usd_per_hour

    def test_a_target_of_one_class_alone_costs_what_it_costs(self) -> None:
        free = mixed(ASSISTANT[0], replace(ASSISTANT[1], targets=Targets()))
        loose, tight = plan(free), plan(mixed(ASSISTANT[0], kind("long", 3.0, LONG, 0.9, 0.03)))
        assert loose.usd_per_hour <= plan(mixed(*ASSISTANT)).usd_per_hour <= tight.usd_per_hour

    def test_losses_and_shares_of_what_can_be_served(self) -> None:
        asked = mixed(*ASSISTANT)
        few = (offer(A100, 7.0, 1),)
        short = plan(asked, offers=few)
        assert not short.entries
        assert (
            Limit(LimitKind.RATE, workload=0)
            in {one.limit for one in short.relaxations} | {limit for c in short.conflicts for limit in c.limits}
            or short.largest_servable_multiple == 0.0
        )
        spare = plan(asked, limits=PlanLimits(spare_nodes=1))
        assert spare.usd_per_hour > plan(asked).usd_per_hour

    def test_an_impossible_class_is_named(self) -> None:
        found = plan(mixed(ASSISTANT[0], kind("long", 3.0, LONG, 1e-4, 0.1)))
        assert found.solve.outcome == "infeasible"
        assert any(
            (limit.traffic_class, limit.target) == ("long", TargetLimit("time_to_first_token_s", "p95"))
            for c in found.conflicts
            for limit in c.limits
        )
        assert {one.traffic_class for one in found.rejected} >= {"long"}
        missed = [one.missed.target.metric for one in found.rejected if one.traffic_class == "short" and one.missed]
        assert "time_to_first_token_s" not in missed

    def test_binding_targets_are_named_by_class(self) -> None:
        found = plan(mixed(kind("short", 60.0, SHORT, 0.3, 0.012), kind("long", 6.0, LONG, 1.2, 0.03)), explain=True)
        assert all(one.limit.traffic_class for one in found.binding if one.limit.target is not None)

    def test_alternatives_are_never_cheaper(self) -> None:
        for seed in range(3):
            rng = random.Random(100 + seed)
            found = replace(planning(mixed(*random_classes(rng, 3))), alternatives=2)
            solved_request = solve_request(found, MEMO)
            assert solved_request.alternatives is not None
            for one in solved_request.alternatives:
                assert one.extra_usd_per_hour is None or one.extra_usd_per_hour >= -1e-6

    def test_a_price_curve_of_one_class(self) -> None:
        solved_request = solve_request(planning(mixed(*ASSISTANT)), MEMO)
        of = PricedRequirement(TargetLimit("time_per_output_token_s", "p95"), 0, (0,))
        points = price_curve(solved_request, of, (0.012, 0.030, 0.060), MEMO, Clock(10.0))
        prices = [p.answer.usd_per_hour for p in points]
        assert prices[1] == solved_request.result.usd_per_hour
        assert all(p is not None for p in prices)
        assert sorted(prices, key=lambda p: -(p or 0.0)) == prices


class TestShapes:
    def test_a_mixture_has_the_mean_of_its_parts(self) -> None:
        rng = random.Random(3)
        parts = [(traffic, rng.uniform(0.1, 5.0)) for traffic in KINDS]
        total = sum(rate for _, rate in parts)
        found = mixed_traffic(parts)
        assert found.prompt.mean == pytest.approx(sum(t.prompt.mean * r for t, r in parts) / total)
        assert found.output.mean == pytest.approx(sum(t.output.mean * r for t, r in parts) / total)
        assert found.prompt.maximum == LONG.prompt.maximum

    def test_another_rate_keeps_the_proportions(self) -> None:
        asked = with_rate(mixed(*ASSISTANT), 66.0)
        assert [one.requests_per_s for one in asked.classes] == pytest.approx([60.0, 6.0])

    def test_names_and_rates_are_checked(self) -> None:
        with pytest.raises(InvalidInputError, match="one name"):
            mixed(ASSISTANT[0], ASSISTANT[0])
        for bad in (0.0, -1.0, math.nan, math.inf):
            with pytest.raises(InvalidInputError, match="above zero"):
                mixed(replace(ASSISTANT[0], requests_per_s=bad))

    def test_counts_add_up_and_nobody_is_left_out(self) -> None:
        rng = random.Random(8)
        for _ in range(200):
            rates = [10.0 ** rng.uniform(-3, 2) for _ in range(rng.randint(1, 6))]
            counts = stream_counts(rates, 500)
            assert min(counts) >= 1
            assert 500 <= sum(counts) <= 500 + len(rates)
            for rate, count in zip(rates, counts, strict=True):
                assert abs(count - 500 * rate / sum(rates)) <= 2.0

    def test_what_a_replica_serves_of_a_mix_lies_between_its_classes(self) -> None:
        rng = np.random.default_rng(4)
        for _ in range(100):
            capacity, rates = rng.uniform(0.1, 9.0, 3), rng.uniform(0.1, 9.0, 3)
            found = mix_capacity(capacity, rates)
            assert capacity.min() <= found * (1 + 1e-12)
            assert found <= capacity.max() * (1 + 1e-12)
            assert float((rates / rates.sum() * found / capacity).sum()) == pytest.approx(1.0)


class TestReplays:
    def setup_method(self) -> None:
        found = plan(workload(context_tokens=CONTEXT), offers=(offer(H100, 24.0),))
        self.made = found.entries[0].configuration
        self.tables = self.made.tables()

    def test_one_stream_is_replayed_as_ever(self) -> None:
        alone = replay(self.made, self.tables, CHAT, Load("open", requests_per_s=3.0), requests=800)
        found = replay_mixed(self.made, self.tables, [RequestStream(CHAT, 3.0)], requests=800)
        assert found.whole == alone
        assert found.streams == (alone,)

    def test_equal_streams_are_served_alike_and_as_one_would_be(self) -> None:
        alone = replay(self.made, self.tables, CHAT, Load("open", requests_per_s=4.0), requests=6_000)
        found = replay_mixed(
            self.made, self.tables, [RequestStream(CHAT, 1.0), RequestStream(CHAT, 3.0)], requests=6_000
        )
        for of in (found.whole, *found.streams):
            assert of.time_per_output_token_s["mean"] == pytest.approx(alone.time_per_output_token_s["mean"], rel=0.03)
            assert of.time_to_first_token_s["mean"] == pytest.approx(alone.time_to_first_token_s["mean"], rel=0.1)
        assert found.streams[0].requests_per_s == pytest.approx(found.whole.requests_per_s / 4.0, rel=1e-3)

    def test_company_of_long_prompts_makes_short_replies_slower(self) -> None:
        alone = replay_mixed(self.made, self.tables, [RequestStream(SHORT, 6.0)], requests=2_000).streams[0]
        beside = replay_mixed(
            self.made, self.tables, [RequestStream(SHORT, 6.0), RequestStream(LONG, 1.0)], requests=2_000
        )
        assert beside.streams[0].time_per_output_token_s["p95"] > 1.2 * alone.time_per_output_token_s["p95"]
        assert beside.streams[0].time_to_first_token_s["p95"] > 1.2 * alone.time_to_first_token_s["p95"]
        assert beside.whole.output_tokens_per_s == pytest.approx(
            sum(one.output_tokens_per_s for one in beside.streams), rel=0.02
        )

    def test_a_mix_above_capacity_is_refused(self) -> None:
        with pytest.raises(SaturatedError):
            replay_mixed(
                self.made, self.tables, [RequestStream(SHORT, 50.0), RequestStream(LONG, 30.0)], requests=2_000
            )
        for rate in (0.0, math.nan):
            with pytest.raises(InvalidInputError):
                replay_mixed(self.made, self.tables, [RequestStream(SHORT, 1.0), RequestStream(LONG, rate)])

    def test_cached_prefixes_are_each_streams_own(self) -> None:
        cached = replace(LONG, shared_prefix_fraction=0.9)
        without = replay_mixed(
            self.made, self.tables, [RequestStream(SHORT, 4.0), RequestStream(LONG, 1.0)], requests=1_000
        )
        found = replay_mixed(
            self.made, self.tables, [RequestStream(SHORT, 4.0), RequestStream(cached, 1.0)], requests=1_000
        )
        assert found.streams[1].time_to_first_token_s["mean"] < 0.5 * without.streams[1].time_to_first_token_s["mean"]

    def test_predictions_have_an_interval_for_each_stream(self) -> None:
        found = estimate_mixed(self.made, [RequestStream(SHORT, 4.0), RequestStream(LONG, 1.0)])
        for one in (found.whole, *found.streams):
            for times in (one.time_to_first_token_s, one.time_per_output_token_s, one.end_to_end_s):
                for value in times.values():
                    assert 0.0 < value.low <= value.expected <= value.high
        assert (
            found.streams[0].time_to_first_token_s["p95"].expected
            < found.streams[1].time_to_first_token_s["p95"].expected
        )


class TestConfirming:
    def setup_method(self) -> None:
        self.asked = mixed(kind("short", 30.0, SHORT, 0.2, 0.02), kind("long", 3.0, LONG, 3.0, 0.1))
        self.planning = planning(self.asked, offers=(offer(H100, 24.0), offer(L40S, 7.2)))
        self.one = screened(self.planning, self.asked, MEMO)
        able = np.flatnonzero(
            (self.one.classes[0].most_requests_per_s > 0) & (self.one.classes[1].most_requests_per_s > 0)
        )
        rows = self.one.space.rows
        self.row = next(row for row in able.tolist() if rows[row].layout.devices == 1)

    def test_capacities_come_to_what_holds_of_the_mix(self) -> None:
        found = Confirmations()
        rates = tuple(
            float(c.most_requests_per_s[self.row]) * p for c, p in zip(self.one.classes, (0.9, 0.1), strict=True)
        )
        work = sum(
            rate / float(c.most_requests_per_s[self.row]) for c, rate in zip(self.one.classes, rates, strict=True)
        )
        assert work == pytest.approx(1.0)
        assert not mix_holds(found, 0, self.one, self.row, (), rates)
        (factors,) = found.mix_factors.values()
        assert 0.0 < factors[1] < factors[0] < 1.0
        (held,) = found.held_mixes[0, self.row]
        assert max(mix_ratios(Confirmations(), self.one, self.row, held)) <= 1.0
        # At that mix the replica is full.
        full = math.fsum(
            r / (f * float(c.most_requests_per_s[self.row]))
            for c, f, r in zip(self.one.classes, factors, held, strict=True)
        )
        assert full == pytest.approx(1.0)
        count = found.simulations
        assert mix_holds(found, 0, self.one, self.row, (), tuple(rate * 0.99 for rate in held))
        assert found.simulations == count

    def test_the_cost_of_company_fills_the_replica(self) -> None:
        rng = random.Random(5)
        for _ in range(500):
            parts = [rng.choice((0.0, rng.uniform(0.01, 0.4))) for _ in range(rng.randint(2, 5))]
            whole = math.fsum(parts)
            if sum(part > 0.0 for part in parts) < 2 or whole > 1.0:
                continue
            found = factors_of_mix(parts)
            assert math.fsum(part / f for part, f in zip(parts, found, strict=True)) == pytest.approx(1.0)
            assert all(0.0 < f <= 1.0 for f in found)
            ordered = sorted((part, f) for part, f in zip(parts, found, strict=True) if part > 0.0)
            assert [f for _, f in ordered] == sorted(f for _, f in ordered)

    def test_classes_that_miss_may_part_from_those_that_do_not(self) -> None:
        found = Confirmations()
        rates = tuple(
            float(c.most_requests_per_s[self.row]) * part for c, part in zip(self.one.classes, (0.3, 0.6), strict=True)
        )
        assert not mix_holds(found, 0, self.one, self.row, (), rates)
        assert set(found.class_sets[0]) == {(0,), (1,)}

    def test_a_class_alone_says_nothing_of_others_but_holds_in_every_company(self) -> None:
        found = Confirmations()
        assert not mix_holds(
            found, 0, self.one, self.row, (), (float(self.one.classes[0].most_requests_per_s[self.row]) * 3, 0.0)
        )
        ((_, _, classes),) = found.mix_factors
        assert classes == ALONE
        found.class_sets[0] = ((0,), (1,))
        scales = found.scales([(0, self.one)])[0]
        assert scales[()][self.row, 0] == scales[(0,)][self.row, 0] < 1.0
        assert scales[()][self.row, 1] == 1.0

    def test_a_class_that_cannot_stand_alone_leaves_the_others_their_mix(self) -> None:
        asked = mixed(*self.asked.classes, kind("writing", 1.0, WRITING))
        one = screened(self.planning, asked, MEMO)
        found = Confirmations()
        found.mix_factors[0, self.row, ALONE] = (1.0, 1.0, 0.0)
        rates = tuple(
            float(c.most_requests_per_s[self.row]) * p for c, p in zip(one.classes, (0.9, 0.1, 0.0), strict=True)
        )
        assert not mix_holds(found, 0, one, self.row, (), rates)
        factors = found.mix_factors[0, self.row, ()]
        assert 0.0 < factors[1] < factors[0] < 1.0
        assert found.scales([(0, one)])[0][()][self.row, 2] == 0.0

    def test_a_row_whose_mixes_keep_failing_is_left_to_single_classes(self) -> None:
        found = Confirmations()
        for part in range(MOST_MIXES):
            share = 0.3 + 0.1 * part
            rates = tuple(
                float(c.most_requests_per_s[self.row]) * f * 2
                for c, f in zip(self.one.classes, (share, 1 - share), strict=True)
            )
            mix_holds(found, 0, self.one, self.row, (), rates)
        assert found.mix_factors[0, self.row, ()] == (0.0, 0.0)
        assert {(0,), (1,)} <= set(found.class_sets[0])

    def test_replicas_for_part_of_the_classes_change_nothing_while_mixes_hold(self) -> None:
        assembly = assemble(self.planning, [self.one])
        sets: dict[int, tuple[ClassSet, ...]] = {0: ((0,), (1,))}
        scales = Confirmations(class_sets=sets).scales([(0, self.one)])
        wider = with_class_sets(assembly, sets, scales)
        assert len(wider.problem.deployments) > len(assembly.problem.deployments)
        first, second = solve_fleet(assembly.problem), solve_fleet(wider.problem)
        assert first.usd_per_hour == pytest.approx(second.usd_per_hour)
        assert not verify(wider.problem, second)
        assert with_class_sets(wider, sets, scales) is wider

    def test_corrected_capacities_reach_the_problem(self) -> None:
        found = Confirmations()
        found.mix_factors[0, self.row, ()] = (0.5, 0.5)
        found.class_sets[0] = ((1,),)
        changed = with_mix_capacity(assemble(self.planning, [self.one]), found)
        table = changed.problem.deployments
        mine = (changed.row_of == self.row) & (changed.classes_of == 0)
        screened_rates = [float(c.most_requests_per_s[self.row]) for c in self.one.classes]
        assert table.capacity_requests_per_s[mine] == pytest.approx(np.array([screened_rates]) * 0.5)
        apart = changed.classes_of == 1
        assert (table.capacity_requests_per_s[apart, 0] == 0.0).all()
        # Of replicas for one class on the same devices the best is left.
        kinds = list(zip(table.node_type[apart].tolist(), table.devices_per_replica[apart].tolist(), strict=True))
        assert len(set(kinds)) == len(kinds)
        for on, rate in zip(kinds, table.capacity_requests_per_s[apart, 1].tolist(), strict=True):
            same = (changed.classes_of == 0) & (table.node_type == on[0]) & (table.devices_per_replica == on[1])
            assert rate == max(float(self.one.classes[1].most_requests_per_s[row]) for row in changed.row_of[same])

    def test_the_wary_plan_with_what_was_simulated_only(self) -> None:
        found = Confirmations()
        found.mix_factors[0, self.row, ()] = (0.5, 0.5)
        be_pessimistic(found, [self.one])
        scales = found.scales([(0, self.one)])[0]
        assert scales[()][self.row].tolist() == [0.5, 0.5]
        assert not np.delete(scales[()], self.row, axis=0).any()
        assert (scales[(0,)] == 1.0).all()
        changed = with_mix_capacity(assemble(self.planning, [self.one]), found)
        assert solve_fleet(changed.problem).plan is not None

    def test_targets_of_one_class_are_moved_alone(self) -> None:
        looser = with_targets(self.one, Targets(), 0)
        assert (looser.classes[0].most_requests_per_s >= self.one.classes[0].most_requests_per_s).all()
        assert (looser.classes[1].most_requests_per_s == self.one.classes[1].most_requests_per_s).all()
        assert {one.traffic_class for one in rejections(self.one)} <= {None, "short", "long"}


def test_replicas_that_stand_by_count_in_no_class() -> None:
    """A plan that time cut short may hold some: they cost, and serve nothing."""
    asked = planning(mixed(*ASSISTANT))
    found = recommend(asked, MEMO)
    idle = replace(found.entries[0], serves_requests_per_s=0.0, classes=(), estimate=None)
    told = present_result(asked, found, 1.0, lambda _: None)
    assert told.totals is not None
    beside = present_result(asked, replace(found, entries=(*found.entries, idle)), 1.0, lambda _: None)
    assert beside.totals is not None
    assert beside.totals.model_copy(update={"power_kw": None}) == told.totals.model_copy(update={"power_kw": None})
    assert len(beside.plan) == len(told.plan) + 1


def test_a_class_without_company_has_a_bracket() -> None:
    """What one replica carries of it is one rate, found as where it is the only traffic there is."""
    asked = mixed(*ASSISTANT)
    one = screened(planning(asked), asked, MEMO)
    confirmations = Confirmations()
    alone = screened(planning(each_alone(asked)[0]), each_alone(asked)[0], MEMO)
    row = int(np.argmax(alone.only.most_requests_per_s))
    too_much = float(one.classes[0].most_requests_per_s[row]) * 1.5
    assert not mix_holds(confirmations, 0, one, row, (), (too_much, 0.0))
    carried = alone.only.candidate(row).bracket(is_settled).holds
    factor = confirmations.mix_factors[0, row, ALONE][0]
    assert factor * float(one.classes[0].most_requests_per_s[row]) == pytest.approx(carried)
    assert mix_holds(confirmations, 0, one, row, (), (carried, 0.0))
    assert not confirmations.mixes_failed  # nothing is known of company
    before = confirmations.simulations
    assert mix_holds(confirmations, 0, one, row, (), (carried * 0.9, 0.0))
    assert confirmations.simulations == before


def test_what_was_simulated_before_is_learnt_all_the_same() -> None:
    """A bracket that becomes another is news to a request, whether or not the process had to simulate for it."""
    memo: SpaceMemo = {}
    asked = workload()

    def learnt() -> tuple[int, int]:
        one = screened(planning(asked), asked, memo)
        brackets = Brackets([one])
        row = one.alike(int(np.argmax(one.only.most_requests_per_s)))
        brackets.carry(0, row, float(one.only.most_requests_per_s[row]))
        return brackets.learnt, brackets.simulations

    cold, warm = learnt(), learnt()
    assert cold[0] == warm[0] > 0
    assert cold[1] > warm[1] == 0
