"""What a device that nobody sells would have to cost to win, for a request that names it."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from service.recommendations.money import usd
from service.wire.plan_explained import RejectedOut, WinsBelowOut
from solver.errors import NoPlanInTimeError
from solver.hardware import Node

if TYPE_CHECKING:
    from service.recommendations.plan import PlanningInputs
    from solver.planning.types import PlanningInput

MOST_NODE_TYPES = 3
"""Of one device: the answer needs the best of them, and the smallest machines waste least."""
LEAST_TIME_FRACTION = 0.1
"""Of the request's time limit: with less than that left nothing more is solved."""


def with_winning_prices(
    inputs: "PlanningInputs", rejected: list[RejectedOut], free: "PlanningInput", left_s: float
) -> list[RejectedOut]:
    """Rows of ``no_offer`` with the price below which machines of the device alone would beat everything that is sold.

    free: the request without the choice of devices. What there is no time to find out stays unsaid.
    """
    from solver.why.unsold import best_usd_per_hour

    unsold = [row for row in rejected if row.reason == "no_offer"]
    least_s = LEAST_TIME_FRACTION * free.time_limit_s
    if not unsold or free.objective != "cost" or left_s < least_s:
        return rejected
    began = free.clock()
    best = best_usd_per_hour(replace(free, time_limit_s=left_s), inputs.spaces)
    if best is None:
        return rejected
    found = []
    for row in rejected:
        left = left_s - (free.clock() - began)
        found.append(_with_price(inputs, row, free, best, left) if row in unsold and left >= least_s else row)
    return found


def _with_price(
    inputs: "PlanningInputs", row: RejectedOut, free: "PlanningInput", best_usd: float, left_s: float
) -> RejectedOut:
    from solver.why.unsold import winning_price

    nodes = sorted((n for n in inputs.snapshot.nodes.values() if n.device.id == row.device), key=_size)[
        :MOST_NODE_TYPES
    ]
    tried = replace(free, time_limit_s=left_s / max(1, len(nodes)))
    try:
        prices = [winning_price(tried, node, best_usd, inputs.spaces) for node in nodes]
    except NoPlanInTimeError:
        return row
    able = [one for one in prices if one is not None]
    if not able:
        return row.model_copy(update={"nearest": f"{row.nearest}; no number of them would serve this"} if nodes else {})
    by_id = {node.id: node for node in nodes}
    best = max(able, key=lambda one: one.usd_per_hour / by_id[one.node_id].devices)
    # Down to the cent: at the price said it wins.
    price = math.floor(best.usd_per_hour * 100.0) / 100.0
    detail = (
        f"{row.nearest}. It would win below {price:,.2f} USD an hour for a node {best.node_id}: {best.nodes} of them serve this, "
        f"and the best plan of what is sold costs {best_usd:,.2f}"
    )
    wins = WinsBelowOut(
        node=best.node_id, nodes=best.nodes, usd_per_hour=usd(best.usd_per_hour), best_usd_per_hour=usd(best_usd)
    )
    return row.model_copy(update={"nearest": detail, "wins_below": wins})


def _size(node: Node) -> tuple[int, str]:
    return node.devices, node.id
