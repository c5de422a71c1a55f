"""The cache of prefixes: blocks of requests that are done stay until their room is needed, the least recently used first.

Blocks of one chain are used together, and given back the last one first, as engines do: so what is left of a chain is
always its beginning, a number of blocks says what, and the order of last use is one of chains (docs/mathematics.md, "Sessions").
A chain that others go on from is given back with the last of its users, after theirs, so it outlives them.
"""

from solver.engine.kernel.compiled import inner
from solver.engine.kernel.records import Chains, Queues, Rules, State
from solver.engine.kernel.tiers import held_on_either, keep


@inner
def free_tokens(rules: Rules, u: State) -> float:
    """Cache that no request in progress holds."""
    slack = rules.block_slack_tokens * (u.running + u.partial + u.loading)
    return rules.kv_cache_tokens - u.context - u.reserved - slack


@inner
def unlink(u: State, chains: Chains, chain: int) -> None:
    """Out of the order of last use."""
    before, after = chains.before[chain], chains.after[chain]
    if before >= 0:
        chains.after[before] = after
    else:
        u.oldest = after
    if after >= 0:
        chains.before[after] = before
    else:
        u.newest = before
    u.cached_blocks -= chains.resident[chain]


@inner
def link(u: State, chains: Chains, chain: int) -> None:
    """Last in the order of last use; a chain without blocks is not in it."""
    if not chains.resident[chain]:
        return
    chains.before[chain] = u.newest
    chains.after[chain] = -1
    if u.newest >= 0:
        chains.after[u.newest] = chain
    else:
        u.oldest = chain
    u.newest = chain
    u.cached_blocks += chains.resident[chain]


@inner
def forget(rules: Rules, u: State, chains: Chains, growth: float) -> None:
    """Forget blocks until those of nobody fit beside requests in progress, ``growth`` tokens grown: a chain's last ones first."""
    room = int(max(free_tokens(rules, u) - growth, 0.0) // rules.block_tokens)
    while u.cached_blocks > room:
        chain = u.oldest
        excess = u.cached_blocks - room
        if chains.resident[chain] <= excess:
            unlink(u, chains, chain)
            chains.resident[chain] = 0
        else:
            chains.resident[chain] -= excess
            u.cached_blocks = room


@inner
def find(rules: Rules, u: State, queues: Queues, request: int, tokens: int) -> int:
    """Tokens that the cache holds of the first ``tokens`` of a request, whole blocks, one token at least left to compute."""
    forget(rules, u, queues.chains, 0.0)
    return resident_tokens(rules, queues, request, tokens)


@inner
def resident_tokens(rules: Rules, queues: Queues, request: int, tokens: int) -> int:
    """The same by what has been forgotten so far."""
    chains = queues.chains
    chain = chains.chain[request]
    found = chains.resident[chain]
    chain = chains.parent[chain]
    while chain >= 0:
        found = (
            chains.blocks[chain] + found if chains.resident[chain] >= chains.blocks[chain] else chains.resident[chain]
        )
        chain = chains.parent[chain]
    tokens_found: int = min(found, (tokens - 1) // rules.block_tokens) * rules.block_tokens
    return tokens_found


@inner
def find_stored(rules: Rules, queues: Queues, request: int, tokens: int) -> int:
    """The same of what the cache or host memory holds, with what was read into that from a disk for this request."""
    blocks = max(held_on_either(queues, request), queues.chains.read[request])
    tokens_found: int = min(blocks, (tokens - 1) // rules.block_tokens) * rules.block_tokens
    return tokens_found


@inner
def pinned_tokens(rules: Rules, queues: Queues, request: int) -> int:
    """Tokens of chains before a request's own that nobody holds yet."""
    chains = queues.chains
    tokens = 0
    chain = chains.parent[chains.chain[request]]
    while chain >= 0:
        if not chains.users[chain]:
            tokens += chains.blocks[chain] * rules.block_tokens
        chain = chains.parent[chain]
    return tokens


@inner
def hold(rules: Rules, u: State, queues: Queues, request: int, found: int) -> None:
    """A request is admitted, of which ``found`` tokens were in the cache: its chains cannot be forgotten, and those before its
    own can be found in full from here on."""
    chains = queues.chains
    if chains.found[request] < 0:
        chains.found[request] = found
    chains.read[request] = 0
    pinned = pinned_tokens(rules, queues, request)
    u.reserved += pinned
    u.promised += pinned
    u.beside += pinned
    own = chains.chain[request]
    chain = own
    while chain >= 0:
        if not chains.users[chain]:
            if chains.resident[chain]:
                unlink(u, chains, chain)
            if chain != own:
                chains.resident[chain] = chains.blocks[chain]
        chains.users[chain] += 1
        chain = chains.parent[chain]


@inner
def give_back(rules: Rules, u: State, queues: Queues, request: int, tokens: int) -> None:
    """A request ends, of which ``tokens`` may be found again: of chains before its own too, where nobody else holds them.
    What it needed until then has been forgotten for it (``forget``)."""
    chains = queues.chains
    own = chains.chain[request]
    before = 0
    chain = chains.parent[own]
    while chain >= 0:
        before += chains.blocks[chain]
        chain = chains.parent[chain]
    computed = tokens // rules.block_tokens
    chains.resident[own] = max(0, computed - before)
    lasting = min(tokens, chains.lasting[request]) // rules.block_tokens
    if rules.host_cache_blocks:
        keep(chains.host, rules.host_cache_blocks, queues, request, lasting)
    if rules.disk_cache_blocks:
        keep(chains.disk, rules.disk_cache_blocks, queues, request, lasting)
    chain = own
    while chain >= 0:
        chains.users[chain] -= 1
        if chain != own:
            before -= chains.blocks[chain]
        if not chains.users[chain]:
            if chain != own:
                chains.resident[chain] = min(max(computed - before, 0), chains.blocks[chain])
                u.reserved -= chains.blocks[chain] * rules.block_tokens
                u.promised -= chains.blocks[chain] * rules.block_tokens
                u.beside -= chains.blocks[chain] * rules.block_tokens
            link(u, chains, chain)
        chain = chains.parent[chain]
