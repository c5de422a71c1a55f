"""What a why-not names, found on the market: with the limits of the request that leave it out."""

from service.names_meant import device_name_meant, name_meant
from service.problems import FieldError, InvalidFieldsError, unknown_name
from service.recommendations.catalog_snapshot import CatalogSnapshot
from service.recommendations.limits import OPEN, allowed_offers, limits_that_leave_out
from service.why.replay import ReplayedRequest
from service.wire.recommendations import LimitsIn, WorkloadIn
from service.wire.why import LayoutFilterIn, MissOut, PrecisionFilterIn, WhyNotIn
from solver.hardware import Offer
from solver.why.why_not import Kind, Thing

DEGREES = {"tensor_parallel": "TP", "pipeline_parallel": "PP", "data_parallel": "DP", "expert_parallel": "EP"}


def things_meant(asked: WhyNotIn, replay: ReplayedRequest) -> WhyNotIn:
    """With the catalog's own names for what is plainly meant; names nobody knows stay, to be refused by name."""
    snapshot = replay.inputs.snapshot
    memory = snapshot.memory_gib_by_device if asked.devices else {}
    return asked.model_copy(
        update={
            "devices": tuple(device_name_meant(name, memory) for name in asked.devices),
            "offers": tuple(name_meant(name, snapshot.offer_ids) for name in asked.offers),
            "providers": tuple(name_meant(name, snapshot.providers) for name in asked.providers),
            "partitions": tuple(name_meant(name, snapshot.partitions) for name in asked.partitions),
        }
    )


def check_named(asked: WhyNotIn, replay: ReplayedRequest) -> None:
    """Raises InvalidFieldsError listing every name nobody knows."""
    snapshot = replay.inputs.snapshot
    errors = [
        FieldError(unknown_name(kind, name, known), pointer=f"/{field}/{position}")
        for kind, field, names, known in (
            ("device", "devices", asked.devices, snapshot.device_ids),
            ("offer", "offers", asked.offers, snapshot.offer_ids),
            ("provider", "providers", asked.providers, snapshot.providers),
            ("partition", "partitions", asked.partitions, snapshot.partitions),
        )
        for position, name in enumerate(names)
        if name not in known
    ]
    workloads = [w.name for w in replay.request.workloads]
    if asked.workload is not None and asked.workload not in workloads:
        errors.append(FieldError(unknown_name("workload", asked.workload, workloads), pointer="/workload"))
    if errors:
        raise InvalidFieldsError(errors)


def things_of(asked: WhyNotIn, snapshot: CatalogSnapshot, limits: LimitsIn) -> list[Thing]:
    """In the request's order: devices, offers, providers, precisions, layouts, partitions.

    Offers are those the recommendation's limits admit; where they admit none, those that the limits to blame keep out.
    """
    offers = snapshot.offers

    def rented(kind: Kind, name: str, own: list[Offer]) -> Thing:
        devices = {name} if kind == "device" else {o.node.device.id for o in own}
        return Thing(kind, name, _meant(tuple(own), limits), frozenset(devices))

    things = [rented("device", name, [o for o in offers if o.node.device.id == name]) for name in asked.devices]
    things += [rented("offer", name, [o for o in offers if o.id == name]) for name in asked.offers]
    things += [rented("provider", name, [o for o in offers if o.provider == name]) for name in asked.providers]
    things += [Thing("precision", _precision_name(p), weights=p.weights, kv_cache=p.kv_cache) for p in asked.precisions]
    things += [Thing("layout", _layout_name(one), degrees=_degrees(one)) for one in asked.layouts]
    return things + [Thing("partition", name) for name in asked.partitions]


def _meant(offers: tuple[Offer, ...], limits: LimitsIn) -> tuple[Offer, ...]:
    blamed = {name: getattr(OPEN, name) for name in _fields_to_blame(offers, limits)}
    return allowed_offers(offers, limits.model_copy(update=blamed)) or offers


def _fields_to_blame(offers: tuple[Offer, ...], limits: LimitsIn) -> list[str]:
    return [name.removeprefix("limits.") for name in limits_that_leave_out(offers, limits)]


def _precision_name(asked: PrecisionFilterIn) -> str:
    parts = (("weights", asked.weights), ("KV cache", asked.kv_cache))
    return ", ".join(f"{name} {value}" for name, value in parts if value is not None)


def _degrees(asked: LayoutFilterIn) -> dict[str, int]:
    return {name: degree for name in DEGREES if (degree := getattr(asked, name)) is not None}


def _layout_name(asked: LayoutFilterIn) -> str:
    return " ".join(f"{DEGREES[name]}{degree}" for name, degree in _degrees(asked).items())


def excluded_by(thing: Thing, replay: ReplayedRequest, workload: str | None) -> list[str]:
    """Limits of the request each of which leaves every one of its offers out, or choices that do not name it."""
    asked = replay.request
    if thing.kind == "partition":
        allowed = asked.limits.partitions
        return [] if allowed is True or (allowed and thing.name in allowed) else ["limits.partitions"]
    if thing.kind == "precision":
        chosen = [w for w in asked.workloads if workload in (None, w.name)]
        return [
            f"precision.{field}"
            for field, wanted in (("weights", thing.weights), ("kv_cache", thing.kv_cache))
            if wanted is not None and all(wanted not in _formats(w, field, replay) for w in chosen)
        ]
    if not thing.offers or allowed_offers(thing.offers, asked.limits):
        return []
    return limits_that_leave_out(thing.offers, asked.limits) or ["limits"]


def _formats(workload: WorkloadIn, field: str, replay: ReplayedRequest) -> tuple[str, ...]:
    """Formats that a workload admits: the checkpoint's own where it names none."""
    asked: tuple[str, ...] | None = getattr(workload.precision, field)
    return asked if asked is not None else (replay.inputs.shapes[workload.llm].native_weights,)


def nobody_offers(thing: Thing, snapshot: CatalogSnapshot) -> list[MissOut]:
    """Reasons of things that have no candidate at all because nothing of them can be rented, or a figure is missing."""
    if thing.offers is None:
        return []
    found = [
        MissOut(workload=None, reason="figure_missing", detail=f"{device}: nobody has published {figure}")
        for device, figure in snapshot.refused.items()
        if device in thing.devices
    ]
    if not thing.offers and not found:
        found = [
            MissOut(workload=None, reason="no_offer", detail=f"no offer of {thing.name} has a price at this instant")
        ]
    return found
