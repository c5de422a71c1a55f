"""Devices, nodes and offers as the solver sees them: SI units, frozen, no provenance."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

MemoryClass = Literal["hbm", "gddr", "unified", "host", "sram"]


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
