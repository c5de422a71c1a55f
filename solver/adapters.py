"""Low-rank adapters served over one base: how many, how popular each is, and which of them stay on the device.

An adapter adds x·A·B to a product x·W (Hu et al., LoRA, ICLR 2022). An engine keeps ``slots`` of them on the device, all in room
for one rank, and loads others from the host as requests name them, each in its own, the least recently used first to go.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from solver.errors import InvalidInputError

Module = Literal["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
QUERY_KEY_VALUE: tuple[Module, ...] = ("q_proj", "k_proj", "v_proj")
GATE_UP: tuple[Module, ...] = ("gate_proj", "up_proj")
ALL_MODULES: tuple[Module, ...] = (*QUERY_KEY_VALUE, "o_proj", *GATE_UP, "down_proj")
MOST_CLASSES = 64
"""Adapters of like popularity are reckoned with together; more classes change no figure that is shown."""
Quantity = float | NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class AdapterSupport:
    """An engine that documents adapters: the ranks it pads to (empty: any), and the largest."""

    ranks: tuple[int, ...]
    largest_rank: int


@dataclass(frozen=True, slots=True)
class Adapters:
    """popularity: (how many adapters, share of requests of each of them). rank: that a slot has room for. slots: on a device at once.

    modules: matrices that are adapted. prompt_tokens: of a mean request, over which loading its adapter is spread. ranks: mean own rank
    of the adapters of each entry of ``popularity``; none: all have the slots'. largest_rank: of the adapters themselves; 0: the slots'.
    multiplies_padded: does a step read and multiply all of a slot, whatever the adapter in it?
    """

    popularity: tuple[tuple[int, float], ...]
    rank: int
    slots: int
    modules: tuple[Module, ...] = ALL_MODULES
    prompt_tokens: float = 1.0
    ranks: tuple[float, ...] = ()
    largest_rank: int = 0
    multiplies_padded: bool = True

    def __post_init__(self) -> None:
        if self.rank < 1 or any(one < 1.0 for one in self.ranks):
            raise InvalidInputError(f"an adapter has a rank of at least 1, not {min((self.rank, *self.ranks)):g}")
        if max((self.largest_rank, *self.ranks)) > self.rank:
            raise InvalidInputError(
                f"slots of rank {self.rank} do not hold adapters of rank {max((self.largest_rank, *self.ranks)):g}"
            )
        if self.ranks and len(self.ranks) != len(self.popularity):
            raise InvalidInputError(f"{len(self.ranks)} ranks for {len(self.popularity)} shares of requests")
        if not 1 <= self.slots <= self.count:
            raise InvalidInputError(f"{self.slots} slots for {self.count} adapters")
        if not self.modules:
            raise InvalidInputError("an adapter adapts at least one matrix")
        total = math.fsum(many * share for many, share in self.popularity)
        if abs(total - 1.0) > 1e-6 or any(many < 1 or not 0.0 <= share <= 1.0 for many, share in self.popularity):
            raise InvalidInputError(f"shares of requests sum to {total:.6g}, not to 1")

    @property
    def count(self) -> int:
        return sum(many for many, _ in self.popularity)

    @property
    def fused(self) -> tuple[tuple[str, int], ...]:
        """Products that are adapted, with how many adapters' matrices each holds: query, key and value are one product, as engines
        serve them, and gate and up are."""
        found = (
            ("query_key_value", 3 if any(m in self.modules for m in QUERY_KEY_VALUE) else 0),
            ("output", 1 if "o_proj" in self.modules else 0),
            ("gate_up", 2 if any(m in self.modules for m in GATE_UP) else 0),
            ("down", 1 if "down_proj" in self.modules else 0),
        )
        return tuple((name, slices) for name, slices in found if slices)

    @property
    def each(self) -> tuple[tuple[int, float, float], ...]:
        """(how many adapters, share of requests of each, own rank)."""
        own = self.ranks or (float(self.rank),) * len(self.popularity)
        return tuple((many, share, rank) for (many, share), rank in zip(self.popularity, own, strict=True))

    @property
    def mean_rank(self) -> float:
        """Own rank of the adapter that a request names, on average: Σ p_a·r_a.

        >>> round(Adapters(((1, 0.75), (3, 1 / 12)), 64, 4, ranks=(8.0, 64.0)).mean_rank, 9)
        22.0
        """
        return math.fsum(many * share * rank for many, share, rank in self.each)

    @property
    def multiplied_rank(self) -> float:
        """Rank of the products of a mean token."""
        return float(self.rank) if self.multiplies_padded else self.mean_rank

    def read_ranks(self, requests: Quantity) -> Quantity:
        """Ranks of the different adapters that so many requests name, added up, as far as slots hold them: what a step reads.

            Σ_a r_a·(1 − (1 − p_a)^n) · min(1, slots / Σ_a 1 − (1 − p_a)^n)

        r_a is the slots' where a step multiplies all of them.

        >>> own = Adapters(((4, 0.25),), 16, 4, ranks=(8.0,), multiplies_padded=False)
        >>> [round(float(one.read_ranks(1.0)), 9) for one in (own, Adapters(((4, 0.25),), 16, 4, ranks=(8.0,)))]
        [8.0, 16.0]
        """
        if self.multiplies_padded:
            return self.rank * self.distinct(requests)
        total: Quantity = 0.0 * np.asarray(requests, dtype=float)
        ranks = total
        for many, share, rank in self.each:
            named = many * -np.expm1(np.asarray(requests) * math.log1p(-min(share, 1.0 - 1e-12)))
            total, ranks = total + named, ranks + rank * named
        return ranks * np.minimum(1.0, self.slots / np.maximum(total, 1e-12))

    @property
    def missing_rank(self) -> float:
        """Own rank that a request waits for on average, 0 where its adapter is on the device: Σ p_a·e^(−p_a·T)·r_a, by Che's approximation.

        >>> round(Adapters(((100, 0.01),), 8, 25).missing_rank, 2)
        6.0
        """
        if self.slots >= self.count:
            return 0.0
        time = characteristic_time(self.popularity, self.slots)
        return math.fsum(many * share * math.exp(-share * time) * rank for many, share, rank in self.each)

    @property
    def mean_loaded_rank(self) -> float:
        """Own rank of an adapter that is loaded, on average; of one that is named where none is."""
        missing = 1.0 - self.resident_fraction
        return self.missing_rank / missing if missing > 0.0 else self.mean_rank

    def distinct(self, requests: Quantity) -> Quantity:
        """Mean number of different adapters that so many requests name, at most the slots.

            Σ_a 1 − (1 − p_a)^n

        >>> round(float(Adapters(((4, 0.25),), 8, 4).distinct(2.0)), 4)
        1.75
        """
        total: Quantity = 0.0 * np.asarray(requests, dtype=float)
        for many, share in self.popularity:
            total = total + many * -np.expm1(np.asarray(requests) * math.log1p(-min(share, 1.0 - 1e-12)))
        return np.minimum(total, float(self.slots))

    @property
    def resident_fraction(self) -> float:
        """Share of requests whose adapter is on the device: least recently used goes first, by Che's approximation.

        >>> Adapters(((4, 0.25),), 8, 4).resident_fraction, round(Adapters(((100, 0.01),), 8, 25).resident_fraction, 3)
        (1.0, 0.25)
        """
        if self.slots >= self.count:
            return 1.0
        time = characteristic_time(self.popularity, self.slots)
        return float(sum(many * share * -math.expm1(-share * time) for many, share in self.popularity))

    @property
    def most_sequences(self) -> int:
        """Requests at once that on average name no more adapters than there are slots: of more, some wait for one.

        >>> Adapters(((100, 0.01),), 8, 8).most_sequences
        8
        """
        if self.slots >= self.count:
            return 2**31
        low, high = 1, 2
        while self._names(high) <= self.slots and high < 2**31:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._names(middle) <= self.slots else (low, middle)
        return low

    def running(self, outstanding: int) -> int:
        """Of so many outstanding requests, those that run at once: an engine keeps the adapters that most of them name, and runs all
        requests of these; others wait, whoever came first.

            Σ_a n·p_a over the most popular, as many as Σ_a 1 − (1 − p_a)^n fills the slots with

        >>> Adapters(((32, 1 / 32),), 16, 8).running(64), Adapters(((32, 1 / 32),), 16, 32).running(64)
        (18, 64)
        """
        left, found = float(self.slots), 0.0
        for many, share in sorted(self.popularity, key=lambda one: -one[1]):
            named = -math.expm1(outstanding * math.log1p(-min(share, 1.0 - 1e-12)))
            taken = min(float(many), left / named)
            found += taken * share * outstanding
            left -= taken * named
            if left <= 0.0:
                break
        return max(1, min(outstanding, math.floor(found + 1e-9)))

    def drawn(self, requests: int, seed: int) -> NDArray[np.int64]:
        """Which adapter each of so many requests names, numbered by class of popularity; each by itself."""
        rng = np.random.default_rng(seed)
        many = np.array([count for count, _ in self.popularity], dtype=np.int64)
        shares = np.array([count * share for count, share in self.popularity])
        classes = rng.choice(len(many), size=requests, p=shares / shares.sum())
        within = (rng.random(requests) * many[classes]).astype(np.int64)
        found: NDArray[np.int64] = (np.cumsum(many) - many)[classes] + within
        return found

    def _names(self, requests: int) -> float:
        """Different adapters that so many requests name, whatever the slots."""
        return sum(
            many * -math.expm1(requests * math.log1p(-min(share, 1.0 - 1e-12))) for many, share in self.popularity
        )


@lru_cache(maxsize=256)
def characteristic_time(popularity: tuple[tuple[float, float], ...], held: float) -> float:
    """How many uses something stays in a cache of ``held`` things, the least recently used first to go.

        Σ_a 1 − e^(−p_a·T) = held

    Source: H. Che, Y. Tung, Z. Wang, Hierarchical web caching systems, IEEE JSAC 20 (2002). popularity: (how many, share of each).
    """

    def kept(time: float) -> float:
        return sum(many * -math.expm1(-share * time) for many, share in popularity)

    low, high = 0.0, 1.0
    while kept(high) < held and high < 1e18:
        high *= 2.0
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if kept(middle) < held else (low, middle)
    return high


def zipf_popularity(count: int, exponent: float) -> tuple[tuple[int, float], ...]:
    """The i-th of ``count`` adapters is named in proportion to i^−exponent; 0: all alike.

    >>> zipf_popularity(3, 0.0)
    ((3, 0.3333333333333333),)
    >>> [round(share, 3) for _, share in zipf_popularity(3, 1.0)]
    [0.545, 0.273, 0.182]
    """
    if count < 1 or not 0.0 <= exponent < math.inf:
        raise InvalidInputError(f"no popularity of {count} adapters with exponent {exponent}")
    if exponent == 0.0:
        return ((count, 1.0 / count),)
    weights = np.arange(1, count + 1, dtype=float) ** -exponent
    return grouped((weights / weights.sum()).tolist())


def grouped(shares: Sequence[float]) -> tuple[tuple[int, float], ...]:
    """Shares of single adapters, neighbours in popularity together once there are more than ``MOST_CLASSES``."""
    ordered = sorted(shares, reverse=True)
    return tuple((b - a, math.fsum(ordered[a:b]) / (b - a)) for a, b in _classes(len(ordered)))


def _classes(count: int) -> list[tuple[int, int]]:
    """First and one after the last of so many, ordered by popularity, that are reckoned with together."""
    edges = np.unique(np.round(np.geomspace(1, count + 1, MOST_CLASSES + 1)).astype(int)) - 1
    return [(a, b) for a, b in itertools.pairwise(edges.tolist()) if b > a]


def grouped_ranks(ranks: Sequence[int], shares: Sequence[float] | None = None) -> tuple[float, ...]:
    """Mean own ranks of the classes that ``grouped`` makes of the shares; without shares, of adapters that are stated most popular first.

    >>> grouped_ranks([8, 16, 64], [0.2, 0.5, 0.3])
    (16.0, 64.0, 8.0)
    """
    order = range(len(ranks)) if shares is None else sorted(range(len(ranks)), key=lambda n: -shares[n])
    ordered = [ranks[n] for n in order]
    return tuple(math.fsum(ordered[a:b]) / (b - a) for a, b in _classes(len(ordered)))
