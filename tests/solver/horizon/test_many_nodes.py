"""What periods of millions of replicas fill is counted by the kind, as one after the other would fill it."""

import random

import pytest

from solver.horizon.verify import _bins
from tests.seeds import cases


def one_after_the_other(replicas: dict[int, int], devices: int) -> int:
    free: list[int] = []
    for size in sorted((size for size, count in replicas.items() for _ in range(count)), reverse=True):
        if size > devices:
            free += [0] * -(-size // devices)
            continue
        place = next((i for i, left in enumerate(free) if left >= size), None)
        if place is None:
            free.append(devices - size)
        else:
            free[place] -= size
    return len(free)


@pytest.mark.parametrize("seed", range(cases(300)))
def test_nodes_are_counted_as_they_fill_one_after_the_other(seed: int) -> None:
    rng = random.Random(seed)
    devices = rng.choice([1, 4, 6, 8, 16])
    replicas = {rng.randint(1, 20): rng.randint(1, 30) for _ in range(rng.randint(0, 6))}
    assert _bins(replicas, devices) == one_after_the_other(replicas, devices)


def test_a_thousand_million_replicas_are_counted_at_once() -> None:
    assert _bins({3: 10**9, 2: 10**9, 16: 2}, 8) == 10**9 // 2 + 10**9 // 4 - 10**9 // 8 + 4
