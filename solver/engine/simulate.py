"""Event simulation of one engine replica with continuous batching.

The scheduler is replayed as docs/mathematics.md ("The scheduler") states it. Between scheduling events nothing but
decoding happens, and there the step time is affine in the summed context, so a stretch of steps is one event: the cost
of a run grows with the number of requests, not of tokens. The loop itself is in ``kernel``; here its columns are made.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from solver.engine.replayable import (
    Prefixes,
    SessionTurns,
    check_fitting,
    check_replayable,
    check_tabulated,
    longest_tokens,
    one_prefix,
)
from solver.errors import InvalidInputError
from solver.step.tables import StepTables

if TYPE_CHECKING:
    from solver.engine.kernel.columns import RequestTimes

Vector = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Schedule:
    """How the engine admits work, and what its front end costs. Times in seconds."""

    max_batched_tokens: int
    max_sequences: int
    kv_cache_tokens: float
    mixes: bool = True
    chunked_prefill: bool = True
    static_batching: bool = False
    launches_in_line: bool = False
    """Steps are launched by the loop that composes them, which hands on what a step gave once the next one is launched."""
    preempts: bool = True
    block_slack_tokens: float = 7.5
    """Mean unused tail of a sequence's last KV block: (block length − 1) / 2."""
    lag_fraction: float = 0.5
    request_overhead_s: float = 0.0
    turn_overhead_fraction: float = 1.0
    """Of turns of sessions: their share of ``request_overhead_s``."""
    request_ingest_s: float = 0.0
    prompt_token_s: float = 0.0
    prefix_token_s: float = 0.0
    """Of turns of sessions: seconds to hash a token of a prompt, by which it is found in the cache; steps with prompts wait. Where it is
    not 0, prompts that come together are taken in together, and first tokens wait for the front end as well (``answered_token_s``)."""
    admitted_token_s: float = 0.0
    """Of turns of sessions: seconds that a step which admits a prompt is longer, for each of its tokens, found or not."""
    answered_token_s: float = 0.0
    """Seconds for each token of a prompt before its first token leaves the front end, where prompts are hashed."""
    token_front_end_s: float = 0.0
    cached_prefix_fraction: float = 0.0
    clock_headroom_fraction: float = 0.0
    """How much shorter an arithmetic-bound step is while the board is still below its sustained power."""
    clock_sag_fraction: float = 0.0
    """How much longer a decode step is while the board is at its sustained power, as long prompts leave it."""
    clock_settling_s: float = 1.0
    """Time constant with which the board settles to its sustained clock under load, and recovers."""
    lane_step_s: float = 0.0
    """Added to every step of a batch that shares a pipeline with others in flight."""
    lane_slowed_fraction: float = 0.0
    """How much longer prompts take in such a batch: stages work beside transfers that wait for one another."""
    contending_lanes: int = 0
    """Other batches in the same pipeline: while one of them prefills, this one waits for the stages."""
    lockstep_copies: int = 0
    """Other copies of attention that share experts with this one: their steps begin and end together."""
    admission_interval_steps: int = 1
    """New requests are taken in once in so many decode steps, after every step with prompts, and by an idle engine at once."""
    tokens_per_step: float = 1.0
    """Tokens one decode step yields per sequence (above 1 with speculative decoding)."""
    query_tokens: int = 1
    """Tokens one decode step works on per sequence (above 1 where drafted tokens are verified)."""
    finds_prefixes: bool = True
    """Turns of sessions find in the cache what earlier requests left there."""
    host_cache_tokens: float = 0.0
    """Of what requests leave, kept in host memory too; 0: nothing is."""
    host_token_s: float = 0.0
    """Seconds for each token of context loaded from there, while others run."""
    tiers_keep_replies: bool = True
    """Host memory and the disk keep the blocks of replies too, not of prompts alone."""
    disk_cache_tokens: float = 0.0
    """Of what requests leave, written to a disk too; 0: nothing is. Host memory lies between it and the device."""
    disk_token_s: float = 0.0
    """Seconds for each token of context read from there into host memory, while others run."""
    tier_store_s: float = 0.0
    """Added to a step that leaves new blocks to a disk."""
    adapter_slots: int = 0
    """Adapters that those who run may name between them; 0: any number. Who names another waits and is passed over."""
    prefilled: bool = False
    """Prompts arrive with their KV cache, from a pool that prefilled them; only evicted requests are computed here."""

    @property
    def block_tokens(self) -> int:
        """Tokens of one block of the cache, which prefixes are found by; more than any prompt has where none are.

        >>> Schedule(1, 1, 1.0, block_slack_tokens=7.5).block_tokens
        16
        """
        return round(2.0 * self.block_slack_tokens) + 1 if self.finds_prefixes else NO_BLOCK_TOKENS


NO_BLOCK_TOKENS = 1 << 40


@dataclass(slots=True, eq=False)
class SimulationTrace:
    """What happened: per-request times in seconds (index = request), and totals of the run.

    gaps: rows of (seconds between tokens, how many such gaps). bytes and flops are per rank.
    """

    time_to_first_token_s: Vector
    time_per_output_token_s: Vector
    end_to_end_s: Vector
    completed_s: Vector
    outputs: Whole
    clients: int = 0
    duration_s: float = 0.0
    output_tokens: int = 0
    prompt_tokens: int = 0
    busy_s: float = 0.0
    bytes: float = 0.0
    flops: float = 0.0
    preemptions: int = 0
    events: int = 0
    steps: int = 0
    gaps: Vector = field(default_factory=lambda: np.zeros((0, 2)))


def simulate(
    tables: StepTables,
    schedule: Schedule,
    prompts: Sequence[int] | Whole,
    outputs: Sequence[int] | Whole,
    *,
    concurrency: int = 0,
    arrivals_s: Sequence[float] | Vector | None = None,
    prefixes: Prefixes | None = None,
    notes_gaps: bool = True,
    adapters: Whole | None = None,
) -> SimulationTrace:
    """Replay requests through the engine: a closed loop of ``concurrency`` clients, or given arrival times.

    prompts, outputs: tokens per request, in order of sending. outputs are at least 1. prefixes: what of each prompt is
    cached; None: the schedule's share of every prompt, of one prefix. notes_gaps: without, the trace has none. adapters: which one
    each request names, from 0 on; None: all have slots.
    Raises InvalidInputError for inconsistent arguments, a prompt that exceeds the KV cache, or too many requests.
    """
    prompts, outputs = np.asarray(prompts, dtype=np.int64), np.asarray(outputs, dtype=np.int64)
    if arrivals_s is not None:
        arrivals_s = np.asarray(arrivals_s, dtype=np.float64)
    if prefixes is None:
        prefixes = one_prefix(prompts, schedule.cached_prefix_fraction)
    check_replayable(schedule, prompts, outputs, concurrency, arrivals_s, prefixes)
    check_tabulated(schedule, len(prompts), len(tables.decode_s), len(tables.head_s))
    from solver.engine.kernel.columns import engine, replayed  # imports numba, which listing devices need not wait for

    on = engine(tables, schedule, closed=arrivals_s is None, notes_gaps=notes_gaps, adapters=adapters is not None)
    outcome = replayed(on, prompts, outputs, concurrency, arrivals_s, prefixes, adapters=adapters)
    return trace_of(outcome, outputs, concurrency)


def simulate_sessions(
    tables: StepTables,
    schedule: Schedule,
    prompts: Whole,
    outputs: Whole,
    turns: SessionTurns,
    *,
    concurrency: int = 0,
    arrivals_s: Vector | None = None,
    notes_gaps: bool = True,
) -> "SessionTrace":
    """Replay turns of sessions, whose prompts are found in the cache as far as it still holds what they begin with.

    arrivals_s: when the first turn of each session is sent, in the order of ``turns.starts``; else a closed loop of
    ``concurrency`` clients, each with one session after the other. Raises as ``simulate`` does.
    """
    if (arrivals_s is None) == (concurrency < 1):
        raise InvalidInputError("give either a concurrency of at least 1 or arrival times")
    if arrivals_s is not None and len(arrivals_s) != len(turns.starts):
        raise InvalidInputError("one arrival time for each session")
    nothing: Whole = np.zeros(len(prompts), dtype=np.int64)
    check_fitting(schedule, longest_tokens(prompts, outputs, Prefixes(nothing, 0)))
    check_tabulated(schedule, len(prompts), len(tables.decode_s), len(tables.head_s))
    from solver.engine.kernel.columns import engine, replayed  # imports numba, which listing devices need not wait for

    on = engine(tables, schedule, closed=arrivals_s is None, notes_gaps=notes_gaps, sessions=True)
    prefixes = Prefixes(nothing, 0, turns.aside_tokens)
    outcome = replayed(on, prompts, outputs, concurrency, arrivals_s, prefixes, sessions=turns)
    order = outcome.order
    if (np.diff(outcome.sent_s[order]) < 0.0).any():  # taken in together, and one of those was due before another
        order = np.argsort(outcome.sent_s, kind="stable")
    in_order = replace(
        outcome, sent_s=outcome.sent_s[order], first_s=outcome.first_s[order], last_s=outcome.last_s[order]
    )
    trace = trace_of(in_order, outputs[order], concurrency)
    return SessionTrace(
        trace, order, in_order.sent_s, outcome.cached_tokens[order], prompts[order], outcome.loaded_tokens[order],
        outcome.disk_tokens[order],
    )  # fmt: skip


@dataclass(slots=True, eq=False)
class SessionTrace:
    """A trace of turns in the order of sending. order: which request each is. cached_tokens: found of its prompt; loaded_tokens:
    those of them that came from a tier under the device; disk_tokens: of each prompt, read from a disk."""

    trace: SimulationTrace
    order: Whole
    sent_s: Vector
    cached_tokens: Whole
    prompts: Whole
    loaded_tokens: Whole
    disk_tokens: Whole

    def loaded_fraction(self, first: int = 0) -> float:
        """Share of the tokens of prompts that were loaded from a tier under the device, from turn ``first`` on."""
        return float(self.loaded_tokens[first:].sum()) / max(float(self.prompts[first:].sum()), 1.0)

    def disk_fraction(self, first: int = 0) -> float:
        """Share of the tokens of prompts that were read from a disk, from turn ``first`` on."""
        return float(self.disk_tokens[first:].sum()) / max(float(self.prompts[first:].sum()), 1.0)

    def found_fraction(self, first: int = 0) -> float:
        """Share of the tokens of prompts that were found in the cache, from turn ``first`` on."""
        return float(self.cached_tokens[first:].sum()) / max(float(self.prompts[first:].sum()), 1.0)


def trace_of(outcome: "RequestTimes", outputs: Whole, clients: int) -> SimulationTrace:
    """Times relative to sending, and totals, of a run that has ended."""
    end = outcome.end
    waited = outcome.first_s - outcome.sent_s
    return SimulationTrace(
        time_to_first_token_s=waited,
        time_per_output_token_s=per_output_token_s(outcome.first_s, outcome.last_s, outputs),
        end_to_end_s=outcome.last_s - outcome.sent_s,
        completed_s=outcome.last_s,
        outputs=outputs,
        clients=clients,
        duration_s=float(outcome.last_s.max() - outcome.sent_s.min()),
        output_tokens=int(outputs.sum()),
        prompt_tokens=end.prompt_tokens,
        busy_s=end.busy,
        bytes=end.moved,
        flops=end.flops,
        preemptions=end.preemptions,
        events=end.events,
        steps=end.steps,
        gaps=outcome.gaps,
    )


def per_output_token_s(first_s: Vector, last_s: Vector, outputs: Whole) -> Vector:
    """Mean seconds between tokens of each request; 0 where the reply has one token."""
    return np.where(outputs > 1, (last_s - first_s) / np.maximum(outputs - 1, 1), 0.0)
