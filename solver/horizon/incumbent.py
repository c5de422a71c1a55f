"""The best plan so far: commitments rounded, and every period given the best choice known for it."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from solver.horizon.master import Group, HorizonDuals, Master
from solver.horizon.period import PeriodChoice
from solver.horizon.plan import HorizonPlan
from solver.horizon.pool import ChoiceTable
from solver.horizon.problem import FloatArray, HorizonProblem, IntArray
from solver.units import SECONDS_PER_HOUR

BATCH_CHOICES = 12
"""Choices of each period tried together when batch work ties the periods to each other."""
LEAST_GAIN = 1e-9
"""Share of a plan's value below which another one is not better."""


class Incumbent:
    """Plans made of pooled choices; each is a plan of the problem as it stands, whatever prices found its parts.

    changed: called when a better plan is there. out_of_time: ends a walk early. batch_seconds: for one programme.
    """

    def __init__(
        self,
        problem: HorizonProblem,
        groups: Sequence[Group],
        master: Master,
        pool: ChoiceTable,
        period_gap: float,
        batch_seconds: float,
        changed: Callable[[], None],
        out_of_time: Callable[[], bool],
    ) -> None:
        self.problem, self.groups, self.master, self.pool = problem, groups, master, pool
        self.period_gap, self.batch_seconds = period_gap, batch_seconds
        self.changed, self.out_of_time = changed, out_of_time
        self.weights = np.array([group.weight for group in groups])
        self.best: tuple[float, IntArray, HorizonPlan] | None = None
        self.covered: dict[int, tuple[int, IntArray]] = {}

    @property
    def usd(self) -> float:
        """Cost of the best plan; infinite before there is one."""
        return math.inf if self.best is None else self.best[0]

    def improve(self, commitments: FloatArray, prices: HorizonDuals | None, high: IntArray) -> None:
        """Round commitments and walk to better ones, all priced with pooled choices."""
        batch = prices.batch if prices is not None else np.zeros(len(self.problem.batch))
        if self.problem.batch and prices is None:
            return
        best: tuple[float, IntArray] | None = None
        seen: dict[bytes, float] = {}

        def value(nodes: IntArray) -> float:
            key = nodes.tobytes()
            if key not in seen:
                seen[key] = self.value(nodes, batch)
            return seen[key]

        for start in (np.floor, np.round, np.ceil):
            nodes = np.clip(start(commitments + 1e-9), 0, high).astype(np.int64)
            if best is None or value(nodes) < best[0]:
                best = (value(nodes), nodes)
        assert best is not None
        active = [c for c in range(len(high)) if commitments[c] > 1e-6]
        improved = True
        while improved and not self.out_of_time():
            improved = False
            for moves in self._moves(active):
                nodes = best[1].copy()
                for c, step in moves:
                    nodes[c] += step
                if (nodes < 0).any() or (nodes > high).any():
                    continue
                found = value(nodes)
                if found < best[0] - LEAST_GAIN * abs(best[0]):  # negative where batch work is paid for
                    best, improved = (found, nodes), True
        if self.problem.batch:
            self.take_batch(best[1], batch)
        elif self.best is None or best[0] < self.best[0] * (1.0 - 1e-9):
            self.take_pooled(best[1])

    def _moves(self, active: list[int]) -> list[tuple[tuple[int, int], ...]]:
        single: list[tuple[tuple[int, int], ...]] = [((c, step),) for c in active for step in (1, -1)]
        swaps = [((c, 1), (other, -1)) for c in active for other in active if c != other]
        return single + (swaps if len(active) <= 12 else [])

    def value(self, nodes: IntArray, batch: FloatArray) -> float:
        """Present USD over the horizon of pooled choices beside these commitments, batch work paid at its price."""
        if not self.master.within_shared_limits(nodes.astype(np.float64)):
            return math.inf
        total = float(self.master.usd_per_node @ nodes)
        best = self._costs(nodes, batch)
        return total + float(best @ self.weights)

    def _costs(self, nodes: IntArray, batch: FloatArray) -> FloatArray:
        committed = self.master.committed(nodes)
        by_committed: dict[bytes, FloatArray] = {}
        best = np.full(len(self.groups), np.inf)
        for g, group in enumerate(self.groups):
            key = committed[g].tobytes()
            if key not in by_committed:
                by_committed[key] = self.pool.hourly_usd(committed[g])
            cost = by_committed[key]
            if len(batch):
                cost = cost - self.pool.batch_rates(group.first) @ batch * group.batch_factor * SECONDS_PER_HOUR
            usable = cost[self._covering(g)]
            best[g] = usable.min() if len(usable) else np.inf
        return best

    def _covering(self, g: int) -> IntArray:
        """Positions of pooled choices that serve a group; kept, as the pool only grows."""
        known = self.covered.get(g)
        size = len(self.pool)
        if known is None or known[0] != size:
            known = (size, np.flatnonzero(self.pool.covering(self.groups[g].first)))
            self.covered[g] = known
        return known[1]

    def take_pooled(self, nodes: IntArray) -> None:
        choices = self.pooled(nodes)
        if choices is not None:
            self._take(nodes, choices)

    def pooled(self, nodes: IntArray) -> list[PeriodChoice] | None:
        """The cheapest pooled choice of every group beside these commitments; None where one cannot be served."""
        committed = self.master.committed(nodes)
        choices = []
        for g, group in enumerate(self.groups):
            usable = self._covering(g)
            cost = self.pool.hourly_usd(committed[g])[usable]
            if not len(cost) or math.isinf(cost.min()):
                return None
            choices.append(self.pool.choice_at(int(usable[int(np.argmin(cost))]), group.first, committed[g]))
        return choices

    def neighbours(self, high: IntArray) -> list[IntArray]:
        """Commitments of the best plan, and those with one node more or less of a kind it has."""
        if self.best is None:
            return []
        nodes = self.best[1]
        found = [nodes]
        for c in np.flatnonzero(nodes).tolist():
            for step in (1, -1):
                moved = nodes.copy()
                moved[c] += step
                if moved[c] <= high[c]:
                    found.append(moved)
        return found

    def take_batch(self, nodes: IntArray, batch: FloatArray) -> None:
        """Choose among the pooled choices of all periods together, so that batch work is done by its deadline."""
        if not self.master.within_shared_limits(nodes.astype(np.float64)):
            return
        committed = self.master.committed(nodes)
        candidates: list[tuple[int, int, float, FloatArray]] = []
        for g, group in enumerate(self.groups):
            usable = self._covering(g)
            cost = self.pool.hourly_usd(committed[g])[usable]
            rates = self.pool.batch_rates(group.first)[usable]
            chosen: set[int] = set()
            for factor in np.linspace(0.0, 3.0, BATCH_CHOICES):
                priced = cost - rates @ (batch * factor) * group.batch_factor * SECONDS_PER_HOUR
                if len(priced) and math.isfinite(priced.min()):
                    chosen.add(int(np.argmin(priced)))
            if len(rates) and math.isfinite(cost.min()):
                possible = np.flatnonzero(np.isfinite(cost))
                chosen |= {int(possible[np.argmax(rates[possible, b])]) for b in range(rates.shape[1])}
            if not chosen:
                return
            candidates += [
                (g, int(usable[i]), float(cost[i]) * group.weight, rates[i] * group.hours * SECONDS_PER_HOUR)
                for i in sorted(chosen)
            ]
        picked = self._pick(candidates)
        if picked is not None:
            choices = [self.pool.choice_at(p, self.groups[g].first, committed[g]) for g, p in picked]
            self._take(nodes, choices)

    def _pick(self, candidates: list[tuple[int, int, float, FloatArray]]) -> list[tuple[int, int]] | None:
        """One candidate (group, choice, USD, batch requests) for each group: the cheapest that do all batch work."""
        width = len(candidates)
        one_each = coo_array(
            (np.ones(width), ([c[0] for c in candidates], list(range(width)))), shape=(len(self.groups), width)
        )
        done = np.array([c[3] for c in candidates]).T
        wanted = np.array([work.requests for work in self.problem.batch])
        solved = milp(
            np.array([c[2] for c in candidates]),
            constraints=[
                LinearConstraint(one_each.tocsr(), 1.0, 1.0),
                LinearConstraint(done / wanted[:, None], 1.0 + 1e-9, np.inf),
            ],
            integrality=np.ones(width),
            bounds=Bounds(0.0, 1.0),
            options={
                "time_limit": self.batch_seconds,
                "mip_rel_gap": self.period_gap,
            },
        )
        if solved.x is None:
            return None
        return [(candidates[i][0], candidates[i][1]) for i in np.flatnonzero(solved.x > 0.5).tolist()]

    def _take(self, nodes: IntArray, choices: list[PeriodChoice]) -> None:
        nodes = self._without_idle(nodes, choices)
        by_period: list[PeriodChoice] = [choices[0]] * len(self.problem.periods)
        for group, choice in zip(self.groups, choices, strict=True):
            for t in group.members:
                by_period[t] = choice
        self.take(nodes, by_period)

    def take(self, nodes: IntArray, choices: Sequence[PeriodChoice]) -> None:
        """Commitments and a choice for each period, if that is cheaper than the best plan and does all batch work."""
        plan = HorizonPlan(tuple(int(n) for n in nodes), tuple(choices))
        usd = plan.present_usd(self.problem)
        if any(
            done < work.requests * (1.0 - 1e-9)
            for done, work in zip(plan.batch_requests(self.problem), self.problem.batch, strict=True)
        ):
            return
        if self.best is None or usd < self.best[0]:
            self.best = (usd, nodes, plan)
            self.changed()

    def _without_idle(self, nodes: IntArray, choices: list[PeriodChoice]) -> IntArray:
        """Commitments without those that no period uses."""
        nodes = nodes.copy()
        used = np.array([choice.committed for choice in choices])
        for c in np.flatnonzero(nodes).tolist():
            while nodes[c]:
                nodes[c] -= 1
                if (self.master.committed(nodes) < used).any():
                    nodes[c] += 1
                    break
        return nodes
