"""Accepted runs of a configuration gathered by load: what a correction set keeps of them for its relatives (``solver.corrections.kin``)."""

import json
import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter
from sqlmodel import Session

from service.benchmarks.plausibility import mean_tokens
from service.corrections.queries import AcceptedResidual, loads_of
from service.wire.benchmarks import MeasuredLengths
from solver.corrections.kin import MeasuredLoad

STEP = 0.25
"""Loads whose logarithms round to the same multiple of it count as one: a tenth of what a run's error reaches."""
MOST_POINTS = 64
KEPT = 5
"""Fields of a point."""
MOST_LOADS = 200
"""The newest runs of a configuration whose loads are told apart."""
_LENGTHS: TypeAdapter[MeasuredLengths] = TypeAdapter(MeasuredLengths)


def load_of(
    load: Mapping[str, Any], traffic: Mapping[str, Any], layout: Mapping[str, Any]
) -> tuple[float, float, float] | None:
    """Clients of a replica, the mean prompt and the mean reply; None of a load that is not a closed loop of prompts and replies of
    stated lengths, or that has no prompts (runs of generation alone)."""
    lengths = [traffic.get(kind) for kind in ("prompt_tokens", "output_tokens")]
    if load.get("kind") != "closed" or not all(lengths):
        return None
    prompt, output = (_mean_tokens(json.dumps(stated, sort_keys=True)) for stated in lengths)
    if min(prompt, output) <= 0.0:
        return None
    return load["concurrency"] / (layout.get("data_parallel") or 1), prompt, output


@lru_cache(maxsize=1024)
def _mean_tokens(stated: str) -> float:
    """Of lengths as measured runs state them, which may be their mean alone."""
    return mean_tokens(_LENGTHS.validate_json(stated)) or 0.0


def with_loads(session: Session, runs: Sequence[AcceptedResidual]) -> list[AcceptedResidual]:
    """Runs, the newest of them with the load that they state."""
    stated = loads_of(session, [run.benchmark_id for run in runs[:MOST_LOADS]])
    return [
        run._replace(load=load_of(*stated[run.benchmark_id])) if run.benchmark_id in stated else run for run in runs
    ]


def points_of(accepted: Sequence[AcceptedResidual], metrics: Sequence[str]) -> list[list[object]]:
    """As a set keeps them: clients, mean prompt, mean reply, runs and mean residuals by metric, loads with most runs first.

    >>> run = AcceptedResidual("b", "1", {"power": 0.1}, (8.0, 1024.0, 128.0))
    >>> points_of([run, run._replace(residuals={"power": 0.2})], ("power",))
    [[8.0, 1024.0, 128.0, 2, {'power': 0.15}]]
    """
    gathered: dict[tuple[int, ...], list[AcceptedResidual]] = defaultdict(list)
    for run in accepted:
        if run.load is not None:
            gathered[tuple(round(math.log(side) / STEP) for side in run.load)].append(run)
    most = sorted(gathered.values(), key=lambda runs: -len(runs))[:MOST_POINTS]
    return [_point(runs, metrics) for runs in most]


def _point(runs: Sequence[AcceptedResidual], metrics: Sequence[str]) -> list[object]:
    sizes = [
        round(math.exp(statistics.fmean(math.log(run.load[side]) for run in runs if run.load is not None)), 3)
        for side in range(3)
    ]
    residuals = {
        metric: round(statistics.fmean(known), 6)
        for metric in metrics
        if (known := [run.residuals[metric] for run in runs if metric in run.residuals])
    }
    return [*sizes, len(runs), residuals]


def load_points(kept: Sequence[Sequence[Any]]) -> tuple[MeasuredLoad, ...]:
    """As the solver takes them. Sets made before replies were kept say nothing by load."""
    return tuple(MeasuredLoad(*point) for point in kept if len(point) == KEPT)
