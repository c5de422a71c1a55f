"""Fronts of cost against one other thing: plans of which none is both cheaper and better.

ε-constraint: C(ε) is the price of the cheapest plan that keeps the other thing within ε. C never rises with ε, so two
solves say what can lie between them: where the looser one's bound is no cheaper than the tighter one's plan, nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from solver.why.misses import Miss
from solver.why.resolve import QuestionOutcome, SolvedChange

RELATIVE_NOISE = 1e-6
"""Of prices and limits: what two proofs may differ by."""
USD_DECIMALS = 6
VALUE_DECIMALS = 6


@dataclass(frozen=True, slots=True)
class Sample:
    """One solve. limit: ε, infinite for none. value: what the plan has of the other thing, at most ``limit``; None without a plan."""

    limit: float
    value: float | None
    answer: SolvedChange
    misses: tuple[Miss, ...] = ()

    @property
    def usd_per_hour(self) -> float:
        """Raises ValueError without a plan."""
        if self.answer.usd_per_hour is None:
            raise ValueError("there is no plan")
        return round(self.answer.usd_per_hour, USD_DECIMALS)

    @property
    def bound_usd_per_hour(self) -> float:
        """What no plan within the limit can cost less than."""
        return self.usd_per_hour * (1.0 - self.answer.open_fraction)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Limits above one and up to another. complete: no plan between them is cheaper than that of the tighter one.

    Between: plans that no solve looked for cost at least ``floor_usd_per_hour``, and the cheapest at most
    ``ceiling_usd_per_hour`` (None: there may be no plan).
    """

    above: float
    up_to: float
    complete: bool
    floor_usd_per_hour: float
    ceiling_usd_per_hour: float | None


@dataclass(frozen=True, slots=True)
class Front:
    """points: by value. dominated: each with the point that is no dearer and no worse. unreached: without a plan.

    none_below: no plan keeps a limit below this; None where that is not known. reaches_cheapest: no looser limit
    than the last one saves more.
    """

    points: tuple[Sample, ...]
    dominated: tuple[tuple[Sample, Sample], ...]
    unreached: tuple[Sample, ...]
    stretches: tuple[Stretch, ...]
    none_below: float | None
    reaches_cheapest: bool

    @property
    def complete(self) -> bool:
        """Whether no other plan belongs on the front."""
        ends = self.none_below is not None and self.reaches_cheapest
        return bool(self.points) and ends and all(stretch.complete for stretch in self.stretches)


def front_of(samples: Sequence[Sample], none_below: float | None = None, *, reaches_cheapest: bool = False) -> Front:
    """The samples that no other one dominates, and what lies between them."""
    solved = [one for one in samples if one.value is not None]
    unreached = sorted((one for one in samples if one.value is None), key=lambda one: one.limit)
    infeasible = [
        one.limit for one in unreached if one.answer.outcome is QuestionOutcome.INFEASIBLE and math.isfinite(one.limit)
    ]
    if infeasible:
        none_below = max(infeasible) if none_below is None else max(*infeasible, none_below)
    points: list[Sample] = []
    dominated: list[tuple[Sample, Sample]] = []
    for one in sorted(solved, key=lambda one: (value_of(one), one.usd_per_hour, one.limit)):
        if points and points[-1].usd_per_hour <= one.usd_per_hour:
            dominated.append((one, points[-1]))
        else:
            points.append(one)
    return Front(
        tuple(points),
        tuple(dominated),
        tuple(unreached),
        stretches_between(solved, none_below),
        none_below,
        reaches_cheapest,
    )


def value_of(sample: Sample) -> float:
    """Rounded, so that one plan found twice is one point. Raises ValueError without a plan."""
    if sample.value is None:
        raise ValueError("there is no plan")
    return round(sample.value, VALUE_DECIMALS)


def stretches_between(solved: Sequence[Sample], none_below: float | None) -> tuple[Stretch, ...]:
    """What is known between solved limits: C(ε) ≤ the least price at tighter limits, ≥ the bound at the looser one."""
    ordered = sorted(solved, key=lambda one: (one.limit, value_of(one)))
    found: list[Stretch] = []
    above, ceiling = none_below, None
    for one in ordered:
        # Between a plan's own value and its limit the plan itself is the cheapest.
        up_to = min(one.limit, value_of(one))
        if above is not None and up_to > above * (1.0 + RELATIVE_NOISE):
            floor = one.bound_usd_per_hour
            complete = ceiling is not None and floor >= ceiling * (1.0 - RELATIVE_NOISE)
            found.append(Stretch(above, up_to, complete, floor, ceiling))
        above = one.limit if above is None else max(above, one.limit)
        ceiling = one.usd_per_hour if ceiling is None else min(ceiling, one.usd_per_hour)
    return tuple(found)
