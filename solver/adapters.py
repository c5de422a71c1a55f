"""Low-rank adapters served over one base: how many, how popular each is, and which of them stay on the device.

An adapter adds x·A·B to a product x·W (Hu et al., LoRA, ICLR 2022). An engine keeps ``slots`` of them on the device, all padded
to one rank, and loads others from the host as requests name them, the least recently used first to go.
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
    """popularity: (how many adapters, share of requests of each of them). rank: of every adapter. slots: on a device at once.

    modules: matrices that are adapted. prompt_tokens: of a mean request, over which loading its adapter is spread.
    """

    popularity: tuple[tuple[int, float], ...]
    rank: int
    slots: int
    modules: tuple[Module, ...] = ALL_MODULES
    prompt_tokens: float = 1.0

    def __post_init__(self) -> None:
        if self.rank < 1:
            raise InvalidInputError(f"an adapter has a rank of at least 1, not {self.rank}")
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
    edges = np.unique(np.round(np.geomspace(1, len(ordered) + 1, MOST_CLASSES + 1)).astype(int)) - 1
    classes = [ordered[a:b] for a, b in itertools.pairwise(edges.tolist()) if b > a]
    return tuple((len(one), math.fsum(one) / len(one)) for one in classes)
