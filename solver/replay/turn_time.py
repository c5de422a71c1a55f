"""About how long a turn of sessions takes at a rate, without a simulation: what the first run of a load begins with.

The laws are those of ``solver.engine.steady``, read from the tables of one lane. What they leave out (crowds, prompts that come
together) makes a turn longer near capacity, which the run then shows.
"""

import math
from functools import lru_cache

from solver.engine.simulate import Schedule
from solver.engine.steady import read_context
from solver.replay.crowds import lane_seats
from solver.replay.found_shares import found_shares
from solver.replay.session_draws import sessions_of
from solver.step.blocks import attention_pairs
from solver.step.tables import StepTables, Vector
from solver.workload import Traffic

ROUNDS, CLOSE_FRACTION = 60, 0.005
"""Of the fixed point, and how far two rounds may differ where it is taken as reached."""
KEPT_LANES = 64
"""Of which what a turn takes alone is kept."""
SLOWER = 0.85
"""From a rate that is more than a lane completes to the next one tried."""


def longer_than_alone(tables: StepTables, schedule: Schedule, traffic: Traffic, requests_per_s: float) -> float:
    """Times as long as alone that a turn takes at this rate of one lane; of more than it completes, at about as much as it does.

    Raises InvalidInputError for requests that belong to no sessions.
    """
    most, rate = traffic.shared_prefix_fraction, requests_per_s
    alone_s = _alone_s(tables, schedule, traffic)
    while True:
        found = min(most, _found(schedule, traffic, rate))
        at_rate_s = _turn_s(tables, schedule, traffic, rate, found)
        if not math.isinf(at_rate_s):
            return at_rate_s / alone_s
        rate *= SLOWER


@lru_cache(maxsize=KEPT_LANES)
def _alone_s(tables: StepTables, schedule: Schedule, traffic: Traffic) -> float:
    """Seconds of a turn that has a lane to itself; the same for every rate that is looked at."""
    return _turn_s(tables, schedule, traffic, 0.0, traffic.shared_prefix_fraction)


def _found(schedule: Schedule, traffic: Traffic, requests_per_s: float) -> float:
    """The share of prompts that the cache finds, about. What a router that knows prefixes keeps together lies between all of it and the
    openings alone."""
    kept = max(schedule.kv_cache_tokens, schedule.host_cache_tokens, schedule.disk_cache_tokens)
    sessions = sessions_of(traffic)
    found = found_shares(traffic).at_one(requests_per_s, kept)
    if sessions.spread_over > 1 and sessions.routing == "prefix_aware":
        found = (found + min(found, sessions.opening_tokens / traffic.prompt.mean)) / 2.0
    return found


def _turn_s(tables: StepTables, schedule: Schedule, traffic: Traffic, requests_per_s: float, found: float) -> float:
    """Seconds from sending to last token, of turns whose prompts are found in the cache by this share.

    n = X·S·τ      S steps of a reply       τ = t(n)/(1 − X·w(n)·L)      w: a prompt's time, which L batches wait for
    turn = D + lag·τ + t(n) + w(n) + S·τ
    """
    prompt, steps = traffic.prompt.mean, max(1.0, traffic.output.mean / schedule.tokens_per_step)
    new = max(1.0, prompt * (1.0 - found))
    hashed_s = (schedule.prefix_token_s + schedule.admitted_token_s) * prompt
    taken_in_s = schedule.request_overhead_s * schedule.turn_overhead_fraction + schedule.request_ingest_s
    taken_in_s += (schedule.prompt_token_s + schedule.answered_token_s) * prompt
    pairs_s = sum(slope * float(attention_pairs(new, prompt - new, limit)) for limit, slope, _ in tables.pairs)
    seats, pace_s = lane_seats(schedule, traffic), 0.0
    lanes = 1.0 + schedule.contending_lanes + schedule.lockstep_copies
    for _ in range(ROUNDS):
        decoding = max(1.0, requests_per_s * steps * pace_s)
        if decoding > seats:
            return math.inf
        decode_s = _decode_s(tables, traffic, decoding)
        prompt_s = _mixed_s(tables, decoding * schedule.query_tokens + new) - _read(tables.decode_s, decoding)
        prompt_s = max(0.0, prompt_s) + pairs_s + hashed_s
        left = 1.0 - requests_per_s * prompt_s * lanes
        if left <= 0.0:
            return math.inf
        before_s, pace_s = pace_s, decode_s / left
        if pace_s - before_s <= CLOSE_FRACTION * pace_s:
            break
    return taken_in_s + schedule.lag_fraction * pace_s + decode_s + prompt_s + steps * pace_s


def _decode_s(tables: StepTables, traffic: Traffic, decoding: float) -> float:
    """Seconds of a step of so many replies at mean context."""
    context = float(read_context(tables.shared_read_fraction, traffic, decoding))
    read_s = sum(slope * min(context, limit) for limit, slope, _ in tables.context)
    own_s = _read(tables.decode_s, decoding) + _read(tables.head_s, decoding)
    return own_s + decoding * (tables.sequence_s + read_s)


def _mixed_s(tables: StepTables, tokens: float) -> float:
    """Of a step with prompts; beyond the longest the time grows in proportion."""
    longest = len(tables.mixed_s) - 1
    return _read(tables.mixed_s, min(tokens, longest)) * max(1.0, tokens / longest)


def _read(column: Vector, at: float) -> float:
    """A column between its whole numbers."""
    low = min(int(at), len(column) - 2)
    return float(column[low] + (at - low) * (column[low + 1] - column[low]))
