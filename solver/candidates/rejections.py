"""Why candidates of a workload were dropped: the reason for each device, and the nearest miss of a target."""

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solver.candidates.screening import Screened, ScreenedClass, copies_of
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


def target_miss(screened: ScreenedClass, row: int) -> TargetMiss | None:
    """What stops a candidate that serves nothing: a target; None where the cache holds no request of this length."""
    space, found = screened.space, screened.capacity
    target = found.limits[int(found.limit[row])]
    if target is None:
        return None
    entry = space.rows[row]
    device, profile = _device_of(space, entry.platform)
    limit_s = dict(target_limits(screened.workload.only.targets))[target]
    return TargetMiss(
        target, float(found.best_s[row]), limit_s, device, profile or None, entry.layout, entry.precision.weights
    )


def rejections(screened: Screened) -> list[Rejection]:
    """Why candidates of this workload were dropped: by device and reason, with the nearest miss, class by class.

    What was never evaluated, whatever the class, is said of no class by name. Devices that cannot serve it at all come first, those
    that miss a target by least before the others. Of several distances the nearest one counts.
    """
    space, found = screened.space, _Tally()
    for dropped, count in space.dropped.items():
        found.add(_Failed("", dropped.device_id, dropped.partition or "", dropped.reason), count, dropped.detail)
    for one in screened.classes:
        _tally_misses(one, found)
        _tally_short_of_processors(one, found)
    position = {"": -1} | {one.workload.only.name or "": k for k, one in enumerate(screened.classes)}
    able = {"": _devices_able(space, screened.serves)}
    able |= {one.workload.only.name or "": _devices_able(space, one.serves) for one in screened.classes}

    def rank(key: _Failed) -> tuple[int, bool, float, int, _Failed]:
        missed_by = found.nearest[key].ratio if key in found.nearest else math.inf
        is_able = (key.device_id, key.partition) in able[key.traffic_class]
        return position[key.traffic_class], is_able, missed_by, -found.count[key], key

    return [
        Rejection(
            screened.workload.name, key.device_id, key.reason, found.count[key], found.nearest.get(key),
            found.details.get(key, ""), key.partition or None, key.traffic_class or None,
        )
        for key in sorted(found.count, key=rank)
    ]  # fmt: skip


def _tally_misses(one: ScreenedClass, found: "_Tally") -> None:
    """Add the candidates that do not serve a class."""
    space, name = one.space, one.workload.only.name or ""
    nearby = len(space.rows) // copies_of(one.workload)
    for rows in _failing(one, nearby):
        row = rows[0]
        device, profile = _device_of(space, space.rows[row].platform)
        misses = [miss for miss in (target_miss(one, each) for each in rows) if miss is not None]
        if not one.allowed[row] and not space.power_limit_w[row] > 0.0:
            found.add(_Failed(name, device, profile, "figure_missing"), 1, "power_limit_w")
        elif not misses:
            found.add(_Failed(name, device, profile, NO_CACHE), 1, "the cache holds no request of this length")
        else:
            miss = min(misses, key=lambda each: each.ratio)
            key = _Failed(name, device, profile, ABOVE_TARGET, miss.target.metric)
            found.add(key, 1)
            if key not in found.nearest or miss.best_s < found.nearest[key].best_s:
                found.nearest[key] = miss


def _tally_short_of_processors(one: ScreenedClass, found: "_Tally") -> None:
    """Add the candidates that one process that answers limits, and that stand in machines without processors for more."""
    space, name = one.space, one.workload.only.name or ""
    passed_on = space.passed_on_tokens_per_s / max(1.0, one.workload.traffic.output.mean)
    for row, detail in space.short_of_processors.items():
        if one.most_requests_per_s[row] >= passed_on[row]:
            device, profile = _device_of(space, space.rows[row].platform)
            found.add(_Failed(name, device, profile, "host_processors_exceeded"), 1, detail)


def _failing(one: ScreenedClass, nearby: int) -> list[list[int]]:
    """Rows that serve a class with steps of no size behind no number of processes, those that are the same but for these together."""
    numbers = one.space.but_for_settings[:nearby]
    able = np.isin(numbers, numbers[one.serves[:nearby]])
    together: dict[int, list[int]] = {}
    for row in np.flatnonzero(~able).tolist():
        together.setdefault(int(numbers[row]), []).append(row)
    return list(together.values())


def _devices_able(space: SearchSpace, serves: NDArray[np.bool_]) -> set[tuple[str, str]]:
    """Devices, and profiles of their instances, some candidate of which serves."""
    return {_device_of(space, p) for p in set(space.platform_index[serves].tolist())}


class _Failed(NamedTuple):
    """What failed together. traffic_class: empty where it has no name, or where every class fails.

    partition: empty for whole devices. metric: that misses its target, where one does.
    """

    traffic_class: str
    device_id: str
    partition: str
    reason: str
    metric: str = ""


@dataclass(slots=True)
class _Tally:
    """How many candidates failed for what, with what there is to say of it."""

    count: Counter[_Failed] = field(default_factory=Counter)
    details: dict[_Failed, str] = field(default_factory=dict)
    nearest: dict[_Failed, TargetMiss] = field(default_factory=dict)

    def add(self, key: _Failed, count: int, detail: str | None = None) -> None:
        self.count[key] += count
        if detail is not None:
            self.details.setdefault(key, detail)


def _device_of(space: SearchSpace, platform: int) -> tuple[str, str]:
    device = space.platforms[platform].device
    return device.id, "" if device.partition is None else device.partition.profile
