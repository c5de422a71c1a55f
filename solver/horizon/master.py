"""The periods joined by commitments: linear programmes whose duals price committed nodes in each period.

Dantzig and Wolfe's decomposition (Operations Research 8, 1960). Choosing among whole-number choices of each period
instead of fractions of nodes makes the bound far tighter than the linear relaxation: what remains is only that a
period mixes its choices, and that commitments are fractions.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult, linprog
from scipy.sparse import block_diag, coo_array, csr_array, hstack, vstack

from solver.errors import SolverFailedError
from solver.horizon.period import PeriodChoice, PeriodModel
from solver.horizon.problem import FloatArray, HorizonProblem, IntArray
from solver.units import SECONDS_PER_HOUR

TIME_OVER, SOLVE_ERROR = 1, 4
"""``linprog``'s status of a limit that was reached, and of numerical difficulties."""
UNSERVED = 1e-7
"""Share of a group or a batch work below which leaving it is the solver's tolerance."""


@dataclass(frozen=True, slots=True)
class Group:
    """Periods alike in demand, in the commitments that can run and in batch work: solved once, as period ``first``.

    weight: hours, each times the present value of a dollar due then; the hours themselves without discounting.
    """

    first: int
    members: tuple[int, ...]
    hours: float
    weight: float

    @property
    def batch_factor(self) -> float:
        """What a present dollar for a request is worth when the group's bills are due."""
        return self.hours / self.weight


@dataclass(frozen=True, slots=True, eq=False)
class HorizonDuals:
    """Duals. committed: USD for a node's use through all hours of a group, groups × types. batch: USD per request."""

    committed: FloatArray
    batch: FloatArray

    def towards(self, other: "HorizonDuals", share: float) -> "HorizonDuals":
        """``share`` of the way to other prices."""
        return HorizonDuals(
            self.committed + share * (other.committed - self.committed), self.batch + share * (other.batch - self.batch)
        )

    def filled(self, other: "HorizonDuals") -> "HorizonDuals":
        """With the other prices of node types that have none here: nothing may look free for not having been looked at."""
        return HorizonDuals(np.where(self.committed.any(axis=0), self.committed, other.committed), self.batch)


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """Commitments between two whole-number vectors."""

    low: IntArray
    high: IntArray

    @property
    def is_point(self) -> bool:
        return bool((self.low == self.high).all())


@dataclass(frozen=True, slots=True)
class Column:
    """A choice of one group: present USD over its hours, committed nodes in use by type, requests of each batch work done."""

    group: int
    usd: float
    committed: tuple[int, ...]
    batch_requests: tuple[float, ...]


@dataclass(slots=True)
class Columns:
    """Columns of the master, without duplicates."""

    found: list[Column] = field(default_factory=list)
    _seen: set[tuple[int, tuple[int, ...], tuple[float, ...]]] = field(default_factory=set)

    def add(self, column: Column) -> bool:
        key = (column.group, column.committed, (round(column.usd, 6), *column.batch_requests))
        if key in self._seen:
            return False
        self._seen.add(key)
        self.found.append(column)
        return True


def groups_of(problem: HorizonProblem) -> tuple[Group, ...]:
    """Equal periods together, in the order of their first."""
    alike: dict[object, list[int]] = {}
    for t, period in enumerate(problem.periods):
        live = problem.live[:, period.month].tobytes() if problem.commitments else b""
        batch = tuple(work.from_month <= period.month < work.to_month for work in problem.batch)
        due = (period.hours, float(problem.weights[t])) if problem.batch else None
        alike.setdefault((period.requests_per_s, live, batch, due), []).append(t)
    return tuple(
        Group(
            members[0],
            tuple(members),
            sum(problem.periods[t].hours for t in members),
            sum(float(problem.weights[t]) for t in members),
        )
        for members in alike.values()
    )


def column_of(problem: HorizonProblem, groups: Sequence[Group], g: int, choice: PeriodChoice) -> Column:
    group = groups[g]
    usd = sum(n * offer.usd_per_hour for n, offer in zip(choice.hourly, problem.hourly, strict=True))
    batch = tuple(rate * SECONDS_PER_HOUR * group.hours for rate in choice.batch_requests_per_s)
    return Column(g, usd * group.weight, choice.committed, batch)


class Master:
    """What is the same in every linear programme over one set of groups."""

    def __init__(self, problem: HorizonProblem, groups: Sequence[Group], model: PeriodModel) -> None:
        self.problem, self.groups, self.model = problem, groups, model
        self.types = model.committed_types
        self.link_row = {(g, t): i for i, (g, t) in enumerate((g, t) for g in range(len(groups)) for t in self.types)}
        self._of_type: dict[int, list[int]] = {}
        for c, one in enumerate(problem.commitments):
            self._of_type.setdefault(one.node_type, []).append(c)
        entries = [(row, c) for (g, t), row in self.link_row.items() for c in self._live(g, t)]
        self.links = coo_array(
            (np.ones(len(entries)), ([e[0] for e in entries], [e[1] for e in entries])),
            shape=(len(self.link_row), len(problem.commitments)),
        ).tocsr()
        self.usd_per_node = problem.present_usd_per_node
        self.shared_rows, self.shared_limits = self._shared()
        self._fixed_links = _entries(self.links)
        self._fixed_shared = _entries(self.shared_rows)

    def _live(self, g: int, t: int) -> list[int]:
        month = self.problem.periods[self.groups[g].first].month
        return [c for c in self._of_type.get(t, ()) if self.problem.live[c, month]]

    def _shared(self) -> tuple[csr_array, FloatArray]:
        """Σ_{terms of an offer that run in a month} R ≤ nodes offered, for offers with several starts; and the problem's
        shared limits as shares: Σ w R / most ≤ 1."""
        problem = self.problem
        rows: list[dict[int, float]] = []
        limits: list[float] = []
        for offer in sorted({one.id for one in problem.commitments}):
            mine = [c for c, one in enumerate(problem.commitments) if one.id == offer]
            most = problem.commitments[mine[0]].max_nodes
            if most is None or len(mine) < 2:
                continue
            for month in sorted({problem.commitments[c].start_month for c in mine}):
                rows.append({c: 1.0 for c in mine if problem.live[c, month]})
                limits.append(float(most))
        for limit in problem.shared_limits:
            per_node = dict(limit.per_node)
            scale = limit.most if limit.most > 0.0 else 1.0
            mine = [c for c, one in enumerate(problem.commitments) if per_node.get(one.id, 0.0) > 0.0]
            for month in sorted({problem.commitments[c].start_month for c in mine}):
                rows.append({c: per_node[problem.commitments[c].id] / scale for c in mine if problem.live[c, month]})
                limits.append(limit.most / scale)
        entries = [(r, c, value) for r, row in enumerate(rows) for c, value in row.items()]
        matrix = coo_array(
            ([e[2] for e in entries], ([e[0] for e in entries], [e[1] for e in entries])),
            shape=(len(rows), len(problem.commitments)),
        ).tocsr()
        return matrix, np.array(limits)

    def most_commitments(self) -> IntArray:
        """Nodes of each commitment beyond which no plan needs more, or may have more."""
        problem = self.problem
        most = np.array([int(self.model.most_nodes[one.node_type]) for one in problem.commitments], dtype=np.int64)
        for c, one in enumerate(problem.commitments):
            if one.max_nodes is not None:
                most[c] = min(most[c], one.max_nodes)
            for limit in problem.shared_limits:
                each = dict(limit.per_node).get(one.id, 0.0)
                if each > 0.0:
                    most[c] = min(most[c], math.floor(limit.most / each * (1.0 + 1e-12)))
        return most

    def within_shared_limits(self, nodes: FloatArray) -> bool:
        return not len(self.shared_limits) or bool((self.shared_rows @ nodes <= self.shared_limits + 1e-9).all())

    def committed(self, nodes: FloatArray | IntArray) -> FloatArray:
        """Committed nodes by group and type."""
        by_month = self.problem.committed(nodes)
        return np.asarray(by_month[[self.problem.periods[group.first].month for group in self.groups]])

    def floor(self, prices: HorizonDuals, box: Box) -> float:
        """min over the box of Σ_c (C_c − Σ_{groups it runs in} π) R_c, plus Σ_b β_b B_b."""
        duals = np.array([prices.committed[g, t] for g, t in self.link_row])
        reduced = self.usd_per_node - (self.links.T @ duals if len(duals) else 0.0)
        least = np.minimum(reduced * box.low, reduced * box.high).sum()
        wanted = np.array([work.requests for work in self.problem.batch])
        return float(least) + float(prices.batch @ wanted)

    def relaxation(self, box: Box, seconds: float) -> tuple[float, FloatArray, HorizonDuals] | None:
        """(USD, commitments, prices) of the plain linear relaxation of everything; None where it is infeasible.

        Where so many seconds do not do: what is known at prices of nothing, and the fewest commitments.
        """
        problem, model = self.problem, self.model
        columns = len(model.upper)
        if not columns:  # nothing to choose from
            return None if problem.demand.any() or problem.batch else (0.0, np.zeros(0), self._no_prices())
        zero = np.zeros(model.types)
        cap = self.committed(box.high.astype(np.float64))
        limits = [model.bounds(group.first, cap[g]) for g, group in enumerate(self.groups)]
        one_cost = model.costs(zero)
        costs = [self.usd_per_node] + [one_cost * group.weight for group in self.groups]
        finite_low, finite_high = np.isfinite(model.row_lower), np.isfinite(model.row_upper)
        at_least, at_most = model.matrix[finite_low], model.matrix[finite_high]
        count, commitments = len(self.groups), len(problem.commitments)
        body = vstack([block_diag([-at_least] * count), block_diag([at_most] * count)])
        rhs = [-np.concatenate([low[finite_low] for low, _ in limits]), np.tile(model.row_upper[finite_high], count)]
        used = coo_array(
            (
                np.ones(len(self.link_row)),
                (list(self.link_row.values()), [g * columns + model.used[t] for g, t in self.link_row]),
            ),
            shape=(len(self.link_row), count * columns),
        )
        rows = [hstack([coo_array((body.shape[0], commitments)), body]), hstack([-self.links, used])]
        rhs.append(np.zeros(len(self.link_row)))
        batch = self._batch_rows(
            [
                (b, commitments + g * columns + model.batch[b], group.hours * SECONDS_PER_HOUR)
                for g, group in enumerate(self.groups)
                for b in range(len(problem.batch))
            ],
            commitments + count * columns,
        )
        rows += [hstack([self.shared_rows, coo_array((len(self.shared_limits), count * columns))]), batch]
        rhs += [self.shared_limits, -np.array([work.requests for work in problem.batch])]
        bounds = np.column_stack(
            [
                np.concatenate([box.low, np.zeros(count * columns)]),
                np.concatenate([box.high, *[upper for _, upper in limits]]),
            ]
        )
        solved = _linear(
            c=np.concatenate(costs),
            A_ub=vstack(rows).tocsr(),
            b_ub=np.concatenate(rhs),
            bounds=bounds,
            options={"time_limit": seconds},
        )
        if solved.status == 2:
            return None
        if solved.status == TIME_OVER:
            return self.floor(self._no_prices(), box), box.low.astype(np.float64), self._no_prices()
        if solved.status != 0:
            raise SolverFailedError(f"the linear relaxation was not solved: {solved.message}")
        duals = -np.asarray(solved.ineqlin.marginals)
        start = body.shape[0]
        return float(solved.fun), np.asarray(solved.x[:commitments]), self._prices(duals, start)

    def restricted(
        self, columns: Sequence[Column], box: Box, dearest_usd: float
    ) -> tuple[float, FloatArray, HorizonDuals]:
        """(USD, commitments, prices) of the best mixture of the columns found so far; USD are infinite while some group
        is not served or some batch work not done.

        dearest_usd: price of leaving a group unserved, or all of a batch work undone; only until columns serve them.
        """
        problem = self.problem
        cap = self.committed(box.high.astype(np.float64))
        usable = [one for one in columns if all(one.committed[t] <= cap[one.group, t] for t in self.types)]
        count, groups, commitments = len(usable), len(self.groups), len(problem.commitments)
        width = commitments + count + groups + len(problem.batch)
        shared, batch = len(self.link_row), len(self.link_row) + len(self.shared_limits)
        entries: list[tuple[int, int, float]] = [
            (self.link_row[one.group, t], commitments + i, float(one.committed[t]))
            for i, one in enumerate(usable)
            for t in self.types
            if one.committed[t]
        ]
        entries += [(row, c, -value) for row, c, value in self._fixed_links]
        entries += [(shared + row, c, value) for row, c, value in self._fixed_shared]
        entries += [
            (batch + b, commitments + i, -done)
            for i, one in enumerate(usable)
            for b, done in enumerate(one.batch_requests)
            if done > 0.0
        ]
        entries += [(batch + b, width - len(problem.batch) + b, -work.requests) for b, work in enumerate(problem.batch)]
        rows, places, values = zip(*entries, strict=True) if entries else ((), (), ())
        within = csr_array((values, (rows, places)), shape=(batch + len(problem.batch), width))
        one_each = csr_array(
            (
                np.ones(count + groups),
                (
                    [one.group for one in usable] + list(range(groups)),
                    list(range(commitments, commitments + count + groups)),
                ),
            ),
            shape=(groups, width),
        )
        cost = np.concatenate(
            [self.usd_per_node, [one.usd for one in usable], np.full(groups + len(problem.batch), dearest_usd)]
        )
        bounds = np.column_stack(
            [
                np.concatenate([box.low, np.zeros(width - commitments)]),
                np.concatenate([box.high, np.full(width - commitments, np.inf)]),
            ]
        )
        solved = _linear(
            c=cost,
            A_ub=within,
            b_ub=np.concatenate(
                [np.zeros(len(self.link_row)), self.shared_limits, -np.array([w.requests for w in problem.batch])]
            ),
            A_eq=one_each,
            b_eq=np.ones(groups),
            bounds=bounds,
        )
        if solved.status != 0:
            raise SolverFailedError(f"the master programme was not solved: {solved.message}")
        lacking = bool((solved.x[commitments + count :] > UNSERVED).any())
        return (
            math.inf if lacking else float(solved.fun),
            np.asarray(solved.x[:commitments]),
            self._prices(-np.asarray(solved.ineqlin.marginals), 0),
        )

    def _no_prices(self) -> HorizonDuals:
        return HorizonDuals(np.zeros((len(self.groups), self.model.types)), np.zeros(len(self.problem.batch)))

    def _prices(self, duals: FloatArray, start: int) -> HorizonDuals:
        committed = np.zeros((len(self.groups), self.model.types))
        for (g, t), row in self.link_row.items():
            committed[g, t] = max(0.0, duals[start + row])
        batch = np.maximum(duals[len(duals) - len(self.problem.batch) :], 0.0)
        return HorizonDuals(committed, batch)

    def _batch_rows(self, entries: Sequence[tuple[int, int, float]], width: int) -> coo_array:
        """−Σ requests done ≤ −B, one row for each batch work."""
        return coo_array(
            ([-e[2] for e in entries], ([e[0] for e in entries], [e[1] for e in entries])),
            shape=(len(self.problem.batch), width),
        )


def _entries(matrix: csr_array) -> list[tuple[int, int, float]]:
    coo = matrix.tocoo()
    return list(zip(coo.row.tolist(), coo.col.tolist(), coo.data.tolist(), strict=True))


def _linear(**programme: Any) -> OptimizeResult:
    """``linprog`` by HiGHS; where that ends with an error of its own, once more without presolve."""
    solved = linprog(**programme, method="highs")
    if solved.status == SOLVE_ERROR:
        programme["options"] = {**programme.get("options", {}), "presolve": False}
        solved = linprog(**programme, method="highs")
    return solved
