"""The search as a machine: where it may be, what a round leads to, and that every kind of replica is asked."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product

import pytest

from solver.confirmation.capacities import EveryCapacity
from solver.confirmation.confirmations import Confirmations
from solver.confirmation.facts import CandidateFacts, Seen
from solver.confirmation.loop import (
    NEXT,
    OPEN_STAGES,
    RoundOutcome,
    Search,
    SearchStage,
    capacities_of,
    solve_confirmed,
)
from solver.confirmation.mix_capacities import MOST_MIX_ROUNDS
from solver.outcome import Outcome
from solver.planning.assemble import Assembly, Floats, assemble
from solver.planning.placements import Placement
from solver.planning.types import PlanningInput, unobserved
from solver.recommend.recommend import screened
from solver.workload import Targets, TrafficClass, Workload
from tests.solver.planning_cases import CHAT, L40S, MEMO, SHORT, offer, planning, workload

ENDS = tuple(stage for stage in SearchStage if stage not in OPEN_STAGES)


class TestStages:
    def test_every_outcome_of_a_round_leads_somewhere_from_every_open_stage(self) -> None:
        assert set(NEXT) == set(product(OPEN_STAGES, RoundOutcome))

    def test_every_stage_is_reached(self) -> None:
        assert set(NEXT.values()) == set(SearchStage)

    def test_a_proof_is_never_a_draft_again(self) -> None:
        assert all(NEXT[SearchStage.PROOF, outcome] is not SearchStage.DRAFT for outcome in RoundOutcome)

    @pytest.mark.parametrize("outcome", [RoundOutcome.INFEASIBLE, RoundOutcome.FAILS_LAST, RoundOutcome.HOLDS_AS_BEST])
    def test_what_ends_a_search_ends_it_from_anywhere(self, outcome: RoundOutcome) -> None:
        (end,) = {NEXT[stage, outcome] for stage in OPEN_STAGES}
        assert end in ENDS

    def test_only_a_plan_that_holds_is_answered_as_held(self) -> None:
        held = {outcome for (_, outcome), stage in NEXT.items() if stage is SearchStage.HELD}
        assert held == {RoundOutcome.HOLDS, RoundOutcome.HOLDS_AS_BEST}


def of(asked: PlanningInput) -> Assembly:
    return assemble(asked, [screened(asked, one, MEMO) for one in asked.workloads])


@pytest.mark.parametrize("draft_first", [True, False])
def test_a_search_ends_where_its_last_round_leads(draft_first: bool) -> None:
    asked = planning(workload(rate=3.0), offers=(offer(L40S, 7.2),))
    stage = SearchStage.DRAFT if draft_first else SearchStage.PROOF
    search = Search(of(asked), asked, Confirmations(), unobserved, stage, None, None)
    search.run()
    assert search.stage is SearchStage.HELD
    _, result, rounds = search.answer(settles=True)
    assert result.outcome is Outcome.OPTIMAL
    assert rounds == search.rounds >= 1


def test_no_machine_at_all_ends_without_a_plan() -> None:
    asked = planning(workload(ttft={"p95": 1e-6}), offers=(offer(L40S, 7.2),))
    search = Search(of(asked), asked, Confirmations(), unobserved, SearchStage.DRAFT, None, None)
    search.run()
    assert search.stage is SearchStage.NO_PLAN
    assert search.answer(settles=True)[1].plan is None


@dataclass
class Kind:
    """Replicas that hold or do not."""

    holds: bool
    known_by_candidate: bool = True
    most_rounds: float = math.inf
    asked: list[str] = field(default_factory=list)

    def assumed(self, assembly: Assembly) -> Assembly:
        return assembly

    def confirmed(self, assembly: Assembly) -> Assembly:
        return assembly

    def apart(self, assembly: Assembly) -> Assembly:
        return assembly

    def hold(self, _assembly: Assembly, _places: Sequence[Placement], _in_time: Callable[[], bool]) -> bool:
        self.asked.append("hold")
        return self.holds

    def hold_confirmed(self, _assembly: Assembly, _places: Sequence[Placement]) -> bool:
        self.asked.append("hold_confirmed")
        return self.holds

    def settle_plan(
        self, _assembly: Assembly, _places: Sequence[Placement], _capacity: Floats, _in_time: Callable[[], bool]
    ) -> None:
        self.asked.append("settle_plan")

    def be_pessimistic(self) -> None:
        self.asked.append("be_pessimistic")


@pytest.mark.parametrize("holds", list(product([True, False], repeat=2)))
def test_a_plan_holds_where_all_kinds_hold_and_all_of_them_learn(holds: tuple[bool, bool]) -> None:
    assembly, kinds = of(planning(workload(), offers=(offer(L40S, 7.2),))), [Kind(one) for one in holds]
    every = EveryCapacity(kinds)
    assert every.hold(assembly, [], lambda: True) is all(holds)
    assert every.hold_confirmed(assembly, []) is all(holds)
    assert all(one.asked == ["hold", "hold_confirmed"] for one in kinds)


def test_the_most_cautious_kind_decides() -> None:
    every = EveryCapacity([Kind(True), Kind(True, known_by_candidate=False, most_rounds=7)])
    assert not every.known_by_candidate
    assert every.most_rounds == 7


def classes(*names: str | None) -> Workload:
    kinds = tuple(TrafficClass(name, 2.0, CHAT, Targets({"p95": 1.0}, {"p95": 0.05})) for name in names)
    return workload(classes=kinds)


@pytest.mark.parametrize(("names", "is_exact"), [((None,), True), (("only",), True), (("one", "other"), False)])
def test_requests_of_one_kind_have_brackets_whatever_they_are_called(
    names: tuple[str | None, ...], is_exact: bool
) -> None:
    asked = planning(classes(*names), offers=(offer(L40S, 7.2),))
    found = capacities_of(of(asked), Confirmations())
    assert found.known_by_candidate is is_exact
    assert found.most_rounds == (math.inf if is_exact else MOST_MIX_ROUNDS)


def test_a_name_for_the_only_class_changes_no_plan() -> None:
    answers = set()
    for name in (None, "only"):
        asked = planning(classes(name), offers=(offer(L40S, 7.2),))
        _, result, _ = solve_confirmed(of(asked), asked, Confirmations())
        assert result.outcome is Outcome.OPTIMAL
        answers.add((result.usd_per_hour, result.bound, result.status))
    assert len(answers) == 1


@pytest.mark.parametrize(("first", "then"), list(product(Seen, repeat=2)))
def test_what_is_seen_stays_seen(first: Seen, then: Seen) -> None:
    facts = CandidateFacts()
    facts.see(3, first)
    facts.see(3, then)
    assert [facts.is_seen(3, how) for how in Seen] == [how <= max(first, then) for how in Seen]
    assert facts.is_seen(4, Seen.NOT)
    assert not facts.is_seen(4, Seen.SHORTLY)


def test_workloads_state_rates_and_lengths_of_classes_only() -> None:
    short = TrafficClass("short", 6.0, SHORT, Targets())
    both = workload(classes=(TrafficClass("chat", 2.0, CHAT, Targets()), short))
    assert both.requests_per_s == 8.0
    assert both.traffic.prompt.mean == pytest.approx((2.0 * CHAT.prompt.mean + 6.0 * SHORT.prompt.mean) / 8.0)
    assert both.is_mixed
    assert workload(classes=(short,)).traffic is SHORT
    assert workload(classes=(short,)).only is short
    with pytest.raises(ValueError, match="unpack"):
        _ = both.only
