"""How replicas share a node, exactly.

Replicas of g devices go into nodes of G. Comparing total devices is not enough: eight replicas of three devices need
24 of the 24 devices of three 8-device nodes, and do not fit. Two exact descriptions, by the sizes at hand:

* sizes where each divides the next (1, 2, 4, 8 …): one row for each size whose rounding bites (``chain_rows``);
* any other set: integer flow along a node's devices (``Arc``), after Valério de Carvalho's arc-flow model of bin
  packing (Annals of Operations Research 86, 1999).
"""

import itertools
from collections.abc import Iterable, Mapping
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


def paths(flow: Mapping[Arc, int], devices: int) -> list[tuple[tuple[int, ...], int]]:
    """Decompose an integer flow into the sizes on a node, largest first, and how many nodes are cut up so."""
    left = {arc: count for arc, count in flow.items() if count > 0}
    kinds = []
    while any(arc.start == 0 for arc in left):
        position, path = 0, list[Arc]()
        while position < devices:
            path.append(min((a for a in left if a.start == position), key=lambda a: -a.size))
            position = path[-1].end
        nodes = min(left[arc] for arc in path)
        for arc in path:
            left[arc] -= nodes
            if left[arc] == 0:
                del left[arc]
        kinds.append((tuple(sorted((arc.size for arc in path if arc.size), reverse=True)), nodes))
    return kinds
