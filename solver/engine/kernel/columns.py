"""Columns and records for the kernel: made from step tables, a schedule and requests, and read back after a run.

Importing this module imports the kernel, and with it numba: it is imported when a simulation runs, not before.
"""

import hashlib
import inspect
from dataclasses import dataclass, fields
from functools import lru_cache
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver.engine.kernel import (
    admission,
    completions,
    launching,
    line,
    prefill,
    prefixes,
    records,
    stepping,
    tiers,
    timing,
    turns,
)
from solver.engine.kernel.compiled import COMPILED
from solver.engine.replayable import Prefixes, SessionTurns
from solver.engine.simulate import Schedule
from solver.step.tables import StepTables

Vector = NDArray[np.float64]
Whole = NDArray[np.int64]

KEPT_ENGINES = 8
"""Each keeps its step tables, which are known again as the same object, some 130 kB."""


@dataclass(frozen=True, slots=True)
class RequestTimes:
    """Absolute times of every request in seconds, rows of (seconds between tokens, such tokens), and the last state."""

    sent_s: Vector
    first_s: Vector
    last_s: Vector
    gaps: Vector
    end: records.State
    cached_tokens: Whole
    """Of each prompt, found in the cache or in a tier under it."""
    loaded_tokens: Whole
    """Of those, found in such a tier alone, and loaded."""
    disk_tokens: Whole
    """Of each prompt, read from a disk before."""
    order: Whole
    """Requests as they were sent."""


NO_GAPS: Vector = np.zeros((0, 2))
NO_GAPS.flags.writeable = False


def source_digest() -> str:
    """Of all the source of the kernel: numba takes the machine code it kept for right as long as the file of the entry is
    as it was, whatever became of the functions compiled into it."""
    parts = (records, completions, tiers, prefixes, turns, line, admission, timing, launching, prefill, stepping)
    return hashlib.sha256("".join(inspect.getsource(part) for part in parts).encode()).hexdigest()[:16]


def record_type(record: type, *marks: str) -> np.dtype[Any]:
    """The layout of a dataclass of whole and floating-point numbers; marks: fields that nothing reads."""
    layout = [(f.name, np.int64 if f.type in (int, "int") else np.float64) for f in fields(record)]
    return np.dtype([*layout, *((mark, np.int64) for mark in marks)])


# Machine code is kept by the types of arguments, so another source must be another type.
RULES_TYPE = record_type(records.Rules, f"made_from_{source_digest()}")
STATE_TYPE = record_type(records.State)


def column(values: NDArray[Any]) -> Any:
    """An array for the compiled kernel, a list for Python's.

    Arrays that cannot be written, or have gaps, are of other types to numba, for which it would compile all again.
    """
    if not COMPILED:
        return values.tolist()
    return values if values.flags.carray else values.copy()


_RULES_VALUES = attrgetter(*(field.name for field in fields(records.Rules)))


def rules_column(rules: records.Rules) -> Any:
    """A column of this record alone."""
    if not COMPILED:
        return [rules]
    return np.array([(*_RULES_VALUES(rules), 0)], dtype=RULES_TYPE)


def first_state(held: float) -> Any:
    """A column of the state before a run, with a shared prefix of ``held`` tokens in the cache."""
    if not COMPILED:
        return [records.State(beside=held, reserved=held, promised=held)]
    state = np.zeros(1, dtype=STATE_TYPE)
    state["beside"] = state["reserved"] = state["promised"] = held
    state["oldest"] = state["newest"] = -1
    return state


def engine_rules(
    tables: StepTables, schedule: Schedule, *, closed: bool, notes_gaps: bool, sessions: bool, adapters: bool
) -> records.Rules:
    """What does not change in a run."""
    slots = schedule.adapter_slots if adapters else 0
    host_blocks = int(schedule.host_cache_tokens // schedule.block_tokens) if sessions else 0
    contending = schedule.contending_lanes
    return records.Rules(
        max_batched_tokens=schedule.max_batched_tokens,
        max_sequences=schedule.max_sequences,
        query_tokens=schedule.query_tokens,
        contending_lanes=contending,
        lockstep_copies=schedule.lockstep_copies,
        mixes=int(schedule.mixes),
        chunked_prefill=int(schedule.chunked_prefill),
        static_batching=int(schedule.static_batching),
        launches=int(schedule.launches_in_line and bool(tables.launched_s.any())),
        captured_prompt_tokens=tables.captured_prompt_tokens,
        preempts=int(schedule.preempts),
        prefilled=int(schedule.prefilled),
        admission_interval=schedule.admission_interval_steps,
        windowed=int(tables.windowed),
        closed=int(closed),
        notes_gaps=int(notes_gaps),
        sessions=int(sessions),
        hashes=int(sessions and schedule.prefix_token_s > 0.0),
        lined=int(host_blocks > 0 or slots > 0),
        adapter_slots=slots,
        block_tokens=schedule.block_tokens,
        host_cache_blocks=host_blocks,
        disk_cache_blocks=int(schedule.disk_cache_tokens // schedule.block_tokens) if sessions else 0,
        host_block_s=schedule.host_token_s * schedule.block_tokens,
        disk_block_s=schedule.disk_token_s * schedule.block_tokens,
        store_s=schedule.tier_store_s,
        kv_cache_tokens=float(schedule.kv_cache_tokens),
        block_slack_tokens=schedule.block_slack_tokens,
        lag_fraction=schedule.lag_fraction,
        half_overhead_s=schedule.request_overhead_s * (schedule.turn_overhead_fraction if sessions else 1.0) / 2.0,
        request_ingest_s=schedule.request_ingest_s,
        prompt_token_s=schedule.prompt_token_s,
        prefix_token_s=schedule.prefix_token_s,
        admitted_token_s=schedule.admitted_token_s if sessions else 0.0,
        answered_token_s=schedule.answered_token_s,
        token_front_end_s=schedule.token_front_end_s,
        clock_headroom_fraction=schedule.clock_headroom_fraction,
        clock_sag_fraction=schedule.clock_sag_fraction,
        clock_settling_s=schedule.clock_settling_s,
        lane_step_s=schedule.lane_step_s if contending else 0.0,
        lane_slowed_fraction=schedule.lane_slowed_fraction if contending else 0.0,
        gain=float(schedule.tokens_per_step),
        sequence_s=tables.sequence_s,
        launched_beside_s=tables.launched_beside_s,
        context_slope=tables.context_slope,
        context_size=tables.context_size,
        shared_read_fraction=tables.shared_read_fraction,
        pair_slope=sum(seconds for _, seconds, _ in tables.pairs),
        pair_flops=sum(flops for _, _, flops in tables.pairs),
        flops_per_token=tables.flops_per_token,
        head_flops=tables.head_flops,
        sustained_flop_per_s=tables.sustained_flop_per_s,
    )


def table_columns(tables: StepTables) -> records.Tables:
    """The columns of step tables."""
    named = (
        tables.decode_s, tables.mixed_s, tables.head_s, tables.draft_s, tables.launched_s, tables.outlasting_s,
        tables.decode_bytes, tables.mixed_bytes, tables.head_bytes,
    )  # fmt: skip
    laws = (*_law_columns(tables.context), *_law_columns(tables.pairs))
    return records.Tables(*(column(np.asarray(values, dtype=np.float64)) for values in (*named, *laws)))


def _law_columns(laws: tuple[tuple[float, float, float], ...]) -> Vector:
    """(limits, seconds, bytes or FLOPs) of attention laws."""
    return np.array(laws, dtype=np.float64).reshape(-1, 3).T.copy()


NO_TIER = records.Tier(*(column(np.zeros(1, dtype=np.int64)),) * len(records.Tier._fields))
"""Where nothing is kept under the device: nothing reads it."""


def no_turns() -> tuple[records.Turns, records.Chains]:
    """Where requests belong to no sessions: nothing reads these."""
    none, times = column(np.zeros(1, dtype=np.int64)), column(np.zeros(1))
    columns = dict.fromkeys(records.Chains._fields, none) | {"there": times, "host": NO_TIER, "disk": NO_TIER}
    return records.Turns(times, none, none, times, none), records.Chains(**columns)


NO_TURNS = no_turns()
NO_ADAPTERS = column(np.zeros(1, dtype=np.int64))
"""Where none are named, or all have slots: nothing reads it."""


def tier_column(sessions: SessionTurns, capacity_blocks: int) -> records.Tier:
    """A tier before a run: of ``held_chains``, the blocks that were used last, the first of each chain."""
    held, before, after = (np.full(len(sessions.parent), fill, dtype=np.int64) for fill in (0, -1, -1))
    newer = np.cumsum(sessions.held_blocks[::-1])[::-1] - sessions.held_blocks
    kept: Whole = np.clip(capacity_blocks - newer, 0, sessions.held_blocks)
    there = sessions.held_chains[kept > 0]
    held[sessions.held_chains] = kept
    before[there[1:]], after[there[:-1]] = there[:-1], there[1:]
    ends = np.array([*((there[0], there[-1]) if len(there) else (-1, -1)), kept.sum()], dtype=np.int64)
    return records.Tier(*(column(each) for each in (held, before, after, ends)))


def session_columns(
    sessions: SessionTurns, lasting: Whole, host_blocks: int, disk_blocks: int
) -> tuple[records.Turns, records.Chains]:
    """Turns and chains before a run, with what the cache and the tiers under it hold then in the order of last use.

    lasting: tokens of each turn that tiers keep.
    """
    count, chains = len(sessions.think_s), len(sessions.parent)
    before: Whole = np.full(chains, -1, dtype=np.int64)
    after = before.copy()
    held = sessions.held_chains
    before[held[1:]], after[held[:-1]] = held[:-1], held[1:]
    resident: Whole = np.zeros(chains, dtype=np.int64)
    resident[held] = sessions.held_blocks
    tiers = host_blocks, disk_blocks
    turns = records.Turns(
        column(sessions.think_s), column(sessions.later), column(sessions.starts),
        column(np.zeros(count)), column(np.zeros(count, dtype=np.int64)),
    )  # fmt: skip
    return turns, records.Chains(
        column(sessions.chain), column(sessions.kept_tokens), column(lasting), column(np.full(count, -1, dtype=np.int64)),
        column(sessions.parent), column(sessions.blocks),
        column(resident), column(np.zeros(chains, dtype=np.int64)), column(before), column(after),
        column(np.zeros(count, dtype=np.int64)),
        column(np.zeros(count, dtype=np.int64)), column(np.zeros(count, dtype=np.int64)), column(np.zeros(count)),
        column(np.zeros(count, dtype=np.int64)),
        *((tier_column(sessions, blocks) for blocks in tiers) if any(tiers) else (NO_TIER, NO_TIER)),
    )  # fmt: skip


def working_space(
    count: int, seats: int, turns: tuple[records.Turns, records.Chains] = NO_TURNS, adapters: int = 1
) -> records.Queues:
    """Empty queues for ``count`` requests of which ``seats`` can be in progress. A run that is over leaves them empty, but for
    those of sessions (``turns``)."""
    whole: Whole = np.zeros((6, count), dtype=np.int64)
    whole[0] = records.NOT_RUNNING
    partial: Whole = np.zeros((3, seats + 1), dtype=np.int64)
    ends, have, stack, evicted, order, waiting = (column(row) for row in whole)
    # Twice as many keys as can be right: what evictions leave is then cleared away now and then, not at every turn.
    heap: Whole = np.zeros(2 * seats, dtype=np.int64)
    request, done, need = (column(row) for row in partial)
    named = column(np.zeros(adapters, dtype=np.int64))
    return records.Queues(
        ends, column(np.zeros(count)), have, stack, column(heap), evicted, request, done, need, order, waiting, named, *turns
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Engine:
    """Step tables and a schedule as the kernel takes them: made once, read by any number of runs at the same time."""

    rules: Any
    tables: records.Tables
    seats: int
    notes_gaps: bool
    host_blocks: int = 0
    disk_blocks: int = 0
    tiers_keep_replies: bool = True


@lru_cache(maxsize=KEPT_ENGINES)
def engine(
    tables: StepTables, schedule: Schedule, *, closed: bool, notes_gaps: bool = True, sessions: bool = False,
    adapters: bool = False,
) -> Engine:  # fmt: skip
    """``closed``: clients send their next request when the last is done, rather than requests at times of their own.
    ``sessions``: requests are turns of sessions, and what of their prompts is cached is found as the run goes. ``adapters``: they
    name adapters, for which slots are few. Kept: every draw of a load, and every load on a deployment, runs on the same one."""
    rules = engine_rules(tables, schedule, closed=closed, notes_gaps=notes_gaps, sessions=sessions, adapters=adapters)
    return Engine(
        rules_column(rules), table_columns(tables), schedule.max_sequences, notes_gaps,
        rules.host_cache_blocks, rules.disk_cache_blocks, schedule.tiers_keep_replies,
    )  # fmt: skip


def replayed(
    on: Engine,
    prompts: Whole,
    outputs: Whole,
    concurrency: int,
    arrivals_s: Vector | None,
    prefixes: Prefixes,
    *,
    room: int | None = None,
    queues: records.Queues | None = None,
    sessions: SessionTurns | None = None,
    adapters: Whole | None = None,
) -> RequestTimes:
    """The run of requests that are known to be replayable (``check_replayable``).

    room: gaps noted before the kernel comes back to have them put away; None: as many as most runs have. queues: empty
    ones for as many requests, of a run before.
    """
    count = len(prompts)
    state = first_state(float(prefixes.held_tokens))
    cached: Whole = np.asarray(prefixes.cached_tokens, dtype=np.int64)
    times: Vector = np.zeros((4, count))
    found = column(cached)
    aside = found
    if prefixes.aside_tokens is not None:
        aside = column(np.asarray(prefixes.aside_tokens, dtype=np.int64))
    adapter_of = NO_ADAPTERS if adapters is None else column(np.asarray(adapters, dtype=np.int64))
    sent, ready, first, last = (column(row) for row in times)
    requests = records.Requests(column(prompts), column(outputs), found, aside, sent, ready, first, last, adapter_of)
    if queues is None:
        turns_of = NO_TURNS
        if sessions is not None:
            kept = sessions.kept_tokens
            lasting = kept if on.tiers_keep_replies else np.minimum(kept, prompts)
            turns_of = session_columns(sessions, lasting, on.host_blocks, on.disk_blocks)
        queues = working_space(
            count, min(count, on.seats), turns_of, 1 + int(max(adapters)) if adapters is not None else 1
        )
    if sessions is not None:
        first_chains(state, sessions)
    space = (room or 3 * count + 64) if on.notes_gaps else 1
    stepping.start(
        on.rules, state, requests, queues, column(np.zeros(0) if arrivals_s is None else arrivals_s), concurrency
    )
    gaps: list[Vector] = []
    while True:
        noted = records.Gaps(*(column(np.empty(space)) for _ in range(2)))
        stepping.run(on.rules, state, requests, queues, on.tables, noted)
        end = state_of(state)
        if on.notes_gaps:
            gaps.append(np.stack([noted.seconds[: end.gaps], noted.tokens[: end.gaps]]).T)
        if end.done >= count:
            break
    sent_s, first_s, last_s = (np.asarray(each) for each in (requests.sent, requests.first, requests.last))
    noted_gaps = gaps[0] if len(gaps) == 1 else np.concatenate([NO_GAPS, *gaps])
    chains = queues.chains
    return RequestTimes(
        sent_s, first_s, last_s, noted_gaps, end,
        np.asarray(chains.found), np.asarray(chains.loaded), np.asarray(chains.from_disk), np.asarray(queues.order),
    )  # fmt: skip


def first_chains(one_state: Any, sessions: SessionTurns) -> None:
    """What the cache holds before a run, put down in the state."""
    if not len(sessions.held_chains):
        return
    u = one_state[0]
    first = {
        "oldest": int(sessions.held_chains[0]), "newest": int(sessions.held_chains[-1]),
        "cached_blocks": int(sessions.held_blocks.sum()),
    }  # fmt: skip
    for name, value in first.items():
        if COMPILED:
            one_state[name] = value
        else:
            setattr(u, name, value)


def state_of(one_state: Any) -> records.State:
    """The record in a column of one, with Python's own numbers."""
    found: records.State = records.State(*one_state[0].item()) if COMPILED else one_state[0]
    return found
