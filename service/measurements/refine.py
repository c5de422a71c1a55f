"""Accepted micro-measurements of a device → its own constants, by the laws of ``solver.step.probes``."""

import json
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from sqlmodel import Session

from service.constants.queries import all_constants
from service.devices.queries import device_by_id
from service.measurements.queries import accepted_figures
from service.measurements.tables import DeviceMeasurementTable
from service.recommendations.from_rows import prior_from_row
from service.wire.devices import DeviceOut
from service.wire.measurements import DeviceMeasurementIn
from solver.step.constants import ConstantPrior, resolve_constants
from solver.step.probes import PROBED_CONSTANTS, Gemm, Peaks, Probe, Refined, refined

MOST_PROBES = 20
"""The newest of a device that count: older drivers fade out."""
DENSE = {"bf16": "dense_bf16_tflop_per_s", "fp16": "dense_fp16_tflop_per_s", "fp8": "dense_fp8_tflop_per_s"}


def peaks_of(device: DeviceOut) -> Peaks:
    """Datasheet rates in SI."""

    def si(value: float | None, unit: float) -> float | None:
        return None if value is None else value * unit

    return Peaks(
        memory_bytes_per_s=si(device.memory_bandwidth_gb_per_s, 1e9),
        dense={dtype: si(getattr(device, name), 1e12) for dtype, name in DENSE.items()},
        link_bytes_per_s=si(device.link_one_direction_gb_per_s, 1e9),
        cache_bytes=si(device.cache_mb, 1e6),
    )


def probe_of(measurement_id: str, figures: DeviceMeasurementIn) -> Probe:
    """Uploaded figures in SI."""
    return Probe(
        id=measurement_id,
        copies=tuple((float(c.bytes), c.read_plus_write_gb_per_s * 1e9) for c in figures.copy_rates),
        gemms=tuple(Gemm(g.dtype, g.m, g.n, g.k, g.tflop_per_s * 1e12) for g in figures.gemm),
        all_reduces=tuple((a.world_size, float(a.bytes), a.us * 1e-6) for a in figures.all_reduce),
    )


class Refiner:
    """Reads each device and the engines' shares once."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @cached_property
    def _shares(self) -> tuple[ConstantPrior, ...]:
        names = {engine_share for _, engine_share in PROBED_CONSTANTS.values()}
        return tuple(prior_from_row(c.row) for c in all_constants(self._session) if c.name in names)

    def refined(self, rows: Sequence[DeviceMeasurementTable]) -> tuple[Refined, ...]:
        """What accepted probes of one device say together; empty where they say nothing."""
        accepted = [row for row in rows if row.status == "accepted"]
        device = device_by_id(self._session, accepted[0].device_id) if accepted else None
        if device is None:
            return ()
        probes = [
            probe_of(row.id, DeviceMeasurementIn.model_validate_json(json.dumps(row.document))) for row in accepted
        ]
        known = resolve_constants(self._shares, device=device.id, family=device.family, engine="*")
        return refined(device.id, probes, peaks_of(DeviceOut.model_validate(device.row)), known)


def device_content(session: Session, device_id: str) -> dict[str, Any]:
    """What a correction set says about a probed device."""
    found = Refiner(session).refined(accepted_figures(session, device_id, MOST_PROBES))
    return {
        "device": device_id,
        "constants": [
            {"name": p.name, "value": round(p.value, 6), "low": round(p.low, 6), "high": round(p.high, 6),
             "evidence": list(p.evidence)}
            for p in (r.prior for r in found)
        ],
    }  # fmt: skip
