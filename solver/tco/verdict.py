"""Which alternative is cheapest, by which measure, how sure that is, and what is lost if it is not."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from solver.tco.figures import Array


@dataclass(frozen=True, slots=True)
class Verdict:
    """``name`` has the lowest net present value at the typical value of every input.

    lead_micro: how far the runner-up is behind, in micro-dollars. The rest is over the draws, None without any: chance
    that ``name`` is cheapest, who is cheapest most often, and the value at stake: net present value lost, on average, by
    taking ``name`` and not whichever turns out cheapest (the expected value of perfect information).
    """

    name: str
    npv_micro: int
    runner_up: str | None
    lead_micro: int | None
    chance: float | None
    most_often: str | None
    most_often_chance: float | None
    value_at_stake_usd: float | None
    value_at_stake_p90_usd: float | None

    @property
    def agrees(self) -> bool | None:
        """Whether the alternative that is cheapest as stated is also the one that is cheapest most often."""
        return None if self.most_often is None else self.most_often == self.name


def verdict(names: Sequence[str], npv_micro: Sequence[int], draws_usd: Array | None) -> Verdict:
    """``draws_usd``: net present values, alternatives by draws, from common draws of the inputs.

    >>> found = verdict(["buy", "rent"], [100, 120], np.array([[90.0, 100.0, 130.0], [120.0, 120.0, 120.0]]))
    >>> found.name, found.lead_micro, round(found.chance, 3), round(found.value_at_stake_usd, 3)
    ('buy', 20, 0.667, 3.333)
    """
    order = sorted(range(len(names)), key=lambda position: (npv_micro[position], position))
    best = order[0]
    runner_up = order[1] if len(order) > 1 else None
    lead = None if runner_up is None else npv_micro[runner_up] - npv_micro[best]
    if draws_usd is None:
        return Verdict(names[best], npv_micro[best], _name(names, runner_up), lead, None, None, None, None, None)
    shares = cheapest_fractions(draws_usd)
    # Of equals the one that is cheapest as stated is named.
    often = max(range(len(names)), key=lambda position: (shares[position], position == best))
    regret = draws_usd[best] - draws_usd.min(axis=0)
    return Verdict(
        names[best],
        npv_micro[best],
        _name(names, runner_up),
        lead,
        shares[best],
        names[often],
        shares[often],
        float(regret.mean()),
        float(np.percentile(regret, 90)),
    )


def _name(names: Sequence[str], position: int | None) -> str | None:
    return None if position is None else names[position]


def cheapest_fractions(draws_usd: Array) -> list[float]:
    """Share of the draws in which each alternative has the lowest net present value; the first of equals counts.

    >>> cheapest_fractions(np.array([[1.0, 3.0], [2.0, 2.0]]))
    [0.5, 0.5]
    """
    lowest = draws_usd.argmin(axis=0)
    return [float((lowest == position).mean()) for position in range(len(draws_usd))]
