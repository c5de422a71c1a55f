"""What users ask for: token lengths, arrivals, targets."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from solver.adapters import Adapters
from solver.errors import InvalidInputError, UnsupportedError
from solver.lengths import Lengths, mixed_lengths
from solver.vision import Images

Percentile = Literal["mean", "p50", "p90", "p95", "p99"]
PERCENTILES: tuple[Percentile, ...] = ("mean", "p50", "p90", "p95", "p99")
Routing = Literal["random", "least_loaded", "prefix_aware"]


@dataclass(frozen=True, slots=True)
class Sessions:
    """Requests that are turns of sessions: every prompt is all of the session so far and what the user adds.

        prompt of turn t = system prompt + document + user₁ + reply₁ + … + reply₍t−1₎ + user_t

    turns: of a session. user: tokens added a turn. think_s: mean seconds between the end of a reply and the next turn,
    exponential. system_prompts, documents: how many different ones there are, each session being about any one of them.
    spread_over: replicas among which turns are sent, as ``routing`` says; 1: a session stays where it began. least_loaded: to
    where fewest are in progress. prefix_aware: to where fewest tokens are to be computed, those in progress included.
    spread_is_stated: otherwise among as many as a plan has.
    """

    turns: Lengths
    user: Lengths
    think_s: float
    system_tokens: int = 0
    system_prompts: int = 1
    document_tokens: int = 0
    documents: int = 1
    spread_over: int = 1
    routing: Routing = "random"
    spread_is_stated: bool = True

    def __post_init__(self) -> None:
        if self.turns.tokens[0] < 1 or self.user.tokens[0] < 1:
            raise InvalidInputError("a session has at least one turn, and a turn at least one token of its user")
        if not 0.0 <= self.think_s < math.inf:
            raise InvalidInputError(f"{self.think_s} is not a time between turns")
        if min(self.system_tokens, self.document_tokens) < 0:
            raise InvalidInputError("system prompts and documents have no fewer than 0 tokens")
        if min(self.system_prompts, self.documents, self.spread_over) < 1:
            raise InvalidInputError("there is at least one system prompt, one document and one replica")

    @property
    def opening_tokens(self) -> int:
        """What every prompt of a session begins with."""
        return self.system_tokens + self.document_tokens


@dataclass(frozen=True, slots=True)
class Thinking:
    """Replies that begin with tokens nobody is shown: ``hidden`` ones, then those of the ``answer``, independent of each other."""

    hidden: Lengths
    answer: Lengths


@dataclass(frozen=True, slots=True)
class Traffic:
    """Shape of the requests. shared_prefix_fraction: share of every prompt that is already cached.

    thinking: of what replies consist where their first tokens are hidden; ``output`` is all of them.

    sessions: where requests are turns of sessions; ``prompt`` is then what follows from them, and shared_prefix_fraction what a
    cache that forgets nothing finds (``solver.sessions``): no replica finds more.

    longest_tokens: prompt and reply together end there (``within_context``); None where no request is longer.
    """

    prompt: Lengths
    output: Lengths
    shared_prefix_fraction: float = 0.0
    longest_tokens: int | None = None
    sessions: Sessions | None = None
    thinking: Thinking | None = None
    held_once_fraction: float | None = None
    """Share of prompts that all requests in progress hold once between them; None: what is shared at all."""

    @property
    def shared_memory_fraction(self) -> float:
        """Share of every prompt that takes no memory of its own."""
        return self.shared_prefix_fraction if self.held_once_fraction is None else self.held_once_fraction

    @property
    def common_beginnings(self) -> tuple[tuple[float, int], ...]:
        """What prompts begin with that others in progress begin with too: tokens of each part, and how many kinds of it there are."""
        parts: tuple[tuple[float, int], ...] = ((self.prompt.mean * self.shared_memory_fraction, 1),)
        if self.sessions is not None:
            of, systems = self.sessions, self.sessions.system_prompts
            parts = (of.system_tokens, systems), (of.document_tokens, systems * of.documents)
        return tuple((float(tokens), kinds) for tokens, kinds in parts if tokens)

    @property
    def maximum(self) -> int:
        """Prompt and reply of the longest request."""
        longest = self.prompt.maximum + self.output.maximum
        return longest if self.longest_tokens is None else min(longest, self.longest_tokens)


def within_context(traffic: Traffic, context_tokens: int) -> tuple[Traffic, float]:
    """The requests as an engine with this context serves them, and the share of them that it cuts.

    A prompt keeps room for one token of reply at least, and a reply ends where the context does.

    >>> from solver.lengths import fixed_lengths, uniform_lengths
    >>> cut, share = within_context(Traffic(fixed_lengths(80), uniform_lengths(10, 29)), 100)
    >>> cut.maximum, cut.output.maximum, round(share, 2)
    (100, 29, 0.45)
    """
    if traffic.prompt.maximum + traffic.output.maximum <= context_tokens:
        return traffic, 0.0
    share = math.fsum(
        p * r
        for prompt, p in zip(traffic.prompt.tokens, traffic.prompt.shares, strict=True)
        for reply, r in zip(traffic.output.tokens, traffic.output.shares, strict=True)
        if prompt + reply > context_tokens
    )
    if share <= 0.0:
        return traffic, 0.0
    most = max(1, context_tokens - 1)
    prompt, output = _cut(traffic.prompt, most), _cut(traffic.output, most)
    return replace(traffic, prompt=prompt, output=output, longest_tokens=context_tokens), min(share, 1.0)


def check_prompts_fit(traffic: Traffic, context_tokens: int) -> None:
    """Raises UnsupportedError where more than half of the prompts leave no room for a reply: an engine refuses such requests, and what
    it serves of the others is not the traffic that was asked about. Sessions end where they no longer fit.

    >>> from solver.lengths import fixed_lengths, uniform_lengths
    >>> check_prompts_fit(Traffic(uniform_lengths(10, 90), fixed_lengths(80)), 60)
    """
    if traffic.sessions is not None:
        return
    room = 1 if traffic.output.maximum > 1 else 0
    pairs = zip(traffic.prompt.tokens, traffic.prompt.shares, strict=True)
    fitting = math.fsum(share for tokens, share in pairs if tokens + room <= context_tokens)
    if fitting < 0.5:
        raise UnsupportedError(
            "context_too_long",
            f"{100.0 * (1.0 - fitting):.0f} % of the prompts leave no room for a reply in a context of {context_tokens} tokens: "
            "engines refuse them; state a longer context or shorter prompts",
        )


def _cut(lengths: Lengths, most: int) -> Lengths:
    """Lengths above ``most`` become it."""
    shares: dict[int, float] = {}
    for tokens, share in zip(lengths.tokens, lengths.shares, strict=True):
        kept = min(tokens, most)
        shares[kept] = shares.get(kept, 0.0) + share
    return Lengths(tuple(shares), tuple(shares.values()))


def mixed_traffic(parts: Sequence[tuple[Traffic, float]]) -> Traffic:
    """Traffic of several streams by their rates: lengths mix by requests, cached prefixes by prompt tokens.

    >>> from solver.lengths import fixed_lengths
    >>> one, other = (Traffic(fixed_lengths(p), fixed_lengths(10), s) for p, s in ((100, 0.0), (300, 0.5)))
    >>> mixed = mixed_traffic([(one, 3.0), (other, 1.0)])
    >>> mixed.prompt.mean, mixed.shared_prefix_fraction
    (150.0, 0.25)
    """
    if len(parts) == 1:
        return parts[0][0]
    tokens = math.fsum(traffic.prompt.mean * rate for traffic, rate in parts)
    cached = math.fsum(traffic.prompt.mean * traffic.shared_prefix_fraction * rate for traffic, rate in parts)
    return Traffic(
        mixed_lengths([(traffic.prompt, rate) for traffic, rate in parts]),
        mixed_lengths([(traffic.output, rate) for traffic, rate in parts]),
        cached / tokens if tokens > 0.0 else 0.0,
        max((t.longest_tokens for t, _ in parts if t.longest_tokens is not None), default=None),
    )


@dataclass(frozen=True, slots=True)
class Targets:
    """Upper limits in seconds, by percentile. Empty means unconstrained.

    time_to_first_answer_s: to the first token that is shown; that of replies that begin with hidden ones comes after these.
    """

    time_to_first_token_s: dict[Percentile, float] = field(default_factory=dict)
    time_per_output_token_s: dict[Percentile, float] = field(default_factory=dict)
    end_to_end_s: dict[Percentile, float] = field(default_factory=dict)
    time_to_first_answer_s: dict[Percentile, float] = field(default_factory=dict)
    confidence_fraction: float = 0.5


@dataclass(frozen=True, slots=True)
class Load:
    """How requests arrive: ``closed`` with ``concurrency`` clients, or ``open`` (Poisson) at ``requests_per_s``.

    requests: how many are sent in all; None means steady state.
    """

    kind: Literal["closed", "open"]
    concurrency: int = 0
    requests_per_s: float = 0.0
    requests: int | None = None


@dataclass(frozen=True, slots=True)
class Places:
    """Where a workload may run. None and empty: anywhere; ``never`` wins over ``only``."""

    only_regions: frozenset[str] | None = None
    never_regions: frozenset[str] = frozenset()
    only_providers: frozenset[str] | None = None
    never_providers: frozenset[str] = frozenset()

    def admit(self, provider: str, region: str) -> bool:
        """
        >>> Places(only_regions=frozenset({"eu"}), never_providers=frozenset({"acme"})).admit("acme", "eu")
        False
        """
        in_region = self.only_regions is None or region in self.only_regions
        at_provider = self.only_providers is None or provider in self.only_providers
        return in_region and at_provider and region not in self.never_regions and provider not in self.never_providers


ANYWHERE = Places()


@dataclass(frozen=True, slots=True)
class TrafficClass:
    """Requests of one kind within a workload: alike in length and in what they must keep to.

    name: None for the one kind of a workload that tells none apart.
    """

    name: str | None
    requests_per_s: float
    traffic: Traffic
    targets: Targets


@dataclass(frozen=True, slots=True)
class SpeculativeDecoding:
    """A cheap guess at the next tokens, verified in one step (``solver.engine.speculative``).

    draft_tokens: k ≥ 1. acceptance_fraction: a in [0, 1], per drafted token, measured for the traffic.

    draft_step_fraction: seconds of drafting one token over seconds of one decode step of the served model alone, where
    the draft has no shape of its own (n-gram look-up: 0; heads such as EAGLE: as measured). None: a draft model is
    given as a configuration of its own.

    method, cost_source: what drafts, and where the cost is from, as whoever stated it names them.
    """

    draft_tokens: int
    acceptance_fraction: float
    draft_step_fraction: float | None = None
    method: str = ""
    cost_source: str = ""

    def __post_init__(self) -> None:
        if self.draft_tokens < 1:
            raise InvalidInputError(f"speculative decoding drafts at least one token, not {self.draft_tokens}")
        if not 0.0 <= self.acceptance_fraction <= 1.0:
            raise InvalidInputError(f"acceptance of {self.acceptance_fraction} is not a share")
        if self.draft_step_fraction is not None and not 0.0 <= self.draft_step_fraction < float("inf"):
            raise InvalidInputError(f"a draft step of {self.draft_step_fraction} steps is not a time")


@dataclass(frozen=True, slots=True)
class Workload:
    """Requests to one model, of one kind or of several, with what each kind must keep to.

    classes: its kinds of requests, at least one; ``requests_per_s`` is their sum and ``traffic`` their mixture. min_replicas: wanted
    even where fewer would carry the traffic. priority: the higher, the later its traffic is shed. network_s_by_region: round trip
    between its users and each region, part of their time to the first token; None where users and replicas are taken to
    be in one place.

    Raises InvalidInputError without a class, for two of one name, and for rates that are not above zero.
    """

    name: str
    llm_id: str
    context_tokens: int
    classes: tuple[TrafficClass, ...]
    weight_formats: tuple[str, ...]
    kv_cache_formats: tuple[str, ...]
    utilisation_limit_fraction: float = 1.0
    min_replicas: int = 1
    places: Places = ANYWHERE
    priority: int = 0
    network_s_by_region: Mapping[str, float] | None = None
    roles: tuple[Literal["aggregated", "disaggregated"], ...] = ("aggregated",)
    """How it may be served: by replicas that do both, by prefill and decode in pools of their own, or by either."""
    engines: tuple[str, ...] = ()
    """Engines to choose among; none is each device's own: the default one where it runs."""
    drafting: SpeculativeDecoding | None = None
    """How it may draft, chosen where that is cheaper; None: not at all."""
    adapters: Adapters | None = None
    """That its requests name, every replica serving all of them; None: the model as published."""
    images: Images | None = None
    """That its requests carry, their tokens being among the prompts'; None: text alone."""
    guided_fraction: float = 0.0
    """Share of its requests whose replies are held to a grammar."""
    token_ids_fraction: float = 0.0
    """Share of its items that are sent as token ids; 0 where it asks for replies."""
    host_caches_bytes: tuple[float, ...] = ()
    """Sizes of host memory, for each device, that caches may take, chosen where a plan with one is cheaper than without."""
    disk_cache_bytes: float = 0.0
    """Of a local disk, for each device, that caches may take under such host memory, chosen likewise; 0: none."""
    disk_bytes_per_s: float | None = None
    """At which each device's share of the disk is read; None: as its node's documentation says."""
    requests_per_s: float = field(init=False, repr=False, compare=False)
    traffic: Traffic = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.classes:
            raise InvalidInputError(f"{self.name}: a workload has at least one traffic class")
        if len({one.name for one in self.classes}) != len(self.classes):
            raise InvalidInputError(f"{self.name}: two traffic classes have one name")
        rates = [one.requests_per_s for one in self.classes]
        if not all(math.isfinite(rate) and rate > 0.0 for rate in rates):
            raise InvalidInputError(f"{self.name}: a traffic class needs a rate above zero")
        object.__setattr__(self, "requests_per_s", math.fsum(rates))
        object.__setattr__(self, "traffic", mixed_traffic([(one.traffic, one.requests_per_s) for one in self.classes]))

    @property
    def only(self) -> TrafficClass:
        """The class of a workload that has one. Raises ValueError for several."""
        (one,) = self.classes
        return one

    @property
    def is_mixed(self) -> bool:
        """Are its requests of several kinds? Where not, what a replica sustains is one rate."""
        return len(self.classes) > 1

    @property
    def distances_s(self) -> tuple[float, ...]:
        """The different round trips to its regions, nearest first."""
        return tuple(sorted(set((self.network_s_by_region or {}).values())))


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The serving engine and the settings that change memory or time."""

    name: str = "vllm"
    version: str | None = None
    max_batched_tokens: int = 8192
    max_sequences: int = 512
    memory_fraction: float = 0.92
    max_context_tokens: int | None = None
    host_cache_bytes: float = 0.0
    """Of host memory, for each device of a replica, that may keep what requests of sessions leave in the cache."""
    disk_cache_bytes: float = 0.0
    """Of a local disk, for each device of a replica, under that host memory."""
    disk_bytes_per_s: float | None = None
    """At which a device's share of it is read; None: as its node's documentation says."""
    admission_interval_steps: int = 1
    """New requests are taken in once in so many decode steps, and after every step that prefills."""
    api_servers: int = 1
    """Processes for each copy of attention that pass its tokens on, side by side."""
    max_captured_tokens: int | None = None
    """Most tokens of a step that runs as a captured graph; None: as many as the engine captures unless told."""
    scan_kernel: str | None = None
    """Whose kernels scan prompts in layers of a gated delta rule: triton or flashinfer; None: as the engine chooses on the device."""
    random_weights: bool = False
    """Weights hold random values, as benchmarks without a checkpoint do: a router then chooses experts as random weights do."""
    any_release: bool = False
    """Asked about without a release, or with one of an earlier generation: intervals hold what releases differ by. What is planned
    starts with a release of today."""
