"""Every way one model can run on the catalog's hardware, tabulated once: legal layouts, precisions, memory, step times.

A space depends on the model, the hardware, the constants and the engine settings, but not on traffic, targets or
prices: it is built once and read for every workload of that model.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver.candidates.combinations import CandidateRow, Dropped
from solver.capacity.runs import RunsMemo
from solver.deployment.configuration import Configuration, Speculation, front_end
from solver.deployment.platforms import Platform
from solver.engine.steady import (
    TOKEN_GRID,
    FrontEnd,
    StepGrid,
    interpolate,
    rows_of_grid,
)
from solver.llm_shape import LlmShape
from solver.memory.table import MemoryPlans, MemoryTable
from solver.prediction.front_end import planned_tokens_per_s
from solver.workload import EngineSettings


@dataclass(slots=True)
class SearchSpace:
    """Candidates as rows; arrays are (N,) or (N, 1). ``groups``: row ranges that share an engine profile."""

    shape: LlmShape
    settings: EngineSettings
    platforms: tuple[Platform, ...]
    rows: tuple[CandidateRow, ...]
    platform_index: NDArray[np.int64]
    devices_per_replica: NDArray[np.int64]
    data_parallel: NDArray[np.int64]
    nodes_per_replica: NDArray[np.int64]
    batched_tokens: NDArray[np.int64]
    """Most tokens of a step."""
    api_servers: NDArray[np.int64]
    """Processes that answer, for each copy of attention."""
    but_for_settings: NDArray[np.int64]
    """Number of each row: rows of one number are the same but for their steps and how many processes answer."""
    behind_as_asked: NDArray[np.int64]
    """Of each row the one that is the same but for how many processes answer, which is as asked."""
    memory: MemoryPlans
    memory_table: MemoryTable
    memory_entries: NDArray[np.int64]
    grid: StepGrid
    """Step times, a row for all candidates that perform alike."""
    grid_row: NDArray[np.int64]
    """Of each row its own in ``grid``."""
    fronts: tuple[tuple[FrontEnd, NDArray[np.int64]], ...]
    weight_formats: NDArray[np.str_]
    kv_formats: NDArray[np.str_]
    narrow: NDArray[np.bool_]
    power_limit_w: NDArray[np.float64]
    memory_bandwidth: NDArray[np.float64]
    matrix_rate: NDArray[np.float64]
    """Datasheet rate of the dtype each candidate multiplies in."""
    twin: NDArray[np.int64]
    """The first row that performs as this one does: the same but for the machine it stands in."""
    dropped: Counter[Dropped]
    memo: dict[object, object] = field(default_factory=dict)
    runs: RunsMemo = field(default_factory=RunsMemo)
    """What simulation has found of its candidates, whoever asked. By their rows: another space has its own, but for one that begins with
    these rows."""
    short_of_processors: Mapping[int, str] = field(default_factory=dict)
    """By row with one process that answers: why some machine that it may stand in cannot run more."""

    def configuration(self, row: int) -> Configuration:
        """The candidate as the event simulation takes it."""
        entry = self.rows[row]
        platform = self.platforms[entry.platform]
        return Configuration(
            shape=self.shape,
            device=platform.device,
            constants=platform.constants,
            layout=entry.layout,
            precision=entry.precision,
            engine=replace(
                platform.settings(self.shape, self.settings),
                host_cache_bytes=platform.host_cache_bytes,
                disk_cache_bytes=platform.disk_cache_bytes,
                disk_bytes_per_s=platform.disk_bytes_per_s or None,
            ),
            link_domain_devices=platform.link_domain_devices,
            network_bytes_per_s=platform.network_bytes_per_s if entry.nodes_per_replica > 1 else 0.0,
            kv_cache_tokens=float(self.memory.kv_cache_tokens[row]),
            speculation=None if entry.drafting is None else Speculation(entry.drafting),
        )

    def rows_on(self, node_ids: Collection[str]) -> NDArray[np.bool_]:
        """Rows that stand in one of these machines, at least."""
        asked = frozenset(node_ids)
        some = np.array([not asked.isdisjoint(platform.node_ids) for platform in self.platforms], dtype=np.bool_)
        return some[self.platform_index]

    def grid_of(self, rows: NDArray[np.int64]) -> StepGrid:
        """Step times of these rows, each as if there were no other."""
        return rows_of_grid(self.grid, self.grid_row[rows])

    def cache_tokens(self, mean_context: float) -> NDArray[np.float64]:
        """KV-cache tokens per candidate at this mean context: windows and states make a token's share depend on it.

        (N,), over the whole replica.
        """
        key = ("cache", round(mean_context))
        found = self.memo.get(key)
        if found is None:
            requests = self.memory_table.request_bytes(max(1, round(mean_context))).max(axis=1)[self.memory_entries]
            held = np.maximum(self.memory.kv_cache_bytes, 0.0) / np.maximum(requests, 1e-9) * max(mean_context, 1.0)
            found = np.where(requests > 0.0, held, self.memory.kv_cache_tokens) * self.data_parallel
            self.memo[key] = found
        assert isinstance(found, np.ndarray)
        return found

    def repeated(self, times: int) -> "SearchSpace":
        """Its candidates several times over, one copy after the other: the same hardware at several distances.

        What candidates are made of is repeated; the tables of their steps are not, nor is what was dropped.
        """
        key = ("repeated", times)
        found = self.memo.get(key)
        if found is None:
            columns: dict[str, Any] = {
                name: np.tile(getattr(self, name), times)
                for name in (
                    "platform_index", "devices_per_replica", "data_parallel", "nodes_per_replica", "batched_tokens", "api_servers",
                    "memory_entries", "weight_formats", "kv_formats", "narrow", "power_limit_w", "memory_bandwidth", "matrix_rate", "twin",
                )
            }  # fmt: skip
            everyone = np.tile(np.arange(len(self.rows), dtype=np.int64), times)
            copy_begins = np.repeat(np.arange(times, dtype=np.int64) * len(self.rows), len(self.rows))
            for name in ("but_for_settings", "behind_as_asked"):  # no row of another copy is the same but for these
                columns[name] = copy_begins + np.tile(getattr(self, name), times)
            memory = taken_plans(self.memory, everyone)
            found = self.memo[key] = replace(self, rows=self.rows * times, memory=memory, memo={}, **columns)
        assert isinstance(found, SearchSpace)
        return found

    @property
    def distinct(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(rows that are the first of their like, of every row the place of its like among them)."""
        found = self.memo.get("distinct")
        if found is None:
            found = self.memo["distinct"] = np.unique(self.twin, return_inverse=True)
        assert isinstance(found, tuple)
        return found

    def decoded_tokens_per_s(self) -> NDArray[np.float64]:
        """What the devices of each replica decode at most, whatever passes it on: c·lanes / step(c) with no context, for any c up to the
        seats. Steps are linear between points of the grid, so that it is largest at one of them, or at all seats."""
        seats = float(self.settings.max_sequences)
        batches = np.append(TOKEN_GRID[seats > TOKEN_GRID], seats)[None, :]
        steps = interpolate(self.grid.decode_s, batches + 0.0 * self.grid.lanes) + batches * self.grid.sequence_s
        most: NDArray[np.float64] = (batches * self.grid.lanes / steps).max(axis=1)
        return most[self.grid_row]

    @property
    def next_smaller_steps(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(rows with the largest steps of those that are the same but for them, of each the one with the next smaller)."""
        found = self.memo.get("next_smaller_steps")
        if found is None:
            order = np.lexsort((-self.batched_tokens, self.api_servers, self.but_for_settings))
            numbers, servers = self.but_for_settings[order], self.api_servers[order]
            first = np.concatenate([[True], (numbers[1:] != numbers[:-1]) | (servers[1:] != servers[:-1])])
            has_next = np.flatnonzero(first[:-1] & ~first[1:])
            found = self.memo["next_smaller_steps"] = order[has_next], order[has_next + 1]
        assert isinstance(found, tuple)
        return found

    @property
    def passed_on_tokens_per_s(self) -> NDArray[np.float64]:
        """Tokens of replies a second that a plan may have each replica pass on; infinite where its engine has no limit here."""
        found = self.memo.get("passed_on")
        if found is None:
            each = [
                planned_tokens_per_s(p.constants, self.shape, p.settings(self.shape, self.settings).api_servers)
                for p in self.platforms
            ]
            found = self.memo["passed_on"] = np.array(each)[self.platform_index] * self.data_parallel
        assert isinstance(found, np.ndarray)
        return found

    @property
    def has_more_servers(self) -> bool:
        """Are some rows behind more processes that answer than are asked?"""
        return len(self.behind_more_servers[0]) > 0

    @property
    def behind_more_servers(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(rows with more processes that answer than are asked, of each the one where they are as asked)."""
        found = self.memo.get("behind_more_servers")
        if found is None:
            many = np.flatnonzero(self.api_servers > self.settings.api_servers)
            found = self.memo["behind_more_servers"] = many, self.behind_as_asked[many]
        assert isinstance(found, tuple)
        return found

    @property
    def plain(self) -> NDArray[np.bool_]:
        """Rows that draft nothing."""
        found = self.memo.get("plain")
        if found is None:
            found = self.memo["plain"] = np.array([row.drafting is None for row in self.rows], dtype=np.bool_)
        assert isinstance(found, np.ndarray)
        return found

    @property
    def without_host_cache(self) -> NDArray[np.bool_]:
        """Rows with no tier of host memory under the cache."""
        found = self.memo.get("without_host_cache")
        if found is None:
            tiers = [self.platforms[row.platform].host_cache_bytes for row in self.rows]
            found = self.memo["without_host_cache"] = np.array(tiers) == 0.0
        assert isinstance(found, np.ndarray)
        return found

    @property
    def without_disk_cache(self) -> NDArray[np.bool_]:
        """Rows with no disk under the cache."""
        found = self.memo.get("without_disk_cache")
        if found is None:
            tiers = [self.platforms[row.platform].disk_cache_bytes for row in self.rows]
            found = self.memo["without_disk_cache"] = np.array(tiers) == 0.0
        assert isinstance(found, np.ndarray)
        return found

    @property
    def cut(self) -> NDArray[np.int64]:
        """Number of each row's device, engine, layout and processes that answer: rows of one number differ in precision, steps and machine
        only."""
        found = self.memo.get("cut")
        if found is None:
            own = [self.platforms[row.platform] for row in self.rows]
            keys = [
                (p.device.id, p.device.partition, p.engine, p.api_servers, row.layout, row.drafting, p.host_cache_bytes)
                for p, row in zip(own, self.rows, strict=True)
            ]
            found = self.memo["cut"] = twins(keys)
        assert isinstance(found, np.ndarray)
        return found

    @property
    def similar(self) -> NDArray[np.int64]:
        """One number for rows on the same device and engine, cut alike but for pipeline stages, with the same weights."""
        found = self.memo.get("similar")
        if found is None:
            numbers: dict[tuple[object, ...], int] = {}
            found = self.memo["similar"] = np.array(
                [numbers.setdefault(self._similar_key(row), len(numbers)) for row in self.rows], dtype=np.int64
            )
        assert isinstance(found, np.ndarray)
        return found

    def _similar_key(self, row: CandidateRow) -> tuple[object, ...]:
        layout = row.layout
        parallel = (layout.tensor_parallel, layout.data_parallel, layout.expert_parallel)
        platform = self.platforms[row.platform]
        return (
            platform.device.id, platform.device.partition, platform.engine, *parallel, row.precision.weights, row.drafting,
            platform.max_batched_tokens, platform.api_servers,
        )  # fmt: skip


def fronts_of(
    shape: LlmShape, settings: EngineSettings, own: Sequence[Platform]
) -> tuple[tuple[FrontEnd, NDArray[np.int64]], ...]:
    """(front end, rows behind it), by the platform of each row."""
    fronts: dict[FrontEnd, list[int]] = {}
    made: dict[int, FrontEnd] = {}
    for i, platform in enumerate(own):
        if id(platform) not in made:
            servers = platform.settings(shape, settings).api_servers
            made[id(platform)] = front_end(platform.constants, shape, servers)
        fronts.setdefault(made[id(platform)], []).append(i)
    return tuple((front, np.array(members, dtype=np.int64)) for front, members in fronts.items())


def twins(keys: Sequence[object]) -> NDArray[np.int64]:
    """For each key the number of its first equal."""
    first: dict[object, int] = {}
    return np.array([first.setdefault(key, i) for i, key in enumerate(keys)], dtype=np.int64)


def taken_plans(plans: MemoryPlans, kept: NDArray[np.int64]) -> MemoryPlans:
    return MemoryPlans(
        *(getattr(plans, name)[kept] for name in (
            "weights_bytes", "activations_bytes", "reserved_bytes", "kv_cache_bytes", "kv_cache_tokens", "fits"
        ))
    )  # fmt: skip
