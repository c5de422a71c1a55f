"""Months planned beside given commitments so that their hours can follow each other: a first plan, and a programme to better it."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array

from solver.horizon.highs import Programme, solve_programme
from solver.horizon.linked import LinkedModel
from solver.horizon.master import Box
from solver.horizon.period import PeriodChoice, PeriodModel
from solver.horizon.problem import ROUNDING_FRACTION, FloatArray, HorizonProblem, IntArray
from solver.horizon.repair import repaired
from solver.units import SECONDS_PER_HOUR

Month = dict[int, PeriodChoice]
"""Choices by period."""
Step = tuple[int, int, int]
"""First deployment, the one beyond it, and most replicas of the first."""
MOST_CONFIGURATIONS = 4
"""Of a workload, up to which every pair is tried as steps."""
LEAST_SECONDS = 0.1
"""For a month's programme, below which setting it up is most of its time."""
AROUND = (2, 4)
"""Nodes and replicas of a period more or less, that a month's programme looks for at once."""
LEAST_GAIN = 1e-5
"""Share of a month's cost below which another plan of it is no better."""


def plan_months(
    problem: HorizonProblem,
    nodes: IntArray,
    bases: Sequence[Sequence[PeriodChoice]],
    gap_fraction: float,
    clock: Callable[[], float],
    end: float,
) -> list[PeriodChoice] | None:
    """A choice for each period that keeps to the rules that tie hours; None where no plan was found for some month.

    bases: plans by period, whose choices may break those rules. The last month is planned first: what serves it often serves
    the one before. Of batch work every month does what the first of ``bases`` does in it.
    """
    model = PeriodModel(problem)
    committed = problem.committed(nodes)
    found: list[Month] = []
    steps = Steps(problem)
    for left in range(problem.months, 0, -1):
        month = left - 1
        periods = sorted(set(problem.sequences[month]))
        until = clock() + max(0.0, end - clock()) / left
        drafts = [{t: base[t] for t in periods} for base in bases]
        if found and (moved := _moved(problem, month, found[-1])) is not None:
            drafts.append(moved)
        best = _cheapest(
            problem, [r for d in drafts if (r := repaired(problem, month, d, committed[month])) is not None]
        )
        stepped = steps.best(month, bases[0], committed[month], best, clock, until)
        if (better := bettered(problem, model, month, nodes, stepped, bases[0], gap_fraction, clock, until)) is None:
            return None
        found.append(better)
    by_period = {t: choice for month in found for t, choice in month.items()}
    return [by_period[t] for t in range(len(problem.periods))]


def bettered(
    problem: HorizonProblem,
    model: PeriodModel,
    month: int,
    nodes: IntArray,
    start: Month | None,
    base: Sequence[PeriodChoice],
    gap_fraction: float,
    clock: Callable[[], float],
    until: float,
) -> Month | None:
    """The month's plan improved by its programme; with ``start`` None the first one found, None where there is none.

    The programme looks a few nodes and replicas around the best plan so far, solved in a moment, and again around what it
    finds there: local search in a neighbourhood that is searched completely. What is found nowhere near takes the rest of the time.
    """
    if start is not None and until - clock() < LEAST_SECONDS:
        return start
    none = (csr_array((0, len(problem.commitments))), np.zeros(0))
    linked = LinkedModel(problem, model, (month,), none, _batch_shares(problem, month, base))
    whole = linked.programme(Box(nodes, nodes))
    whole.cost[: len(nodes)] = 0.0
    best = start
    for around in AROUND:
        while best is not None and clock() < until:
            found = _solved(
                linked, around_plan(linked, whole, linked.values(nodes, best), around), until - clock(), gap_fraction
            )
            if found is None or hourly_usd(problem, found) >= hourly_usd(problem, best) * (1.0 - LEAST_GAIN):
                break
            best = found
    if best is None:
        best = _solved(linked, (whole, None), until - clock(), gap_fraction)
    return best


def around_plan(
    linked: LinkedModel, programme: Programme, values: FloatArray, around: int
) -> tuple[Programme, FloatArray]:
    """The programme with whole numbers of each period at most so far from a plan's, and that plan to start from."""
    lower, upper = programme.lower.copy(), programme.upper.copy()
    for block in linked.block.values():
        inside = np.arange(block, block + linked.width)[linked.model.whole]
        lower[inside] = np.maximum(lower[inside], values[inside] - around)
        upper[inside] = np.minimum(upper[inside], values[inside] + around)
    return replace(programme, lower=lower, upper=upper), values


def _solved(
    linked: LinkedModel, near: tuple[Programme, FloatArray | None], seconds: float, gap_fraction: float
) -> Month | None:
    programme, start = near
    answer = solve_programme(programme, seconds, gap_fraction, start)
    read = None if answer.values is None else linked.read(answer.values)
    return None if read is None else read[1]


def hourly_usd(problem: HorizonProblem, choices: Mapping[int, PeriodChoice]) -> float:
    """Present USD of nodes by the hour."""
    return math.fsum(
        float(problem.weights[t])
        * sum(n * o.usd_per_hour for n, o in zip(choice.hourly, problem.hourly, strict=True) if n)
        for t, choice in choices.items()
    )


def _cheapest(problem: HorizonProblem, drafts: Sequence[Month]) -> Month | None:
    return min(drafts, key=lambda draft: hourly_usd(problem, draft), default=None)


def _batch_shares(problem: HorizonProblem, month: int, base: Sequence[PeriodChoice]) -> FloatArray:
    """Of each batch work, the share that a plan does in a month."""
    return np.array(
        [
            sum(
                base[t].batch_requests_per_s[b] * period.hours * SECONDS_PER_HOUR
                for t, period in enumerate(problem.periods)
                if period.month == month
            )
            / work.requests
            for b, work in enumerate(problem.batch)
        ]
    )


def _moved(problem: HorizonProblem, month: int, later: Month) -> Month | None:
    """The plan of the month after, hour by hour; None where their hours do not match or it serves too little."""
    if problem.batch or len(problem.sequences[month]) != len(problem.sequences[month + 1]):
        return None
    pairs = set(zip(problem.sequences[month], problem.sequences[month + 1], strict=True))
    if len(pairs) != len(set(problem.sequences[month])):
        return None
    rates = np.array([d.requests_per_s for d in problem.deployments])
    workloads = np.array([d.workload for d in problem.deployments], dtype=np.int64)
    for t, other in pairs:
        served = np.bincount(
            workloads, weights=rates * np.array(later[other].replicas), minlength=len(problem.workloads)
        )
        if (served < problem.demand[t] * (1.0 - 1e-9)).any():
            return None
    return {t: later[other] for t, other in pairs}


class Steps:
    """Plans in which each workload has up to so many replicas of one configuration and, when that is not enough, some of
    another: they follow demand, so that little must be added to keep to the rules. Remembered from month to month."""

    def __init__(self, problem: HorizonProblem) -> None:
        self.problem = problem
        batch = {work.workload for work in problem.batch}
        self.mine = [
            [d for d, one in enumerate(problem.deployments) if one.workload == w and w not in batch]
            for w in range(len(problem.workloads))
        ]
        self.stepped = [w for w, mine in enumerate(self.mine) if mine and problem.demand[:, w].max() > 0.0]
        self.possible = all(len(self.mine[w]) <= MOST_CONFIGURATIONS for w in self.stepped)
        self.chosen: dict[int, Step] | None = None

    def best(
        self,
        month: int,
        base: Sequence[PeriodChoice],
        committed: FloatArray,
        start: Month | None,
        clock: Callable[[], float],
        until: float,
    ) -> Month | None:
        """``start``, or the cheapest month in steps that descent by one workload at a time finds, whichever is cheaper."""
        if not self.possible or not self.stepped or clock() >= until:
            return start
        best, usd = start, math.inf if start is None else hourly_usd(self.problem, start)
        own = math.inf

        def tried(steps: dict[int, Step]) -> bool:
            nonlocal best, usd, own
            made = repaired(self.problem, month, self._month(month, base, steps), committed)
            if made is None:
                return False
            cost = hourly_usd(self.problem, made)
            if cost < usd:
                best, usd = made, cost
            if cost >= own * (1.0 - 1e-12):
                return False
            own, self.chosen = cost, steps
            return True

        known = self.chosen
        alone = itertools.product(*([(d, d, 0) for d in self.mine[w]] for w in self.stepped))
        for steps in [known] if known is not None else [dict(zip(self.stepped, one, strict=True)) for one in alone]:
            tried(steps)
        for w in self.stepped:
            for step in self._steps(w, month):
                if self.chosen is None or clock() >= until:
                    return best
                tried(self.chosen | {w: step})
        return best

    def _steps(self, w: int, month: int) -> Iterator[Step]:
        peak = max(float(self.problem.demand[t, w]) for t in self.problem.sequences[month])
        for d in self.mine[w]:
            yield d, d, 0
        for first, then in itertools.permutations(self.mine[w], 2):
            for most in range(1, math.ceil(peak / self.problem.deployments[first].requests_per_s)):
                yield first, then, most

    def _month(self, month: int, base: Sequence[PeriodChoice], steps: Mapping[int, Step]) -> Month:
        problem = self.problem
        made = {}
        for t in set(problem.sequences[month]):
            replicas = [
                0 if problem.deployments[d].workload in self.stepped else n for d, n in enumerate(base[t].replicas)
            ]
            for w, (first, then, most) in steps.items():
                asked, one = float(problem.demand[t, w]), problem.deployments[first]
                count = min(most, one.replicas_for(asked))
                replicas[first] += count
                if (left := asked - count * one.requests_per_s) > ROUNDING_FRACTION * asked:
                    replicas[then] += problem.deployments[then].replicas_for(left)
            made[t] = replace(base[t], replicas=tuple(replicas))
        return made
