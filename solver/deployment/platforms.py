"""Nodes that perform alike, whole or as instances of split devices, with the constants that apply to them."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from solver.engine.profiles import engine_profile, engines_for, keeps_in_host_memory
from solver.hardware import Device, Node, instance_of
from solver.step.constants import ConstantPrior, Constants, resolve_constants
from solver.step.tables import GraphSizes


@dataclass(frozen=True, slots=True)
class Platform:
    """Nodes that perform alike: one device type, so many to a node, joined in the same way.

    Of instances of a split device: every node of the device, as if it held one.
    """

    device: Device
    devices: int
    link_domain_devices: int
    network_bytes_per_s: float
    """Per device, one direction; 0: replicas never span nodes."""
    engine: str
    constants: Constants
    node_ids: tuple[str, ...]
    host_cache_bytes: float = 0.0
    """Of host memory, for each device, for what requests leave in the cache; 0: no such tier."""

    def graphs(self, family: str, tensor_parallel: int) -> GraphSizes:
        """What the engine captures here for a family of models."""
        return engine_profile(self.engine).graphs_of(family, self.device.memory_bytes, tensor_parallel)


def own_engines(
    device: Device, default: str, asked: tuple[str, ...] = (), weight_formats: Sequence[str] = ()
) -> tuple[str, ...]:
    """Engines a device is planned with: ``engines_for``, and where nothing is asked, for each format that its own engine documents
    not to load, the device's first engine that documents it."""
    found = engines_for(device.engines, default, asked)
    loads = device.loads.get(found[0]) if found and not asked else None
    if loads is None:
        return found
    further = (
        next((name for name in device.engines if name in device.loads and weights in device.loads[name].weights), None)
        for weights in weight_formats
        if weights not in loads.weights
    )
    return (*found, *dict.fromkeys(name for name in further if name is not None))


def platforms(
    nodes: Sequence[Node],
    priors: Sequence[ConstantPrior],
    engine: str,
    llm: str | None = None,
    engines: tuple[str, ...] = (),
    weight_formats: Sequence[str] = (),
    host_caches_bytes: Sequence[float] = (),
) -> tuple[Platform, ...]:
    """Group node types that perform alike, under each engine they are planned with (``own_engines``: engine is the default,
    engines those asked for). Devices with none are left out. host_caches_bytes: sizes of a tier of host memory for each device,
    each of them beside none, for nodes that hold it and engines that use it."""
    grouped: dict[tuple[str, int, int, float, float, float], list[Node]] = {}
    for beside in (0.0, *host_caches_bytes):
        for node in nodes:
            if beside and not holds_host_cache(node, beside):
                continue
            per_device = node.network_bytes_per_s / node.devices
            joined = (node.link_domain_devices, node.device.pcie_bytes_per_s, per_device, beside)
            grouped.setdefault((node.device.id, node.devices, *joined), []).append(node)
    result = []
    resolved: dict[tuple[str, str], Constants] = {}
    for (device_id, devices, domain, _, per_device, beside), members in grouped.items():
        device = members[0].device
        for runs in own_engines(device, engine, engines, weight_formats):
            if beside and not keeps_in_host_memory(runs):
                continue
            if (device_id, runs) not in resolved:
                resolved[device_id, runs] = resolve_constants(
                    priors, device=device_id, family=device.family, engine=runs, llm=llm
                )
            node_ids = tuple(sorted(n.id for n in members))
            result.append(
                Platform(
                    device,
                    devices,
                    domain,
                    per_device,
                    runs,
                    resolved[device_id, runs],
                    node_ids,
                    beside,
                )
            )
    return tuple(result)


def holds_host_cache(node: Node, bytes_per_device: float) -> bool:
    """Whether a node's host has so much memory for each device, and a way to it whose speed is known."""
    return node.host_memory_bytes / node.devices >= bytes_per_device and node.device.pcie_bytes_per_s > 0.0


def instance_platforms(whole: Sequence[Platform], nodes: Iterable[Node], profiles: Collection[str]) -> list[Platform]:
    """Instances of these profiles on all nodes whose devices can be split so: they perform alike on each.

    Constants are the whole device's: they are shares of its rates, on the same silicon, and times of the host.
    """
    able = {node.id for node in nodes if node.can_split_devices}
    of_device: dict[tuple[str, str], list[Platform]] = {}
    for platform in whole:
        of_device.setdefault((platform.device.id, platform.engine), []).append(platform)
    found = []
    for alike in of_device.values():
        first = alike[0]
        node_ids = tuple(sorted(able.intersection(node_id for platform in alike for node_id in platform.node_ids)))
        for partition in first.device.partitions:
            if node_ids and partition.profile in profiles:
                device = instance_of(first.device, partition)
                found.append(Platform(device, 1, 1, 0.0, first.engine, first.constants, node_ids))
    return found
