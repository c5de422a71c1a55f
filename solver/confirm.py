"""Confirms planned replicas by event simulation, and finds the true capacity of those that fail.

Screening errs on the optimistic side, so a candidate it dropped would not have come back; one it kept is simulated
before it is recommended. Whatever fails is given the capacity the simulation finds, and the optimiser runs again:
what it returns in the end is optimal over capacities that hold in simulation.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from solver.engine.replay import Replay, replay
from solver.errors import InvalidInputError, SaturatedError
from solver.search import Screened
from solver.step.tables import StepTables
from solver.workload import Load, Workload

CONFIRMATION_REQUESTS = 500
"""Requests replayed to check a plan's percentiles, per lane."""
OPTIMISM = 1.06
"""How far above what simulation found for others of its workload an unsimulated candidate is still believed."""
MOST_TRIES = 7
CLOSE_ENOUGH = 0.97
"""A capacity whose worst value is within 3 % below its target is taken: simulation noise is of that size."""
RATE_RESOLUTION = 0.01
FIRST_STEP = 0.7
LARGEST_STEP = 0.4
LEAST_RATE = 1e-9


@dataclass(slots=True)
class Confirmations:
    """What simulation has found so far, by (workload, row): capacities that hold and capacities that do not."""

    tables: dict[tuple[int, int], StepTables] = field(default_factory=dict)
    holds: dict[tuple[int, int], float] = field(default_factory=dict)
    """Largest rate per replica seen to meet the targets."""
    capacity: dict[tuple[int, int], float] = field(default_factory=dict)
    """Corrected capacity, where screening's was too high."""
    simulations: int = 0

    def scales(self, screened: Sequence[Screened]) -> list[float]:
        """Factor by workload on capacities nobody has simulated: the best ratio seen, kept optimistic; at most 1."""
        best: dict[int, float] = {}
        for (workload, row), found in self.capacity.items():
            claimed = float(screened[workload].requests_per_s[row])
            best[workload] = max(best.get(workload, 0.0), found / claimed if claimed > 0.0 else 0.0)
        return [min(1.0, best[w] * OPTIMISM) if best.get(w, 0.0) > 0.0 else 1.0 for w in range(len(screened))]


def worst_ratio(workload: Workload, result: Replay, margin: float = 1.0) -> float:
    """Largest simulated value over its target; at most 1 where all targets hold, 0 without targets."""
    targets = workload.targets
    checks = (
        (targets.time_to_first_token_s, result.time_to_first_token_s),
        (targets.time_per_output_token_s, result.time_per_output_token_s),
        (targets.end_to_end_s, result.end_to_end_s),
    )
    return max(
        (values[name] * margin / limit for limits, values in checks for name, limit in limits.items()), default=0.0
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
    confirmations.simulations += 1
    try:
        result = replay(
            configuration,
            confirmations.tables[key],
            screened.workload.traffic,
            Load("open", requests_per_s=max(requests_per_s, LEAST_RATE)),
            requests=CONFIRMATION_REQUESTS,
        )
    except (SaturatedError, InvalidInputError):
        return math.inf
    ratio = worst_ratio(screened.workload, result, margin)
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
    ratio, to CLOSE_ENOUGH of the target.
    """
    high = requests_per_s
    if high <= confirmations.holds.get((workload_index, row), 0.0):
        return high
    ratio = ratio_at(confirmations, workload_index, screened, row, high, margin)
    if ratio <= 1.0:
        return high
    low = confirmations.holds.get((workload_index, row), 0.0)
    low_ratio = CLOSE_ENOUGH
    guess = high * (FIRST_STEP if math.isinf(ratio) else max(LARGEST_STEP, 1.0 / ratio**2))
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
            guess = high * LARGEST_STEP
        elif math.isinf(ratio):
            guess = (low + high) / 2.0
        else:
            share = -math.log(low_ratio) / (math.log(ratio) - math.log(low_ratio))
            guess = low + min(max(share, 0.1), 0.9) * (high - low)
    return low
