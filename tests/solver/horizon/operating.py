"""Tiny random horizons with rules of operation, and the cheapest plan of one by trying everything.

Nothing of the planner's formulation is used: a plan is a number of nodes by the hour of each offer and of replicas in each
period, every combination of which is tried, hour after hour of the months walked through.
"""

import itertools
import math

import numpy as np

from solver.horizon.operation import Operation
from solver.horizon.problem import Commitment, HorizonDeployment, HorizonProblem, HourlyOffer, NodeType, Period
from tests.solver.horizon.instances import _cheapest_commitments, _some_limit, _worth

MOST_HOURS = 6
MOST_COMMITTED = 2
Known = dict[tuple[int, tuple[float, ...]], float]


def tiny_operated(seed: int) -> HorizonProblem:
    """Up to two months of two or three periods in random order, fewer where there is much to choose from, some commitments and
    limits, and rules of which each is there half of the time."""
    rng = np.random.default_rng([seed, 7])
    kinds, workloads = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    types = tuple(NodeType(f"node-{k}", int(rng.choice([1, 2]))) for k in range(kinds))
    keys = itertools.count()
    deployments = tuple(
        HorizonDeployment(w, k, g, round(float(g * rng.uniform(0.5, 1.5)), 3), next(keys))
        for k, node in enumerate(types)
        for w in range(workloads)
        for g in (1, 2)
        if g <= node.devices and rng.random() < 0.8
    )
    hourly = tuple(
        HourlyOffer(f"hour-{k}", k, round(float(node.devices * rng.uniform(1, 3)), 2), _some_limit(rng))
        for k, node in enumerate(types)
        if rng.random() < 0.95
    )
    months = int(rng.integers(1, 3)) if kinds * workloads < 4 else 1
    periods: list[Period] = []
    sequences = []
    for month in range(months):
        count = int(rng.integers(2, 4)) if months == 1 and kinds * workloads < 4 else 2
        order = [*range(count), *rng.integers(0, count, int(rng.integers(1, MOST_HOURS - count + 1))).tolist()]
        hours = [int(t) for t in rng.permutation(order)]
        sequences.append(tuple(len(periods) + t for t in hours))
        each = 730.0 / len(hours)
        periods += [
            Period(month, each * hours.count(t), tuple(_some_rate(rng) for _ in range(workloads))) for t in range(count)
        ]
    shortest = min(len(sequence) for sequence in sequences)
    operation = Operation(
        max_configurations=int(rng.integers(1, 3)) if rng.random() < 0.5 else None,
        min_up_hours=int(rng.integers(2, shortest + 1)) if rng.random() < 0.6 else 1,
        max_change_fraction=float(rng.choice([0.1, 0.4])) if rng.random() < 0.5 else None,
    )
    k = int(rng.integers(0, kinds))
    usd = round(float(types[k].devices * rng.uniform(0.4, 2) * 730 * months), 2)
    commitments = (Commitment("term", k, "reserved", 0, months, usd, MOST_COMMITTED),) if rng.random() < 0.5 else ()
    names = tuple(f"w{w}" for w in range(workloads))
    return HorizonProblem(
        months,
        names,
        tuple(periods),
        types,
        deployments,
        hourly,
        commitments,
        discount_fraction_per_year=float(rng.choice([0.0, 0.5])),
        operation=operation,
        sequences=tuple(sequences),
    )


def _some_rate(rng: np.random.Generator) -> float:
    return round(float(rng.choice([0.0, 1.0, 3.0]) * rng.uniform(0.3, 1.0)), 2)


def cheapest_operated(problem: HorizonProblem) -> float:
    """USD of the cheapest plan that keeps to the rules; infinite where there is none."""
    best = math.inf
    for kept in _sets(problem):
        known: dict[tuple[int, tuple[float, ...]], float] = {}

        def months_usd(
            nodes: tuple[int, ...], most: float, kept: tuple[int, ...] = kept, known: Known = known
        ) -> float:
            committed = problem.committed(list(nodes))
            total = 0.0
            for month in range(problem.months):
                there = (month, tuple(committed[month].tolist()))
                if there not in known:
                    known[there] = _month(problem, kept, month, committed[month]) * _worth(problem, month + 1)
                total += known[there]
                if total >= most:
                    break
            return total

        best = min(best, _cheapest_commitments(problem, months_usd))
    return best


def _sets(problem: HorizonProblem) -> list[tuple[int, ...]]:
    """Every choice of as many deployments of each workload as there may be."""
    most = problem.operation.max_configurations
    by_workload = []
    for w in range(len(problem.workloads)):
        mine = [d for d, one in enumerate(problem.deployments) if one.workload == w]
        size = len(mine) if most is None else min(most, len(mine))
        by_workload.append(list(itertools.combinations(mine, size)))
    return [tuple(sorted(itertools.chain(*one))) for one in itertools.product(*by_workload)]


def _month(problem: HorizonProblem, kept: tuple[int, ...], month: int, committed: np.ndarray) -> float:
    """Periods one after the other, each with every choice, cheapest first; whatever two neighbours forbid is left early."""
    sequence = problem.sequences[month]
    first = min(sequence)
    options = [_options(problem, kept, t, committed) for t in sorted(set(sequence))]
    if any(not one for one in options):
        return math.inf
    least = [one[0][0] for one in options]
    best = math.inf
    changed = [None if (c := problem.most_changed(d)) is None else c for d in problem.deployments]
    order = [t - first for t in sequence]
    beside = {(a, b) for a, b in zip(order, (*order[1:], order[0]), strict=True) if a != b}

    def descend(taken: list[tuple[float, tuple[int, ...], tuple[int, ...]]], usd: float) -> None:
        nonlocal best
        t = len(taken)
        if t == len(options):
            if all(_stays(problem, [taken[p][1][o] for p in order]) for o in range(len(problem.hourly))):
                best = usd
            return
        rest = sum(least[t + 1 :])
        for option in options[t]:
            if usd + option[0] + rest >= best - 1e-9:
                return
            apart = any(
                changed[d] is not None and abs(option[2][d] - taken[p][2][d]) > changed[d]
                for p in range(t)
                if (p, t) in beside or (t, p) in beside
                for d in kept
            )
            if not apart:
                descend([*taken, option], usd + option[0])

    descend([], 0.0)
    return best


def _options(
    problem: HorizonProblem, kept: tuple[int, ...], t: int, committed: np.ndarray
) -> list[tuple[float, tuple[int, ...], tuple[int, ...]]]:
    """(USD, nodes by offer, replicas) of all there is to choose in a period, up to what serves every peak."""
    period = problem.periods[t]
    peak = problem.demand.max(axis=0)
    ranges = [
        range(math.ceil(peak[one.workload] / one.requests_per_s - 1e-9) + 1) if d in kept else range(1)
        for d, one in enumerate(problem.deployments)
    ]
    fleets: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for replicas in itertools.product(*ranges):
        served = [0.0] * len(problem.workloads)
        devices = [0] * len(problem.node_types)
        for n, one in zip(replicas, problem.deployments, strict=True):
            served[one.workload] += n * one.requests_per_s
            devices[one.node_type] += n * one.devices_per_replica
        if all(rate >= wanted - 1e-9 for rate, wanted in zip(served, period.requests_per_s, strict=True)):
            fleets.setdefault(tuple(devices), []).append(replicas)
    if not fleets:
        return []
    kinds = problem.node_types
    widest = [-(-max(one[k] for one in fleets) // kind.devices) for k, kind in enumerate(kinds)]
    tops = [
        range(min(widest[o.node_type], widest[o.node_type] if o.max_nodes is None else o.max_nodes) + 1)
        for o in problem.hourly
    ]
    found = []
    for nodes in itertools.product(*tops):
        room = [int(committed[k]) for k in range(len(kinds))]
        for n, offer in zip(nodes, problem.hourly, strict=True):
            room[offer.node_type] += n
        usd = period.hours * sum(n * offer.usd_per_hour for n, offer in zip(nodes, problem.hourly, strict=True))
        able = [
            replicas
            for devices, choices in fleets.items()
            if all(d <= r * kind.devices for d, r, kind in zip(devices, room, kinds, strict=True))
            for replicas in choices
        ]
        free = problem.operation.max_change_fraction is None  # then any of them will do
        found += [(usd, nodes, replicas) for replicas in (able[:1] if free else able)]
    found.sort()
    if problem.operation.min_up_hours == 1:  # then the cheapest nodes for so many replicas will do
        first = {one[2]: one for one in reversed(found)}
        found = sorted(first.values())
    return found


def _stays(problem: HorizonProblem, counts: list[int]) -> bool:
    """Is every level of nodes on for long enough whenever it is on?"""
    hours = len(counts)
    for level in range(1, max(counts) + 1):
        on = [n >= level for n in counts]
        if all(on):
            continue
        for h in range(hours):
            if on[h] and not on[h - 1]:
                length = next(k for k in range(hours) if not on[(h + k) % hours])
                if length < problem.operation.min_up_hours:
                    return False
    return True
