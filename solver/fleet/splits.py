"""Which devices of which node are split how, and what runs on their instances.

While nodes are packed, the devices split for a profile are items of one device each; what runs on their instances is put
there afterwards. Items are numbered beside rows of the deployment table, below zero.
"""

import math
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence

from solver.fleet.alike_nodes import AlikeNodes, drop, take
from solver.fleet.deployments import WHOLE, DeploymentTable


def _item(split: int) -> int:
    return -1 - split


def divide(table: DeploymentTable, wanted: Mapping[int, int]) -> tuple[dict[int, int], dict[int, dict[int, int]]]:
    """(items, instances): what takes whole devices, by row or split, and by split what its instances run."""
    if table.split is None:
        return dict(wanted), {}
    items: dict[int, int] = {}
    instances: dict[int, dict[int, int]] = {}
    for row, count in wanted.items():
        split = int(table.split[row])
        if split == WHOLE:
            items[row] = count
        elif count:
            instances.setdefault(split, {})[row] = count
    for split, running in sorted(instances.items()):
        items[_item(split)] = math.ceil(sum(running.values()) / table.splits[split].instances)
    return items, instances


def fills_items(
    items: Iterable[int], instances: Mapping[int, Mapping[int, int]], fills: Container[int]
) -> frozenset[int]:
    """Of what takes whole devices, that of which there may be more: of a split all that runs on its instances."""
    of_item = {_item(split): tuple(running) for split, running in instances.items()}
    return frozenset(item for item in items if all(row in fills for row in of_item.get(item, (item,))))


def put_on_instances(
    table: DeploymentTable,
    packed: Sequence[AlikeNodes],
    instances: Mapping[int, Mapping[int, int]],
    fills: Container[int],
) -> list[AlikeNodes]:
    """Nodes with the replicas on their instances in place of split devices, device after device.

    fills: of these rows, instances left over run one more replica of what their node runs on such instances, each in turn.
    """
    for split, running in sorted(instances.items()):
        waiting = sorted(running.items(), reverse=True)
        last = waiting[0][0]
        before, packed = packed, list[AlikeNodes]()
        for alike in before:
            content = {item: count for item, count in alike.content.items() if item != _item(split)}
            slots = alike.content.get(_item(split), 0) * table.splits[split].instances
            left = alike.nodes
            while left:
                here, nodes = take(waiting, slots, left) if slots else (Counter[int](), left)
                drop(waiting, slots * nodes)
                turns = [row for row in sorted(here) or [last] if row in fills]
                here.update(turns[i % len(turns)] for i in range(slots - here.total() if turns else 0))
                packed.append(AlikeNodes({**content, **here}, nodes))
                left -= nodes
    return list(packed)


def splits_of(
    table: DeploymentTable, row_of_key: Mapping[int, int], content: Sequence[tuple[int, int]]
) -> tuple[tuple[int, int], ...]:
    """(split, devices split so) of a node that runs (key, replicas)."""
    if table.split is None:
        return ()
    running: Counter[int] = Counter()
    for key, count in content:
        running[int(table.split[row_of_key[key]])] += count
    return tuple(
        (split, math.ceil(count / table.splits[split].instances))
        for split, count in sorted(running.items())
        if split != WHOLE
    )
