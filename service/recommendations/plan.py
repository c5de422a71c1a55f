"""From a checked request and a snapshot to the solver, and back to the wire's result."""

import datetime as dt
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from service.problems import FieldError, InvalidFieldsError
from service.recommendations.catalog_snapshot import CatalogSnapshot
from service.recommendations.cautions import cautions
from service.recommendations.current import RunningNodes, current_fleet
from service.recommendations.left_out import left_out
from service.recommendations.limits import allowed_offers, places, plan_limits, withheld_offers
from service.recommendations.money import usd
from service.recommendations.nothing_offered import nothing_offered
from service.recommendations.partitions import present_splits
from service.recommendations.present_line import Ask, present_line
from service.recommendations.replanned import present_replanned
from service.recommendations.sourcing import line_source
from service.recommendations.spaces import SpaceCache
from service.recommendations.standings import StandingCache
from service.recommendations.statuses import plan_outcome, solve_status
from service.wire.recommendations import (
    AlternativeOut,
    BindingOut,
    ConflictOut,
    ContextOut,
    FleetNodesOut,
    LowerPrecisionOut,
    PoolsOut,
    RecommendationIn,
    RejectedOut,
    RelaxationOut,
    ResultOut,
    SolveOut,
    SourcingChangeOut,
    TotalsOut,
    WorkloadIn,
)
from service.wire.replanning import CurrentIn
from service.wire.resilience import LossOut, ServedOut
from service.wire.traffic_classes import TargetsIn
from solver.errors import InvalidInputError
from solver.hardware import Offer
from solver.llm_shape import LlmShape
from solver.planning import Freed, Observer, PlanEntry, PlanningInput, PoolsReport, Recommendation, unobserved
from solver.traffic_classes import streams_of, with_classes
from solver.units import HOURS_PER_MONTH, SECONDS_PER_HOUR, TOKENS_PER_MILLION
from solver.workload import (
    PERCENTILES,
    Percentile,
    Targets,
    Traffic,
    TrafficClass,
    Workload,
    within_context,
)

if TYPE_CHECKING:
    from solver.recommend import Standing

elapsed_s = time.monotonic
"""The clock of time limits: who asked waits by the wall."""


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
    standings: StandingCache | None = None
    """Where the solved request is kept for questions about it."""
    running: tuple[RunningNodes, ...] = ()
    """The fleet to plan from, where the request names one."""

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
    from solver.recommend import explained

    began = time.perf_counter()
    if inputs.request.current is not None:
        return _planned_from(inputs, inputs.request.current, observe)
    standing = solved(inputs, observe)
    try:
        found = explained(standing, inputs.spaces, observe)
    except InvalidInputError as refused:
        raise InvalidFieldsError([FieldError(str(refused), pointer="/workloads")]) from refused
    result = present_result(standing.planning, found, time.perf_counter() - began, _source_of(inputs))
    if result.totals is not None and any(
        w.traffic and w.traffic.requests_per_s is None for w in inputs.request.workloads
    ):
        totals = result.totals.model_copy(update={"served_fraction": None})
        result = result.model_copy(update={"totals": totals})
    rejected = [*nothing_offered(inputs.snapshot, inputs.request), *result.rejected]
    before = cautions(inputs.request, result.plan, inputs.snapshot.offers)
    return result.model_copy(update={**_known_of(inputs), "cautions": before, "rejected": rejected})


def _planned_from(inputs: PlanningInputs, current: CurrentIn, observe: Observer) -> ResultOut:
    """The plan from the fleet that runs; raises as ``plan`` does."""
    from solver.replan import replan

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
            "cautions": cautions(inputs.request, result.plan, inputs.snapshot.offers),
            "replanning": present_replanned(made, inputs.running, planning.offers),
            "solve": result.solve.model_copy(update={"usd_per_hour": None if total is None else usd(total)}),
        }
    )


def solved(inputs: PlanningInputs, observe: Observer = unobserved) -> "Standing":
    """The request, solved; kept, or taken from what is kept."""
    from solver.recommend import stand

    standing = inputs.standings.get(inputs.key) if inputs.standings else None
    if standing is None:
        try:
            standing = stand(planning_input(inputs), inputs.spaces, observe)
        except InvalidInputError as refused:
            raise InvalidFieldsError([FieldError(str(refused), pointer="/workloads")]) from refused
        if inputs.standings:
            inputs.standings.put(inputs.key, standing)
    return standing


def planning_input(inputs: PlanningInputs) -> PlanningInput:
    asked = inputs.request
    offers = allowed_offers(inputs.snapshot.offers, asked.limits)
    _check_bounded(asked, offers)
    return PlanningInput(
        workloads=tuple(
            _workload(n, w, t, inputs.shapes[w.llm])
            for n, (w, t) in enumerate(zip(asked.workloads, inputs.traffic, strict=True))
        ),
        shapes=inputs.shapes,
        nodes=tuple(inputs.snapshot.nodes.values()),
        offers=offers,
        priors=inputs.snapshot.priors,
        catalog_key=inputs.snapshot.key,
        limits=plan_limits(asked.limits, offers),
        lower_formats={
            w.name: lower_formats(inputs.shapes[w.llm]) for w in asked.workloads if w.precision.weights is None
        },
        withheld=withheld_offers(inputs.snapshot.offers, asked),
        default_max_nodes=asked.limits.max_nodes_per_offer,
        objective=asked.objective,
        time_limit_s=asked.time_limit_s,
        gap_fraction=asked.gap_fraction,
        alternatives=asked.alternatives,
        on_shortage=asked.on_shortage,
        corrections=inputs.snapshot.corrections,
        clock=elapsed_s,
    )


def _known_of(inputs: PlanningInputs) -> dict[str, object]:
    """What the answer says of its request beside the plan."""
    return {"contexts": contexts(inputs), "left_out": left_out(inputs.snapshot, inputs.request.limits)}


def contexts(inputs: PlanningInputs) -> list[ContextOut]:
    """What each stream of requests is served with, and how much of it is cut."""
    found = []
    for asked, traffic in zip(inputs.request.workloads, inputs.traffic, strict=True):
        longest = max(one.maximum for one in traffic)
        context = asked.context_tokens or min(longest, inputs.shapes[asked.llm].max_context_tokens)
        for stream, one in zip(asked.streams, traffic, strict=True):
            found.append(
                ContextOut(
                    workload=asked.name,
                    traffic_class=stream.name,
                    context_tokens=context,
                    clipped_fraction=within_context(one, context)[1],
                )
            )
    return found


def _workload(position: int, asked: WorkloadIn, traffic: tuple[Traffic, ...], shape: LlmShape) -> Workload:
    """Raises InvalidFieldsError where requests are longer than the context, and the request forbids cutting them."""
    longest = [one.maximum for one in traffic]
    context = asked.context_tokens or min(max(longest), shape.max_context_tokens)
    too_long = next((n for n, tokens in enumerate(longest) if tokens > context), None)
    if asked.over_context == "refuse" and too_long is not None:
        known = f"{asked.llm} can take ({shape.max_context_tokens})" if asked.context_tokens is None else "the context"
        problem = (
            f"requests of up to {longest[too_long]} tokens are more than {known}; over_context: clip ends them there"
        )
        place = asked.streams[too_long].place if asked.context_tokens is None else "context_tokens"
        raise InvalidFieldsError([FieldError(problem, pointer=f"/workloads/{position}/{place}")])
    traffic = tuple(within_context(one, context)[0] for one in traffic)
    workload = Workload(
        name=asked.name,
        llm_id=asked.llm,
        context_tokens=context,
        requests_per_s=asked.streams[0].requests_per_s,
        traffic=traffic[0],
        targets=_targets(asked.targets),
        weight_formats=tuple(dict.fromkeys(asked.precision.weights or (shape.native_weights,))),
        kv_cache_formats=tuple(dict.fromkeys(asked.precision.kv_cache)),
        utilisation_limit_fraction=asked.utilisation_limit_fraction,
        min_replicas=asked.min_replicas,
        places=places(asked),
        priority=asked.priority,
        network_s_by_region=None
        if asked.network_ms_by_region is None
        else {region: away / 1e3 for region, away in asked.network_ms_by_region.items()},
        roles=tuple(dict.fromkeys(asked.roles)),
    )
    if asked.traffic_classes is None:
        return workload
    return with_classes(
        workload,
        [
            TrafficClass(stream.name or "", stream.requests_per_s, one, _targets(stream.targets))
            for stream, one in zip(asked.streams, traffic, strict=True)
        ],
    )


def _check_bounded(asked: RecommendationIn, offers: Sequence[Offer]) -> None:
    """The largest throughput is that of something: of a budget, of a power limit, or of machines that are so many."""
    limits = asked.limits
    if asked.objective != "throughput" or limits.max_usd_per_hour is not None or limits.max_power_kw is not None:
        return
    endless = next((offer.id for offer in offers if offer.max_nodes is None), None)
    if endless is not None:
        said = (
            "the objective throughput needs something that bounds it: limits.max_usd_per_hour, limits.max_power_kw, or offers that are "
            f"so many machines each, as your own are; {endless} states no number"
        )
        raise InvalidFieldsError([FieldError(said, pointer="/limits")])


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
        confidence_fraction=asked.confidence_percent / 100.0,
    )


def _seconds(limits: dict[str, float]) -> dict[Percentile, float]:
    """Targets by percentile in seconds, in the percentiles' own order."""
    return {name: limits[name] / 1e3 for name in PERCENTILES if name in limits}


def _source_of(inputs: PlanningInputs) -> Ask:
    return partial(line_source, limits=inputs.request.limits, price_as_of=inputs.price_as_of)


def present_result(planning: PlanningInput, found: Recommendation, seconds: float, source: Ask) -> ResultOut:
    """The solver's answer as it is stored and sent. source: what the buying policy asks of an offer."""
    solve = found.solve
    costs = planning.objective == "cost"
    asked = math.fsum(w.requests_per_s for w in planning.workloads)
    return ResultOut(
        outcome=plan_outcome(solve.outcome),
        solve=SolveOut(
            status=solve_status(solve.status),
            usd_per_hour=usd(found.usd_per_hour) if found.entries else None,
            bound_usd_per_hour=usd(solve.bound) if costs and solve.bound is not None and found.entries else None,
            gap_fraction=solve.gap_fraction,
            candidates=solve.candidates,
            solver=solve.solver,
            seconds=round(seconds, 4),
            confirmation_rounds=solve.confirmation_rounds,
            simulations=solve.simulated,
            proof_over="simulated_mixes" if any(w.classes for w in planning.workloads) else "every_candidate",
        ),
        plan=[present_line(entry, source) for entry in found.entries],
        fleet=_fleet(planning, found),
        totals=_totals(planning, found) if found.entries else None,
        alternatives=[
            AlternativeOut(
                why=other.why,
                extra_usd_per_hour=None if other.extra_usd_per_hour is None else usd(other.extra_usd_per_hour),
                less_served_requests_per_s=None
                if other.worse_by is None or planning.objective != "throughput"
                else other.worse_by * asked,
                extra_power_kw=None
                if other.worse_by is None or planning.objective != "power"
                else other.worse_by / 1e3,
                plan=[present_line(entry, source) for entry in other.entries],
            )
            for other in found.alternatives
        ],
        binding=[
            BindingOut(
                limit=_limit_as_asked(planning, b.limit),
                workload=b.workload,
                relaxing_to=b.relaxing_to,
                **_gained(planning, b.gains),
            )
            for b in found.binding
        ],
        sourcing=[
            SourcingChangeOut(rule=change.rule, **_gained(planning, change.freed.gains), **_freed(change.freed, source))
            for change in found.sourcing
        ],
        lower_precision=None
        if found.lower_precision is None
        else LowerPrecisionOut(
            **_gained(planning, found.lower_precision.gains), **_freed(found.lower_precision, source)
        ),
        rejected=[
            RejectedOut(
                workload=r.workload,
                traffic_class=r.traffic_class,
                device=r.device_id,
                partition=r.partition,
                reason=r.reason,
                count=r.count,
                nearest=r.nearest,
            )
            for r in found.rejected
        ],
        conflicts=[
            ConflictOut(limits=[_limit_as_asked(planning, name) for name in c.limits], detail=c.message)
            for c in found.conflicts
        ],
        relaxations=[
            RelaxationOut(
                limit=_limit_as_asked(planning, r.limit),
                workload=r.workload,
                relaxing_from=r.from_value,
                relaxing_to=r.to_value,
                usd_per_hour=None if r.usd_per_hour is None else usd(r.usd_per_hour),
            )
            for r in found.relaxations
        ],
        served=_served(planning, found) if planning.on_shortage == "shed" else [],
        worst_losses=[
            LossOut(
                workload=loss.workload,
                kind=loss.kind,
                lost=list(loss.lost),
                utilisation_fraction=loss.utilisation_fraction,
            )
            for loss in found.worst_losses
        ],
        largest_servable_fraction=found.largest_servable_multiple,
        pools=None if found.pools is None else _pools(found.pools),
        confidence_premium_usd_per_hour=None
        if found.confidence_premium_usd_per_hour is None
        else usd(found.confidence_premium_usd_per_hour),
    )


def _gained(planning: PlanningInput, gains: float) -> dict[str, Any]:
    """A gain in the objective's own unit, under the name that says which."""
    match planning.objective:
        case "throughput":
            return {"serves_more_requests_per_s": gains * math.fsum(w.requests_per_s for w in planning.workloads)}
        case "power":
            return {"saves_power_kw": gains / 1e3}
        case _:
            return {"saves_usd_per_hour": usd(gains)}


def _freed(freed: Freed, source: Ask) -> dict[str, Any]:
    return {
        "usd_per_hour": None if freed.usd_per_hour is None else usd(freed.usd_per_hour),
        "plan": [present_line(entry, source) for entry in freed.entries],
    }


def _served(planning: PlanningInput, found: Recommendation) -> list[ServedOut]:
    whole = 1.0 if found.entries else 0.0
    shares = found.shares or (whole,) * len(planning.workloads)
    return [
        ServedOut(workload=workload.name, priority=workload.priority, served_fraction=share)
        for workload, share in zip(planning.workloads, shares, strict=True)
    ]


def _limit_as_asked(planning: PlanningInput, limit: str) -> str:
    """Idle spares have two names; the one that asked for more is meant."""
    limits = planning.limits
    if limit == "limits.spare_nodes" and limits.survive.nodes > limits.spare_nodes:
        return "limits.survive.nodes"
    return limit


def _pools(found: PoolsReport) -> PoolsOut:
    saves, extra = found.saves_usd_per_hour, found.extra_usd_per_hour
    return PoolsOut(
        chosen=found.chosen,
        saves_usd_per_hour=None if saves is None else usd(saves),
        extra_usd_per_hour=None if extra is None else usd(extra),
        reason=found.reason,
    )


def _fleet(planning: PlanningInput, found: Recommendation) -> list[FleetNodesOut]:
    offers = {offer.id: offer for offer in planning.offers}
    return [
        FleetNodesOut(
            offer=offer_id,
            node=offers[offer_id].node.id,
            device=offers[offer_id].node.device.id,
            nodes=nodes,
            usd_per_hour=usd(nodes * offers[offer_id].usd_per_hour),
            splits=present_splits(found.splits, offer_id),
        )
        for offer_id, nodes in found.nodes.items()
    ]


def _totals(planning: PlanningInput, found: Recommendation) -> TotalsOut:
    traffic = {(w.name, stream.class_name): stream.traffic for w in planning.workloads for stream in streams_of(w)}
    # What one pool prefills another decodes: the requests count once.
    serving = [e for e in found.entries if e.role != "prefill"]
    rates = [(traffic[e.workload, name], rate) for e in serving for name, rate in _rates(e)]
    output = sum(rate * one.output.mean for one, rate in rates)
    prompt = sum(rate * one.prompt.mean for one, rate in rates)
    per_token = found.usd_per_hour / SECONDS_PER_HOUR * TOKENS_PER_MILLION
    asked = sum(w.requests_per_s for w in planning.workloads)
    served = sum(e.serves_requests_per_s for e in serving)
    machines = {e.offer.id: e.offer.node for e in found.entries}
    rented = [(machines[offer], nodes) for offer, nodes in found.nodes.items() if offer in machines]
    known = all(e.estimate is not None and math.isfinite(e.estimate.power_w.expected) for e in found.entries)
    known = known and all(math.isfinite(node.host_power_w) for node, _ in rented)
    watts = sum(e.estimate.power_w.expected * e.replicas for e in found.entries if e.estimate is not None)
    host = sum(node.host_power_w * nodes for node, nodes in rented)
    return TotalsOut(
        usd_per_hour=usd(found.usd_per_hour),
        usd_per_month=usd(found.usd_per_hour * HOURS_PER_MONTH),
        usd_per_million_output_tokens=usd(per_token / output),
        usd_per_million_tokens=usd(per_token / (output + prompt)),
        power_kw=round((watts + host) / 1e3, 3) if known else None,
        nodes=sum(found.nodes.values()),
        devices=sum(node.devices * nodes for node, nodes in rented),
        serves_requests_per_s=served,
        output_tokens_per_s=output,
        tokens_per_s=output + prompt,
        served_fraction=min(served / asked, found.throughput_multiple or 1.0)
        if planning.objective == "throughput"
        else min(1.0, served / asked)
        if found.shares
        else 1.0,
    )


def _rates(entry: PlanEntry) -> list[tuple[str | None, float]]:
    """What a line serves, by traffic class."""
    return [(one.name, one.requests_per_s) for one in entry.classes] or [(None, entry.serves_requests_per_s)]
