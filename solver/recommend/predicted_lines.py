"""The lines of a plan with what one replica of each is predicted to do at its planned rate."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from solver.confirmation.exchanges import MOST_PARTNERS
from solver.corrections.applied import configuration_correction, pool_correction
from solver.deployment.configuration import Configuration
from solver.deployment.deploy import with_seats_for_states
from solver.deployment.kv_transfer import ServingPool
from solver.errors import SaturatedError
from solver.planning.placements import admitted_requests
from solver.planning.types import PlanEntry, PlanningInput
from solver.prediction.disaggregated import estimate_disaggregated
from solver.prediction.estimate import Correction, Estimate, estimate
from solver.prediction.intervals import PredictedInterval
from solver.prediction.lasting_queue import LastingQueue, lasting_queue, lasting_queue_of_mix
from solver.prediction.streams import estimate_mixed
from solver.replay.streams import RequestStream
from solver.workload import Load, Traffic

PREDICTION_REQUESTS = 500
"""Replayed for a line of replicas that prefill or decode only."""

DRAWS_DIFFER_FRACTION = 0.02
"""By which two predictions of one load may differ and nobody be said to wait longer."""


def with_estimates(
    planning: PlanningInput, entries: Sequence[PlanEntry], in_time: Callable[[float], bool] = lambda _seconds: True
) -> tuple[PlanEntry, ...]:
    """The entries with the full prediction of one replica of each at its planned rate.

    Of a replica that prefills or decodes only: the times of whole requests, with those of the other side that it meets most, and its own
    share of rate and power. in_time: whether there is time for a line that takes as long as the longest so far; those that there is
    none for are returned as they are.
    """
    found, longest_s = [], 0.0
    for entry in entries:
        if not in_time(longest_s):
            found.append(entry)
            continue
        began_s = planning.clock()
        found.append(_with_estimate(planning, entry, entries))
        longest_s = max(longest_s, planning.clock() - began_s)
    return tuple(found)


def _with_estimate(planning: PlanningInput, entry: PlanEntry, entries: Sequence[PlanEntry]) -> PlanEntry:
    entry = _startable(entry)
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
        load = Load("open", requests_per_s=rate)

        def alone(line: PlanEntry) -> PlanEntry:
            return _of_all(line, estimate(line.configuration, kinds[0], load, correction))

        def queue(on: Configuration) -> LastingQueue | None:
            return lasting_queue(on, on.tables(), kinds[0], load, Configuration.tables)

        return _seated(entry, rate, alone, queue)
    streams = _streams(entry, kinds, traffic)

    def together(line: PlanEntry) -> PlanEntry:
        return _of_mix(line, streams, traffic, correction)

    def queue_of_mix(on: Configuration) -> LastingQueue | None:
        return lasting_queue_of_mix(on, on.tables(), streams, Configuration.tables)

    return _seated(entry, rate, together, queue_of_mix)


def _seated(
    entry: PlanEntry,
    requests_per_s: float,
    predicted: Callable[[PlanEntry], PlanEntry],
    queue_on: Callable[[Configuration], LastingQueue | None],
) -> PlanEntry:
    """The line, predicted with all seats; with fewer where a queue would stay on all and goes with those, and nobody waits longer for it.

    Raises SaturatedError where the load is above what either carries.
    """
    try:
        found = predicted(entry)
    except SaturatedError:
        # Between what a crowd completes and what holds on without a queue, a draw that looks like one decides.
        queue = queue_on(entry.configuration)
        if queue is None or queue.settled_requests_per_s < requests_per_s:
            raise
        return predicted(_on_seats(entry, queue.max_sequences))
    assert found.estimate is not None
    queue = found.estimate.lasting_queue
    if queue is None or queue.settled_requests_per_s < requests_per_s:
        return found
    seated = predicted(_on_seats(entry, queue.max_sequences))
    before = (found.estimate, *(one.estimate for one in found.classes))
    after = (seated.estimate, *(one.estimate for one in seated.classes))
    return seated if all(_no_later(one, other) for one, other in zip(after, before, strict=True)) else found


def _startable(entry: PlanEntry) -> PlanEntry:
    """The line with engines that start: no more seats than their cache has recurrent states for."""
    seats = with_seats_for_states(entry.configuration).engine.max_sequences
    return entry if seats == entry.configuration.engine.max_sequences else _on_seats(entry, seats)


def _on_seats(entry: PlanEntry, max_sequences: int) -> PlanEntry:
    """The line with engines that have so many seats."""
    engine = replace(entry.configuration.engine, max_sequences=max_sequences)
    seated = replace(entry.configuration, engine=engine)
    return replace(entry, configuration=seated, max_concurrency=admitted_requests(seated))


def _no_later(one: Estimate | None, other: Estimate | None) -> bool:
    """Does every time that targets may limit come as early, but for what draws of a load differ by?"""
    if one is None or other is None:
        return one is other
    limited = ("time_to_first_token_s", "time_per_output_token_s", "end_to_end_s", "time_to_first_answer_s")
    return all(
        getattr(one, metric)[name].expected <= theirs.expected * (1.0 + DRAWS_DIFFER_FRACTION)
        for metric in limited
        for name, theirs in (getattr(other, metric) or {}).items()
    )


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


def _streams(entry: PlanEntry, kinds: Sequence[Traffic], traffic: Mapping[str | None, Traffic]) -> list[RequestStream]:
    """What one replica gets; classes that no engine tells apart are one stream of it."""
    rates = [
        math.fsum(one.requests_per_s for one in entry.classes if traffic[one.name] == kind) / entry.replicas
        for kind in kinds
    ]
    return [RequestStream(kind, rate) for kind, rate in zip(kinds, rates, strict=True)]


def _of_mix(
    entry: PlanEntry,
    streams: Sequence[RequestStream],
    traffic: Mapping[str | None, Traffic],
    correction: Correction | None,
) -> PlanEntry:
    """The mix that one replica gets, predicted."""
    found = estimate_mixed(entry.configuration, streams, correction)
    of_kind = {stream.traffic: one for stream, one in zip(streams, found.streams, strict=True)}
    classes = tuple(replace(one, estimate=of_kind[traffic[one.name]]) for one in entry.classes)
    return replace(entry, estimate=found.whole, classes=classes)
