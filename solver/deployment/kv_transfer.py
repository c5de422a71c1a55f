"""The link between a prefill and a decode pool: which one there is, and what a prefill replica gets of it."""

from dataclasses import dataclass
from typing import Literal

from solver.deployment.configuration import Configuration
from solver.engine.disaggregated import KvLink
from solver.errors import FigureMissingError, UnsupportedError
from solver.hardware import Node

Over = Literal["node_link", "pcie", "network"]


@dataclass(frozen=True, slots=True)
class ServingPool:
    """Replicas of one configuration for one role. node: the machine they stand in, where it is known."""

    configuration: Configuration
    replicas: int
    node: Node | None = None

    @property
    def devices(self) -> int:
        return self.configuration.layout.devices * self.replicas

    @property
    def lanes(self) -> int:
        """Batches in flight over the whole pool."""
        return self.configuration.lanes * self.replicas


def kv_link(over: Over, prefill: ServingPool, decode: ServingPool) -> KvLink:
    """What one lane of the prefill pool sends through, in bytes per second, and the latency of a transfer.

        rate = min(devices_p · rate_p, devices_d · rate_d) / lanes_p

    Every device sends and receives by its own share of the link, at the rate that transfers reach of it; what decode
    devices can receive is shared evenly by all that send. Raises UnsupportedError where no such link joins the pools,
    FigureMissingError where nobody states its rate.
    """
    vendors = {pool.configuration.device.vendor for pool in (prefill, decode)}
    if len(vendors) > 1:
        raise UnsupportedError(
            "no_link_between_pools", f"no engine is known to hand a cache over between {' and '.join(sorted(vendors))}"
        )
    sends, receives = device_link_bytes_per_s(over, prefill), device_link_bytes_per_s(over, decode)
    if over != "network":
        check_one_node(over, prefill, decode)
    rate = min(sends * prefill.devices, receives * decode.devices) / prefill.lanes
    name = "network_latency_us" if over == "network" else "all_reduce_latency_us"
    latency = max(pool.configuration.constants.si(name) for pool in (prefill, decode))
    return KvLink(rate, latency)


def device_link_bytes_per_s(over: Over, pool: ServingPool) -> float:
    """One device's share of a link in one direction, at the rate that transfers reach of it.

    Raises FigureMissingError where the figure is not in the catalog, UnsupportedError where the device has no such link.
    """
    device, c = pool.configuration.device, pool.configuration.constants.si
    if over == "network":
        if pool.node is None:
            raise UnsupportedError("node_needed", "a transfer over the network needs the node of both pools")
        if not pool.node.network_bytes_per_s > 0:
            raise FigureMissingError(pool.node.id, "network_gbit_per_s")
        return pool.node.network_bytes_per_s / pool.node.devices * c("network_efficiency")
    if over == "node_link":
        if not device.link_bytes_per_s > 0:
            raise UnsupportedError("no_link_between_pools", f"{device.id} has no scale-up link")
        return device.link_bytes_per_s * c("link_efficiency")
    if not device.pcie_bytes_per_s > 0:
        raise FigureMissingError(device.id, "pcie_generation")
    return device.pcie_bytes_per_s * c("network_efficiency")


def check_one_node(over: Over, prefill: ServingPool, decode: ServingPool) -> None:
    """Links inside a node join devices of one kind that fit it together. Raises UnsupportedError otherwise."""
    first, second = prefill.configuration.device, decode.configuration.device
    if first.id != second.id:
        raise UnsupportedError(
            "no_link_between_pools", f"{first.id} and {second.id} are in different nodes: only a network joins them"
        )
    if (prefill.node.id if prefill.node else None) != (decode.node.id if decode.node else None):
        raise UnsupportedError("no_link_between_pools", "the pools name different nodes: only a network joins them")
    node = prefill.node
    together = prefill.devices + decode.devices
    if over == "pcie":
        if node is None:
            raise UnsupportedError("node_needed", "how many devices share a PCIe host is the node's figure: state it")
        most = node.devices
    else:
        most = node.link_domain_devices if node is not None else first.link_domain_devices
    if together > most:
        where = "node" if over == "pcie" else "scale-up domain"
        raise UnsupportedError(
            "no_link_between_pools", f"both pools take {together} devices; one {where} joins {most}: use the network"
        )
