"""Why candidates of a workload were dropped: the reason for each device, and the nearest miss of a target."""

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from solver.candidates.screening import Screened
from solver.candidates.space import SearchSpace
from solver.layout import Layout
from solver.limit import TargetLimit, target_limits

ABOVE_TARGET = "above_target"
NO_CACHE = "kv_cache_too_small"


@dataclass(frozen=True, slots=True)
class TargetMiss:
    """A candidate and the target it misses: the best it can do, and what was asked."""

    target: TargetLimit
    best_s: float
    target_s: float
    device_id: str
    partition: str | None
    layout: Layout
    weights: str

    @property
    def ratio(self) -> float:
        """Best over target, above 1."""
        return self.best_s / self.target_s


@dataclass(frozen=True, slots=True)
class Rejection:
    """Candidates of one device, or of its instances of one profile, that failed for one reason.

    reason: a stable slug. missed: by the one that came nearest, where the reason is ABOVE_TARGET. detail: else.
    """

    workload: str
    device_id: str
    reason: str
    count: int
    missed: TargetMiss | None
    detail: str = ""
    partition: str | None = None
    traffic_class: str | None = None


def target_miss(screened: Screened, row: int) -> TargetMiss | None:
    """What stops a candidate that serves nothing: a target; None where the cache holds no request of this length."""
    space, found = screened.space, screened.capacity
    target = found.limits[int(found.limit[row])]
    if target is None:
        return None
    entry = space.rows[row]
    device, profile = _device_of(space, entry.platform)
    limit_s = dict(target_limits(screened.workload.targets))[target]
    return TargetMiss(
        target, float(found.best_s[row]), limit_s, device, profile or None, entry.layout, entry.precision.weights
    )


def rejections(screened: Screened) -> list[Rejection]:
    """Why candidates of this workload were dropped: by device and reason, with the nearest miss.

    Devices that cannot serve it at all come first, those that miss a target by least before the others. Of several
    distances the nearest one counts.
    """
    if screened.classes:
        return [*_dropped(screened), *(one for each in screened.classes for one in _missed(each))]
    return _rejections(screened)


def _dropped(screened: Screened) -> list[Rejection]:
    """Candidates that were never evaluated, whatever the class."""
    every = np.ones(len(screened.space.rows))
    return _rejections(replace(screened, most_requests_per_s=every, classes=()))


def _missed(one: Screened) -> list[Rejection]:
    """Candidates that do not serve one class."""
    plain = replace(one, space=replace(one.space, dropped=Counter()))
    return [replace(rejection, traffic_class=one.workload.class_name) for rejection in _rejections(plain)]


def _rejections(screened: Screened) -> list[Rejection]:
    space, name = screened.space, screened.workload.name
    tally: Counter[_Failed] = Counter()
    details: dict[_Failed, str] = {}
    nearest: dict[_Failed, TargetMiss] = {}
    for dropped, count in space.dropped.items():
        key = _Failed(dropped.device_id, dropped.partition or "", dropped.reason)
        tally[key] += count
        details.setdefault(key, dropped.detail)
    nearby = len(space.rows) // screened.copies
    for row in np.flatnonzero(~screened.serves[:nearby]).tolist():
        device, profile = _device_of(space, space.rows[row].platform)
        if not screened.allowed[row] and not space.power_limit_w[row] > 0.0:
            key = _Failed(device, profile, "figure_missing")
            details.setdefault(key, "power_limit_w")
        elif (miss := target_miss(screened, row)) is None:
            key = _Failed(device, profile, NO_CACHE)
            details.setdefault(key, "the cache holds no request of this length")
        else:
            key = _Failed(device, profile, ABOVE_TARGET, miss.target.metric)
            if key not in nearest or miss.best_s < nearest[key].best_s:
                nearest[key] = miss
        tally[key] += 1
    able = {_device_of(space, p) for p in set(space.platform_index[screened.serves].tolist())}

    def rank(key: _Failed) -> tuple[bool, float, int, _Failed]:
        missed_by = nearest[key].ratio if key in nearest else math.inf
        return (key.device_id, key.partition) in able, missed_by, -tally[key], key

    return [
        Rejection(
            name, key.device_id, key.reason, tally[key], nearest.get(key), details.get(key, ""), key.partition or None
        )
        for key in sorted(tally, key=rank)
    ]


class _Failed(NamedTuple):
    """What failed together. partition: empty for whole devices. metric: that misses its target, where one does."""

    device_id: str
    partition: str
    reason: str
    metric: str = ""


def _device_of(space: SearchSpace, platform: int) -> tuple[str, str]:
    device = space.platforms[platform].device
    return device.id, "" if device.partition is None else device.partition.profile
