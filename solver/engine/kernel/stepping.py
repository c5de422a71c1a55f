"""One scheduling event after the other, and what Python calls."""

import math

from solver.engine.kernel.admission import cache_is_full, evict, retire, send
from solver.engine.kernel.compiled import entry, inner
from solver.engine.kernel.completions import next_end
from solver.engine.kernel.launching import composed_before_end_s, handed_on_after_s
from solver.engine.kernel.line import join_line, next_there, notice
from solver.engine.kernel.prefill import sample_first_tokens, take_prompts
from solver.engine.kernel.prefixes import forget, free_tokens
from solver.engine.kernel.records import Column, Gaps, Queues, Requests, Rules, State, Tables
from solver.engine.kernel.timing import (
    context_moved,
    context_time,
    heat_target,
    mixed_duration,
    note_gap,
    read_tokens,
    steps_to_admission,
    steps_until,
    waits,
)
from solver.engine.kernel.turns import begin, next_ready, send_due, send_next


@inner
def store_share(rules: Rules, decoding: int, whole: int) -> float:
    """Share of such steps that leave new blocks to tiers: a prompt's, or of a block that one of those decoding has filled.

    1 − (1 − g/B)^n for n sequences that yield g tokens each, in blocks of B.
    """
    if whole:
        return 1.0
    return 1.0 - (1.0 - min(rules.gain / rules.block_tokens, 1.0)) ** decoding


@inner
def mixed_step(
    rules: Rules,
    u: State,
    requests: Requests,
    queues: Queues,
    tables: Tables,
    gaps: Gaps,
    work: int,
    whole: int,
    pair_time: float,
) -> None:
    """One step with ``work`` prompt tokens, and the decoding sequences where the engine mixes the two."""
    decoding = u.running if rules.mixes else 0
    refused = u.blocked or rules.static_batching
    tokens = work + decoding * rules.query_tokens
    rows = decoding * rules.query_tokens + whole
    duration = mixed_duration(rules, u, tables, decoding, tokens, rows, pair_time)
    if rules.store_s:
        duration += rules.store_s * store_share(rules, decoding, whole)
    duration += rules.admitted_token_s * u.fresh
    u.fresh = 0
    step_flops = rules.flops_per_token * tokens + rules.head_flops * rows
    u.flops += step_flops
    target = heat_target(rules, step_flops, duration)
    cooling = math.exp(-duration / rules.clock_settling_s)
    duration -= rules.clock_headroom_fraction * (1.0 - u.heat) * (1.0 - cooling) * rules.clock_settling_s
    u.heat = target + (u.heat - target) * cooling
    u.prefilling = 1.0 - (1.0 - u.prefilling) * cooling
    u.now += duration
    u.busy += duration
    u.steps += 1
    before = u.front
    if rules.launches:
        send_due(rules, u, requests, queues)
    u.previous = composed_before_end_s(rules, tables, tokens, decoding, duration, u.previous)
    if rules.sessions:
        forget(rules, u, queues.chains, 0.0)
    later = handed_on_after_s(rules, u, requests, queues, tables, whole, u.previous)
    u.front = max(u.front, u.now + later) + rows * rules.token_front_end_s
    if rules.hashes:
        send_due(rules, u, requests, queues)  # what is sent by those that end now is not taken in with what came before
        if whole:
            answer(rules, u, requests, queues, whole)
    if decoding:
        u.step += 1
        u.context += decoding * rules.gain
        note_gap(rules, u, gaps, u.front - before, decoding * rules.gain)
    u.since_admission = 0
    sample_first_tokens(rules, u, requests, queues, whole)
    if decoding:
        retire(rules, u, requests, queues)
    if whole and not u.running:
        u.blocked = 0
    if refused:
        compose_when_done(u)


@inner
def compose_when_done(u: State) -> None:
    """After a step beside which nobody could be let in: where nobody goes on either, the next one was not composed early, and whoever
    came until now joins it."""
    if not (u.running or u.partial):
        u.previous = 0.0


@inner
def answer(rules: Rules, u: State, requests: Requests, queues: Queues, whole: int) -> None:
    """The front end has first tokens to send, of those of ``whole`` prompts that had none, which take it as long as the prompts are: what
    was sent before is taken in before, what comes meanwhile after, and all of them leave together."""
    tokens = 0
    for place in range(whole):
        request = queues.partial_request[place]
        if queues.have[request] == 0:
            tokens += requests.prompts[request]
    if not tokens:
        return
    if u.begun <= u.now:
        u.front = max(u.front, u.ingest)
    u.front += rules.answered_token_s * tokens
    u.answered = u.front


@inner
def wait_for_hashes(rules: Rules, u: State, requests: Requests, queues: Queues) -> None:
    """No step with prompts is composed while more are hashed: that is done beside the scheduler, and holds its interpreter's lock."""
    if not u.ingest <= u.now < u.hashed:
        return
    composed = u.now - rules.lag_fraction * u.previous
    there = u.coming > 0 and next_there(u, queues) <= composed
    if u.blocked and not there:
        return
    ready = u.queued < u.sent and requests.ready[queues.order[u.queued]] <= composed
    waiting = u.evicted or u.queued > u.admitted or u.line_end - u.line_first > u.coming
    if u.partial or waiting or ready or there:
        u.now = u.hashed
        u.previous = 0.0


@inner
def decode_stretch(
    rules: Rules, u: State, requests: Requests, queues: Queues, tables: Tables, gaps: Gaps, seen_to_fit: bool
) -> None:
    """Decode up to the next completion, the next arrival that could join, or a full cache (then one is evicted).

    A stretch of K steps is one event, with a: first step, g: growth of a step, from one to the next:

        K·a + g·K·(K−1)/2
    """
    sequences, gain, width = u.running, rules.gain, rules.query_tokens
    start_s = tables.decode_s[sequences] + tables.head_s[sequences * width] + sequences * rules.sequence_s
    attention_s, slope = context_time(rules, u, tables)
    start_s = start_s + rules.lane_step_s + attention_s
    if rules.store_s:
        start_s += rules.store_s * store_share(rules, sequences, 0)
    growth = slope * sequences * gain
    steps = next_end(u, queues) - u.step
    slowed = 1.0 + rules.clock_sag_fraction * u.heat
    if rules.preempts:
        fit = free_tokens(rules, u) / (sequences * gain)
        if fit < 1.0 and sequences + u.loading > 1 and not seen_to_fit:
            evict(rules, u, requests, queues)
            return
        if fit < steps:
            steps = max(1, int(fit))
    ready = math.inf
    if (u.sent > u.queued or u.pending) and not u.blocked and not rules.static_batching:
        ready = next_ready(rules, u, requests, queues)
    if u.coming:
        ready = min(ready, next_there(u, queues))
    if ready < math.inf:
        until = steps_until(ready - u.now, start_s * slowed, growth * slowed, rules.lag_fraction)
        joins = steps_to_admission(rules, u, until)
        if joins < steps:
            steps = joins
    others_s = 0.0
    if u.owed > 0.0:
        others_s = waits(u)
        start_s += others_s
        steps = 1
    duration = steps * start_s + growth * steps * (steps - 1) / 2.0
    produced = steps * sequences * gain
    u.moved += steps * (tables.decode_bytes[sequences] + tables.head_bytes[sequences * width])
    context = read_tokens(rules, u) + sequences * gain * (steps - 1) / 2.0
    u.moved += steps * context_moved(rules, u, tables, context)
    work_flops = (rules.flops_per_token + rules.head_flops) * (steps * sequences * width)
    u.flops += work_flops
    target = heat_target(rules, work_flops, duration)
    cooling = math.exp(-duration / rules.clock_settling_s)
    # The heat of the stretch on average; it runs on unslowed time, so that a stretch cut in two takes as long.
    warm = target + (u.heat - target) * (1.0 - cooling) * rules.clock_settling_s / duration
    u.heat = target + (u.heat - target) * cooling
    # Where stages are shared, of the time in which it works: were what it waits counted too, a crowd would complete more than is sustained.
    apart_s = others_s if rules.contending_lanes else 0.0
    u.prefilling *= cooling if apart_s == 0.0 else math.exp((apart_s - duration) / rules.clock_settling_s)
    duration *= 1.0 + rules.clock_sag_fraction * warm
    u.now += duration
    u.busy += duration
    u.steps += steps
    if rules.hashes or rules.launches:
        send_due(rules, u, requests, queues)
    before = u.front
    u.front = max(u.front + produced * rules.token_front_end_s, u.now + sequences * gain * rules.token_front_end_s)
    note_gap(rules, u, gaps, (u.front - before) / (steps * gain), produced)
    u.previous = (start_s + growth * (steps - 1)) * (1.0 + rules.clock_sag_fraction * u.heat)
    if rules.sessions:
        forget(rules, u, queues.chains, produced - sequences * gain)
    later = handed_on_after_s(rules, u, requests, queues, tables, 0, u.previous)
    if later > 0.0:
        u.front = max(u.front, u.now + later + sequences * gain * rules.token_front_end_s)
    u.step += steps
    u.since_admission = (u.since_admission + steps) % rules.admission_interval
    u.context += produced
    refused = u.blocked or rules.static_batching
    retire(rules, u, requests, queues)
    if refused:
        compose_when_done(u)


@inner
def take_in(rules: Rules, u: State, requests: Requests, queues: Queues) -> None:
    """Queue those whose prompts have been taken in, and see what has come from tiers, by the time that admissions of this step
    know of."""
    if u.since_admission:
        return
    u.cutoff = u.now - rules.lag_fraction * u.previous
    notice(u, queues)
    while u.queued < u.sent and requests.ready[queues.order[u.queued]] <= u.cutoff:
        if rules.lined:
            join_line(u, queues, queues.order[u.queued])
            u.admitted += 1
        u.queued += 1


@inner
def wait(rules: Rules, u: State, requests: Requests, queues: Queues) -> None:
    """Nobody runs and nobody was admitted: on to when something comes, from a tier or from a user."""
    u.blocked = 0
    if not u.coming:
        return
    soonest = next_there(u, queues)
    if u.sent > u.queued or u.pending:
        soonest = min(soonest, next_ready(rules, u, requests, queues))
    u.now = max(u.now, soonest)
    u.previous = 0.0
    u.since_admission = 0


@inner
def advance(rules: Rules, u: State, requests: Requests, queues: Queues, tables: Tables, gaps: Gaps) -> None:
    """One scheduling event: a step with prompts, a stretch of decoding, or an eviction."""
    u.events += 1
    if not (u.running or u.partial or u.evicted or u.queued > u.admitted or u.line_end > u.line_first):
        if u.queued == u.sent:
            send_next(rules, u, requests, queues)
        u.now = max(u.now, requests.ready[queues.order[u.queued]])
        u.previous = 0.0
        u.since_admission = 0
    send_due(rules, u, requests, queues)
    if rules.hashes:
        wait_for_hashes(rules, u, requests, queues)
    take_in(rules, u, requests, queues)
    took_room = False
    waiting = u.evicted or u.queued > u.admitted or u.line_end > u.line_first
    if u.partial or (waiting and not u.blocked and not (rules.static_batching and u.running)):
        if rules.preempts and rules.mixes and u.running and cache_is_full(rules, u):
            evict(rules, u, requests, queues)
            return
        loading = u.loading
        work, whole, pair_time = take_prompts(rules, u, requests, queues, tables)
        if work or u.partial:
            mixed_step(rules, u, requests, queues, tables, gaps, work, whole, pair_time)
            return
        # Who was seen to fit decodes this step, though what is loaded from here on leaves no room for it.
        took_room = rules.mixes == 1 and u.loading > loading
    if u.running:
        decode_stretch(rules, u, requests, queues, tables, gaps, took_room)
    else:
        wait(rules, u, requests, queues)


@entry
def run(one_rules: Column, one_state: Column, requests: Requests, queues: Queues, tables: Tables, gaps: Gaps) -> None:
    """Replay until all requests are done or ``gaps`` is full; called again with an empty one, it goes on where it was.

    A new run has the requests of its start sent (``start``). one_rules, one_state: columns of one record.
    """
    rules, u = one_rules[0], one_state[0]
    count, room = len(requests.prompts), len(gaps.seconds)
    u.gaps = 0
    while u.done < count and u.gaps < room:
        advance(rules, u, requests, queues, tables, gaps)


@entry
def start(
    one_rules: Column, one_state: Column, requests: Requests, queues: Queues, arrivals_s: Column, clients: int
) -> None:
    """Send what is sent before anything has run: all requests at their arrival times, or one for each client.

    Of sessions: put down when their first turns are sent.
    """
    rules, u = one_rules[0], one_state[0]
    if rules.sessions:
        begin(rules, u, queues, arrivals_s, clients)
    elif rules.closed:
        for _ in range(min(clients, len(requests.prompts))):
            send(rules, u, requests, queues, 0.0)
    else:
        for at in arrivals_s:
            send(rules, u, requests, queues, at)
