"""How far alternatives are the same service: precision, losses survived, and what closing the gap would cost."""

from collections.abc import Sequence

from service.tco.resolve import Resolved
from solver.tco.alternatives import ApiAccess, parts_of
from solver.tco.compare import AlternativeCost
from solver.tco.money import MICRO_PER_USD


def service_notes(resolved: Sequence[Resolved], costs: Sequence[AlternativeCost]) -> list[list[str]]:
    """Notes of each alternative about where its service is less than, or not known to be that of, the others."""
    most = {
        kind: max((own.survives[kind] for own in resolved if own.survives is not None), default=0)
        for kind in ("nodes", "providers", "regions")
    }
    formats = {own.precision for own in resolved if own.precision}
    found = []
    for own, cost in zip(resolved, costs, strict=True):
        notes = []
        if len(formats) > 1 and own.precision:
            others = sorted({text for other in formats - {own.precision} for text in other})
            does = "serves" if own.asked.training_plan is None else "trains"
            notes.append(
                f"{does} with {'; '.join(own.precision)}; others with {'; '.join(others)}: not the same precision"
            )
        if own.asked.training_plan is None and not any(
            isinstance(part, ApiAccess) for part in parts_of(own.alternative)
        ):
            notes += _losses(own, cost, most)
        notes += _idle(cost)
        found.append(notes)
    return found


def _losses(own: Resolved, cost: AlternativeCost, most: dict[str, int]) -> list[str]:
    nodes = sum(part.nodes for part in own.parts)
    if own.survives is None:
        return [
            "whether this fleet survives the loss of a node is not checked: a recommendation with limits.fault_tolerance says so"
        ]
    notes = []
    short = max(1, most["nodes"]) - own.survives["nodes"]
    if short > 0 and nodes:
        each = cost.npv / MICRO_PER_USD / nodes
        lost = f"{1 / nodes:.0%} of its capacity" if nodes > 1 else "the service"
        than = f" (others survive {most['nodes']})" if most["nodes"] else ""
        notes.append(
            f"the loss of one node takes {lost}{than}; {short} idle node{'s' * (short > 1)} more would cost about "
            f"{short * each:,.0f} USD in present value"
        )
    notes += [
        f"does not survive the loss of {most[kind]} {kind}, as others do"
        for kind in ("providers", "regions")
        if own.survives[kind] < most[kind]
    ]
    return notes


def _idle(cost: AlternativeCost) -> list[str]:
    """Machines that are committed to, leased or one's own and that demand does not need: paid all the same."""
    paid = sum(sum(used.nodes) for used in cost.parts)
    idle = sum(had - needed for used in cost.parts for had, needed in zip(used.nodes, used.needed, strict=True))
    if idle < 0.5:
        return []
    return [f"{idle:,.0f} of {paid:,.0f} node-months ({idle / paid:.0%}) are paid for and not needed by demand"]
