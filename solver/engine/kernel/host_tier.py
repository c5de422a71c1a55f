"""The cache of prefixes in host memory: what requests leave is kept there too, the least recently used first to go.

Blocks are copied there when their request is done with them, so host memory holds what the device does and what that has
forgotten. A prompt that goes on there where the device ends is loaded before it is computed.
"""

from solver.engine.kernel.compiled import inner
from solver.engine.kernel.records import Chains, Queues, Rules, State


@inner
def take_out(u: State, chains: Chains, chain: int) -> None:
    """Out of the order of last use."""
    before, after = chains.host_before[chain], chains.host_after[chain]
    if before >= 0:
        chains.host_after[before] = after
    else:
        u.host_oldest = after
    if after >= 0:
        chains.host_before[after] = before
    else:
        u.host_newest = before
    u.host_blocks -= chains.stored[chain]


@inner
def put_last(u: State, chains: Chains, chain: int, blocks: int) -> None:
    """Last in the order of last use, with so many blocks; a chain without any is not in it."""
    if chains.stored[chain]:
        take_out(u, chains, chain)
    chains.stored[chain] = blocks
    if not blocks:
        return
    chains.host_before[chain] = u.host_newest
    chains.host_after[chain] = -1
    if u.host_newest >= 0:
        chains.host_after[u.host_newest] = chain
    else:
        u.host_oldest = chain
    u.host_newest = chain
    u.host_blocks += blocks


@inner
def make_room(rules: Rules, u: State, chains: Chains) -> None:
    """Forget the blocks used longest ago, a chain's last ones first, until all fit."""
    while u.host_blocks > rules.host_cache_blocks:
        chain = u.host_oldest
        excess = u.host_blocks - rules.host_cache_blocks
        if chains.stored[chain] <= excess:
            take_out(u, chains, chain)
            chains.stored[chain] = 0
        else:
            chains.stored[chain] -= excess
            u.host_blocks -= excess


@inner
def store(rules: Rules, u: State, queues: Queues, request: int, own_blocks: int) -> None:
    """Keep what a request leaves: so many blocks of its own chain, and those before it after them, which therefore outlive it."""
    chains = queues.chains
    chain = chains.chain[request]
    put_last(u, chains, chain, max(own_blocks, chains.stored[chain]))
    chain = chains.parent[chain]
    while chain >= 0:
        put_last(u, chains, chain, chains.blocks[chain])
        chain = chains.parent[chain]
    make_room(rules, u, chains)


@inner
def held_on_either(queues: Queues, request: int) -> int:
    """Blocks that a request begins with and that the device or host memory holds."""
    chains = queues.chains
    chain = chains.chain[request]
    found = max(chains.resident[chain], chains.stored[chain])
    chain = chains.parent[chain]
    while chain >= 0:
        here = max(chains.resident[chain], chains.stored[chain])
        found = chains.blocks[chain] + found if here >= chains.blocks[chain] else here
        chain = chains.parent[chain]
    blocks: int = found
    return blocks
