"""Nodes that perform alike, whole or as instances of split devices, with the constants that apply to them."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from solver.engine.profiles import (
    engine_profile,
    engines_for,
    keeps_in_host_memory,
    keeps_on_disk,
    planned_api_servers,
    planned_batched_tokens,
    planned_capture,
)
from solver.hardware import Device, Node, instance_of
from solver.layout import Layout
from solver.llm_shape import LlmShape
from solver.step.constants import ConstantPrior, Constants, resolve_constants
from solver.step.tables import GraphSizes
from solver.workload import EngineSettings


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
    disk_cache_bytes: float = 0.0
    """Of a local disk, for each device, under that; 0: no such tier."""
    disk_bytes_per_s: float = 0.0
    """A device's share of the rate at which the node's disks are read."""
    max_batched_tokens: int | None = None
    """Of a step; None: as asked."""
    api_servers: int | None = None
    """Processes that answer for each copy of attention; None: as asked."""

    def settings(self, shape: LlmShape, asked: EngineSettings) -> EngineSettings:
        """The engine here as plans start it: as asked, with steps of its own size and its own number of processes that answer, and told
        up to how many tokens it captures where it can be told."""
        release = asked.version if asked.name == self.engine else None
        told = asked.max_captured_tokens or self._planned_capture(shape)
        most = self.max_batched_tokens or asked.max_batched_tokens
        return replace(
            asked,
            name=self.engine,
            version=release,
            max_captured_tokens=told,
            max_batched_tokens=most,
            api_servers=self.api_servers or asked.api_servers,
        )

    def _planned_capture(self, shape: LlmShape) -> int | None:
        """Of models that embed nothing is known."""
        return None if shape.embeds else planned_capture(self.engine, self.device.vendor, shape.is_moe)

    def graphs(self, shape: LlmShape, tensor_parallel: int, asked: EngineSettings, queries: int) -> GraphSizes:
        """What the engine captures here of a model, as plans start it, with so many tokens of one sequence in a decode step."""
        settings, profile = self.settings(shape, asked), engine_profile(self.engine)
        return profile.graphs_of(shape.family, self.device.memory_bytes, tensor_parallel, settings, queries)

    def with_smaller_steps(self, shape: LlmShape, asked: EngineSettings) -> "tuple[Platform, ...]":
        """The same with each smaller step that plans try.

        Not of models that embed, whose prompts are taken in whole, nor with images, which must fit a step.
        """
        if shape.embeds or shape.images is not None:
            return ()
        smaller = planned_batched_tokens(self.engine, self.device.vendor, asked.max_batched_tokens, asked.max_sequences)
        return tuple(replace(self, max_batched_tokens=tokens) for tokens in smaller)

    def more_servers(self, shape: LlmShape, asked: EngineSettings) -> int | None:
        """Processes that answer for each copy of attention which plans try here beside what is asked; None: none.

        Not of models that embed, whose front end does more than pass tokens on, nor on instances of split devices, which share the
        processors of a host with others.
        """
        if shape.embeds or self.device.partition is not None:
            return None
        return planned_api_servers(self.engine, self.device.vendor, asked.api_servers)


def processes(layout: Layout, api_servers: int) -> int:
    """Of one replica: a·d that answer, d that schedule, one for each device, and one more that tells copies of attention apart,

        d·(a + 1) + n  (+ 1 where d > 1)

    https://docs.vllm.ai/en/latest/design/arch_overview/, V1 process architecture, read 2026-11-28.

    >>> processes(Layout(), 1), processes(Layout(), 4), processes(Layout(tensor_parallel=2, data_parallel=2), 4)
    (3, 6, 15)
    """
    copies = layout.data_parallel
    return copies * (api_servers + 1) + layout.devices + (copies > 1)


def processors_needed(devices: int, layout: Layout, api_servers: int) -> int:
    """Of a node of so many devices that is full of such replicas: one for each process."""
    return max(1, devices // layout.devices) * processes(layout, api_servers)


@dataclass(frozen=True, slots=True)
class DiskCache:
    """A tier of local disk that a request permits. bytes_per_s: at which each device's share is read; None: as documented for a node."""

    bytes_per_device: float
    bytes_per_s: float | None = None

    def rate_on(self, node: Node) -> float:
        """Of each device's share, in bytes a second; 0 where it is not known."""
        return self.bytes_per_s or node.local_disk_bytes_per_s / node.devices

    def fits(self, node: Node) -> bool:
        """Whether a node has so much for each of its devices, read at a rate that is known."""
        return node.local_disk_bytes / node.devices >= self.bytes_per_device and self.rate_on(node) > 0.0


def cache_tiers(
    host_caches_bytes: Sequence[float], disk: DiskCache | None
) -> tuple[tuple[float, DiskCache | None], ...]:
    """(host memory, disk) under the cache of a device to choose among: none, each size of host memory, and each with the disk under it,
    which engines reach through host memory alone.

    >>> [(beside, under is not None) for beside, under in cache_tiers((8.0,), DiskCache(100.0))]
    [(0.0, False), (8.0, False), (8.0, True)]
    """
    disks = (None,) if disk is None else (None, disk)
    return ((0.0, None), *((beside, under) for beside in host_caches_bytes for under in disks))


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
    disk: DiskCache | None = None,
) -> tuple[Platform, ...]:
    """Group node types that perform alike, under each engine they are planned with (``own_engines``: engine is the default,
    engines those asked for). Devices with none are left out. host_caches_bytes: sizes of a tier of host memory for each device,
    each of them beside none, for nodes that hold it and engines that use it. disk: under
    each of those sizes, beside none, where nodes have it."""
    grouped: dict[tuple[str, int, int, float, float, float, float, float], list[Node]] = {}
    for beside, below in cache_tiers(host_caches_bytes, disk):
        for node in nodes:
            if beside and not holds_host_cache(node, beside):
                continue
            if below is not None and not below.fits(node):
                continue
            per_device = node.network_bytes_per_s / node.devices
            joined = (node.link_domain_devices, node.device.pcie_bytes_per_s, per_device)
            tiers = (beside, 0.0, 0.0) if below is None else (beside, below.bytes_per_device, below.rate_on(node))
            grouped.setdefault((node.device.id, node.devices, *joined, *tiers), []).append(node)
    result = []
    resolved: dict[tuple[str, str], Constants] = {}
    for (device_id, devices, domain, _, per_device, beside, under, disk_bytes_per_s), members in grouped.items():
        device = members[0].device
        for runs in own_engines(device, engine, engines, weight_formats):
            if (beside and not keeps_in_host_memory(runs)) or (under and not keeps_on_disk(runs)):
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
                    under,
                    disk_bytes_per_s,
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
