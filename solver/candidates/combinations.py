"""Which platform, layout and precision may run a model, as far as documents, rules and figures go; memory comes after."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from solver.candidates.replica_layouts import replica_layouts
from solver.deployment.documented import (
    check_adapters_served,
    check_embedding_served,
    check_formats_documented,
    check_host_cache,
    drafts_on,
    runs_only,
    undocumented_division,
)
from solver.deployment.platforms import DiskCache, Platform, holds_host_cache
from solver.engine.profiles import keeps_in_host_memory, keeps_on_disk, scan_kernel
from solver.errors import FigureMissingError, UnsupportedError
from solver.hardware import Node
from solver.layout import Layout
from solver.llm_shape import LlmShape
from solver.memory.fits import EngineMemory, engine_memory
from solver.memory.weights import stored_bytes
from solver.precision import Precision
from solver.step.rates import Rates, rates
from solver.step.tables import GraphSizes
from solver.workload import EngineSettings, SpeculativeDecoding


@dataclass(frozen=True, slots=True)
class Dropped:
    """Why combinations were dropped before any was evaluated."""

    device_id: str
    reason: str
    detail: str
    partition: str | None = None
    """The profile, where instances of split devices were dropped."""


@dataclass(frozen=True, slots=True)
class CandidateRow:
    """One candidate: a platform, a layout, a precision; and how it drafts, where it does."""

    platform: int
    layout: Layout
    precision: Precision
    nodes_per_replica: int
    drafting: SpeculativeDecoding | None = None


@dataclass(slots=True)
class Combinations:
    """Combinations of one model, and why others were dropped.

    rows, rates: one of each a combination. memories: engines' own, each once. memory_of: by platform, its position there. as_asked: of
    platforms with smaller steps, the one whose steps are as asked.
    """

    shape: LlmShape
    platforms: tuple[Platform, ...]
    settings: EngineSettings
    drafting: SpeculativeDecoding | None
    rows: list[CandidateRow] = field(default_factory=list)
    rates: list[Rates] = field(default_factory=list)
    memories: list[EngineMemory] = field(default_factory=list)
    memory_of: dict[int, int] = field(default_factory=dict)
    as_asked: dict[int, int] = field(default_factory=dict)
    dropped: Counter[Dropped] = field(default_factory=Counter)
    _engine_memory: dict[tuple[str, str, GraphSizes], int] = field(default_factory=dict)
    """By device, engine and what it captures, a position in ``memories``."""
    _rates: dict[tuple[object, ...], Rates] = field(default_factory=dict)
    """By all that rates depend on."""

    def drop(self, index: int, reason: str, detail: str) -> None:
        """Count one more combination that a platform was dropped with, once for steps of any size."""
        if self.platforms[index].max_batched_tokens is not None:
            return
        device = self.platforms[index].device
        profile = None if device.partition is None else device.partition.profile
        self.dropped[Dropped(device.id, reason, detail, profile)] += 1

    def drop_unplanned(self, nodes: Sequence[Node], engines: tuple[str, ...]) -> None:
        """Count the nodes that none of the engines runs on."""
        planned = {node_id for platform in self.platforms for node_id in platform.node_ids}
        for node in nodes:
            if node.id not in planned:
                self.dropped[Dropped(node.device.id, "engine_not_available", runs_only(node.device, engines))] += 1

    def drop_without_host_memory(self, nodes: Sequence[Node], host_caches_bytes: Sequence[float]) -> None:
        """Count the nodes that no tier of host memory can be had on though their engine would use one."""
        if not host_caches_bytes:
            return
        able = {
            i
            for p in self.platforms
            if keeps_in_host_memory(p.engine) and p.device.partition is None
            for i in p.node_ids
        }
        for node in nodes:
            if node.id not in able or holds_host_cache(node, min(host_caches_bytes)):
                continue
            if not node.host_memory_bytes:
                self.dropped[Dropped(node.device.id, "figure_missing", "host_memory_gib")] += 1
            elif not node.device.pcie_bytes_per_s > 0.0:
                self.dropped[Dropped(node.device.id, "figure_missing", "pcie_generation")] += 1
            else:
                detail = "the host has less memory for each device than host_cache_gib"
                self.dropped[Dropped(node.device.id, "host_memory_exceeded", detail)] += 1

    def drop_without_disk(self, nodes: Sequence[Node], disk: DiskCache) -> None:
        """Count the nodes that no tier of a local disk can be had on though their engine would use one."""
        able = {i for p in self.platforms if keeps_on_disk(p.engine) and p.device.partition is None for i in p.node_ids}
        for node in nodes:
            if node.id not in able or disk.fits(node):
                continue
            if not node.local_disk_bytes:
                self.dropped[Dropped(node.device.id, "figure_missing", "local_disk_gib")] += 1
            elif not disk.rate_on(node) > 0.0:
                self.dropped[Dropped(node.device.id, "figure_missing", "local_disk_read_gbytes_per_s")] += 1
            else:
                detail = "the node has less local disk for each device than disk_cache_gib"
                self.dropped[Dropped(node.device.id, "local_disk_exceeded", detail)] += 1

    def takes_host_cache(self, index: int, kv_cache_bytes: float) -> bool:
        """Does a platform's engine start with its tier of host memory beside such a cache of a device? Else it is dropped."""
        platform = self.platforms[index]
        try:
            check_host_cache(platform.engine, platform.host_cache_bytes, kv_cache_bytes)
        except UnsupportedError as problem:
            self.drop(index, problem.reason, "")
            return False
        return True

    def admits(self, index: int) -> bool:
        """Does a platform's engine serve such a model, with every figure of its memory known? Else it is dropped."""
        platform = self.platforms[index]
        try:
            check_embedding_served(self.shape, platform.device, platform.engine)
            check_adapters_served(self.shape, platform.device, platform.engine, platform.constants)
            self.memory_of[index] = self._memory_of(platform)
        except FigureMissingError as missing:
            self.drop(index, "figure_missing", missing.figure)
            return False
        except UnsupportedError as problem:
            self.drop(index, problem.reason, str(problem))
            return False
        return True

    def _memory_of(self, platform: Platform) -> int:
        """Position of the engine's own memory there. Raises FigureMissingError."""
        captured = platform.graphs(self.shape, 1, self.settings, 1)
        key = (platform.device.id, platform.engine, captured)
        if key not in self._engine_memory:
            found = engine_memory(platform.constants.subject, platform.constants.values_si(), captured.sizes)
            self.memories.append(found)
            self._engine_memory[key] = len(self.memories) - 1
        return self._engine_memory[key]

    def add_smaller_steps(self) -> None:
        """Every combination once more with each smaller step that plans try, but for those that draft: of these nothing was measured."""
        plain: dict[int, list[int]] = {}
        for i, row in enumerate(self.rows):
            if row.drafting is None:
                plain.setdefault(row.platform, []).append(i)
        for index, members in plain.items():
            for platform in self.platforms[index].with_smaller_steps(self.shape, self.settings):
                self.memory_of[len(self.platforms)] = self._memory_of(platform)
                self.as_asked[len(self.platforms)] = index
                self.rows += [replace(self.rows[i], platform=len(self.platforms)) for i in members]
                self.rates += [self.rates[i] for i in members]
                self.platforms += (platform,)

    def add(self, index: int, weights: str, kv_formats: Sequence[str]) -> None:
        """Every legal layout of a platform with one weight format and each format of the cache."""
        platform = self.platforms[index]
        layouts = [
            one
            for one in replica_layouts(self.shape, platform, weights)
            if undocumented_division(platform.device, platform.engine, one[0]) is None
        ]
        if not layouts:
            self.drop(index, "layout_not_legal", f"no legal layout on {platform.devices}")
        for cache in kv_formats:
            self._add_layouts(index, Precision(weights, cache), layouts)

    def _add_layouts(self, index: int, precision: Precision, layouts: Sequence[tuple[Layout, int]]) -> None:
        """Those of (layout, nodes) whose rates are known, plain and drafting where the engine documents it."""
        platform = self.platforms[index]
        for layout, count in layouts:
            try:
                check_formats_documented(platform.device, platform.engine, precision)
                found = self._rates_of(platform, precision, layout, count)
            except FigureMissingError as missing:
                # Only this layout may lack it: a link, where another layout needs none.
                self.drop(index, "figure_missing", missing.figure)
                continue
            except UnsupportedError as problem:
                self.drop(index, problem.reason, str(problem))
                break
            able = drafts_on(platform.device, platform.engine, layout.pipeline_parallel)
            for drafted in dict.fromkeys((None, self.drafting if able else None)):
                self.rows.append(CandidateRow(index, layout, precision, count, drafted))
                self.rates.append(found)

    def _rates_of(self, platform: Platform, precision: Precision, layout: Layout, nodes: int) -> Rates:
        """Rates of a replica on so many nodes, worked out once for all machines that give the same.

        Raises UnsupportedError and FigureMissingError as ``rates`` does.
        """
        device = platform.device
        network = platform.network_bytes_per_s if nodes > 1 else 0.0
        profile = None if device.partition is None else device.partition.profile
        key = (
            device.id, profile, platform.engine, platform.link_domain_devices, device.pcie_bytes_per_s, network,
            precision, layout,
        )  # fmt: skip
        if key not in self._rates:
            self._rates[key] = rates(
                device, platform.constants, precision, layout,
                link_domain_devices=platform.link_domain_devices, network_bytes_per_s=network,
                beside_experts_bytes=stored_bytes(self.shape, precision.weights).matrices,
                scan_kernel=scan_kernel(platform.settings(self.shape, self.settings), device.family),
            )  # fmt: skip
        return self._rates[key]
