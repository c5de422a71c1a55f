"""Which replicas stand on which node: first fit, largest first, on the nodes that the plan rents."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from service.deployments.plan import DeploymentPlan, ReplicaKind
from service.deployments.refusals import PartError


@dataclass(frozen=True, slots=True)
class Placed:
    """One replica on a node. devices: their numbers there. instance: of a split device, else None."""

    kind: ReplicaKind
    devices: tuple[int, ...]
    instance: int | None = None


@dataclass
class Host:
    """One node of an offer. splits: profile and instances taken, by device."""

    offer: str
    devices: int
    placed: list[Placed] = field(default_factory=list)
    free: set[int] = field(default_factory=set)
    splits: dict[int, tuple[str, int]] = field(default_factory=dict)

    def take(self, kind: ReplicaKind) -> bool:
        """Put one replica here if there is room."""
        if kind.line.partition is not None:
            return self._take_instance(kind)
        wanted = kind.devices
        for first in range(0, self.devices - wanted + 1, wanted):  # aligned, so that links inside the node are kept
            numbers = tuple(range(first, first + wanted))
            if self.free.issuperset(numbers):
                self.free.difference_update(numbers)
                self.placed.append(Placed(kind, numbers))
                return True
        return False

    def _take_instance(self, kind: ReplicaKind) -> bool:
        partition = kind.line.partition
        assert partition is not None
        for device, (profile, taken) in sorted(self.splits.items()):
            if profile == partition.profile and taken < partition.instances_per_device:
                self.splits[device] = (profile, taken + 1)
                self.placed.append(Placed(kind, (device,), taken))
                return True
        if not self.free:
            return False
        device = max(self.free)  # from the other end, so that whole devices stay together
        self.free.remove(device)
        self.splits[device] = (partition.profile, 1)
        self.placed.append(Placed(kind, (device,), 0))
        return True


def place(plan: DeploymentPlan) -> tuple[Host, ...]:
    """Hosts with their replicas, those of one offer together; hosts left empty are the plan's spares.

    Raises PartError for a replica that spans nodes or finds no room.
    """
    hosts: dict[str, list[Host]] = {}
    for nodes in plan.fleet:
        devices = plan.machines[nodes.offer].devices if nodes.offer in plan.machines else 0
        hosts[nodes.offer] = [Host(nodes.offer, devices, free=set(range(devices))) for _ in range(nodes.nodes)]
    for kind in sorted(plan.kinds, key=lambda k: (k.line.partition is not None, -k.devices, k.name)):
        if kind.nodes > 1:
            raise PartError(kind.part, f"a replica spans {kind.nodes} nodes")
        if kind.line.partition is not None and kind.devices > 1:
            raise PartError(kind.part, "a replica over several instances of split devices")
        for _ in range(kind.line.replicas):
            if not _taken(hosts.get(kind.line.offer, []), kind):
                raise PartError(kind.part, "its replicas find no room on the nodes of the plan's fleet")
    return tuple(host for offer in hosts for host in hosts[offer])


def _taken(hosts: Sequence[Host], kind: ReplicaKind) -> bool:
    return any(host.take(kind) for host in hosts)
