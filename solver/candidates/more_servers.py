"""Candidates behind several processes that answer, where one may limit what their devices decode."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from solver.candidates.space import SearchSpace, fronts_of, taken_plans, twins
from solver.deployment.platforms import Platform, processors_needed
from solver.engine.screened_capacity import RATE_SLACK
from solver.hardware import Node
from solver.workload import Workload


@dataclass(frozen=True, slots=True)
class _Further:
    """Rows to be there once more: which they are, and of each the number of its platform among ``platforms``, a space's own first.

    short: see ``SearchSpace.short_of_processors``.
    """

    rows: tuple[int, ...]
    own: tuple[int, ...]
    platforms: tuple[Platform, ...]
    short: Mapping[int, str]


def is_enough_of_all(space: SearchSpace, workload: Workload, requests_per_s: float) -> bool:
    """May one replica of whichever row, behind as many processes as are asked, pass on all of so many requests a second, of all classes of
    a workload in their proportions? Then no replica needs more of them."""
    return all_tokens_per_s(workload, requests_per_s) <= float(space.passed_on_tokens_per_s.min())


def all_tokens_per_s(workload: Workload, requests_per_s: float) -> float:
    """Tokens of replies a second of so many requests, over the share of what replicas sustain that a plan uses."""
    tokens_per_s = sum(one.requests_per_s * one.traffic.output.mean for one in workload.classes)
    return tokens_per_s * (requests_per_s / workload.requests_per_s) / workload.utilisation_limit_fraction


def with_more_servers(space: SearchSpace, nodes: Sequence[Node]) -> SearchSpace:
    """The space with more processes, made once: see ``_with_more_servers``. nodes: those it was made of."""
    found = space.memo.get("more_servers")
    if found is None:
        found = space.memo["more_servers"] = _with_more_servers(space, nodes)
    assert isinstance(found, SearchSpace)
    return found


def _with_more_servers(space: SearchSpace, nodes: Sequence[Node]) -> SearchSpace:
    """With every row once more behind as many processes that answer as plans try, where its devices decode more than a plan may have
    those pass on that are asked; on the machines that are not known to have too few processors for them.

    Its steps and memory are those of the row itself: nothing is tabulated again.
    """
    found = _further(space, nodes)
    if not found.rows:
        return replace(space, short_of_processors=found.short, memo={})
    kept = np.concatenate([np.arange(len(space.rows), dtype=np.int64), found.rows])
    platform_index = np.concatenate([space.platform_index, found.own]).astype(np.int64)
    numbers = platform_index.tolist()
    settings = [platform.settings(space.shape, space.settings) for platform in found.platforms]
    servers = np.array([one.api_servers for one in settings])[platform_index]
    alike = list(zip(space.twin[kept].tolist(), servers.tolist(), strict=True))
    again = (replace(space.rows[row], platform=number) for row, number in zip(found.rows, found.own, strict=True))
    taken: dict[str, Any] = {name: getattr(space, name)[kept] for name in ROW_COLUMNS}
    return replace(
        space,
        platforms=found.platforms,
        rows=(*space.rows, *again),
        platform_index=platform_index,
        api_servers=servers,
        memory=taken_plans(space.memory, kept),
        grid_row=space.grid_row[kept],
        fronts=fronts_of(space.shape, space.settings, [found.platforms[number] for number in numbers]),
        twin=twins(alike),
        short_of_processors=found.short,
        memo={},
        runs=space.runs,  # kept by row: those of the space keep their numbers, and none of the others has one of these
        **taken,
    )


ROW_COLUMNS = (
    "devices_per_replica", "data_parallel", "nodes_per_replica", "batched_tokens", "but_for_settings", "behind_as_asked",
    "memory_entries", "weight_formats", "kv_formats", "narrow", "power_limit_w", "memory_bandwidth", "matrix_rate",
)  # fmt: skip
"""Of a space, what rows have alike that differ in how many processes answer alone."""


def _further(space: SearchSpace, nodes: Sequence[Node]) -> _Further:
    """Not rows that draft, of which nothing was measured behind several processes."""
    processors = {node.id: node.host_processors for node in nodes}
    every, short = list(space.platforms), dict[int, str]()
    known: dict[tuple[int, int], int | None] = {}
    rows, own = list[int](), list[int]()
    limited = space.plain & (space.decoded_tokens_per_s() * RATE_SLACK > space.passed_on_tokens_per_s)
    for row in np.flatnonzero(limited).tolist():
        index, layout = int(space.platform_index[row]), space.rows[row].layout
        platform = space.platforms[index]
        servers = platform.more_servers(space.shape, space.settings)
        if servers is None:
            continue
        needed = processors_needed(platform.devices, layout, servers)
        lacking = [processors[one] for one in platform.node_ids if 0.0 < processors[one] < needed]
        if lacking:
            short[row] = (
                f"{servers} processes that answer take {needed} processors with the engine's own, and the host has {max(lacking):g}"
            )
        if (index, needed) not in known:
            able = tuple(one for one in platform.node_ids if not 0.0 < processors[one] < needed)
            known[index, needed] = len(every) if able else None
            every += [replace(platform, api_servers=servers, node_ids=able)] if able else []
        behind = known[index, needed]
        if behind is not None:
            rows.append(row)
            own.append(behind)
    return _Further(tuple(rows), tuple(own), tuple(every), short)
