"""From a checked request and a snapshot to the solver, and back to the wire's result."""

import datetime as dt
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from service.clock import elapsed_s
from service.problems import FieldError, InvalidFieldsError
from service.recommendations.adapters import adapters_from_wire, with_adapters
from service.recommendations.catalog_snapshot import CatalogSnapshot
from service.recommendations.cautions import cautions, published_cautions
from service.recommendations.current import RunningNodes, current_fleet, running
from service.recommendations.images import images_from_wire
from service.recommendations.left_out import left_out
from service.recommendations.limits import offers_within, places, plan_limits
from service.recommendations.money import usd
from service.recommendations.nothing_offered import nothing_offered
from service.recommendations.present_line import Ask
from service.recommendations.published import PublishedMachine, published_offers
from service.recommendations.replanned import present_replanned
from service.recommendations.solved_requests import SolvedRequestCache
from service.recommendations.sourcing import line_source
from service.recommendations.spaces import SpaceCache
from service.recommendations.unsold import with_winning_prices
from service.warm import load_planning
from service.wire.plan_explained import (
    ContextOut,
    RejectedOut,
)
from service.wire.recommendations import RecommendationIn, ResultOut, WorkloadIn
from service.wire.replanning import CurrentIn
from service.wire.roles import StatedDraftIn
from service.wire.traffic import TrafficShape
from service.wire.traffic_classes import TargetsIn
from solver.adapted_products import check_adapters
from solver.adapters import Adapters
from solver.deployment.context import served_context_tokens
from solver.deployment.speculative import check_draft_length
from solver.errors import InvalidInputError, UnsupportedError
from solver.llm_shape import LlmShape, makes_no_tokens, token_ids_not_items
from solver.planning.published_offers import PublishedOffer
from solver.planning.types import Observer, PlanningInput, unobserved
from solver.sessions import served_within
from solver.units import bytes_from_gib, bytes_per_s_from_gbytes
from solver.workload import (
    PERCENTILES,
    EngineSettings,
    Percentile,
    SpeculativeDecoding,
    Targets,
    Traffic,
    TrafficClass,
    Workload,
    check_prompts_fit,
)

if TYPE_CHECKING:
    from solver.recommend.recommend import SolvedRequest
from service.recommendations.present_result import present_result


@dataclass(frozen=True)
class PlanningInputs:
    """Everything a plan depends on, read in one transaction."""

    request: RecommendationIn
    snapshot: CatalogSnapshot
    shapes: dict[str, LlmShape]
    traffic: tuple[tuple[Traffic, ...], ...]
    """In the order of the request's workloads, class by class."""
    price_as_of: dt.datetime
    correction_set: int | None
    spaces: SpaceCache
    solved_requests: SolvedRequestCache | None = None
    """Where the solved request is kept for questions about it."""
    running: tuple[RunningNodes, ...] = ()
    """The fleet to plan from, where the request names one."""
    machines: tuple[PublishedMachine, ...] = ()
    """Those that could be bought of devices the request names, of which only speeds are published."""

    @property
    def key(self) -> tuple[object, ...]:
        """Everything the plan depends on."""
        snapshot = self.snapshot
        asked = self.request.model_dump_json()
        return asked, self.price_as_of, snapshot.digest, snapshot.revision, self.correction_set


def plan(inputs: PlanningInputs, observe: Observer = unobserved) -> ResultOut:
    """Runs in a solver thread; no database connection is held.

    Raises InvalidFieldsError where the solver refuses a workload.
    """
    # Imported when first needed: the optimiser loads libraries that listing the catalog does without.
    from solver.recommend.recommend import explained

    began, waited_since = time.perf_counter(), elapsed_s()
    if inputs.request.current is not None:
        return _planned_from(inputs, inputs.request.current, observe)
    solved_request = solved(inputs, observe)
    try:
        found = explained(solved_request, inputs.spaces, observe)
    except InvalidInputError as refused:
        raise InvalidFieldsError([FieldError(str(refused), pointer="/workloads")]) from refused
    machines = {one.id: one for one in inputs.machines}
    result = present_result(solved_request.planning, found, time.perf_counter() - began, _source_of(inputs), machines)
    if result.totals is not None and any(
        w.traffic and w.traffic.requests_per_s is None for w in inputs.request.workloads
    ):
        totals = result.totals.model_copy(update={"served_fraction": None})
        result = result.model_copy(update={"totals": totals})
    taken = {line.device for line in result.published_lines}
    rejected = [
        row for row in (*_not_sold(inputs, elapsed_s() - waited_since), *result.rejected) if row.device not in taken
    ]
    before = cautions(inputs.request, result.plan, inputs.snapshot.offers, inputs.snapshot.bought, inputs.shapes)
    before += published_cautions(result.published_lines)
    return result.model_copy(update={**_known_of(inputs), "cautions": before, "rejected": rejected})


def _not_sold(inputs: PlanningInputs, spent_s: float) -> list[RejectedOut]:
    """Devices that the request names and nothing is offered of, with what they would have to cost."""
    bought = {one.device for one in inputs.machines}
    rejected = [
        row
        for row in nothing_offered(inputs.snapshot, inputs.request, inputs.price_as_of.date())
        if row.device not in bought
    ]
    rejected += _published(inputs)[1]
    if not rejected:
        return rejected
    limits = inputs.request.limits.model_copy(update={"devices": None})
    free = planning_input(replace(inputs, request=inputs.request.model_copy(update={"limits": limits})))
    return with_winning_prices(inputs, rejected, free, inputs.request.time_limit_s - spent_s)


def _planned_from(inputs: PlanningInputs, current: CurrentIn, observe: Observer) -> ResultOut:
    """The plan from the fleet that runs; raises as ``plan`` does."""
    from solver.recommend.replan import replan

    began = time.perf_counter()
    planning = planning_input(inputs)
    fleet = current_fleet(inputs.running, current, inputs.request.limits)
    try:
        made = replan(planning, fleet, inputs.spaces, observe)
    except InvalidInputError as refused:
        raise InvalidFieldsError([FieldError(str(refused), pointer="/workloads")]) from refused
    offers = {o.id: o for o in (*planning.offers, *(one.offer for one in inputs.running))}
    planning = replace(planning, offers=tuple(offers.values()))
    result = present_result(planning, made.found, time.perf_counter() - began, _source_of(inputs))
    total = made.found.solve.objective
    return result.model_copy(
        update={
            **_known_of(inputs),
            "cautions": cautions(
                inputs.request, result.plan, inputs.snapshot.offers, inputs.snapshot.bought, inputs.shapes
            ),
            "replanning": present_replanned(made, inputs.running, planning.offers),
            "solve": result.solve.model_copy(update={"usd_per_hour": None if total is None else usd(total)}),
        }
    )


def solved(inputs: PlanningInputs, observe: Observer = unobserved) -> "SolvedRequest":
    """The request, solved; kept, or taken from what is kept."""
    load_planning()
    from solver.recommend.recommend import solve_request

    solved_request = inputs.solved_requests.get(inputs.key) if inputs.solved_requests else None
    if solved_request is None:
        try:
            solved_request = solve_request(planning_input(inputs), inputs.spaces, observe)
        except InvalidInputError as refused:
            raise InvalidFieldsError([FieldError(str(refused), pointer="/workloads")]) from refused
        if inputs.solved_requests:
            inputs.solved_requests.put(inputs.key, solved_request)
    return solved_request


def planning_input(inputs: PlanningInputs) -> PlanningInput:
    asked = inputs.request
    workloads = _workloads(inputs)
    runs = {one.offer.id for one in inputs.running}
    every = tuple(running(offer) if offer.id in runs else offer for offer in inputs.snapshot.offers)
    offers, withheld = offers_within(every, asked)
    return PlanningInput(
        workloads=workloads,
        published=_published(inputs)[0],
        shapes=inputs.shapes,
        nodes=tuple(inputs.snapshot.nodes.values()),
        offers=offers,
        priors=inputs.snapshot.priors,
        catalog_key=inputs.snapshot.key,
        limits=plan_limits(asked.limits, offers),
        lower_formats={
            w.name: lower_formats(inputs.shapes[w.llm]) for w in asked.workloads if w.precision.weights is None
        },
        withheld=withheld,
        default_max_nodes=asked.limits.max_nodes_per_offer,
        objective=asked.objective,
        time_limit_s=asked.time_limit_s,
        gap_fraction=asked.gap_fraction,
        alternatives=asked.alternatives,
        on_shortage=asked.on_shortage,
        corrections=inputs.snapshot.corrections,
        clock=elapsed_s,
    )


def _workloads(inputs: PlanningInputs) -> tuple[Workload, ...]:
    return tuple(
        _workload(n, w, t, inputs.shapes[w.llm])
        for n, (w, t) in enumerate(zip(inputs.request.workloads, inputs.traffic, strict=True))
    )


def _published(inputs: PlanningInputs) -> tuple[tuple[PublishedOffer, ...], list[RejectedOut]]:
    """Offers that rest on published speeds, and why others are none."""
    if not (inputs.request.limits.by_the_token or inputs.machines):
        return (), []
    return published_offers(inputs.request, _workloads(inputs), inputs.machines, inputs.price_as_of.date())


def _known_of(inputs: PlanningInputs) -> dict[str, object]:
    """What the answer says of its request beside the plan."""
    return {"contexts": contexts(inputs), "left_out": left_out(inputs.snapshot, inputs.request.limits)}


def contexts(inputs: PlanningInputs) -> list[ContextOut]:
    """What each stream of requests is served with, and how much of it is cut."""
    found = []
    for asked, traffic in zip(inputs.request.workloads, inputs.traffic, strict=True):
        longest = max(one.maximum for one in traffic)
        context = served_context_tokens(inputs.shapes[asked.llm], asked.context_tokens, longest)
        for stream, one in zip(asked.streams, traffic, strict=True):
            found.append(
                ContextOut(
                    workload=asked.name,
                    traffic_class=stream.name,
                    context_tokens=context,
                    clipped_fraction=served_within(one, context)[1],
                )
            )
    return found


def _check_prompts_fit(position: int, asked: WorkloadIn, traffic: tuple[Traffic, ...], context_tokens: int) -> None:
    """Raises InvalidFieldsError where an engine would refuse most of a stream's prompts."""
    for stream, one in zip(asked.streams, traffic, strict=True):
        try:
            check_prompts_fit(one, context_tokens)
        except UnsupportedError as error:
            place = stream.place if asked.context_tokens is None else "context_tokens"
            raise InvalidFieldsError([FieldError(str(error), pointer=f"/workloads/{position}/{place}")]) from None


def _workload(position: int, asked: WorkloadIn, traffic: tuple[Traffic, ...], shape: LlmShape) -> Workload:
    """Raises InvalidFieldsError where requests are longer than the context, and the request forbids cutting them."""
    made = next((n for n, one in enumerate(traffic) if shape.embeds and one.output.maximum > 1), None)
    if made is not None:
        pointer = f"/workloads/{position}/{asked.streams[made].place}/output_tokens"
        raise InvalidFieldsError([FieldError(makes_no_tokens(asked.llm), pointer=pointer)])
    sent = next((stream for stream in asked.streams if stream.shape.token_ids_fraction), None)
    if sent is not None and not shape.embeds:
        pointer = f"/workloads/{position}/{sent.place}/token_ids_fraction"
        raise InvalidFieldsError([FieldError(token_ids_not_items(asked.llm), pointer=pointer)])
    longest = [one.maximum for one in traffic]
    context = served_context_tokens(shape, asked.context_tokens, max(longest))
    too_long = next((n for n, tokens in enumerate(longest) if tokens > context), None)
    if asked.over_context == "refuse" and too_long is not None:
        known = f"{asked.llm} can take ({shape.max_context_tokens})" if asked.context_tokens is None else "the context"
        problem = (
            f"requests of up to {longest[too_long]} tokens are more than {known}; over_context: clip ends them there"
        )
        place = asked.streams[too_long].place if asked.context_tokens is None else "context_tokens"
        raise InvalidFieldsError([FieldError(problem, pointer=f"/workloads/{position}/{place}")])
    _check_prompts_fit(position, asked, traffic, context)
    try:
        traffic = tuple(served_within(one, context)[0] for one in traffic)
    except InvalidInputError as error:
        raise InvalidFieldsError([FieldError(str(error), pointer=f"/workloads/{position}/traffic/sessions")]) from None
    return Workload(
        name=asked.name,
        llm_id=asked.llm,
        context_tokens=context,
        classes=tuple(
            TrafficClass(stream.name, stream.requests_per_s, one, _targets(stream.targets))
            for stream, one in zip(asked.streams, traffic, strict=True)
        ),
        weight_formats=tuple(dict.fromkeys(asked.precision.weights or (shape.native_weights,))),
        kv_cache_formats=tuple(dict.fromkeys(asked.precision.kv_cache)),
        engines=tuple(dict.fromkeys(asked.engines or ())),
        drafting=_drafting(position, asked.drafting, traffic),
        adapters=_adapters(position, asked, traffic, shape),
        guided_fraction=_mean_share(asked, lambda one: one.structured_fraction),
        token_ids_fraction=_mean_share(asked, lambda one: one.token_ids_fraction),
        images=None if asked.traffic is None else images_from_wire(asked.traffic, traffic[0], shape),
        host_caches_bytes=tuple(bytes_from_gib(size) for size in asked.host_caches_gib),
        disk_cache_bytes=bytes_from_gib(asked.disk_cache_gib),
        disk_bytes_per_s=None
        if asked.disk_read_gbytes_per_s is None
        else bytes_per_s_from_gbytes(asked.disk_read_gbytes_per_s),
        utilisation_limit_fraction=asked.utilisation_limit_fraction,
        min_replicas=asked.min_replicas,
        places=places(asked),
        priority=asked.priority,
        network_s_by_region=None
        if asked.network_ms_by_region is None
        else {region: away / 1e3 for region, away in asked.network_ms_by_region.items()},
        roles=tuple(dict.fromkeys(asked.roles)),
    )


def _mean_share(asked: WorkloadIn, of: Callable[[TrafficShape], float]) -> float:
    """A share of the requests of each stream, over those of all."""
    return sum(s.requests_per_s * of(s.shape) for s in asked.streams) / sum(s.requests_per_s for s in asked.streams)


def _adapters(position: int, asked: WorkloadIn, traffic: tuple[Traffic, ...], shape: LlmShape) -> Adapters | None:
    """Raises InvalidFieldsError for adapters that the model cannot have."""
    if asked.adapters is None:
        return None
    try:
        adapters = adapters_from_wire(asked.adapters, traffic, asked.engines or (EngineSettings().name,))
        check_adapters(with_adapters(shape, adapters))
    except (InvalidInputError, UnsupportedError) as error:
        raise InvalidFieldsError([FieldError(str(error), pointer=f"/workloads/{position}/adapters")]) from None
    return adapters


def _drafting(position: int, asked: StatedDraftIn | None, traffic: tuple[Traffic, ...]) -> SpeculativeDecoding | None:
    """Raises InvalidFieldsError where more is drafted at once than the longest reply has."""
    if asked is None:
        return None
    decoding = SpeculativeDecoding(
        asked.draft_tokens, asked.acceptance_fraction, asked.draft_step_fraction, asked.method, asked.draft_cost_source
    )
    try:
        check_draft_length(decoding, min(one.output.maximum for one in traffic))
    except UnsupportedError as error:
        pointer = f"/workloads/{position}/drafting/draft_tokens"
        raise InvalidFieldsError([FieldError(str(error), pointer=pointer)]) from None
    return decoding


EIGHT_BITS = "fp8"
"""What engines make of 16-bit checkpoints as they load them, and of the cache."""


def lower_formats(shape: LlmShape) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Formats of weights and cache with fewer bits than a 16-bit checkpoint's own."""
    return ((EIGHT_BITS,) if shape.native_weights in ("bf16", "fp16", "fp32") else ()), (EIGHT_BITS,)


def _targets(asked: TargetsIn) -> Targets:
    return Targets(
        time_to_first_token_s=_seconds(asked.ttft_ms),
        time_per_output_token_s=_seconds(asked.tpot_ms),
        end_to_end_s=_seconds(asked.e2e_ms),
        time_to_first_answer_s=_seconds(asked.ttfat_ms),
        confidence_fraction=asked.confidence_percent / 100.0,
    )


def _seconds(limits: dict[str, float]) -> dict[Percentile, float]:
    """Targets by percentile in seconds, in the percentiles' own order."""
    return {name: limits[name] / 1e3 for name in PERCENTILES if name in limits}


def _source_of(inputs: PlanningInputs) -> Ask:
    return partial(line_source, limits=inputs.request.limits, price_as_of=inputs.price_as_of)
