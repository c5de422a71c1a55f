"""Event simulation of one engine replica with continuous batching.

The scheduler is replayed as docs/mathematics.md ("The scheduler") states it. Between scheduling events nothing but
decoding happens, and there the step time is affine in the summed context, so a stretch of K steps is one event:

    K·a + g·(K·S + n·K·(K−1)/2)            a: step without context, g: seconds per context token, S: summed context

The cost of a run therefore grows with the number of requests, not of tokens.
"""

import heapq
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from solver.engine.replayable import Prefixes
from solver.engine.simulate import Schedule
from solver.step.blocks import attention_pairs
from solver.step.tables import StepTables

_GONE = (-1, 0.0)


@dataclass(slots=True)
class Trace:
    """What happened: per-request times in seconds (index = request), and totals of the run.

    gaps: (seconds between tokens, how many such gaps). bytes and flops are per rank.
    """

    time_to_first_token_s: list[float]
    time_per_output_token_s: list[float]
    end_to_end_s: list[float]
    completed_s: list[float] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    clients: int = 0
    duration_s: float = 0.0
    output_tokens: int = 0
    prompt_tokens: int = 0
    busy_s: float = 0.0
    bytes: float = 0.0
    flops: float = 0.0
    preemptions: int = 0
    events: int = 0
    steps: int = 0
    gaps: list[tuple[float, float]] = field(default_factory=list)


def simulate(
    tables: StepTables,
    schedule: Schedule,
    prompts: Sequence[int],
    outputs: Sequence[int],
    *,
    concurrency: int = 0,
    arrivals_s: Sequence[float] | None = None,
    prefixes: Prefixes | None = None,
) -> Trace:
    """Replay requests through the engine: a closed loop of ``concurrency`` clients, or given arrival times.

    prompts, outputs: tokens per request, in order of sending. outputs are at least 1. prefixes: what of each prompt is
    cached; None: the schedule's share of every prompt, of one prefix.
    Raises InvalidInputError for inconsistent arguments, a prompt that exceeds the KV cache, or too many requests.
    """
    count = len(prompts)
    if prefixes is None:
        cached = [int(p * schedule.cached_prefix_fraction) for p in prompts]
        prefixes = Prefixes(cached, max(cached, default=0))
    s = schedule
    decode_s, mixed_s, head_s, draft_s, decode_bytes, mixed_bytes, head_bytes = (
        np.asarray(column).tolist()
        for column in (
            tables.decode_s, tables.mixed_s, tables.head_s, tables.draft_s,
            tables.decode_bytes, tables.mixed_bytes, tables.head_bytes,
        )
    )  # fmt: skip
    sequence_s, pair_laws = tables.sequence_s, tables.pairs
    slack, capacity = s.block_slack_tokens, s.kv_cache_tokens
    # Attention that sees the whole context costs one multiplication; windows need the mean context of the moment.
    windowed = tables.windowed
    context_slope, context_size = tables.context_slope, tables.context_size
    pair_slope, pair_flops = (sum(law[i] for law in pair_laws) for i in (1, 2))
    token_flops, head_flops, sustained = tables.flops_per_token, tables.head_flops, tables.sustained_flop_per_s
    chunked, mixes, preempts, static = s.chunked_prefill, s.mixes, s.preempts, s.static_batching
    longest = len(mixed_s) - 1
    exp = math.exp
    front_s, half_s, lag, gain = s.token_front_end_s, s.request_overhead_s / 2.0, s.lag_fraction, s.tokens_per_step
    budget_tokens, seats, width = s.max_batched_tokens, s.max_sequences, s.query_tokens
    cached, shared = prefixes.cached_tokens, prefixes.held_tokens

    sent = [0.0] * count
    first = [0.0] * count
    last = [0.0] * count
    trace = Trace([], [], [])
    upcoming: list[tuple[float, int]] = []  # (ready, request) not yet in the queue
    ingest = 0.0

    def send(request: int, at: float) -> None:
        nonlocal ingest
        sent[request] = at
        ingest = max(ingest, at + half_s) + s.request_ingest_s + s.prompt_token_s * prompts[request]
        heapq.heappush(upcoming, (ingest, request))

    if arrivals_s is not None:
        unsent = count
        for i, at in enumerate(arrivals_s):
            send(i, at)
    else:
        unsent = min(concurrency, count)
        for i in range(unsent):
            send(i, 0.0)

    # request -> (step at which it finishes, its context at step 0 had it run since); insertion order = admission order
    running: dict[int, tuple[int, float]] = {}
    finishing: list[tuple[int, int]] = []  # heap of (step, request); stale entries are skipped
    partial: deque[list[int]] = deque()  # [request, tokens done, tokens to do] in prefill
    preempted: deque[int] = deque()
    resume: dict[int, int] = {}  # preempted request -> output tokens it already has
    waiting: deque[int] = deque()
    context = 0.0  # summed context of running sequences
    reserved = float(shared)  # KV tokens of prompts in prefill, plus the shared prefix once
    contending = s.contending_lanes
    lane_s = s.lane_step_s if contending else 0.0
    promised = float(shared)  # the same for engines that never evict: whole requests, output included
    headroom, sag, settling = s.clock_headroom_fraction, s.clock_sag_fraction, s.clock_settling_s
    heat = 0.0  # 0: rested, 1: at the sustained clock
    prefilling = 0.0  # share of the recent past in which this batch had prompts of its own
    copies = s.lockstep_copies + contending  # batches that wait for this one, and it for them
    owed = waited = 0.0  # what replies have yet to wait for prompts of those, and what they wait in one step
    now = front = previous = 0.0
    step = done = 0
    blocked = False

    moved = flops = busy = 0.0
    events = total_steps = 0
    gaps = trace.gaps

    def finish(request: int) -> None:
        nonlocal done, unsent, promised
        last[request] = front + half_s
        done += 1
        promised -= prompts[request] - cached[request] + outputs[request]
        if arrivals_s is None and unsent < count:
            send(unsent, front + half_s)
            unsent += 1

    def retire(held: float) -> float:
        """Complete every sequence that ends at this step; the summed context that is left."""
        nonlocal blocked
        while finishing and finishing[0][0] <= step:
            ends, request = heapq.heappop(finishing)
            entry = running.get(request, _GONE)
            if entry[0] == ends:
                del running[request]
                held -= entry[1] + gain * step
                blocked = False
                finish(request)
        return held if running else 0.0

    def join(request: int, need: int, have: int) -> None:
        """Start decoding a sequence whose cache holds its prompt and ``have`` outputs, with the next one sampled."""
        ends = step + max(1, math.ceil((outputs[request] - have - 1) / gain))
        running[request] = (ends, need + have + 1 - gain * step)
        heapq.heappush(finishing, (ends, request))

    def evict(context: float, reserved: float) -> tuple[float, float]:
        """Send the latest admitted back to the queue; the context and the reserve that are left."""
        nonlocal blocked
        if partial:
            victim, _, need = partial.pop()
            reserved -= need
        else:
            victim, (ends, base) = running.popitem()
            resume[victim] = max(1, min(outputs[victim] - math.ceil((ends - step) * gain), outputs[victim] - 1))
            context -= base + gain * step
        preempted.appendleft(victim)
        trace.preemptions += 1
        blocked = True
        return context, reserved

    def read() -> float:
        """Context that attention reads: the shared prefix once, and part of a read for each further sequence that has it."""
        each = sum(cached[request] for request in running)
        once = min(shared, each)
        return context + once + tables.shared_read_fraction * (each - once)

    while done < count:
        events += 1
        sequences = len(running)
        idle = not (sequences or partial or preempted or waiting)
        if idle:
            now = max(now, upcoming[0][0])
            previous = 0.0
        cutoff = now - lag * previous
        while upcoming and upcoming[0][0] <= cutoff:
            waiting.append(heapq.heappop(upcoming)[1])
        may_admit = (preempted or waiting) and not blocked and not (static and sequences)
        if partial or may_admit:
            if preempts and mixes and sequences:
                seated = sequences + len(partial)
                if capacity - context - reserved - slack * seated < sequences * gain and seated > 1:
                    context, reserved = evict(context, reserved)
                    continue
            budget = budget_tokens - (sequences * width if mixes else 0)
            work = 0
            pair_time = 0.0
            first_tokens: list[int] = []
            taken = 0
            while budget > 0:
                if taken < len(partial):
                    entry = partial[taken]
                else:
                    if not (preempted or waiting) or blocked:
                        break
                    if sequences + len(partial) >= seats:
                        blocked = True
                        break
                    request = preempted[0] if preempted else waiting[0]
                    have = resume.get(request, 0)
                    need = prompts[request] - cached[request] + have
                    whole = need + outputs[request] - have
                    held = context + reserved + need if preempts else promised + whole
                    if held + slack * (sequences + len(partial) + 1) > capacity and (sequences or partial):
                        blocked = True
                        break
                    if not chunked and work and need > budget:
                        break
                    (preempted if preempted else waiting).popleft()
                    promised += whole
                    if s.prefilled and have == 0:
                        first[request] = sent[request]
                        join(request, need, 0)
                        context += need + 1
                        sequences += 1
                        continue
                    reserved += need
                    entry = [request, 0, need]
                    partial.append(entry)
                request, have_done, need = entry
                chunk = need - have_done if not chunked else min(need - have_done, budget)
                start = cached[request] + have_done
                if windowed:
                    for limit, seconds, each in pair_laws:
                        pairs = attention_pairs(chunk, start, limit)
                        pair_time += seconds * pairs
                        flops += each * pairs
                else:
                    pairs = chunk * (start + chunk / 2.0)
                    pair_time += pair_slope * pairs
                    flops += pair_flops * pairs
                entry[1] += chunk
                work += chunk
                budget -= chunk
                if entry[1] >= need:
                    first_tokens.append(request)
                taken += 1
            if work or partial:
                decoding = sequences if mixes else 0
                refused = blocked or static
                tokens = work + decoding * width
                rows = decoding * width + len(first_tokens)
                # A prompt that is not cut may exceed the table: its time grows in proportion.
                duration = mixed_s[tokens] if tokens <= longest else mixed_s[longest] * tokens / longest
                duration += head_s[rows] + pair_time + decoding * sequence_s + lane_s
                attention_s = 0.0
                if decoding:
                    if draft_s:
                        duration += draft_s[decoding]
                    if windowed:
                        attention_s = tables.context_s(decoding, read())[0]
                        moved += tables.context_bytes(decoding, read())
                    else:
                        attention_s = context_slope * read()
                        moved += context_size * read()
                    duration += attention_s
                if copies:
                    extra = duration - decode_s[decoding if decoding > 1 else 1] - attention_s
                    if extra > 0.0:
                        if contending:
                            duration += s.lane_slowed_fraction * extra
                            extra += s.lane_slowed_fraction * extra
                        without = none = 1.0 - prefilling
                        for _ in range(copies - 1):
                            none *= without
                        beside = without * (1.0 - none) / prefilling if prefilling >= 1e-9 else float(copies)
                        waited = extra
                        owed += extra * beside
                moved += mixed_bytes[tokens if tokens <= longest else longest] + head_bytes[rows]
                step_flops = token_flops * tokens + head_flops * rows
                flops += step_flops
                # A step that waits for the host or for memory leaves the board below its sustained power.
                target = step_flops / (sustained * duration)
                if target > 1.0:
                    target = 1.0
                cooling = exp(-duration / settling)
                duration -= headroom * (1.0 - heat) * (1.0 - cooling) * settling
                heat = target + (heat - target) * cooling
                prefilling = 1.0 - (1.0 - prefilling) * cooling
                now += duration
                busy += duration
                total_steps += 1
                before = front
                front = (front if front > now else now) + rows * front_s
                previous = duration
                if decoding:
                    step += 1
                    context += decoding * gain
                    gaps.append((front - before, decoding * gain))
                for request in first_tokens:
                    partial.popleft()
                    need = prompts[request] - cached[request]
                    have = resume.pop(request, 0)
                    reserved -= need + have
                    if have == 0:
                        first[request] = front + half_s
                        trace.prompt_tokens += prompts[request]
                    remaining = outputs[request] - have - 1
                    if remaining <= 0:
                        blocked = False
                        finish(request)
                        continue
                    context += need + have + 1
                    join(request, need, have)
                if decoding:
                    context = retire(context)
                if first_tokens and not running:
                    blocked = False
                if refused and not (running or partial):
                    previous = 0.0
                continue
        # Decode only: run to the next completion, the next arrival that could join, or a full cache.
        if not sequences:
            blocked = False
            continue
        start_s = decode_s[sequences] + head_s[sequences * width] + sequences * sequence_s + lane_s
        if windowed:
            context_now, slope = tables.context_s(sequences, read())
            start_s += context_now
            growth = slope * sequences * gain
        else:
            start_s += context_slope * read()
            growth = context_slope * sequences * gain
        while running.get(finishing[0][1], _GONE)[0] != finishing[0][0]:
            heapq.heappop(finishing)
        steps = finishing[0][0] - step
        slowed = 1.0 + sag * heat
        if preempts:
            free = capacity - context - reserved - slack * (sequences + len(partial))
            fit = int(free / (sequences * gain))
            if fit < 1 and sequences > 1:
                context, reserved = evict(context, reserved)
                continue
            if fit < steps:
                steps = fit if fit > 1 else 1
        if upcoming and not blocked and not static:
            until = _steps_until(upcoming[0][0] - now, start_s * slowed, growth * slowed, lag)
            if until < steps:
                steps = until
        waiting_s = 0.0
        if owed > 0.0:
            waiting_s = owed if owed < waited else waited
            owed -= waiting_s
            start_s += waiting_s
            steps = 1
        duration = steps * start_s + growth * steps * (steps - 1) / 2.0
        produced = steps * sequences * gain
        moved += steps * (decode_bytes[sequences] + head_bytes[sequences * width])
        middle = read() + sequences * gain * (steps - 1) / 2.0
        moved += steps * (tables.context_bytes(sequences, middle) if windowed else context_size * middle)
        work_flops = (token_flops + head_flops) * (steps * sequences * width)
        flops += work_flops
        target = work_flops / (sustained * duration)
        if target > 1.0:
            target = 1.0
        cooling = exp(-duration / settling)
        # The heat of the stretch on average; it runs on unslowed time, so that a stretch cut in two takes as long.
        warm = target + (heat - target) * (1.0 - cooling) * settling / duration
        heat = target + (heat - target) * cooling
        prefilling *= exp((waiting_s - duration) / settling) if contending and waiting_s else cooling
        duration *= 1.0 + sag * warm
        now += duration
        busy += duration
        total_steps += steps
        before = front
        backlog = front + produced * front_s
        front = now + sequences * gain * front_s
        if backlog > front:
            front = backlog
        gaps.append(((front - before) / (steps * gain), produced))
        previous = (start_s + growth * (steps - 1)) * (1.0 + sag * heat)
        step += steps
        context += produced
        refused = blocked or static
        context = retire(context)
        if refused and not running:
            previous = 0.0

    trace.bytes, trace.flops, trace.busy_s, trace.events, trace.steps = moved, flops, busy, events, total_steps
    trace.time_to_first_token_s = [a - b for a, b in zip(first, sent, strict=True)]
    trace.end_to_end_s = [a - b for a, b in zip(last, sent, strict=True)]
    trace.time_per_output_token_s = [
        (b - a) / (n - 1) if n > 1 else 0.0 for a, b, n in zip(first, last, outputs, strict=True)
    ]
    trace.completed_s = last
    trace.outputs = list(outputs)
    trace.clients = concurrency
    trace.duration_s = max(last, default=0.0) - min(sent, default=0.0)
    trace.output_tokens = sum(outputs)
    return trace


def _steps_until(wait_s: float, start_s: float, growth_s: float, lag: float) -> int:
    """Smallest number of decode steps after which a request that is ready in ``wait_s`` may join.

    Solves k·a + g·k·(k−1)/2 ≥ wait + lag·a for k.
    """
    need = wait_s + lag * start_s
    if need <= start_s:
        return 1
    if growth_s <= 1e-12 * start_s:
        return max(1, math.ceil(need / start_s))
    half = start_s - growth_s / 2.0
    return max(1, math.ceil((math.sqrt(half * half + 2.0 * growth_s * need) - half) / growth_s))
