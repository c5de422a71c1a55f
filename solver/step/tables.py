"""Step times of one deployment, tabulated over token counts, for the event simulation.

Everything that depends on the number of tokens alone is computed once with numpy; what depends on context is a slope.
A simulated step then costs a few reads.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from solver.layout import Layout
from solver.llm_shape import LlmShape
from solver.step import terms
from solver.step.adapter_terms import adapter_reads_s, prompt_requests
from solver.step.prompt_terms import prompt_laws
from solver.step.rates import Rates
from solver.step.recurrent_terms import scan_s
from solver.step.vision_terms import image_launch_beyond_s

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class GraphSizes:
    """Token counts for which an engine has captured a graph; other decode batches are padded up to the next one.

    most_tokens: above it a step runs operator by operator, launched from the host. 0: the engine captures none.
    prefill_tokens: the same for steps that prefill, where they are not captured as far.
    """

    sizes: tuple[int, ...]
    prefill_tokens: int | None = None

    @property
    def most_tokens(self) -> int:
        return self.sizes[-1] if self.sizes else 0

    @property
    def most_prefill_tokens(self) -> int:
        return self.most_tokens if self.prefill_tokens is None else self.prefill_tokens

    def padded(self, tokens: Vector) -> Vector:
        """Each count rounded up to the next captured size; counts above the largest are left alone."""
        if not self.sizes:
            return tokens
        index = np.searchsorted(np.asarray(self.sizes, dtype=float), tokens)
        sizes = np.append(np.asarray(self.sizes, dtype=float), np.inf)
        padded: Vector = np.where(tokens > self.sizes[-1], tokens, sizes[index])
        return padded


@dataclass(frozen=True, slots=True, eq=False)
class StepTables:
    """Seconds, FLOPs and bytes (per rank) of one engine step; see ``seconds``.

    decode_s[n]: n decoding sequences, without context. mixed_s[T]: a step with prefill and T tokens in all.
    head_s[r]: r sampled rows. context: (limit, seconds, bytes) per context token. pairs: (limit, seconds, FLOPs).
    lanes: batches in flight; each lane serves its share of the sequences.
    """

    decode_s: Vector
    mixed_s: Vector
    head_s: Vector
    sequence_s: float
    context: tuple[tuple[float, float, float], ...]
    pairs: tuple[tuple[float, float, float], ...]
    decode_bytes: Vector
    mixed_bytes: Vector
    flops_per_token: float
    head_flops: float
    head_bytes: Vector
    lanes: int
    sustained_flop_per_s: float
    peak_flop_per_s: float
    peak_bytes_per_s: float
    devices_per_replica: int
    draft_s: Vector = field(default_factory=lambda: np.zeros(0))
    """Seconds of drafting for n decoding sequences, already inside ``decode_s``; empty without speculative decoding."""
    launched_s: Vector = field(default_factory=lambda: np.zeros(0))
    """Seconds for which launching a step with prompts and T tokens in all keeps the host; already inside ``mixed_s``."""
    captured_prompt_tokens: int = 0
    """Tokens of the largest step with prompts that is captured."""
    launched_beside_s: float = 0.0
    """Added to ``launched_s`` of a captured step in which others decode."""
    outlasting_s: Vector = field(default_factory=lambda: np.zeros(0))
    """Seconds for which that lasts longer than the device's work; below 0 where the work does."""
    shared_read_fraction: float = 0.0
    """Share of a read that context takes which another sequence of the batch reads as well."""

    @property
    def windowed(self) -> bool:
        """Whether some attention sees only part of the context, or prompts bring what goes by the token."""
        return any(limit != math.inf for limit, _, _ in (*self.context, *self.pairs))

    @property
    def context_slope(self) -> float:
        """Seconds per context token where all attention sees all of it."""
        return sum(seconds for _, seconds, _ in self.context)

    @property
    def context_size(self) -> float:
        """Bytes read per context token, likewise."""
        return sum(size for _, _, size in self.context)

    def context_s(self, sequences: int, context_tokens: float) -> tuple[float, float]:
        """(seconds now, seconds per further context token of the sum) of decode attention."""
        now = slope = 0.0
        if sequences:
            mean = context_tokens / sequences
            for limit, seconds, _ in self.context:
                if mean < limit:
                    now += seconds * context_tokens
                    slope += seconds
                else:
                    now += seconds * limit * sequences
        return now, slope

    def context_bytes(self, sequences: int, context_tokens: float) -> float:
        """Bytes of KV cache one decode step reads per rank."""
        if not sequences:
            return 0.0
        mean = context_tokens / sequences
        return sum(size * sequences * min(mean, limit) for limit, _, size in self.context)


def tables_bytes(tables: StepTables) -> int:
    """Memory that tables take."""
    columns = (
        tables.decode_s, tables.mixed_s, tables.head_s, tables.draft_s, tables.launched_s, tables.outlasting_s,
        tables.decode_bytes, tables.mixed_bytes, tables.head_bytes,
    )  # fmt: skip
    return sum(column.nbytes for column in columns)


def from_zero(values: Vector) -> Vector:
    """Values for 1, 2, … tokens, with nothing for no tokens before them."""
    return np.concatenate([[0.0], values])


def step_tables(
    shape: LlmShape,
    rates: Rates,
    layout: Layout,
    graphs: GraphSizes,
    *,
    max_batched_tokens: int,
    max_sequences: int,
    queries: int = 1,
    batches: int | None = None,
) -> StepTables:
    """Tabulate one deployment. Table lengths are max_batched_tokens + 1 and max_sequences + 1.

    queries: tokens of one sequence in a decode step (see ``terms.decode_context_s``).

    batches: that P pipeline stages work on at once, P unless stated. Of P batches one lane's period is the larger of a whole pass (all
    stages, P−1 hand-overs) and P times the slowest stage; of one it is the whole pass.
    """
    tokens = np.arange(1.0, max(max_batched_tokens, max_sequences) + 1.0)
    token = terms.token_terms(shape, rates, tokens)
    stages = layout.pipeline_parallel
    lanes = stages if batches is None else batches
    hand_over = (stages - 1) * np.asarray(terms.hand_over_s(shape, rates, tokens)) + 0.0 * tokens
    rows = np.arange(0.0, max_sequences + 1.0)
    head = terms.head_product(shape, rates, np.maximum(rows, 1.0))
    head_s = np.where(rows > 0, np.asarray(head.seconds) + np.asarray(terms.sampling_s(shape, rates, rows)), 0.0)
    body = np.asarray(token.body_s) + 0.0 * tokens
    eager = np.maximum(
        body, np.where(tokens > graphs.most_tokens, token.eager_floor_s, terms.piecewise_decode_floor_s(shape, rates))
    )
    scanning = np.asarray(token.body_s) + scan_s(shape, rates, tokens)
    launched = np.where(tokens > graphs.most_prefill_tokens, token.eager_floor_s, terms.captured_floor_s(shape, rates))
    prefilling = np.maximum(scanning, launched)
    per_step = rates.step_overhead_s * stages

    def period(work: Vector, passing: Vector | float, last: Vector | float) -> Vector:
        whole = work + last + passing + per_step
        if lanes == 1:
            return np.asarray(whole)
        slowest = work * (-(-shape.layers // stages) / shape.layers) + rates.step_overhead_s
        ending = work * ((shape.layers - (stages - 1) * (shape.layers // stages)) / shape.layers)
        paced: Vector = np.maximum(whole, stages * np.maximum(slowest, ending + last))
        return paced

    brought = adapter_reads_s(shape, rates, prompt_requests(shape, tokens)) + image_launch_beyond_s(
        shape, rates, tokens
    )
    mixed = period(prefilling + brought, hand_over, 0.0)
    padded = graphs.padded(tokens[:max_sequences])
    index = np.minimum(padded, tokens[-1]).astype(int) - 1
    reads = np.asarray(adapter_reads_s(shape, rates, tokens[:max_sequences] / queries))
    decode = period(eager[index] + reads, hand_over[index], 0.0)
    sequence_s = float(np.asarray(terms.sequence_s(shape, rates)))
    token_bytes = np.asarray(token.bytes) + 0.0 * tokens
    return StepTables(
        decode_s=from_zero(decode),
        mixed_s=from_zero(mixed),
        head_s=head_s,
        sequence_s=sequence_s,
        context=tuple((float(x), float(y), float(z)) for x, y, z in terms.decode_context_s(shape, rates, queries)),
        pairs=tuple((float(x), float(y), float(z)) for x, y, z in prompt_laws(shape, rates)),
        decode_bytes=from_zero(token_bytes[index]),
        mixed_bytes=from_zero(token_bytes),
        flops_per_token=float(np.asarray(token.flops)[0]) if np.ndim(token.flops) else float(token.flops),
        head_flops=float(np.asarray(head.flops)[1]) if len(rows) > 1 else 0.0,
        head_bytes=np.where(rows > 0, head.bytes, 0.0),
        lanes=lanes,
        sustained_flop_per_s=float(rates.expert_flop_per_s),
        peak_flop_per_s=float(rates.peak_flop_per_s),
        peak_bytes_per_s=float(rates.peak_bytes_per_s),
        devices_per_replica=layout.devices_per_replica,
        captured_prompt_tokens=graphs.most_prefill_tokens,
        launched_beside_s=float(np.asarray(terms.captured_beside_s(shape, rates))),
        launched_s=from_zero(np.asarray(launched) + 0.0 * tokens),
        outlasting_s=from_zero(np.asarray(launched) - scanning),
        shared_read_fraction=float(rates.shared_read_fraction),
    )
