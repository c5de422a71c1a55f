"""Sessions fitted to a trace: turns, what users add, times between turns, and the openings that sessions share.

A request continues another where its prompt holds all of that one's prompt and reply. Which one that is, is recorded as a
session, or follows from the hashes of prefixes: the latest earlier request whose last full block is among its own.
"""

from dataclasses import dataclass

import numpy as np

from solver.lengths import Lengths
from solver.traces.lengths import binned_lengths
from solver.traces.trace import Blocks, Counts, Trace

NONE = -1


@dataclass(frozen=True, slots=True)
class ChatsFitted:
    """What sessions take (``solver.workload.Sessions``), as far as a trace says it.

    gap_s: mean time between arrivals of a session's turns, replies included; None where arrivals are not recorded or no session
    has two. opening_tokens: what sessions begin with that others do too, on average over those that do. openings: how many
    different ones there are, the inverse of the chance that two sessions have the same. linked_by: what said so.
    """

    sessions: int
    turns: Lengths
    user: Lengths
    gap_s: float | None
    opening_tokens: int
    openings: int
    continued_fraction: float
    linked_by: str


def fitted_chats(trace: Trace) -> ChatsFitted | None:
    """None where no request continues another: then a trace says nothing of sessions."""
    recorded = trace.sessions is not None and bool(np.any(trace.sessions >= 0))
    if recorded:
        before = continued_by_session(trace)
    elif trace.blocks is not None and len(trace.blocks.ids):
        before = continued_by_blocks(trace, trace.blocks)
    else:
        return None
    goes_on = before >= 0
    if not goes_on.any():
        return None
    turn = turn_numbers(before)
    last = np.ones(trace.requests, dtype=bool)
    last[before[goes_on]] = False
    firsts = np.flatnonzero(~goes_on)
    shared = np.zeros(len(firsts), dtype=np.int64)
    kinds = np.zeros(0, dtype=np.int64)
    if trace.blocks is not None and len(trace.blocks.ids):
        shared, kinds = shared_openings(trace.blocks, firsts)
    earlier = before[goes_on]
    added = trace.prompt_tokens[goes_on] - trace.prompt_tokens[earlier] - trace.output_tokens[earlier]
    opening = round(float(shared[shared > 0].mean())) if bool(np.any(shared > 0)) else 0
    begun = trace.prompt_tokens[firsts] - np.minimum(shared, trace.prompt_tokens[firsts] - 1)
    gap_s = None
    if trace.arrival_s is not None:
        gap_s = float((trace.arrival_s[goes_on] - trace.arrival_s[earlier]).mean())
    return ChatsFitted(
        sessions=len(firsts),
        turns=binned_lengths(turn[last] + 1),
        user=binned_lengths(np.maximum(np.concatenate([begun, added]), 1)),
        gap_s=gap_s,
        opening_tokens=opening,
        openings=effective_number(kinds),
        continued_fraction=float(goes_on.mean()),
        linked_by="session ids" if recorded else "hashes of prefixes",
    )


def continued_by_session(trace: Trace) -> Counts:
    """By request: the one before it in its session that it continues, or -1.

    >>> chat = Trace(np.array([10, 30, 20]), np.array([5, 5, 5]), sessions=np.array([0, 0, 0]))
    >>> continued_by_session(chat).tolist()
    [-1, 0, -1]
    """
    assert trace.sessions is not None
    order = np.argsort(trace.sessions, kind="stable")
    before: Counts = np.full(trace.requests, NONE, dtype=np.int64)
    same = (trace.sessions[order[1:]] == trace.sessions[order[:-1]]) & (trace.sessions[order[1:]] >= 0)
    before[order[1:][same]] = order[:-1][same]
    return _growing(trace, before)


def continued_by_blocks(trace: Trace, blocks: Blocks) -> Counts:
    """The same by hashes: each request is continued once, by the first whose prompt goes on from its last full block.

    >>> chat = Blocks(10, np.array([7, 7, 8, 7, 9]), np.array([0, 1, 3, 5]))
    >>> continued_by_blocks(Trace(np.array([10, 24, 29]), np.array([5, 5, 5]), blocks=chat), chat).tolist()
    [-1, 0, -1]
    """
    starts = blocks.starts
    full = np.diff(starts) > 0
    last_ids = blocks.ids[starts[1:][full] - 1]
    candidates = np.flatnonzero(np.isin(blocks.ids, last_ids))
    owners = np.searchsorted(starts, candidates, side="right") - 1
    before: Counts = np.full(trace.requests, NONE, dtype=np.int64)
    ending: dict[int, list[int]] = {}
    place = 0
    tokens = (trace.prompt_tokens + trace.output_tokens).tolist()
    prompts, ids, owner = trace.prompt_tokens.tolist(), blocks.ids[candidates].tolist(), owners.tolist()
    lasts = dict(zip(np.flatnonzero(full).tolist(), last_ids.tolist(), strict=True))
    for request in range(trace.requests):
        begin = place
        while place < len(owner) and owner[place] == request:
            place += 1
        for at in range(place - 1, begin - 1, -1):
            waiting = ending.get(ids[at])
            if waiting and prompts[request] > tokens[waiting[-1]]:
                before[request] = waiting.pop()
                break
        if request in lasts:
            ending.setdefault(lasts[request], []).append(request)
    return before


def _growing(trace: Trace, before: Counts) -> Counts:
    """Without what does not continue: a prompt is longer than the prompt and the reply that it continues."""
    known = np.flatnonzero(before >= 0)
    earlier = before[known]
    shorter = trace.prompt_tokens[known] <= trace.prompt_tokens[earlier] + trace.output_tokens[earlier]
    before[known[shorter]] = NONE
    return before


def turn_numbers(before: Counts) -> Counts:
    """Which turn of its session each request is, from 0.

    >>> turn_numbers(np.array([-1, 0, -1, 1])).tolist()
    [0, 1, 0, 2]
    """
    number: Counts = np.zeros(len(before), dtype=np.int64)
    for request in np.flatnonzero(before >= 0).tolist():  # earlier ones come first
        number[request] = number[before[request]] + 1
    return number


def shared_openings(blocks: Blocks, firsts: Counts) -> tuple[Counts, Counts]:
    """Of first turns: tokens of leading blocks that another first turn begins with too, and the last such block of each that
    has one."""
    counts = np.diff(blocks.starts)[firsts]
    places = np.repeat(blocks.starts[firsts] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
    ids = blocks.ids[places + np.arange(len(places))]
    _, inverse, uses = np.unique(ids, return_inverse=True, return_counts=True)
    again = (uses > 1)[inverse]
    begins = np.concatenate([[0], np.cumsum(counts)])
    missed = np.concatenate([[0], np.cumsum(~again)])
    leading = again & (missed[:-1] == np.repeat(missed[begins[:-1]], counts))
    owner = np.repeat(np.arange(len(firsts)), counts)
    shared = np.bincount(owner[leading], minlength=len(firsts))
    some = np.flatnonzero(shared > 0)
    return shared * blocks.tokens, ids[begins[some] + shared[some] - 1]


def effective_number(kinds: Counts) -> int:
    """1/Σp²: so many equally common kinds meet as often.

    >>> effective_number(np.array([5, 5, 8, 8])), effective_number(np.array([], dtype=np.int64))
    (2, 1)
    """
    if not len(kinds):
        return 1
    shares = np.unique(kinds, return_counts=True)[1] / len(kinds)
    return max(1, round(1.0 / float((shares * shares).sum())))
