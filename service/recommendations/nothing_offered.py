"""Devices that a request names and nothing is offered of, so that an answer without them says why."""

import datetime as dt

from service.recommendations.catalog_snapshot import CatalogSnapshot
from service.recommendations.limits import allowed_offers, limits_that_leave_out
from service.recommendations.published import sellers
from service.recommendations.token_hints import by_token
from service.wire.plan_explained import RejectedOut
from service.wire.recommendations import LimitsIn, RecommendationIn
from solver.hardware import Offer

COMMITMENTS_SHOWN = 4


def nothing_offered(snapshot: CatalogSnapshot, asked: RecommendationIn, day: dt.date) -> list[RejectedOut]:
    """One row by device: ``no_offer`` where nobody sells it by the hour, ``not_allowed`` where the request's own limits leave out
    all that is sold, ``figure_missing`` where a figure is."""
    found = []
    for device in asked.limits.devices or ():
        if device in snapshot.refused:
            detail = f"nobody has published {snapshot.refused[device]}"
            found.append(_with_tokens(_row(asked, device, "figure_missing", detail), snapshot, asked, day))
            continue
        offers = tuple(offer for offer in snapshot.offers if offer.node.device.id == device)
        if not offers:
            detail = "no offer of it has a price at this instant: add one with POST /v1/offers"
            if device in snapshot.not_bought:
                detail += f"; nor can it be bought: no sourced value for {snapshot.not_bought[device]}"
            found.append(_with_tokens(_row(asked, device, "no_offer", detail), snapshot, asked, day))
        elif not allowed_offers(offers, asked.limits):
            found.append(_row(asked, device, "not_allowed", _left_out_by(offers, asked.limits)))
    return found


def _left_out_by(offers: tuple[Offer, ...], limits: LimitsIn) -> str:
    names = limits_that_leave_out(offers, limits)
    terms = sorted({offer.commitment for offer in offers})[:COMMITMENTS_SHOWN]
    priced = f"prices are known for {', '.join(terms)}"
    if not names:
        return f"the limits together leave out all of it; {priced}"
    return f"{' and '.join(names)} leave{'s' if len(names) == 1 else ''} out all of it; {priced}"


def _with_tokens(row: RejectedOut, snapshot: CatalogSnapshot, asked: RecommendationIn, day: dt.date) -> RejectedOut:
    """The row with what the device's maker asks for tokens of the first workload's model."""
    llm, vendor = asked.workloads[0].llm, snapshot.vendors.get(row.device, "")
    tokens = by_token(vendor, llm, day)
    if not tokens:
        return row
    best = tokens[0]
    detail = (
        f"{row.nearest}. {vendor} sells tokens of {llm} on machines of its own: "
        f"{best.usd_per_million_input_tokens} USD a million of prompts, {best.usd_per_million_output_tokens} of replies "
        f"({best.id}, seen on {best.seen_on})"
    )
    if vendor.lower() in sellers() and asked.limits.by_the_token is None:
        detail += f'; limits.by_the_token ["{vendor.lower()}"] admits them to the plan'
    return row.model_copy(update={"nearest": detail, "by_token": tokens})


def _row(asked: RecommendationIn, device: str, reason: str, nearest: str) -> RejectedOut:
    return RejectedOut(workload=asked.workloads[0].name, device=device, reason=reason, count=0, nearest=nearest)
