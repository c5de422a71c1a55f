"""What the links between devices cost. Volumes are per device, one direction."""

from solver.step.gemm import Quantity


def ring_all_reduce_bytes(payload_bytes: Quantity, devices: Quantity) -> Quantity:
    """Bytes each device sends in a ring all-reduce: 2·(n−1)/n of the payload (Patarasuk and Yuan, 2009).

    >>> ring_all_reduce_bytes(8.0, 4.0)
    12.0
    """
    return 2.0 * (devices - 1.0) / devices * payload_bytes


def all_to_all_bytes(payload_bytes: Quantity, devices: Quantity) -> Quantity:
    """Bytes each device sends when its payload is spread evenly over all: (n−1)/n of it. All-gather and reduce-scatter are the same.

    >>> all_to_all_bytes(8.0, 8.0)
    7.0
    """
    return (devices - 1.0) / devices * payload_bytes


def transfer_s(volume_bytes: Quantity, link_bytes_per_s: Quantity, latency_s: Quantity) -> Quantity:
    """Seconds of one transfer: latency + volume / rate.

    >>> transfer_s(612e9, 450e9, 0.0)
    1.36
    """
    return latency_s + volume_bytes / link_bytes_per_s
