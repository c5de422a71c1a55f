"""Tiers of the cache of prefixes under the device: host memory, and a disk under that.

What requests leave is written to both when a request is done with it, as engines do that write through, the least recently used
blocks of each being the first to go: so host memory holds what the device does and what that has forgotten, and the disk what
both do and more. A prompt that goes on in host memory where the device ends is loaded before it is computed. One that goes on
on the disk is read into host memory before, prompts one after the other. Both while others run (``line``).
"""

from solver.engine.kernel.compiled import inner
from solver.engine.kernel.records import Queues, Tier

OLDEST, NEWEST, BLOCKS = 0, 1, 2
"""Places in ``Tier.ends``."""


@inner
def take_out(tier: Tier, chain: int) -> None:
    """Out of the order of last use."""
    before, after = tier.before[chain], tier.after[chain]
    if before >= 0:
        tier.after[before] = after
    else:
        tier.ends[OLDEST] = after
    if after >= 0:
        tier.before[after] = before
    else:
        tier.ends[NEWEST] = before
    tier.ends[BLOCKS] -= tier.held[chain]


@inner
def put_last(tier: Tier, chain: int, blocks: int) -> None:
    """Last in the order of last use, with so many blocks; a chain without any is not in it."""
    if tier.held[chain]:
        take_out(tier, chain)
    tier.held[chain] = blocks
    if not blocks:
        return
    newest = tier.ends[NEWEST]
    tier.before[chain] = newest
    tier.after[chain] = -1
    if newest >= 0:
        tier.after[newest] = chain
    else:
        tier.ends[OLDEST] = chain
    tier.ends[NEWEST] = chain
    tier.ends[BLOCKS] += blocks


@inner
def make_room(tier: Tier, capacity_blocks: int) -> None:
    """Forget the blocks used longest ago, a chain's last ones first, until all fit."""
    while tier.ends[BLOCKS] > capacity_blocks:
        chain = tier.ends[OLDEST]
        excess = tier.ends[BLOCKS] - capacity_blocks
        if tier.held[chain] <= excess:
            take_out(tier, chain)
            tier.held[chain] = 0
        else:
            tier.held[chain] -= excess
            tier.ends[BLOCKS] -= excess


@inner
def keep(tier: Tier, capacity_blocks: int, queues: Queues, request: int, blocks: int) -> None:
    """Keep the first so many blocks that a request begins with, left by it or read for it, as the last used; what they follow
    outlives them."""
    chains = queues.chains
    before = 0
    chain = chains.parent[chains.chain[request]]
    while chain >= 0:
        before += chains.blocks[chain]
        chain = chains.parent[chain]
    chain = chains.chain[request]
    put_last(tier, chain, max(blocks - before, tier.held[chain]))
    chain = chains.parent[chain]
    while chain >= 0:
        before -= chains.blocks[chain]
        here = min(max(blocks - before, 0), chains.blocks[chain])
        put_last(tier, chain, max(here, tier.held[chain]))
        chain = chains.parent[chain]
    make_room(tier, capacity_blocks)


@inner
def held_on_either(queues: Queues, request: int) -> int:
    """Blocks that a request begins with and that the device or host memory holds."""
    chains = queues.chains
    chain = chains.chain[request]
    found = max(chains.resident[chain], chains.host.held[chain])
    chain = chains.parent[chain]
    while chain >= 0:
        here = max(chains.resident[chain], chains.host.held[chain])
        found = chains.blocks[chain] + found if here >= chains.blocks[chain] else here
        chain = chains.parent[chain]
    blocks: int = found
    return blocks


@inner
def held_on_any(queues: Queues, request: int) -> int:
    """Blocks that a request begins with and that the device, host memory or the disk holds."""
    chains = queues.chains
    chain = chains.chain[request]
    found = max(chains.resident[chain], chains.host.held[chain], chains.disk.held[chain])
    chain = chains.parent[chain]
    while chain >= 0:
        here = max(chains.resident[chain], chains.host.held[chain], chains.disk.held[chain])
        found = chains.blocks[chain] + found if here >= chains.blocks[chain] else here
        chain = chains.parent[chain]
    blocks: int = found
    return blocks
