"""From choices made period by period to a month that keeps to the rules of operation: more stays on, nothing is taken away."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from solver.fleet.model.packing import chain_rows
from solver.horizon.operation import changes
from solver.horizon.period import PeriodChoice
from solver.horizon.problem import FloatArray, HorizonProblem, IntArray
from solver.horizon.spot import spares_needed


def repaired(
    problem: HorizonProblem, month: int, choices: Mapping[int, PeriodChoice], committed: FloatArray
) -> dict[int, PeriodChoice] | None:
    """The month's choices with what the rules need added, beside so many committed nodes by type; None where offers, or the
    share of spot, have no room for it.

    choices: by period. Replicas are started earlier and stopped later until no change is too large; nodes follow; then each
    node by the hour stays its least time.
    """
    sequence = problem.sequences[month]
    periods = sorted(set(sequence))
    replicas = {t: np.array(choices[t].replicas, dtype=np.int64) for t in periods}
    _smooth(problem, replicas, changes(sequence))
    hourly, used = {}, {}
    for t in periods:
        spot = _spot(problem, choices[t])
        steady = np.maximum(nodes_needed(problem, replicas[t]) - spot, 0)
        used[t] = np.minimum(steady, committed.astype(np.int64))
        taken = _on_demand(problem, steady - used[t], choices[t])
        if taken is None:
            return None
        hourly[t] = taken
    hours = {t: problem.periods[t].hours for t in periods}
    for o in range(len(problem.hourly)):
        counts = {t: hourly[t][o] for t in periods}
        for t, nodes in staying(sequence, counts, problem.operation.min_up_hours, hours).items():
            hourly[t][o] = nodes
    found = {}
    for t in periods:
        spares = _spares(problem, hourly[t])
        found[t] = replace(
            choices[t],
            replicas=tuple(replicas[t].tolist()),
            committed=tuple(used[t].tolist()),
            hourly=tuple(hourly[t]),
            spares=spares,
        )
        if not within_spot_share(problem, found[t]):
            return None
    return found


def _smooth(problem: HorizonProblem, replicas: Mapping[int, IntArray], pairs: Sequence[tuple[int, int]]) -> None:
    """The least replicas, none fewer than given, of which no more than may be are started or stopped at once."""
    most = np.array([-1 if (m := problem.most_changed(d)) is None else m for d in problem.deployments], dtype=np.int64)
    bounded = most >= 0
    moved = bool(bounded.any())
    while moved:
        moved = False
        for a, b in pairs:
            for one, other in ((a, b), (b, a)):
                least = np.where(bounded, replicas[other] - most, 0)
                if (replicas[one] < least).any():
                    np.maximum(replicas[one], least, out=replicas[one])
                    moved = True


def nodes_needed(problem: HorizonProblem, replicas: IntArray) -> IntArray:
    """Nodes by type that replicas fill: those over several take whole ones, the others pack as ``chain_rows`` says."""
    needed = np.zeros(len(problem.node_types), dtype=np.int64)
    inside: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for d in np.flatnonzero(replicas).tolist():
        one, count = problem.deployments[d], int(replicas[d])
        spanned = problem.spans(one)
        if spanned > 1:
            needed[one.node_type] += spanned * count
        else:
            inside[one.node_type].append((one.devices_per_replica, count))
    for t, packed in inside.items():
        bins = 0
        for smallest, usable in chain_rows([size for size, _ in packed], problem.node_types[t].devices):
            taken = sum(size * count for size, count in packed if size >= smallest)
            bins = max(bins, math.ceil(taken / usable - 1e-9))
        needed[t] += bins
    return needed


def _spot(problem: HorizonProblem, choice: PeriodChoice) -> IntArray:
    """Interruptible nodes by type, without spares."""
    found = -np.array(choice.spares, dtype=np.int64)
    for nodes, offer in zip(choice.hourly, problem.hourly, strict=True):
        if offer.interruptible:
            found[offer.node_type] += nodes
    return np.maximum(found, 0)


def _on_demand(problem: HorizonProblem, nodes: IntArray, choice: PeriodChoice) -> list[int] | None:
    """Nodes by offer: spot as it was chosen, the others filled from the cheapest on; None where they do not suffice."""
    taken = [n if offer.interruptible else 0 for n, offer in zip(choice.hourly, problem.hourly, strict=True)]
    left = nodes.copy()
    for o in sorted(range(len(taken)), key=lambda o: (problem.hourly[o].usd_per_hour, o)):
        offer = problem.hourly[o]
        if offer.interruptible or not left[offer.node_type]:
            continue
        most = left[offer.node_type] if offer.max_nodes is None else min(left[offer.node_type], offer.max_nodes)
        taken[o] = int(most)
        left[offer.node_type] -= taken[o]
    return None if left.any() else taken


def staying(
    sequence: Sequence[int], counts: Mapping[int, int], hours: int, lasts: Mapping[int, float]
) -> dict[int, int]:
    """Nodes by period, none fewer than given, of which each that comes stays ``hours`` hours; the hours repeat.

    Level by level from the top: where at least k nodes are on for too short a time they stay on, or come before, whichever
    adds fewer hours (``lasts``: of each period).

    >>> staying((0, 1, 2, 3), {0: 0, 1: 2, 2: 0, 3: 1}, 2, {0: 1.0, 1: 1.0, 2: 1.0, 3: 5.0})
    {0: 0, 1: 2, 2: 2, 3: 1}
    """
    count = len(sequence)
    found = dict.fromkeys(counts, 0)
    on: set[int] = set()
    for level in range(max(counts.values(), default=0), 0, -1):
        on |= {t for t, nodes in counts.items() if nodes >= level}
        while (short := _short_run(sequence, on, hours)) is not None:
            first, length = short
            before, after = sequence[(first - 1) % count], sequence[(first + length) % count]
            on.add(before if lasts[before] < lasts[after] else after)
        for t in on:
            found[t] += 1
    return found


def _short_run(sequence: Sequence[int], on: set[int], hours: int) -> tuple[int, int] | None:
    """(first hour, length) of a run of hours in ``on`` that is shorter than asked, around the end as well."""
    count = len(sequence)
    off = next((h for h in range(count) if sequence[h] not in on), None)
    if off is None or hours <= 1:
        return None
    length = 0
    for h in range(off + 1, off + count + 1):
        if sequence[h % count] in on:
            length += 1
        elif length:
            if length < hours:
                return (h - length) % count, length
            length = 0
    return None


def _spares(problem: HorizonProblem, hourly: Sequence[int]) -> tuple[int, ...]:
    spot = [0] * len(problem.node_types)
    for nodes, offer in zip(hourly, problem.hourly, strict=True):
        if offer.interruptible:
            spot[offer.node_type] += nodes
    return tuple(spares_needed(nodes, problem.spot) for nodes in spot)


def within_spot_share(problem: HorizonProblem, choice: PeriodChoice) -> bool:
    """Are no more devices interruptible than may be?"""
    devices = [node_type.devices for node_type in problem.node_types]
    spot = sum(n * devices[o.node_type] for n, o in zip(choice.hourly, problem.hourly, strict=True) if o.interruptible)
    every = sum(n * devices[o.node_type] for n, o in zip(choice.hourly, problem.hourly, strict=True))
    every += sum(n * g for n, g in zip(choice.committed, devices, strict=True))
    return spot <= problem.spot.max_fraction * every + 1e-9
