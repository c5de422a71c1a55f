"""The lines of a plan with what one replica of each is predicted to do at its planned rate."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from solver.confirmation.exchanges import MOST_PARTNERS
from solver.corrections.applied import configuration_correction, pool_correction
from solver.deployment.kv_transfer import ServingPool
from solver.errors import SaturatedError
from solver.planning.types import PlanEntry, PlanningInput
from solver.prediction.disaggregated import estimate_disaggregated
from solver.prediction.estimate import Correction, Estimate, estimate
from solver.prediction.intervals import PredictedInterval
from solver.prediction.streams import estimate_mixed
from solver.replay.streams import RequestStream
from solver.workload import Load, Traffic

PREDICTION_REQUESTS = 500
"""Replayed for a line of replicas that prefill or decode only."""


def with_estimates(planning: PlanningInput, entries: Sequence[PlanEntry]) -> tuple[PlanEntry, ...]:
    """The entries with the full prediction of one replica of each at its planned rate.

    Of a replica that prefills or decodes only: the times of whole requests, with those of the other side that it meets most, and its own
    share of rate and power.
    """
    return tuple(_with_estimate(planning, entry, entries) for entry in entries)


def _with_estimate(planning: PlanningInput, entry: PlanEntry, entries: Sequence[PlanEntry]) -> PlanEntry:
    workload = next(w for w in planning.workloads if w.name == entry.workload)
    rate = entry.serves_requests_per_s / entry.replicas
    if rate <= 0.0:
        return entry
    if entry.role != "aggregated":
        partners = [other for other in entries if _exchange(other) == _exchange(entry) and other.role != entry.role]
        partner = max((p for p in partners if p.role != "aggregated"), key=lambda p: p.serves_requests_per_s)
        return _of_all(entry, _apart(planning, entry, partner, workload.traffic))
    correction = configuration_correction(planning.corrections, entry.configuration)
    traffic = {one.name: one.traffic for one in workload.classes}
    kinds = list(dict.fromkeys(traffic[one.name] for one in entry.classes))
    if len(kinds) == 1:
        return _of_all(entry, estimate(entry.configuration, kinds[0], Load("open", requests_per_s=rate), correction))
    return _of_mix(entry, kinds, traffic, correction)


def _of_all(entry: PlanEntry, found: Estimate | None) -> PlanEntry:
    """No engine tells requests of one kind apart, whatever their classes."""
    return replace(entry, estimate=found, classes=tuple(replace(one, estimate=found) for one in entry.classes))


def _exchange(entry: PlanEntry) -> tuple[str, ...]:
    """Workload, place, and what both sides share."""
    one = entry.configuration
    where = (entry.offer.provider, entry.offer.region)
    return (entry.workload, *where, one.precision.kv_cache, one.engine.name, one.device.vendor)


def _apart(planning: PlanningInput, entry: PlanEntry, partner: PlanEntry, traffic: Traffic) -> Estimate | None:
    """None where the load saturates the replicas simulated together."""
    own, other = (e.serves_requests_per_s / e.replicas for e in (entry, partner))
    beside = min(MOST_PARTNERS, max(1, round(own / other)))
    alone = min(MOST_PARTNERS, max(1, round(other / own)))
    mine = ServingPool(entry.configuration, alone, entry.offer.node)
    theirs = ServingPool(partner.configuration, beside, partner.offer.node)
    pools = (mine, theirs) if entry.role == "prefill" else (theirs, mine)
    corrections = tuple(pool_correction(planning.corrections, pool.configuration) for pool in pools)
    load = Load("open", requests_per_s=own * alone)
    try:
        found = estimate_disaggregated(
            *pools, "network", traffic, load, (corrections[0], corrections[1]), requests=PREDICTION_REQUESTS
        )
    except SaturatedError:
        return None
    part = found.prefill if entry.role == "prefill" else found.decode

    def each(value: PredictedInterval) -> PredictedInterval:
        return PredictedInterval(value.expected / alone, value.low / alone, value.high / alone)

    return replace(
        found.whole, output_tokens_per_s=each(found.whole.output_tokens_per_s), power_w=each(part.power_w),
        requests_per_s=each(found.whole.requests_per_s),
    )  # fmt: skip


def _of_mix(
    entry: PlanEntry, kinds: Sequence[Traffic], traffic: Mapping[str | None, Traffic], correction: Correction | None
) -> PlanEntry:
    """The mix that one replica gets, predicted; classes that no engine tells apart are one stream of it."""
    rates = [
        math.fsum(one.requests_per_s for one in entry.classes if traffic[one.name] == kind) / entry.replicas
        for kind in kinds
    ]
    streams = [RequestStream(kind, rate) for kind, rate in zip(kinds, rates, strict=True)]
    found = estimate_mixed(entry.configuration, streams, correction)
    of_kind = dict(zip(kinds, found.streams, strict=True))
    classes = tuple(replace(one, estimate=of_kind[traffic[one.name]]) for one in entry.classes)
    return replace(entry, estimate=found.whole, classes=classes)
