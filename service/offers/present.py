"""Offer and price rows → wire."""

import datetime as dt

from service.devices.tables import DeviceTable
from service.nodes.tables import NodeTable
from service.offers.tables import OfferTable, PriceStepTable
from service.wire.offers import OfferOut, PriceOut, PriceStepOut


def present_offer(
    offer: OfferTable,
    machine: tuple[NodeTable, DeviceTable],
    price: PriceStepTable | None,
    price_as_of: dt.datetime,
) -> OfferOut:
    node, device = machine
    per_hour = price.usd_per_hour if price is not None else None
    return OfferOut(
        id=offer.id,
        provider=offer.provider,
        provider_class=offer.provider_class,
        instance=offer.instance,
        region=offer.region,
        named_place=offer.named_place,
        commitment=offer.commitment,
        node=offer.node_id,
        device=node.device_id,
        device_class=device.device_class,
        devices=node.devices,
        max_nodes=offer.max_nodes,
        notes=offer.notes,
        origin=offer.origin,
        price_as_of=price_as_of,
        price=None if price is None else _price(price, price_as_of),
        usd_per_device_hour=None if per_hour is None else per_hour / node.devices,
    )


def present_step(step: PriceStepTable) -> PriceStepOut:
    return PriceStepOut(
        offer=step.offer_id,
        usd_per_hour=step.usd_per_hour,
        valid_from=step.valid_from,
        source=step.source,
        retrieved_on=step.retrieved_on,
        confidence=step.confidence,
        recorded_at=step.recorded_at,
    )


def _price(step: PriceStepTable, price_as_of: dt.datetime) -> PriceOut:
    return PriceOut(
        usd_per_hour=step.usd_per_hour,
        valid_from=step.valid_from,
        source=step.source,
        retrieved_on=step.retrieved_on,
        confidence=step.confidence,
        recorded_at=step.recorded_at,
        age_days=max(0, (price_as_of - step.valid_from).days),
    )
