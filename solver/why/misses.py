"""Why candidates cannot serve a workload: what they lack, or which target they miss and by how much."""

from dataclasses import dataclass, replace

import numpy as np

from solver.candidates.rejections import ABOVE_TARGET, NO_CACHE, TargetMiss, target_miss
from solver.candidates.screening import Screened, ScreenedClass
from solver.why.resolve import Rows


@dataclass(frozen=True, slots=True)
class Miss:
    """reason: a stable slug. missed: the target missed by least, where that is the reason. detail: else."""

    workload: str
    reason: str
    missed: TargetMiss | None = None
    detail: str = ""
    traffic_class: str | None = None


def misses_of_devices(screened: Screened, devices: frozenset[str]) -> list[Miss]:
    """Why no candidate of these devices serves the workload: what was dropped before, then what misses its targets."""
    space, name = screened.space, screened.workload.name
    found = [
        Miss(name, reason, detail=f"{device}: {detail}")
        for device, reason, detail in sorted(
            {(_named(d.device_id, d.partition), d.reason, d.detail) for d in space.dropped if d.device_id in devices}
        )
    ]
    return [*misses_of_rows(screened, rows_of_devices(screened, devices)), *found]


def _named(device_id: str, partition: str | None) -> str:
    return device_id if partition is None else f"{device_id} ({partition})"


def rows_of_devices(screened: Screened, devices: frozenset[str]) -> Rows:
    here = np.array([p.device.id in devices for p in screened.space.platforms], dtype=np.bool_)
    rows: Rows = here[screened.space.platform_index]
    return rows


def misses_of_rows(screened: Screened, rows: Rows) -> list[Miss]:
    """For each reason among candidates that serve nothing, the one that comes nearest, least missed first; class by class."""
    return [
        replace(miss, traffic_class=one.workload.only.name)
        for one in screened.classes
        for miss in _misses_of_class(one, rows)
    ]


def _misses_of_class(screened: ScreenedClass, rows: Rows) -> list[Miss]:
    space, name = screened.space, screened.workload.name
    nearest: dict[tuple[str, str], tuple[float, Miss]] = {}
    for row in np.flatnonzero(rows & ~screened.serves).tolist():
        if not screened.allowed[row]:
            miss, factor, metric = Miss(name, "figure_missing", detail="power_limit_w"), np.inf, ""
        elif (missed := target_miss(screened, row)) is None:
            entry = space.rows[row]
            device = space.platforms[entry.platform].device
            where = _named(device.id, device.partition.profile if device.partition else None)
            cut = f"TP{entry.layout.tensor_parallel} PP{entry.layout.pipeline_parallel}, {entry.precision.weights}"
            detail = f"the cache holds no request of this length ({where}, {cut})"
            miss, factor, metric = Miss(name, NO_CACHE, detail=detail), np.inf, ""
        else:
            miss, factor, metric = Miss(name, ABOVE_TARGET, missed), missed.ratio, missed.target.metric
        if (miss.reason, metric) not in nearest or factor < nearest[miss.reason, metric][0]:
            nearest[miss.reason, metric] = (factor, miss)
    return [miss for _, miss in sorted(nearest.values(), key=lambda pair: pair[0])]
