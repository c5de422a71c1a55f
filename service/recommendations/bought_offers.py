"""Offers of machines that are bought for a plan because nobody rents them out: what marks them."""

from typing import NamedTuple

from solver.hardware import Offer

BOUGHT_BY = "own"
"""Provider of a machine that is bought."""
PURCHASE = "purchase"


class Bought(NamedTuple):
    """A purchase as an offer, and in words how its price comes about."""

    offer: Offer
    how: str


def is_bought(offer: Offer) -> bool:
    """A purchase that this service made up from the cost catalog, not an offer that somebody stored."""
    return offer.commitment == PURCHASE and offer.provider == BOUGHT_BY and offer.sale.own
