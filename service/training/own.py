"""Machines that training jobs may buy, and commitments: what a node of each is paid once, whichever jobs hold it. Sites, prices, resale
and rooms are those of fleets over time."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlmodel import Session

from service.fleets.own import PURCHASE, Buying, Owned, read_owned
from service.recommendations.catalog_snapshot import CatalogSnapshot
from service.tco.prepare import cost_catalog
from service.tco.prices import TERM_MONTHS
from service.training.said import IDLE
from service.wire.training_plans import TrainingRecommendationIn
from solver.hardware import Node, Offer, Sale
from solver.tco.capital import discount_factors
from solver.tco.owned_node import OwnedNode
from solver.training.programme import SharedPlace, present_usd
from solver.units import HOURS_PER_MONTH, SECONDS_PER_HOUR

OWN = "own"
"""Provider of bought nodes, as in fleets."""
PERCENT = 100.0
MONTH_S = HOURS_PER_MONTH * SECONDS_PER_HOUR


@dataclass(frozen=True, slots=True)
class PaidTerm:
    """What a node costs that is committed to or bought: all of its months, used or not. bought: None of what is rented."""

    months: int
    usd: float
    present_usd: float
    bought: OwnedNode | None = None


def read_training_owned(
    session: Session, asked: TrainingRecommendationIn, snapshot: CatalogSnapshot, latest_s: float
) -> Owned:
    """latest_s: after which no job runs: machines are kept as many months, unless the request says how many.

    Raises InvalidFieldsError.
    """
    months = asked.own_months or max(1, math.ceil(latest_s / MONTH_S))
    sites = tuple(site.model_copy(update={"purchase_months": (0,)}) for site in asked.own)
    wanted = Buying(sites, asked.limits.devices, months, asked.discount_rate_percent_per_year)
    return read_owned(session, wanted, snapshot, cost_catalog())


def own_offers(
    owned: Owned, nodes: Mapping[str, Node], quotas: Mapping[str, int], discount: float
) -> Iterator[tuple[Offer, PaidTerm]]:
    """Each machine that may be bought. quotas: nodes of an offer that the request allows."""
    for one in owned.machines:
        (bought,) = one.nodes
        most = [count for count in (one.max_nodes, quotas.get(one.id)) if count is not None]
        term = PaidTerm(bought.term_months, bought.usd, present_payments_usd(bought, discount), bought)
        hour = bought.usd / (bought.term_months * HOURS_PER_MONTH)
        node = nodes[one.facts.node]
        sale = Sale(named_place=True, own=True)
        yield (
            Offer(one.id, node, OWN, one.region, PURCHASE, hour, min(most) if most else None, sale=sale),
            term,
        )


def present_payments_usd(bought: OwnedNode, discount: float) -> float:
    """Σ_k p_k (1 + r)^(−k/12), k months after the purchase."""
    factors = discount_factors(discount, max(month for month, _ in bought.payments))
    return math.fsum(usd * float(factors[month]) for month, usd in bought.payments)


def reserved_terms(offers: Sequence[Offer], discount: float) -> dict[str, PaidTerm]:
    """Of offers that are committed to: level payments at the end of each month of the term."""
    found = {}
    for offer in offers:
        if offer.commitment in TERM_MONTHS and not offer.id.startswith(IDLE):
            months = TERM_MONTHS[offer.commitment]
            usd = months * HOURS_PER_MONTH * offer.usd_per_hour
            found[offer.id] = PaidTerm(months, usd, present_usd(usd, 0.0, months * MONTH_S, discount))
    return found


def rooms_of(owned: Owned) -> tuple[SharedPlace, ...]:
    return tuple(SharedPlace(dict(one.per_node), one.most) for one in owned.rooms)
