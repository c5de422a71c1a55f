"""What an hour of a node costs under an acquisition: stated, planned, stored, or derived by a sourced ratio."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from service.offers.tables import OfferTable, PriceStepTable
from service.tco.defaults import CostDefaults, Default
from solver.tco.figures import Figure, exactly

TERM_MONTHS: Mapping[str, int] = {
    "reserved_1y": 12, "reserved_1y_no_upfront": 12, "reserved_3y": 36, "reserved_3y_no_upfront": 36,
}  # fmt: skip
"""Commitments by their names; every other acquisition is by the hour."""
ON_DEMAND = "on_demand"
AT_RATIO = "ratio"
"""Basis of a price that no seller states."""


@dataclass(frozen=True, slots=True)
class PricedFigure:
    """basis: stated, plan, stored_offer or ratio. default: the ratio's row, where one was used."""

    figure: Figure
    offer: str | None
    basis: str
    default: Default | None = None

    @property
    def usd_per_node_hour(self) -> Decimal:
        return Decimal(repr(self.figure.typical)).quantize(Decimal("0.000001"))


@dataclass(frozen=True, slots=True)
class PriceBook:
    """Stored offers with the price in force, and ratios for commitments that have none."""

    offers: Mapping[str, tuple[OfferTable, PriceStepTable | None]]
    defaults: CostDefaults

    def stored(self, offer: str) -> Decimal | None:
        found = self.offers.get(offer)
        return None if found is None or found[1] is None else found[1].usd_per_hour

    def price(self, offer: str, acquisition: str, known: Decimal | None) -> PricedFigure | None:
        """Price of ``offer``'s machine under ``acquisition``; ``known`` is its price in the plan. None: nobody says."""
        own = offer.rsplit(":", 1)[-1]
        if own == acquisition and known is not None:
            return PricedFigure(exactly(float(known)), offer, "plan")
        wanted = under(offer, acquisition)
        price = self.stored(wanted)
        if price is not None:
            return PricedFigure(exactly(float(price)), wanted, "stored_offer")
        base = known if own == ON_DEMAND and known is not None else self.stored(under(offer, ON_DEMAND))
        ratio = self.defaults.commitment_ratio(offer.split(":", 1)[0], acquisition)
        if base is None or ratio is None:
            return None
        hour = float(base)
        scaled = Figure(hour * ratio.figure.low, hour * ratio.figure.typical, hour * ratio.figure.high)
        return PricedFigure(scaled, under(offer, ON_DEMAND), AT_RATIO, ratio)


def under(offer: str, acquisition: str) -> str:
    """The id of the same machine's offer under another commitment.

    >>> under("aws:p5.48xlarge:us-east-1:on_demand", "reserved_3y")
    'aws:p5.48xlarge:us-east-1:reserved_3y'
    """
    return f"{offer.rsplit(':', 1)[0]}:{acquisition}"
