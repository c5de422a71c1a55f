"""The buying policy of a request: which offers its rules leave out, and how many places workloads may be in."""

import datetime as dt

from service.wire.plan_lines import LineSourceOut
from service.wire.recommendations import LimitsIn
from service.wire.sourcing import SourcingIn
from solver.hardware import Offer, PlaceKind
from solver.limit import Limit, LimitKind

CONFIDENCE = ("low", "medium", "high")
"""In a price, growing."""


def rules_against(offer: Offer, limits: LimitsIn) -> frozenset[Limit]:
    """Rules that leave an offer out."""
    policy, sale = limits.sourcing, offer.sale
    if not isinstance(policy, SourcingIn) or sale.own or sale.runs or offer.id in limits.offers:
        return frozenset()
    broken = {
        "min_price_confidence": policy.min_price_confidence is not None
        and CONFIDENCE.index(sale.confidence) < CONFIDENCE.index(policy.min_price_confidence),
        "provider_classes": policy.provider_classes is not None
        and sale.provider_class not in policy.provider_classes
        and offer.provider not in (limits.providers or ()),
        "device_classes": policy.device_classes is not None
        and sale.device_class not in policy.device_classes
        and offer.node.device.id not in (limits.devices or ()),
        "named_place": policy.named_place and not sale.named_place and offer.region not in (limits.regions or ()),
    }
    return frozenset(Limit(LimitKind.BUYING_RULE, name) for name, is_broken in broken.items() if is_broken)


def most_places(limits: LimitsIn) -> tuple[tuple[PlaceKind, int], ...]:
    """Of how many places of each kind a workload's replicas may be: those of the policy, and as many as may be lost."""
    policy, fault_tolerance = limits.sourcing, limits.fault_tolerance
    if not isinstance(policy, SourcingIn):
        return ()
    asked: tuple[tuple[PlaceKind, int | None, int], ...] = (
        ("provider", policy.max_providers, fault_tolerance.providers),
        ("region", policy.max_regions, max(fault_tolerance.regions, fault_tolerance.providers)),
        ("device", policy.max_device_types, 0),
    )
    return tuple((kind, most + lost) for kind, most, lost in asked if most is not None)


def price_age_days(offer: Offer, price_as_of: dt.datetime) -> int | None:
    """How long before the instant that prices are taken at its source stated the price; None for the user's own."""
    stated = offer.sale.priced_day
    return None if stated is None or offer.sale.own else max(0, price_as_of.toordinal() - stated)


def line_source(offer: Offer, limits: LimitsIn, price_as_of: dt.datetime) -> LineSourceOut:
    """What the policy asks of an offer, and whether its price is older than the policy takes as it is."""
    policy, age, sale = limits.sourcing, price_age_days(offer, price_as_of), offer.sale
    oldest = policy.max_price_age_days if isinstance(policy, SourcingIn) else None
    return LineSourceOut.model_validate(
        {
            "provider_class": sale.provider_class,
            "device_class": sale.device_class,
            "named_place": sale.named_place,
            "price_confidence": sale.confidence,
            "price_age_days": age,
            "own": sale.own,
            "ask_for_quote": oldest is not None and age is not None and age > oldest,
        }
    )
