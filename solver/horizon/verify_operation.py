"""An independent check that a plan over time keeps to the rules of operation: hours walked through one by one."""

from collections import Counter

from solver.horizon.plan import HorizonPlan
from solver.horizon.problem import HorizonProblem

LAPS = 2
"""Times that the hours of a month are walked through: on the first one no node's age is known."""


def verify_operation(problem: HorizonProblem, plan: HorizonPlan) -> list[str]:
    """Every rule that a plan breaks, by name."""
    errors = _configurations(problem, plan)
    for month, sequence in enumerate(problem.sequences):
        for o, offer in enumerate(problem.hourly):
            counts = [plan.choices[t].hourly[o] for t in sequence]
            stays = least_stay(counts)
            if stays is not None and stays < problem.operation.min_up_hours:
                errors.append(
                    f"min_up_hours: a node of {offer.id} stays {stays} hours in month {month}, it must"
                    f" {problem.operation.min_up_hours}"
                )
        errors += _changes(problem, plan, month)
    return errors


def _configurations(problem: HorizonProblem, plan: HorizonPlan) -> list[str]:
    most = problem.operation.max_configurations
    used = {d for choice in plan.choices for d, replicas in enumerate(choice.replicas) if replicas}
    counts = Counter(problem.deployments[d].workload for d in used)
    return [
        f"max_configurations: {problem.workloads[w]} uses {count}, at most {most} are allowed"
        for w, count in sorted(counts.items())
        if most is not None and count > most
    ]


def least_stay(counts: list[int]) -> int | None:
    """Fewest hours that any node stays where the last that came goes first, the hours repeating; None where none goes.

    >>> least_stay([0, 2, 1, 1, 0]), least_stay([1, 1, 2]), least_stay([3, 3])
    (1, 1, None)
    """
    arrived: list[int | None] = [None] * counts[0]
    least: int | None = None
    for h in range(1, LAPS * len(counts) + 1):
        nodes = counts[h % len(counts)]
        while len(arrived) < nodes:
            arrived.append(h)
        while len(arrived) > nodes:
            since = arrived.pop()
            if since is not None:
                least = h - since if least is None else min(least, h - since)
    return least


def _changes(problem: HorizonProblem, plan: HorizonPlan, month: int) -> list[str]:
    if problem.operation.max_change_fraction is None:
        return []
    errors = []
    sequence = problem.sequences[month]
    peaks = [max(rates) for rates in zip(*(period.requests_per_s for period in problem.periods), strict=True)]
    for h, t in enumerate(sequence):
        before, now = plan.choices[sequence[h - 1]].replicas, plan.choices[t].replicas
        for d, deployment in enumerate(problem.deployments):
            peak = peaks[deployment.workload]
            if peak <= 0.0 or now[d] == before[d]:
                continue
            share = problem.operation.max_change_fraction * peak / deployment.requests_per_s
            if abs(now[d] - before[d]) > max(1.0, share * (1.0 + 1e-9)):
                errors.append(
                    f"max_change_percent_per_hour: {problem.workloads[deployment.workload]} goes from {before[d]} to {now[d]}"
                    f" replicas in month {month}"
                )
    return errors
