"""When limits cannot serve everyone: by priority, each level as much as what is left admits (a lexicographic solve).

The common share of a level is maximised while the levels above it keep theirs; where a level cannot be served whole, its
workloads then get, in order, what the others leave them. Lower levels take no part until those above are settled.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from solver.fleet.plan import FleetResult
from solver.fleet.problem import Demand, FleetProblem

Solve = Callable[[FleetProblem], FleetResult]

SHARE_ROUNDING = 1e-6
"""Shares are kept so much below what was found: a solver's tolerance is no promise."""
LEAST_SHARE = 1e-6
"""Smaller shares are none at all."""


def shares_by_priority(problem: FleetProblem, priorities: Sequence[int], solve: Solve) -> tuple[float, ...]:
    """The share of its demand that each workload is served; higher ``priorities`` first."""
    shares: list[float | None] = [None] * len(problem.demands)
    for level in sorted(set(priorities), reverse=True):
        members = [w for w, priority in enumerate(priorities) if priority == level]
        common = _most(problem, shares, members, solve)
        for w in members:
            shares[w] = common
        if common < 1.0 and len(members) > 1:
            for w in members:
                shares[w] = max(common, _most(problem, shares, [w], solve))
    return tuple(share or 0.0 for share in shares)


def _most(problem: FleetProblem, shares: Sequence[float | None], members: Sequence[int], solve: Solve) -> float:
    wanted = [w for w in members if any(problem.demands[w].requests_per_s)]
    if not wanted:
        return 1.0
    found = solve(level_problem(problem, shares, members)).throughput_multiple or 0.0
    if found >= 1.0 - SHARE_ROUNDING:
        return 1.0
    return found * (1.0 - SHARE_ROUNDING) if found > LEAST_SHARE else 0.0


def level_problem(problem: FleetProblem, shares: Sequence[float | None], members: Sequence[int]) -> FleetProblem:
    """Serve the largest common share of ``members``, at most all, beside what is settled (None: not yet, not served)."""
    demands = tuple(
        demand if w in members else replace(served(demand, shares[w] or 0.0), is_fixed=True)
        for w, demand in enumerate(problem.demands)
    )
    return replace(problem, demands=demands, objective="throughput", most_multiple=1.0, is_cheapest_asked=False)


def shed_problem(problem: FleetProblem, shares: Sequence[float]) -> FleetProblem:
    """The problem with each workload's demand cut to its share."""
    demands = tuple(served(demand, share) for demand, share in zip(problem.demands, shares, strict=True))
    return replace(problem, demands=demands)


def served(demand: Demand, share: float) -> Demand:
    """A share of the demand; a workload that gets none needs no replica either."""
    rates = tuple(rate * share for rate in demand.requests_per_s)
    return replace(demand, requests_per_s=rates, min_replicas=demand.min_replicas if share > 0.0 else 0)
