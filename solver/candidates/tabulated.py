"""Search spaces made: legal layouts, precisions, memory and step times of every candidate, in one table."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import fields, replace
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from solver.candidates.combinations import CandidateRow, Combinations
from solver.candidates.space import SearchSpace, fronts_of, taken_plans, twins
from solver.deployment.platforms import DiskCache, Platform, instance_platforms, platforms
from solver.engine.in_line import launches_in_line
from solver.engine.pipelining import batches_at_once
from solver.engine.speculative import expected_tokens_per_step
from solver.engine.steady import (
    Drafting,
    StepGrid,
    joined_grids,
    step_grid,
)
from solver.errors import InvalidInputError
from solver.hardware import Node
from solver.llm_shape import LlmShape
from solver.memory.table import MemoryPlans, MemoryTable, memory_table
from solver.precision import Precision
from solver.step.constants import ConstantPrior
from solver.step.rates import Rates, multiplies_narrow
from solver.step.tables import GraphSizes
from solver.workload import EngineSettings, SpeculativeDecoding

TABULATED_AT_ONCE = 512
"""Candidates: the terms of a step of so many stay in the processor's cache, and take a few megabytes; those of ten thousand take 150, which
the process keeps."""


def build_space(
    shape: LlmShape,
    nodes: Sequence[Node],
    priors: Sequence[ConstantPrior],
    weight_formats: Sequence[str],
    kv_formats: Sequence[str],
    settings: EngineSettings,
    partitions: Collection[str] = (),
    engines: tuple[str, ...] = (),
    drafting: SpeculativeDecoding | None = None,
    host_caches_bytes: Sequence[float] = (),
    disk: DiskCache | None = None,
) -> SearchSpace:
    """Tabulate all candidates of one model; combinations that cannot run are counted in ``dropped`` with reasons.

    partitions: profiles into which devices may be split. engines: those to choose among; none is each device's own.
    drafting: where engines document it, candidates are there twice, with and without. host_caches_bytes: where nodes and engines
    allow it, candidates are there with each of these tiers of host memory too, and with the disk under each.
    Raises InvalidInputError where nothing can run the model.
    """
    every = platforms(nodes, priors, settings.name, shape.id, engines, weight_formats, host_caches_bytes, disk)
    every += tuple(instance_platforms(every, nodes, partitions))
    found = Combinations(shape, every, settings, drafting)
    found.drop_unplanned(nodes, engines)
    found.drop_without_host_memory(nodes, host_caches_bytes)
    if disk is not None:
        found.drop_without_disk(nodes, disk)
    for index in range(len(every)):
        if found.admits(index):
            for weights in weight_formats:
                found.add(index, weights, kv_formats)
    if not found.rows:
        raise InvalidInputError("no device in the catalog can run this model with the engines and precisions asked for")
    found.add_smaller_steps()
    return _tabulate(found, settings)


def _tabulate(found: Combinations, settings: EngineSettings) -> SearchSpace:
    """The combinations that hold the model, in an order in which those that share an engine profile follow each other."""
    shape, every, rows = found.shape, found.platforms, found.rows
    deployments = list(dict.fromkeys((row.precision, row.layout) for row in rows))
    position = {pair: i for i, pair in enumerate(deployments)}
    # Engines differ in block length; the table uses the most common one, a difference of less than a block a request.
    first = found.memories[0]

    def table_of(tokens: int) -> MemoryTable:
        stepping = replace(settings, max_batched_tokens=tokens)
        return memory_table(
            shape, deployments, stepping, block_tokens=first.block_tokens, pooled_cache=first.pooled_cache
        )

    table = table_of(settings.max_batched_tokens)
    entries = np.array([position[row.precision, row.layout] for row in rows], dtype=np.int64)
    plans = _memory_plans(found, table, table_of, entries)
    held = _on_fewest_nodes(found, plans.fits.tolist())
    held = [i for i in held if found.takes_host_cache(rows[i].platform, float(plans.kv_cache_bytes[i]))]
    kept, captured = _by_graphs(found, held)
    chosen = [rows[i] for i in kept.tolist()]
    own = [every[row.platform] for row in chosen]
    planned = [platform.settings(shape, settings) for platform in every]
    row_rates = [found.rates[i] for i in kept.tolist()]
    cache_tokens = [float(plans.kv_cache_tokens[i]) for i in kept.tolist()]
    twin = twins([_performance_key(*one) for one in zip(chosen, own, row_rates, cache_tokens, strict=True)])
    tabulated, grid_row = np.unique(twin, return_inverse=True)
    grid = _grid(
        shape,
        [chosen[i] for i in tabulated.tolist()],
        [row_rates[i] for i in tabulated.tolist()],
        [captured[i] for i in tabulated.tolist()],
        _in_line(settings, chosen, own)[tabulated],
        _batches(shape, settings, chosen, own)[tabulated],
    )
    return SearchSpace(
        shape=shape,
        settings=settings,
        platforms=every,
        rows=tuple(chosen),
        platform_index=np.array([row.platform for row in chosen], dtype=np.int64),
        devices_per_replica=np.array([row.layout.devices for row in chosen], dtype=np.int64),
        data_parallel=np.array([row.layout.data_parallel for row in chosen], dtype=np.int64),
        nodes_per_replica=np.array([row.nodes_per_replica for row in chosen], dtype=np.int64),
        batched_tokens=np.array([planned[row.platform].max_batched_tokens for row in chosen]),
        api_servers=np.array([planned[row.platform].api_servers for row in chosen]),
        but_for_settings=twins(
            [
                (found.as_asked.get(row.platform, row.platform), row.layout, row.precision, row.drafting)
                for row in chosen
            ]
        ),
        behind_as_asked=np.arange(len(chosen), dtype=np.int64),
        memory=taken_plans(plans, kept),
        memory_table=table,
        memory_entries=entries[kept],
        grid=grid,
        grid_row=grid_row,
        fronts=fronts_of(shape, settings, own),
        weight_formats=np.array([row.precision.weights for row in chosen]),
        kv_formats=np.array([row.precision.kv_cache for row in chosen]),
        narrow=np.array(
            [multiplies_narrow(p.device, row.precision.weights) for p, row in zip(own, chosen, strict=True)],
            dtype=np.bool_,
        ),
        memory_bandwidth=np.array([one.peak_bytes_per_s for one in row_rates], dtype=float),
        matrix_rate=np.array([one.peak_flop_per_s for one in row_rates], dtype=float),
        power_limit_w=np.array([platform.device.power_limit_w for platform in own]),
        twin=twin,
        dropped=found.dropped,
    )


def _memory_plans(
    found: Combinations, asked: MemoryTable, table_of: Callable[[int], MemoryTable], entries: NDArray[np.int64]
) -> MemoryPlans:
    """Memory of every combination, each with the largest step that its platform takes. asked: of the steps that are asked."""
    own = [found.platforms[row.platform] for row in found.rows]
    device_bytes = np.array([platform.device.memory_bytes for platform in own])
    index = np.array([found.memory_of[row.platform] for row in found.rows], dtype=np.int64)
    plans = asked.plans(entries, device_bytes, found.memories, index)
    smaller = np.array([platform.max_batched_tokens or 0 for platform in own])
    for tokens in np.unique(smaller[smaller > 0]).tolist():
        mine = np.flatnonzero(smaller == tokens)
        of_step = table_of(tokens).plans(entries[mine], device_bytes[mine], found.memories, index[mine])
        for name in MemoryPlans.__slots__:
            getattr(plans, name)[mine] = getattr(of_step, name)
    return plans


def _on_fewest_nodes(found: Combinations, fits: Sequence[bool]) -> list[int]:
    """Positions of the combinations that hold the model and a request; those that do not are counted as dropped.

    A model is spread over nodes only as far as it must be: the fewest nodes that hold it, per platform and precision. Raises
    InvalidInputError where nothing holds it.
    """
    least: dict[tuple[int, Precision], int] = {}
    for row, ok in zip(found.rows, fits, strict=True):
        if ok:
            pair = (row.platform, row.precision)
            least[pair] = min(least.get(pair, row.nodes_per_replica), row.nodes_per_replica)
        else:
            found.drop(row.platform, "does_not_fit", "weights and one request exceed the memory")
    keep = [
        i for i, (row, ok) in enumerate(zip(found.rows, fits, strict=True))
        if ok and row.nodes_per_replica == least[row.platform, row.precision]
    ]  # fmt: skip
    if not keep:
        raise InvalidInputError(
            "the model fits no device or group of nodes in the catalog with the engines and precisions asked for"
        )
    return keep


def _by_graphs(found: Combinations, keep: Sequence[int]) -> tuple[NDArray[np.int64], list[GraphSizes]]:
    """(positions, captured graphs) in the order of what is captured: batch sizes differ by engine, and with some by device."""
    rows = [found.rows[i] for i in keep]
    own = [found.platforms[row.platform] for row in rows]
    known: dict[tuple[int, int, int], GraphSizes] = {}
    captured = []
    for row, platform in zip(rows, own, strict=True):
        key = row.platform, row.layout.tensor_parallel, _queries(row)
        if key not in known:
            known[key] = platform.graphs(found.shape, key[1], found.settings, key[2])
        captured.append(known[key])
    order = sorted(range(len(keep)), key=lambda i: (own[i].engine, captured[i].sizes))
    return np.array([keep[i] for i in order], dtype=np.int64), [captured[i] for i in order]


def _queries(row: CandidateRow) -> int:
    """Tokens of one sequence in a decode step."""
    return 1 if row.drafting is None else row.drafting.draft_tokens + 1


def _grid(
    shape: LlmShape,
    rows: Sequence[CandidateRow],
    row_rates: Sequence[Rates],
    captured: Sequence[GraphSizes],
    in_line: NDArray[np.bool_],
    batches: NDArray[np.float64],
) -> StepGrid:
    """Step times of all candidates, tabulated together where the same graphs are captured, a number at a time: each row's are its own."""
    grids: list[StepGrid] = []
    start = 0
    while start < len(rows):
        stop, most = start, min(start + TABULATED_AT_ONCE, len(rows))
        while stop < most and captured[stop] == captured[start]:
            stop += 1
        stacked = _stacked(row_rates[start:stop])
        stages = np.array([[float(row.layout.pipeline_parallel)] for row in rows[start:stop]])
        copies = np.array([[float(row.layout.data_parallel)] for row in rows[start:stop]])
        drafting = _drafting([row.drafting for row in rows[start:stop]])
        loops = in_line[start:stop], batches[start:stop]
        grids.append(step_grid(shape, stacked, stages, copies, captured[start], drafting, *loops))
        start = stop
    return joined_grids(grids)


def _in_line(settings: EngineSettings, rows: Sequence[CandidateRow], own: Sequence[Platform]) -> NDArray[np.bool_]:
    """Whose steps are launched by the loop that composes them, a column."""
    return np.array(
        [
            [launches_in_line(platform.engine, release, row.layout)]
            for row, platform, release in zip(rows, own, _releases(settings, own), strict=True)
        ]
    )


def _batches(
    shape: LlmShape, settings: EngineSettings, rows: Sequence[CandidateRow], own: Sequence[Platform]
) -> NDArray[np.float64]:
    """On how many batches the pipeline stages of a copy work at once, a column."""
    return np.array(
        [
            [float(batches_at_once(platform.engine, release, shape, row.layout.pipeline_parallel))]
            for row, platform, release in zip(rows, own, _releases(settings, own), strict=True)
        ]
    )


def _releases(settings: EngineSettings, own: Sequence[Platform]) -> list[str | None]:
    """The release of each row's engine: that asked for, or None where none is."""
    return [settings.version if platform.engine == settings.name else None for platform in own]


def _stacked(items: Sequence[Rates]) -> Rates:
    """Many candidates' rates as one, each field an (N, 1) array."""
    names = [f.name for f in fields(Rates)]
    table = np.array([*map(attrgetter(*names), items)], dtype=float)
    return Rates(**{name: table[:, i : i + 1] for i, name in enumerate(names)})


def _performance_key(row: CandidateRow, platform: Platform, own: Rates, kv_cache_tokens: float) -> tuple[object, ...]:
    """All that a candidate's performance depends on: the machine it stands in only by its path to the host's memory."""
    host = (platform.host_cache_bytes, platform.device.pcie_bytes_per_s) if platform.host_cache_bytes else None
    disk = (platform.disk_cache_bytes, platform.disk_bytes_per_s)
    return (
        own, row.layout, row.precision, kv_cache_tokens, platform.engine, id(platform.constants), platform.device.id,
        platform.device.partition, row.drafting, host, disk, platform.max_batched_tokens,
    )  # fmt: skip


def _drafting(each: Sequence[SpeculativeDecoding | None]) -> Drafting | None:
    """How candidates draft; a draft model of its own shape is not searched."""
    if not any(each):
        return None

    def column(of: Callable[[SpeculativeDecoding], float], plain: float) -> NDArray[np.float64]:
        return np.array([[plain if one is None else of(one)] for one in each])

    return Drafting(
        column(lambda one: one.draft_tokens + 1.0, 1.0),
        column(lambda one: expected_tokens_per_step(one.draft_tokens, one.acceptance_fraction), 1.0),
        column(lambda one: one.draft_tokens * (one.draft_step_fraction or 0.0), 0.0),
    )
