"""What a comparison or a price report needs of a stored recommendation.

Only these fields are read: a recommendation stored by an earlier version stays usable when answers gain fields.
"""

from dataclasses import dataclass
from decimal import Decimal

from service.recommendations.tables import RecommendationTable
from service.wire.recommendations import LimitsIn, WorkloadIn


@dataclass(frozen=True, slots=True)
class PlannedNodes:
    """Nodes of one offer in the plan; ``usd_per_hour`` is of all of them."""

    node: str
    offer: str
    nodes: int
    usd_per_hour: Decimal


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """served_fraction: of the stated traffic, None without a plan. reasons: why it is infeasible."""

    recommendation: str
    outcome: str
    workloads: tuple[WorkloadIn, ...]
    limits: LimitsIn
    lines: tuple[PlannedNodes, ...]
    served_fraction: float | None
    reasons: tuple[str, ...]
    usd_per_hour: Decimal | None


def stored_plan(row: RecommendationTable) -> StoredPlan:
    """
    >>> row = RecommendationTable(id="rec_1", outcome="infeasible", request={"workloads": []},
    ...                           result={"plan": [], "totals": None, "conflicts": [{"detail": "too slow"}]})
    >>> stored_plan(row).reasons
    ('too slow',)
    """
    result = row.result
    totals = result.get("totals")
    return StoredPlan(
        recommendation=row.id,
        outcome=row.outcome,
        workloads=tuple(WorkloadIn.model_validate(w) for w in row.request["workloads"]),
        limits=LimitsIn.model_validate(row.request.get("limits", {})),
        lines=tuple(
            PlannedNodes(line["node"], line["offer"], line["nodes"], Decimal(line["usd_per_hour"]))
            # Lines that share nodes state their part of them; answers from before ``fleet`` have nothing better.
            for line in result.get("fleet") or result["plan"]
        ),
        served_fraction=None
        if totals is None or totals["served_fraction"] is None
        else float(totals["served_fraction"]),
        reasons=tuple(conflict["detail"] for conflict in result.get("conflicts", [])),
        usd_per_hour=row.usd_per_hour,
    )
