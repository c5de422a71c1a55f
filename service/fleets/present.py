"""Stored fleets → wire."""

import hashlib
import json
from decimal import Decimal
from typing import Any

from service.answers.store import inputs_of
from service.fleets.tables import FleetTable
from service.wire.fleet_answers import FleetOut, FleetSummaryOut

LONG_SERIES = 1_000
"""Values beyond which a series is echoed by its digest."""


def present_fleet(stored: FleetTable) -> FleetOut:
    """The stored result as it was written, with its id, inputs and request."""
    return FleetOut.model_validate(
        stored.result
        | {
            "id": stored.id,
            "created_at": stored.created_at,
            "inputs": inputs_of(stored),
            "request": echoed(stored.request),
        }
    )


def echoed(request: dict[str, Any]) -> dict[str, Any]:
    """The request with long series as number of values and SHA-256 of their JSON; one stored before there were rules of operation
    says that it had none, so that asking it again is the same."""

    def shorter(workload: dict[str, Any]) -> dict[str, Any]:
        demand = workload.get("demand") or {}
        short = {
            name: {"count": len(values), "sha256": hashlib.sha256(json.dumps(values).encode()).hexdigest()}
            for name in ("requests_per_s", "points")
            if len(values := demand.get(name) or ()) > LONG_SERIES
        }
        return workload | {"demand": demand | short} if short else workload

    limits = {"operation": "any"} | request["limits"]
    return request | {"workloads": [shorter(w) for w in request["workloads"]], "limits": limits}


def present_summary(row: FleetTable) -> FleetSummaryOut:
    """A line of the list; requests and results are not read for it."""
    return FleetSummaryOut(
        id=row.id,
        created_at=row.created_at,
        outcome=row.outcome,
        workloads=[w["name"] for w in row.workloads],
        llms=[w["llm"] for w in row.workloads],
        months=row.months,
        usd=None if row.usd is None else Decimal(row.usd),
    )
