"""Disaggregated serving: one pool of replicas prefills, another decodes, and the KV cache travels between them.

    arrival → prefill replica → first token → transfer of prompt · bytes a token → decode replica → last token

Zhong et al., DistServe (arXiv:2401.09670), and Patel et al., Splitwise (arXiv:2311.18677). Nothing flows back, so the
pools are simulated one after the other and the result is exact for arrivals that do not depend on completions.
Requests are dealt to replicas in turn, in both pools.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from solver.engine.simulate import Schedule, SimulationTrace, Vector, Whole, per_output_token_s, simulate
from solver.errors import InvalidInputError
from solver.llm_shape import LlmShape
from solver.memory.kv_cache import request_cache
from solver.step.collectives import transfer_s
from solver.step.tables import StepTables

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Pool:
    """Identical replicas (or pipeline lanes) of one kind."""

    tables: StepTables
    schedule: Schedule
    replicas: int


@dataclass(frozen=True, slots=True)
class KvLink:
    """What a prefill replica sends through: its share of the link in one direction, at the rate transfers reach."""

    bytes_per_s: float
    latency_s: float


@dataclass(frozen=True, slots=True)
class DisaggregatedTrace:
    """Per request, in seconds, in order of arrival; and the share of time each part was at work.

    transfer_s: from the first token to the cache's arrival, waiting for the link included. 0 for one-token replies,
    which end in the prefill pool. gaps: rows of (seconds between tokens, how many such gaps), the hand-over's among them.
    prefill_work, decode_work: (bytes, FLOPs) per rank, summed over the replicas of the pool.
    """

    time_to_first_token_s: Vector
    time_per_output_token_s: Vector
    end_to_end_s: Vector
    transfer_s: Vector
    output_tokens: int
    duration_s: float
    prefill_busy_fraction: float
    link_busy_fraction: float
    decode_busy_fraction: float
    preemptions: int
    gaps: Vector
    prefill_work: tuple[float, float]
    decode_work: tuple[float, float]

    @property
    def output_tokens_per_s(self) -> float:
        return self.output_tokens / self.duration_s


def prompt_cache_bytes(shape: LlmShape, kv_cache: str, prompt_tokens: int, tensor_parallel: int = 1) -> float:
    """KV cache and state of one prompt over all devices of a replica, which is what travels.

    Heads that tensor parallelism copies are sent once by each device that holds them.
    """
    return request_cache(shape, kv_cache, tensor_parallel).bytes_at(max(1, prompt_tokens)) * tensor_parallel


def kv_transfer_s(cache_bytes: float, link: KvLink) -> float:
    """Seconds one prompt's cache takes on a free link: latency + bytes / rate.

    A prompt of 1,000 tokens of Llama-3-70B over 50 GB/s: 327,680,000 / 50e9 = 6.6 ms.

    >>> round(kv_transfer_s(327_680_000.0, KvLink(50e9, 0.0)), 5)
    0.00655
    """
    return float(transfer_s(cache_bytes, link.bytes_per_s, link.latency_s))


def simulate_disaggregated(
    prefill: Pool,
    decode: Pool,
    link: KvLink,
    cache_bytes: Sequence[float] | Vector,
    prompts: Sequence[int] | Whole,
    outputs: Sequence[int] | Whole,
    arrivals_s: Sequence[float] | Vector,
) -> DisaggregatedTrace:
    """Replay arrivals through both pools.

    cache_bytes: of each request's prompt (see ``prompt_cache_bytes``). The decode pool's front end takes no part in
    the hand-over: its request overhead is not counted a second time.
    Raises InvalidInputError for pools or a link that cannot work, and what ``simulate`` raises.
    """
    count = len(prompts)
    if prefill.replicas < 1 or decode.replicas < 1:
        raise InvalidInputError("each pool needs at least one replica")
    if not link.bytes_per_s > 0 or link.latency_s < 0:
        raise InvalidInputError("the link between the pools needs a rate")
    if not count == len(outputs) == len(arrivals_s) == len(cache_bytes):
        raise InvalidInputError("one output length, one arrival and one cache size for each prompt")
    prompts, outputs = np.asarray(prompts, dtype=np.int64), np.asarray(outputs, dtype=np.int64)
    came_s, sizes = np.asarray(arrivals_s, dtype=np.float64), np.asarray(cache_bytes, dtype=np.float64)
    several = outputs > 1
    prefilled = _prefill(prefill, link, sizes, prompts, several, came_s)
    first_s, arrived_s = prefilled.first_s, prefilled.arrived_s
    decoded = _decode(decode, prompts, outputs, first_s, arrived_s)
    last_s = decoded.last_s
    duration = float(last_s.max() - came_s.min())
    return DisaggregatedTrace(
        time_to_first_token_s=first_s - came_s,
        time_per_output_token_s=per_output_token_s(first_s, last_s, outputs),
        end_to_end_s=last_s - came_s,
        transfer_s=np.where(several, arrived_s - first_s, 0.0),
        output_tokens=int(outputs.sum()),
        duration_s=duration,
        prefill_busy_fraction=prefilled.busy_s / (duration * prefill.replicas),
        link_busy_fraction=prefilled.link_busy_s / (duration * prefill.replicas),
        decode_busy_fraction=decoded.busy_s / (duration * decode.replicas),
        preemptions=decoded.preemptions,
        gaps=decoded.gaps,
        prefill_work=prefilled.work,
        decode_work=decoded.work,
    )


@dataclass(frozen=True, slots=True)
class _Prefilled:
    """When each request's first token was out and its cache had arrived, in seconds; work: (bytes, FLOPs) per rank."""

    first_s: Vector
    arrived_s: Vector
    busy_s: float
    link_busy_s: float
    work: tuple[float, float]


def _prefill(pool: Pool, link: KvLink, sizes: Vector, prompts: Whole, several: Mask, came_s: Vector) -> _Prefilled:
    """Every prompt to its first token, and the caches of those that need ``several`` through their replica's link."""
    order = np.argsort(came_s, kind="stable")
    first_s, arrived_s = np.zeros(len(prompts)), np.zeros(len(prompts))
    busy = link_busy = size = flops = 0.0
    for replica in range(pool.replicas):
        mine = order[replica :: pool.replicas]
        if not len(mine):
            continue
        trace = _run(pool, prompts[mine], np.ones_like(mine), came_s[mine])
        busy, size, flops = busy + trace.busy_s, size + trace.bytes, flops + trace.flops
        first_s[mine] = came_s[mine] + trace.time_to_first_token_s
        leaving = mine[several[mine]]
        leaving = leaving[np.lexsort((leaving, first_s[leaving]))]
        free = 0.0
        for i, at, cache in zip(leaving.tolist(), first_s[leaving].tolist(), sizes[leaving].tolist(), strict=True):
            seconds = kv_transfer_s(cache, link)
            free = max(free, at) + seconds
            link_busy += seconds
            arrived_s[i] = free
    return _Prefilled(first_s, arrived_s, busy, link_busy, (size, flops))


@dataclass(frozen=True, slots=True)
class _Decoded:
    """When each request's last token was out in seconds; work: (bytes, FLOPs) per rank."""

    last_s: Vector
    busy_s: float
    preemptions: int
    work: tuple[float, float]
    gaps: Vector


def _decode(pool: Pool, prompts: Whole, outputs: Whole, first_s: Vector, arrived_s: Vector) -> _Decoded:
    """Every reply of several tokens to its end, from when its prompt's cache had arrived."""
    last_s = first_s.copy()
    several = np.flatnonzero(outputs > 1)
    order = several[np.argsort(arrived_s[several], kind="stable")]
    handed_over = replace(
        pool,
        schedule=replace(
            pool.schedule, prefilled=True, request_overhead_s=0.0, request_ingest_s=0.0, prompt_token_s=0.0
        ),
    )
    busy = size = flops = 0.0
    preemptions = 0
    gaps = [np.zeros((0, 2))]
    for replica in range(pool.replicas):
        mine = order[replica :: pool.replicas]
        if not len(mine):
            continue
        joins = arrived_s[mine]
        trace = _run(handed_over, prompts[mine], outputs[mine], joins)
        busy, size, flops = busy + trace.busy_s, size + trace.bytes, flops + trace.flops
        preemptions += trace.preemptions
        last_s[mine] = joins + trace.end_to_end_s
        # The pool counts the second token's gap from the cache's arrival; the client waits for the transfer too.
        second = joins - first_s[mine] + trace.end_to_end_s / (outputs[mine] - 1)
        gaps += [trace.gaps, np.column_stack([second, np.ones(len(mine))])]
    return _Decoded(last_s, busy, preemptions, (size, flops), np.concatenate(gaps))


def _run(pool: Pool, prompts: Whole, outputs: Whole, arrivals_s: Vector) -> SimulationTrace:
    return simulate(pool.tables, pool.schedule, prompts, outputs, arrivals_s=arrivals_s)
