"""Tiny random horizons with rules of operation, and the cheapest plan of one by trying everything.

Nothing of the planner's formulation is used: a plan is a number of nodes by the hour of each offer and of replicas in each
period, every combination of which is tried, hour after hour of the months walked through.
"""

import itertools
import math
from dataclasses import replace

import numpy as np

from solver.horizon.operation import Operation
from solver.horizon.problem import HorizonDeployment, HorizonProblem, HourlyOffer, NodeType, Period
from tests.solver.horizon.instances import _cheapest_commitments, _some_limit, tiny

MOST_HOURS = 6


def tiny_operated(seed: int) -> HorizonProblem:
    """One month of two or three periods in random order, some limits, and rules of which each is there half of the time."""
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
    count = int(rng.integers(2, 4))
    order = [*range(count), *rng.integers(0, count, int(rng.integers(1, MOST_HOURS - count + 1))).tolist()]
    sequence = tuple(int(t) for t in rng.permutation(order))
    each = 730.0 / len(sequence)
    periods = tuple(
        Period(0, each * sequence.count(t), tuple(_some_rate(rng) for _ in range(workloads))) for t in range(count)
    )
    operation = Operation(
        max_configurations=int(rng.integers(1, 3)) if rng.random() < 0.5 else None,
        min_up_hours=int(rng.integers(2, len(sequence) + 1)) if rng.random() < 0.6 else 1,
        max_change_fraction=float(rng.choice([0.1, 0.4])) if rng.random() < 0.5 else None,
    )
    base = tiny(seed)
    commitments = tuple(
        replace(one, node_type=0, start_month=0, term_months=1, usd_per_node=one.usd_per_node / one.term_months)
        for one in base.commitments[:1]
    )
    names = tuple(f"w{w}" for w in range(workloads))
    return HorizonProblem(
        1, names, periods, types, deployments, hourly, commitments, operation=operation, sequences=(sequence,)
    )


def _some_rate(rng: np.random.Generator) -> float:
    return round(float(rng.choice([0.0, 1.0, 3.0]) * rng.uniform(0.3, 1.0)), 2)


def cheapest_operated(problem: HorizonProblem) -> float:
    """USD of the cheapest plan that keeps to the rules; infinite where there is none."""
    best = math.inf
    for kept in _sets(problem):
        best = min(
            best, _cheapest_commitments(problem, lambda nodes, most, kept=kept: _month(problem, kept, nodes, most))
        )
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


def _month(problem: HorizonProblem, kept: tuple[int, ...], nodes: tuple[int, ...], most: float) -> float:
    """Periods one after the other, each with every choice, cheapest first; whatever two neighbours forbid is left early."""
    committed = problem.committed(list(nodes))[0]
    options = [_options(problem, kept, t, committed) for t in range(len(problem.periods))]
    if any(not one for one in options):
        return math.inf
    least = [one[0][0] for one in options]
    best = most
    (sequence,) = problem.sequences
    changed = [None if (c := problem.most_changed(d)) is None else c for d in problem.deployments]
    beside = {(a, b) for a, b in zip(sequence, (*sequence[1:], sequence[0]), strict=True) if a != b}

    def descend(taken: list[tuple[float, tuple[int, ...], tuple[int, ...]]], usd: float) -> None:
        nonlocal best
        t = len(taken)
        if t == len(options):
            if all(_stays(problem, [taken[p][1][o] for p in sequence]) for o in range(len(problem.hourly))):
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
    return best if best < most else math.inf


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
    return sorted(found)


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
