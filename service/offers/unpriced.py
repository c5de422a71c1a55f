"""Terms for which no price is known: an instance that is rented somewhere without a commitment's price there."""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable

from service.nodes.tables import NodeTable
from service.offers.tables import OfferTable, PriceStepTable
from service.wire.offers import UnpricedOut

TERMS = {1: ("reserved_1y", "reserved_1y_no_upfront"), 3: ("reserved_3y", "reserved_3y_no_upfront")}
"""Commitments by their years."""


def unpriced_terms(
    offers: Iterable[tuple[OfferTable, NodeTable]], prices: dict[str, PriceStepTable], price_as_of: dt.datetime
) -> list[UnpricedOut]:
    """One entry for each instance and term that lacks a price in some region where the instance has one, by id."""
    nodes: dict[tuple[str, str], NodeTable] = {}
    rented: dict[tuple[str, str], set[str]] = defaultdict(set)
    committed: dict[tuple[str, str, int], set[str]] = defaultdict(set)
    for offer, node in offers:
        step = prices.get(offer.id)
        if step is None or step.usd_per_hour is None:
            continue
        machine = (offer.provider, offer.instance)
        nodes[machine] = node
        rented[machine].add(offer.region)
        for years, names in TERMS.items():
            if offer.commitment in names:
                committed[(*machine, years)].add(offer.region)
    found = []
    for (provider, instance), regions in rented.items():
        for years in TERMS:
            with_price = committed[(provider, instance, years)]
            if without := sorted(regions - with_price):
                node = nodes[(provider, instance)]
                found.append(
                    UnpricedOut(
                        id=f"{provider}:{instance}:{years}y",
                        provider=provider,
                        instance=instance,
                        node=node.id,
                        device=node.device_id,
                        devices=node.devices,
                        term_years=years,
                        detail=_sentence(provider, instance, years, len(without), len(regions)),
                        regions_without=without,
                        regions_with=sorted(with_price),
                        price_as_of=price_as_of,
                    )
                )
    return sorted(found, key=lambda entry: entry.id)


def _sentence(provider: str, instance: str, years: int, without: int, regions: int) -> str:
    """
    >>> _sentence("aws", "p5.48xlarge", 1, 12, 12)
    'aws p5.48xlarge: no 1-year price known'
    >>> _sentence("gcp", "a3-highgpu-8g", 3, 2, 20)
    'gcp a3-highgpu-8g: no 3-year price known in 2 of 20 regions'
    """
    where = "" if without == regions else f" in {without} of {regions} regions"
    return f"{provider} {instance}: no {years}-year price known{where}"
