"""Search and proof: price commitments, solve periods at those prices, mix, round, branch. Ends at any time with a plan.

The bound of a box of commitments is the Lagrangian one: every period at prices π for committed nodes, plus the least
that commitments cost once they are paid those prices. Prices start from the linear relaxation and move towards the
duals of the master. A box of one point is priced exactly, period by period.
"""

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from solver.errors import InvalidInputError
from solver.horizon.all_periods import solve_together
from solver.horizon.incumbent import Incumbent
from solver.horizon.master import Box, Columns, Group, HorizonDuals, Master, column_of, groups_of
from solver.horizon.period import PeriodAnswer, PeriodChoice, PeriodModel
from solver.horizon.plan import PROVEN_GAP_FRACTION, HorizonResult, relative_gap, result_with_plan
from solver.horizon.pool import ChoiceTable
from solver.horizon.problem import FloatArray, HorizonProblem, IntArray
from solver.outcome import Outcome
from solver.units import HOURS_PER_MONTH

Clock = Callable[[], float]
Progress = Callable[[float | None, float | None], None]
"""Called with the cost of the best plan and the bound, in USD over the horizon, whenever one of them improves."""

LEAST_S = 0.05
"""No programme is given less time."""
PERIOD_GAP_SHARE = 0.25
"""Share of the asked gap that a single period may keep."""
ALONE_GAP_SHARE = 0.9
"""The same where nothing ties the periods to each other, so that their gaps are all there is."""
MOST_BRANCHES = 50
"""Branches of a period's programme where no proof is asked: the last parts of a percent take most of its time."""
UNLIMITED = 2_000_000_000
NOTHING_CARRIES = "all nodes that may be had together do not serve the demand, however they are divided"
MOST_SWEEPS = 30
FEW_SWEEPS = 4
"""Where all periods together are settled in one programme, and a proof is asked, branching leads there soonest."""
CONVERGED = 1e-4
"""Prices are good once the master and the bound they give are this close."""
SMOOTHING = 0.5
"""How far prices move from the best so far to the master's (Wentges, Operations Research Letters 1997)."""
MOST_PRICING_ROUNDS = 4
MOST_NEIGHBOURS = 17
"""Plans whose choices the master is given: the best one, and one node more or less of its first eight commitments."""
STALLED = 2
"""Sweeps that raise the bound no more, after which branching does it sooner where a proof is asked."""
DEARER = 10.0
DEAREST = 1e15
"""USD; beyond it a linear programme loses its digits."""
BATCH_SECONDS = 10.0
MOST_TOGETHER = 48
"""Periods up to which batch work is settled in one programme of all of them; beyond, the bound of the mixture stands."""
BATCH_TIME_FRACTION = 0.2
"""Most time for one programme that shares batch work out among the periods."""


@dataclass(frozen=True, slots=True)
class HorizonOptions:
    """gap_fraction: distance from the bound at which to stop; 0 asks for a proof. plan_first: before bounds are sought."""

    time_limit_s: float = 60.0
    gap_fraction: float = 0.01
    plan_first: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.time_limit_s) and self.time_limit_s > 0):
            raise InvalidInputError("time_limit_s must be positive")
        if not 0.0 <= self.gap_fraction < 1.0:
            raise InvalidInputError("gap_fraction must lie in [0, 1)")


@dataclass(order=True)
class _Node:
    bound: float
    order: int
    box: Box = field(compare=False)
    prices: HorizonDuals | None = field(compare=False, default=None)
    split: FloatArray | None = field(compare=False, default=None)


def solve_horizon(
    problem: HorizonProblem,
    options: HorizonOptions,
    clock: Clock,
    progress: Progress | None = None,
    known: tuple[PeriodChoice, ...] = (),
    prices: HorizonDuals | None = None,
) -> HorizonResult:
    """The cheapest plan over the horizon, or the best within the time, with a bound that holds for every plan.

    clock: seconds, from anywhere. known, prices: of an earlier solve of the same periods, deployments, offers and types.
    """
    return _HorizonSearch(problem, options, clock, progress, known, prices).run()


class _HorizonSearch:
    def __init__(
        self,
        problem: HorizonProblem,
        options: HorizonOptions,
        clock: Clock,
        progress: Progress | None,
        known: tuple[PeriodChoice, ...],
        prices: HorizonDuals | None = None,
    ) -> None:
        self.prices = prices
        self.problem, self.options, self.clock, self.progress = problem, options, clock, progress
        self.end = clock() + options.time_limit_s
        self.groups: tuple[Group, ...] = groups_of(problem)
        self.model = PeriodModel(problem)
        self.master = Master(problem, self.groups, self.model)
        self.pool = ChoiceTable(problem)
        self.columns = Columns()
        self.solved = 0
        self.branches = 0
        self.bound = 0.0
        self.floors: list[float] = []
        """Bounds of boxes that are done with but not refuted."""
        self.cache: dict[tuple[object, ...], float] = {}
        self.tried: set[bytes] = set()
        """Commitments that were priced exactly while prices were still found."""
        self.boxes = 0
        self.together = len(problem.periods) <= MOST_TOGETHER
        self.dearest = 1.0
        """USD for what no column does yet: raised until it is done."""
        scaled = problem.demand / np.maximum(problem.demand.max(axis=0), 1e-12)
        busy = np.array([scaled[group.first].sum() for group in self.groups])
        self.order: list[int] = np.argsort(-busy, kind="stable").tolist()
        """Busiest group first: what serves it serves most of the next, which so has a good choice to start from."""
        tied = bool(problem.commitments or problem.batch)
        self.period_gap = options.gap_fraction * (PERIOD_GAP_SHARE if tied else ALONE_GAP_SHARE)
        self.most_branches = MOST_BRANCHES if options.gap_fraction else UNLIMITED
        self.most = self.master.most_commitments()
        self.incumbent = Incumbent(
            problem,
            self.groups,
            self.master,
            self.pool,
            self.period_gap,
            max(0.5, min(BATCH_SECONDS, BATCH_TIME_FRACTION * options.time_limit_s)),
            self._report,
            self._out_of_time,
        )
        for choice in known:
            self.pool.add(choice)

    # -- the search

    def run(self) -> HorizonResult:
        root = Box(np.zeros(len(self.most), dtype=np.int64), self.most)
        self._open_pool(root)
        relaxed = self.master.relaxation(root, self._left_s())
        if relaxed is None:
            return self._without_plan(Outcome.INFEASIBLE, NOTHING_CARRIES)
        usd, commitments, prices = relaxed
        prices = prices if self.prices is None else self.prices.filled(prices)
        self._raise_bound(usd)
        self.dearest = DEARER * max(usd, 1.0)
        self.incumbent.improve(commitments, None, self.most)
        if self.options.plan_first and self.incumbent.best is not None:
            self._price_untried(self.incumbent.best[1])
        heap = [_Node(usd, 0, root, prices)]
        while heap and not self._done():
            node = heapq.heappop(heap)
            if node.bound >= self.incumbent.usd * (1.0 - PROVEN_GAP_FRACTION / 2):
                continue
            self.branches += 1
            for child in self._explore(node):
                heapq.heappush(heap, child)
            if self.clock() < self.end or heap:
                self._raise_bound(min([child.bound for child in heap] + self.floors, default=math.inf))
        if not heap and self.incumbent.best is not None:
            self._raise_bound(min([self.incumbent.usd, *self.floors]))
        return self._result(refuted=not heap and not self.floors)

    def _explore(self, node: _Node) -> list[_Node]:
        """Tighten the bound of a box, look for plans in it, and halve it."""
        box = node.box
        bound, prices = node.bound, node.prices
        if not self.master.within_shared_limits(box.low.astype(np.float64)):
            return []
        if box.is_point and (self.together or not self.problem.batch):
            value = self._price_together(box.low) if self.problem.batch else self._price_exactly(box.low)
            if value is None:  # out of time
                self.floors.append(bound)
            elif math.isfinite(value):
                self.floors.append(max(bound, value))
            return []
        if prices is None:
            relaxed = self.master.relaxation(box, self._left_s())
            if relaxed is None:
                return []
            bound, prices = max(bound, relaxed[0]), relaxed[2]
        bound, prices, fractional = self._generate(box, bound, prices)
        if math.isinf(bound):
            return []
        if bound >= self.incumbent.usd * (1.0 - PROVEN_GAP_FRACTION / 2):
            self.floors.append(bound)
            return []
        if self._done() or box.is_point:
            self.floors.append(bound)
            return []
        near = self._nearest(fractional, box)
        if self._price_exactly(near, prices) is None:
            self.floors.append(bound)
            return []
        return self._halve(box, bound, prices, fractional)

    def _generate(self, box: Box, bound: float, prices: HorizonDuals) -> tuple[float, HorizonDuals, FloatArray]:
        """Column generation over one box: (bound, prices of the best bound, the master's commitments)."""
        best_bound, best_prices, asked = -math.inf, prices, prices
        commitments = np.asarray(box.low, dtype=np.float64)
        stalled = 0
        exact = self.problem.batch and self.together and not self.options.gap_fraction
        for sweep in range(FEW_SWEEPS if exact else MOST_SWEEPS):
            found = self._sweep(asked, box)
            if found is None:
                break
            if math.isinf(found):
                return math.inf, prices, commitments
            rises = math.isinf(best_bound) or found > best_bound + CONVERGED * abs(best_bound)
            stalled = 0 if rises else stalled + 1
            if found > best_bound:
                best_bound, best_prices = found, asked
                self.prices = asked if self.branches == 1 else self.prices
            bound = max(bound, best_bound)
            if sweep == 0 and not self.branches > 1:
                self._raise_bound(bound)
            usd, commitments, dual = self._mix(box)
            self.incumbent.improve(commitments, dual, self.most)
            if self.incumbent.usd - usd > usd - bound:
                self._price_untried(np.clip(np.round(commitments), box.low, box.high).astype(np.int64))
            if box.low.sum() == 0 and self.branches == 1:
                self._raise_bound(bound)
            if self._done() or (
                math.isfinite(usd)
                and usd - bound <= CONVERGED * abs(usd) * (1.0 if self.options.gap_fraction else 1e-4)
            ):
                break
            if bound >= self.incumbent.usd * (1.0 - PROVEN_GAP_FRACTION / 2):
                break
            if stalled >= STALLED and not self.options.gap_fraction:
                break
            asked = best_prices.towards(dual, SMOOTHING if sweep < MOST_SWEEPS // 2 else 1.0)
        return bound, best_prices, commitments

    def _sweep(self, prices: HorizonDuals, box: Box) -> float | None:
        """The Lagrangian bound at these prices: every period solved once. None when the time ends first."""
        cap = self.master.committed(box.high.astype(np.float64))
        total = self.master.floor(prices, box)
        for g in self.order:
            group = self.groups[g]
            key = (g, prices.committed[g].tobytes(), cap[g].tobytes(), prices.batch.tobytes())
            bound = self.cache.get(key)
            if bound is None:
                if self._out_of_time():
                    return None
                answer = self._solve(g, prices.committed[g] / group.weight, cap[g], prices.batch * group.batch_factor)
                bound = self.cache[key] = answer.bound
                if answer.choice is not None:
                    self.columns.add(column_of(self.problem, self.groups, g, answer.choice))
            if math.isinf(bound):
                return math.inf
            total += group.weight * bound
        return total

    def _solve(self, g: int, price: FloatArray, cap: FloatArray, batch: FloatArray) -> PeriodAnswer:
        t = self.groups[g].first
        start = self.pool.best(t, price, cap, batch)
        answer = self.model.solve(t, price, cap, batch, self.period_gap, self._left_s(), start, self.most_branches)
        self.solved += 1
        if answer.choice is not None:
            self.pool.add(answer.choice)
        return answer

    def _add_neighbours(self) -> None:
        """Columns of the best plan and of plans beside it.

        Without them most groups have columns of one kind only, duals put the whole price of a node on a few peaks, and
        every sweep teaches the master about those few.
        """
        for nodes in self.incumbent.neighbours(self.most)[:MOST_NEIGHBOURS]:
            for g, choice in enumerate(self.incumbent.pooled(nodes) or ()):
                self.columns.add(column_of(self.problem, self.groups, g, choice))

    def _mix(self, box: Box) -> tuple[float, FloatArray, HorizonDuals]:
        """The master over the columns found, with pooled choices added as long as they are worth it."""
        if not self.problem.batch:
            self._add_neighbours()
        cap = self.master.committed(box.high.astype(np.float64))
        for _ in range(MOST_PRICING_ROUNDS):
            usd, commitments, prices = self.master.restricted(self.columns.found, box, self.dearest)
            added = 0
            for g, group in enumerate(self.groups):
                t = group.first
                batch = prices.batch * group.batch_factor
                cost = self.pool.priced(t, prices.committed[g] / group.weight, cap[g], batch)
                position = int(np.argmin(cost)) if len(cost) else -1
                if position >= 0 and math.isfinite(cost[position]):
                    choice = self.pool.choice_at(position, t, cap[g])
                    added += self.columns.add(column_of(self.problem, self.groups, g, choice))
            if not added or self._out_of_time():
                break
        if math.isinf(usd):
            self.dearest = min(self.dearest * DEARER, DEAREST)
        return usd, commitments, prices

    # -- plans

    def _open_pool(self, box: Box) -> None:
        """A choice for all peaks at once, committed nodes at their price over the term: every period has a plan."""
        price = np.zeros(self.model.types)
        for one in self.problem.commitments:
            price[one.node_type] = max(price[one.node_type], one.usd_per_node / (one.term_months * HOURS_PER_MONTH))
        cap = self.problem.committed(box.high).max(axis=0) if len(box.high) else np.zeros(self.model.types)
        none = np.zeros(len(self.problem.batch))
        seconds = min(max(0.2 * self.options.time_limit_s, 1.0), self._left_s())
        answer = self.model.solve(self.model.at_peak, price, cap, none, 0.02, seconds)
        if answer.choice is not None:
            self.pool.add(answer.choice)

    def _price_exactly(self, nodes: IntArray, prices: HorizonDuals | None = None) -> float | None:
        """Every period beside these commitments: the best plan with them, and a bound on all such plans, or None when
        the time ends first. With batch work at the given prices, and no bound."""
        if not self.master.within_shared_limits(nodes.astype(np.float64)):
            return math.inf
        committed = self.master.committed(nodes)
        free = np.zeros(self.model.types)
        batch = prices.batch if prices is not None else np.zeros(len(self.problem.batch))
        total = float(self.master.usd_per_node @ nodes)
        complete = True
        for g in self.order:
            group = self.groups[g]
            key = (g, b"free", committed[g].tobytes(), batch.tobytes())
            bound = self.cache.get(key)
            if bound is None:
                if self._out_of_time():
                    complete = False
                    break
                answer = self._solve(g, free, committed[g], batch * group.batch_factor)
                bound = self.cache[key] = answer.bound
            if math.isinf(bound):
                return math.inf
            total += bound * group.weight
        if self.problem.batch:
            self.incumbent.take_batch(nodes, batch)
        elif self.incumbent.value(nodes, batch) < self.incumbent.usd:
            self.incumbent.take_pooled(nodes)
        return total if complete else None

    def _price_together(self, nodes: IntArray) -> float | None:
        """As ``_price_exactly``, where batch work ties the periods to each other: one programme of all of them."""
        if not self.master.within_shared_limits(nodes.astype(np.float64)):
            return math.inf
        if self._out_of_time():
            return None
        bound, choices = solve_together(self.problem, self.model, nodes, self._left_s())
        self.solved += 1
        if choices is not None:
            self.incumbent.take(nodes, choices)
        return float(self.master.usd_per_node @ nodes) + bound

    def _price_untried(self, nodes: IntArray) -> None:
        """Price commitments exactly, once: where a plan is farther from the mixture than that is from the bound, choices
        made for whole numbers of committed nodes are what is missing."""
        if self.problem.batch or nodes.tobytes() in self.tried:
            return
        self.tried.add(nodes.tobytes())
        self._price_exactly(nodes)

    # -- branching

    def _nearest(self, fractional: FloatArray, box: Box) -> IntArray:
        """The best plan's commitments if they lie in the box, else the master's, rounded."""
        if (
            self.incumbent.best is not None
            and (box.low <= self.incumbent.best[1]).all()
            and (self.incumbent.best[1] <= box.high).all()
        ):
            return self.incumbent.best[1]
        return np.clip(np.round(fractional), box.low, box.high).astype(np.int64)

    def _halve(self, box: Box, bound: float, prices: HorizonDuals, fractional: FloatArray) -> list[_Node]:
        wide = np.flatnonzero(box.high > box.low)
        away = np.abs(fractional[wide] - np.round(fractional[wide]))
        if away.max() > 1e-6:
            c = int(wide[int(np.argmax(away))])
            cut = math.floor(fractional[c])
        else:
            c = int(wide[int(np.argmax((box.high - box.low)[wide] * self.master.usd_per_node[wide]))])
            cut = int(np.clip(round(fractional[c]), box.low[c], box.high[c] - 1))
        children = []
        for low, high in ((box.low[c], cut), (cut + 1, box.high[c])):
            if low > high:
                continue
            lows, highs = box.low.copy(), box.high.copy()
            lows[c], highs[c] = low, high
            self.boxes += 1
            children.append(_Node(bound, self.boxes, Box(lows, highs), prices))
        return children

    # -- reporting

    def _out_of_time(self) -> bool:
        return self.clock() >= self.end

    def _left_s(self) -> float:
        """Of the time limit, for one programme."""
        return max(self.end - self.clock(), LEAST_S)

    def _done(self) -> bool:
        if self._out_of_time():
            return True
        if self.incumbent.best is None:
            return False
        return relative_gap(self.incumbent.usd, self.bound) <= max(self.options.gap_fraction, PROVEN_GAP_FRACTION)

    def _raise_bound(self, bound: float) -> None:
        if self.incumbent.best is not None:
            bound = min(bound, self.incumbent.usd)
        if math.isfinite(bound) and bound > self.bound:
            self.bound = bound
            self._report()

    def _report(self) -> None:
        if self.progress is not None:
            self.progress(None if self.incumbent.best is None else self.incumbent.usd, self.bound)

    def _without_plan(self, outcome: Outcome, *reasons: str) -> HorizonResult:
        return HorizonResult(outcome, None, None, None, None, self.solved, self.branches, len(self.groups), reasons)

    def _result(self, *, refuted: bool) -> HorizonResult:
        if self.incumbent.best is None:
            why = ("no whole-number plan within the limits",) if refuted else ()
            return self._without_plan(Outcome.INFEASIBLE if refuted else Outcome.UNKNOWN, *why)
        usd, _, plan = self.incumbent.best
        return result_with_plan(
            plan,
            usd,
            self.bound,
            periods_solved=self.solved,
            branches=self.branches,
            periods=len(self.groups),
            prices=self.prices,
        )
