"""What each workload costs at least where a node of every group has a price of its own.

Workloads meet on nodes they share. Given what a whole node of each group is charged, and the share of it that a replica
takes, they part again, and each is the small programme of ``own_cost`` at other prices.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from solver.fleet.decomposition.standalone import divisible_cost, least_cost, replacement_price
from solver.fleet.deployments import BoolArray, FloatArray, IntArray
from solver.fleet.problem import FleetProblem
from solver.fleet.reduce import ReducedProblem, workload_ranges
from solver.units import kg_per_hour

SAME_COST = 1e-9
"""Relative; ways of serving a workload that differ by less cost the same."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way of serving a workload in whole replicas.

    replicas: (pair, count). nodes: (group, nodes of it, divisible) of groups that are priced. rest: price of all else.
    """

    replicas: tuple[tuple[int, int], ...]
    nodes: tuple[tuple[int, float], ...]
    rest: float

    def at(self, prices: FloatArray) -> float:
        """What it costs where a node of each group has this price."""
        return self.rest + math.fsum(prices[p] * count for p, count in self.nodes)


@dataclass(slots=True, eq=False)
class WorkloadsAtPrices:
    """Least cost of every workload at one set of prices. barred: groups of which no node may be taken.

    bound: of a branch at these prices, nodes included.
    """

    prices: FloatArray
    barred: BoolArray
    least: list[float]
    bound: float = -math.inf

    @property
    def total(self) -> float:
        return math.fsum(self.least)


@dataclass(slots=True, eq=False)
class Subproblems:
    """The workloads one by one, with all that was found out about them.

    limited: by group, whether its cheapest offer may run out. priced: whether replicas share nodes of it or it is
    limited; only then is its price to be found.
    cheapest: by group, the objective's price of its cheapest node. fixed, share: by pair, price that no group's price
    changes, and nodes of its group that are charged by the group's price. ways: of each workload, by nodes they take.
    """

    reduced: ReducedProblem
    time_limit_s: float
    gap_fraction: float
    seed: int
    limited: BoolArray = field(init=False)
    priced: BoolArray = field(init=False)
    cheapest: FloatArray = field(init=False)
    fixed: FloatArray = field(init=False)
    share: FloatArray = field(init=False)
    ranges: list[tuple[int, int]] = field(init=False)
    loads: list[FloatArray] = field(init=False)
    ways: list[dict[tuple[tuple[int, float], ...], Way]] = field(init=False)
    seconds: float = 0.0
    _solved: dict[tuple[int, bytes, bytes], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        reduced, problem, pairs = self.reduced, self.reduced.problem, self.reduced.pairs
        node, replica = pairs.takes("cost" if problem.objective == "throughput" else problem.objective)
        inside = pairs.slots > 0
        limits = [problem.offers[group.offers[0]].max_nodes for group in reduced.groups]
        self.limited = np.array([most is not None for most in limits], dtype=np.bool_)
        self.priced = self.limited.copy()
        self.priced[pairs.group[pairs.slots > 1]] = True
        self.cheapest = np.array([min(node_price(problem, o) for o in group.offers) for group in reduced.groups])
        shared = inside & self.priced[pairs.group]
        self.fixed = replica + np.where(shared, 0.0, node * pairs.node_fraction)
        self.share = np.where(shared, pairs.node_fraction, 0.0)
        self.ranges = workload_ranges(problem, pairs)
        self.loads = []
        for start, end in self.ranges:
            load = pairs.load[start:end]
            self.loads.append(load[:, (load > 0).any(axis=0)])
        self.ways = [{} for _ in self.ranges]

    def add_way(self, w: int, replicas: Mapping[int, int]) -> None:
        """Keep a way of serving ``w``, unless one that takes the same nodes is no dearer."""
        taken: dict[int, float] = {}
        for i, count in replicas.items():
            if self.share[i]:
                p = int(self.reduced.pairs.group[i])
                taken[p] = taken.get(p, 0.0) + count * float(self.share[i])
        nodes = tuple(sorted((p, round(count, 9)) for p, count in taken.items()))
        rest = math.fsum(float(self.fixed[i]) * count for i, count in replicas.items())
        known = self.ways[w].get(nodes)
        if known is None or rest < known.rest:
            self.ways[w][nodes] = Way(tuple(sorted(replicas.items())), nodes, rest)

    def at(self, prices: FloatArray, barred: BoolArray) -> WorkloadsAtPrices:
        """S_w of all workloads; infinite where one cannot be served."""
        return WorkloadsAtPrices(prices, barred, [self.least(w, prices, barred) for w in range(len(self.ranges))])

    def least(self, w: int, prices: FloatArray, barred: BoolArray) -> float:
        """S_w = min Σ_i u_i x_i over whole x that serve all of w, u_i = fixed + share · price of the group."""
        rows, load, unit = self._allowed(w, prices, barred)
        if not load.shape[1]:
            return 0.0
        if not len(rows) or np.isinf(load).all(axis=0).any():
            return math.inf
        best = self._cheapest_way(w, prices, barred)
        relaxed, value = divisible_cost(load, unit)
        if best is not None:  # a dearer pair than the best way known bears is in no better one
            most = best.at(prices) * (1 + SAME_COST)
            used = np.isin(rows, [i for i, _ in best.replicas])
            keep = used | (relaxed + unit - value <= most)
            rows, load, unit = rows[keep], load[keep], unit[keep]
        _, needed = replacement_price(load, unit)
        if best is not None:
            needed = np.union1d(needed, np.flatnonzero(np.isin(rows, [i for i, _ in best.replicas])))
        key = (w, rows[needed].tobytes(), unit[needed].tobytes())
        if key not in self._solved:
            start = None
            if best is not None:
                count_of = dict(best.replicas)
                start = {n: count_of.get(int(i), 0) for n, i in enumerate(rows[needed])}
            few = self.reduced.problem.demands[w].min_replicas
            solved, seconds, counts = least_cost(
                load[needed], unit[needed], few, self.time_limit_s, self.seed, start, self.gap_fraction
            )
            self.seconds += seconds
            if counts:
                found = {int(i): n for i, n in zip(rows[needed], counts, strict=True) if n}
                self.add_way(w, found)
            self._solved[key] = solved
        return max(self._solved[key], relaxed)

    def excess(self, w: int, priced: WorkloadsAtPrices, most: float) -> tuple[FloatArray, FloatArray]:
        """(by how much, replaced price) of the pairs of w: a plan with the pair costs that much more than S_w.

        As in ``own_cost``: u_i − r_i by replacement, Σ_k π_k + u_i − v_i − S_w by duality. Those beyond ``most`` are only
        told to be beyond it. The replaced prices r make a row Σ r_i x_i ≥ S_w of every plan; pairs on barred groups carry
        all of S_w there.
        """
        start, end = self.ranges[w]
        least = priced.least[w]
        excess, price = np.full(end - start, math.inf), np.full(end - start, least)
        rows, load, unit = self._allowed(w, priced.prices, priced.barred)
        if not load.shape[1]:
            return np.zeros(end - start), np.zeros(end - start)
        relaxed, value = divisible_cost(load, unit)
        excess[rows - start] = by_duality = np.maximum(relaxed + unit - value - least, 0.0)
        price[rows - start] = unit
        near = by_duality <= most
        replaced, _ = replacement_price(load[near], unit[near])
        price[rows[near] - start] = replaced
        excess[rows[near] - start] = np.maximum(by_duality[near], unit[near] - replaced)
        return excess, price

    def _allowed(self, w: int, prices: FloatArray, barred: BoolArray) -> tuple[IntArray, FloatArray, FloatArray]:
        start, end = self.ranges[w]
        group = self.reduced.pairs.group[start:end]
        free = ~(barred[group] & (self.share[start:end] > 0))
        unit = self.fixed[start:end] + self.share[start:end] * prices[group]
        return np.flatnonzero(free) + start, self.loads[w][free], unit[free]

    def _cheapest_way(self, w: int, prices: FloatArray, barred: BoolArray) -> Way | None:
        allowed = [way for way in self.ways[w].values() if not any(barred[p] for p, _ in way.nodes)]
        return min(allowed, key=lambda way: way.at(prices), default=None)


def node_price(problem: FleetProblem, offer: int) -> float:
    """What a node of the offer adds to the objective, nothing running on it: USD/h, W or kg CO2e/h."""
    slot = problem.offers[offer]
    if problem.objective == "power":
        return slot.host_power_w
    if problem.objective == "carbon":
        return kg_per_hour(slot.host_power_w, slot.kg_co2e_per_kwh)
    return slot.usd_per_hour
