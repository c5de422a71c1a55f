"""What makes a plan one that people can run: few configurations, nodes that stay up, changes from hour to hour that are bounded."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from solver.errors import InvalidInputError

Rule = Literal["max_configurations", "min_up_hours", "max_change_percent_per_hour"]
RULES: tuple[Rule, ...] = ("max_configurations", "min_up_hours", "max_change_percent_per_hour")
ONE_HOUR = 1


@dataclass(frozen=True, slots=True)
class Operation:
    """Rules of operation; as made they forbid nothing.

    max_configurations: different deployments of a workload over the whole horizon. min_up_hours: least hours that a node
    taken by the hour stays, where of one offer the last that came goes first: none is given back while another has just come.
    max_change_fraction: of the replicas of a deployment that would serve its workload's peak alone, how many may be started,
    or stopped, from one hour to the next; one always may.
    """

    max_configurations: int | None = None
    min_up_hours: int = ONE_HOUR
    max_change_fraction: float | None = None

    def __post_init__(self) -> None:
        if self.max_configurations is not None and self.max_configurations < 1:
            raise InvalidInputError("a workload needs at least one configuration")
        if self.min_up_hours < ONE_HOUR:
            raise InvalidInputError("a node stays for at least one hour")
        if self.max_change_fraction is not None and not 0.0 < self.max_change_fraction <= 1.0:
            raise InvalidInputError("max_change_fraction must lie in (0, 1]")

    @property
    def ties_hours(self) -> bool:
        """Does what runs in an hour bound what may run in the next?"""
        return self.min_up_hours > ONE_HOUR or self.max_change_fraction is not None

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Those that forbid something, by the names that requests know."""
        chosen = (
            self.max_configurations is not None,
            self.min_up_hours > ONE_HOUR,
            self.max_change_fraction is not None,
        )
        return tuple(rule for rule, there in zip(RULES, chosen, strict=True) if there)

    def without(self, rule: Rule) -> "Operation":
        """
        >>> Operation(2, 4, 0.25).without("min_up_hours")
        Operation(max_configurations=2, min_up_hours=1, max_change_fraction=0.25)
        """
        if rule == "max_configurations":
            return replace(self, max_configurations=None)
        if rule == "min_up_hours":
            return replace(self, min_up_hours=ONE_HOUR)
        return replace(self, max_change_fraction=None)

    def most_changed(self, peak_requests_per_s: float, requests_per_s: float) -> int | None:
        """Replicas of a deployment that may be started, or stopped, from one hour to the next; None: any number.

            Δ = max(1, ⌊ρ λ_peak / μ⌋)

        Work without a peak of its own, which may wait, is not bounded.

        >>> Operation(max_change_fraction=0.25).most_changed(24.0, 1.1), Operation().most_changed(24.0, 1.1)
        (5, None)
        """
        if self.max_change_fraction is None or peak_requests_per_s <= 0.0:
            return None
        return max(1, math.floor(self.max_change_fraction * peak_requests_per_s / requests_per_s + 1e-9))


def changes(sequence: Sequence[int]) -> list[tuple[int, int]]:
    """Different periods that follow each other in hours that repeat.

    >>> changes((0, 0, 1, 0, 1))
    [(0, 1), (1, 0)]
    """
    pairs = pairwise((*sequence, sequence[0]))
    return sorted({(before, after) for before, after in pairs if before != after})


def windows(sequence: Sequence[int], hours: int) -> Iterator[tuple[int, tuple[tuple[int, int], ...]]]:
    """(period of an hour, changes within it and the ``hours`` − 1 before it), each combination once; the hours repeat.

    >>> list(windows((0, 0, 1), 2))
    [(0, ((0, 1), (1, 0))), (0, ((1, 0),)), (1, ((0, 1),))]
    """
    seen: set[tuple[int, tuple[tuple[int, int], ...]]] = set()
    count = len(sequence)
    for h in range(count):
        steps = (_step(sequence, k) for k in range(h - hours + 1, h + 1))
        window = (sequence[h], tuple(sorted(step for step in steps if step[0] != step[1])))
        if window[1] and window not in seen:
            seen.add(window)
            yield window


def soon_after(sequence: Sequence[int], hours: int) -> set[tuple[tuple[int, int], tuple[int, int]]]:
    """(change, another fewer than ``hours`` hours after it): what comes with the first may not go with the second.

    >>> sorted(soon_after((0, 1, 2), 2))
    [((0, 1), (1, 2)), ((1, 2), (2, 0)), ((2, 0), (0, 1))]
    """
    pairs = set()
    for h in range(len(sequence)):
        now = _step(sequence, h)
        for k in range(h - hours + 1, h):
            before = _step(sequence, k)
            if before[0] != before[1] and now[0] != now[1]:
                pairs.add((before, now))
    return pairs


def _step(sequence: Sequence[int], hour: int) -> tuple[int, int]:
    """Periods of the hour before, and of an hour; the hours repeat."""
    return sequence[(hour - 1) % len(sequence)], sequence[hour % len(sequence)]
