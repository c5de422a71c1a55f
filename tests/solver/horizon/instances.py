"""Tiny random horizons, and the cheapest plan of one by trying everything."""

import itertools
import math
from collections.abc import Iterator

import numpy as np

from solver.horizon.problem import (
    BatchWork,
    Commitment,
    HorizonDeployment,
    HorizonProblem,
    HourlyOffer,
    NodeType,
    Period,
    SpotRule,
)
from solver.horizon.spot import spares_needed

MOST = 9
"""Nodes tried of each source; every instance is served by fewer."""


def tiny(seed: int, *, spot: bool = False) -> HorizonProblem:
    rng = np.random.default_rng(seed)
    kinds, workloads, months = (int(n) for n in (rng.integers(1, 3), rng.integers(1, 3), rng.integers(1, 3)))
    types = tuple(NodeType(f"node-{k}", int(rng.choice([1, 2, 4]))) for k in range(kinds))
    keys = itertools.count()
    deployments = tuple(
        HorizonDeployment(w, k, g, round(float(g * rng.uniform(0.5, 1.5)), 3), next(keys))
        for k in range(kinds)
        for w in range(workloads)
        for g in (1, 2, 4)
        if g <= types[k].devices and rng.random() < 0.7
    )
    hourly = [
        HourlyOffer(
            f"hour-{k}", k, round(float(types[k].devices * rng.uniform(1, 3)), 2), _some_limit(rng)
        )
        for k in range(kinds)
        if rng.random() < 0.9
    ]  # fmt: skip
    if spot:
        prices = [round(float(node.devices * rng.uniform(0.3, 1)), 2) for node in types]
        hourly += [HourlyOffer(f"spot-{k}", k, price, None, True) for k, price in enumerate(prices)]
    commitments = []
    for k in range(kinds):
        most = _some_limit(rng)
        for start in range(months):
            term = int(rng.integers(1, months + 1))
            if rng.random() < 0.6:
                usd = round(float(types[k].devices * rng.uniform(0.4, 2) * 730 * term), 2)
                commitments.append(Commitment(f"term-{k}", k, "reserved", start, term, usd, most))
    periods = []
    for month in range(months):
        count = int(rng.integers(1, 3))
        for _ in range(count):
            rates = [round(float(rng.uniform(0, 2.5)), 2) if rng.random() < 0.9 else 0.0 for _ in range(workloads)]
            periods.append(Period(month, 730.0 / count, tuple(rates)))
    rule = SpotRule()
    if spot:
        share, away = float(rng.choice([0.3, 0.5, 1.0])), float(rng.choice([0.0, 0.05]))
        rule = SpotRule(share, away, 0.99, int(rng.integers(0, 2)))
    names = tuple(f"w{w}" for w in range(workloads))
    return HorizonProblem(
        months, names, tuple(periods), types, deployments, tuple(hourly), tuple(commitments), (), rule
    )


def with_batch(problem: HorizonProblem, seed: int) -> HorizonProblem:
    """The same with its last workload's demand as work to be done at any time."""
    rng = np.random.default_rng(seed)
    last = len(problem.workloads) - 1
    hours = 730.0 * problem.months * 3600.0
    requests = hours * float(rng.uniform(0.1, 1.0))
    periods = tuple(Period(p.month, p.hours, (*p.requests_per_s[:-1], 0.0)) for p in problem.periods)
    return HorizonProblem(
        problem.months, problem.workloads, periods, problem.node_types, problem.deployments, problem.hourly,
        problem.commitments, (BatchWork(last, requests, 0, problem.months),),
    )  # fmt: skip


def _some_limit(rng: np.random.Generator) -> int | None:
    return None if rng.random() < 0.65 else int(rng.integers(1, 4))


def cheapest(problem: HorizonProblem) -> float:
    """USD of the cheapest plan; infinite where there is none. No programme is solved."""
    best = math.inf
    known: dict[tuple[int, tuple[float, ...]], float] = {}
    for nodes in _commitments(problem):
        total = sum(n * one.usd_per_node for n, one in zip(nodes, problem.commitments, strict=True))
        if total >= best:
            continue
        committed = problem.committed(list(nodes))
        for t, period in enumerate(problem.periods):
            there = tuple(committed[period.month].tolist())
            if (t, there) not in known:
                known[t, there] = _period_usd_per_hour(problem, t, there)
            total += period.hours * known[t, there]
            if total >= best:
                break
        best = min(best, total)
    return best


def _commitments(problem: HorizonProblem) -> Iterator[tuple[int, ...]]:
    most = [MOST if one.max_nodes is None else min(MOST, one.max_nodes) for one in problem.commitments]
    for nodes in itertools.product(*(range(m + 1) for m in most)):
        within = True
        for month in range(problem.months):
            for one in problem.commitments:
                running = sum(
                    n
                    for n, other in zip(nodes, problem.commitments, strict=True)
                    if other.id == one.id and other.start_month <= month < other.start_month + other.term_months
                )
                within &= one.max_nodes is None or running <= one.max_nodes
        if within:
            yield nodes


def _period_usd_per_hour(problem: HorizonProblem, t: int, committed: tuple[float, ...]) -> float:
    """Every number of nodes of every source, cheapest first, until one serves the demand."""
    options = [_of_type(problem, k, int(committed[k])) for k in range(len(problem.node_types))]
    devices = [node.devices for node in problem.node_types]
    known: dict[tuple[int, ...], bool] = {}
    for mix in sorted(itertools.product(*options), key=lambda m: sum(o[0] for o in m)):
        spot = sum(o[3] * g for o, g in zip(mix, devices, strict=True))
        every = sum((o[2] + o[3]) * g for o, g in zip(mix, devices, strict=True))
        if spot > problem.spot.max_fraction * every + 1e-9:
            continue
        nodes = tuple(o[1] for o in mix)
        if nodes not in known:
            room = [n * g for n, g in zip(nodes, devices, strict=True)]
            known[nodes] = _serves(problem, 0, room, list(problem.periods[t].requests_per_s))
        if known[nodes]:
            return sum(o[0] for o in mix)
    return math.inf


def _of_type(problem: HorizonProblem, k: int, committed: int) -> list[tuple[float, int, int, int]]:
    """(USD per hour, nodes without spares, steady nodes, spot nodes) that can be had of a type."""
    steady = [o for o in problem.hourly if o.node_type == k and not o.interruptible]
    spot = [o for o in problem.hourly if o.node_type == k and o.interruptible]
    most_steady = 0 if not steady else MOST if steady[0].max_nodes is None else steady[0].max_nodes
    most_spot = MOST if spot and problem.spot.max_fraction > 0.0 else 0
    found = []
    for n, s in itertools.product(range(most_steady + 1), range(most_spot + 1)):
        usd = (n * steady[0].usd_per_hour if n else 0.0) + (s * spot[0].usd_per_hour if s else 0.0)
        found.append((usd, committed + n + s - spares_needed(s, problem.spot), committed + n, s))
    return found


def _serves(problem: HorizonProblem, d: int, room: list[int], wanted: list[float]) -> bool:
    """Can devices by type serve the rates? Sizes are powers of two up to a node's, so that devices decide."""
    if all(rate <= 1e-9 for rate in wanted):
        return True
    if d == len(problem.deployments):
        return False
    one = problem.deployments[d]
    useful = math.ceil(max(0.0, wanted[one.workload]) / one.requests_per_s - 1e-9)
    for count in range(min(room[one.node_type] // one.devices_per_replica, useful), -1, -1):
        left, rest = list(room), list(wanted)
        left[one.node_type] -= count * one.devices_per_replica
        rest[one.workload] -= count * one.requests_per_s
        if _serves(problem, d + 1, left, rest):
            return True
    return False
