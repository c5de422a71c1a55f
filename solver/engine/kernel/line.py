"""One waiting line over tiers and for slots of adapters: who is looked for, read and loaded for, passed over and admitted.

An engine with tiers under its cache looks for what a prompt begins with when it comes to admit it. What only a disk has is read into
host memory first, and those behind are looked at meanwhile. What only host memory has is loaded into room of the device that
is taken at once, and the prompt is scheduled when that has come. Who finds no room ends the walk along the line (vLLM's scheduler with
a connector, docs/mathematics.md, "Sessions").
"""

import math

from solver.engine.kernel.compiled import inner
from solver.engine.kernel.prefixes import find, find_stored, hold, pinned_tokens
from solver.engine.kernel.records import Queues, Requests, Rules, State
from solver.engine.kernel.tiers import held_on_any, held_on_either, keep

WAITING, ASKED, ANSWERED, LOADING, LOADED = range(5)
"""Where a request in the line stands with the tiers."""


@inner
def join_line(u: State, queues: Queues, request: int) -> None:
    queues.line[u.line_end] = request
    u.line_end += 1


@inner
def return_to_line(u: State, queues: Queues, request: int) -> None:
    """Before all that nobody has passed over yet. It has left the line before, so there is a place."""
    u.line_passed = max(u.line_passed, u.line_first) - 1
    u.line_first -= 1
    for place in range(u.line_first, u.line_passed):
        queues.line[place] = queues.line[place + 1]
    queues.line[u.line_passed] = request


@inner
def leave_line(u: State, queues: Queues, place: int) -> None:
    u.line_passed = max(u.line_passed, u.line_first)
    if place >= u.line_passed:
        u.line_passed += 1
    while place > u.line_first:
        queues.line[place] = queues.line[place - 1]
        place -= 1
    u.line_first += 1


@inner
def passed_over(u: State, place: int) -> None:
    """Those passed over go before those that have come back, and keep their order."""
    u.line_passed = max(u.line_passed, place + 1)


@inner
def next_there(u: State, queues: Queues) -> float:
    """When the next of what is read or loaded is there; infinity where nothing is."""
    chains = queues.chains
    soonest = math.inf
    left = u.coming
    place = u.line_first
    while left:
        request = queues.line[place]
        if chains.stage[request] in (ASKED, LOADING):
            soonest = min(soonest, chains.there[request])
            left -= 1
        place += 1
    return soonest


@inner
def notice(u: State, queues: Queues) -> None:
    """See for whom the disk has answered or the load has come by the time that admissions of this step know of."""
    chains = queues.chains
    left = u.coming
    place = u.line_first
    while left:
        request = queues.line[place]
        if chains.stage[request] in (ASKED, LOADING):
            left -= 1
            if chains.there[request] <= u.cutoff:
                chains.stage[request] += 1
                u.coming -= 1
                u.blocked = 0
        place += 1


@inner
def asks_disk(rules: Rules, u: State, requests: Requests, queues: Queues, request: int) -> bool:
    """Whether a request waits for the disk. When it is first looked at, what host memory ends before is asked for; the disk answers by
    the next step, and what it has is read after what it was asked for before."""
    chains = queues.chains
    if chains.stage[request] == ANSWERED:
        return False
    most = (requests.prompts[request] + queues.have[request] - 1) // rules.block_tokens
    near = min(held_on_either(queues, request), most)
    if near >= most:
        chains.stage[request] = ANSWERED
        return False
    whole = min(held_on_any(queues, request), most)
    chains.stage[request] = ASKED
    chains.read[request] = whole
    chains.there[request] = u.now
    u.coming += 1
    if whole > near:
        chains.from_disk[request] += (whole - near) * rules.block_tokens
        u.disk = max(u.disk, u.now) + (whole - near) * rules.disk_block_s
        chains.there[request] = u.disk
        keep(chains.host, rules.host_cache_blocks, queues, request, whole)
    return True


@inner
def load(rules: Rules, u: State, queues: Queues, request: int, tokens: int) -> None:
    """Put down when so many tokens have come from host memory, one prompt after the other."""
    u.bus = max(u.bus, u.now) + tokens // rules.block_tokens * rules.host_block_s
    queues.chains.there[request] = u.bus
    queues.chains.stage[request] = LOADING
    u.coming += 1
    u.loading += 1


@inner
def lacks_slot(rules: Rules, u: State, requests: Requests, queues: Queues, request: int) -> bool:
    """Whether all slots are taken by other adapters than that of a request."""
    return u.adapters >= rules.adapter_slots > 0 and not queues.named[requests.adapter[request]]


@inner
def take_slot(rules: Rules, u: State, requests: Requests, queues: Queues, request: int) -> None:
    """A request is given room: its adapter has a slot."""
    if rules.adapter_slots:
        u.adapters += not queues.named[requests.adapter[request]]
        queues.named[requests.adapter[request]] += 1


@inner
def leave_slot(rules: Rules, u: State, requests: Requests, queues: Queues, request: int) -> None:
    """A request gives its room back: with the last that names it an adapter may go."""
    if rules.adapter_slots:
        queues.named[requests.adapter[request]] -= 1
        u.adapters -= not queues.named[requests.adapter[request]]


@inner
def begin_prompt(u: State, requests: Requests, queues: Queues, request: int) -> None:
    """Into prefill, with what is not cached left to compute."""
    queues.partial_request[u.partial] = request
    queues.partial_done[u.partial] = 0
    queues.partial_need[u.partial] = requests.prompts[request] + queues.have[request] - requests.cached[request]
    u.partial += 1
    u.fresh += requests.prompts[request]


@inner
def admit_from_line(rules: Rules, u: State, requests: Requests, queues: Queues, work: int, budget: int) -> int:
    """Admit the first of the line that waits for no tier, if it has room. 0: there is none; 1: it is in prefill."""
    chains = queues.chains
    place = u.line_first
    if u.running + u.partial >= rules.max_sequences:
        u.blocked = 1
    while place < u.line_end and not u.blocked:
        request = queues.line[place]
        stage = chains.stage[request] if rules.host_cache_blocks else WAITING
        if stage in (ASKED, LOADING):
            place += 1
            continue
        have = queues.have[request]
        tokens = requests.prompts[request] + have
        if stage == LOADED:
            if not rules.chunked_prefill and work and tokens - requests.cached[request] > budget:
                return 0
            chains.stage[request] = WAITING
            u.loading -= 1
            leave_line(u, queues, place)
            begin_prompt(u, requests, queues, request)
            return 1
        if lacks_slot(rules, u, requests, queues, request):
            passed_over(u, place)
            place += 1
            continue
        found = find(rules, u, queues, request, tokens) if rules.sessions else requests.cached[request]
        if rules.disk_cache_blocks and asks_disk(rules, u, requests, queues, request):
            passed_over(u, place)
            place += 1
            continue
        loaded = max(find_stored(rules, queues, request, tokens) - found, 0) if rules.host_cache_blocks else 0
        own = tokens - requests.aside[request]
        seated = u.running + u.partial + u.loading
        whole = own + requests.outputs[request] - have
        held = u.context + u.reserved + own if rules.preempts else u.promised + whole
        if rules.sessions:
            held += pinned_tokens(rules, queues, request)
        if held + rules.block_slack_tokens * (seated + 1) > rules.kv_cache_tokens and seated:
            if u.running + u.partial:
                u.blocked = 1
            place += 1  # while nobody runs, those that hold room already go first
            continue
        if not rules.chunked_prefill and work and not loaded and tokens - found > budget:
            return 0
        requests.cached[request] = found + loaded
        if rules.host_cache_blocks:
            chains.stage[request] = WAITING
            if chains.found[request] < 0:
                chains.loaded[request] = loaded
        if rules.sessions:
            hold(rules, u, queues, request, found + loaded)
        take_slot(rules, u, requests, queues, request)
        u.promised += whole
        u.reserved += own
        if not loaded:
            leave_line(u, queues, place)
            begin_prompt(u, requests, queues, request)
            return 1
        load(rules, u, queues, request, loaded)
        passed_over(u, place)
        place += 1
    return 0
