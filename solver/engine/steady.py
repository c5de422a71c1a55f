"""Closed form of continuous batching in steady state, vectorised over candidates: the search's inner loop.

One row a candidate (device, layout, precision), one column a number of requests in flight. Everything that depends
on a token count is tabulated once on a coarse grid and interpolated, so that the fixed point costs a few array
operations. Laws: docs/mathematics.md, section "Steady state". The event simulation confirms what this selects.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver.llm_shape import LlmShape
from solver.step import terms
from solver.step.adapter_terms import adapter_reads_s, prompt_requests
from solver.step.blocks import attention_pairs
from solver.step.gemm import mean_tiled_rows
from solver.step.prompt_terms import prompt_laws
from solver.step.rates import Rates
from solver.step.recurrent_terms import scan_s
from solver.step.tables import GraphSizes
from solver.step.vision_terms import image_launch_beyond_s
from solver.workload import Traffic

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

TOKEN_GRID = np.unique(np.round(np.geomspace(1.0, 16384.0, 29)))
"""Token counts at which step times are tabulated: about two points an octave; times are smooth in between."""

FIXED_POINT_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class StepGrid:
    """Step times of N candidates on TOKEN_GRID: (N, G) arrays, and slopes per candidate (N, 1)."""

    decode_s: Matrix
    mixed_s: Matrix
    launched_s: Matrix
    """For how long launching a step with prompts keeps the loop that composes steps; 0 where another process launches."""
    beside_s: Matrix
    """How much longer that makes a step in which others decode."""
    context: tuple[tuple[float, Matrix, Matrix], ...]
    pairs: tuple[tuple[float, Matrix, Matrix], ...]
    sequence_s: Matrix
    lanes: Matrix
    batches: Matrix
    """In flight over the pipeline stages of one copy."""
    slowed_fraction: Matrix
    """How much longer prompts take where those are several."""
    lockstep_copies: Matrix
    token_bytes: Matrix
    flops_per_token: Matrix
    queries: Matrix
    """Tokens of a sequence that one step works on: 1, or with drafts one more than are drafted."""
    tokens_per_step: Matrix
    """Mean tokens of a sequence that one step yields."""
    draft_steps: Matrix
    """What drafting adds to a step, in decode steps without it."""
    shared_read_fraction: Matrix
    """Of a read of what several sequences share, what each further one takes."""


@dataclass(frozen=True, slots=True)
class Drafting:
    """Columns (N, 1) of how candidates draft: see ``StepGrid``."""

    queries: Matrix
    tokens_per_step: Matrix
    draft_steps: Matrix


def column(value: object, rows: int) -> Matrix:
    """A per-candidate quantity as an (N, 1) array."""
    return np.broadcast_to(np.asarray(value, dtype=float).reshape(-1, 1), (rows, 1))


def step_grid(
    shape: LlmShape,
    rates: Rates,
    pipeline_parallel: Matrix,
    data_parallel: Matrix,
    graphs: GraphSizes,
    drafting: Drafting | None = None,
    in_line: NDArray[np.bool_] | None = None,
    batches: Matrix | None = None,
) -> StepGrid:
    """Tabulate N candidates. ``rates`` fields are (N, 1) arrays or floats; the two degrees are (N, 1). drafting: None where
    none drafts. batches: (N, 1), on how many the stages of a copy work at once; None where on as many as they are.

    Batches in flight (lanes): those of every data-parallel copy.
    """
    rows = pipeline_parallel.shape[0]
    one = np.ones_like(pipeline_parallel)
    drafting = drafting or Drafting(one, one, np.zeros_like(one))
    tokens = TOKEN_GRID[None, :]
    token = terms.token_terms(shape, rates, tokens, mean_tiled_rows(tokens))
    padded = graphs.padded(TOKEN_GRID)[None, :]
    padded_body = np.asarray(terms.token_terms(shape, rates, padded).body_s)
    head = np.asarray(terms.head_product(shape, rates, tokens).seconds)
    head = head + np.asarray(terms.sampling_s(shape, rates, tokens))
    stages = pipeline_parallel
    hand_over = np.where(stages > 1, (stages - 1.0) * np.asarray(terms.hand_over_s(shape, rates, tokens)), 0.0)
    fixed = np.asarray(rates.step_overhead_s) * stages + hand_over
    batches = stages if batches is None else batches
    fixed = fixed + np.where(batches > 1, np.asarray(rates.pipeline_step_overhead_s) * stages, 0.0)
    pieces_floor = np.asarray(terms.piecewise_decode_floor_s(shape, rates))
    floor = np.where(tokens > graphs.most_tokens, np.asarray(token.eager_floor_s), pieces_floor)
    # A stage holds whole layers: the fullest one sets the pace of a full pipe.
    uneven = np.where(batches > 1, stages * np.ceil(shape.layers / stages) / shape.layers, 1.0)
    captured_floor = np.asarray(terms.captured_floor_s(shape, rates))
    launching = np.zeros((rows, 1)) if in_line is None else in_line.astype(float)
    prefill_floor = np.where(tokens > graphs.most_prefill_tokens, np.asarray(token.eager_floor_s), captured_floor)
    prompts = np.asarray(adapter_reads_s(shape, rates, prompt_requests(shape, tokens)))
    prompts = prompts + np.asarray(image_launch_beyond_s(shape, rates, tokens))
    replies = np.asarray(adapter_reads_s(shape, rates, tokens))
    scanning = np.asarray(token.body_s) + scan_s(shape, rates, tokens)
    mixed = (np.maximum(scanning, prefill_floor) + prompts) * uneven + fixed
    launched_replies = (
        launching * np.asarray(terms.captured_beside_s(shape, rates)) * (tokens <= graphs.most_prefill_tokens)
    )
    longer = np.maximum(scanning, prefill_floor + launched_replies) - np.maximum(scanning, prefill_floor)
    decode = (np.maximum(padded_body, floor) + replies) * uneven + head * np.where(batches > 1, stages, 1.0) + fixed
    return StepGrid(
        decode_s=decode,
        mixed_s=mixed,
        launched_s=launching * prefill_floor,
        beside_s=longer,
        context=tuple(
            (limit, column(s, rows), column(b, rows))
            for limit, s, b in terms.decode_context_s(shape, rates, drafting.queries)
        ),
        pairs=tuple((limit, column(s, rows), column(f, rows)) for limit, s, f in prompt_laws(shape, rates)),
        sequence_s=column(terms.sequence_s(shape, rates), rows),
        lanes=batches * data_parallel,
        batches=batches,
        slowed_fraction=np.where(batches > 1, np.asarray(rates.pipeline_slowed_fraction), 0.0),
        lockstep_copies=lockstep_copies(rates, data_parallel),
        token_bytes=np.broadcast_to(np.asarray(token.bytes), decode.shape),
        flops_per_token=np.broadcast_to(np.asarray(token.flops), decode.shape)[:, :1],
        queries=drafting.queries,
        tokens_per_step=drafting.tokens_per_step,
        draft_steps=drafting.draft_steps,
        shared_read_fraction=column(rates.shared_read_fraction, rows),
    )


def lockstep_copies(rates: Rates, data_parallel: Matrix) -> Matrix:
    """Other copies of attention that have experts in common with one: ``Configuration.lockstep_copies``."""
    shared = np.maximum(np.floor_divide(rates.expert_parallel, rates.tensor_parallel), 1.0)
    return np.asarray(np.minimum(shared, data_parallel) - 1.0)


def steps_beside(prefilling: Matrix, others: Matrix) -> Matrix:
    """Steps in which others of as many copies have prompts and one has none, for each in which it has: ``kernel.timing.steps_beside``."""
    p = np.maximum(prefilling, 1e-9)
    return np.asarray((1.0 - p) * (1.0 - (1.0 - p) ** others) / p)


LAWS = ("context", "pairs")
COLUMNS = tuple(one.name for one in fields(StepGrid) if one.name not in LAWS)
"""What a grid has of each row: laws as (limit, column, column), and all else as one."""


def joined_grids(grids: Sequence[StepGrid]) -> StepGrid:
    """Grids of several engines below each other."""
    of: dict[str, Any] = {name: np.vstack([getattr(grid, name) for grid in grids]) for name in COLUMNS}
    for name in LAWS:
        each = zip(*(getattr(grid, name) for grid in grids), strict=True)
        of[name] = tuple((law[0][0], *(np.vstack([one[i] for one in law]) for i in (1, 2))) for law in each)
    return StepGrid(**of)


def rows_of_grid(grid: StepGrid, members: NDArray[np.int64]) -> StepGrid:
    """The same of these rows, in this order."""
    of: dict[str, Any] = {name: getattr(grid, name)[members] for name in COLUMNS}
    for name in LAWS:
        of[name] = tuple((limit, first[members], second[members]) for limit, first, second in getattr(grid, name))
    return StepGrid(**of)


def interpolate(table: Matrix, tokens: Matrix) -> Matrix:
    """Rows of ``table`` (N, G) on TOKEN_GRID read at ``tokens`` (N, K), linearly between grid points."""
    # Here, since it imports numba, which listing devices need not wait for.
    from solver.engine.kernel.interpolation import interpolated

    return interpolated(table, TOKEN_GRID, tokens)


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """Engine times outside the device, in seconds (see the constants of the same names)."""

    request_overhead_s: float
    request_ingest_s: float
    prompt_token_s: float
    token_front_end_s: float
    schedule_lag_fraction: float
    turn_overhead_fraction: float = 1.0

    def of_turns(self) -> "FrontEnd":
        """What turns of sessions meet."""
        return replace(self, request_overhead_s=self.request_overhead_s * self.turn_overhead_fraction)


@dataclass(frozen=True, slots=True)
class OperatingPoints:
    """What N candidates do with K numbers of requests in flight (per replica): (N, K) arrays."""

    in_flight: Matrix
    requests_per_s: Matrix
    time_per_output_token_s: Matrix
    time_to_first_token_s: Matrix
    prefill_s: Matrix
    """Time one prompt of mean length adds to the device."""
    passed_s: Matrix
    """Time from one prompt to the next where prompts wait for each other: the whole of a step full of them, over how many it holds."""
    interruption_s: Matrix
    """Time one prompt adds to the replies it meets: in a pipeline, those of other batches too."""
    feasible: NDArray[np.bool_]
    """The KV cache holds them."""
    memory_utilisation: Matrix
    compute_utilisation: Matrix


def _context_s(grid: StepGrid, sequences: Matrix, mean_context: Matrix | float) -> Matrix:
    total: Matrix = np.zeros_like(sequences)
    for limit, seconds, _ in grid.context:
        total = total + seconds * sequences * np.minimum(mean_context, limit)
    return total


def read_context(shared_read_fraction: Matrix | float, traffic: Traffic, sequences: Matrix | float) -> Matrix | float:
    """Context that decode attention reads of each of so many sequences, in tokens of its own: what several share counts whole once, and
    for each further one the share r of a read that it takes.

        own + Σ tokens·(r + (1 − r)·d/n)     d = K·(1 − (1 − 1/K)^n) of the K kinds of a part are among n sequences

    As ``kernel.timing.read_tokens`` has it of a step.
    """
    mean: Matrix | float = traffic.prompt.mean + max(1.0, traffic.output.mean) / 2.0
    for tokens, kinds in traffic.common_beginnings:
        n = np.maximum(sequences, 1.0)
        distinct = kinds * (1.0 - (1.0 - 1.0 / kinds) ** n)
        mean = mean - tokens * (1.0 - shared_read_fraction) * (1.0 - distinct / n)
    return mean


def pairs_s(grid: StepGrid, prompt: Matrix | float, cached: Matrix | float) -> Matrix:
    """Attention of a prompt's new tokens over those before them and ``cached`` ones, (N, 1) or as they are."""
    total: Matrix = np.zeros((grid.decode_s.shape[0], 1))
    for limit, seconds, _ in grid.pairs:
        total = total + seconds * attention_pairs(prompt, cached, limit)
    return total


def waited_in_line(
    front: FrontEnd, decode: Matrix, passing: Matrix, launching: Matrix, prefilling: Matrix, arriving: Matrix
) -> Matrix:
    """Seconds that a first token waits beside its own step where the loop that composes steps launches them, which a step with prompts
    keeps for ``launching``: until the next step is composed, and until the one after its own is launched, if that has prompts.

    prefilling: share of the time in steps with prompts. arriving: prompts that come in one such step.
    """
    lag = front.schedule_lag_fraction
    ahead = lag * np.maximum(passing - launching, 0.0)
    composed = (1.0 - prefilling) * (0.5 + lag) * decode + prefilling * (0.5 * passing + ahead)
    return np.asarray(composed - np.expm1(-arriving) * np.maximum(launching - ahead, 0.0))


def operating_points(
    grid: StepGrid,
    traffic: Traffic,
    front: FrontEnd,
    *,
    in_flight: Vector,
    kv_cache_tokens: Matrix,
    max_batched_tokens: Matrix,
    max_sequences: float,
    found_fraction: Matrix | float | None = None,
) -> OperatingPoints:
    """Steady state of every candidate at every number of requests in flight.

        t_d = step(n_d = c_d) + context · c_d·(S + Q/2)         what sequences share aside: ``read_context``
        x   = c_d/(Q−1) · t̂/τ;  m = min(x/(1−e^−x), (U−c_d)/S, c)  prompts that share a step, t̂ the step arrivals fall into
        q   = min(S, U−c_d);  n_ch = S/q
        w_p = (step(c_d + m·q) − t_d)·n_ch/m                    time one prompt adds; in a pipeline also to other batches
        τ   = t_d + w_p·(c_d−1)/(Q−1)
        TTFT = D + (½ + lag)·τ + step(mixed)·n_ch;   c_d = c·(Q−1)τ/((Q−1)τ + TTFT)
        p   = step(c_d + r·S)/r;  r = min((U−c_d)/S, c)        one prompt where they queue: steps are full of them
        X   = c/max(TTFT + (Q−1)τ, c·f, c·p)                  f: the front end takes in one request after another

    Where k tokens are drafted and E are kept of a step, a reply takes (Q−1)/E steps instead of Q−1, of c_d·(k+1) tokens and the
    drafts' own time each, and a token 1/E of a step.

    in_flight: (K,) per lane. kv_cache_tokens: (N, 1) over the whole replica; its lanes share it. max_batched_tokens: (N, 1).
    found_fraction: of prompts, what the cache has, where that is known more closely than by the traffic, (N, K).
    """
    found = traffic.shared_prefix_fraction if found_fraction is None else found_fraction
    prompt = np.maximum(1.0, traffic.prompt.mean * (1.0 - found))
    cached = traffic.prompt.mean - prompt
    output = max(1.0, traffic.output.mean)
    width, kept, drafts = grid.queries, grid.tokens_per_step, bool(grid.draft_steps.any())
    steps = np.maximum((output - 1.0) / kept, 1e-9)
    per_step = np.maximum(steps, 1.0)
    c = np.minimum(in_flight[None, :], max_sequences) + 0.0 * grid.lanes
    mean_context = traffic.prompt.mean + output / 2.0
    pairs = pairs_s(grid, prompt, cached)
    decoding = c
    step_s = first_s = prefill = met = worked_on = room = decode = body = np.zeros_like(c)
    read: Matrix | float = mean_context
    longer, prefilling = np.ones_like(c), np.zeros_like(c)
    in_line = bool(grid.launched_s.any())
    for _ in range(FIXED_POINT_ROUNDS):
        worked_on = decoding * width
        body = interpolate(grid.decode_s, worked_on)
        decode = body + decoding * grid.sequence_s
        if drafts:
            decode = decode + grid.draft_steps * (interpolate(grid.decode_s, decoding) + decoding * grid.sequence_s)
        read = read_context(grid.shared_read_fraction, traffic, decoding)
        decode = decode + _context_s(grid, decoding, read)
        room = np.maximum(max_batched_tokens - worked_on, 1.0)
        arriving = np.maximum(decoding / per_step * longer, 1e-9)
        most = np.maximum(np.minimum(room / prompt, c), 1.0)  # no more prompts share a step than there are requests
        together = np.clip(arriving / -np.expm1(-arriving), 1.0, most)
        chunk = np.minimum(prompt, room)
        chunks = prompt / chunk
        mixed = interpolate(grid.mixed_s, worked_on + together * chunk) + decode - body
        if in_line:
            mixed = mixed + np.where(decoding > 1.0, interpolate(grid.beside_s, worked_on + together * chunk), 0.0)
        mixed = mixed + pairs * together / chunks
        mixed = mixed + grid.slowed_fraction * np.maximum(mixed - decode, 0.0)
        prefill = np.maximum(mixed - decode, 0.0) * chunks / together
        # Batches in one pipeline wait for each other's prompts, and copies that share experts take each other's longest step, unless they
        # have prompts as well (solver.engine.simulate).
        met = prefill * (1.0 + steps_beside(prefilling, grid.batches - 1.0 + grid.lockstep_copies))
        step_s = decode + met * np.maximum(decoding - 1.0, 0.0) / per_step
        passing = np.maximum(mixed, decode)
        prefilling = np.minimum(decoding / per_step / together * chunks * passing / step_s, 1.0)
        longer = (prefilling * passing + (1.0 - prefilling) * decode) / step_s
        serial = front.token_front_end_s * decoding * kept * grid.batches
        step_s = np.maximum(step_s, serial)
        waited = (0.5 + front.schedule_lag_fraction) * step_s
        if in_line:
            launching = interpolate(grid.launched_s, worked_on + together * chunk)
            waited = np.where(
                launching > 0.0, waited_in_line(front, decode, passing, launching, prefilling, arriving), waited
            )
        first_s = (
            front.request_overhead_s
            + front.request_ingest_s
            + front.prompt_token_s * traffic.prompt.mean
            + np.where(decoding > 1.0, waited, 0.0)
            + mixed * chunks
        )
        decoding = np.maximum(1.0, c * steps * step_s / (steps * step_s + first_s)) if output > 1 else 0.0 * c + 1.0
    share = np.minimum(room / prompt, np.maximum(c, 1.0))
    passed = (interpolate(grid.mixed_s, worked_on + share * prompt) + decode - body + pairs * share) / share
    held = mean_context + 8.0
    taking_in = front.request_ingest_s + front.prompt_token_s * traffic.prompt.mean
    busy = np.maximum(steps * step_s + first_s, np.maximum(c * np.maximum(taking_in, passed), 1e-12))
    rate = c / busy
    memory = (interpolate(grid.token_bytes, decoding * width) + sum(
        size * decoding * np.minimum(read, limit) for limit, _, size in grid.context
    )) / np.maximum(step_s, 1e-12)  # fmt: skip
    compute = rate * grid.flops_per_token * (prompt + output * width / kept)
    return OperatingPoints(
        in_flight=c * grid.lanes,
        requests_per_s=rate * grid.lanes,
        time_per_output_token_s=step_s / kept,
        time_to_first_token_s=first_s,
        prefill_s=prefill,
        passed_s=passed,
        interruption_s=met,
        feasible=(in_flight[None, :] <= max_sequences) & (np.maximum(c * grid.lanes, 1.0) * held <= kv_cache_tokens),
        memory_utilisation=memory,
        compute_utilisation=compute,
    )
