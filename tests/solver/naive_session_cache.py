"""Sessions before a cache of single blocks, in plain Python: what faster answers about their hits are held against.

Nothing of the solver is used: sessions, times, routing and the cache are written here once more. Turns take no time.
"""

import heapq
import random
from collections import OrderedDict
from dataclasses import dataclass

Block = tuple[object, ...]


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


def prompt_blocks(chat: int, opening: tuple[int, int], sizes: Chats, tokens: int, block: int) -> list[Block]:
    """Names of the whole blocks of so many tokens: equal where all tokens up to the block's end are."""
    systems, openings = sizes.system_tokens // block, (sizes.system_tokens + sizes.document_tokens) // block
    names: list[Block] = []
    for number in range(tokens // block):
        if number < systems:
            names.append(("system", opening[0], number))
        elif number < openings:
            names.append(("document", *opening, number))
        else:
            names.append(("chat", chat, number))
    return names


def naive_hit_fraction(chats: Chats, cache_blocks: int, block: int, turns: int, seed: int) -> float:
    """Share of tokens of prompts found by replica 0, of its last ``turns`` turns, after twice as long a time to settle."""
    rng = random.Random(seed)
    mean_turns = sum(chats.turns) / 2.0
    begin_rate = chats.rate * chats.replicas / mean_turns
    filled = cache_blocks * block / (sum(chats.user) / 2.0 + sum(chats.reply) / 2.0) / chats.rate
    settled_s = min(1.5 * filled, 2 * turns / chats.rate) + chats.turns[1] * chats.think_s
    until_s = settled_s + turns / chats.rate
    cache: OrderedDict[Block, None] = OrderedDict()
    due: list[tuple[float, int, int, int, int, tuple[int, int]]] = []
    now, chat, found, asked = 0.0, 0, 0, 0
    begins = rng.expovariate(begin_rate)
    while now < until_s:
        if not due or begins < due[0][0]:
            chat += 1
            opening = rng.randrange(chats.systems), rng.randrange(chats.documents)
            so_far = chats.system_tokens + chats.document_tokens
            heapq.heappush(due, (begins, chat, rng.randint(*chats.turns), 0, so_far, opening))
            begins += rng.expovariate(begin_rate)
            continue
        now, who, length, number, so_far, opening = heapq.heappop(due)
        prompt, reply = so_far + rng.randint(*chats.user), rng.randint(*chats.reply)
        if number + 1 < length:
            later = now + (rng.expovariate(1.0 / chats.think_s) if chats.think_s else 0.0)
            heapq.heappush(due, (later, who, length, number + 1, prompt + reply, opening))
        if rng.randrange(chats.replicas):
            continue
        hits = 0
        for name in prompt_blocks(who, opening, chats, prompt - 1, block):
            if name not in cache:
                break
            hits += 1
        for name in reversed(prompt_blocks(who, opening, chats, prompt + reply - 1, block)):
            cache[name] = None
            cache.move_to_end(name)
        while len(cache) > cache_blocks:
            cache.popitem(last=False)
        if now >= settled_s:
            found, asked = found + hits * block, asked + prompt
    return found / max(asked, 1)


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
