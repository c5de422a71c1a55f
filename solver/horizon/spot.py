"""Spare interruptible nodes: how many must stand idle so that a reclaim is ridden out."""

import math
from functools import cache

from solver.errors import InvalidInputError
from solver.horizon.problem import SpotRule
from solver.units import HOURS_PER_MONTH

MOST_SPARES = 64


def unavailable_fraction(interruptions_per_node_month: float, lost_hours_per_interruption: float) -> float:
    """Share of time a node is gone: it is there for a mean 1/a hours and away for L (renewal reward theorem).

        q = a L / (1 + a L),   a interruptions per hour of presence

    >>> round(unavailable_fraction(2.0, 0.5), 6)
    0.001368
    """
    if interruptions_per_node_month < 0 or lost_hours_per_interruption < 0:
        raise InvalidInputError("interruptions and lost hours cannot be negative")
    away = interruptions_per_node_month / HOURS_PER_MONTH * lost_hours_per_interruption
    return away / (1.0 + away)


def chance_of_more(nodes: int, away: int, unavailable: float) -> float:
    """P(K > away) for K of ``nodes`` gone independently: the upper tail of Binomial(nodes, q).

    >>> round(chance_of_more(10, 0, 0.01), 6)
    0.095618
    """
    if unavailable <= 0.0:
        return 0.0
    stay = 1.0 - unavailable
    return max(
        0.0, 1.0 - math.fsum(math.comb(nodes, k) * unavailable**k * stay ** (nodes - k) for k in range(away + 1))
    )


def spares_needed(nodes: int, rule: SpotRule) -> int:
    """Idle nodes among ``nodes`` interruptible ones of one type.

        k(n) = max( reclaims_at_once,  min { k : P(Binomial(n, q) > k) ≤ 1 − availability } ),   k(0) = 0

    >>> rule = SpotRule(0.5, unavailable_fraction=0.05, availability_fraction=0.999)
    >>> [spares_needed(n, rule) for n in (0, 1, 2, 10, 100)]
    [0, 1, 2, 4, 13]
    """
    if nodes <= 0:
        return 0
    spares = min(rule.reclaims_at_once, nodes)
    while (
        spares < nodes and chance_of_more(nodes, spares, rule.unavailable_fraction) > 1.0 - rule.availability_fraction
    ):
        spares += 1
    return spares


@cache
def most_nodes_with_spares(rule: SpotRule, most_nodes: int) -> tuple[int, ...]:
    """T_k, the most nodes that k spares are enough for, for k = 0, 1, … until ``most_nodes`` (more are not needed).

    k(n) never falls, so n nodes need the least k with n ≤ T_k. T_0 is above 0 only where no reclaim need be borne.
    """
    thresholds: list[int] = []
    nodes = 0
    while nodes < most_nodes and len(thresholds) <= MOST_SPARES:
        spares = len(thresholds)
        while nodes < most_nodes and spares_needed(nodes + 1, rule) <= spares:
            nodes += 1
        thresholds.append(nodes)
    return tuple(thresholds)
