"""Suggested relaxations, tried: one is worth stating only if a plan confirmed by simulation comes of it.

Reasons are found on screened capacities, which are optimistic; here each suggested value is planned and confirmed like
a request of its own, and moved further where it falls short.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from solver.assemble import Assembly
from solver.confirm import CLOSE_ENOUGH
from solver.fleet import FleetResult
from solver.planning import PlanningInput, Relaxation
from solver.reasons import bounded, replaced, retargeted, shrunk, stated_targets
from solver.workload import Percentile

WIDER = 1.15
"""How much further a target is relaxed where the suggested value does not hold in simulation."""
MOST_WIDENINGS = 6
MORE_NODES = 0.05
"""The same for nodes of an offer, of which at least one more is tried."""
OFFER_LIMITS = "limits.offers."
RATE_LIMITS = ("traffic.requests_per_s", "traffic_classes.requests_per_s")

Solve = Callable[[Assembly], FleetResult | None]
"""None: no answer in time."""


def confirmed_targets(
    planning: PlanningInput, assembly: Assembly, relaxations: tuple[Relaxation, ...], solve: Solve
) -> Iterator[Relaxation]:
    """Every relaxation; those of targets and offers' nodes at the value, and price, at which a plan holds in simulation.

    One that no widening makes hold in simulation is left out.
    """
    for one in relaxations:
        if one.limit.startswith(OFFER_LIMITS) and isinstance(one.to_value, float | int):
            yield from _confirmed_nodes(assembly, one, int(one.to_value), solve)
            continue
        named = _target_of(assembly, one)
        if named is None or not isinstance(one.to_value, float):
            yield one
            continue
        workload, number, name, percentile = named
        value = one.to_value
        for _ in range(MOST_WIDENINGS):
            looser = retargeted(assembly.screened[workload], number, name, percentile, value / 1e3)
            found = solve(replaced(planning, assembly, workload, looser))
            if found is not None and found.plan is not None:
                yield replace(one, to_value=value, usd_per_hour=found.usd_per_hour)
                break
            value *= WIDER


def _target_of(assembly: Assembly, one: Relaxation) -> tuple[int, int, str, Percentile] | None:
    """(workload, traffic class, field, percentile) of a relaxation of a target; None for one of something else."""
    for workload, screened in enumerate(assembly.screened):
        if screened.workload.name == one.workload:
            for limit, number, name, percentile, _ in stated_targets(screened):
                if limit == one.limit:
                    return workload, number, name, percentile
    return None


def _confirmed_nodes(assembly: Assembly, one: Relaxation, nodes: int, solve: Solve) -> Iterator[Relaxation]:
    """More nodes of one offer, as many as a plan that holds in simulation needs."""
    offer_id = one.limit.removeprefix(OFFER_LIMITS).removesuffix(".max_nodes")
    for _ in range(MOST_WIDENINGS):
        offers = tuple(replace(o, max_nodes=nodes) if o.id == offer_id else o for o in assembly.problem.offers)
        found = solve(replace(assembly, problem=replace(assembly.problem, offers=offers)))
        if found is not None and found.plan is not None:
            yield replace(one, to_value=nodes, usd_per_hour=found.usd_per_hour)
            return
        nodes += max(1, round(MORE_NODES * nodes))


def confirmed_multiple(assembly: Assembly, screened: float | None, solve: Solve) -> float | None:
    """The share of all demand that can be served, where screening says that it is a part of it."""
    if screened is None or not 0.0 < screened < 1.0:
        return screened
    problem = replace(shrunk(bounded(assembly.problem)), objective="throughput")
    found = solve(replace(assembly, problem=problem))
    if found is None:
        return screened
    # Capacities are found to within CLOSE_ENOUGH of their target: what is promised must hold when it is asked for.
    return min(screened, found.throughput_multiple or 0.0) * CLOSE_ENOUGH


def served_share(one: Relaxation, multiple: float | None) -> Relaxation:
    """A suggested lower rate, at the share of demand that is known to be served."""
    if one.limit not in RATE_LIMITS or multiple is None or not isinstance(one.from_value, float):
        return one
    return replace(one, to_value=one.from_value * multiple)
