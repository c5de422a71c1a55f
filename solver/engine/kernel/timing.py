"""Seconds, bytes and FLOPs of steps."""

import math

from solver.engine.kernel.compiled import inner
from solver.engine.kernel.launching import launched_longer_s
from solver.engine.kernel.records import Gaps, Rules, State, Tables


@inner
def pairs_within(new_tokens: float, cached_tokens: float, limit: float) -> float:
    """(query, key) pairs of a prefill chunk whose queries look back at most ``limit``: ``blocks.attention_pairs``."""
    inside = min(max(limit - cached_tokens, 0.0), new_tokens)
    pairs = inside * cached_tokens + inside * inside / 2.0
    rest = new_tokens - inside
    return pairs + (rest * limit if rest > 0 else 0.0)


@inner
def add_pairs(rules: Rules, u: State, tables: Tables, chunk: int, start: int, seconds: float) -> float:
    """``seconds`` and those of attention of a chunk after ``start`` tokens; its FLOPs are counted."""
    if not rules.windowed:
        pairs = chunk * (start + chunk / 2.0)
        u.flops += rules.pair_flops * pairs
        return seconds + rules.pair_slope * pairs
    for law in range(len(tables.pair_s)):
        pairs = pairs_within(chunk, start, tables.pair_limit[law])
        seconds += tables.pair_s[law] * pairs
        u.flops += tables.pair_flops[law] * pairs
    return seconds


@inner
def read_tokens(rules: Rules, u: State) -> float:
    """Context that decode attention reads, in tokens of a sequence's own: what several share counts whole once, and for each
    further one the share of a read that it takes.

        own + once + r·(Σ shared − once)
    """
    once = min(u.beside, u.shared)
    return u.context + once + rules.shared_read_fraction * (u.shared - once)


@inner
def context_time(rules: Rules, u: State, tables: Tables) -> tuple[float, float]:
    """(seconds now, seconds per further context token of the sum) of decode attention: windows need the mean context."""
    context = read_tokens(rules, u)
    if not rules.windowed:
        return rules.context_slope * context, rules.context_slope
    seconds = slope = 0.0
    mean = context / u.running
    for law in range(len(tables.context_s)):
        if mean < tables.context_limit[law]:
            seconds += tables.context_s[law] * context
            slope += tables.context_s[law]
        else:
            seconds += tables.context_s[law] * tables.context_limit[law] * u.running
    return seconds, slope


@inner
def context_moved(rules: Rules, u: State, tables: Tables, context: float) -> float:
    """Bytes of KV cache that one decode step reads per rank at a summed context."""
    if not rules.windowed:
        return rules.context_size * context
    size = 0.0
    mean = context / u.running
    for law in range(len(tables.context_s)):
        size += tables.context_bytes[law] * u.running * min(mean, tables.context_limit[law])
    return size


@inner
def heat_target(rules: Rules, step_flops: float, duration: float) -> float:
    """A step that waits for the host or for memory leaves the board below its sustained power."""
    return min(1.0, step_flops / (rules.sustained_flop_per_s * duration))


@inner
def steps_beside(prefilling: float, others: int) -> float:
    """Steps in which some of ``others`` copies or batches have prompts and this one has none, for each in which this one has: where each
    has some with probability p in a step, independently,

        (1 − p) · (1 − (1 − p)^others) / p          → others for small p
    """
    if prefilling < 1e-9:
        return float(others)
    without = none = 1.0 - prefilling
    for _ in range(others - 1):
        none *= without
    return without * (1.0 - none) / prefilling


@inner
def waits(u: State) -> float:
    """Seconds that the next step without prompts is longer because another copy or batch has some, which are then no longer owed."""
    found = min(u.owed, u.waited)
    u.owed -= found
    return found


@inner
def mixed_duration(
    rules: Rules, u: State, tables: Tables, decoding: int, tokens: int, rows: int, pair_time: float
) -> float:
    """Seconds of a step with prompts at a rested clock; the bytes it reads are counted."""
    # A prompt that is not cut may exceed the table: its time grows in proportion.
    longest = len(tables.mixed_s) - 1
    duration: float = tables.mixed_s[tokens] if tokens <= longest else tables.mixed_s[longest] * tokens / longest
    duration += launched_longer_s(rules, tables, tokens, decoding)
    duration += tables.head_s[rows] + pair_time + decoding * rules.sequence_s + rules.lane_step_s
    attention_s = 0.0
    if decoding:
        if len(tables.draft_s):
            duration += tables.draft_s[decoding]
        attention_s = context_time(rules, u, tables)[0]
        u.moved += context_moved(rules, u, tables, read_tokens(rules, u))
        duration += attention_s
    others = rules.contending_lanes + rules.lockstep_copies
    if others:
        # Batches take turns on a pipeline's stages, so that a long step of one holds up the others for its whole pass; of copies that share
        # experts the longest step is everybody's. Seen from one, its own prompts stand for those of the others.
        seated = max(decoding, 1)
        extra = duration - tables.decode_s[seated] - attention_s
        if extra > 0.0:
            slowed = rules.lane_slowed_fraction * extra
            duration += slowed
            extra += slowed
            u.waited = extra
            u.owed += extra * steps_beside(u.prefilling, others)
    u.moved += tables.mixed_bytes[min(tokens, longest)] + tables.head_bytes[rows]
    return duration


@inner
def steps_until(wait_s: float, start_s: float, growth_s: float, lag: float) -> float:
    """Decode steps after which a request that is ready in ``wait_s`` may join; the next whole number is meant.

    Solves k·a + g·k·(k−1)/2 = wait + lag·a for k.
    """
    need = wait_s + lag * start_s
    if need <= start_s:
        return 1.0
    if growth_s <= 1e-12 * start_s:
        return need / start_s
    half = start_s - growth_s / 2.0
    return (math.sqrt(half * half + 2.0 * growth_s * need) - half) / growth_s


@inner
def steps_to_admission(rules: Rules, u: State, least: float) -> int:
    """Decode steps until the engine next takes requests in, at least so many from now; a whole number."""
    first = rules.admission_interval - u.since_admission
    if least <= first:
        return first
    return first + rules.admission_interval * math.ceil((least - first) / rules.admission_interval)


@inner
def note_gap(rules: Rules, u: State, gaps: Gaps, seconds: float, tokens: float) -> None:
    if rules.notes_gaps:
        gaps.seconds[u.gaps] = seconds
        gaps.tokens[u.gaps] = tokens
        u.gaps += 1
