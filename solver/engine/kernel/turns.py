"""When the turns of sessions are sent: the first at a time of its own, later ones when their user has thought.

A turn that is due is put down in a heap, and sent once the clock has passed its time: nothing that ends later can be due
before it.
"""

from solver.engine.kernel.compiled import inner
from solver.engine.kernel.records import Column, Queues, Requests, Rules, State, Turns


@inner
def put_down(u: State, turns: Turns, at: float, request: int) -> None:
    """Into the binary heap of what is due, the soonest first; of two at one time the lower number."""
    due, which = turns.due, turns.which
    place = u.pending
    while place > 0:
        parent = (place - 1) >> 1
        if due[parent] < at or (due[parent] == at and which[parent] < request):
            break
        due[place] = due[parent]
        which[place] = which[parent]
        place = parent
    due[place] = at
    which[place] = request
    u.pending += 1


@inner
def take_up(u: State, turns: Turns) -> None:
    """The soonest out of the heap."""
    due, which = turns.due, turns.which
    u.pending -= 1
    last = u.pending
    at, request = due[last], which[last]
    place = 0
    child = 1
    while child < last:
        other = child + 1
        if other < last and (due[other] < due[child] or (due[other] == due[child] and which[other] < which[child])):
            child = other
        if at < due[child] or (at == due[child] and request < which[child]):
            break
        due[place] = due[child]
        which[place] = which[child]
        place = child
        child = 2 * place + 1
    due[place] = at
    which[place] = request


@inner
def begin(rules: Rules, u: State, queues: Queues, arrivals_s: Column, clients: int) -> None:
    """First turns of all sessions at their times, or of one session for each client."""
    starts = queues.turns.starts
    if rules.closed:
        while u.started < min(clients, len(starts)):
            put_down(u, queues.turns, 0.0, starts[u.started])
            u.started += 1
    else:
        for place in range(len(starts)):
            put_down(u, queues.turns, arrivals_s[place], starts[place])


@inner
def follow(rules: Rules, u: State, queues: Queues, request: int, at: float) -> None:
    """After a turn that ended at ``at``: the next of its session, or in a closed loop the first of another."""
    turns = queues.turns
    if turns.later[request]:
        put_down(u, turns, at + turns.think[request + 1], request + 1)
    elif rules.closed and u.started < len(turns.starts):
        put_down(u, turns, at, turns.starts[u.started])
        u.started += 1


@inner
def taken_in(rules: Rules, u: State, requests: Requests, request: int, at: float) -> float:
    """When a prompt sent at ``at`` may be scheduled at the soonest: those sent before are taken in, and answered, first."""
    begun = max(u.ingest, u.answered, at + rules.half_overhead_s)
    ready: float = begun + rules.request_ingest_s + rules.prompt_token_s * requests.prompts[request]
    if rules.hashes:
        ready = max(u.hashed, ready) + rules.prefix_token_s * requests.prompts[request]
    return ready


@inner
def send_together(rules: Rules, u: State, requests: Requests, queues: Queues) -> None:
    """Send the turn that is due soonest, and all that are sent until the front end has taken in those before: they leave it together.

    It parses, checks and hands over prompts in turns, whoever is there. Then each is hashed, one after the other.
    """
    turns, first = queues.turns, u.sent
    u.begun = max(u.ingest, u.answered, turns.due[0] + rules.half_overhead_s)
    u.ingest = u.begun
    while u.pending and turns.due[0] + rules.half_overhead_s <= u.ingest:
        at, request = turns.due[0], turns.which[0]
        take_up(u, turns)
        requests.sent[request] = at
        u.ingest += rules.request_ingest_s + rules.prompt_token_s * requests.prompts[request]
        queues.order[u.sent] = request
        u.sent += 1
    u.hashed = max(u.hashed, u.ingest)
    for place in range(first, u.sent):
        request = queues.order[place]
        u.hashed += rules.prefix_token_s * requests.prompts[request]
        requests.ready[request] = u.hashed


@inner
def send_next(rules: Rules, u: State, requests: Requests, queues: Queues) -> None:
    """Send the turn that is due soonest."""
    if rules.hashes:
        send_together(rules, u, requests, queues)
        return
    at, request = queues.turns.due[0], queues.turns.which[0]
    take_up(u, queues.turns)
    requests.sent[request] = at
    u.ingest = taken_in(rules, u, requests, request, at)
    requests.ready[request] = u.ingest
    queues.order[u.sent] = request
    u.sent += 1


@inner
def send_due(rules: Rules, u: State, requests: Requests, queues: Queues) -> None:
    """Send all turns whose time has come."""
    while u.pending and queues.turns.due[0] <= u.now:
        send_next(rules, u, requests, queues)


@inner
def next_ready(rules: Rules, u: State, requests: Requests, queues: Queues) -> float:
    """When the next request that waits for its time may be scheduled."""
    if u.sent > u.queued:
        ready: float = requests.ready[queues.order[u.queued]]
        return ready
    return taken_in(rules, u, requests, queues.turns.which[0], queues.turns.due[0])
