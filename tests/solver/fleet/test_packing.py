"""Nodes placed by the kind are those that placing one after the other gives."""

import random
from collections import Counter
from collections.abc import Sequence

import pytest

from solver.fleet.alike_nodes import AlikeNodes, count_alike, fill_paths, first_fit_decreasing
from solver.fleet.model.packing import Arc, arcs, paths
from tests.seeds import cases


def one_after_the_other(replicas: dict[int, int], sizes: dict[int, int], devices: int) -> list[dict[int, int]]:
    """First fit decreasing, replica by replica."""
    nodes: list[Counter[int]] = []
    free: list[int] = []
    for key in sorted(replicas, key=lambda k: (-sizes[k], k)):
        for _ in range(replicas[key]):
            place = next((i for i, left in enumerate(free) if left >= sizes[key]), len(nodes))
            if place == len(nodes):
                nodes.append(Counter())
                free.append(devices)
            nodes[place][key] += 1
            free[place] -= sizes[key]
    return [dict(node) for node in nodes]


def apart(packed: Sequence[AlikeNodes]) -> list[dict[int, int]]:
    return [dict(alike.content) for alike in packed for _ in range(alike.nodes)]


@pytest.mark.parametrize("seed", range(cases(300)))
def test_alike_nodes_are_those_of_first_fit_decreasing(seed: int) -> None:
    rng = random.Random(seed)
    devices = rng.choice([2, 4, 6, 8, 16])
    sizes = {key: rng.randint(1, devices) for key in rng.sample(range(20), rng.randint(1, 5))}
    replicas = {key: rng.randint(0, 40) for key in sizes}
    packed = first_fit_decreasing(replicas, sizes, devices)
    nodes = one_after_the_other(replicas, sizes, devices)
    assert apart(packed) == nodes
    assert count_alike(packed) == len(nodes)


@pytest.mark.parametrize("seed", range(cases(300)))
def test_paths_take_up_the_whole_flow_and_slots_every_replica(seed: int) -> None:
    """Random paths through the network, added up, are paths of as many nodes and as many slots of each size again."""
    rng = random.Random(seed)
    devices = rng.choice([4, 6, 8])
    network = arcs(rng.sample(range(1, devices + 1), rng.randint(1, 3)), devices)
    flow: Counter[Arc] = Counter()
    nodes = rng.randint(1, 60)
    for _ in range(nodes):
        position = 0
        while position < devices:
            arc = rng.choice([one for one in network if one.start == position])
            flow[arc] += 1
            position = arc.end
    kinds = paths(flow, devices)
    assert sum(count for _, count in kinds) == nodes
    slots: Counter[int] = Counter()
    for cut, count in kinds:
        assert sum(cut) <= devices
        slots.update({size: cut.count(size) * count for size in cut})
    assert slots == Counter({size: sum(n for arc, n in flow.items() if arc.size == size) for size in slots})
    sizes = {10 * size + other: size for size in slots for other in range(2)}
    replicas = {key: rng.randint(0, slots[size] // 2) for key, size in sizes.items()}
    placed = apart(fill_paths(replicas, sizes, kinds))
    assert sum((Counter(node) for node in placed), Counter()) == +Counter(replicas)
    assert all(sum(sizes[key] * count for key, count in node.items()) <= devices for node in placed)
    if any(replicas.values()):
        with pytest.raises(ValueError, match="do not hold"):
            fill_paths({key: count + slots[sizes[key]] for key, count in replicas.items()}, sizes, kinds)


def test_a_thousand_million_replicas_are_placed_at_once() -> None:
    packed = first_fit_decreasing({0: 10**9, 1: 10**9 + 1}, {0: 2, 1: 5}, 8)
    assert [(dict(one.content), one.nodes) for one in packed] == [({1: 1, 0: 1}, 10**9), ({1: 1}, 1)]
