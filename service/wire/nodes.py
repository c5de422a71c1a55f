"""GET /v1/nodes."""

from service.wire.quantities import Answer, ProvenanceOut


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
    host_power_w: float | None
    psu_w: float | None
    provenance: ProvenanceOut
