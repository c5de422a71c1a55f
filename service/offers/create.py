"""Add an offer, or a price step to one. Nothing is overwritten."""

import datetime as dt

from sqlmodel import Session

from service.catalog_release.queries import record_change
from service.clock import Clock
from service.nodes.queries import node_by_id, node_ids
from service.offers.queries import believed_step, offer_by_id, offer_ids
from service.offers.tables import OfferTable, PriceStepTable
from service.problems import ConflictError, FieldError, InvalidFieldsError, not_found, unknown_name
from service.providers.queries import providers_by_id
from service.providers.standing import standing
from service.wire.offers import OfferIn, PriceIn


def create_offer(session: Session, asked: OfferIn, clock: Clock) -> tuple[OfferTable, bool]:
    """The stored offer, and whether it is new.

    The same offer again changes nothing; another one under its id is 409.
    """
    if node_by_id(session, asked.node) is None:
        raise InvalidFieldsError([FieldError(unknown_name("node", asked.node, node_ids(session)), pointer="/node")])
    stands = standing(asked.provider, asked.region, providers_by_id(session))
    wanted = OfferTable(
        id=asked.stored_id, provider=asked.provider, instance=asked.instance, region=asked.region,
        commitment=asked.commitment, node_id=asked.node, max_nodes=asked.max_nodes, notes=asked.notes, origin="user",
        provider_class=stands.provider_class, named_place=stands.named_place,
    )  # fmt: skip
    stored = offer_by_id(session, wanted.id)
    if stored is not None:
        if (stored.node_id, stored.max_nodes, stored.notes) != (wanted.node_id, wanted.max_nodes, wanted.notes):
            raise ConflictError(f"an offer {wanted.id!r} with other properties is stored")
    else:
        session.add(wanted)
        session.flush()
        record_change(session, "offer", asked.model_dump(mode="json", exclude={"price"}), clock())
    if asked.price is not None:
        create_price(session, wanted.id, asked.price, clock)
    return stored or wanted, stored is None


def create_price(session: Session, offer_id: str, asked: PriceIn, clock: Clock) -> tuple[PriceStepTable, bool]:
    """The stored step, and whether it is new. Another price for the same instant needs ``correction``."""
    if offer_by_id(session, offer_id) is None:
        raise not_found("offer", offer_id, offer_ids(session))
    now = clock()
    stored = believed_step(session, offer_id, asked.valid_from)
    if stored is not None:
        if stored.usd_per_hour == asked.usd_per_hour:
            return stored, False
        if not asked.correction:
            raise ConflictError(
                f"a price from {asked.valid_from.isoformat()} on is stored with another amount; "
                "state `correction: true` to correct it"
            )
        now = max(now, stored.recorded_at + dt.timedelta(microseconds=1))  # the correction is the later belief
    step = PriceStepTable(
        offer_id=offer_id, valid_from=asked.valid_from, usd_per_hour=asked.usd_per_hour, source=asked.source,
        retrieved_on=now.date(), confidence=asked.confidence, recorded_at=now,
    )  # fmt: skip
    session.add(step)
    record_change(session, "price", {"offer": offer_id} | asked.model_dump(mode="json"), now)
    return step, True
