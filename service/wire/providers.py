"""GET /v1/providers."""

from typing import Literal

from service.wire.quantities import Answer, ProvenanceOut

ProviderClass = Literal["hyperscaler", "specialist", "marketplace"]


class ProviderQuotaOut(Answer):
    """``instances``: how the names of the machines begin that count. ``unit``: what is counted."""

    name: str
    instances: list[str]
    commitments: list[str]
    unit: Literal["vCPU", "GPU"]
    source: str


class ProviderOut(Answer):
    """``places``: regions that say where a machine stands, and what they name. ``no_place``: regions that do not."""

    id: str
    name: str
    provider_class: ProviderClass
    region_classes: dict[str, ProviderClass]
    """Regions that are sold in another way than ``provider_class`` says."""
    places: dict[str, str]
    no_place: list[str]
    quotas: list[ProviderQuotaOut]
    """Limits of an account that its machines count against; empty where the catalog names none."""
    provenance: ProvenanceOut
