"""Plans of training jobs against trying every plan there is."""

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise, product

import pytest

from solver.errors import VerificationError
from solver.training.goodput import Reliability, goodput_fraction
from solver.training.programme import (
    JobColumn,
    Shared,
    SharedPlace,
    Task,
    all_day,
    choose,
    frontier,
    is_plan,
    one_after_the_other,
    present_usd,
    verify,
)
from tests.seeds import cases

DAY = 86_400.0


def tiny(seed: int) -> tuple[list[Task], list[JobColumn], Shared]:
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
    return tasks, columns, Shared(limited, draw.choice([None, None, float(draw.randint(40, 200))]))


def most_held(plan: tuple[JobColumn, ...], offer: str) -> int:
    """Nodes of an offer at the hour at which the plan holds the most."""
    own = [c for c in plan if c.offer == offer]
    days = {day for c in own for day in c.slots}
    return max((sum(c.nodes for c in own if day in c.slots and (not c.hours or hour in c.hours))
                for day in days for hour in range(24)), default=0)  # fmt: skip


def cost_of(plan: tuple[JobColumn, ...], shared: Shared, *, weighed: bool = True) -> float:
    """By the hour what is rented by the hour; of an offer committed to the most nodes that are ever held, for a whole term each."""
    hourly = [c for c in plan if c.offer not in shared.usd_per_term]
    usd = sum(c.present_usd if weighed and c.present_usd is not None else c.usd for c in hourly)
    terms = dict(shared.usd_per_term) | (dict(shared.present_usd_per_term) if weighed else {})
    return usd + sum(term * most_held(plan, offer) for offer, term in terms.items())


def holds(plan: tuple[JobColumn, ...], shared: Shared) -> bool:
    """Budget and rooms, counted apart from the module's own check."""
    in_budget = shared.usd is None or cost_of(plan, shared, weighed=False) <= shared.usd + 1e-6
    return in_budget and all(
        sum(each * most_held(plan, offer) for offer, each in room.per_node.items()) <= room.most + 1e-9
        for room in shared.rooms
    )


def cheapest_of_all(tasks: list[Task], columns: list[JobColumn], shared: Shared) -> float | None:
    """The cheapest plan's cost by trying every one; None where there is none."""
    choices = [[c for c in columns if c.job == task.name] for task in tasks]
    costs = [cost_of(p, shared) for p in product(*choices) if holds(p, shared) and is_plan(p, tasks, shared)]
    return min(costs, default=None)


def equals_trying_every_plan(
    tasks: list[Task], columns: list[JobColumn], shared: Shared
) -> tuple[float | None, tuple[JobColumn, ...]]:
    """What the cheapest plan costs, and the programme's own, after asserting that it costs as much."""
    best, found = cheapest_of_all(tasks, columns, shared), choose(tasks, columns, shared)
    assert found.proven
    assert (found.columns is None) == (best is None)
    if best is not None:
        assert found.usd == pytest.approx(best)
        assert found.bound_usd == pytest.approx(best)
    return best, tuple(found.columns or ())


@pytest.mark.parametrize("part", range(cases(10, few=2)))
def test_the_programme_equals_trying_every_plan(part: int) -> None:
    found = [equals_trying_every_plan(*tiny(seed)) for seed in range(60 * part, 60 * part + 60)]
    assert sum(best is not None for best, _ in found) > 10


def test_a_plan_that_holds_too_many_nodes_is_refused() -> None:
    twice = [JobColumn(name, "o", 2, 0, (0,), DAY, 1.0) for name in ("a", "b")]
    with pytest.raises(VerificationError):
        verify(twice, [Task("a"), Task("b")], Shared({"o": all_day(3)}))


def test_a_night_and_a_day_share_a_node() -> None:
    night, day = (JobColumn(name, "o", 1, 0, (0,), DAY, 1.0, hours=tuple(range(*hours))) for name, hours in
                  (("a", (0, 8)), ("b", (8, 24))))  # fmt: skip
    verify([night, day], [Task("a"), Task("b")], Shared({"o": all_day(1)}))
    whole = JobColumn("b", "o", 1, 0, (0,), DAY, 1.0)
    with pytest.raises(VerificationError):
        verify([night, whole], [Task("a"), Task("b")], Shared({"o": all_day(1)}))


def test_a_front_gets_dearer_as_it_gets_sooner() -> None:
    _, columns, _ = tiny(3)
    for job in {c.job for c in columns}:
        points = frontier(columns, job)
        assert all(a.finish_s < b.finish_s and a.usd > b.usd for a, b in pairwise(points))


def test_more_devices_lose_more_time() -> None:
    steady = Reliability(50_677.0, 60.0, 900.0)
    shares = [goodput_fraction(steady, n, n // 8) for n in (8, 512, 4096, 16_384)]
    assert shares == sorted(shares, reverse=True)
    assert goodput_fraction(steady, 512, 64) > goodput_fraction(Reliability(50_677.0, 60.0, 900.0, 0.02), 512, 64)


def with_serving(seed: int) -> tuple[list[Task], list[JobColumn], Shared]:
    """A tiny problem, and a workload that is served all the while by one of a few plans, each on one or two offers."""
    tasks, columns, shared = tiny(seed)
    draw = random.Random(1_000_000 + seed)
    limited = {f"o{n}": all_day(draw.randint(2, 5)) for n in range(4)} | dict(shared.nodes)
    for number in range(draw.randint(2, 5)):
        offers = draw.sample([f"o{n}" for n in range(4)], draw.randint(1, 2))
        beside = tuple((offer, all_day(draw.randint(1, 4))) for offer in offers)
        usd = float(draw.randint(10, 16))
        columns.append(JobColumn("served", "served", 0, 0, tuple(range(8)), 0.0, usd, number, beside=beside))
    return [*tasks, Task("served")], columns, Shared(limited, shared.usd)


def kept_and_by_the_hour(seed: int) -> tuple[list[Task], list[JobColumn], Shared]:
    """The same where serving needs fewer nodes at night: those of an offer by the hour are given back, those of one that is paid for
    in any case are free for jobs then, at no further cost."""
    tasks, columns, shared = tiny(seed)
    draw = random.Random(2_000_000 + seed)
    limited = dict(shared.nodes)
    for number in range(draw.randint(1, 4)):
        beside = []
        for offer in draw.sample(["o0", "o1", "o2", "o3"], draw.randint(1, 2)):
            nodes = draw.randint(1, 4)
            least, night = draw.randint(0, nodes), draw.randint(4, 10)
            held = tuple(least if hour < night else nodes for hour in range(24))
            limited.setdefault(offer, all_day(draw.randint(3, 6)))
            if draw.random() < 0.5:
                beside.append((offer, held))
                continue
            idle = f"idle:{offer}"
            limited[idle] = all_day(0)
            beside += [(offer, all_day(nodes)), (idle, tuple(there - nodes for there in held))]
            for task in tasks:
                start, days = draw.randint(0, 3), draw.randint(1, 4)
                slots, hours = tuple(range(start, start + days)), tuple(range(draw.randint(1, night)))
                own = JobColumn(
                    task.name, idle, draw.randint(1, 3), start, slots, (start + days) * DAY, 0.0, hours=hours
                )
                columns.append(own)
        usd = float(draw.randint(10, 30))
        columns.append(JobColumn("served", "served", 0, 0, tuple(range(8)), 0.0, usd, number, beside=tuple(beside)))
    return [*tasks, Task("served")], columns, Shared(limited, shared.usd)


def with_commitments(seed: int) -> tuple[list[Task], list[JobColumn], Shared]:
    """Some offers, limited or not, are paid for a term, by the node, whichever jobs hold it and in whatever order."""
    tasks, columns, shared = tiny(seed) if seed % 2 else kept_and_by_the_hour(seed)
    draw = random.Random(3_000_000 + seed)
    terms = {f"o{n}": float(draw.randint(5, 40)) for n in range(4) if draw.random() < 0.5}
    return tasks, columns, Shared(shared.nodes, shared.usd, terms)


def with_purchases(seed: int) -> tuple[list[Task], list[JobColumn], Shared]:
    """Some offers are machines that may be bought, and sold later: what they count is less or more than what is paid, as are bills that
    are due later; some stand in a room that holds few."""
    tasks, columns, shared = with_commitments(seed) if seed % 3 else with_serving(seed)
    draw = random.Random(4_000_000 + seed)
    bought = {f"o{n}": float(draw.randint(5, 60)) for n in range(4) if draw.random() < 0.6}
    terms = dict(shared.usd_per_term) | bought
    weighed = {offer: usd * draw.uniform(0.8, 1.3) for offer, usd in terms.items() if draw.random() < 0.8}
    rate = draw.choice([0.0, 0.1, 2.0])
    later = [replace(c, present_usd=present_usd(c.usd, 0.0, c.finish_s * 10, rate)) for c in columns]
    sizes = {offer: draw.uniform(0.5, 3.0) for offer in bought if draw.random() < 0.8}
    rooms = [SharedPlace(sizes, draw.uniform(1.0, 12.0))] if draw.random() < 0.6 else []
    return tasks, later, Shared(shared.nodes, shared.usd, terms, weighed, rooms)


def test_machines_that_may_be_bought_equal_trying_every_plan() -> None:
    """As fleets over time have them: a price less what they are sold for, in present value, standing in a room."""
    feasible = bought = kept_out = 0
    instances = cases(600, few=120)
    for seed in range(instances):
        tasks, columns, shared = with_purchases(seed)
        best, plan = equals_trying_every_plan(tasks, columns, shared)
        if shared.rooms:
            roomy = cheapest_of_all(tasks, columns, replace(shared, rooms=()))
            kept_out += roomy is not None and (best is None or roomy < best - 1e-6)
        if best is None:
            continue
        feasible += 1
        bought += any(c.offer in shared.present_usd_per_term for c in plan)
    assert feasible > instances / 3
    assert bought > instances / 12
    assert kept_out > instances / 60


@pytest.mark.parametrize("problem", [with_serving, kept_and_by_the_hour])
def test_jobs_and_a_served_workload_together_equal_trying_every_plan(
    problem: Callable[[int], tuple[list[Task], list[JobColumn], Shared]],
) -> None:
    feasible = cheaper = rescued = 0
    instances = cases(600, few=120)
    for seed in range(instances):
        tasks, columns, shared = problem(seed)
        best, _ = equals_trying_every_plan(tasks, columns, shared)
        apart = one_after_the_other("served", tasks, columns, shared)
        if best is None:
            assert apart.columns is None, seed
            continue
        feasible += 1
        if apart.columns is None:
            rescued += 1
        else:
            assert best <= apart.usd + 1e-6, seed
            cheaper += best < apart.usd - 1e-6
    assert feasible > instances / 6
    assert cheaper > instances / 60
    assert rescued > instances / 60


def test_commitments_that_jobs_share_equal_trying_every_plan() -> None:
    shared_nodes, instances = 0, cases(600, few=120)
    for seed in range(instances):
        tasks, columns, shared = with_commitments(seed)
        best, plan = equals_trying_every_plan(tasks, columns, shared)
        if best is None:
            continue
        shared_nodes += cost_of(plan, shared) < sum(cost_of((column,), shared) for column in plan)
    assert shared_nodes > instances / 60


def test_of_plans_that_cost_as_much_the_sooner_is_taken() -> None:
    """On a bought node one job after the other, from the first day on; the second cannot begin before the first is done."""
    ways = [
        JobColumn(name, "own", 1, start, (start, start + 1), (start + 2) * DAY, 50.0)
        for name in "ab"
        for start in (6, 4, 2, 0)
    ]
    found = choose([Task("a"), Task("b")], ways, Shared({}, usd_per_term={"own": 50.0}))
    assert sorted(c.start_slot for c in found.columns or ()) == [0, 2]
    assert found.usd == 50.0


def test_a_term_is_paid_once_where_one_job_follows_another() -> None:
    first, second = (JobColumn(name, "o", 2, day, (day,), (day + 1) * DAY, 100.0) for day, name in enumerate("ab"))
    found = choose([Task("a"), Task("b")], [first, second], Shared({}, usd_per_term={"o": 50.0}))
    assert (found.usd, found.bound_usd, found.proven) == (100.0, 100.0, True)
    together = choose(
        [Task("a"), Task("b")], [first, replace(second, slots=(0,))], Shared({}, usd_per_term={"o": 50.0})
    )
    assert together.usd == 200.0
