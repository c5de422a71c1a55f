"""The least cost of whole things that cover a need: a covering knapsack, solved exactly by branch and bound."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

MOST_STEPS = 20_000
"""Choices looked at; a knapsack that needs more keeps the bound of divisible things."""
MOST_THINGS = 200
"""The search goes as deep as there are things; of more of them the bound of divisible things is kept."""
ROUNDING = 1e-9
"""Relative; what is missing by less than this is floating point, not work."""


@dataclass(frozen=True, slots=True)
class Coverer:
    """cost and weight of one, both above zero, the weight infinite of what covers any need; most: how many there are, infinite where there
    is no limit."""

    cost: float
    weight: float
    most: float = math.inf


def least_cover(things: Sequence[Coverer], need: float, ceiling: float = math.inf) -> float:
    """The least cost of whole things whose weights add up to the need, or ``ceiling`` where that is no more.

    min Σ c_i x_i  with  Σ w_i x_i ≥ need,  0 ≤ x_i ≤ most_i whole. Infinite where all of them do not suffice. A lower bound of it
    where ``MOST_STEPS`` do not suffice or there are more than ``MOST_THINGS``, and 0 where one of them covers any need.

    >>> least_cover([Coverer(3.0, 2.0), Coverer(2.0, 1.0)], 3.0)
    5.0
    >>> least_cover([Coverer(3.0, 2.0, 1), Coverer(2.0, 1.0, 1)], 4.0)
    inf
    """
    if need <= ROUNDING or any(math.isinf(one.weight) for one in things):
        return 0.0
    ranked = sorted(_undominated(things), key=lambda one: (one.cost / one.weight, one.cost))
    if sum(one.most * one.weight for one in ranked) < need * (1.0 - ROUNDING):
        return math.inf
    if len(ranked) > MOST_THINGS:
        return min(ceiling, divisible_cover(ranked, need))
    search = _Knapsack(ranked, [one.cost / one.weight for one in ranked], need * ROUNDING, ceiling)
    search.look(0, need, 0.0)
    return search.best if search.steps <= MOST_STEPS else min(ceiling, divisible_cover(ranked, need))


def divisible_cover(ranked: Sequence[Coverer], need: float) -> float:
    """The least cost where things can be cut: the best by cost of a unit of weight first, as they are ranked.

    >>> divisible_cover([Coverer(2.0, 2.0, 1), Coverer(3.0, 2.0)], 3.0)
    3.5
    """
    cost = 0.0
    for one in ranked:
        taken = min(one.most * one.weight, need)
        cost += taken * one.cost / one.weight
        need -= taken
        if need <= 0.0:
            break
    return cost


def _undominated(things: Sequence[Coverer]) -> list[Coverer]:
    """Without those of which an unlimited one weighs no less at no more cost."""
    kept: list[Coverer] = []
    heaviest = 0.0
    for one in sorted(things, key=lambda one: (one.cost, -one.weight)):
        if one.weight > heaviest:
            kept.append(one)
            if math.isinf(one.most):
                heaviest = one.weight
    return kept


@dataclass(slots=True)
class _Knapsack:
    """things: by cost of a unit of weight, which are ``ratios``. best: the least cost found, or the ceiling."""

    things: Sequence[Coverer]
    ratios: Sequence[float]
    tolerance: float
    best: float
    steps: int = 0

    def look(self, first: int, need: float, spent: float) -> None:
        """Cover what is left with things from ``first`` on: as many of the cheapest by weight as go in first, then ever fewer."""
        one = self.things[first]
        count = min(one.most, math.ceil((need - self.tolerance) / one.weight))
        is_last = first + 1 == len(self.things)
        while count >= 0 and self.steps <= MOST_STEPS:
            self.steps += 1
            left, cost = need - count * one.weight, spent + count * one.cost
            if left <= self.tolerance:
                self.best = min(self.best, cost)
            elif is_last or cost + left * self.ratios[first + 1] >= self.best:
                return  # with fewer of it, more is left at no better a ratio
            else:
                self.look(first + 1, left, cost)
            count -= 1
