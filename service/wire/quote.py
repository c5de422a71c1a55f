"""GET /v1/recommendations/{id}/quote: what to confirm with each seller before a plan is signed."""

from decimal import Decimal

from service.wire.plan_lines import LineSourceOut, PlanLineOut
from service.wire.quantities import Answer, Usd
from service.wire.why import BaseOut


class QuotaOut(Answer):
    """An account's limit that the machines count against. ``needs``: in ``unit``; null where the machine's part of it is not known."""

    name: str
    unit: str
    needs: float | None


class QuoteLineOut(Answer):
    """Nodes of one offer."""

    offer: str
    provider: str
    region: str
    place: str | None
    """What the region names, as far as the catalog knows."""
    instance: str
    commitment: str
    node: str
    device: str
    nodes: int
    devices: int
    usd_per_hour: Usd
    """Of a node, as planned."""
    price_source: str
    source: LineSourceOut
    confirm: list[str]
    """What to ask the seller for, in words."""
    quotas: list[QuotaOut]
    may_rise_to_usd_per_hour: Usd | None
    """The highest price of a node at which the plan is still the cheapest, other prices unchanged; found by solving at it. Null where
    that was not settled in time, the plan is not proven, or the machine costs nothing."""
    may_rise_percent: float | None
    at_least: bool
    """Nothing was cheaper up to that price, which is the highest that was tried."""
    then: list[PlanLineOut]
    """The plan that is cheaper beyond; empty where there is none or it is not known."""


class QuoteOut(Answer):
    """``usd_per_hour``: of the whole plan as quoted here."""

    base: BaseOut
    usd_per_hour: Decimal | None
    lines: list[QuoteLineOut]
    seconds: float
