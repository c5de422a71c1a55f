"""Price lists in JSON: by region and kind as in Karpenter's providers, and by instance as Vantage publishes them."""

from typing import Any

from service.prices_import.quote import Quote, quoted_price, unreadable

KARPENTER_KINDS = {"on_demand": "on_demand", "onDemand": "on_demand", "on-demand": "on_demand", "spot": "spot"}
VANTAGE_TERMS = {
    "yrTerm1Standard.noUpfront": "reserved_1y_no_upfront",
    "yrTerm1Standard.allUpfront": "reserved_1y",
    "yrTerm3Standard.noUpfront": "reserved_3y_no_upfront",
    "yrTerm3Standard.allUpfront": "reserved_3y",
}
"""Only terms whose hourly rate is the whole price: partial upfront lists the remainder."""


def is_karpenter(payload: Any) -> bool:
    """``{"prices": {region: {"on_demand": {instance: price}}}}``, or a region's entry an instance-to-price table."""
    table = payload.get("prices", payload) if isinstance(payload, dict) else None
    return isinstance(table, dict) and bool(table) and all(isinstance(entry, dict) for entry in table.values())


def is_vantage(payload: Any) -> bool:
    """``[{"instance_type": …, "pricing": {region: {"linux": {"ondemand": …}}}}]``."""
    return isinstance(payload, list) and bool(payload) and isinstance(payload[0], dict) and "pricing" in payload[0]


def read_karpenter(payload: Any, provider: str) -> list[Quote]:
    """A region that maps instances straight to prices quotes them on demand."""
    if not is_karpenter(payload):
        raise unreadable("not a table of regions")
    quotes = []
    for region, entry in payload.get("prices", payload).items():
        by_kind = {KARPENTER_KINDS[kind]: table for kind, table in entry.items() if kind in KARPENTER_KINDS}
        for commitment, table in (by_kind or {"on_demand": entry}).items():
            if not isinstance(table, dict):
                raise unreadable(f"prices of {str(region)[:60]!r} are not a table")
            for instance, value in table.items():
                price = quoted_price(value)
                if price is not None:
                    quotes.append(Quote(provider, str(instance), str(region), commitment, price))
    return quotes


def read_vantage(payload: Any, provider: str) -> list[Quote]:
    """Linux prices on demand and of standard reservations; ``spot_min`` is the cheapest zone's."""
    if not is_vantage(payload):
        raise unreadable("not a list of instances with their pricing")
    quotes = []
    for entry in payload:
        instance = str(entry.get("instance_type", ""))
        pricing = entry.get("pricing")
        if not instance or not isinstance(pricing, dict):
            continue
        for region, systems in pricing.items():
            linux = systems.get("linux") if isinstance(systems, dict) else None
            if not isinstance(linux, dict):
                continue
            reserved = linux.get("reserved")
            listed = {"on_demand": linux.get("ondemand"), "spot": linux.get("spot_min")}
            if isinstance(reserved, dict):
                listed |= {ours: reserved.get(theirs) for theirs, ours in VANTAGE_TERMS.items()}
            for commitment, value in listed.items():
                price = quoted_price(value)
                if price is not None:
                    quotes.append(Quote(provider, instance, str(region), commitment, price))
    return quotes
