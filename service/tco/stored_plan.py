"""What a comparison or a price report needs of a stored recommendation.

Only these fields are read: a recommendation stored by an earlier version stays usable when answers gain fields.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from service.recommendations.tables import RecommendationTable
from service.wire.recommendations import LimitsIn, WorkloadIn


@dataclass(frozen=True, slots=True)
class PlannedNodes:
    """Nodes of one offer in the plan; ``usd_per_hour`` is of all of them.

    carries: how many times the planned traffic they serve at the utilisation the workload allows. nodes_per_step: nodes of
    one replica.
    """

    node: str
    offer: str
    nodes: int
    usd_per_hour: Decimal
    carries: float = 1.0
    nodes_per_step: int = 1


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """served_fraction: of the stated traffic, None without a plan or a rate; serves_requests_per_s: all that it carries. reasons:
    why it is infeasible."""

    recommendation: str
    outcome: str
    workloads: tuple[WorkloadIn, ...]
    limits: LimitsIn
    lines: tuple[PlannedNodes, ...]
    served_fraction: float | None
    precision: tuple[str, ...]
    """Formats of weights and cache, one entry for each that the plan uses."""
    reasons: tuple[str, ...]
    usd_per_hour: Decimal | None
    serves_requests_per_s: float | None = None
    by_published_speeds: bool = False
    """Part of the plan rests on published speeds: on tokens, or on machines without rates."""


def stored_plan(row: RecommendationTable) -> StoredPlan:
    """
    >>> row = RecommendationTable(id="rec_1", outcome="infeasible", request={"workloads": []},
    ...                           result={"plan": [], "totals": None, "conflicts": [{"detail": "too slow"}]})
    >>> stored_plan(row).reasons
    ('too slow',)
    """
    result = row.result
    totals = result.get("totals")
    workloads = tuple(WorkloadIn.model_validate(w) for w in row.request["workloads"])
    return StoredPlan(
        recommendation=row.id,
        outcome=row.outcome,
        workloads=workloads,
        limits=LimitsIn.model_validate(row.request.get("limits", {})),
        lines=tuple(
            PlannedNodes(
                line["node"],
                line["offer"],
                line["nodes"],
                Decimal(line["usd_per_hour"]),
                *capacity(result["plan"], workloads, line["offer"]),
            )
            # Lines that share nodes state their part of them; answers from before ``fleet`` have nothing better.
            for line in result.get("fleet") or result["plan"]
        ),
        served_fraction=None
        if totals is None or totals["served_fraction"] is None
        else float(totals["served_fraction"]),
        precision=tuple(sorted({formats(line) for line in result["plan"]} - {""})),
        reasons=tuple(conflict["detail"] for conflict in result.get("conflicts", [])),
        usd_per_hour=row.usd_per_hour,
        serves_requests_per_s=None if totals is None else totals.get("serves_requests_per_s"),
        by_published_speeds=bool(result.get("published_lines")),
    )


def capacity(
    lines: Sequence[Mapping[str, Any]], workloads: Sequence[WorkloadIn], offer: str | None = None
) -> tuple[float, int]:
    """What the lines at one offer (all of them: None) carry relative to what they are planned to serve, and the nodes of
    one replica: the least room of any line, the largest replica.

    A line that is 60 % busy where the workload allows 85 % carries 1.42 times its traffic. Lines without traffic stand by.

    >>> capacity([{"offer": "a", "workload": "chat", "utilisation_fraction": 0.6, "nodes": 4, "replicas": 2}], [], "a")
    (1.0, 2)
    """
    limits = {workload.name: workload.utilisation_limit_fraction for workload in workloads}
    rooms, steps = [], [1]
    for line in lines:
        if offer is not None and line["offer"] != offer:
            continue
        busy, replicas = line.get("utilisation_fraction") or 0.0, line.get("replicas") or 0
        if busy > 0.0:
            rooms.append(limits.get(line["workload"], busy) / busy)
        if replicas:
            steps.append(math.ceil(line["nodes"] / replicas))
    return max(1.0, min(rooms, default=1.0)), max(steps)


def formats(line: Mapping[str, Any]) -> str:
    """
    >>> formats({"precision": {"weights": "fp8", "kv_cache": "bf16"}})
    'weights fp8, cache bf16'
    """
    precision = line.get("precision")
    return "" if not precision else f"weights {precision['weights']}, cache {precision['kv_cache']}"


def losses_survived(limits: LimitsIn) -> dict[str, int]:
    """How many nodes, providers and regions may be lost, one kind at a time, with all demand still served."""
    fault_tolerance = limits.fault_tolerance
    return {
        "nodes": max(fault_tolerance.nodes, limits.spare_nodes),
        "providers": fault_tolerance.providers,
        "regions": fault_tolerance.regions,
    }
