"""Prompts in the step: in chunks where the engine cuts them, and their first tokens."""

from solver.engine.kernel.admission import admit, finish, join
from solver.engine.kernel.compiled import inner
from solver.engine.kernel.prefixes import give_back
from solver.engine.kernel.records import (
    Queues,
    Requests,
    Rules,
    State,
    Tables,
)
from solver.engine.kernel.timing import add_pairs


@inner
def take_prompts(rules: Rules, u: State, requests: Requests, queues: Queues, tables: Tables) -> tuple[int, int, float]:
    """Fill the step's token budget with prompts, those begun first: (prompt tokens, prompts now whole, attention in s)."""
    budget = rules.max_batched_tokens - (u.running * rules.query_tokens if rules.mixes else 0)
    work = taken = whole = 0
    pair_time = 0.0
    while budget > 0:
        if taken == u.partial:
            admitted = admit(rules, u, requests, queues, work, budget)
            if admitted == 0:
                break
            if admitted == 2:
                continue
        done, need = queues.partial_done[taken], queues.partial_need[taken]
        chunk = min(need - done, budget) if rules.chunked_prefill else need - done
        start = requests.cached[queues.partial_request[taken]] + done
        pair_time = add_pairs(rules, u, tables, chunk, start, pair_time)
        queues.partial_done[taken] = done + chunk
        work += chunk
        budget -= chunk
        if done + chunk >= need:
            whole += 1
        taken += 1
    return work, whole, pair_time


@inner
def sample_first_tokens(rules: Rules, u: State, requests: Requests, queues: Queues, whole: int) -> None:
    """The oldest ``whole`` prompts in prefill have their first token: they decode from here, or are done."""
    for place in range(whole):
        request = queues.partial_request[place]
        own = requests.prompts[request] - requests.aside[request]
        have = queues.have[request]
        queues.have[request] = 0
        ends = requests.outputs[request] - have - 1 <= 0
        if rules.sessions and ends:
            give_back(rules, u, queues, request, queues.chains.kept[request])
        u.reserved -= own + have
        if have == 0:
            requests.first[request] = u.front + rules.half_overhead_s
            u.prompt_tokens += requests.prompts[request]
        if ends:
            u.blocked = 0
            finish(rules, u, requests, queues, request)
        else:
            join(rules, u, requests, queues, request, own, have)
    u.partial -= whole
    for place in range(u.partial):
        queues.partial_request[place] = queues.partial_request[place + whole]
        queues.partial_done[place] = queues.partial_done[place + whole]
        queues.partial_need[place] = queues.partial_need[place + whole]
