"""Measurement and agent rows → wire."""

import datetime as dt
import json
from collections.abc import Sequence
from typing import cast

from service.measurements.tables import AgentTable, DeviceMeasurementTable, LeaseTable, MeasurementTable
from service.wire.measurements import (
    AgentOut,
    AttemptOut,
    DeviceMeasurementIn,
    DeviceMeasurementOut,
    LeaseOut,
    MeasurementIn,
    MeasurementOut,
    MeasurementStatus,
    RefinedOut,
)
from solver.step.constants import CONSTANTS
from solver.step.probes import Refined


def present_measurement(row: MeasurementTable, leases: Sequence[LeaseTable], now: dt.datetime) -> MeasurementOut:
    ran_out = row.status == "leased" and row.lease_expires_at is not None and row.lease_expires_at <= now
    status: MeasurementStatus = "queued" if ran_out else cast(MeasurementStatus, row.status)
    return MeasurementOut(
        id=row.id,
        status=status,
        wanted=MeasurementIn.model_validate_json(json.dumps(row.wanted)),
        created_at=row.created_at,
        lease_expires_at=None if ran_out else row.lease_expires_at,
        attempts=[
            AttemptOut(
                lease=lease.id, agent=lease.agent_id, started_at=lease.started_at, ended_at=lease.ended_at,
                outcome=lease.outcome, detail=lease.detail,
            )
            for lease in leases
        ],
        benchmarks=row.benchmarks,
    )  # fmt: skip


def present_lease(row: MeasurementTable, lease: LeaseTable, leases: Sequence[LeaseTable], now: dt.datetime) -> LeaseOut:
    assert row.lease_expires_at is not None
    return LeaseOut(lease=lease.id, expires_at=row.lease_expires_at, measurement=present_measurement(row, leases, now))


def present_agent(row: AgentTable) -> AgentOut:
    return AgentOut(
        id=row.id, version=row.version, hostname=row.hostname, device=row.device, devices=row.devices,
        first_seen_at=row.first_seen_at, last_seen_at=row.last_seen_at,
    )  # fmt: skip


def present_device_measurement(row: DeviceMeasurementTable, refined: Sequence[Refined]) -> DeviceMeasurementOut:
    return DeviceMeasurementOut(
        id=row.id,
        status="accepted" if row.status == "accepted" else "quarantined",
        reasons=row.reasons,
        recorded_at=row.recorded_at,
        figures=DeviceMeasurementIn.model_validate_json(json.dumps(row.document)),
        refines=[
            RefinedOut(
                constant=r.prior.name, unit=CONSTANTS[r.prior.name].unit, probed_fraction=r.probed_fraction,
                engine_share=r.engine_share, value=r.prior.value, low=r.prior.low, high=r.prior.high,
            )
            for r in refined
        ],
    )  # fmt: skip
