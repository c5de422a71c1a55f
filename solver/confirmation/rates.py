"""What a plan's replicas are simulated at."""

from solver.planning.assemble import Assembly
from solver.planning.placements import Placement

ROUNDING = 1e-9
"""Of a rate: what the optimiser's tolerance may add to it."""


def rate_to_hold(assembly: Assembly, place: Placement) -> float:
    """The rate at which a replica's targets are simulated, in requests per second.

    Its planned rate over the utilisation limit, so that the headroom is real; where it has to take more after a loss,
    all the capacity that the plan counts on.
    """
    if assembly.problem.limits.fault_tolerance.losses:
        return place.capacity_requests_per_s
    return place.rate_per_replica / assembly.screened[place.workload].workload.utilisation_limit_fraction


def rates_to_hold(assembly: Assembly, place: Placement) -> tuple[float, ...]:
    """The same by traffic class."""
    factor = rate_to_hold(assembly, place) / place.requests_per_s
    return tuple(one * factor for one in place.class_requests_per_s)
