"""Confirms planned replicas by event simulation, and finds the true capacity of those that fail.

Screening errs on the optimistic side, so a candidate it dropped would not have come back; one it kept is simulated
before it is recommended. Whatever fails is given the capacity the simulation finds, and the optimiser runs again:
what it returns in the end is optimal over capacities that hold in simulation.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from solver.engine.replay import Replay, replay
from solver.errors import InvalidInputError, SaturatedError
from solver.search import Screened
from solver.step.tables import StepTables
from solver.workload import Load, Workload

Floats = NDArray[np.float64]

CONFIRMATION_REQUESTS = 500
"""Requests replayed to check a plan's percentiles, per lane, where so many pass through it often enough."""
TURNOVERS = 10.0
"""How often the requests in flight are replaced in a run that shows a steady state: near capacity they pile up slowly."""
LONG_ENOUGH = 1.1
MOST_CONFIRMATION_REQUESTS = 6_000
OPTIMISM = 1.2
"""How far above what simulation found for its kin an unsimulated candidate is still believed.

Too small, and a candidate better than its kin is never tried: at 1.06 one plan in ten of random small markets was dearer than
the best by 5 to 25 %, at 1.2 one in forty. Larger values cost more simulations: twice as many at 1.3 under tight targets.
"""
MOST_TRIES = 7
CLOSE_ENOUGH = 0.97
"""A capacity whose worst value is within 3 % below its target is taken: simulation noise is of that size."""
RATE_RESOLUTION = 0.01
STEP_WHEN_SATURATED = 0.7
LARGEST_STEP = 0.4
FIRST_EXPONENT = 0.5
"""Near its target a value grows about with the square of the rate; each guess that fails assumes a flatter curve."""
LEAST_RATE = 1e-9


@dataclass(slots=True)
class Confirmations:
    """What simulation has found so far, by (workload, row): capacities that hold and capacities that do not."""

    tables: dict[tuple[int, int], StepTables] = field(default_factory=dict)
    holds: dict[tuple[int, int], float] = field(default_factory=dict)
    """Largest rate per replica seen to meet the targets."""
    capacity: dict[tuple[int, int], float] = field(default_factory=dict)
    """Corrected capacity, where screening's was too high."""
    optimism: float = OPTIMISM
    open_minded: dict[int, NDArray[np.bool_]] = field(default_factory=dict)
    """Rows by workload that are asked about: believed as screened until one of their own kin is simulated, because what
    others fell short by may be more than they do."""
    simulations: int = 0
    solver_seconds: float = 0.0
    """Spent by the solver so far, on plans and alternatives: the time limit holds for their sum."""

    def scales(self, screened: Sequence[Screened]) -> list[Floats]:
        """Factors by workload and row on capacities nobody has simulated, at most 1.

        What screening leaves out grows with the speed of the device and of the layout, and is much the same for
        candidates that share both: a row gets the best ratio seen among its kin, or where none was simulated the best
        of its workload, raised by OPTIMISM.
        """
        return [self._scales_of(w, one) for w, one in enumerate(screened)]

    def _scales_of(self, workload: int, screened: Screened) -> Floats:
        kin = screened.space.kin
        best = 0.0
        best_of_kin: dict[int, float] = {}
        for row, found in _of_workload(self.capacity, workload):
            ratio, family = found / float(screened.requests_per_s[row]), int(kin[row])
            best = max(best, ratio)
            best_of_kin[family] = max(best_of_kin.get(family, 0.0), ratio)
        for row, held in _of_workload(self.holds, workload):
            ratio, family = held / float(screened.requests_per_s[row]), int(kin[row])
            if family in best_of_kin:
                best_of_kin[family] = max(best_of_kin[family], ratio)
        factors = np.full(len(kin), best * self.optimism if best > 0.0 else 1.0)
        for family, ratio in best_of_kin.items():
            if ratio > 0.0:
                factors[kin == family] = ratio * self.optimism
        if workload in self.open_minded:
            factors[self.open_minded[workload] & ~np.isin(kin, list(best_of_kin))] = 1.0
        limited: Floats = np.minimum(factors, 1.0)
        return limited


def _of_workload(found: Mapping[tuple[int, int], float], workload: int) -> list[tuple[int, float]]:
    return [(row, rate) for (w, row), rate in found.items() if w == workload]


def worst_ratio(workload: Workload, result: Replay, margin: float = 1.0, network_s: float = 0.0) -> float:
    """Largest simulated value over its target; at most 1 where all targets hold, 0 without targets.

    network_s: round trip between users and replica, part of the wait for the first and for the last token.
    """
    targets = workload.targets
    checks = (
        (targets.time_to_first_token_s, result.time_to_first_token_s, network_s),
        (targets.time_per_output_token_s, result.time_per_output_token_s, 0.0),
        (targets.end_to_end_s, result.end_to_end_s, network_s),
    )
    return max(
        ((values[name] * margin + away) / limit for limits, values, away in checks for name, limit in limits.items()),
        default=0.0,
    )


def ratio_at(
    confirmations: Confirmations,
    workload_index: int,
    screened: Screened,
    row: int,
    requests_per_s: float,
    margin: float = 1.0,
) -> float:
    """Simulate one replica at a rate: its worst value over target, infinite when it cannot carry the rate at all."""
    key = (workload_index, row)
    configuration = screened.space.configuration(row)
    if key not in confirmations.tables:
        confirmations.tables[key] = configuration.tables()
    load = Load("open", requests_per_s=max(requests_per_s, LEAST_RATE))
    traffic = screened.workload.traffic
    requests = CONFIRMATION_REQUESTS
    try:
        while True:
            confirmations.simulations += 1
            result = replay(configuration, confirmations.tables[key], traffic, load, requests=requests)
            ratio = worst_ratio(screened.workload, result, margin, screened.network_of(row))
            # A short run starts empty and shows too little; where even that fails, there is no need for a longer one.
            enough = min(int(TURNOVERS * result.mean_in_flight), MOST_CONFIRMATION_REQUESTS)
            if ratio > 1.0 or enough <= requests * LONG_ENOUGH:
                break
            requests = enough
    except (SaturatedError, InvalidInputError):
        return math.inf
    if ratio <= 1.0:
        confirmations.holds[key] = max(requests_per_s, confirmations.holds.get(key, 0.0))
    return ratio


def confirmed_capacity(
    confirmations: Confirmations,
    workload_index: int,
    screened: Screened,
    row: int,
    requests_per_s: float,
    margin: float = 1.0,
) -> float:
    """``requests_per_s`` where the targets hold at it, else the largest rate found below it that holds (0: none).

    Values grow with the rate, so the crossing is bracketed and closed in by false position on the logarithm of the
    ratio, to CLOSE_ENOUGH of the target or RATE_RESOLUTION of the rate.
    """
    high = requests_per_s
    if high <= confirmations.holds.get((workload_index, row), 0.0):
        return high
    ratio = ratio_at(confirmations, workload_index, screened, row, high, margin)
    if ratio <= 1.0:
        return high
    low = confirmations.holds.get((workload_index, row), 0.0)
    low_ratio = CLOSE_ENOUGH
    exponent = FIRST_EXPONENT
    guess = high * (STEP_WHEN_SATURATED if math.isinf(ratio) else max(LARGEST_STEP, ratio**-exponent))
    for _ in range(MOST_TRIES):
        if low > 0.0 and (high - low) <= RATE_RESOLUTION * high:
            break
        guess = max(guess, low + 0.1 * (high - low))
        found = ratio_at(confirmations, workload_index, screened, row, guess, margin)
        if found <= 1.0:
            low, low_ratio = guess, max(found, 1e-6)
            if found >= CLOSE_ENOUGH:
                break
        else:
            high, ratio = guess, found
        if low <= 0.0:
            exponent *= 2.0
            guess = high * (STEP_WHEN_SATURATED if math.isinf(ratio) else max(LARGEST_STEP, ratio**-exponent))
        elif math.isinf(ratio):
            guess = (low + high) / 2.0
        else:
            share = -math.log(low_ratio) / (math.log(ratio) - math.log(low_ratio))
            guess = low + min(max(share, 0.1), 0.9) * (high - low)
    return low
