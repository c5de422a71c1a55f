"""Why candidates cannot serve a workload: what they lack, or which target they miss and by how much."""

from dataclasses import dataclass, replace

import numpy as np

from solver.figures import readable
from solver.search import Screened, target_seconds
from solver.why.resolve import Rows

MS_PER_S = 1e3


@dataclass(frozen=True, slots=True)
class Miss:
    """reason: a stable slug. limit, best, target: of the target missed by least, in seconds; None for other reasons."""

    workload: str
    reason: str
    detail: str
    limit: str | None = None
    best_s: float | None = None
    target_s: float | None = None
    traffic_class: str | None = None


def misses_of_devices(screened: Screened, devices: frozenset[str]) -> list[Miss]:
    """Why no candidate of these devices serves the workload: what was dropped before, then what misses its targets."""
    space, name = screened.space, screened.workload.name
    found = [
        Miss(name, reason, f"{device}: {detail}")
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
    """For each reason among candidates that serve nothing, the one that comes nearest, least missed first.

    Of a workload with traffic classes: for each class in turn.
    """
    if screened.classes:
        return [
            replace(miss, traffic_class=one.workload.class_name)
            for one in screened.classes
            for miss in misses_of_rows(one, rows)
        ]
    found, space = screened.capacity, screened.space
    targets = target_seconds(screened.workload.targets)
    nearest: dict[str, tuple[float, Miss]] = {}
    for row in np.flatnonzero(rows & (screened.most_requests_per_s <= 0.0)).tolist():
        index = int(found.limit[row])
        label = found.limits[index]
        layout, precision = space.rows[row].layout, space.rows[row].precision
        device = space.platforms[space.rows[row].platform].device
        where = (
            f"{_named(device.id, device.partition.profile if device.partition else None)}, TP{layout.tensor_parallel}"
            + (f" PP{layout.pipeline_parallel}" if layout.pipeline_parallel > 1 else "")
            + f", {precision.weights}"
        )
        if not screened.allowed[row]:
            miss, factor = Miss(screened.workload.name, "figure_missing", "power_limit_w"), np.inf
        elif index == 0:
            detail = f"the cache holds no request of this length ({where})"
            miss, factor = Miss(screened.workload.name, "kv_cache_too_small", detail), np.inf
        else:
            best, target = float(found.best_s[row]), targets[label]
            factor = best / target
            metric, percentile = label.split(".")
            miss = Miss(
                screened.workload.name,
                f"{metric.split('_')[0]}_above_target",
                f"{percentile} {metric.split('_')[0].upper()} is {readable(best * MS_PER_S)} ms at best ({where}),"
                f" {readable(100.0 * (factor - 1.0))} % above the target of {readable(target * MS_PER_S)} ms",
                f"targets.{label}",
                best,
                target,
            )
        if miss.reason not in nearest or factor < nearest[miss.reason][0]:
            nearest[miss.reason] = (factor, miss)
    return [miss for _, miss in sorted(nearest.values(), key=lambda pair: pair[0])]
