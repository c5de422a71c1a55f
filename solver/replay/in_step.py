"""Closed loops of equal requests: clients whose prompts come together, or apart.

With c clients whose replies are all as long, a simulation never forgets how they began: all at once, or under way, each at another place
of its request. Servers, networks and clients pull such a loop apart, steps that take in several prompts pull it together, and of a run
of unknown length an unknown part is its beginning. So a mean lies between those of two regimes:

    TTFT = √(TTFT_spread · TTFT_at once)

of prompts that come evenly and of c prompts that come all at once, and nine of ten lie within a share of the way to either. The time per
token is that of the spread loop: prompts interrupt as many tokens in either.
"""

import math

import numpy as np
from numpy.typing import NDArray

from solver.workload import Percentile, Traffic

Whole = NDArray[np.int64]

UNDER_WAY_SEED = 2_000_003
"""Added to the seed of a draw, so that its lengths stay what they were."""


def stays_in_step(traffic: Traffic) -> bool:
    """Whether every reply is as long, so that nothing in the requests themselves tells clients apart.

    Replies of one token are prompts alone: their clients always wait for one another.
    """
    alike = len(traffic.output.tokens) == 1 and traffic.output.maximum > 1
    return traffic.sessions is None and traffic.thinking is None and alike


def under_way(outputs: Whole, clients: int, seed: int) -> Whole:
    """Outputs of a closed loop that is under way: of each client's first request a uniform share is left.

    That is how far a renewal process in equilibrium is from its next event (Cox, 1962).

    >>> left = under_way(np.full(6, 100), 4, 1)
    >>> left[4:].tolist(), sorted(left[:4].tolist())
    ([100, 100], [13, 38, 63, 88])
    """
    first = min(clients, len(outputs))
    shares = np.random.default_rng(seed + UNDER_WAY_SEED).permutation((np.arange(first) + 0.5) / first)
    left = outputs.copy()
    left[:first] = np.maximum(np.ceil(outputs[:first] * shares), 1)
    left.flags.writeable = False
    return left


def between(spread: dict[Percentile, float], at_once: dict[Percentile, float]) -> dict[Percentile, float]:
    """The geometric middle of each figure.

    >>> between({"mean": 0.1}, {"mean": 0.4})
    {'mean': 0.2}
    """
    return {name: math.sqrt(value * at_once[name]) for name, value in spread.items()}
