"""What the kernel works on: constants of a run, its state, and columns. Symbols: see the package."""

from dataclasses import dataclass
from typing import Any, NamedTuple

Column = Any
"""An array in the compiled kernel, a list in Python's: what both have in common is reading and writing by index."""

REQUEST_BITS = 21
"""Of a key in the heap of completions; the bits above are the step at which the request ends."""
MOST_KERNEL_REQUESTS = 1 << REQUEST_BITS
NOT_RUNNING = -1


@dataclass(slots=True)
class Rules:
    """Constants of a run: see ``Schedule`` and ``StepTables``. Times in seconds; whole numbers 0 and 1 for no and yes."""

    max_batched_tokens: int
    max_sequences: int
    query_tokens: int
    contending_lanes: int
    lockstep_copies: int
    mixes: int
    chunked_prefill: int
    static_batching: int
    launches: int
    captured_prompt_tokens: int
    preempts: int
    prefilled: int
    admission_interval: int
    windowed: int
    closed: int
    notes_gaps: int
    sessions: int
    hashes: int
    lined: int
    adapter_slots: int
    block_tokens: int
    host_cache_blocks: int
    disk_cache_blocks: int
    host_block_s: float
    disk_block_s: float
    store_s: float
    kv_cache_tokens: float
    block_slack_tokens: float
    lag_fraction: float
    half_overhead_s: float
    request_ingest_s: float
    prompt_token_s: float
    prefix_token_s: float
    admitted_token_s: float
    answered_token_s: float
    token_front_end_s: float
    clock_headroom_fraction: float
    clock_sag_fraction: float
    clock_settling_s: float
    lane_step_s: float
    lane_slowed_fraction: float
    gain: float
    sequence_s: float
    launched_beside_s: float
    context_slope: float
    context_size: float
    shared_read_fraction: float
    pair_slope: float
    pair_flops: float
    flops_per_token: float
    head_flops: float
    sustained_flop_per_s: float


@dataclass(slots=True)
class State:
    """Where a run is. The lower half counts entries of queues; see the symbols above.

    previous: seconds before the end of the last step at which the next one may have been composed at most.
    """

    now: float = 0.0
    front: float = 0.0
    previous: float = 0.0
    ingest: float = 0.0
    context: float = 0.0
    beside: float = 0.0
    shared: float = 0.0
    reserved: float = 0.0
    promised: float = 0.0
    heat: float = 0.0
    prefilling: float = 0.0
    owed: float = 0.0
    waited: float = 0.0
    moved: float = 0.0
    flops: float = 0.0
    busy: float = 0.0
    step: int = 0
    done: int = 0
    blocked: int = 0
    events: int = 0
    steps: int = 0
    preemptions: int = 0
    prompt_tokens: int = 0
    sent: int = 0
    queued: int = 0
    admitted: int = 0
    running: int = 0
    stacked: int = 0
    heaped: int = 0
    evicted: int = 0
    partial: int = 0
    gaps: int = 0
    since_admission: int = 0
    pending: int = 0
    started: int = 0
    oldest: int = -1
    newest: int = -1
    cached_blocks: int = 0
    cutoff: float = 0.0
    begun: float = 0.0
    hashed: float = 0.0
    answered: float = 0.0
    disk: float = 0.0
    bus: float = 0.0
    line_first: int = 0
    line_passed: int = 0
    line_end: int = 0
    coming: int = 0
    adapters: int = 0
    loading: int = 0
    fresh: int = 0


class Tables(NamedTuple):
    """Columns of ``StepTables``; context and pair laws one column a quantity."""

    decode_s: Column
    mixed_s: Column
    head_s: Column
    draft_s: Column
    launched_s: Column
    outlasting_s: Column
    decode_bytes: Column
    mixed_bytes: Column
    head_bytes: Column
    context_limit: Column
    context_s: Column
    context_bytes: Column
    pair_limit: Column
    pair_s: Column
    pair_flops: Column


class Requests(NamedTuple):
    """One element a request: what is known of it beforehand, and when it was sent, had its first token and its last.

    cached: tokens of its prompt that are not computed; found at admission where requests are turns of sessions. aside: those
    that it does not hold by itself, because prompts of others begin alike. adapter: which one it names, where slots for them are few.
    """

    prompts: Column
    outputs: Column
    cached: Column
    aside: Column
    sent: Column
    ready: Column
    first: Column
    last: Column
    adapter: Column


class Turns(NamedTuple):
    """When turns of sessions are sent: the turns of a session are requests in a row.

    By request: think, seconds after the turn before it, and later, 1 where the next request is the next turn. starts: first
    turns in the order in which their sessions begin. due, which: a heap of times and of the requests that are sent then.
    """

    think: Column
    later: Column
    starts: Column
    due: Column
    which: Column


class Tier(NamedTuple):
    """A tier under the cache of the device: blocks of chains in the order of last use.

    By chain: held, how many of its blocks, always its first; before, after: neighbours in the order. ends: the chain used longest
    ago, the one used last (-1: none), and blocks of all.
    """

    held: Column
    before: Column
    after: Column
    ends: Column


class Chains(NamedTuple):
    """Blocks that follow one another and are used together: those of a session, of a system prompt, of a document.

    By request: chain, that of its session; kept, tokens of prompt and reply that the next turn begins with; lasting, those
    of them that tiers keep; found, tokens of its prompt that the cache held at its first admission, -1 before it. By chain:
    parent, the one that it goes on from (-1: none); blocks, how many it has, of chains that others go on from; resident,
    how many of them are cached, always its first; users, requests in progress; before, after: neighbours in the order of
    last use. host, disk: tiers under the device; by request loaded, tokens found that came from there; read, blocks that its
    prompt has in host memory since a disk was asked for it, while it waits, from_disk, the tokens read, there, when what is being
    read or loaded for it has come, and stage, how far that is (``line``).
    """

    chain: Column
    kept: Column
    lasting: Column
    found: Column
    parent: Column
    blocks: Column
    resident: Column
    users: Column
    before: Column
    after: Column
    loaded: Column
    read: Column
    from_disk: Column
    there: Column
    stage: Column
    host: Tier
    disk: Tier


class Queues(NamedTuple):
    """Working space. By request: ends (NOT_RUNNING, or the step at which it finishes), base and have. Else by place.

    order: requests in the order of sending.
    line: those that wait over tiers or for slots of adapters, at line_first to line_end; up to line_passed somebody behind was
    looked at after them. named: by adapter, of how many requests that hold room.
    stack: admission order of those running, the latest on top; those that have finished stay until they are met.
    heap: keys of completions; those of requests evicted since stay until they are met. evicted: the next one on top.
    partial_*: prompts in prefill, oldest first.
    """

    ends: Column
    base: Column
    have: Column
    stack: Column
    heap: Column
    evicted: Column
    partial_request: Column
    partial_done: Column
    partial_need: Column
    order: Column
    line: Column
    named: Column
    turns: Turns
    chains: Chains


class Gaps(NamedTuple):
    """Seconds between tokens of one sequence, and how many tokens came so."""

    seconds: Column
    tokens: Column
