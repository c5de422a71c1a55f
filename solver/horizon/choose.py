"""Which configurations to keep: chosen together in a programme of a few hours that stand for the horizon."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from solver.horizon.highs import solve_programme
from solver.horizon.linked import LinkedModel
from solver.horizon.master import Box, Master, groups_of
from solver.horizon.operation import Operation
from solver.horizon.period import PeriodChoice, PeriodModel
from solver.horizon.problem import Commitment, FloatArray, HorizonProblem, IntArray, Period
from solver.horizon.repair import nodes_needed
from solver.horizon.solve import LEAST_S, HorizonOptions, solve_horizon
from solver.units import HOURS_PER_MONTH, SECONDS_PER_HOUR

SAMPLED = 8
"""Hours by how busy they are, beside each workload's busiest."""
FIRST_FRACTION, FIRST_GAP_FRACTION = 0.15, 0.02
"""Of the time, and the gap, for the commitments beside which configurations are compared."""
PERIOD_GAP_FRACTION, PERIOD_S, PERIOD_BRANCHES = 0.002, 2.0, 50
LEAST_GAIN = 1e-6

UNHAD_USD_PER_HOUR = 1e9
"""Of nodes that come from nowhere, in comparisons."""
Kept = tuple[int, ...]
"""Positions of deployments, rising."""


def chosen_configurations(problem: HorizonProblem, clock: Callable[[], float], seconds: float) -> Kept | None:
    """As many deployments of each workload as it may have, the cheapest together in sampled hours; None where no choice of
    them was found that serves those.

    Beside commitments that suit all deployments: one deployment of each workload, then ever one more, then one for another
    as long as that is cheaper. Where that serves nothing, one programme of the sampled hours decides.
    """
    end = clock() + seconds
    few = sampled(problem)
    search = _Choice(few, clock, end)
    kept = search.run()
    return kept if kept is not None else _by_programme(few, max(LEAST_S, end - clock()))


class _Choice:
    """Local search over sets of deployments, each priced period by period."""

    def __init__(self, few: HorizonProblem, clock: Callable[[], float], end: float) -> None:
        self.few, self.clock, self.end = few, clock, end
        most = few.operation.max_configurations
        assert most is not None
        self.most = most
        self.free = replace(few, operation=Operation())
        self.mine = [
            [d for d, one in enumerate(few.deployments) if one.workload == w] for w in range(len(few.workloads))
        ]
        self.wanted = [w for w, peak in enumerate(few.demand.max(axis=0).tolist()) if peak > 0.0]
        self.known: dict[Kept, float] = {}
        first = solve_horizon(
            self.free,
            HorizonOptions(max(LEAST_S, FIRST_FRACTION * (end - clock())), FIRST_GAP_FRACTION),
            clock,
            None,
            even_choices(self.free),
        )
        nodes = (0,) * len(few.commitments) if first.plan is None else first.plan.commitments
        self.committed = few.committed(nodes)[0]
        self.paid = float(few.present_usd_per_node @ np.array(nodes)) if nodes else 0.0

    def usd(self, kept: Kept) -> float:
        """Of the sampled month; infinite where some period is not served."""
        if kept not in self.known:
            self.known[kept] = self._usd(kept)
        return self.known[kept]

    def _usd(self, kept: Kept) -> float:
        problem = kept_only(self.free, kept)
        model, free = PeriodModel(problem), np.zeros(len(problem.node_types))
        total = self.paid
        for t in sorted(range(len(problem.periods)), key=lambda t: -float(problem.demand[t].sum())):
            answer = model.solve(t, free, self.committed, (), PERIOD_GAP_FRACTION, PERIOD_S, None, PERIOD_BRANCHES)
            if answer.choice is None:
                return math.inf
            hour = sum(n * o.usd_per_hour for n, o in zip(answer.choice.hourly, problem.hourly, strict=True))
            total += problem.periods[t].hours * hour
        return total

    def run(self) -> Kept | None:
        even = even_choices(self.free)
        if not even:
            return None
        kept = tuple(sorted({d for choice in even for d, count in enumerate(choice.replicas) if count}))
        while (better := self._better(kept)) is not None:
            kept = better
        return kept if math.isfinite(self.usd(kept)) else None

    def _better(self, kept: Kept) -> Kept | None:
        """The best of one deployment more of one workload; failing that, the first exchange that is cheaper."""
        here = self.usd(kept)
        more = [
            tuple(sorted((*kept, d)))
            for w in self.wanted
            if sum(d in kept for d in self.mine[w]) < self.most
            for d in self.mine[w]
            if d not in kept
        ]
        found: tuple[float, Kept] | None = None
        for one in more:
            if self.clock() >= self.end:
                break
            if found is None or self.usd(one) < found[0]:
                found = (self.usd(one), one)
        if found is not None and (found[0] < here * (1.0 - LEAST_GAIN) or math.isinf(here)):
            return found[1]
        for w in self.wanted:
            inside = [d for d in self.mine[w] if d in kept]
            outside = [d for d in self.mine[w] if d not in kept]
            for old, new in itertools.product(inside, outside):
                if self.clock() >= self.end:
                    return None
                other = tuple(sorted({*kept, new} - {old}))
                if self.usd(other) < here * (1.0 - LEAST_GAIN):
                    return other
        return None


def _by_programme(few: HorizonProblem, seconds: float) -> Kept | None:
    model = PeriodModel(few)
    master = Master(few, groups_of(few), model)
    linked = LinkedModel(few, model, (0,), (master.shared_rows, master.shared_limits))
    high = master.most_commitments()
    answer = solve_programme(
        linked.programme(Box(np.zeros(len(high), dtype=np.int64), high)), seconds, PERIOD_GAP_FRACTION
    )
    found = None if answer.values is None else linked.read(answer.values)
    if found is None:
        return None
    return tuple(sorted({d for choice in found[1].values() for d, count in enumerate(choice.replicas) if count}))


def sampled(problem: HorizonProblem) -> HorizonProblem:
    """One month of some of the horizon's periods, each for the hours of those about as busy; commitments for their price a
    month, batch work for its share of its window."""
    demand = problem.demand
    busy = (demand / np.maximum(demand.max(axis=0), 1e-12)).sum(axis=1)
    order = np.argsort(busy, kind="stable")
    picked = set(order[np.unique(np.linspace(0, len(order) - 1, SAMPLED).round().astype(int))].tolist())
    picked |= {int(t) for t in demand.argmax(axis=0)}
    ranked = sorted(picked, key=lambda t: (busy[t], t))
    hours = np.zeros(len(ranked))
    for t, period in enumerate(problem.periods):
        hours[int(np.argmin(np.abs(busy[ranked] - busy[t])))] += period.hours
    hours *= HOURS_PER_MONTH / hours.sum()
    even = np.zeros(len(problem.workloads))
    for work in problem.batch:
        even[work.workload] += work.requests / ((work.to_month - work.from_month) * HOURS_PER_MONTH * SECONDS_PER_HOUR)
    cheapest: dict[str, Commitment] = {}
    for one, usd in zip(problem.commitments, problem.present_usd_per_node.tolist(), strict=True):
        monthly = replace(one, start_month=0, term_months=1, usd_per_node=usd / one.term_months, payments=None)
        if one.id not in cheapest or monthly.usd_per_node < cheapest[one.id].usd_per_node:
            cheapest[one.id] = monthly
    return replace(
        problem,
        months=1,
        periods=tuple(
            Period(0, float(h), problem.periods[t].requests_per_s)
            for h, t in zip(hours, ranked, strict=True)
            if h > 0.0
        ),
        commitments=tuple(cheapest.values()),
        batch=(),
        discount_fraction_per_year=0.0,
        operation=Operation(problem.operation.max_configurations),
        sequences=(),
    )


def kept_only(problem: HorizonProblem, kept: Kept) -> HorizonProblem:
    """The problem with these deployments only; nodes keep their types."""
    return replace(problem, deployments=tuple(problem.deployments[d] for d in kept))


def narrowed(choice: PeriodChoice, kept: Kept) -> PeriodChoice | None:
    """A choice in terms of these deployments; None where it runs others."""
    if sum(choice.replicas) != sum(choice.replicas[d] for d in kept):
        return None
    return replace(choice, replicas=tuple(choice.replicas[d] for d in kept))


def widened(choice: PeriodChoice, kept: Kept, count: int) -> PeriodChoice:
    """The same among all ``count`` deployments.

    >>> widened(PeriodChoice((3, 1), (), (), (), ()), (0, 2), 4).replicas
    (3, 0, 1, 0)
    """
    replicas = [0] * count
    for d, n in zip(kept, choice.replicas, strict=True):
        replicas[d] = n
    return replace(choice, replicas=tuple(replicas))


def even_choices(problem: HorizonProblem) -> tuple[PeriodChoice, ...]:
    """For every period a choice that runs each workload in one configuration, always the same: a first plan within
    milliseconds, and nodes that follow demand smoothly.

    Which configurations: the cheapest together in some periods, changed one workload at a time.
    """
    batch = {work.workload for work in problem.batch}
    mine = [
        [d for d, one in enumerate(problem.deployments) if one.workload == w]
        for w, peak in enumerate(problem.demand.max(axis=0).tolist())
        if w not in batch and peak > 0.0
    ]
    if not mine or not all(mine):
        return ()
    price = _least_usd_per_node_hour(problem)
    order = np.argsort(problem.demand.sum(axis=1), kind="stable")
    some = order[np.unique(np.linspace(0, len(order) - 1, SAMPLED).round().astype(int))].tolist()

    def usd(chosen: list[int]) -> float:
        return sum(float(nodes_needed(problem, _even(problem, chosen, t)) @ price) for t in some)

    rate = [price[d.node_type] * problem.spans(d) / d.requests_per_s for d in problem.deployments]
    chosen = [min(one, key=lambda d: (rate[d] * _share(problem, d), d)) for one in mine]
    for i, one in enumerate(mine):
        with_each = {d: usd([*chosen[:i], d, *chosen[i + 1 :]]) for d in one}
        chosen[i] = min((cost, d) for d, cost in with_each.items())[1]
    none, idle = (0,) * len(problem.hourly), (0,) * len(problem.node_types)
    found = []
    for t in range(len(problem.periods)):
        replicas = _even(problem, chosen, t)
        nodes = tuple(nodes_needed(problem, replicas).tolist())
        found.append(PeriodChoice(tuple(replicas.tolist()), nodes, none, idle, (0.0,) * len(problem.batch)))
    return tuple(dict.fromkeys(found))


def _least_usd_per_node_hour(problem: HorizonProblem) -> FloatArray:
    """Of each node type, wherever it comes from; infinite where it comes from nowhere."""
    price = np.full(len(problem.node_types), np.inf)
    for offer in problem.hourly:
        if not offer.interruptible:
            price[offer.node_type] = min(price[offer.node_type], offer.usd_per_hour)
    for one in problem.commitments:
        hour = one.usd_per_node / (one.term_months * HOURS_PER_MONTH)
        price[one.node_type] = min(price[one.node_type], hour)
    return np.where(np.isfinite(price), price, UNHAD_USD_PER_HOUR)


def _share(problem: HorizonProblem, d: int) -> float:
    """Of a node that a replica takes; 1 for those over several."""
    one = problem.deployments[d]
    return min(1.0, one.devices_per_replica / problem.node_types[one.node_type].devices)


def _even(problem: HorizonProblem, chosen: Sequence[int], t: int) -> IntArray:
    replicas = np.zeros(len(problem.deployments), dtype=np.int64)
    for d in chosen:
        one = problem.deployments[d]
        replicas[d] = one.replicas_for(float(problem.demand[t, one.workload]))
    return replicas
