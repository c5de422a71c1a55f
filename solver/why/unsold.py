"""From which price a machine that nobody sells would win: what the best of the others costs, over the nodes it would take."""

from dataclasses import dataclass, replace

from solver.errors import InvalidInputError, NoPlanInTimeError
from solver.hardware import Node, Offer
from solver.planning.types import PlanningInput
from solver.recommend.recommend import SpaceMemo, solve_request

UNSOLD = "unsold"
"""Provider and region of an offer that does not exist."""
UNIT_USD_PER_HOUR = 1.0
"""The cheapest plan at this price is that of the fewest nodes."""


@dataclass(frozen=True, slots=True)
class WinningPrice:
    """So many nodes alone serve the request, and cost less than the best plan without them below ``usd_per_hour`` a node."""

    node_id: str
    nodes: int
    usd_per_hour: float
    best_usd_per_hour: float


def fewest_nodes_of(planning: PlanningInput, node: Node, memo: SpaceMemo) -> int | None:
    """Nodes of this one type that serve the request alone; None where none do.

    A budget says nothing of what has no price, so it is left out. Raises NoPlanInTimeError.
    """
    offer = Offer(f"{UNSOLD}:{node.id}", node, UNSOLD, UNSOLD, "on_demand", UNIT_USD_PER_HOUR)
    alone = replace(
        planning,
        offers=(offer,),
        withheld=(),
        limits=replace(planning.limits, max_usd_per_hour=None, most_places=(), quotas=()),
    )
    try:
        found = solve_request(alone, memo).result
    except InvalidInputError:
        return None
    return None if found.plan is None else sum(found.plan.nodes_by_offer().values())


def best_usd_per_hour(planning: PlanningInput, memo: SpaceMemo) -> float | None:
    """Of what is sold; None where nothing serves the request, or not in time."""
    try:
        return solve_request(planning, memo).result.usd_per_hour
    except (InvalidInputError, NoPlanInTimeError):
        return None


def winning_price(planning: PlanningInput, node: Node, best_usd: float, memo: SpaceMemo) -> WinningPrice | None:
    """best_usd: of the best plan without the machine, US dollars an hour. None where the machine does not serve the request.

    Raises NoPlanInTimeError.
    """
    nodes = fewest_nodes_of(planning, node, memo)
    return None if not nodes else WinningPrice(node.id, nodes, best_usd / nodes, best_usd)
