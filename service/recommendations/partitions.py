"""Split devices of a plan on the wire, with the commands that make and use their instances."""

from collections.abc import Sequence

from service.wire.plan_lines import LinePartitionOut, SplitDevicesOut
from solver.hardware import Device, Partition
from solver.planning.types import SplitDevices
from solver.units import gib_from_bytes


def present_partition(device: Device) -> LinePartitionOut | None:
    """None for a whole device."""
    partition = device.partition
    if partition is None:
        return None
    return LinePartitionOut(
        profile=partition.profile,
        instances_per_device=partition.instances,
        memory_gib=round(gib_from_bytes(partition.memory_bytes), 3),
        launch=launch_commands(partition),
    )


def launch_commands(partition: Partition) -> list[str]:
    """Split a device, see its instances, start an engine on one: NVIDIA MIG User Guide, Getting Started.

    >>> launch_commands(Partition("3g.40gb", 2, 0.4, 0.5, 4e10))[1]
    'nvidia-smi mig -i GPU -cgi 3g.40gb,3g.40gb -C'
    """
    every = ",".join([partition.profile] * partition.instances)
    return [
        "nvidia-smi -i GPU -mig 1",
        f"nvidia-smi mig -i GPU -cgi {every} -C",
        "nvidia-smi -L",
        "CUDA_VISIBLE_DEVICES=MIG-UUID ENGINE",
    ]


def present_splits(splits: Sequence[SplitDevices], offer_id: str) -> list[SplitDevicesOut]:
    """Those of one offer."""
    return [
        SplitDevicesOut(profile=s.profile, instances_per_device=s.instances, devices=s.devices, nodes=s.nodes)
        for s in splits
        if s.offer_id == offer_id
    ]
