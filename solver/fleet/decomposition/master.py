"""Choosing a way of serving for each workload, and whole nodes for all of them together.

    min Σ_po c_po n_po + Σ_wv rest_wv μ_wv     Σ_v μ_wv = 1,   Σ_wv nodes_pwv μ_wv ≤ Σ_o n_po,   within the branch

With μ and n divisible its duals are prices of nodes (Dantzig and Wolfe, Operations Research 8, 1960); with both whole
its solution is a plan.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pulp

from solver.errors import SolverFailedError
from solver.fleet.decomposition.prices import Subproblems, Way, node_price
from solver.fleet.deployments import FloatArray
from solver.fleet.heuristic.greedy import Draft
from solver.fleet.heuristic.taken import Fleet
from solver.fleet.highs import solve_with_highs

UNSERVED_FACTOR = 10.0
"""Price of leaving a workload unserved, of the dearest way known and all nodes of a branch: it only ends a branch."""


@dataclass(frozen=True, slots=True)
class Branch:
    """Plans that take at least and at most so many nodes of some groups for replicas inside a node; bound: of those."""

    bound: float
    least: dict[int, int] = field(default_factory=dict)
    most: dict[int, int] = field(default_factory=dict)

    def barred(self, groups: int) -> np.typing.NDArray[np.bool_]:
        """Groups of which none may be taken."""
        none = np.zeros(groups, dtype=np.bool_)
        none[[p for p, most in self.most.items() if not most]] = True
        return none


@dataclass(frozen=True, slots=True)
class Relaxed:
    """The master with everything divisible. nodes: by group. prices: of a node, by group with a way on it."""

    objective: float
    nodes: dict[int, float]
    prices: dict[int, float]


def stock_of(known: Subproblems, p: int) -> list[tuple[float, float]]:
    """(price, nodes) of a group's offers, cheapest first."""
    problem = known.reduced.problem
    offers = known.reduced.groups[p].offers
    stock = [(node_price(problem, o), problem.offers[o].max_nodes) for o in offers]
    return sorted((price, math.inf if most is None else float(most)) for price, most in stock)


def cost_of_nodes(known: Subproblems, branch: Branch, prices: FloatArray) -> float:
    """Σ_p min Σ_o (c_o − price_p) n_o over the nodes the branch allows of each group: the other part of the Lagrangian."""
    total = 0.0
    for p in np.flatnonzero(known.priced).tolist():
        least, most = branch.least.get(p, 0), branch.most.get(p, int(known.reduced.max_nodes[p]))
        taken = 0.0
        for price, stock in stock_of(known, p):
            gain = price - prices[p]
            count = min(stock, (most if gain < 0 else least) - taken)
            if count > 0:
                total += gain * count
                taken += count
        if taken < least:
            return math.inf
    return total


def relaxed_master(known: Subproblems, branch: Branch) -> Relaxed:
    """Solve it by linear programming; unserved workloads keep it feasible and are far too dear to be in a plan."""
    ways = [(w, way) for w, found in enumerate(known.ways) for way in found.values() if _allows(branch, way)]
    groups = sorted({p for _, way in ways for p, _ in way.nodes} | set(branch.least))
    offers = [(p, price, stock) for p in groups for price, stock in stock_of(known, p)]
    row_of = {p: r for r, p in enumerate(groups)}
    workloads = len(known.ways)
    dearest = sum(max((way.at(known.cheapest) for way in found.values()), default=0.0) for found in known.ways)
    dearest += sum(branch.least.get(p, 0) * known.cheapest[p] for p in groups)
    unserved = UNSERVED_FACTOR * (dearest + 1.0)
    cost = [price for _, price, _ in offers] + [way.rest for _, way in ways] + [unserved] * workloads
    bounds = [(0.0, None if math.isinf(stock) else stock) for _, _, stock in offers]
    bounds += [(0.0, None)] * (len(ways) + workloads)
    from scipy.optimize import linprog  # many plans need none, and it is large

    entries: list[tuple[int, int, float]] = []
    limit = [0.0] * len(groups)
    for column, (p, _, _) in enumerate(offers):
        entries.append((row_of[p], column, -1.0))
    for number, (_, way) in enumerate(ways):
        entries += [(row_of[p], len(offers) + number, count) for p, count in way.nodes]
    for sign, counts in ((-1.0, branch.least), (1.0, branch.most)):
        for p, count in counts.items():
            if p in row_of:
                entries += [(len(limit), column, sign) for column, (q, _, _) in enumerate(offers) if q == p]
                limit.append(sign * count)
    once = [(w, len(offers) + number, 1.0) for number, (w, _) in enumerate(ways)]
    once += [(w, len(offers) + len(ways) + w, 1.0) for w in range(workloads)]
    solved = linprog(
        cost,
        A_ub=_matrix(entries, len(limit), len(cost)) if limit else None,
        b_ub=limit or None,
        A_eq=_matrix(once, workloads, len(cost)),
        b_eq=np.ones(workloads),
        bounds=bounds,
        method="highs-ds",
    )
    if solved.status != 0:
        return Relaxed(math.inf, {}, {})
    nodes = dict.fromkeys(groups, 0.0)
    for (p, _, _), count in zip(offers, solved.x, strict=False):
        nodes[p] += float(count)
    prices = {p: max(0.0, -float(solved.ineqlin.marginals[r])) for p, r in row_of.items()}
    return Relaxed(float(solved.fun), nodes, prices)


def whole_master(known: Subproblems, time_limit_s: float, seed: int) -> tuple[list[Way] | None, float]:
    """(the best way of each workload with nodes whole, solver seconds); None where it finds none."""
    programme = pulp.LpProblem("ways", pulp.LpMinimize)
    cost: dict[pulp.LpVariable, float] = {}
    taken: dict[int, dict[pulp.LpVariable, float]] = {}
    chosen: list[list[tuple[pulp.LpVariable, Way]]] = []
    for w, found in enumerate(known.ways):
        chosen.append(
            [(programme.add_variable(f"v_{w}_{v}", 0, 1, cat="Integer"), x) for v, x in enumerate(found.values())]
        )
        for variable, way in chosen[-1]:
            cost[variable] = way.rest
            for p, count in way.nodes:
                taken.setdefault(p, {})[variable] = count
        if not chosen[-1]:
            return None, 0.0
    rows: list[tuple[dict[pulp.LpVariable, float], int, float]] = [
        (dict.fromkeys((variable for variable, _ in ways), 1.0), pulp.LpConstraintEQ, 1.0) for ways in chosen
    ]
    for p, terms in sorted(taken.items()):
        most = int(known.reduced.max_nodes[p])
        for o, (price, stock) in enumerate(stock_of(known, p)):
            nodes = programme.add_variable(f"n_{p}_{o}", 0, min(stock, most), cat="Integer")
            cost[nodes] = price
            terms[nodes] = -1.0
        rows.append((terms, pulp.LpConstraintLE, 0.0))
    programme.setObjective(pulp.LpAffineExpression(cost))
    for number, (terms, sense, rhs) in enumerate(rows):
        programme.addConstraint(pulp.LpConstraint(pulp.LpAffineExpression(terms), sense, f"r_{number}", rhs))
    try:
        solved = solve_with_highs(programme, None, time_limit_s, 0.0, seed)
    except SolverFailedError:
        return None, 0.0
    if solved.proof not in ("optimal", "feasible"):
        return None, solved.seconds
    return [max(ways, key=lambda pair: pair[0].varValue or 0.0)[1] for ways in chosen], solved.seconds


def draft_of(known: Subproblems, ways: list[Way]) -> Draft | None:
    """Nodes for these ways, largest replicas first; None where offers run out."""
    reduced = known.reduced
    fleet = Fleet(reduced.problem, reduced.groups)
    placed = [pair for way in ways for pair in way.replicas]
    for i, count in sorted(placed, key=lambda pair: (-reduced.pairs.node_fraction[pair[0]], pair[0])):
        if not fleet.place(reduced.pairs, i, count):
            return None
    return Draft(dict(sorted(fleet.nodes.items())), dict(sorted(fleet.replicas.items())), math.nan, 1.0)


def _allows(branch: Branch, way: Way) -> bool:
    return all(branch.most.get(p, 1) > 0 for p, _ in way.nodes)


def _matrix(entries: list[tuple[int, int, float]], rows: int, columns: int) -> Any:
    from scipy.sparse import coo_array

    row, column, value = (np.array(part) for part in zip(*entries, strict=True))
    return coo_array((value, (row, column)), shape=(rows, columns)).tocsr()
