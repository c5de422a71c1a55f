"""Take in micro-measurements of a device: bandwidth, matrix rates, all-reduce times.

Accepted ones refine the device's efficiencies in the next correction set. What the device cannot have done is
quarantined with its reasons and refines nothing.
"""

import datetime as dt
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from sqlmodel import Session
from ulid import ULID

from service.benchmarks.queries import insert_unless_stored
from service.corrections.queries import note_device
from service.devices.queries import all_devices, device_by_id, device_ids
from service.measurements.queries import device_measurement_by_digest
from service.measurements.refine import DENSE, peaks_of, probe_of
from service.measurements.tables import DeviceMeasurementTable
from service.problems import FieldError, InvalidFieldsError, unknown_name
from service.wire.device_names import match_device
from service.wire.devices import DeviceOut
from service.wire.measurements import DeviceMeasurementIn
from solver.step.collectives import ring_all_reduce_bytes
from solver.step.constants import CONSTANTS
from solver.step.probes import Peaks, Probe, link_bytes_per_s, probed_shares

PEAK_TOLERANCE = 0.02
"""Clocks and timers are not exact; a datasheet's peak is not beaten by more."""
IN_NETWORK = 2.0 * (1 + PEAK_TOLERANCE)
"""A switch that adds on the way halves what each device sends (NVLink SHARP): twice the ring's rate is possible."""
LEAST_SHARE = CONSTANTS["weight_read_efficiency"].low
"""The lowest share the model takes for physical."""


@dataclass(frozen=True, slots=True)
class TakenFigures:
    row: DeviceMeasurementTable
    is_new: bool


def take_figures(session: Session, asked: DeviceMeasurementIn, caller: str, now: dt.datetime) -> TakenFigures:
    """Store the figures; the same ones again give the same record. Raises InvalidFieldsError for an unknown device."""
    device = device_by_id(session, asked.device)
    if device is None:
        detail = unknown_name("device", asked.device, device_ids(session))
        raise InvalidFieldsError([FieldError(detail, pointer="/device")])
    document = asked.model_dump(mode="json")
    digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    known = {each.id: each.row.get("memory_gib") for each in all_devices(session)}
    reasons = implausible(asked, DeviceOut.model_validate(device.row), known)
    row = DeviceMeasurementTable(
        id=f"dmeas_{ULID()}",
        digest=digest,
        caller=caller,
        device_id=asked.device,
        recorded_at=now,
        status="quarantined" if reasons else "accepted",
        reasons=reasons,
        document=document,
    )
    if insert_unless_stored(session, row):
        if row.status == "accepted":
            note_device(session, row.id, row.device_id)
        return TakenFigures(row, is_new=True)
    stored = device_measurement_by_digest(session, digest)
    assert stored is not None
    return TakenFigures(stored, is_new=False)


def implausible(asked: DeviceMeasurementIn, device: DeviceOut, known: Mapping[str, float | None]) -> list[str]:
    """Why figures cannot be what this device did; empty when they can."""
    probe, peaks = probe_of("", asked), peaks_of(device)
    return [
        *another_device(asked, known),
        *above_peak(asked, device),
        *all_reduces_above_the_link(probe, peaks),
        *far_below_peak(probe, peaks),
    ]


def another_device(asked: DeviceMeasurementIn, known: Mapping[str, float | None]) -> list[str]:
    """The driver's own name for it means another device of the catalog; a name that means none says nothing."""
    named = match_device(asked.name, known)
    if named is None or named == asked.device:
        return []
    return [f"the driver calls it {asked.name!r}, which is {named}, not {asked.device}"]


def above_peak(asked: DeviceMeasurementIn, device: DeviceOut) -> list[str]:
    """Figures no such device can reach, with the peak they are above. An unpublished peak bounds nothing."""
    bandwidth = device.memory_bandwidth_gb_per_s
    reasons = [
        f"copy of {copy.bytes} bytes at {copy.read_plus_write_gb_per_s:.4g} GB/s, peak {bandwidth:.4g}"
        for copy in asked.copy_rates
        if bandwidth is not None and copy.read_plus_write_gb_per_s > bandwidth * (1 + PEAK_TOLERANCE)
    ]
    for gemm in asked.gemm:
        peak = getattr(device, DENSE[gemm.dtype])
        if peak is not None and gemm.tflop_per_s > peak * (1 + PEAK_TOLERANCE):
            reasons.append(
                f"{gemm.dtype} {gemm.m}×{gemm.n}×{gemm.k} at {gemm.tflop_per_s:.4g} TFLOP/s, dense peak {peak:.4g}"
            )
    return reasons


def all_reduces_above_the_link(probe: Probe, peaks: Peaks) -> list[str]:
    """All-reduces that move more than the link can, or that take no longer the more they move.

    Volume over time, start-up included, bounds the link's rate from below, so this refuses nothing that is possible.
    """
    link = peaks.link_bytes_per_s
    reasons = [
        f"all-reduce of {size:.0f} bytes over {devices} devices in {seconds * 1e6:.4g} µs moves "
        f"{rate / 1e9:.4g} GB/s, the link {link / 1e9:.4g}"
        for devices, size, seconds in probe.all_reduces
        if link is not None and (rate := float(ring_all_reduce_bytes(size, devices)) / seconds) > link * IN_NETWORK
    ]
    flat = [
        f"all-reduces over {devices} devices take no longer the more bytes they move"
        for devices in sorted({d for d, _, _ in probe.all_reduces})
        if link_bytes_per_s(row for row in probe.all_reduces if row[0] == devices) == 0.0
    ]
    return reasons + flat


def far_below_peak(probe: Probe, peaks: Peaks) -> list[str]:
    """Shares of the datasheet that no working device is as low as: a unit slipped, or another device was measured."""
    return [
        f"{name}: {share:.2g} of the datasheet's rate; are the units right?"
        for name, share in probed_shares(probe, peaks).items()
        if 0.0 < share < LEAST_SHARE
    ]
