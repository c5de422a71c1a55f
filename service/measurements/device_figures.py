"""Take in micro-measurements of a device: bandwidth, matrix rates, all-reduce times.

They bound and refine the device's efficiencies. A figure above the datasheet's peak is quarantined with its reason.
"""

import datetime as dt
import hashlib
import json
from dataclasses import dataclass

from sqlmodel import Session
from ulid import ULID

from service.benchmarks.queries import insert_unless_stored
from service.devices.queries import device_by_id, device_ids
from service.measurements.queries import device_measurement_by_digest
from service.measurements.tables import DeviceMeasurementTable
from service.problems import FieldError, InvalidFieldsError, unknown_name
from service.wire.devices import DeviceOut
from service.wire.measurements import DeviceMeasurementIn

PEAK_TOLERANCE = 0.02
"""Clocks and timers are not exact; a datasheet's peak is not beaten by more."""
_DENSE = {"bf16": "dense_bf16_tflop_per_s", "fp16": "dense_fp16_tflop_per_s", "fp8": "dense_fp8_tflop_per_s"}


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
    reasons = above_peak(asked, DeviceOut.model_validate(device.row))
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
        return TakenFigures(row, is_new=True)
    stored = device_measurement_by_digest(session, digest)
    assert stored is not None
    return TakenFigures(stored, is_new=False)


def above_peak(asked: DeviceMeasurementIn, device: DeviceOut) -> list[str]:
    """Figures no such device can reach, with the peak they are above. An unpublished peak bounds nothing."""
    bandwidth = device.memory_bandwidth_gb_per_s
    reasons = [
        f"copy of {copy.bytes} bytes at {copy.read_plus_write_gb_per_s:.4g} GB/s, peak {bandwidth:.4g}"
        for copy in asked.copy_rates
        if bandwidth is not None and copy.read_plus_write_gb_per_s > bandwidth * (1 + PEAK_TOLERANCE)
    ]
    for gemm in asked.gemm:
        peak = getattr(device, _DENSE[gemm.dtype])
        if peak is not None and gemm.tflop_per_s > peak * (1 + PEAK_TOLERANCE):
            reasons.append(
                f"{gemm.dtype} {gemm.m}×{gemm.n}×{gemm.k} at {gemm.tflop_per_s:.4g} TFLOP/s, dense peak {peak:.4g}"
            )
    return reasons
