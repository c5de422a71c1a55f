"""Columns and records for the kernel: made from step tables, a schedule and requests, and read back after a run.

Importing this module imports the kernel, and with it numba: it is imported when a simulation runs, not before.
"""

import hashlib
import inspect
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver.engine.kernel import admission, completions, records, stepping, timing
from solver.engine.kernel.compiled import COMPILED
from solver.engine.replayable import Prefixes
from solver.engine.simulate import Schedule
from solver.step.tables import StepTables

Vector = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RequestTimes:
    """Absolute times of every request in seconds, rows of (seconds between tokens, such tokens), and the last state."""

    sent_s: Vector
    first_s: Vector
    last_s: Vector
    gaps: Vector
    end: records.State


NO_GAPS: Vector = np.zeros((0, 2))
NO_GAPS.flags.writeable = False


def source_digest() -> str:
    """Of all the source of the kernel: numba takes the machine code it kept for right as long as the file of the entry is
    as it was, whatever became of the functions compiled into it."""
    parts = (records, completions, admission, timing, stepping)
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
        return [records.State(reserved=held, promised=held)]
    state = np.zeros(1, dtype=STATE_TYPE)
    state["reserved"] = state["promised"] = held
    return state


def engine_rules(tables: StepTables, schedule: Schedule, *, closed: bool, notes_gaps: bool) -> records.Rules:
    """What does not change in a run."""
    contending = schedule.contending_lanes
    return records.Rules(
        max_batched_tokens=schedule.max_batched_tokens,
        max_sequences=schedule.max_sequences,
        query_tokens=schedule.query_tokens,
        contending_lanes=contending,
        mixes=int(schedule.mixes),
        chunked_prefill=int(schedule.chunked_prefill),
        static_batching=int(schedule.static_batching),
        preempts=int(schedule.preempts),
        prefilled=int(schedule.prefilled),
        windowed=int(tables.windowed),
        closed=int(closed),
        notes_gaps=int(notes_gaps),
        kv_cache_tokens=float(schedule.kv_cache_tokens),
        block_slack_tokens=schedule.block_slack_tokens,
        lag_fraction=schedule.lag_fraction,
        half_overhead_s=schedule.request_overhead_s / 2.0,
        request_ingest_s=schedule.request_ingest_s,
        prompt_token_s=schedule.prompt_token_s,
        token_front_end_s=schedule.token_front_end_s,
        clock_headroom_fraction=schedule.clock_headroom_fraction,
        clock_sag_fraction=schedule.clock_sag_fraction,
        clock_settling_s=schedule.clock_settling_s,
        lane_step_s=schedule.lane_step_s if contending else 0.0,
        gain=float(schedule.tokens_per_step),
        sequence_s=tables.sequence_s,
        context_slope=tables.context_slope,
        context_size=tables.context_size,
        pair_slope=sum(seconds for _, seconds, _ in tables.pairs),
        pair_flops=sum(flops for _, _, flops in tables.pairs),
        flops_per_token=tables.flops_per_token,
        head_flops=tables.head_flops,
        sustained_flop_per_s=tables.sustained_flop_per_s,
    )


def table_columns(tables: StepTables) -> records.Tables:
    """The columns of step tables."""
    named = (
        tables.decode_s, tables.mixed_s, tables.head_s, tables.draft_s,
        tables.decode_bytes, tables.mixed_bytes, tables.head_bytes,
    )  # fmt: skip
    laws = (*_law_columns(tables.context), *_law_columns(tables.pairs))
    return records.Tables(*(column(np.asarray(values, dtype=np.float64)) for values in (*named, *laws)))


def _law_columns(laws: tuple[tuple[float, float, float], ...]) -> Vector:
    """(limits, seconds, bytes or FLOPs) of attention laws."""
    return np.array(laws, dtype=np.float64).reshape(-1, 3).T.copy()


def working_space(count: int, seats: int) -> records.Queues:
    """Empty queues for ``count`` requests of which ``seats`` can be in progress. A run that is over leaves them empty."""
    whole: Whole = np.zeros((4, count), dtype=np.int64)
    whole[0] = records.NOT_RUNNING
    partial: Whole = np.zeros((3, seats + 1), dtype=np.int64)
    ends, have, stack, evicted = (column(row) for row in whole)
    # Twice as many keys as can be right: what evictions leave is then cleared away now and then, not at every turn.
    heap: Whole = np.zeros(2 * seats, dtype=np.int64)
    request, done, need = (column(row) for row in partial)
    return records.Queues(ends, column(np.zeros(count)), have, stack, column(heap), evicted, request, done, need)


@dataclass(frozen=True, slots=True)
class Engine:
    """Step tables and a schedule as the kernel takes them: made once, read by any number of runs at the same time."""

    rules: Any
    tables: records.Tables
    seats: int
    notes_gaps: bool


def engine(tables: StepTables, schedule: Schedule, *, closed: bool, notes_gaps: bool = True) -> Engine:
    """``closed``: clients send their next request when the last is done, rather than requests at times of their own."""
    rules = rules_column(engine_rules(tables, schedule, closed=closed, notes_gaps=notes_gaps))
    return Engine(rules, table_columns(tables), schedule.max_sequences, notes_gaps)


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
) -> RequestTimes:
    """The run of requests that are known to be replayable (``check_replayable``).

    room: gaps noted before the kernel comes back to have them put away; None: as many as most runs have. queues: empty
    ones for as many requests, of a run before.
    """
    count = len(prompts)
    state = first_state(float(prefixes.held_tokens))
    cached: Whole = np.asarray(prefixes.cached_tokens, dtype=np.int64)
    times: Vector = np.zeros((4, count))
    requests = records.Requests(column(prompts), column(outputs), column(cached), *(column(row) for row in times))
    if queues is None:
        queues = working_space(count, min(count, on.seats))
    space = (room or 3 * count + 64) if on.notes_gaps else 1
    stepping.start(on.rules, state, requests, column(np.zeros(0) if arrivals_s is None else arrivals_s), concurrency)
    gaps: list[Vector] = []
    end = state_of(state)
    while end.done < count:
        noted = records.Gaps(*(column(np.empty(space)) for _ in range(2)))
        stepping.run(on.rules, state, requests, queues, on.tables, noted)
        end = state_of(state)
        if on.notes_gaps:
            gaps.append(np.stack([noted.seconds[: end.gaps], noted.tokens[: end.gaps]]).T)
    sent_s, first_s, last_s = (np.asarray(each) for each in (requests.sent, requests.first, requests.last))
    return RequestTimes(sent_s, first_s, last_s, gaps[0] if len(gaps) == 1 else np.concatenate([NO_GAPS, *gaps]), end)


def state_of(one_state: Any) -> records.State:
    """The record in a column of one, with Python's own numbers."""
    found: records.State = records.State(*one_state[0].item()) if COMPILED else one_state[0]
    return found
