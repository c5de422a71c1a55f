"""Stored recommendations that changed prices bear on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from service.nodes.tables import NodeTable
from service.offers.tables import OfferTable
from service.prices_import.store import PriceChange
from service.recommendations.tables import RecommendationTable
from service.tco.stored_plan import StoredPlan, stored_plan
from service.wire.prices_import import Effect
from service.wire.recommendations import LimitsIn


@dataclass(frozen=True, slots=True)
class Touched:
    """effect ``price_changes``: the plan itself costs ``plan_usd_per_hour``; else an offer it may use got cheaper."""

    plan: StoredPlan
    request: dict[str, Any]
    effect: Effect
    offers: tuple[str, ...]
    plan_usd_per_hour: Decimal | None


def touched_recommendations(
    stored: Sequence[RecommendationTable],
    changes: Sequence[PriceChange],
    offers: Mapping[str, tuple[OfferTable, NodeTable]],
) -> list[Touched]:
    """A recommendation is not touched when none of its plan's prices moved and no offer within its limits got cheaper.

    A price that rises outside the plan cannot make another plan cheaper than the proven one.
    """
    by_offer = {change.quote.offer: change for change in changes}
    cheaper = [c for c in changes if c.before is None or c.quote.usd_per_hour < c.before]
    found = []
    for row in stored:
        plan = stored_plan(row)
        own = tuple(sorted({line.offer for line in plan.lines} & by_offer.keys()))
        if own:
            found.append(Touched(plan, row.request, "price_changes", own, _plan_price(plan, by_offer)))
            continue
        allowed = tuple(sorted(c.quote.offer for c in cheaper if _allowed(c.quote.offer, plan.limits, offers)))
        if allowed:
            found.append(Touched(plan, row.request, "cheaper_offer", allowed, None))
    return found


def _plan_price(plan: StoredPlan, changes: Mapping[str, PriceChange]) -> Decimal:
    """The same plan at the new prices."""
    total = Decimal(0)
    for line in plan.lines:
        change = changes.get(line.offer)
        total += line.usd_per_hour if change is None else change.quote.usd_per_hour * line.nodes
    return total


def _allowed(offer: str, limits: LimitsIn, offers: Mapping[str, tuple[OfferTable, NodeTable]]) -> bool:
    """Whether the request's limits let the offer in."""
    known = offers.get(offer)
    if known is None:
        return True  # new with this list and not yet stored (a dry run): cannot be ruled out
    row, node = known
    pairs = (
        (limits.devices, node.device_id),
        (limits.providers, row.provider),
        (limits.regions, row.region),
        (limits.commitments, row.commitment),
    )
    if any(allowed is not None and value not in allowed for allowed, value in pairs):
        return False
    own = limits.offers.get(offer)
    return own is None or own.max_nodes > 0
