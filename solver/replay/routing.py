"""To which of several replicas turns of sessions are sent, one after the other in the order of sending.

Routers know what they sent and that it is done, not what a cache has forgotten since. How long a turn takes is taken as what
turns take on average, so that a replica can be simulated by itself.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from solver.engine.kernel.compiled import COMPILED, entry
from solver.errors import InvalidInputError
from solver.sessions import SampledTurns, renumbered

if TYPE_CHECKING:
    from solver.workload import Sessions

Vector = NDArray[np.float64]
Whole = NDArray[np.int64]
MOST_ROUTED = 400_000_000
"""Turns times replicas that are looked at, and kinds of openings times replicas: bounds time and memory."""


@entry
def route(
    by_prefix: int, order: Any, at_s: Any, service_s: float, prompts: Any, outputs: Any, session: Any, system: Any, pair: Any,
    system_tokens: int, opening_tokens: int, tie: Any, count: Any, held: Any, last: Any, kept: Any, systems: Any, pairs: Any,
    chosen: Any,
) -> None:  # fmt: skip
    """Fill in ``chosen``, the replica of each turn. order: of the turns by ``at_s``.

    by_prefix: to where prompt tokens that are not known there, and those of turns in progress there, are fewest; else to where
    fewest turns are in progress. Of equals the first from ``tie`` on, which has one for each place in the order. By replica: count,
    held, of turns in progress. By session: system, pair, its openings; last, kept: where its last turn went, and tokens it left.
    systems, pairs: which opening has been sent where, by kind and then by replica.
    """
    replicas = len(count)
    done = 0
    for place in range(len(order)):
        turn = order[place]
        while done < place and at_s[order[done]] + service_s <= at_s[turn]:
            ended = order[done]
            count[chosen[ended]] -= 1
            held[chosen[ended]] -= prompts[ended]
            done += 1
        best, least = 0, 1 << 62
        mine, prompt = session[turn], prompts[turn]
        own, document, opening = last[mine], pair[mine] * replicas, system[mine] * replicas
        replica = tie[place]
        for _ in range(replicas):
            cost = count[replica]
            if by_prefix:
                known = 0
                if own == replica:
                    known = kept[mine]
                elif pairs[document + replica]:
                    known = opening_tokens
                elif systems[opening + replica]:
                    known = system_tokens
                cost = prompt - known + held[replica]
            if cost < least:
                best, least = replica, cost
            replica += 1
            if replica == replicas:
                replica = 0
        chosen[turn] = best
        count[best] += 1
        held[best] += prompt
        if by_prefix:
            last[mine] = best
            kept[mine] = prompt + outputs[turn] - 1
            systems[opening + best] = 1
            pairs[document + best] = 1


def routed_here(
    sessions: "Sessions",
    turns: SampledTurns,
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
    zeros = np.zeros
    chosen = _column(zeros(total, dtype=np.int64))
    route(
        int(sessions.routing == "prefix_aware"), _column(in_time(at_s)), _column(at_s), service_s, _column(turns.prompts),
        _column(turns.outputs), _column(turns.session), _column(of_system), _column(of_pair),
        sessions.system_tokens, sessions.opening_tokens, _column(rng.integers(replicas, size=total)),
        _column(zeros(replicas, dtype=np.int64)), _column(zeros(replicas, dtype=np.int64)),
        _column(np.full(len(system), -1)), _column(zeros(len(system), dtype=np.int64)),
        _column(zeros(len(systems) * replicas, dtype=np.int8)), _column(zeros(len(pairs) * replicas, dtype=np.int8)), chosen,
    )  # fmt: skip
    where = np.asarray(chosen)
    busiest = int(np.bincount(where[at_s >= 0.0], minlength=replicas).argmax())
    return np.asarray(where == busiest)


def in_time(at_s: Vector) -> Whole:
    """The order of these times, of equals the first one first. Equals are hardly ever there, and the sort that need not mind them takes
    a fifth of the time.

    >>> in_time(np.array([2.0, 1.0, 2.0])).tolist()
    [1, 0, 2]
    """
    order: Whole = np.argsort(at_s)
    ordered = at_s[order]
    return np.argsort(at_s, kind="stable") if bool((ordered[1:] == ordered[:-1]).any()) else order


def _column(values: NDArray[Any]) -> Any:
    """An array, or a list where Python reads it element by element."""
    return np.ascontiguousarray(values) if COMPILED else values.tolist()
