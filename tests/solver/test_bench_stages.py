"""Stages of the page of figures: each second is counted once, and what is patched is put back."""

import time

from solver.fleet import solve
from solver.recommend import recommend as recommending
from tests.bench.__main__ import markdown_table
from tests.bench.stages import Stages, staged
from tests.solver.planning_cases import planning


def test_seconds_are_counted_once() -> None:
    before = (recommending.solve_request, recommending.screen, solve.solve_fleet)
    with staged() as stages:
        recommending.recommend(planning(alternatives=1, explain=True), {})
    assert (recommending.solve_request, recommending.screen, solve.solve_fleet) == before
    assert stages.count["screening"] >= 1
    assert stages.count["simulation: quick looks"] >= 1
    assert stages.count["fleet problems beside HiGHS"] >= 1
    assert 0.0 < sum(stages.seconds.values()) <= stages.whole_s * 1.01
    assert 0.0 < stages.asked["the plan"] <= stages.whole_s
    shares = [float(line[2]) for line in stages.lines() if not line[0].startswith("asked")]
    assert abs(sum(shares) - stages.whole_s) <= 0.01 * len(shares) + 0.01 * stages.whole_s


def test_an_inner_stage_is_not_in_the_outer_one() -> None:
    def burn(seconds: float) -> None:
        until = time.process_time() + seconds
        while time.process_time() < until:
            pass

    stages = Stages()
    inner = stages.timed(burn, lambda _: ("inner", 1))

    def both() -> None:
        burn(0.02)
        inner(0.06)

    stages.timed(both, lambda: ("outer", 1))()
    assert 0.05 < stages.seconds["inner"] < 0.09
    assert 0.015 < stages.seconds["outer"] < 0.05


def test_a_bar_in_a_cell_does_not_end_it() -> None:
    assert markdown_table(("a",), [("x | y",)]) == ["| a |", "|---|", "| x \\| y |"]
