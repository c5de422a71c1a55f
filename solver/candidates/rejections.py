"""Why candidates of a workload were dropped: the reason for each device, and the nearest miss of a target."""

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from solver.candidates.screening import Screened
from solver.candidates.space import SearchSpace
from solver.workload import Targets


@dataclass(frozen=True, slots=True)
class Rejection:
    """Candidates of one device, or of its instances of one profile, that failed for one reason, and the nearest one."""

    workload: str
    device_id: str
    reason: str
    count: int
    nearest: str
    partition: str | None = None
    traffic_class: str | None = None


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
    return _rejections(replace(screened, most_requests_per_s=np.ones(len(screened.space.rows)), classes=()))


def _missed(one: Screened) -> list[Rejection]:
    """Candidates that do not serve one class."""
    plain = replace(one, space=replace(one.space, dropped=Counter()))
    return [replace(rejection, traffic_class=one.workload.class_name) for rejection in _rejections(plain)]


def _rejections(screened: Screened) -> list[Rejection]:
    space, found, name = screened.space, screened.capacity, screened.workload.name
    tally: Counter[_Failed] = Counter()
    nearest: dict[_Failed, tuple[float, str]] = {}
    missed_by: dict[_Failed, float] = {}
    for dropped, count in space.dropped.items():
        key = _Failed(dropped.device_id, dropped.partition or "", dropped.reason)
        tally[key] += count
        nearest.setdefault(key, (0.0, dropped.detail))
    limits = target_seconds(screened.workload.targets)
    nearby = len(space.rows) // screened.copies
    for row in np.flatnonzero(screened.most_requests_per_s[:nearby] <= 0.0).tolist():
        index = int(found.limit[row])
        device, profile = _device_of(space, space.rows[row].platform)
        if not screened.allowed[row] and not space.power_limit_w[row] > 0.0:
            key = _Failed(device, profile, "figure_missing")
            tally[key] += 1
            nearest.setdefault(key, (0.0, "power_limit_w"))
            continue
        label = found.limits[index]
        reason = "kv_cache_too_small" if index == 0 else f"{label.split('_')[0]}_above_target"
        key = _Failed(device, profile, reason)
        tally[key] += 1
        best = float(found.best_s[row])
        if index and (key not in nearest or best < nearest[key][0]):
            layout = space.rows[row].layout
            text = (
                f"{label.split('.')[1]} {label.split('_')[0].upper()} {best * 1e3:.0f} ms at TP{layout.tensor_parallel}"
                + (f" PP{layout.pipeline_parallel}" if layout.pipeline_parallel > 1 else "")
                + f", {space.rows[row].precision.weights} (target {limits[label] * 1e3:.0f} ms)"
            )
            nearest[key] = (best, text)
            missed_by[key] = best / limits[label]
        elif not index:
            nearest.setdefault(key, (0.0, "the cache holds no request of this length"))
    able = {_device_of(space, p) for p in set(space.platform_index[screened.most_requests_per_s > 0.0].tolist())}

    def rank(key: _Failed) -> tuple[bool, float, int, tuple[str, str, str]]:
        order = (key.device_id, key.reason, key.partition)
        return (key.device_id, key.partition) in able, missed_by.get(key, math.inf), -tally[key], order

    return [
        Rejection(name, key.device_id, key.reason, tally[key], nearest[key][1], key.partition or None)
        for key in sorted(tally, key=rank)
    ]


class _Failed(NamedTuple):
    """What failed together. partition: empty for whole devices."""

    device_id: str
    partition: str
    reason: str


def _device_of(space: SearchSpace, platform: int) -> tuple[str, str]:
    device = space.platforms[platform].device
    return device.id, "" if device.partition is None else device.partition.profile


def target_seconds(targets: Targets) -> dict[str, float]:
    """Every target in seconds by its label, as ``Capacity.limits`` spells it."""
    return (
        {f"ttft_ms.{p}": v for p, v in targets.time_to_first_token_s.items()}
        | {f"tpot_ms.{p}": v for p, v in targets.time_per_output_token_s.items()}
        | {f"e2e_ms.{p}": v for p, v in targets.end_to_end_s.items()}
    )
