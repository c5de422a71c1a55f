"""To which of several replicas turns of sessions are sent, one after the other in the order of sending.

Routers know what they sent and that it is done, not what a cache has forgotten since. How long a turn takes is taken as what
turns take on average, so that a replica can be simulated by itself.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from solver.engine.kernel.compiled import COMPILED, entry, inner
from solver.errors import InvalidInputError
from solver.sessions import TurnLengths, renumbered

if TYPE_CHECKING:
    from solver.workload import Sessions

Vector = NDArray[np.float64]
Whole = NDArray[np.int64]
MOST_ROUTED = 400_000_000
"""Turns times replicas that are looked at, and kinds of openings times replicas: bounds time and memory."""


@inner
def _first_from(first: int, values: Any, value: int) -> int:
    """Position of a value that is among them, the first one from ``first`` on, around the end."""
    position = first
    while values[position] != value:
        position = position + 1 if position + 1 < len(values) else 0
    return position


@entry
def route(
    by_prefix: int, at_s: Any, service_s: float, prompts: Any, kept_tokens: Any, session: Any, system: Any, pair: Any,
    system_tokens: int, opening_tokens: int, tie: Any, count: Any, held: Any, last: Any, kept: Any, systems: Any, pairs: Any,
    cost: Any, chosen: Any,
) -> None:  # fmt: skip
    """Fill in ``chosen``, the replica of each turn. Turns are in the order of sending, so that what is read
    of one lies beside what is read of the next.

    by_prefix: to where prompt tokens that are not known there, and those of turns in progress there, are fewest; else to where
    fewest turns are in progress. Of equals the first from ``tie`` on. The others are read by prefix alone. kept_tokens, session, system,
    pair: of each turn, tokens that it leaves, whose it is, and the openings of that. By replica: count, held, of turns in progress. By
    session: last, kept: where its last turn went, and tokens it left. systems, pairs: tokens of which opening have been sent where, by
    kind and then by replica.
    """
    replicas = len(count)
    done = 0
    for turn in range(len(at_s)):
        while done < turn and at_s[done] + service_s <= at_s[turn]:
            count[chosen[done]] -= 1
            if by_prefix:
                held[chosen[done]] -= prompts[done]
            done += 1
        first, best, least = tie[turn], 0, 1 << 62
        if by_prefix:
            mine = session[turn]
            document, opening = pair[turn] * replicas, system[turn] * replicas
            # The least first and where it is then: two loops without branches over what lies side by side.
            known, sent = systems[opening : opening + replicas], pairs[document : document + replicas]
            for replica in range(replicas):
                cost[replica] = held[replica] - max(known[replica], sent[replica])
            for replica in range(replicas):
                least = min(least, cost[replica])
            best = _first_from(first, cost, least)
            own = last[mine]
            if own >= 0:  # a session's last turn left no less there than any opening
                at_own = held[own] - kept[mine]
                if at_own < least or (at_own == least and (own - first) % replicas < (best - first) % replicas):
                    best = own
            last[mine] = best
            kept[mine] = kept_tokens[turn]
            systems[opening + best] = system_tokens
            pairs[document + best] = opening_tokens
            held[best] += prompts[turn]
        else:
            for replica in range(replicas):
                least = min(least, count[replica])
            best = _first_from(first, count, least)
        chosen[turn] = best
        count[best] += 1


def routed_here(
    sessions: "Sessions",
    turns: TurnLengths,
    at_s: Vector,
    service_s: float,
    openings: tuple[Whole, Whole],
    rng: np.random.Generator,
) -> NDArray[np.bool_]:
    """Which turns come to one of the replicas: any at random, else the one that most turns come to from 0 s on.

    Raises InvalidInputError for more turns and replicas than are looked at.
    """
    total, replicas = len(at_s), sessions.spread_over
    if replicas == 1:
        return np.ones(total, dtype=bool)
    if sessions.routing == "random":
        return np.asarray(rng.integers(replicas, size=total) == 0)
    system, document = openings
    kinds = sessions.system_prompts
    systems, of_system = renumbered(system, kinds)
    pairs, of_pair = renumbered(system * np.int64(sessions.documents) + document, kinds * sessions.documents)
    if max(total, len(pairs), len(systems)) * replicas > MOST_ROUTED:
        raise InvalidInputError(f"{total} turns of sessions over {replicas} replicas are too many to route")
    zeros, order = np.zeros, in_time(at_s)
    chosen = _column(zeros(total, dtype=np.int64))
    by_prefix, none, sent_s = sessions.routing == "prefix_aware", order[:0], at_s.take(order)
    prompts, session = (turns.prompts.take(order), turns.session.take(order)) if by_prefix else (none, none)
    kept = prompts + turns.outputs.take(order) - 1 if by_prefix else none
    route(
        int(by_prefix), _column(sent_s), service_s, _column(prompts), _column(kept), _column(session),
        _column(of_system.take(session)), _column(of_pair.take(session)),
        sessions.system_tokens, sessions.opening_tokens, _column(rng.integers(replicas, size=total)),
        _column(zeros(replicas, dtype=np.int64)), _column(zeros(replicas, dtype=np.int64)),
        _column(np.full(len(system), -1)), _column(zeros(len(system), dtype=np.int64)),
        _column(zeros(len(systems) * replicas, dtype=np.int64)), _column(zeros(len(pairs) * replicas, dtype=np.int64)),
        _column(zeros(replicas, dtype=np.int64)), chosen,
    )  # fmt: skip
    where = np.asarray(chosen)
    busiest = int(np.bincount(where[sent_s >= 0.0], minlength=replicas).argmax())
    here = np.zeros(total, dtype=bool)
    here[order[where == busiest]] = True
    return here


def in_time(at_s: Vector) -> Whole:
    """The order of these times, of equals the first one first. Times count as equal that differ by less than their span over 2^40: the
    order is sorted with what it orders in one word, which takes a third of the time.

    >>> in_time(np.array([2.0, 1.0, 2.0])).tolist()
    [1, 0, 2]
    """
    if not len(at_s):
        return np.zeros(0, dtype=np.int64)
    first_s, bits = at_s.min(), (len(at_s) - 1).bit_length()
    step_s = max(float(at_s.max() - first_s), 1e-300) / 2.0 ** (62 - bits)
    words: Whole = ((at_s - first_s) / step_s).astype(np.int64) << bits
    words += np.arange(len(at_s))
    words = sorted_words(words, 62 - bits)
    words &= (1 << bits) - 1
    return words


def sorted_words(words: Whole, shift: int) -> Whole:
    """The same words, the least first: none below 0 or above 2^62. By as many buckets as there are words without their last ``shift``
    bits, which is quick where words lie evenly; where they do not they are sorted as any others."""
    if COMPILED:
        ends, found = np.zeros((1 << (62 - shift)) + 2, dtype=np.int64), np.empty_like(words)
        if sort_evenly(words, shift, ends, found):
            return found
    return np.sort(words)


MOST_IN_A_BUCKET = 48
"""Words beyond which sorting them one by one is no longer quick."""


@entry
def sort_evenly(words: Any, shift: int, ends: Any, found: Any) -> bool:
    """Fill in ``found`` with the words sorted, by buckets of those that are alike but for ``shift`` bits; False where some bucket
    holds too many. ends: zeros, one a bucket and one more."""
    for word in words:
        ends[(word >> shift) + 1] += 1
    for bucket in range(1, len(ends)):
        if ends[bucket] > MOST_IN_A_BUCKET:
            return False
        ends[bucket] += ends[bucket - 1]
    for word in words:
        bucket = word >> shift
        found[ends[bucket]] = word
        ends[bucket] += 1
    for place in range(1, len(found)):  # buckets are in order: a word moves within its own
        word, to = found[place], place
        while to > 0 and found[to - 1] > word:
            found[to] = found[to - 1]
            to -= 1
        found[to] = word
    return True


def _column(values: NDArray[Any]) -> Any:
    """An array, or a list where Python reads it element by element."""
    return np.ascontiguousarray(values) if COMPILED else values.tolist()
