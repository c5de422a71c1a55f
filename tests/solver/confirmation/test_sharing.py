"""Plans of several workloads: looks never rule out what holds, and a plan together costs no more than the workloads apart."""

import math
import random
from dataclasses import replace

import numpy as np
import pytest

from solver.capacity.sustained_rate import Bracket
from solver.confirmation import loop
from solver.confirmation.brackets import Brackets
from solver.confirmation.facts import Seen
from solver.confirmation.rivals import offered_to, simulate_rivals
from solver.confirmation.sharing import look_at_sharing
from solver.fleet import SolveOptions, solve_fleet
from solver.outcome import Outcome
from solver.planning.assemble import Assembly, assemble
from solver.planning.placements import Placement
from solver.planning.types import PlanningInput
from solver.recommend.recommend import screened, solve_request
from solver.workload import Workload
from tests.solver.planning_cases import MEMO, OFFERS, planning, workload


def random_workloads(seed: int, count: int = 3, llm: str = "llama-3.1-8b") -> tuple[Workload, ...]:
    rng = random.Random(seed)
    return tuple(
        workload(
            f"w{number}",
            llm,
            rate=math.exp(rng.uniform(0.0, 4.0)),
            ttft={"p95": rng.uniform(0.4, 2.0)},
            tpot={"p95": rng.uniform(0.02, 0.08)},
        )
        for number in range(count)
    )


def of(asked: PlanningInput) -> Assembly:
    return assemble(asked, [screened(asked, one, MEMO) for one in asked.workloads])


@pytest.mark.parametrize("seed", range(2))
def test_what_a_candidate_sustains_in_the_end_is_never_ruled_out(seed: int) -> None:
    # A model that no front end limits: of smaller ones screening knows the most that plans count on.
    assembly = of(planning(*random_workloads(seed, 2, "llama-3.1-70b")))
    brackets = Brackets(assembly.screened)
    simulate_rivals(assembly, brackets, lambda: True)
    look_at_sharing(assembly, brackets, 1e9, lambda: True)
    looked = lowered = 0
    for w, one in enumerate(assembly.screened):
        offered = offered_to(assembly, w)
        seen = brackets.are_seen(w, offered.alike, Seen.IN_ONE_DRAW)
        for row in np.unique(offered.alike[seen])[:12].tolist():
            most = brackets.at_most(w, row)
            assert brackets.settle(w, row).holds <= most
            looked, lowered = looked + 1, lowered + (most < one.only.most_requests_per_s[row])
    assert looked > 10
    assert lowered > looked / 2


def test_nothing_is_looked_at_whose_use_would_cost_more_than_there_is_to_save() -> None:
    assembly = of(planning(*random_workloads(1)))
    brackets = Brackets(assembly.screened)
    look_at_sharing(assembly, brackets, 0.0, lambda: True)
    assert brackets.simulations == 0


def test_looks_end_with_the_time() -> None:
    assembly = of(planning(*random_workloads(1)))
    brackets = Brackets(assembly.screened)
    look_at_sharing(assembly, brackets, 1e9, lambda: brackets.learnt == 0)
    assert sum(len(brackets.memo.of(one).seen) for one in assembly.screened) == 1


def test_what_time_ran_out_for_is_not_taken_as_looked_at() -> None:
    assembly = of(planning(*random_workloads(1)))
    brackets = Brackets(assembly.screened)
    left = iter([True, True, True])
    look_at_sharing(assembly, brackets, 1e9, lambda: next(left, False))
    assert brackets.learnt > 0
    assert not any(brackets.memo.of(one).seen for one in assembly.screened)


@pytest.mark.parametrize(("are_turns", "carried"), [(False, [0, 1]), (True, [0])])
def test_what_else_a_failing_plan_has_is_found_out_but_of_turns(
    are_turns: bool, carried: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the rest of a plan sustains spares rounds; of turns, a run of which is dear, a short look has to do."""
    assembly = of(planning(*random_workloads(1, 2)))
    places = [
        Placement(w, int(np.flatnonzero(one.serves)[0]), "any", 1, 1.0, 1.0) for w, one in enumerate(assembly.screened)
    ]
    found: list[int] = []
    looked: list[int] = []

    def carry(_: Brackets, workload: int, *_rest: object) -> Bracket:
        found.append(workload)
        return Bracket(0.0, 0.0)

    monkeypatch.setattr(Brackets, "carry", carry)
    monkeypatch.setattr(Brackets, "look", lambda _, workload, *_rest: looked.append(workload))
    monkeypatch.setattr(Brackets, "are_turns", lambda *_: are_turns)
    assert not Brackets(assembly.screened).hold(assembly, places, lambda: True)
    assert found == carried
    assert (1 in looked) or not are_turns


@pytest.mark.parametrize("seed", range(10, 16))
def test_together_costs_no_more_than_apart(seed: int) -> None:
    workloads = random_workloads(seed)
    together = solve_request(planning(*workloads), MEMO).result
    apart = [solve_request(planning(one), MEMO).result.usd_per_hour or math.inf for one in workloads]
    assert together.usd_per_hour is not None
    assert together.usd_per_hour <= math.fsum(apart) * (1 + 1e-9)
    assert together.outcome is Outcome.OPTIMAL


@pytest.mark.parametrize("seed", range(20, 24))
def test_looks_change_no_proven_price(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    workloads = random_workloads(seed, 2)
    looked = solve_request(planning(*workloads), MEMO).result
    monkeypatch.setattr(loop, "look_at_sharing", lambda *_: None)
    unlooked = solve_request(planning(*workloads), MEMO).result
    assert looked.outcome is unlooked.outcome is Outcome.OPTIMAL
    assert looked.usd_per_hour == pytest.approx(unlooked.usd_per_hour, rel=1e-6)


def test_no_plan_in_hand_is_no_harm() -> None:
    """Where no replica of a workload is known to hold, or a limit is in the way, there is simply no plan to beat."""
    few = tuple(replace(one, max_nodes=1) for one in OFFERS)
    asked = planning(*random_workloads(3), offers=few)
    found = solve_request(asked, MEMO).result
    assert found.outcome in (Outcome.OPTIMAL, Outcome.INFEASIBLE)


class TestKnown:
    """A plan in hand only makes a proof shorter."""

    def test_it_is_the_answer_where_nothing_is_cheaper(self) -> None:
        problem = of(planning(*random_workloads(5))).problem
        first = solve_fleet(problem)
        again = solve_fleet(problem, SolveOptions(), first)
        assert first.outcome is again.outcome is Outcome.OPTIMAL
        assert again.usd_per_hour == pytest.approx(first.usd_per_hour)

    def test_a_plan_beyond_the_limits_is_not(self) -> None:
        problem = of(planning(*random_workloads(5))).problem
        first = solve_fleet(problem)
        assert first.usd_per_hour is not None
        poorer = replace(problem, limits=replace(problem.limits, budget_usd_per_hour=first.usd_per_hour * 0.9))
        assert solve_fleet(poorer, SolveOptions(), first).plan is None
