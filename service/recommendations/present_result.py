"""The solver's answer as it is stored and sent."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from service.recommendations.limit_names import (
    conflict_words,
    limit_name,
    miss_reason,
    names_in_conflict,
    rejection_words,
    relaxed_value,
    stated_value,
    workload_name,
)
from service.recommendations.money import usd
from service.recommendations.partitions import present_splits
from service.recommendations.present_line import Ask, present_line
from service.recommendations.present_published import present_published
from service.recommendations.published import PublishedMachine
from service.recommendations.statuses import plan_outcome, solve_status
from service.wire.plan_explained import (
    AlternativeOut,
    BindingOut,
    ConflictOut,
    LowerPrecisionOut,
    PoolsOut,
    RejectedOut,
    RelaxationOut,
    SourcingChangeOut,
)
from service.wire.plan_lines import FleetNodesOut, PublishedLineOut
from service.wire.recommendations import ProofOver, ResultOut, SolveOut, TotalsOut
from service.wire.resilience import LossOut, ServedOut
from solver.planning.published_offers import BY_THE_TOKEN, PublishedEntry
from solver.planning.types import Freed, PlanningInput, PoolsReport, Recommendation
from solver.units import HOURS_PER_MONTH, SECONDS_PER_HOUR, TOKENS_PER_MILLION


def present_result(
    planning: PlanningInput,
    found: Recommendation,
    seconds: float,
    source: Ask,
    machines: Mapping[str, PublishedMachine] | None = None,
) -> ResultOut:
    """The solver's answer as it is stored and sent. source: what the buying policy asks of an offer. machines: those of which only
    speeds are published, by id."""
    solve = found.solve
    has_plan = bool(found.entries or found.published)

    def published(entries: Iterable[PublishedEntry]) -> list[PublishedLineOut]:
        return present_published(planning, entries, machines or {})

    costs = planning.objective == "cost"
    asked = math.fsum(w.requests_per_s for w in planning.workloads)
    return ResultOut(
        outcome=plan_outcome(solve.outcome),
        solve=SolveOut(
            status=solve_status(solve.status),
            usd_per_hour=usd(found.usd_per_hour) if has_plan else None,
            bound_usd_per_hour=usd(solve.bound) if costs and solve.bound is not None and has_plan else None,
            gap_fraction=solve.gap_fraction,
            candidates=solve.candidates,
            solver=solve.solver,
            seconds=round(seconds, 4),
            confirmation_rounds=solve.confirmation_rounds,
            simulations=solve.simulated,
            proof_over=_proof_over(planning, found),
        ),
        plan=[present_line(entry, source) for entry in found.entries],
        published_lines=published(found.published),
        fleet=_fleet(planning, found),
        totals=_totals(planning, found) if has_plan else None,
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
                published_lines=published(other.published),
            )
            for other in found.alternatives
        ],
        binding=[
            BindingOut(
                limit=limit_name(planning, b.limit),
                workload=workload_name(planning, b.limit),
                relaxing_to=relaxed_value(b.limit, b.relaxing_to),
                **_gained(planning, b.gains),
            )
            for b in sorted(found.binding, key=lambda b: (-b.gains, limit_name(planning, b.limit)))
        ],
        sourcing=[
            SourcingChangeOut(
                rule=None if change.rule is None else limit_name(planning, change.rule),
                **_gained(planning, change.freed.gains),
                **_freed(change.freed, source),
                published_lines=published(change.freed.published),
            )
            for change in found.sourcing
        ],
        lower_precision=None
        if found.lower_precision is None
        else LowerPrecisionOut(
            **_gained(planning, found.lower_precision.gains),
            **_freed(found.lower_precision, source),
            published_lines=published(found.lower_precision.published),
        ),
        rejected=[
            RejectedOut(
                workload=r.workload,
                traffic_class=r.traffic_class,
                device=r.device_id,
                partition=r.partition,
                reason=miss_reason(r.reason, r.missed),
                count=r.count,
                nearest=rejection_words(r),
            )
            for r in found.rejected
        ],
        conflicts=[
            ConflictOut(
                limits=list(dict.fromkeys(name for one in c.limits for name in names_in_conflict(planning, one))),
                detail=conflict_words(c.limits, any_one=c.any_one),
            )
            for c in found.conflicts
        ],
        relaxations=[
            RelaxationOut(
                limit=limit_name(planning, r.limit),
                workload=workload_name(planning, r.limit),
                relaxing_from=stated_value(r.limit, r.from_value),
                relaxing_to=relaxed_value(r.limit, r.to_value),
                usd_per_hour=None if r.usd_per_hour is None else usd(r.usd_per_hour),
            )
            for r in sorted(
                found.relaxations,
                key=lambda r: (r.usd_per_hour is None, r.usd_per_hour or 0.0, limit_name(planning, r.limit)),
            )
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
        unsettled=list(found.unsettled),
        largest_servable_fraction=found.largest_servable_multiple,
        pools=None if found.pools is None else _pools(found.pools),
        confidence_premium_usd_per_hour=None
        if found.confidence_premium_usd_per_hour is None
        else usd(found.confidence_premium_usd_per_hour),
    )


def _gained(planning: PlanningInput, gains: float | None) -> dict[str, Any]:
    """A gain in the objective's own unit, under the name that says which; nothing where there is no plan to compare with."""
    if gains is None:
        return {}
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


def _proof_over(planning: PlanningInput, found: Recommendation) -> ProofOver:
    if any(workload.is_mixed for workload in planning.workloads):
        return "each_class_alone"
    return "every_candidate" if found.pools is None else "simulated_pools"


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
    traffic = {(w.name, one.name): one.traffic for w in planning.workloads for one in w.classes}
    # What one pool prefills another decodes: the requests count once. Replicas that stand by are sent requests of no class.
    serving = [e for e in found.entries if e.role != "prefill" and e.serves_requests_per_s > 0.0]
    rates = [(traffic[e.workload, one.name], one.requests_per_s) for e in serving for one in e.classes]
    whole = {w.name: w.traffic for w in planning.workloads}
    rates += [(whole[one.offer.workload], one.serves_requests_per_s) for one in found.published]
    output = sum(rate * one.output.mean for one, rate in rates)
    prompt = sum(rate * one.prompt.mean for one, rate in rates)
    per_token = found.usd_per_hour / SECONDS_PER_HOUR * TOKENS_PER_MILLION
    asked = sum(w.requests_per_s for w in planning.workloads)
    served = sum(e.serves_requests_per_s for e in serving)
    served += sum(one.serves_requests_per_s for one in found.published)
    own = sum(one.units for one in found.published if one.offer.commitment != BY_THE_TOKEN)
    machines = {e.offer.id: e.offer.node for e in found.entries}
    rented = [(machines[offer], nodes) for offer, nodes in found.nodes.items() if offer in machines]
    known = all(e.estimate is not None and math.isfinite(e.estimate.power_w.expected) for e in found.entries)
    known = known and not found.published and all(math.isfinite(node.host_power_w) for node, _ in rented)
    watts = sum(e.estimate.power_w.expected * e.replicas for e in found.entries if e.estimate is not None)
    host = sum(node.host_power_w * nodes for node, nodes in rented)
    return TotalsOut(
        usd_per_hour=usd(found.usd_per_hour),
        usd_per_month=usd(found.usd_per_hour * HOURS_PER_MONTH),
        usd_per_million_output_tokens=usd(per_token / output),
        usd_per_million_tokens=usd(per_token / (output + prompt)),
        power_kw=round((watts + host) / 1e3, 3) if known else None,
        nodes=sum(found.nodes.values()) + own,
        devices=sum(node.devices * nodes for node, nodes in rented) + own,
        serves_requests_per_s=served,
        output_tokens_per_s=output,
        tokens_per_s=output + prompt,
        served_fraction=min(served / asked, found.throughput_multiple or 1.0)
        if planning.objective == "throughput"
        else min(1.0, served / asked)
        if found.shares
        else 1.0,
    )
