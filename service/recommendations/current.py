"""The fleet that runs now: named in a request, found in the database, checked against the market."""

import datetime as dt
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlmodel import Session

from service.problems import FieldError, InvalidFieldsError, unknown_name
from service.recommendations.catalog_snapshot import CatalogSnapshot
from service.recommendations.fleet_of import fleet_of
from service.recommendations.limits import allowed_offers
from service.recommendations.queries import recommendation_by_id
from service.wire.recommendations import LimitsIn, RecommendationIn
from service.wire.replanning import CurrentIn, CurrentNodesIn
from solver.hardware import Offer

if TYPE_CHECKING:
    from solver.recommend.replan import CurrentFleet

PERCENT = 100.0


@dataclass(frozen=True, slots=True)
class RunningNodes:
    offer: Offer
    nodes: int
    committed: bool


def running(offer: Offer) -> Offer:
    """The offer as one that nodes run of: whoever has signed for it need not be kept from it."""
    return replace(offer, sale=replace(offer.sale, runs=True))


def running_nodes(
    session: Session, asked: RecommendationIn, snapshot: CatalogSnapshot, price_as_of: dt.datetime
) -> tuple[RunningNodes, ...]:
    """Nodes that run, one entry an offer; empty where the request names no fleet.

    Raises InvalidFieldsError for an unknown recommendation or one without a plan, and naming every offer that nobody
    knows or that has no price at the instant: its nodes could be neither kept nor compared.
    """
    if asked.current is None:
        return ()
    stated, place = _stated(session, asked.current)
    priced = {offer.id: offer for offer in snapshot.offers}
    errors = []
    for name in stated:
        if name in priced:
            continue
        wrong = (
            f"{name} has no price at {price_as_of.isoformat()}; append one with POST /v1/offers/{name}/prices"
            if name in snapshot.offer_ids
            else unknown_name("offer", name, snapshot.offer_ids)
        )
        errors.append(
            FieldError(wrong, pointer=place or f"/current/nodes/{name.replace('~', '~0').replace('/', '~1')}")
        )
    if errors:
        raise InvalidFieldsError(errors)
    return tuple(
        RunningNodes(
            running(priced[name]), one.nodes, one.committed_until is not None and one.committed_until > price_as_of
        )
        for name, one in sorted(stated.items())
    )


def _stated(session: Session, current: CurrentIn) -> tuple[dict[str, CurrentNodesIn], str | None]:
    """Nodes by offer, and the field to blame where they come from a recommendation."""
    if current.recommendation is None:
        return current.nodes, None
    place = "/current/recommendation"
    row = recommendation_by_id(session, current.recommendation)
    if row is None:
        raise InvalidFieldsError([FieldError(f"no recommendation {current.recommendation[:80]!r}", pointer=place)])
    nodes = {f.offer: CurrentNodesIn(nodes=f.nodes) for f in fleet_of(row.result).values()}
    if not nodes:
        raise InvalidFieldsError([FieldError(f"{row.id} has no plan", pointer=place)])
    return nodes, place


def current_fleet(running: tuple[RunningNodes, ...], asked: CurrentIn, limits: LimitsIn) -> "CurrentFleet":
    """What the solver plans from. ``limits.commitments`` choose what may be rented anew; what runs may be kept."""
    from solver.recommend.replan import CurrentFleet, HeldNodes, SwitchingCost

    kept = limits.model_copy(update={"commitments": None})
    held = []
    for one in running:
        usable = allowed_offers((one.offer,), kept)
        offer = replace(one.offer, max_nodes=usable[0].max_nodes) if usable else one.offer
        held.append(HeldNodes(offer, one.nodes, one.nodes if one.committed else 0, bool(usable)))
    switching = asked.switching
    cost = SwitchingCost(
        float(switching.usd_per_node_added), float(switching.usd_per_node_removed), switching.overlap_hours
    )
    if switching.payback_hours is not None:
        cost = replace(cost, payback_h=switching.payback_hours)
    unless = asked.keep_unless
    return CurrentFleet(
        tuple(held),
        cost,
        least_saving_fraction=(unless.saving_percent or 0.0) / PERCENT,
        least_saving_usd_per_hour=float(unless.saving_usd_per_hour or 0),
    )
