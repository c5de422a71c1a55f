"""Devices, nodes and offers as the solver sees them: SI units, frozen, no provenance."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from solver.adapters import AdapterSupport

PlaceKind = Literal["provider", "region", "device"]
"""By what the offers that one workload uses may be kept few. A region is one provider's."""
MemoryClass = Literal["hbm", "gddr", "unified", "host", "sram"]


@dataclass(frozen=True, slots=True)
class Partition:
    """A profile into ``instances`` of which a device can be split (MIG), each with these shares of the device's rates.

    memory_bytes: what an instance exposes.
    """

    profile: str
    instances: int
    compute_fraction: float
    bandwidth_fraction: float
    memory_bytes: float


@dataclass(frozen=True, slots=True)
class Loads:
    """Formats that an engine documents to load on a device."""

    weights: tuple[str, ...]
    kv_cache: tuple[str, ...]
    widened: tuple[str, ...] = ()
    """Of the weights: multiplied in 16 bits where the device has no unit for them, widened as they are read."""
    parallelism: tuple[str, ...] | None = None
    """Ways of dividing a model that are documented; None where that has not been read."""
    features: tuple[str, ...] | None = None
    """Documented on the device, drafting among them; None where that has not been read."""


@dataclass(frozen=True, slots=True)
class Device:
    """One accelerator as an engine sees it (a card that shows as two devices is two).

    memory_bytes: what the driver exposes. memory_bytes_per_s: datasheet peak.
    flop_per_s: dense datasheet matrix rates by compute dtype; a dtype the device lacks is absent.
    link_bytes_per_s: scale-up link, one direction, per device; 0 where there is none (then PCIe carries traffic).
    link_domain_devices: how many devices one scale-up domain joins.
    """

    id: str
    name: str
    vendor: str
    family: str
    """Efficiency family: hopper, ada, cdna3, tpu-v5, gaudi3, xeon-amx …"""
    category: str
    memory_class: MemoryClass
    memory_bytes: float
    memory_bytes_per_s: float
    flop_per_s: Mapping[str, float]
    link_bytes_per_s: float
    link_domain_devices: int
    pcie_bytes_per_s: float
    power_limit_w: float
    """NaN where nobody publishes it: such devices are never planned against a power limit."""
    engines: tuple[str, ...]
    partitions: tuple[Partition, ...] = ()
    """How it can be split."""
    partition: Partition | None = None
    """What this is one instance of; None: the whole device."""
    loads: Mapping[str, Loads] = field(default_factory=dict)
    """By engine, where its documentation has been read; an engine that is absent is bound by the device's matrix units only."""
    adapters: Mapping[str, AdapterSupport] = field(default_factory=dict)
    """By engine that documents adapters on it."""
    embedding_engines: tuple[str, ...] | None = None
    """Those of its engines that document models which embed; None where that has not been read."""
    past_engines: tuple[str, ...] = ()
    """Engines of which earlier releases ran on it: estimated where a request names one, never planned."""

    @property
    def widened(self) -> frozenset[str]:
        """Weights that some engine multiplies here in 16 bits though the device has no unit for them."""
        return frozenset(weights for loads in self.loads.values() for weights in loads.widened)


def instance_of(device: Device, partition: Partition) -> Device:
    """One instance of a split device, as the engine on it sees it.

    It has its share of the matrix rates and of the memory bandwidth, and its own memory. No link: instances do not reach
    each other (NVIDIA MIG User Guide, Application Considerations: no peer-to-peer over PCIe or NVLink). Power: as nobody
    publishes how a board's is divided, each of K instances gets 1/K of its limit.

    >>> whole = Device("d", "D", "v", "f", "c", "hbm", 80.0, 2000.0, {"bf16": 700.0}, 300.0, 8, 32.0, 700.0, ("vllm",))
    >>> one = instance_of(whole, Partition("1g", 7, 1 / 7, 1 / 8, 10.0))
    >>> one.memory_bytes, one.memory_bytes_per_s, round(one.flop_per_s["bf16"], 9), one.power_limit_w, one.link_bytes_per_s
    (10.0, 250.0, 100.0, 100.0, 0.0)
    """
    return replace(
        device,
        memory_bytes=partition.memory_bytes,
        memory_bytes_per_s=device.memory_bytes_per_s * partition.bandwidth_fraction,
        flop_per_s={dtype: rate * partition.compute_fraction for dtype, rate in device.flop_per_s.items()},
        link_bytes_per_s=0.0,
        link_domain_devices=1,
        power_limit_w=device.power_limit_w / partition.instances,
        partitions=(),
        partition=partition,
    )


@dataclass(frozen=True, slots=True)
class Node:
    """A purchasable or rentable machine: ``devices`` of one kind, joined by their scale-up link or PCIe.

    network_bytes_per_s: all NICs of the node together, one direction; 0 where a node cannot join others.
    host_power_w: everything in the box that is not an accelerator.
    """

    id: str
    device: Device
    devices: int
    network_bytes_per_s: float
    host_power_w: float
    link_domain_devices: int
    """How many of the node's devices one scale-up domain joins (1: PCIe only)."""
    rack_domain_devices: int = 0
    """Devices of the scale-up domain that spans nodes (NVL72, TPU slices); 0 where none does."""
    host_memory_bytes: float = 0.0
    """0 where nobody states it."""
    host_processors: float = 0.0
    """As its operating system counts them (vCPUs); 0 where nobody states it."""
    local_disk_bytes: float = 0.0
    """Of disks in the machine, all together; 0 where nobody states it."""
    local_disk_bytes_per_s: float = 0.0
    """At which these are read, all together; 0 where nobody states it."""
    can_split_devices: bool = True
    """May whoever rents it split its devices into instances?"""


@dataclass(frozen=True, slots=True)
class Sale:
    """Who sells, where from and how sure the price is: what a buyer's policy asks.

    provider_class, device_class: None where nobody has classed them. named_place: does the region say where the machine stands?
    confidence: in the price, ``high``, ``medium`` or ``low``. priced_day: the day its source states it for, days since
    0001-01-01. own: the user's. runs: nodes of it run already.
    """

    provider_class: str | None = None
    device_class: str | None = None
    named_place: bool = True
    confidence: str = "high"
    priced_day: int | None = None
    own: bool = False
    runs: bool = False


@dataclass(frozen=True, slots=True)
class Offer:
    """Somebody's price for hours of one node type."""

    id: str
    node: Node
    provider: str
    region: str
    commitment: str
    usd_per_hour: float
    max_nodes: int | None = None
    kg_co2e_per_kwh: float = math.nan
    """Of what the node draws, cooling included; NaN where nobody says which grid feeds it."""
    sale: Sale = field(default_factory=Sale)
