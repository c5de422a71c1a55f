"""Nodes taken while a plan is drafted: what runs on them, and what they leave free."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from solver.fleet.deployments import WHOLE
from solver.fleet.groups.offer_groups import OfferGroup, Pairs
from solver.fleet.problem import FleetProblem

PlacementKey = tuple[int, int, int]
"""(deployment row, first offer of the group, offer or ANY_OFFER): survives renumbering of groups."""


@dataclass(slots=True)
class Fleet:
    """Nodes taken so far."""

    problem: FleetProblem
    groups: list[OfferGroup]
    nodes: Counter[int] = field(default_factory=Counter)
    free: dict[int, Counter[int]] = field(default_factory=dict)
    free_instances: Counter[tuple[int, int]] = field(default_factory=Counter)
    """By group and split, on devices that are split so."""
    spares: Counter[int] = field(default_factory=Counter)
    devices_under_quota: Counter[int] = field(default_factory=Counter)
    replicas: Counter[PlacementKey] = field(default_factory=Counter)
    forced: list[int] = field(default_factory=list)
    """Pairs of which one replica was placed because the plan must contain it."""

    def copy(self) -> "Fleet":
        """The same nodes, to be filled otherwise."""
        return replace(
            self,
            nodes=self.nodes.copy(),
            free={p: free.copy() for p, free in self.free.items()},
            free_instances=self.free_instances.copy(),
            spares=self.spares.copy(),
            devices_under_quota=self.devices_under_quota.copy(),
            replicas=self.replicas.copy(),
        )

    def room(self, group: OfferGroup, offer: int) -> float:
        """Nodes an offer can still give."""
        most = self.problem.offers[offer].max_nodes
        left = math.inf if most is None else most - self.nodes[offer]
        for q in group.quotas:
            devices_left = self.problem.limits.quotas[q].max_devices - self.devices_under_quota[q]
            left = min(left, devices_left // group.devices)
        return left

    def group_room(self, p: int) -> float:
        group = self.groups[p]
        left = math.inf
        for q in group.quotas:
            left = min(left, (self.problem.limits.quotas[q].max_devices - self.devices_under_quota[q]) // group.devices)
        return min(left, sum(self.room(group, offer) for offer in group.offers))

    def take(self, p: int, count: int, offer: int = -1) -> bool:
        """Take nodes from one offer, or from the group's cheapest that have room."""
        group = self.groups[p]
        for candidate in (offer,) if offer >= 0 else group.offers:
            taken = int(min(count, self.room(group, candidate)))
            self.nodes[candidate] += taken
            for q in group.quotas:
                self.devices_under_quota[q] += taken * group.devices
            count -= taken
            if not count:
                return True
        return False

    def keep_spares(self, p: int, offer: int) -> bool:
        """Idle nodes so that k failures can be borne: in the group, and in the offer of a replica over nodes."""
        wanted = self.problem.limits.spare_nodes
        place = offer if offer >= 0 else -1 - p
        have = self.spares[place]
        if not wanted or have:
            return True
        self.spares[place] = wanted
        if offer >= 0 or not any(self.spares[o] for o in self.groups[p].offers):
            return self.take(p, wanted, offer)
        return True

    def place(self, pairs: Pairs, row: int, count: int) -> bool:
        """Start ``count`` replicas, in free slots first."""
        p, offer, size = int(pairs.group[row]), int(pairs.offer[row]), int(pairs.devices[row])
        key = (int(pairs.deployment[row]), self.groups[p].offers[0], offer)
        self.replicas[key] += count
        if not self.keep_spares(p, offer):
            return False
        if offer >= 0:
            return self.take(p, count * int(pairs.nodes_per_replica[row]), offer)
        if pairs.split[row] != WHOLE:
            count = self._split_devices(pairs, row, count)
        free = self.free.setdefault(p, Counter())
        for devices in sorted((d for d in free if d >= size), key=lambda d: (d, d % size)):
            while count and free[devices]:
                placed = min(count, devices // size)
                free[devices] -= 1
                free[devices - placed * size] += 1
                count -= placed
        if not count:
            return True
        total = self.groups[p].devices
        slots = total // size
        full, rest = divmod(count, slots)
        free[total - slots * size] += full
        if rest:
            free[total - rest * size] += 1
        return self.take(p, full + (rest > 0))

    def _split_devices(self, pairs: Pairs, row: int, count: int) -> int:
        """Devices to split for so many instances, beyond those that are split and not full."""
        kind, each = (int(pairs.group[row]), int(pairs.split[row])), int(pairs.instances[row])
        devices = math.ceil(max(0, count - self.free_instances[kind]) / each)
        self.free_instances[kind] += devices * each - count
        return devices

    def free_slots(self, pairs: Pairs, row: int) -> int:
        """Replicas of a pair that devices left free in its group hold."""
        p, size = int(pairs.group[row]), int(pairs.devices[row])
        devices = sum((devices // size) * nodes for devices, nodes in self.free.get(p, Counter()).items())
        return devices * int(pairs.instances[row]) + self.free_instances[p, int(pairs.split[row])]


def keeps_to_copies(problem: FleetProblem, replicas: Mapping[PlacementKey, int]) -> bool:
    """Has no workload more copies of its model than it may?"""
    limited = {w: demand.most_copies for w, demand in enumerate(problem.demands) if demand.most_copies is not None}
    table, found = problem.deployments, Counter[int]()
    for (row, _, _), count in replicas.items():
        found[int(table.workload[row])] += count * int(table.copies_of_model[row])
    return all(found[w] <= most for w, most in limited.items())
