"""Replicas put into nodes by the kind of node: what a fleet of millions takes is no more work than that of a few."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AlikeNodes:
    """So many nodes that each run the same: replicas by key."""

    content: Mapping[int, int]
    nodes: int


def count_alike(packed: Iterable[AlikeNodes]) -> int:
    return sum(alike.nodes for alike in packed)


def first_fit_decreasing(replicas: Mapping[int, int], sizes: Mapping[int, int], devices: int) -> list[AlikeNodes]:
    """Nodes that hold ``replicas`` (key → count), largest first, first node that fits; exact for a chain of sizes.

    >>> [(one.content, one.nodes) for one in first_fit_decreasing({7: 7, 9: 1}, {7: 2, 9: 4}, 8)]
    [({9: 1, 7: 2}, 1), ({7: 4}, 1), ({7: 1}, 1)]
    """
    packed: list[AlikeNodes] = []
    for key in sorted((key for key, count in replicas.items() if count), key=lambda k: (-sizes[k], k)):
        left, size = replicas[key], sizes[key]
        before = [*packed, AlikeNodes({}, left)]  # no more than one new node for each replica
        packed = []
        for alike in before:
            used = sum(sizes[other] * count for other, count in alike.content.items())
            most = (devices - used) // size
            full, rest = divmod(min(left, most * alike.nodes), most) if most else (0, 0)
            left -= full * most + rest
            untouched = alike.nodes - full - bool(rest)
            if full:
                packed.append(AlikeNodes({**alike.content, key: most}, full))
            if rest:
                packed.append(AlikeNodes({**alike.content, key: rest}, 1))
            if untouched and alike.content:
                packed.append(AlikeNodes(alike.content, untouched))
    return packed


def fill_paths(
    replicas: Mapping[int, int], sizes: Mapping[int, int], kinds: Iterable[tuple[tuple[int, ...], int]]
) -> list[AlikeNodes]:
    """Put replicas (key → count) into the slots of nodes, as ``paths`` says them; slots may be more than replicas, never fewer."""
    waiting: dict[int, list[tuple[int, int]]] = {}
    for key in sorted(replicas):
        if replicas[key]:
            waiting.setdefault(sizes[key], []).append((key, replicas[key]))
    packed: list[AlikeNodes] = []
    for slots, nodes in kinds:
        left = nodes
        while left:
            content, alike = Counter[int](), left
            for size, wanted in Counter(slots).items():
                taken, same = take(waiting.get(size, []), wanted, left)
                content.update(taken)
                alike = min(alike, same)
            for size, wanted in Counter(slots).items():
                drop(waiting.get(size, []), wanted * alike)
            if content:
                packed.append(AlikeNodes(content, alike))
            left -= alike
    if any(waiting.values()):
        raise ValueError("the slots do not hold all replicas")
    return packed


def take(waiting: Sequence[tuple[int, int]], wanted: int, nodes: int) -> tuple[Counter[int], int]:
    """What the next node gets of a line of (key, count), its last first, and how many of ``nodes`` get the same."""
    if not waiting:
        return Counter(), nodes
    key, count = waiting[-1]
    if count >= wanted:
        return Counter({key: wanted}), min(nodes, count // wanted)
    content = Counter[int]()
    for key, count in reversed(waiting):
        content[key] += min(count, wanted)
        wanted -= min(count, wanted)
        if not wanted:
            break
    return content, 1


def drop(waiting: list[tuple[int, int]], count: int) -> None:
    """Take so many off the end of a line of (key, count), as far as there are."""
    while count and waiting:
        key, there = waiting.pop()
        if there > count:
            waiting.append((key, there - count))
        count -= min(count, there)
