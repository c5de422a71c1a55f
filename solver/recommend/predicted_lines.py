"""The lines of a plan with what one replica of each is predicted to do at its planned rate."""

import math
from dataclasses import replace

from solver.corrections.sets import configuration_correction
from solver.planning.types import PlanEntry, PlanningInput
from solver.prediction.estimate import Correction, estimate
from solver.prediction.streams import estimate_mixed
from solver.replay.streams import RequestStream
from solver.workload import Load, Workload


def with_estimate(planning: PlanningInput, entry: PlanEntry) -> PlanEntry:
    """The entry with the full prediction of one replica group at its planned rate."""
    workload = next(w for w in planning.workloads if w.name == entry.workload)
    configuration = entry.configuration
    rate = entry.serves_requests_per_s / entry.replicas
    if rate <= 0.0:
        return entry
    correction = configuration_correction(planning.corrections, configuration)
    if entry.classes:
        return _with_class_estimates(workload, entry, correction)
    load = Load("open", requests_per_s=rate)
    predicted = estimate(configuration, workload.traffic, load, correction)
    return replace(entry, estimate=predicted)


def _with_class_estimates(workload: Workload, entry: PlanEntry, correction: Correction | None) -> PlanEntry:
    """The mix that one replica gets, predicted; classes that no engine tells apart are one stream of it."""
    traffic = {one.name: one.traffic for one in workload.classes}
    kinds = list(dict.fromkeys(traffic[one.name] for one in entry.classes))
    rates = [
        math.fsum(one.requests_per_s for one in entry.classes if traffic[one.name] == kind) / entry.replicas
        for kind in kinds
    ]
    streams = [RequestStream(kind, rate) for kind, rate in zip(kinds, rates, strict=True)]
    found = estimate_mixed(entry.configuration, streams, correction)
    of_kind = dict(zip(kinds, found.streams, strict=True))
    classes = tuple(replace(one, estimate=of_kind[traffic[one.name]]) for one in entry.classes)
    return replace(entry, estimate=found.whole, classes=classes)
