"""A request with the names that its client meant: what is stored and solved has the catalog's own."""

from collections.abc import Iterable, Mapping

from service.names_meant import device_name_meant, llm_name_meant, name_meant
from service.recommendations.catalog_snapshot import CatalogSnapshot
from service.wire.recommendations import LimitsIn, RecommendationIn, WorkloadIn
from service.wire.resilience import PlacesIn

Names = tuple[str, ...] | None


def with_names_meant(
    asked: RecommendationIn, snapshot: CatalogSnapshot, hub_names_by_llm: Mapping[str, str | None]
) -> RecommendationIn:
    """The request itself where every name is the catalog's already. Names nobody knows stay, to be refused by name."""
    workloads = tuple(_workload(one, snapshot, hub_names_by_llm) for one in asked.workloads)
    limits = limits_meant(asked.limits, snapshot)
    if workloads == asked.workloads and limits == asked.limits:
        return asked
    return asked.model_copy(update={"workloads": workloads, "limits": limits})


def _workload(one: WorkloadIn, snapshot: CatalogSnapshot, llms: Mapping[str, str | None]) -> WorkloadIn:
    return one.model_copy(
        update={
            "llm": llm_name_meant(one.llm, llms),
            "providers": _places(one.providers, snapshot.providers),
            "regions": _places(one.regions, snapshot.regions),
            "engines": None if one.engines is None else _meant(one.engines, snapshot.engines),
        }
    )


def limits_meant(limits: LimitsIn, snapshot: CatalogSnapshot) -> LimitsIn:
    """Its devices, providers and regions by the catalog's names, each once: what is said of one is looked up for each."""
    memory = snapshot.memory_gib_by_device if limits.devices else {}
    devices = None if limits.devices is None else _once(device_name_meant(name, memory) for name in limits.devices)
    return limits.model_copy(
        update={
            "devices": devices,
            "providers": _meant(limits.providers, snapshot.providers),
            "regions": _meant(limits.regions, snapshot.regions),
        }
    )


def _places(stated: PlacesIn, known: frozenset[str]) -> PlacesIn:
    never = _meant(stated.never, known) or ()
    return stated.model_copy(update={"only": _meant(stated.only, known), "never": never})


def _meant(names: Names, known: frozenset[str]) -> Names:
    return None if names is None else _once(name_meant(name, known) for name in names)


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
