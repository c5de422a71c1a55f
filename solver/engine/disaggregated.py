"""Disaggregated serving: one pool of replicas prefills, another decodes, and the KV cache travels between them.

    arrival → prefill replica → first token → transfer of prompt · bytes a token → decode replica → last token

Zhong et al., DistServe (arXiv:2401.09670), and Patel et al., Splitwise (arXiv:2311.18677). Nothing flows back, so the
pools are simulated one after the other and the result is exact for arrivals that do not depend on completions.
Requests are dealt to replicas in turn, in both pools.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from solver.engine.simulate import Schedule, Trace, simulate
from solver.errors import InvalidInputError
from solver.llm_shape import LlmShape
from solver.memory_cache import request_cache
from solver.step.collectives import transfer_s
from solver.step.tables import StepTables


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
    which end in the prefill pool. gaps: (seconds between tokens, how many such gaps), the hand-over's among them.
    prefill_work, decode_work: (bytes, FLOPs) per rank, summed over the replicas of the pool.
    """

    time_to_first_token_s: list[float]
    time_per_output_token_s: list[float]
    end_to_end_s: list[float]
    transfer_s: list[float]
    output_tokens: int
    duration_s: float
    prefill_busy_fraction: float
    link_busy_fraction: float
    decode_busy_fraction: float
    preemptions: int
    gaps: list[tuple[float, float]] = field(default_factory=list)
    prefill_work: tuple[float, float] = (0.0, 0.0)
    decode_work: tuple[float, float] = (0.0, 0.0)

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
    cache_bytes: Sequence[float],
    prompts: Sequence[int],
    outputs: Sequence[int],
    arrivals_s: Sequence[float],
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
    order = sorted(range(count), key=lambda i: arrivals_s[i])
    first = [0.0] * count
    arrived = [0.0] * count
    link_busy = prefill_busy = 0.0
    prefill_bytes = prefill_flops = decode_bytes = decode_flops = 0.0
    gaps: list[tuple[float, float]] = []
    for replica in range(prefill.replicas):
        mine = order[replica :: prefill.replicas]
        if not mine:
            continue
        trace = _run(prefill, [prompts[i] for i in mine], [1] * len(mine), [arrivals_s[i] for i in mine])
        prefill_busy += trace.busy_s
        prefill_bytes, prefill_flops = prefill_bytes + trace.bytes, prefill_flops + trace.flops
        ready = [arrivals_s[i] + t for i, t in zip(mine, trace.time_to_first_token_s, strict=True)]
        free = 0.0
        for at, i in sorted(zip(ready, mine, strict=True)):
            first[i] = at
            if outputs[i] > 1:
                seconds = kv_transfer_s(cache_bytes[i], link)
                free = max(free, at) + seconds
                link_busy += seconds
                arrived[i] = free
    last = list(first)
    decoding = sorted((i for i in range(count) if outputs[i] > 1), key=lambda i: arrived[i])
    decode_busy, preemptions = 0.0, 0
    handed_over = replace(
        decode,
        schedule=replace(
            decode.schedule, prefilled=True, request_overhead_s=0.0, request_ingest_s=0.0, prompt_token_s=0.0
        ),
    )
    for replica in range(decode.replicas):
        mine = decoding[replica :: decode.replicas]
        if not mine:
            continue
        joins = [arrived[i] for i in mine]
        trace = _run(handed_over, [prompts[i] for i in mine], [outputs[i] for i in mine], joins)
        decode_busy += trace.busy_s
        preemptions += trace.preemptions
        decode_bytes, decode_flops = decode_bytes + trace.bytes, decode_flops + trace.flops
        gaps += trace.gaps
        for i, since, seconds in zip(mine, joins, trace.end_to_end_s, strict=True):
            last[i] = since + seconds
            # The pool counts the second token's gap from the cache's arrival; the client waits for the transfer too.
            gaps.append((arrived[i] - first[i] + seconds / (outputs[i] - 1), 1.0))
    duration = max(last) - min(arrivals_s)
    return DisaggregatedTrace(
        time_to_first_token_s=[first[i] - arrivals_s[i] for i in range(count)],
        time_per_output_token_s=[
            (last[i] - first[i]) / (outputs[i] - 1) if outputs[i] > 1 else 0.0 for i in range(count)
        ],
        end_to_end_s=[last[i] - arrivals_s[i] for i in range(count)],
        transfer_s=[arrived[i] - first[i] if outputs[i] > 1 else 0.0 for i in range(count)],
        output_tokens=sum(outputs),
        duration_s=duration,
        prefill_busy_fraction=prefill_busy / (duration * prefill.replicas),
        link_busy_fraction=link_busy / (duration * prefill.replicas),
        decode_busy_fraction=decode_busy / (duration * decode.replicas),
        preemptions=preemptions,
        gaps=gaps,
        prefill_work=(prefill_bytes, prefill_flops),
        decode_work=(decode_bytes, decode_flops),
    )


def _run(pool: Pool, prompts: Sequence[int], outputs: Sequence[int], arrivals_s: Sequence[float]) -> Trace:
    return simulate(pool.tables, pool.schedule, prompts, outputs, arrivals_s=arrivals_s)
