"""Plans of training jobs against trying every plan there is."""

import random
from itertools import pairwise, product

import pytest

from solver.errors import VerificationError
from solver.training.goodput import Reliability, goodput_fraction
from solver.training.programme import JobColumn, Task, all_day, choose, frontier, is_plan, one_after_the_other, verify

DAY = 86_400.0


def tiny(seed: int) -> tuple[list[Task], list[JobColumn], dict[str, tuple[int, ...]], float | None]:
    """Up to three jobs, four offers of which some are limited, by hours of the day too, and starts that collide."""
    draw = random.Random(seed)
    tasks = [
        Task(f"j{n}", draw.choice([None, draw.randint(2, 8) * DAY]), draw.choice([None, float(draw.randint(20, 120))]))
        for n in range(draw.randint(1, 3))
    ]
    limited = {f"o{n}": all_day(draw.randint(1, 4)) for n in range(draw.randint(0, 3))}
    for offer in list(limited):
        if draw.random() < 0.5:  # a fleet that serves leaves more at night
            day, night = draw.randint(0, 2), draw.randint(1, 5)
            limited[offer] = tuple(night if hour < 8 else day for hour in range(24))
    columns = []
    for task in tasks:
        for _ in range(draw.randint(1, 6)):
            start, days, nodes = draw.randint(0, 3), draw.randint(1, 4), draw.randint(1, 4)
            offer = f"o{draw.randint(0, 3)}"
            usd = float(nodes * days * draw.randint(3, 12))
            hours = draw.choice([(), (), tuple(range(8)), tuple(range(draw.randint(0, 9), draw.randint(10, 24)))])
            slots = tuple(range(start, start + days))
            columns.append(JobColumn(task.name, offer, nodes, start, slots, (start + days) * DAY, usd, hours=hours))
    return tasks, columns, limited, draw.choice([None, None, float(draw.randint(40, 200))])


def cheapest_of_all(
    tasks: list[Task], columns: list[JobColumn], nodes_of_offer: dict[str, tuple[int, ...]], max_usd: float | None
) -> float | None:
    """The cheapest plan's cost by trying every one; None where there is none."""
    choices = [[c for c in columns if c.job == task.name] for task in tasks]
    costs = [sum(c.usd for c in plan) for plan in product(*choices) if is_plan(plan, tasks, nodes_of_offer, max_usd)]
    return min(costs, default=None)


@pytest.mark.parametrize("part", range(10))
def test_the_programme_equals_trying_every_plan(part: int) -> None:
    feasible = 0
    for seed in range(60 * part, 60 * part + 60):
        tasks, columns, limited, budget = tiny(seed)
        best = cheapest_of_all(tasks, columns, limited, budget)
        found = choose(tasks, columns, limited, budget)
        assert found.proven
        assert (found.columns is None) == (best is None), seed
        if best is not None:
            feasible += 1
            assert found.usd == pytest.approx(best), seed
    assert feasible > 10


def test_a_plan_that_holds_too_many_nodes_is_refused() -> None:
    twice = [JobColumn(name, "o", 2, 0, (0,), DAY, 1.0) for name in ("a", "b")]
    with pytest.raises(VerificationError):
        verify(twice, [Task("a"), Task("b")], {"o": all_day(3)}, None)


def test_a_night_and_a_day_share_a_node() -> None:
    night, day = (JobColumn(name, "o", 1, 0, (0,), DAY, 1.0, hours=tuple(range(*hours))) for name, hours in
                  (("a", (0, 8)), ("b", (8, 24))))  # fmt: skip
    verify([night, day], [Task("a"), Task("b")], {"o": all_day(1)}, None)
    whole = JobColumn("b", "o", 1, 0, (0,), DAY, 1.0)
    with pytest.raises(VerificationError):
        verify([night, whole], [Task("a"), Task("b")], {"o": all_day(1)}, None)


def test_a_front_gets_dearer_as_it_gets_sooner() -> None:
    _, columns, _, _ = tiny(3)
    for job in {c.job for c in columns}:
        points = frontier(columns, job)
        assert all(a.finish_s < b.finish_s and a.usd > b.usd for a, b in pairwise(points))


def test_more_devices_lose_more_time() -> None:
    steady = Reliability(50_677.0, 60.0, 900.0)
    shares = [goodput_fraction(steady, n, n // 8) for n in (8, 512, 4096, 16_384)]
    assert shares == sorted(shares, reverse=True)
    assert goodput_fraction(steady, 512, 64) > goodput_fraction(Reliability(50_677.0, 60.0, 900.0, 0.02), 512, 64)


def with_serving(seed: int) -> tuple[list[Task], list[JobColumn], dict[str, tuple[int, ...]], float | None]:
    """A tiny problem, and a workload that is served all the while by one of a few plans, each on one or two offers."""
    tasks, columns, limited, budget = tiny(seed)
    draw = random.Random(1_000_000 + seed)
    limited = {f"o{n}": all_day(draw.randint(2, 5)) for n in range(4)} | limited
    for number in range(draw.randint(2, 5)):
        offers = draw.sample([f"o{n}" for n in range(4)], draw.randint(1, 2))
        (first, nodes), *rest = [(offer, draw.randint(1, 4)) for offer in offers]
        usd = float(draw.randint(10, 16))
        columns.append(JobColumn("served", first, nodes, 0, tuple(range(8)), 0.0, usd, number, beside=tuple(rest)))
    return [*tasks, Task("served")], columns, limited, budget


def test_jobs_and_a_served_workload_together_equal_trying_every_plan() -> None:
    feasible = cheaper = rescued = 0
    for seed in range(600):
        tasks, columns, limited, budget = with_serving(seed)
        best = cheapest_of_all(tasks, columns, limited, budget)
        found = choose(tasks, columns, limited, budget)
        assert found.proven
        assert (found.columns is None) == (best is None), seed
        apart = one_after_the_other("served", tasks, columns, limited, budget)
        if best is None:
            assert apart.columns is None, seed
            continue
        feasible += 1
        assert found.usd == pytest.approx(best), seed
        if apart.columns is None:
            rescued += 1
        else:
            assert found.usd <= apart.usd + 1e-6, seed
            cheaper += found.usd < apart.usd - 1e-6
    assert feasible > 100
    assert cheaper > 10
    assert rescued > 10
