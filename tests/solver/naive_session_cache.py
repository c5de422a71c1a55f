"""Sessions before a cache of single blocks: what faster answers about their hits are held against.

Nothing of the solver is used: sessions, times, routing and the cache are written here once more. Turns take no time. Every block is
one of a list from the least to the most recently used, which is compiled, so that a load can be long enough to be sure of.
"""

import random
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Chats:
    """Uniform whole numbers as (low, high); rate: turns a second at one replica of ``replicas``, sent to any of them."""

    turns: tuple[int, int]
    user: tuple[int, int]
    reply: tuple[int, int]
    think_s: float
    system_tokens: int
    systems: int
    document_tokens: int
    documents: int
    replicas: int
    rate: float


@dataclass(frozen=True)
class Turns:
    """Turns that come to one replica, in the order of their times, and the blocks that they begin with.

    system, document, own: the first block of each turn's system prompt, of its document, and of what its chat says itself; blocks
    of each follow from there on. blocks: how many there are in all. counted: is its hit counted, or does the cache still settle?
    """

    prompt: Whole
    reply: Whole
    system: Whole
    document: Whole
    own: Whole
    blocks: int
    counted: NDArray[np.bool_]


def drawn(chats: Chats, cache_blocks: int, block: int, turns: int, seed: int) -> Turns:
    """About so many turns that are counted, after twice as long a time to settle."""
    rng = np.random.default_rng(seed)
    mean_turns = sum(chats.turns) / 2.0
    filled_s = cache_blocks * block / (sum(chats.user) / 2.0 + sum(chats.reply) / 2.0) / chats.rate
    settled_s = min(1.5 * filled_s, 2 * turns / chats.rate) + chats.turns[1] * chats.think_s
    until_s = settled_s + turns / chats.rate
    begin_rate = chats.rate * chats.replicas / mean_turns
    begins = np.sort(rng.uniform(0.0, until_s, rng.poisson(begin_rate * until_s)))
    length = rng.integers(chats.turns[0], chats.turns[1] + 1, len(begins))
    first = np.cumsum(length) - length
    chat, total = np.repeat(np.arange(len(begins)), length), int(length.sum())

    def so_far(values: NDArray[Any]) -> NDArray[Any]:
        """Sums within each chat, each turn's own included."""
        sums = np.cumsum(values)
        within: NDArray[Any] = sums - np.repeat(sums[first] - values[first], length)
        return within

    user = rng.integers(chats.user[0], chats.user[1] + 1, total)
    reply = rng.integers(chats.reply[0], chats.reply[1] + 1, total)
    think_s = rng.exponential(1.0, total) * chats.think_s
    think_s[first] = 0.0
    at_s = begins[chat] + so_far(think_s)
    prompt = chats.system_tokens + chats.document_tokens + so_far(user + reply) - reply
    system, document = rng.integers(chats.systems, size=len(begins)), rng.integers(chats.documents, size=len(begins))
    here = np.flatnonzero((rng.integers(chats.replicas, size=total) == 0) & (at_s < until_s))
    here = here[np.argsort(at_s[here], kind="stable")]
    of_system = chats.system_tokens // block
    of_opening = (chats.system_tokens + chats.document_tokens) // block
    of_document, pairs = of_opening - of_system, chats.systems * chats.documents
    last = first + length - 1
    kept = np.maximum((prompt + reply)[last] // block - of_opening, 0)
    own = np.cumsum(kept) - kept + chats.systems * of_system + pairs * of_document
    return Turns(
        prompt[here],
        reply[here],
        (system * of_system)[chat[here]],
        (chats.systems * of_system + (system * chats.documents + document) * of_document)[chat[here]],
        own[chat[here]],
        int(kept.sum()) + chats.systems * of_system + pairs * of_document,
        at_s[here] >= settled_s,
    )


@numba.njit(cache=True)
def hits(
    prompt: Whole, reply: Whole, system: Whole, document: Whole, own: Whole, of_system: int, of_opening: int,
    block: int, room: int, older: Whole, newer: Whole, found: Whole,
) -> None:  # fmt: skip
    """Fill in ``found``, blocks of each prompt. older, newer: neighbours of each block in the list, -1 where it is not kept; their last
    entries are the list's ends."""
    ends = len(older) - 1
    older[ends], newer[ends] = ends, ends
    kept = 0
    for turn in range(len(prompt)):
        misses = False
        for number in range((prompt[turn] + reply[turn] - 1) // block):
            name = own[turn] + number - of_opening
            if number < of_system:
                name = system[turn] + number
            elif number < of_opening:
                name = document[turn] + number - of_system
            misses = misses or number >= (prompt[turn] - 1) // block or older[name] < 0
            found[turn] += not misses
        for back in range((prompt[turn] + reply[turn] - 1) // block):
            number = (prompt[turn] + reply[turn] - 1) // block - 1 - back
            name = own[turn] + number - of_opening
            if number < of_system:
                name = system[turn] + number
            elif number < of_opening:
                name = document[turn] + number - of_system
            if older[name] >= 0:
                newer[older[name]], older[newer[name]] = newer[name], older[name]
            else:
                kept += 1
            older[name], newer[name] = older[ends], ends
            newer[older[ends]] = name
            older[ends] = name
        while kept > room:
            oldest = newer[ends]
            newer[ends] = newer[oldest]
            older[newer[oldest]] = ends
            older[oldest] = -1
            kept -= 1


def naive_hit_fraction(chats: Chats, cache_blocks: int, block: int, turns: int, seed: int) -> float:
    """Share of tokens of prompts found by one replica, of about its last ``turns`` turns."""
    sent = drawn(chats, cache_blocks, block, turns, seed)
    found = found_blocks(sent, chats, cache_blocks, block)[sent.counted]
    return float(found.sum()) * block / max(float(sent.prompt[sent.counted].sum()), 1.0)


def found_blocks(sent: Turns, chats: Chats, cache_blocks: int, block: int) -> Whole:
    """Blocks of each prompt that the cache finds."""
    found = np.zeros(len(sent.prompt), dtype=np.int64)
    older, newer = np.full(sent.blocks + 1, -1), np.zeros(sent.blocks + 1, dtype=np.int64)
    of_system, of_opening = chats.system_tokens // block, (chats.system_tokens + chats.document_tokens) // block
    hits(
        sent.prompt, sent.reply, sent.system, sent.document, sent.own, of_system, of_opening, block, cache_blocks,
        older, newer, found,
    )  # fmt: skip
    return found


def random_case(seed: int) -> tuple[Chats, int, int]:
    """Chats, blocks of a cache and tokens of a block: from caches that hold a few chats to those that hold all."""
    rng = random.Random(seed)
    block = rng.choice([16, 16, 32, 64, 128])
    scale = rng.choice([3, 8, 20]) * block
    turns = rng.randint(1, 2), rng.choice([2, 3, 6, 10])
    user, reply = (1, rng.choice([1, 2]) * scale // 3 + 1), (1, scale // rng.choice([1, 2, 3]) + 1)
    think_s, under_way = rng.choice([5.0, 30.0]), rng.choice([5, 12, 30, 80])
    system, document = rng.choice([0, 0, 7, 2 * scale, 6 * scale]), rng.choice([0, 0, 4 * scale])
    chats = Chats(
        turns, user, reply, think_s, system, rng.choice([1, 1, 3, 10]), document, rng.choice([1, 4, 20]),
        rng.choice([1, 1, 2, 4]), under_way / think_s,
    )  # fmt: skip
    live = under_way * (sum(turns) / 2 * (sum(user) + sum(reply)) / 2)
    longest = system + document + turns[1] * (user[1] + reply[1])
    return chats, int(max(live * rng.choice([0.05, 0.2, 0.5, 1, 2]), 1.2 * longest)) // block + 2, block
