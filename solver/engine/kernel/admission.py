"""Who is sent, queued, admitted, evicted and finished."""

import math

from solver.engine.kernel.compiled import inner
from solver.engine.kernel.completions import forget_evicted, pop, push
from solver.engine.kernel.line import admit_from_line, begin_prompt, leave_slot, return_to_line
from solver.engine.kernel.prefixes import find, forget, free_tokens, give_back, hold, pinned_tokens
from solver.engine.kernel.records import (
    MOST_KERNEL_REQUESTS,
    NOT_RUNNING,
    REQUEST_BITS,
    Queues,
    Requests,
    Rules,
    State,
)
from solver.engine.kernel.turns import follow


@inner
def send(rules: Rules, u: State, requests: Requests, queues: Queues, at: float) -> None:
    """Send the next request at ``at``; the front end takes prompts in one after the other."""
    request = u.sent
    queues.order[u.sent] = request
    requests.sent[request] = at
    taken_in = max(u.ingest, at + rules.half_overhead_s)
    u.ingest = taken_in + rules.request_ingest_s + rules.prompt_token_s * requests.prompts[request]
    requests.ready[request] = u.ingest
    u.sent = request + 1


@inner
def finish(rules: Rules, u: State, requests: Requests, queues: Queues, request: int) -> None:
    """The last token is out; in a closed loop its client sends the next request, in a session its user thinks about one."""
    at = u.front + rules.half_overhead_s
    requests.last[request] = at
    u.done += 1
    u.promised -= requests.prompts[request] - requests.aside[request] + requests.outputs[request]
    leave_slot(rules, u, requests, queues, request)
    if rules.sessions:
        follow(rules, u, queues, request, at)
    elif rules.closed and u.sent < len(requests.prompts):
        send(rules, u, requests, queues, at)


@inner
def join(rules: Rules, u: State, requests: Requests, queues: Queues, request: int, own: int, have: int) -> None:
    """Start decoding a sequence that holds ``own`` tokens of its prompt and ``have`` outputs, with the next one sampled."""
    if u.heaped == len(queues.heap):
        forget_evicted(u, queues)
    ends = u.step + max(1, math.ceil((requests.outputs[request] - have - 1) / rules.gain))
    queues.ends[request] = ends
    queues.base[request] = own + have + 1 - rules.gain * u.step
    queues.stack[u.stacked] = request
    u.stacked += 1
    u.running += 1
    push(queues.heap, u.heaped, (ends << REQUEST_BITS) + request)
    u.heaped += 1
    u.context += own + have + 1
    u.shared += requests.aside[request]


@inner
def retire(rules: Rules, u: State, requests: Requests, queues: Queues) -> None:
    """Complete every sequence that ends at this step."""
    before = (u.step + 1) << REQUEST_BITS
    while u.heaped and queues.heap[0] < before:
        key = queues.heap[0]
        pop(queues.heap, u.heaped)
        u.heaped -= 1
        request = key & (MOST_KERNEL_REQUESTS - 1)
        if queues.ends[request] == key >> REQUEST_BITS:
            queues.ends[request] = NOT_RUNNING
            if rules.sessions:
                give_back(rules, u, queues, request, queues.chains.kept[request])
            u.running -= 1
            u.context -= queues.base[request] + rules.gain * u.step
            u.shared -= requests.aside[request]
            u.blocked = 0
            finish(rules, u, requests, queues, request)
    if not u.running:
        u.context = 0.0
        u.stacked = 0


@inner
def evict(rules: Rules, u: State, requests: Requests, queues: Queues) -> None:
    """Send the latest admitted back to the queue."""
    if rules.sessions:
        forget(rules, u, queues.chains, 0.0)
    if u.partial:
        u.partial -= 1
        victim = queues.partial_request[u.partial]
        if rules.sessions:
            give_back(rules, u, queues, victim, requests.cached[victim] + queues.partial_done[u.partial])
        u.reserved -= requests.prompts[victim] - requests.aside[victim] + queues.have[victim]
    else:
        u.stacked -= 1
        while queues.ends[queues.stack[u.stacked]] == NOT_RUNNING:
            u.stacked -= 1
        victim = queues.stack[u.stacked]
        left = math.ceil((queues.ends[victim] - u.step) * rules.gain)
        output = requests.outputs[victim]
        queues.have[victim] = max(1, min(output - left, output - 1))
        queues.ends[victim] = NOT_RUNNING
        if rules.sessions:
            give_back(rules, u, queues, victim, requests.prompts[victim] + queues.have[victim] - 1)
        u.running -= 1
        u.context -= queues.base[victim] + rules.gain * u.step
        u.shared -= requests.aside[victim]
    leave_slot(rules, u, requests, queues, victim)
    if rules.lined:
        return_to_line(u, queues, victim)
    else:
        queues.evicted[u.evicted] = victim
        u.evicted += 1
    u.preemptions += 1
    u.blocked = 1


@inner
def cache_is_full(rules: Rules, u: State) -> bool:
    """Whether the next step of those running has no room, and somebody else can make it."""
    return u.running + u.partial + u.loading > 1 and free_tokens(rules, u) < u.running * rules.gain


@inner
def admit(rules: Rules, u: State, requests: Requests, queues: Queues, work: int, budget: int) -> int:
    """Admit the next request. 0: there is none, or no room; 1: it is in prefill; 2: it decodes, prefilled elsewhere.

    work, budget: prompt tokens already in this step, and those that may be added.
    """
    if rules.lined:
        return admit_from_line(rules, u, requests, queues, work, budget)
    if not (u.evicted or u.queued > u.admitted) or u.blocked:
        return 0
    seated = u.running + u.partial
    if seated >= rules.max_sequences:
        u.blocked = 1
        return 0
    request = queues.evicted[u.evicted - 1] if u.evicted else queues.order[u.admitted]
    have = queues.have[request]
    own = requests.prompts[request] - requests.aside[request] + have
    whole = own + requests.outputs[request] - have
    held = u.context + u.reserved + own if rules.preempts else u.promised + whole
    if rules.sessions:
        held += pinned_tokens(rules, queues, request)
        requests.cached[request] = find(rules, u, queues, request, requests.prompts[request] + have)
    if held + rules.block_slack_tokens * (seated + 1) > rules.kv_cache_tokens and seated:
        u.blocked = 1
        return 0
    need = requests.prompts[request] - requests.cached[request] + have
    if not rules.chunked_prefill and work and need > budget:
        return 0
    if rules.sessions:
        hold(rules, u, queues, request, requests.cached[request])
    if u.evicted:
        u.evicted -= 1
    else:
        u.admitted += 1
    u.promised += whole
    if rules.prefilled and have == 0:
        requests.first[request] = requests.sent[request]
        join(rules, u, requests, queues, request, own, 0)
        return 2
    u.reserved += own
    begin_prompt(u, requests, queues, request)
    return 1
