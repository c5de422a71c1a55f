"""One period: the cheapest nodes and replicas for its demand, with committed nodes at a given price.

Every period has the same programme but for its demand, its hours, and the price and number of committed nodes, so that
it is built once and changed between solves.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import highspy
import numpy as np
from scipy.sparse import csr_array

from solver.errors import SolverFailedError
from solver.fleet.highs import SEARCH_FOR_A_PROOF
from solver.fleet.model.packing import chain_rows
from solver.horizon.highs import OPTIONS
from solver.horizon.problem import MOST_NODES, FloatArray, HorizonDeployment, HorizonProblem, IntArray
from solver.horizon.spot import MOST_SPARES, most_nodes_with_spares, spares_needed
from solver.units import SECONDS_PER_HOUR

TOLERANCE = 1e-6
"""Relative shortfall of a rounded choice that is the solver's feasibility tolerance; as in ``solver.fleet``."""
LEAST_SHARE = 1e-5
"""Of its peak, that a workload asks for where it asks for anything: what is below its tolerance the solver takes for nothing. One
replica serves as much, so that no plan is lost."""

PROVE: Mapping[str, float | bool | int] = {
    **OPTIONS,
    **SEARCH_FOR_A_PROOF,
    "mip_allow_restart": False,
}
"""Branching finds plans of such small programmes by itself; heuristics tripled the time of a period."""


@dataclass(frozen=True, slots=True)
class PeriodChoice:
    """Whole numbers of one period: replicas by deployment, committed nodes in use by type, nodes by hourly offer,
    idle spot nodes by type, and requests per second of each batch work."""

    replicas: tuple[int, ...]
    committed: tuple[int, ...]
    hourly: tuple[int, ...]
    spares: tuple[int, ...]
    batch_requests_per_s: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class PeriodAnswer:
    """bound: no choice is cheaper, USD per hour; infinite where there is none. choice: the best one found."""

    bound: float
    choice: PeriodChoice | None


class PeriodModel:
    """The programme of one period.

        min  Σ_o c_o n_o  +  Σ_τ p_τ u_τ  −  Σ_b β_b q_b                                           USD per hour
        Σ_j μ_j x_j ≥ λ_w                                         every workload w
        Σ_j μ_j x_j ≥ q_b                                         every batch work b
        Σ_{g_j ≥ s} g_j x_j ≤ s ⌊G/s⌋ (u_τ + Σ_{o of τ} n_o − k_τ − Σ_j m_j x_j)   every τ and row (s, ·) of ``chain_rows``
        Σ_{o spot of τ} n_o ≤ T_0 + Σ_k (T_k − T_{k−1}) z_τk,  k_τ = Σ_k z_τk,  z_τk ≥ z_τ,k+1
        Σ_{o spot} G_o n_o ≤ σ (Σ_o G_o n_o + Σ_τ G_τ u_τ)

    x, u, n whole, z 0 or 1, q ≥ 0. u_τ are committed nodes at the price p_τ, at most as many as there are. m_j are the
    whole nodes of a replica that spans several, whose devices then do not count as g_j.
    """

    def __init__(self, problem: HorizonProblem) -> None:
        self.problem = problem
        self.types = len(problem.node_types)
        self.peak = problem.demand.max(axis=0)
        self.at_peak = len(problem.periods)
        """Index of a made-up period in which all workloads peak together; whatever serves it serves every period."""
        self.demand = np.vstack([problem.demand, self.peak])
        self.alone = _nodes_alone(problem)
        self.most_spot = _most_spot(problem, self.alone)
        self.most_nodes = _most_steady(problem, self.alone, self.most_spot)
        self.committed_types = sorted({one.node_type for one in problem.commitments})
        self._shares = (
            np.array([d.node_type for d in problem.deployments], dtype=np.int64),
            np.array([d.workload for d in problem.deployments], dtype=np.int64),
            np.array([d.devices_per_replica / problem.node_types[d.node_type].devices for d in problem.deployments]),
            np.array([d.requests_per_s for d in problem.deployments]),
        )
        """By deployment: node type, workload, share of a node, requests per second."""
        self._columns()
        self._rows()
        self._highs: highspy.Highs | None = None

    def _columns(self) -> None:
        problem = self.problem
        spot = problem.spot
        upper: list[float] = []
        whole: list[bool] = []

        def add(most: float, integer: bool = True) -> int:
            upper.append(most)
            whole.append(integer)
            return len(upper) - 1

        self.replica = [
            add(float(self.alone[d.node_type] * _per_node(problem, d) // problem.spans(d))) for d in problem.deployments
        ]
        self.used = {t: add(float(self.most_nodes[t])) for t in self.committed_types}
        allowed = spot.max_fraction > 0.0
        most = [
            float(self.most_spot[offer.node_type] if offer.interruptible else self.most_nodes[offer.node_type])
            for offer in problem.hourly
        ]
        self.nodes = [
            add(
                min(room, math.inf if offer.max_nodes is None else float(offer.max_nodes))
                if allowed or not offer.interruptible
                else 0.0
            )
            for offer, room in zip(problem.hourly, most, strict=True)
        ]
        self.thresholds: dict[int, tuple[int, ...]] = {}
        self.spare: dict[int, list[int]] = {}
        for t in sorted({offer.node_type for offer in problem.hourly if offer.interruptible}):
            if self.most_spot[t] > 0:
                self.thresholds[t] = most_nodes_with_spares(spot, int(self.most_spot[t]))
                self.spare[t] = [add(1.0) for _ in self.thresholds[t][1:]]
        self.batch = [add(math.inf, integer=False) for _ in problem.batch]
        self.upper = np.array(upper)
        self.whole = np.array(whole, dtype=np.bool_)

    def _rows(self) -> None:
        problem = self.problem
        rows: list[dict[int, float]] = []
        lower: list[float] = []
        upper: list[float] = []

        def add(terms: dict[int, float], low: float, high: float) -> int:
            rows.append(terms)
            lower.append(low)
            upper.append(high)
            return len(rows) - 1

        self.scale = [peak if peak > 0 else 1.0 for peak in self.peak]
        served: list[dict[int, float]] = [{} for _ in problem.workloads]
        for d, deployment in enumerate(problem.deployments):
            served[deployment.workload][self.replica[d]] = deployment.requests_per_s
        self.least_share = [
            min([LEAST_SHARE, *(rate / scale for rate in terms.values())])
            for terms, scale in zip(served, self.scale, strict=True)
        ]
        batch_workloads = {work.workload for work in problem.batch}
        self.demand_row = {
            w: add({v: rate / self.scale[w] for v, rate in terms.items()}, 0.0, math.inf)
            for w, terms in enumerate(served)
            if self.peak[w] > 0.0 and w not in batch_workloads
        }
        for b, work in enumerate(problem.batch):
            add(served[work.workload] | {self.batch[b]: -1.0}, 0.0, math.inf)
        for t, node_type in enumerate(problem.node_types):
            mine = [d for d, one in enumerate(problem.deployments) if one.node_type == t]
            spans = {d: problem.spans(problem.deployments[d]) for d in mine}
            sizes = {d: problem.deployments[d].devices_per_replica for d in mine if spans[d] == 1}
            supply = [self.nodes[o] for o, offer in enumerate(problem.hourly) if offer.node_type == t]
            supply += [self.used[t]] if t in self.used else []
            for smallest, usable in chain_rows(sizes.values() or (node_type.devices,), node_type.devices):
                terms = {self.replica[d]: float(size) for d, size in sizes.items() if size >= smallest}
                terms |= {self.replica[d]: float(count * usable) for d, count in spans.items() if count > 1}
                terms |= dict.fromkeys(supply, -float(usable))
                terms |= dict.fromkeys(self.spare.get(t, []), float(usable))
                add(terms, -math.inf, 0.0)
        for t, spares in self.spare.items():
            steps = self.thresholds[t]
            terms = {
                self.nodes[o]: 1.0
                for o, offer in enumerate(problem.hourly)
                if offer.node_type == t and offer.interruptible
            }
            terms |= {spare: -float(steps[k + 1] - steps[k]) for k, spare in enumerate(spares)}
            add(terms, -math.inf, float(steps[0]))
            for earlier, later in itertools.pairwise(spares):
                add({earlier: 1.0, later: -1.0}, 0.0, math.inf)
        share = problem.spot.max_fraction
        if self.spare:
            devices = [problem.node_types[offer.node_type].devices for offer in problem.hourly]
            terms = {
                self.nodes[o]: devices[o] * ((1.0 if offer.interruptible else 0.0) - share)
                for o, offer in enumerate(problem.hourly)
            }
            terms |= {v: -share * problem.node_types[t].devices for t, v in self.used.items()}
            add(terms, -math.inf, 0.0)
        entries = [(r, v, value) for r, terms in enumerate(rows) for v, value in terms.items()]
        self.matrix = csr_array(
            ([e[2] for e in entries], ([e[0] for e in entries], [e[1] for e in entries])),
            shape=(len(rows), len(self.upper)),
        )
        self.row_lower, self.row_upper = np.array(lower), np.array(upper)

    def bounds(self, t: int, committed_most: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(row lower bounds, column upper bounds) of period ``t`` with so many committed nodes of each type."""
        lower = self.row_lower.copy()
        for w, row in self.demand_row.items():
            share = self.demand[t, w] / self.scale[w]
            lower[row] = max(share, self.least_share[w]) if share > 0.0 else 0.0
        upper = self.upper.copy()
        for node_type, column in self.used.items():
            upper[column] = min(upper[column], committed_most[node_type])
        for b, work in enumerate(self.problem.batch):
            upper[self.batch[b]] = 0.0
            if t != self.at_peak and work.from_month <= (period := self.problem.periods[t]).month < work.to_month:
                upper[self.batch[b]] = work.requests / (period.hours * SECONDS_PER_HOUR)
        return lower, upper

    def costs(self, committed_price: FloatArray, batch_price: Sequence[float] | FloatArray = ()) -> FloatArray:
        """Objective in USD per hour: committed_price in USD per node-hour by type, batch_price in USD per request."""
        cost = np.zeros(len(self.upper))
        for o, offer in enumerate(self.problem.hourly):
            cost[self.nodes[o]] = offer.usd_per_hour
        for node_type, column in self.used.items():
            cost[column] = committed_price[node_type]
        for b, price in enumerate(batch_price):
            cost[self.batch[b]] = -price * SECONDS_PER_HOUR
        return cost

    def solve(
        self,
        t: int,
        committed_price: FloatArray,
        committed_most: FloatArray,
        batch_price: Sequence[float] | FloatArray = (),
        gap_fraction: float = 0.0,
        time_limit_s: float = 30.0,
        start: PeriodChoice | None = None,
        most_branches: int = 2_000_000_000,
    ) -> PeriodAnswer:
        """The cheapest choice of period ``t`` and a bound on all. Raises SolverFailedError."""
        lower, upper = self.bounds(t, committed_most)
        if not len(upper):  # nothing to choose from
            nothing = PeriodChoice((), (0,) * self.types, (), (0,) * self.types, ())
            return PeriodAnswer(math.inf, None) if (lower > 0.0).any() else PeriodAnswer(0.0, nothing)
        cost = self.costs(committed_price, batch_price)
        if start is not None and not self.batch:
            upper = self._worth_trying(t, cost, upper, start)
        highs = self._model()
        columns = np.arange(len(upper), dtype=np.int32)
        rows = np.arange(len(lower), dtype=np.int32)
        finite = np.where(np.isinf(upper), highspy.kHighsInf, upper)
        highs.changeColsCost(len(columns), columns, cost)
        highs.changeColsBounds(len(columns), columns, np.zeros(len(upper)), finite)
        for row in rows[: len(self.demand_row)].tolist():
            highs.changeRowBounds(row, float(lower[row]), highspy.kHighsInf)
        highs.setOptionValue("mip_rel_gap", gap_fraction)
        highs.setOptionValue("mip_max_nodes", most_branches)
        highs.clearSolver()
        highs.setOptionValue("time_limit", highs.getRunTime() + time_limit_s)  # the clock counts all runs so far
        if start is not None:
            values = self.values(start)
            highs.setSolution(len(values), columns, values)
        highs.run()
        status, info = highs.getModelStatus(), highs.getInfo()
        if status == highspy.HighsModelStatus.kInfeasible:
            return PeriodAnswer(math.inf, None)
        ended = (highspy.HighsModelStatus.kTimeLimit, highspy.HighsModelStatus.kSolutionLimit)
        if status != highspy.HighsModelStatus.kOptimal and status not in ended:
            raise SolverFailedError(f"HiGHS ended a period with {highs.modelStatusToString(status)}")
        choice = None
        if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
            choice = self.read(t, np.array(highs.getSolution().col_value), upper)
        floor = -float(np.dot(np.maximum(-cost, 0.0), np.where(np.isfinite(upper), upper, 0.0)))
        return PeriodAnswer(max(info.mip_dual_bound, floor), choice)

    def _worth_trying(self, t: int, cost: FloatArray, upper: FloatArray, start: PeriodChoice) -> FloatArray:
        """Column bounds without node types that no choice as cheap as ``start`` can contain.

        With divisible nodes and each type at its cheapest price p, a request of w costs at least

            π_w = min_j p_τ(j) g_j / (G μ_j),      all demand at least L = Σ_w π_w λ_w

        and a node of type τ does work worth at most v_τ = G max_j π_w μ_j / g_j, so that any choice with one costs at
        least L + p_τ − v_τ. The prices π are dual feasible, whatever the limits on nodes are.
        """
        cheapest = np.full(self.types, np.inf)
        for o, offer in enumerate(self.problem.hourly):
            if upper[self.nodes[o]] > 0.0:
                cheapest[offer.node_type] = min(cheapest[offer.node_type], offer.usd_per_hour)
        for node_type, column in self.used.items():
            if upper[column] > 0.0:
                cheapest[node_type] = min(cheapest[node_type], cost[column])
        kind, workload, share, rate = self._shares
        with np.errstate(invalid="ignore"):
            price = cheapest[kind] * share / rate
        per_request = np.full(len(self.problem.workloads), np.inf)
        np.minimum.at(per_request, workload, price)
        demand = self.demand[t]
        least = float(np.where(demand > 0.0, np.where(np.isfinite(per_request), per_request, 0.0), 0.0) @ demand)
        worth = np.zeros(self.types)
        wanted = np.where(demand > 0.0, np.where(np.isfinite(per_request), per_request, 0.0), 0.0)
        np.maximum.at(worth, kind, wanted[workload] * rate / share)
        ceiling = float(cost @ self.values(start)) * (1.0 + TOLERANCE)
        dear = least + cheapest - worth > ceiling + TOLERANCE
        if not dear.any():
            return upper
        upper = upper.copy()
        for d, deployment in enumerate(self.problem.deployments):
            if dear[deployment.node_type]:
                upper[self.replica[d]] = 0.0
        if not self.spare:  # dear steady nodes may still make room for a share of spot
            for o, offer in enumerate(self.problem.hourly):
                if dear[offer.node_type]:
                    upper[self.nodes[o]] = 0.0
        return upper

    def values(self, choice: PeriodChoice) -> FloatArray:
        """A choice as a column vector."""
        x = np.zeros(len(self.upper))
        x[self.replica] = choice.replicas
        for node_type, column in self.used.items():
            x[column] = choice.committed[node_type]
        x[self.nodes] = choice.hourly
        for node_type, columns in self.spare.items():
            x[columns[: choice.spares[node_type]]] = 1.0
        if self.batch:
            x[self.batch] = choice.batch_requests_per_s
        return x

    def read(self, t: int, values: FloatArray, upper: FloatArray) -> PeriodChoice | None:
        """Whole numbers of a solution, or None where rounding breaks it: the solver's tolerance hid a shortfall."""
        x = np.where(self.whole, np.round(values), np.maximum(values, 0.0))
        problem = self.problem
        served = np.zeros(len(problem.workloads))
        for d, deployment in enumerate(problem.deployments):
            served[deployment.workload] += deployment.requests_per_s * x[self.replica[d]]
        batch = []
        for b, work in enumerate(problem.batch):
            batch.append(float(min(x[self.batch[b]], served[work.workload], upper[self.batch[b]])))
            x[self.batch[b]] = batch[-1]
        lower, _ = self.bounds(t, np.zeros(self.types))
        activity = self.matrix @ x
        if (activity < lower - TOLERANCE).any() or (activity > self.row_upper + TOLERANCE).any():
            return None
        if (x > upper + TOLERANCE).any():
            return None
        whole = x.astype(np.int64)
        committed = [0] * self.types
        for node_type, column in self.used.items():
            committed[node_type] = int(whole[column])
        spares = [0] * self.types
        for node_type, columns in self.spare.items():
            spares[node_type] = int(whole[columns].sum())
        return PeriodChoice(
            tuple(whole[self.replica].tolist()),
            tuple(committed),
            tuple(whole[self.nodes].tolist()),
            tuple(spares),
            tuple(batch),
        )

    def _model(self) -> highspy.Highs:
        if self._highs is not None:
            return self._highs
        highs = highspy.Highs()  # type: ignore[no-untyped-call]
        for name, value in PROVE.items():
            if highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
                raise SolverFailedError(f"HiGHS refuses option {name}={value}")
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = len(self.upper), len(self.row_lower)
        model.col_cost_ = np.zeros(len(self.upper))
        model.col_lower_ = np.zeros(len(self.upper))
        model.col_upper_ = np.where(np.isinf(self.upper), highspy.kHighsInf, self.upper)
        model.row_lower_ = np.where(np.isinf(self.row_lower), -highspy.kHighsInf, self.row_lower)
        model.row_upper_ = np.where(np.isinf(self.row_upper), highspy.kHighsInf, self.row_upper)
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = self.matrix.indptr.astype(np.int32)
        model.a_matrix_.index_ = self.matrix.indices.astype(np.int32)
        model.a_matrix_.value_ = self.matrix.data
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        model.integrality_ = [kinds[bool(one)] for one in self.whole]
        if highs.passModel(model) == highspy.HighsStatus.kError:
            raise SolverFailedError("HiGHS refused the model of a period")
        self._highs = highs
        return highs


def _per_node(problem: HorizonProblem, one: HorizonDeployment) -> int:
    """Replicas in the nodes that one of them takes or is inside of."""
    return max(1, problem.node_types[one.node_type].devices // one.devices_per_replica)


def _nodes_alone(problem: HorizonProblem) -> IntArray:
    """Nodes of a type that serve every workload's peak alone, and each batch work within its shortest period."""
    most = np.zeros(len(problem.node_types))
    peak = problem.demand.max(axis=0)
    for work in problem.batch:
        hours = min(p.hours for p in problem.periods if work.from_month <= p.month < work.to_month)
        peak[work.workload] += work.requests / (hours * SECONDS_PER_HOUR)
    for t in range(len(problem.node_types)):
        for w, rate in enumerate(peak.tolist()):
            fits = [
                (d.requests_per_s * _per_node(problem, d), problem.spans(d))
                for d in problem.deployments
                if d.node_type == t and d.workload == w
            ]
            if fits and rate > 0.0:
                most[t] += min((math.ceil(rate / served) + 1) * nodes for served, nodes in fits)
    limited: IntArray = np.minimum(most, MOST_NODES).astype(np.int64)
    return limited


def _most_spot(problem: HorizonProblem, alone: IntArray) -> IntArray:
    """Interruptible nodes whose number without spares is enough for everything; 0 where none may be taken."""
    most = np.zeros(len(alone), dtype=np.int64)
    if problem.spot.max_fraction <= 0.0:
        return most
    for t in {offer.node_type for offer in problem.hourly if offer.interruptible}:
        nodes = int(alone[t])
        while nodes and nodes - spares_needed(nodes, problem.spot) < alone[t] and nodes < 2 * alone[t] + MOST_SPARES:
            nodes += 1
        most[t] = nodes
    return most


def _most_steady(problem: HorizonProblem, alone: IntArray, most_spot: IntArray) -> IntArray:
    """Nodes that are worth taking: those for all demand, and idle ones that make room for a share of cheap spot."""
    if not most_spot.any():
        return alone
    devices = np.array([node_type.devices for node_type in problem.node_types])
    beside = math.ceil(float(devices @ most_spot) / problem.spot.max_fraction)
    limited: IntArray = np.minimum(alone + np.ceil(beside / devices), MOST_NODES).astype(np.int64)
    return limited
