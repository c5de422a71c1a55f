"""How replicas share a node, exactly.

Replicas of g devices go into nodes of G. Comparing total devices is not enough: eight replicas of three devices need
24 of the 24 devices of three 8-device nodes, and do not fit. Two exact descriptions, by the sizes at hand:

* sizes where each divides the next (1, 2, 4, 8 …): one row for each size whose rounding bites (``chain_rows``);
* any other set: integer flow along a node's devices (``Arc``), after Valério de Carvalho's arc-flow model of bin
  packing (Annals of Operations Research 86, 1999).
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Arc:
    """A slot of ``end − start`` devices on a node; ``size`` 0 is devices left empty."""

    start: int
    end: int
    size: int


def is_chain(sizes: Iterable[int]) -> bool:
    """Does every size divide the next larger one?

    >>> is_chain([1, 2, 8]), is_chain([2, 3])
    (True, False)
    """
    ordered = sorted(set(sizes))
    return all(larger % smaller == 0 for smaller, larger in itertools.pairwise(ordered))


def chain_rows(sizes: Iterable[int], devices: int) -> list[tuple[int, int]]:
    """(smallest size counted, usable devices of a node) for each packing row of a divisibility chain.

        Σ_{g ≥ s} g · x_g ≤ s · ⌊G / s⌋ · n

    Sufficient: placed largest first, everything already in a node when size s is placed is a multiple of s, so all
    of its s · ⌊G/s⌋ devices can be used. A row that a smaller size already implies is left out.

    >>> chain_rows([1, 2, 4], 8)
    [(1, 8)]
    >>> chain_rows([1, 3], 8)
    [(1, 8), (3, 6)]
    """
    rows: list[tuple[int, int]] = []
    for size in sorted(set(sizes)):
        usable = size * (devices // size)
        if not rows or usable < rows[-1][1]:
            rows.append((size, usable))
    return rows


def arcs(sizes: Iterable[int], devices: int) -> list[Arc]:
    """The arc-flow network of a node: a path from 0 to ``devices`` is one way to fill it.

    Sizes are placed largest first, which removes paths that differ only in order; only reachable positions are kept.
    """
    ordered = sorted({size for size in sizes if size <= devices}, reverse=True)
    found: dict[tuple[int, int], Arc] = {}
    smallest_so_far: dict[int, set[int]] = {0: {devices}}
    for position in range(devices):
        arrived_with = smallest_so_far.get(position)
        if arrived_with is None:
            continue
        for size in ordered:
            end = position + size
            if end <= devices and size <= max(arrived_with):
                found[position, size] = Arc(position, end, size)
                smallest_so_far.setdefault(end, set()).add(size)
        found[position, 0] = Arc(position, devices, 0)
    return [found[key] for key in sorted(found)]


def paths(flow: Mapping[Arc, int], devices: int) -> list[tuple[int, ...]]:
    """Decompose an integer flow into the sizes on each node, largest first."""
    left = {arc: count for arc, count in flow.items() if count > 0}
    nodes = []
    while any(arc.start == 0 for arc in left):
        position, sizes = 0, []
        while position < devices:
            arc = min((a for a in left if a.start == position), key=lambda a: -a.size)
            left[arc] -= 1
            if left[arc] == 0:
                del left[arc]
            if arc.size:
                sizes.append(arc.size)
            position = arc.end
        nodes.append(tuple(sorted(sizes, reverse=True)))
    return nodes


def first_fit_decreasing(replicas: Mapping[int, int], sizes: Mapping[int, int], devices: int) -> list[Counter[int]]:
    """Nodes that hold ``replicas`` (key → count), largest first, first node that fits; exact for a chain of sizes.

    >>> [dict(node) for node in first_fit_decreasing({7: 3, 9: 1}, {7: 2, 9: 4}, 8)]
    [{9: 1, 7: 2}, {7: 1}]
    """
    nodes: list[Counter[int]] = []
    free: list[int] = []
    for key in sorted((key for key, count in replicas.items() if count), key=lambda k: (-sizes[k], k)):
        left, size = replicas[key], sizes[key]
        for i in range(len(nodes)):
            placed = min(left, free[i] // size)
            if placed:
                nodes[i][key] += placed
                free[i] -= placed * size
                left -= placed
            if not left:
                break
        while left:
            placed = min(left, devices // size)
            nodes.append(Counter({key: placed}))
            free.append(devices - placed * size)
            left -= placed
    return nodes


def fill_paths(
    replicas: Mapping[int, int], sizes: Mapping[int, int], nodes: Sequence[tuple[int, ...]]
) -> list[Counter[int]]:
    """Put replicas (key → count) into the slots of ``nodes``; slots may be more than replicas, never fewer."""
    waiting: dict[int, list[int]] = {}
    for key in sorted(replicas):
        waiting.setdefault(sizes[key], []).extend([key] * replicas[key])
    filled: list[Counter[int]] = []
    for slots in nodes:
        node: Counter[int] = Counter()
        for size in slots:
            if waiting.get(size):
                node[waiting[size].pop()] += 1
        if node:
            filled.append(node)
    if any(waiting.values()):
        raise ValueError("the slots do not hold all replicas")
    return filled
