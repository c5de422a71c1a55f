"""Are the names in a request known? Every unknown one is reported at once, with close matches."""

from collections.abc import Iterable

from service.problems import FieldError, InvalidFieldsError, unknown_name
from service.recommendations.catalog_snapshot import CatalogSnapshot
from service.wire.recommendations import RecommendationIn
from solver.llm_shape import LlmShape


def check_names(
    asked: RecommendationIn, snapshot: CatalogSnapshot, shapes: dict[str, LlmShape], known_llms: Iterable[str]
) -> None:
    """Raises InvalidFieldsError listing every name nobody knows and every context above its model's."""
    errors: list[FieldError] = []
    known = list(known_llms)
    for position, workload in enumerate(asked.workloads):
        shape = shapes.get(workload.llm)
        if shape is None:
            errors.append(FieldError(unknown_name("llm", workload.llm, known), pointer=f"/workloads/{position}/llm"))
        elif workload.context_tokens is not None and workload.context_tokens > shape.max_context_tokens:
            errors.append(
                FieldError(
                    f"{workload.context_tokens} tokens are more than {workload.llm} can take"
                    f" ({shape.max_context_tokens})",
                    pointer=f"/workloads/{position}/context_tokens",
                )
            )
    limits = asked.limits
    errors.extend(_unknown("device", "devices", limits.devices, snapshot.device_ids))
    errors.extend(_unknown("provider", "providers", limits.providers, snapshot.providers))
    errors.extend(_unknown("region", "regions", limits.regions, snapshot.regions))
    errors.extend(
        FieldError(unknown_name("offer", name, snapshot.offer_ids), pointer=f"/limits/offers/{_escaped(name)}")
        for name in limits.offers
        if name not in snapshot.offer_ids
    )
    if errors:
        raise InvalidFieldsError(errors)


def _unknown(kind: str, field: str, names: tuple[str, ...] | None, known: frozenset[str]) -> list[FieldError]:
    return [
        FieldError(unknown_name(kind, name, known), pointer=f"/limits/{field}/{position}")
        for position, name in enumerate(names or [])
        if name not in known
    ]


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
