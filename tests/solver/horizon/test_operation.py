"""Plans that keep to rules of operation: against trying everything, in one programme and in parts, and checked by walking hours."""

import math
import time
from dataclasses import replace

import numpy as np
import pytest

from solver.horizon import operable
from solver.horizon.choose import chosen_configurations, even_choices
from solver.horizon.operable import blocking_rules, free_of_rules, solve_operable
from solver.horizon.operation import RULES, Operation
from solver.horizon.period import PeriodChoice
from solver.horizon.plan import HorizonPlan, HorizonResult
from solver.horizon.problem import HorizonDeployment, HorizonProblem, HourlyOffer, NodeType, Period
from solver.horizon.repair import repaired
from solver.horizon.solve import HorizonOptions, solve_horizon
from solver.horizon.verify import verify, verify_plan
from solver.outcome import Outcome
from tests.seeds import cases
from tests.solver.horizon.operating import cheapest_operated, tiny_operated

INSTANCES = cases(400)
EXACT = HorizonOptions(time_limit_s=60.0, gap_fraction=0.0)


def solved(problem: HorizonProblem, options: HorizonOptions = EXACT) -> HorizonResult:
    return solve_operable(problem, options, time.process_time)


def test_equals_enumeration() -> None:
    """On tiny problems the plan costs what the best one found by trying everything does; rules often cost something."""
    infeasible = dearer = 0
    by_rule = dict.fromkeys(RULES, 0)
    for seed in range(INSTANCES):
        problem = tiny_operated(seed)
        result, best = solved(problem), cheapest_operated(problem)
        assert verify(problem, result) == [], seed
        if math.isinf(best):
            assert result.outcome is Outcome.INFEASIBLE, seed
            infeasible += 1
            continue
        assert result.outcome is Outcome.OPTIMAL, seed
        assert result.usd == pytest.approx(best, rel=1e-6), seed
        free = solve_horizon(free_of_rules(problem), EXACT, time.process_time)
        assert free.usd is not None
        if result.usd is not None and result.usd > free.usd * (1.0 + 1e-6):
            dearer += 1
            for rule in problem.operation.rules:
                by_rule[rule] += 1
    assert infeasible > 0.05 * INSTANCES
    assert dearer > 0.2 * INSTANCES
    assert min(by_rule.values()) > 0.03 * INSTANCES


def test_in_parts_keeps_to_the_rules_and_is_never_below_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    """What large problems do, on tiny ones: configurations kept, periods planned, months made anew, bounded without rules."""
    compared = equal = 0
    instances = cases(120)
    for seed in range(instances):
        problem = tiny_operated(seed)
        best = solved(problem)
        monkeypatch.setattr(operable, "MOST_COLUMNS", 0)
        result = solved(problem, HorizonOptions(3.0, 0.0))
        monkeypatch.undo()
        if best.usd is None:
            assert result.plan is None, seed
            continue
        if result.usd is None:  # the configurations kept, or the commitments, allow none: said, not made up
            assert result.outcome is Outcome.UNKNOWN, seed
            continue
        assert verify(problem, result) == [], seed
        assert result.bound_usd is not None
        assert result.bound_usd <= best.usd * (1.0 + 1e-9) <= result.usd * (1.0 + 2e-9), seed
        compared += 1
        equal += result.usd <= best.usd * (1.0 + 1e-6)
    assert compared > 0.66 * instances
    assert equal > 0.6 * compared


def two_ways(rates: tuple[float, ...], operation: Operation, sequence: tuple[int, ...]) -> HorizonProblem:
    """One workload on large nodes (10 requests/s, 9 USD an hour) or small ones (1 request/s, 1 USD an hour)."""
    hours = [730.0 * sequence.count(t) / len(sequence) for t in range(len(rates))]
    return HorizonProblem(
        1,
        ("chat",),
        tuple(Period(0, h, (rate,)) for h, rate in zip(hours, rates, strict=True)),
        (NodeType("large", 1), NodeType("small", 1)),
        (HorizonDeployment(0, 0, 1, 10.0, 0), HorizonDeployment(0, 1, 1, 1.0, 1)),
        (HourlyOffer("large", 0, 9.0), HourlyOffer("small", 1, 1.0)),
        operation=operation,
        sequences=(sequence,),
    )


@pytest.mark.parametrize(
    ("operation", "usd_per_three_hours"),
    [
        (Operation(), 12.0 + 1.0 + 12.0),
        (Operation(max_configurations=1), 13.0 + 1.0 + 13.0),
        (Operation(min_up_hours=3), 12.0 + 12.0 + 12.0),
        (Operation(max_change_fraction=0.1), 12.0 + 2.0 + 12.0),
    ],
    ids=["free", "one configuration", "always up", "one replica more or less"],
)
def test_by_hand(operation: Operation, usd_per_three_hours: float) -> None:
    """13 requests/s in two of three hours, served best by a large node and three small ones; 1 in the other."""
    problem = two_ways((13.0, 1.0), operation, (0, 1, 0))
    result = solved(problem)
    assert verify(problem, result) == []
    assert result.usd == pytest.approx(usd_per_three_hours * 730.0 / 3.0)


def plan_of(nodes: list[tuple[int, int]]) -> HorizonPlan:
    choices = [PeriodChoice(one, (0, 0), one, (0, 0), ()) for one in nodes]
    return HorizonPlan((), tuple(choices))


def test_plans_that_break_a_rule_are_refused_by_its_name() -> None:
    problem = two_ways((3.0, 1.0, 2.0), Operation(1, 2, 0.5), (0, 1, 2))
    kept = plan_of([(0, 3), (0, 3), (0, 3)])
    assert verify_plan(problem, kept) == []
    for nodes, rule in (
        ([(1, 0), (1, 0), (0, 2)], "max_configurations"),
        ([(0, 4), (0, 3), (0, 3)], "min_up_hours"),
        ([(0, 3), (0, 1), (0, 3)], "max_change_percent_per_hour"),
    ):
        errors = verify_plan(problem, plan_of(nodes))
        assert any(error.startswith(rule) for error in errors), (nodes, errors)


def test_where_nodes_are_few_the_rule_in_the_way_is_named() -> None:
    """Two large nodes and one small one serve 21 requests/s together, none of them alone."""
    free = two_ways((21.0, 1.0), Operation(), (0, 1))
    few = (replace(free.hourly[0], max_nodes=2), replace(free.hourly[1], max_nodes=1))
    problem = replace(free, hourly=few, operation=Operation(max_configurations=1, min_up_hours=2))
    result = solved(problem)
    assert result.outcome is Outcome.INFEASIBLE
    assert blocking_rules(problem, time.monotonic, 5.0) == ("max_configurations",)
    assert "limits.operation.max_configurations" in result.reasons[0]
    assert "min_up_hours" not in result.reasons[0]
    assert solved(replace(problem, operation=Operation(min_up_hours=2))).plan is not None


def test_repair_only_adds_and_keeps_to_the_rules() -> None:
    """Choices of single periods made to follow each other: no fewer replicas anywhere, and the checker agrees."""
    changed = 0
    instances = cases(150)
    for seed in range(instances):
        problem = replace(tiny_operated(seed), operation=Operation(None, 2, 0.3), commitments=())
        free = solve_horizon(free_of_rules(problem), EXACT, time.process_time)
        if free.plan is None:
            continue
        before = dict(enumerate(free.plan.choices))
        nothing, after = np.zeros(len(problem.node_types)), {}
        for month in range(problem.months):
            made = repaired(problem, month, before, nothing)
            assert made is not None or any(offer.max_nodes is not None for offer in problem.hourly), seed
            after |= made or {}
        if len(after) < len(problem.periods):
            continue
        plan = HorizonPlan((), tuple(after[t] for t in range(len(problem.periods))))
        assert verify_plan(problem, plan) == [], seed
        for t, choice in before.items():
            assert all(a >= b for a, b in zip(after[t].replicas, choice.replicas, strict=True)), seed
        changed += plan.present_usd(problem) > free.plan.present_usd(problem) + 1e-6
    assert changed > 0.13 * instances


def test_chosen_configurations_are_few_and_serve_every_period() -> None:
    chosen = 0
    for seed in range(60):
        problem = replace(tiny_operated(seed), operation=Operation(max_configurations=1))
        kept = chosen_configurations(problem, time.process_time, 2.0)
        best = solved(problem)
        if kept is None:
            continue
        workloads = [problem.deployments[d].workload for d in kept]
        assert len(workloads) == len(set(workloads)), seed
        chosen += best.plan is not None
    assert chosen > 20


def test_even_choices_serve_their_periods() -> None:
    for seed in range(60):
        problem = tiny_operated(seed)
        for choice in even_choices(problem):
            assert all(n >= 0 for n in choice.replicas), seed
        served = [
            sum(n * d.requests_per_s for n, d in zip(choice.replicas, problem.deployments, strict=True))
            for choice in even_choices(problem)
        ]
        if served:
            assert max(served) >= max(sum(p.requests_per_s) for p in problem.periods) * (1.0 - 1e-9), seed
