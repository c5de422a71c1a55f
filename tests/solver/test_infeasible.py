"""Requests that no plan serves: what conflicts, what each way out costs, and that it works."""

from dataclasses import replace
from itertools import pairwise

import pytest

from solver.errors import InvalidInputError
from solver.explain.infeasible import MUCH_CHEAPER
from solver.limit import Limit, LimitKind, TargetLimit
from solver.planning.types import PlanLimits, PlanningInput, Recommendation, Relaxation
from solver.recommend.recommend import recommend
from solver.traffic_classes import with_rate, with_targets_of
from tests.solver.planning_cases import (
    A100,
    L4,
    L40S,
    MEMO,
    TPOT_P95,
    cost,
    offer,
    plan,
    planning,
    workload,
)

PRICED_TO = 0.0101
"""Of a plan that a changed limit would admit: its price is stated to one per cent."""


class TestInfeasible:
    def relaxed(self, asked: PlanningInput, change: Relaxation) -> PlanningInput:
        """The request with one suggested change made."""
        assert change.to_value is not None
        value, limits, one = change.to_value, asked.limits, asked.workloads[0]
        match change.limit:
            case Limit(LimitKind.BUDGET):
                return replace(asked, limits=replace(limits, max_usd_per_hour=value))
            case Limit(LimitKind.POWER):
                return replace(asked, limits=replace(limits, max_power_w=value))
            case Limit(LimitKind.SPARE_NODES):
                return replace(asked, limits=replace(limits, spare_nodes=int(value)))
            case Limit(LimitKind.NODES, of=offer_id):
                most = int(value)
                return replace(
                    asked, offers=tuple(replace(o, max_nodes=most) if o.id == offer_id else o for o in asked.offers)
                )
            case Limit(LimitKind.RATE):
                return replace(asked, workloads=(with_rate(one, value),))
            case Limit(LimitKind.TARGET, target=TargetLimit(metric, percentile)):
                values = {**getattr(one.only.targets, metric), percentile: value}
                return replace(
                    asked, workloads=(with_targets_of(one, 0, replace(one.only.targets, **{metric: values})),)
                )
            case other:
                raise AssertionError(other)

    def refused(self, asked: PlanningInput) -> Recommendation:
        found = recommend(asked, MEMO)
        assert found.solve.outcome == "infeasible"
        assert not found.entries
        assert found.conflicts
        assert found.relaxations
        return found

    @pytest.mark.parametrize(
        ("name", "asked"),
        [
            ("budget", planning(workload(rate=60.0), limits=PlanLimits(max_usd_per_hour=5.0))),
            ("power", planning(workload(rate=60.0), limits=PlanLimits(max_power_w=1_000.0))),
            ("tpot", planning(workload(tpot={"p95": 0.002}))),
            ("ttft", planning(workload(ttft={"p95": 0.008}))),
            ("demand", planning(workload(rate=500.0), offers=[offer(A100, 7.0, most=2)])),
            ("tpot-small", planning(workload(tpot={"p95": 0.005}), offers=[offer(L40S, 7.2), offer(L4, 0.8)])),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_every_relaxation_works(self, name: str, asked: PlanningInput) -> None:
        found = self.refused(asked)
        for change in found.relaxations:
            made = recommend(self.relaxed(asked, change), MEMO)
            assert made.solve.outcome != "infeasible", (name, change)
            if change.usd_per_hour is not None:
                assert made.usd_per_hour == pytest.approx(change.usd_per_hour, rel=PRICED_TO), (name, change)

    def test_fewer_bits_are_a_way_out_where_they_are(self) -> None:
        """A 16-bit model reads too many bytes a token for the target on the only device there is; an 8-bit one does not."""
        tight = workload(tpot={"p95": 0.007}, rate=5.0)
        asked = planning(tight, offers=[offer(L40S, 7.2)], explain=True)
        without = self.refused(asked)
        assert without.lower_precision is None, "nobody named lower formats"
        found = self.refused(replace(asked, lower_formats={tight.name: (("fp8",), ("fp8",))}))
        lower = found.lower_precision
        assert lower is not None
        assert lower.gains is None, "there is no plan to gain over"
        assert lower.entries
        in_bits = replace(tight, weight_formats=("fp8",), kv_cache_formats=("bf16", "fp8"))
        assert lower.usd_per_hour == pytest.approx(cost(plan(in_bits, offers=[offer(L40S, 7.2)])))

    def test_fewer_bits_that_do_not_help_are_said_not_to(self) -> None:
        hopeless = workload(tpot={"p95": 0.0002})
        asked = replace(planning(hopeless, explain=True), lower_formats={"chat": (("fp8",), ("fp8",))})
        found = self.refused(asked)
        assert found.lower_precision is not None
        assert (found.lower_precision.usd_per_hour, found.lower_precision.entries) == (None, ())

    def test_targets_are_relaxed_to_three_digits_and_far_cheaper_ones_are_said_too(self) -> None:
        found = self.refused(planning(workload(tpot={"p95": 0.005}), offers=[offer(L40S, 7.2), offer(L4, 0.8)]))
        targets = [change for change in found.relaxations if change.limit.kind is LimitKind.TARGET]
        assert targets
        for change in targets:
            assert change.to_value == float(f"{change.to_value:.3g}")
        by_value = sorted(targets, key=lambda change: change.to_value or 0.0)
        for tighter, looser in pairwise(by_value):
            assert tighter.usd_per_hour is not None
            assert looser.usd_per_hour is not None
            assert looser.usd_per_hour < MUCH_CHEAPER * tighter.usd_per_hour

    def test_conflicts_name_what_is_in_the_way(self) -> None:
        budget = self.refused(planning(workload(rate=60.0), limits=PlanLimits(max_usd_per_hour=5.0)))
        assert any(Limit(LimitKind.BUDGET) in c.limits for c in budget.conflicts)
        target = self.refused(planning(workload(tpot={"p95": 0.002})))
        assert any(limit.target == TPOT_P95 for c in target.conflicts for limit in c.limits)

    def test_the_largest_servable_share_can_be_served(self) -> None:
        asked = planning(workload(rate=500.0), offers=[offer(A100, 7.0, most=2)])
        share = self.refused(asked).largest_servable_multiple
        assert share is not None
        assert 0.0 < share < 1.0
        served = recommend(replace(asked, workloads=(workload(rate=500.0 * share),)), MEMO)
        assert served.solve.outcome != "infeasible"

    def test_a_model_nothing_holds(self) -> None:
        with pytest.raises(InvalidInputError, match="fits no device"):
            plan(workload(llm="llama-3.1-405b"), offers=[offer(L4, 0.8)], nodes=(L4,))

    def test_rejections_say_how_near_they_came(self) -> None:
        found = plan(workload(tpot={"p95": 0.02}, rate=10.0))
        by_device = {r.device_id: r.missed for r in found.rejected if r.missed is not None}
        assert by_device["l4"].target == TPOT_P95
        assert by_device["l4"].best_s > by_device["l4"].target_s == 0.02


class TestContradictions:
    def test_limits_of_several_workloads_are_named_and_priced(self) -> None:
        """Two workloads of which the nodes on offer serve one: more nodes are among the ways out, with the price."""
        one, two = workload("one", rate=60.0, tpot={"p95": 0.03}), workload("two", rate=60.0, tpot={"p95": 0.03})
        few = [offer(A100, 7.0, 1), offer(L40S, 7.2, 1)]
        found = plan(one, two, offers=few)
        assert found.solve.outcome == "infeasible"
        assert [c.limits for c in found.conflicts] == [(Limit(LimitKind.NODES),)]
        wider = {r.limit.of: r for r in found.relaxations if r.limit.kind is LimitKind.NODES}
        assert wider
        for name, relaxation in wider.items():
            assert isinstance(relaxation.to_value, float | int)
            allowed = [replace(o, max_nodes=int(relaxation.to_value)) if o.id == name else o for o in few]
            made = plan(one, two, offers=allowed)
            assert made.solve.outcome == "optimal"
            assert relaxation.usd_per_hour == pytest.approx(cost(made), rel=PRICED_TO)

    def test_a_budget_and_a_spare_that_contradict_each_other(self) -> None:
        one, two = workload("one", rate=60.0, tpot={"p95": 0.03}), workload("two", rate=60.0, tpot={"p95": 0.03})
        free = plan(one, two)
        tight = PlanLimits(max_usd_per_hour=cost(free) * 1.01, spare_nodes=1)
        found = plan(one, two, limits=tight)
        assert {c.limits for c in found.conflicts} == {(Limit(LimitKind.BUDGET), Limit(LimitKind.SPARE_NODES))}
        priced = {r.limit.kind: r.usd_per_hour for r in found.relaxations}
        assert priced[LimitKind.SPARE_NODES] == pytest.approx(cost(free), rel=PRICED_TO)
        least = cost(plan(one, two, limits=PlanLimits(spare_nodes=1)))
        assert priced[LimitKind.BUDGET] == pytest.approx(least, rel=PRICED_TO)
