"""Confirms planned replicas by event simulation, and finds the true capacity of those that fail.

Screening errs on the optimistic side, so a candidate it dropped would not have come back; one it kept is simulated
before it is recommended. Whatever fails is given the capacity the simulation finds, and the optimiser runs again:
what it returns in the end is optimal over capacities that hold in simulation.
"""

from dataclasses import dataclass, field

from solver.engine.replay import Replay, replay
from solver.errors import InvalidInputError, SaturatedError
from solver.search import Screened
from solver.step.tables import StepTables
from solver.workload import Load, Workload

CONFIRMATION_REQUESTS = 800
"""Requests replayed to check a plan's percentiles, per lane."""
BISECTIONS = 5


@dataclass(slots=True)
class Confirmations:
    """What simulation has found so far, by (workload, row): capacities that hold and capacities that do not."""

    tables: dict[tuple[int, int], StepTables] = field(default_factory=dict)
    holds: dict[tuple[int, int], float] = field(default_factory=dict)
    """Largest rate per replica seen to meet the targets."""
    capacity: dict[tuple[int, int], float] = field(default_factory=dict)
    """Corrected capacity, where screening's was too high."""
    simulations: int = 0


def meets_targets(workload: Workload, result: Replay, margin: float = 1.0) -> bool:
    """Whether simulated percentiles, times the margin, are within the targets."""
    targets = workload.targets
    checks = (
        (targets.time_to_first_token_s, result.time_to_first_token_s),
        (targets.time_per_output_token_s, result.time_per_output_token_s),
        (targets.end_to_end_s, result.end_to_end_s),
    )
    return all(values[name] * margin <= limit for limits, values in checks for name, limit in limits.items())


def holds_at(
    confirmations: Confirmations, workload_index: int, screened: Screened, row: int, requests_per_s: float, margin: float = 1.0
) -> bool:
    """Simulate one replica at a rate and check the targets. A rate below one already confirmed holds."""
    key = (workload_index, row)
    if requests_per_s <= confirmations.holds.get(key, 0.0):
        return True
    configuration = screened.space.configuration(row)
    if key not in confirmations.tables:
        confirmations.tables[key] = configuration.tables()
    confirmations.simulations += 1
    try:
        result = replay(
            configuration,
            confirmations.tables[key],
            screened.workload.traffic,
            Load("open", requests_per_s=max(requests_per_s, 1e-9)),
            requests=CONFIRMATION_REQUESTS,
        )
    except (SaturatedError, InvalidInputError):
        return False
    if not meets_targets(screened.workload, result, margin):
        return False
    confirmations.holds[key] = requests_per_s
    return True


def simulated_capacity(
    confirmations: Confirmations, workload_index: int, screened: Screened, row: int, failing_rate: float, margin: float = 1.0
) -> float:
    """Largest rate below ``failing_rate`` at which the targets hold, by bisection; 0 when none of the tried ones does."""
    low, high = confirmations.holds.get((workload_index, row), 0.0), failing_rate
    if low <= 0.0 and not holds_at(confirmations, workload_index, screened, row, high / 64.0, margin):
        return 0.0
    low = max(low, high / 64.0)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        if holds_at(confirmations, workload_index, screened, row, middle, margin):
            low = middle
        else:
            high = middle
    return low
