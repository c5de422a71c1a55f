"""What a replica sustains: monotone in every target and bounded, whatever simulation says; and found where it is plain."""

import math
import random
from collections.abc import Mapping
from dataclasses import replace

import pytest

from solver.capacity.goal import DRAW_EXCESS, QUICK_EXCESS, QUICK_LIKELY, Goal
from solver.capacity.runs import Runs, TableMemo, rung, rung_at_least
from solver.capacity.sustained_rate import (
    FAR,
    ONE_DRAW,
    QUICK_LOOK,
    RUNGS,
    Bracket,
    CandidateReplica,
    Look,
    carries,
    is_settled,
    sustained,
)
from solver.replay.draw_sizes import QUICK_SEED
from solver.replay.latencies import Latencies
from solver.replay.one_stream import capacity_requests_per_s
from solver.workload import PERCENTILES, Percentile, Targets
from tests.llm_shapes import shape
from tests.solver.confirmation.noise import growing, made_up, noisy
from tests.solver.planning_cases import CHAT
from tests.solver.samples import configuration

NEXT_RUNG = rung(1)


def random_goal(rng: random.Random) -> Goal:
    def limits() -> dict[Percentile, float]:
        return {name: math.exp(rng.gauss(0.5, 0.8)) for name in PERCENTILES if rng.random() < 0.4}

    targets = Targets(limits(), limits(), limits())
    factors = {"time_to_first_token": rng.uniform(0.7, 1.4), "end_to_end.p95": rng.uniform(0.7, 1.4)}
    return Goal(targets, factors, rng.uniform(1.0, 1.2), rng.choice((0.0, 0.1)))


def loosened(goal: Goal, rng: random.Random) -> Goal:
    """Every target kept, moved up or dropped."""

    def looser(limits: Mapping[Percentile, float]) -> dict[Percentile, float]:
        kept = {name: limit for name, limit in limits.items() if rng.random() > 0.1}
        return {name: limit * rng.choice((1.0, 1.0 + 1e-9, rng.uniform(1.0, 1.1), 3.0)) for name, limit in kept.items()}

    of = goal.targets
    return replace(
        goal,
        targets=Targets(looser(of.time_to_first_token_s), looser(of.time_per_output_token_s), looser(of.end_to_end_s)),
    )


class TestNoise:
    """Verdicts that jump from rate to rate as they please."""

    @pytest.mark.parametrize("seed", range(40))
    def test_never_falls_as_a_target_is_loosened(self, seed: int) -> None:
        rng = random.Random(seed)
        runs, anchor = noisy(seed, rng.choice((0.0, 0.1, 0.5))), math.exp(rng.uniform(-3.0, 6.0))
        most = anchor * rng.choice((1.0, rng.uniform(0.01, 1.0)))
        goal = random_goal(rng)
        before = 0.0
        for _ in range(12):
            found = sustained(runs, goal, most, anchor, is_settled)
            assert found.holds == found.at_most
            assert before <= found.holds <= most
            before, goal = found.holds, loosened(goal, rng)
            most = min(anchor, most * rng.choice((1.0, 1.0, 1.2)))

    def test_the_cases_above_are_neither_all_nothing_nor_all_the_bound(self) -> None:
        found = [
            sustained(noisy(s, (0.0, 0.1, 0.5)[s % 3]), random_goal(random.Random(s)), 5.0, 9.0, is_settled).holds
            for s in range(60)
        ]
        assert sum(0.0 < value < 4.9 for value in found) > 20
        assert found.count(0.0) > 2

    @pytest.mark.parametrize("seed", range(40))
    def test_every_bracket_on_the_way_holds_what_is_found_in_the_end(self, seed: int) -> None:
        rng = random.Random(seed)
        runs, goal, anchor, most = noisy(seed), random_goal(rng), 20.0, rng.uniform(0.5, 20.0)
        steps = [sustained(runs, goal, most, anchor)]
        for _ in range(4):
            steps.append(sustained(runs, goal, most, anchor, carries(rng.uniform(0.0, 1.1) * most)))
            steps.append(sustained(runs, goal, most, anchor))
        end = sustained(runs, goal, most, anchor, is_settled).holds
        assert steps[0].at_most == most
        for bracket in steps:
            assert bracket.holds <= end <= bracket.at_most <= most
        assert sustained(noisy(seed), goal, most, anchor, is_settled).holds == end, "whatever was asked before"

    @pytest.mark.parametrize("seed", range(40))
    def test_an_open_bracket_answers_its_question_as_a_closed_one_does(self, seed: int) -> None:
        rng = random.Random(seed)
        goal = random_goal(rng)
        end = sustained(noisy(seed), goal, 9.0, 20.0, is_settled).holds
        near = [end * factor for factor in (1.0 / NEXT_RUNG, 1.0, 1.0 + 1e-9, NEXT_RUNG)]
        for rate in (*near, *(rng.uniform(0.0, 10.0) for _ in range(6))):
            bracket = sustained(noisy(seed), goal, 9.0, 20.0, carries(rate))
            assert (bracket.holds >= rate) is (end >= rate)

    @pytest.mark.parametrize("seed", range(20))
    def test_simulates_no_more_than_the_question_takes(self, seed: int) -> None:
        runs, goal = noisy(seed, 0.0), random_goal(random.Random(seed))
        sustained(runs, goal, 10.0, 10.0)
        assert runs.simulations == 0
        bracket = sustained(runs, goal, 10.0, 10.0, carries(12.0))
        assert bracket.at_most <= 10.0, "more than the bound is known without simulating near it"
        assert len(runs.by_rate) <= 1
        sustained(runs, goal, 10.0, 10.0, is_settled)
        settled = runs.simulations
        sustained(runs, goal, 10.0, 10.0, is_settled)
        assert runs.simulations == settled

    def test_a_candidate_that_screening_rules_out_is_not_simulated(self) -> None:
        runs = noisy(1)
        for most, anchor in ((0.0, 5.0), (5.0, 0.0)):
            bracket = sustained(runs, Goal(Targets()), most, anchor, is_settled)
            assert (bracket.holds, bracket.at_most) == (0.0, 0.0)
        assert runs.simulations == 0


class TestPlainCases:
    """Values that grow with the rate: the rate at which they meet the target is found to a rung."""

    @pytest.mark.parametrize("seed", range(30))
    def test_the_crossing_is_found(self, seed: int) -> None:
        rng = random.Random(seed)
        knee, exponent = math.exp(rng.uniform(-2.0, 5.0)), rng.uniform(0.5, 6.0)
        goal = Goal(Targets({"p95": rng.uniform(0.5, 2.0)}))
        true = knee * goal.targets.time_to_first_token_s["p95"] ** (1.0 / exponent)
        anchor = true * rng.uniform(1.5, 5.0)
        found = sustained(growing(knee, exponent), goal, anchor, anchor, is_settled).holds
        assert true / NEXT_RUNG * (1.0 - 1e-9) <= found <= true

    @pytest.mark.parametrize("seed", range(60))
    def test_what_is_said_of_one_rate_after_another_brackets_what_is_found_in_the_end(self, seed: int) -> None:
        """A plan's capacity is settled last: it must carry what the plan was told it carries."""
        rng = random.Random(seed)
        knee, exponent = math.exp(rng.uniform(-1.0, 3.0)), rng.uniform(0.5, 6.0)
        runs, goal, most = growing(knee, exponent), Goal(Targets({"p95": 1.0})), knee * rng.uniform(0.7, 1.6)
        end = sustained(runs, goal, most, most, is_settled).holds
        asked = [end * rng.uniform(0.995, 1.005) for _ in range(8)] + [rng.uniform(0.0, most) for _ in range(4)]
        rng.shuffle(asked)
        one, bracket = CandidateReplica(runs, goal, most, most), Bracket(0.0, most)
        for number, rate in enumerate(asked):
            if not bracket.holds < rate <= bracket.at_most:
                continue
            bracket = one.carrying(rate, bracket, looked=number > 0)
            assert bracket.holds <= end <= bracket.at_most
            assert bracket.holds >= rate or bracket.at_most < rate

    @pytest.mark.parametrize("seed", range(30))
    def test_no_more_rates_are_looked_at_than_a_bisection_meets(self, seed: int) -> None:
        rng = random.Random(seed)
        exponent, anchor = rng.uniform(0.5, 6.0), rng.uniform(1.1, 50.0)
        runs = growing(1.0, exponent)
        sustained(runs, Goal(Targets({"p95": 1.0})), anchor, anchor, is_settled)
        assert len(runs.by_rate) <= 1 + math.ceil(math.log2(RUNGS))
        far = [rate for rate, looks in runs.by_rate.items() if looks.known == 3 and rate < 1.0 / rung(4 * FAR)]
        far = [rate for rate in far if rate**exponent <= QUICK_LIKELY]
        assert not far, "a rate far below the edge is believed for its quick look"

    @pytest.mark.parametrize("seed", range(40))
    def test_what_a_quick_look_wrongly_leaves_within_the_goal_is_not_sustained(self, seed: int) -> None:
        """Quick looks that show too little by far: what is found in the end is where the long run ends."""
        rng = random.Random(seed)
        knee, exponent, shown = math.exp(rng.uniform(-2.0, 3.0)), rng.uniform(0.5, 6.0), rng.uniform(0.05, 1.0)
        long, anchor = growing(knee, exponent), knee * rng.uniform(1.5, 9.0)

        def replayed(requests_per_s: float, seeds: tuple[int, ...]) -> Latencies | None:
            return long.replayed(requests_per_s * (shown if seeds == (QUICK_SEED,) else 1.0), seeds)

        end = sustained(made_up(replayed), Goal(Targets({"p95": 1.0})), anchor, anchor, is_settled).holds
        assert knee / NEXT_RUNG * (1.0 - 1e-9) <= end <= knee

    def test_without_targets_the_bound_is_found(self) -> None:
        found = sustained(growing(1.0, 1.0), Goal(Targets()), 7.0, 30.0, is_settled).holds
        assert 7.0 / NEXT_RUNG <= found <= 7.0


class TestTime:
    """Every simulation takes one of so many seconds: what is said when they are over is true, and little is simulated after them."""

    @pytest.mark.parametrize("seed", range(40))
    def test_what_is_known_when_time_is_up_brackets_what_is_found_in_the_end(self, seed: int) -> None:
        rng = random.Random(seed)
        knee, exponent = math.exp(rng.uniform(-1.0, 3.0)), rng.uniform(0.5, 6.0)
        goal, most = Goal(Targets({"p95": 1.0})), knee * rng.uniform(0.7, 3.0)
        end = sustained(growing(knee, exponent), goal, most, most, is_settled).holds
        for seconds in range(0, 60, 3):
            runs = growing(knee, exponent)
            one, known = CandidateReplica(runs, goal, most, most), Bracket(0.0, most)

            def in_time(runs: Runs = runs, seconds: int = seconds) -> bool:
                return runs.simulations < seconds

            asked = end * rng.uniform(0.5, 1.5)
            for found in (
                one.carrying(asked, known, looked=rng.random() < 0.5, in_time=in_time),
                one.bracket(is_settled, in_time),
                Bracket(0.0, one.too_much(most, in_time=in_time)),
            ):
                assert found.holds <= end <= found.at_most
            assert runs.simulations <= seconds + 16

    def test_a_search_that_goes_on_later_ends_where_it_would_have(self) -> None:
        goal, runs, left = Goal(Targets({"p95": 1.0})), growing(1.0, 2.0), 0

        def in_time() -> bool:
            return runs.simulations < left

        end = sustained(growing(1.0, 2.0), goal, 7.0, 7.0, is_settled)
        while not (found := sustained(runs, goal, 7.0, 7.0, is_settled, in_time)).is_settled:
            left += 5
        assert found == end
        assert left > 5


class TestTooMuch:
    @pytest.mark.parametrize("seed", range(60))
    @pytest.mark.parametrize(("look", "excess"), [(QUICK_LOOK, QUICK_EXCESS), (ONE_DRAW, DRAW_EXCESS)])
    def test_what_holds_is_never_too_much(self, look: Look, excess: float, seed: int) -> None:
        rng = random.Random(seed)
        exponent = rng.uniform(0.3, 6.0)
        knee = math.exp(rng.uniform(-3.0, 4.0))
        runs, goal = growing(knee, exponent), Goal(Targets({"p95": 1.0}))
        asked = math.exp(rng.uniform(-4.0, 7.0))
        one = CandidateReplica(runs, goal, asked, asked)
        found = one.too_much(asked, look)
        assert found != 0.0
        if math.isinf(found):
            assert look.leaves_open(runs, rung(rung_at_least(asked)), goal)
            return
        assert runs.holds(found, goal) is False
        assert found <= rung(rung_at_least(asked))
        for _ in range(20):
            above = math.exp(rng.uniform(math.log(found), math.log(asked) + 1.0))
            assert runs.holds(above, goal) is False
        # Not far above what such a look would let pass.
        passes = knee * excess ** (1.0 / exponent)
        assert found <= passes * rung(look.close + 1)

    def test_where_every_rate_is_too_much_it_says_so_and_ends(self) -> None:
        runs = growing(1e-300, 1.0)
        one = CandidateReplica(runs, Goal(Targets({"mean": 1.0})), 5.0, 5.0)
        assert one.too_much(5.0) == 0.0
        assert len(runs.by_rate) < 20

    def test_above_capacity_is_too_much(self) -> None:
        runs = noisy(3, saturated_fraction=1.0)
        assert CandidateReplica(runs, Goal(Targets()), 5.0, 5.0).too_much(5.0) == 0.0


class TestVerdicts:
    @pytest.mark.parametrize("seed", range(30))
    def test_never_turn_from_yes_to_no_as_a_target_is_loosened(self, seed: int) -> None:
        rng = random.Random(seed)
        runs = noisy(seed, 0.05)
        for _ in range(20):
            rate, goal = math.exp(rng.uniform(-2.0, 4.0)), random_goal(rng)
            verdicts = []
            for _ in range(8):
                verdicts.append(bool(runs.holds(rate, goal)))
                clear = runs.clearly_holds(rate, goal)
                assert clear is None or clear is verdicts[-1]
                goal = loosened(goal, rng)
            assert verdicts == sorted(verdicts)

    @pytest.mark.parametrize("limit_s", [0.5, 2.0, 30.0])
    def test_what_is_sustained_near_capacity_is_kept_in_the_long_run(self, limit_s: float) -> None:
        """Where nearly all seats are taken, one draw is easy and the next is above capacity."""
        runs = Runs((0, False), configuration(shape("llama-3.1-8b")), CHAT, TableMemo())
        capacity = capacity_requests_per_s(runs.configuration, runs.step_tables(), CHAT)
        goal = Goal(Targets({"p95": limit_s}))
        found = sustained(runs, goal, capacity * 1.3, capacity * 1.3, is_settled).holds
        assert found > 0.9 * capacity
        whole = runs.long_run(found)
        assert whole is not None
        assert goal.ratio_of(whole) <= 1.0

    def test_what_was_not_simulated_is_not_known(self) -> None:
        runs, goal = growing(10.0, 1.0), Goal(Targets({"mean": 1.0}))
        assert runs.holds(9.0, goal, simulate=False) is None
        assert runs.holds_idle(9.0, goal, simulate=False) is None
        assert runs.simulations == 0
        assert runs.holds(9.0, goal) is True
        assert runs.holds(9.0, goal, simulate=False) is True
        assert runs.holds(11.0, goal) is False
