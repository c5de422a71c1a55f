"""GET /v1/nodes."""

from typing import Literal

from pydantic import Field

from service.wire.quantities import Answer, ProvenanceOut


def _not_stated() -> None:
    """What nodes that were stored before it was asked for say of it."""


class NodeOut(Answer):
    id: str
    name: str
    device: str
    devices: int
    kind: str
    link_domain_devices: int
    rack_domain_devices: int
    pcie_generation: int | None
    pcie_lanes_per_device: int | None
    network_gbit_per_s: float | None
    network_name: str | None
    vcpus: float | None
    host_memory_gib: float | None
    local_disk_gib: float | None = Field(default_factory=_not_stated)
    local_disk_read_gbytes_per_s: float | None = Field(default_factory=_not_stated)
    local_disk_provenance: ProvenanceOut | None = Field(default_factory=_not_stated)
    host_power_w: float | None
    psu_w: float | None
    tenancy: Literal["machine", "container"] | None = Field(default_factory=_not_stated)
    """``container``: without rights on the driver, so that devices are never split."""
    provenance: ProvenanceOut
