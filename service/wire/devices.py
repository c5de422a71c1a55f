"""GET /v1/devices. Matrix rates are dense; sparse ones carry their own names and are never planned with."""

from typing import Literal

from pydantic import Field

from service.wire.quantities import Answer, ProvenanceOut

DeviceClass = Literal["datacentre", "workstation", "consumer", "edge"]


def _not_stated() -> None:
    """The class of devices stored before it was asked for."""


class PartitionOut(Answer):
    """A profile into ``instances`` of which the device can be split, each with these parts of it (MIG)."""

    profile: str
    instances: int
    multiprocessors: int
    device_multiprocessors: int
    memory_gib: float
    slices: int
    """Of memory: an instance has ``slices`` of ``device_slices`` of the device's bandwidth."""
    device_slices: int
    provenance: ProvenanceOut


class DeviceOut(Answer):
    id: str
    name: str
    vendor: str
    architecture: str
    family: str
    category: str
    device_class: DeviceClass | None = Field(default_factory=_not_stated)
    """Whom the vendor makes it for."""
    device_class_source: str | None = Field(default_factory=_not_stated)
    memory_class: str | None
    status: str
    launched: str | None
    form_factor: str | None
    memory_gib: float | None
    memory_gb_marketed: float | None
    memory_type: str | None
    memory_bandwidth_gb_per_s: float | None
    dense_fp64_tflop_per_s: float | None
    dense_fp32_tflop_per_s: float | None
    dense_tf32_tflop_per_s: float | None
    dense_bf16_tflop_per_s: float | None
    dense_fp16_tflop_per_s: float | None
    dense_fp8_tflop_per_s: float | None
    dense_int8_top_per_s: float | None
    dense_fp6_tflop_per_s: float | None
    dense_int4_top_per_s: float | None
    dense_fp4_tflop_per_s: float | None
    sparse_bf16_tflop_per_s: float | None
    sparse_fp8_tflop_per_s: float | None
    sparse_int8_top_per_s: float | None
    sparse_fp4_tflop_per_s: float | None
    on_chip_sram_mb: float | None
    cache_mb: float | None
    power_limit_w: float | None
    power_basis: str | None
    link_name: str | None
    link_one_direction_gb_per_s: float | None
    link_domain_devices: int
    link_topology: str | None
    pcie_generation: int | None
    pcie_lanes: int | None
    engines: list[str]
    past_engines: dict[str, str] = Field(default_factory=dict)
    """Estimated where a request names one, never planned."""
    missing: list[str]
    """Figures nobody has published; planning with them is refused by name."""
    partitions: list[PartitionOut] = Field(default_factory=list)
    """How the device can be split; empty where that is not possible or its figures are not known."""
    provenance: ProvenanceOut
