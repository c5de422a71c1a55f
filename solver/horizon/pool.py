"""Choices found so far, tried on every period: what serves much demand serves less of it too.

A choice found for one period is feasible for every other whose demand it covers. What it costs there follows from
how many nodes are committed: steady nodes beyond those are taken on demand.
"""

from dataclasses import replace

import numpy as np

from solver.horizon.period import PeriodChoice
from solver.horizon.problem import FloatArray, HorizonProblem
from solver.units import SECONDS_PER_HOUR

COVERS = 1e-9
"""Relative shortfall of a sum of capacities that is rounding of floating point."""


class ChoiceTable:
    """Choices as arrays; ``steady`` nodes are committed or on demand, whichever there are."""

    def __init__(self, problem: HorizonProblem) -> None:
        self.problem = problem
        self.choices: list[PeriodChoice] = []
        self._seen: set[tuple[tuple[int, ...], ...]] = set()
        types = len(problem.node_types)
        self.steady: FloatArray = np.zeros((0, types))
        self.spot_usd_per_hour: FloatArray = np.zeros(0)
        self.served: FloatArray = np.zeros((0, len(problem.workloads)))
        self._deployments = [(d.workload, d.requests_per_s) for d in problem.deployments]
        self.on_demand: list[list[tuple[float, float, int]]] = [[] for _ in range(types)]
        for o, offer in enumerate(problem.hourly):
            if not offer.interruptible:
                most = np.inf if offer.max_nodes is None else float(offer.max_nodes)
                self.on_demand[offer.node_type].append((offer.usd_per_hour, most, o))
        for offers in self.on_demand:
            offers.sort()

    def __len__(self) -> int:
        return len(self.choices)

    def add(self, choice: PeriodChoice) -> None:
        """Keep a choice, unless the same nodes and replicas are there already."""
        problem = self.problem
        steady = np.array(choice.committed, dtype=np.float64)
        spot = 0.0
        spots = []
        for nodes, offer in zip(choice.hourly, problem.hourly, strict=True):
            if offer.interruptible:
                spot += nodes * offer.usd_per_hour
                spots.append(nodes)
            else:
                steady[offer.node_type] += nodes
        key = (choice.replicas, tuple(steady.astype(int).tolist()), tuple(spots))
        if key in self._seen:
            return
        self._seen.add(key)
        served = np.zeros(len(problem.workloads))
        for (workload, rate), count in zip(self._deployments, choice.replicas, strict=True):
            served[workload] += rate * count
        self.choices.append(choice)
        self.steady = np.vstack([self.steady, steady])
        self.spot_usd_per_hour = np.append(self.spot_usd_per_hour, spot)
        self.served = np.vstack([self.served, served])

    def covering(self, t: int) -> np.ndarray:
        """Which choices serve the demand of period ``t``."""
        demand = self.problem.demand[t] if t < len(self.problem.periods) else self.problem.demand.max(axis=0)
        return np.asarray((self.served >= demand * (1.0 - COVERS)).all(axis=1))

    def priced(self, t: int, price: FloatArray, committed: FloatArray, batch: FloatArray) -> FloatArray:
        """USD per hour of every choice in period ``t``, committed nodes at ``price`` each; infinite if unusable."""
        cost = self.hourly_usd(committed) + np.minimum(self.steady, committed) @ price
        if len(batch):
            cost = cost - self.batch_rates(t) @ batch * SECONDS_PER_HOUR
        return np.where(self.covering(t), cost, np.inf)

    def best(self, t: int, price: FloatArray, committed: FloatArray, batch: FloatArray) -> PeriodChoice | None:
        """The cheapest usable choice of a period at these prices, as it is taken there."""
        if not self.choices:
            return None
        cost = self.priced(t, price, committed, batch)
        position = int(np.argmin(cost))
        return None if np.isinf(cost[position]) else self.choice_at(position, t, committed)

    def hourly_usd(self, committed: FloatArray) -> FloatArray:
        """USD per hour of every choice beside so many committed nodes by type; infinite where nodes are lacking."""
        cost = self.spot_usd_per_hour.copy()
        beyond = np.maximum(self.steady - committed, 0.0)
        for node_type, offers in enumerate(self.on_demand):
            left = beyond[:, node_type].copy()
            if not left.any():
                continue
            for usd_per_hour, most, _ in offers:
                taken = np.minimum(left, most)
                cost += taken * usd_per_hour
                left -= taken
            cost[left > 0.0] = np.inf
        return cost

    def batch_rates(self, t: int) -> FloatArray:
        """Requests per second of each batch work that every choice does in period ``t``: choices × works."""
        problem = self.problem
        rates = np.zeros((len(self.choices), len(problem.batch)))
        if t >= len(problem.periods):
            return rates
        period = problem.periods[t]
        for b, work in enumerate(problem.batch):
            if work.from_month <= period.month < work.to_month:
                most = work.requests / (period.hours * SECONDS_PER_HOUR)
                rates[:, b] = np.minimum(self.served[:, work.workload], most)
        return rates

    def choice_at(self, position: int, t: int, committed: FloatArray) -> PeriodChoice:
        """The choice as it is taken in period ``t`` beside so many committed nodes."""
        choice = self.choices[position]
        hourly = list(choice.hourly)
        used = [0] * len(self.problem.node_types)
        for node_type, offers in enumerate(self.on_demand):
            left = int(self.steady[position, node_type])
            used[node_type] = min(left, int(committed[node_type]))
            left -= used[node_type]
            for _, most, o in offers:
                hourly[o] = int(min(left, most))
                left -= hourly[o]
        rates = tuple(self.batch_rates(t)[position].tolist())
        return replace(choice, hourly=tuple(hourly), committed=tuple(used), batch_requests_per_s=rates)
