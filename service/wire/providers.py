"""GET /v1/providers."""

from typing import Literal

from service.wire.quantities import Answer, ProvenanceOut

ProviderClass = Literal["hyperscaler", "specialist", "marketplace"]


class ProviderOut(Answer):
    """``places``: regions that say where a machine stands, and what they name. ``no_place``: regions that do not."""

    id: str
    name: str
    provider_class: ProviderClass
    region_classes: dict[str, ProviderClass]
    """Regions that are sold in another way than ``provider_class`` says."""
    places: dict[str, str]
    no_place: list[str]
    provenance: ProvenanceOut
