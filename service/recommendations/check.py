"""What can be checked in a request against the catalog: names, contexts, lengths. All that is wrong is said at once."""

from collections.abc import Iterable, Iterator
from itertools import islice

from service.problems import MOST_FIELD_ERRORS, FieldError, InvalidFieldsError, unknown_name
from service.recommendations.catalog_snapshot import CatalogSnapshot
from service.recommendations.from_rows import lengths_from_wire, stated_lengths, traffic_from_wire
from service.recommendations.images import image_tokens
from service.recommendations.limits import allowed_offers, places
from service.recommendations.published import mistakes_by_the_token
from service.wire.recommendations import LimitsIn, RecommendationIn, WorkloadIn
from service.wire.resilience import PlacesIn
from service.wire.traffic import ANSWERS_FOLLOW_HIDDEN_TOKENS
from solver.deployment.context import beyond
from solver.errors import InvalidInputError, SolverError
from solver.llm_shape import LlmShape
from solver.workload import Traffic


def check_names(
    asked: RecommendationIn, snapshot: CatalogSnapshot, shapes: dict[str, LlmShape], known_llms: Iterable[str]
) -> None:
    """Raises InvalidFieldsError listing every name nobody knows and every context above its model's."""
    errors: list[FieldError] = []
    known = list(known_llms)
    if asked.objective != "throughput":
        errors += [
            FieldError(
                "state how many requests come each second; only the objective throughput does without",
                pointer=f"/workloads/{position}/traffic/requests_per_s",
            )
            for position, workload in enumerate(asked.workloads)
            if workload.traffic is not None and workload.traffic.requests_per_s is None
        ]
    for position, workload in enumerate(asked.workloads):
        shape = shapes.get(workload.llm)
        if shape is None:
            errors.append(FieldError(unknown_name("llm", workload.llm, known), pointer=f"/workloads/{position}/llm"))
        elif workload.context_tokens is not None and workload.context_tokens > shape.longest_context_tokens:
            errors.append(
                FieldError(
                    beyond(shape, workload.context_tokens),
                    pointer=f"/workloads/{position}/context_tokens",
                )
            )
    limits = asked.limits
    known_names = {"regions": snapshot.regions, "providers": snapshot.providers, "devices": snapshot.device_ids}
    for position, workload in enumerate(asked.workloads):
        for field, choice in (("regions", workload.regions), ("providers", workload.providers)):
            for way in ("only", "never"):
                errors.extend(
                    _unknown(
                        field.removesuffix("s"), f"{field}/{way}", getattr(choice, way), known_names[field],
                        within=f"/workloads/{position}",
                    )
                )  # fmt: skip
            errors.extend(_nowhere(choice, f"/workloads/{position}/{field}"))
    for position, quota in enumerate(limits.quotas):
        for field, names in known_names.items():
            found = _unknown(
                field.removesuffix("s"), field, getattr(quota, field), names, within=f"/limits/quotas/{position}"
            )
            errors.extend(found)
    for position, workload in enumerate(asked.workloads):
        errors.extend(
            _unknown("engine", "engines", workload.engines, snapshot.engines, within=f"/workloads/{position}")
        )
    errors.extend(_missing_distances(asked, snapshot))
    errors.extend(_endless(asked, snapshot))
    errors.extend(unknown_in_limits(limits, snapshot))
    if isinstance(limits.partitions, tuple):
        errors.extend(_unknown("partition", "partitions", limits.partitions, snapshot.partitions))
    errors.extend(mistakes_by_the_token(asked))
    if errors:
        raise InvalidFieldsError(errors)


def _nowhere(choice: PlacesIn, pointer: str) -> list[FieldError]:
    """Places of which every one is named both ways: ``never`` wins, and nothing is left to choose from."""
    if choice.only is None or not set(choice.only) <= set(choice.never):
        return []
    named = ", ".join(map(repr, choice.only[:5])) + (" …" if len(choice.only) > 5 else "")
    said = (
        f"only and never contradict each other: both name {named}, so that nothing is left; take it out of one of them"
    )
    return [FieldError(said, pointer=pointer)]


def _endless(asked: RecommendationIn, snapshot: CatalogSnapshot) -> list[FieldError]:
    """The largest throughput is that of something: of a budget, of a power limit, or of machines that are so many."""
    limits = asked.limits
    if asked.objective != "throughput" or limits.max_usd_per_hour is not None or limits.max_power_kw is not None:
        return []
    endless = next((o.id for o in allowed_offers(snapshot.offers, limits) if o.max_nodes is None), None)
    if endless is None:
        return []
    said = (
        "the objective throughput needs something that bounds it: limits.max_usd_per_hour, limits.max_power_kw, or offers that are "
        f"so many machines each, as your own are; {endless} states no number"
    )
    return [FieldError(said, pointer="/limits")]


def _missing_distances(asked: RecommendationIn, snapshot: CatalogSnapshot) -> list[FieldError]:
    """Regions a workload may use without saying how far they are from its users, where it says so of others."""
    errors: list[FieldError] = []
    stated = [(n, w, w.network_ms_by_region) for n, w in enumerate(asked.workloads) if w.network_ms_by_region]
    offers = allowed_offers(snapshot.offers, asked.limits) if stated else ()
    for position, workload, by_region in stated:
        where = f"/workloads/{position}/network_ms_by_region"
        errors.extend(
            FieldError(unknown_name("region", name, snapshot.regions), pointer=f"{where}/{_escaped(name)}")
            for name in by_region
            if name not in snapshot.regions
        )
        usable = {o.region for o in offers if places(workload).admit(o.provider, o.region)}
        missing = sorted(usable - by_region.keys())
        if missing:
            named = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
            advice = "state them, or pin the workload with regions.only"
            errors.append(FieldError(f"no figure for regions that may be used: {named}; {advice}", pointer=where))
    return errors


def check_traffic(asked: RecommendationIn, shapes: dict[str, LlmShape]) -> tuple[tuple[Traffic, ...], ...]:
    """Every workload's traffic as the solver sees it, class by class.

    Raises InvalidFieldsError naming lengths that cannot be, and targets of what the traffic does not have.
    """
    traffic: list[tuple[Traffic, ...]] = []
    errors: list[FieldError] = []
    for position, workload in enumerate(asked.workloads):
        if workload.targets.ttfat_ms and not any(one.shape.thinking_tokens for one in workload.streams):
            pointer = f"/workloads/{position}/targets/ttfat_ms"
            errors.append(FieldError(ANSWERS_FOLLOW_HIDDEN_TOKENS, pointer=pointer))
        errors.extend(impossible_lengths(workload, position))
        for stream in workload.streams:
            try:
                image_tokens(stream.shape, shapes[workload.llm])
            except SolverError as bad:
                errors.append(
                    FieldError(str(bad), pointer=f"/workloads/{position}/{stream.place}/{stream.shape.media_field}")
                )
        if not errors:
            shape = shapes[workload.llm]
            traffic.append(
                tuple(traffic_from_wire(one.shape, image_tokens(one.shape, shape)) for one in workload.streams)
            )
    if errors:
        raise InvalidFieldsError(errors)
    return tuple(traffic)


def impossible_lengths(workload: WorkloadIn, position: int) -> list[FieldError]:
    """Lengths that no distribution has, such as a 95th percentile below half the mean."""
    errors: list[FieldError] = []
    for stream in workload.streams:
        for field, lengths in stated_lengths(stream.shape):
            try:
                lengths_from_wire(lengths)
            except InvalidInputError as bad:
                errors.append(FieldError(str(bad), pointer=f"/workloads/{position}/{stream.place}/{field}"))
    return errors


def unknown_in_limits(
    limits: LimitsIn, snapshot: CatalogSnapshot, own_regions: frozenset[str] = frozenset()
) -> list[FieldError]:
    """Devices, providers, regions and offers that limits name and nobody knows. own_regions: where the request may buy."""
    own_offers = tuple(f"own:{region}:" for region in own_regions)
    return [
        *_unknown("device", "devices", limits.devices, snapshot.device_ids),
        *_unknown("provider", "providers", limits.providers, snapshot.providers),
        *_unknown("region", "regions", limits.regions, snapshot.regions | own_regions),
        *_told(
            FieldError(unknown_name("offer", name, snapshot.offer_ids), pointer=f"/limits/offers/{_escaped(name)}")
            for name in limits.offers
            if name not in snapshot.offer_ids and not (own_offers and name.startswith(own_offers))
        ),
    ]


def _unknown(
    kind: str, field: str, names: tuple[str, ...] | None, known: frozenset[str], within: str = "/limits"
) -> list[FieldError]:
    return _told(
        FieldError(unknown_name(kind, name, known), pointer=f"{within}/{field}/{position}")
        for position, name in enumerate(names or [])
        if name not in known
    )


def _told(errors: Iterator[FieldError]) -> list[FieldError]:
    """The first MOST_FIELD_ERRORS: looking for names like an unknown one takes milliseconds, of thousands half a minute."""
    return list(islice(errors, MOST_FIELD_ERRORS))


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
