"""A buyer's policy: from whom, where, on what and at which prices a plan may buy. ``limits.sourcing`` of a request, and what it
costs in the answer."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from service.wire.devices import DeviceClass
from service.wire.offers import Confidence
from service.wire.providers import ProviderClass
from service.wire.quantities import Request


def _in_small_letters(value: Any) -> Any:
    return [one.lower() if isinstance(one, str) else one for one in value] if isinstance(value, list | tuple) else value


ProviderClasses = Annotated[
    tuple[ProviderClass, ...], BeforeValidator(_in_small_letters), Field(min_length=1, max_length=10)
]
DeviceClasses = Annotated[
    tuple[DeviceClass, ...], BeforeValidator(_in_small_letters), Field(min_length=1, max_length=10)
]
FewPlaces = Annotated[int, Field(ge=1, le=1_000)]
SourcingRule = Literal[
    "max_price_age_days",
    "min_price_confidence",
    "provider_classes",
    "device_classes",
    "named_place",
    "max_providers",
    "max_regions",
    "max_device_types",
]


class SourcingIn(Request):
    """What a plan may be bought from; null lifts a rule. The user's own offers, those of ``current`` and those that
    ``limits.offers`` names pass every rule about offers.

    A provider, device or region that the request names in its ``limits`` passes the rule about its class or place: who asks
    for it means it.
    """

    max_price_age_days: Annotated[int, Field(ge=0, le=36_500)] | None = 180
    """Lines at prices that were stated longer ago ask for a quote (``ask_for_quote``); they are planned with all the same."""
    min_price_confidence: Confidence | None = "medium"
    provider_classes: ProviderClasses | None = ("hyperscaler", "specialist")
    """Not on marketplaces, where machines come from whoever offers them."""
    device_classes: DeviceClasses | None = ("datacentre",)
    named_place: bool = True
    """Only regions that say where the machine stands: a city, a metropolitan area or a country."""
    max_providers: FewPlaces | None = 1
    """For each workload; as many more as ``fault_tolerance.providers`` asks to outlive."""
    max_regions: FewPlaces | None = 1
    """For each workload, a region being one provider's; as many more as ``fault_tolerance`` asks to outlive regions or providers."""
    max_device_types: FewPlaces | None = 1
    """For each workload: one engine, one image, one set of drivers to run."""


Sourcing = SourcingIn | Literal["any"]
"""``any`` lifts the whole policy."""
