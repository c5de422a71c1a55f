"""Why this plan: every figure here comes from solving a changed problem again, none from a dual.

Duals of a mixed-integer programme say nothing (there is always slack up to the next node). A difference smaller than
the gaps of the two solves is not reported as a difference.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from solver.fleet.loosened_limits import ChangedProblem
from solver.fleet.plan import FleetResult
from solver.fleet.problem import FleetProblem
from solver.fleet.solve import Solve, solve_fleet


@dataclass(frozen=True, slots=True)
class WithoutDevice:
    """The best plan without one device. extra: objective above the optimum's (below it, for throughput)."""

    device_id: str
    result: FleetResult
    extra: float | None


@dataclass(frozen=True, slots=True)
class BindingLimit:
    """A limit whose relaxation improves the objective by ``saves``."""

    change: ChangedProblem
    result: FleetResult
    saves: float


def devices_used(problem: FleetProblem, result: FleetResult) -> tuple[str, ...]:
    """Devices of the plan, by share of its price, dearest first."""
    if result.plan is None:
        return ()
    offers = {offer.id: offer for offer in problem.offers}
    spent: dict[str, float] = {}
    for offer_id, nodes in result.plan.nodes_by_offer().items():
        offer = offers[offer_id]
        spent[offer.device_id] = spent.get(offer.device_id, 0.0) + nodes * offer.usd_per_hour
    return tuple(sorted(spent, key=lambda device: (-spent[device], device)))


def without_device(problem: FleetProblem, device_id: str) -> FleetProblem:
    return replace(problem, offers=tuple(offer for offer in problem.offers if offer.device_id != device_id))


def alternatives(
    problem: FleetProblem, result: FleetResult, solve: Solve = solve_fleet, most: int = 3
) -> list[WithoutDevice]:
    """The best plan without each device of the optimum, best first; a device nothing replaces comes last."""
    found = []
    for device in devices_used(problem, result)[:most]:
        other = solve(without_device(problem, device))
        extra = None
        if other.objective is not None and result.objective is not None:
            extra = abs(other.objective - result.objective)
        found.append(WithoutDevice(device, other, extra))
    return sorted(found, key=lambda a: (a.extra is None, a.extra or 0.0, a.device_id))


def binding(result: FleetResult, changes: Iterable[ChangedProblem], solve: Solve = solve_fleet) -> list[BindingLimit]:
    """Which changes improve the objective measurably, the largest saving first."""
    if result.objective is None:
        return []
    found = []
    for change in changes:
        other = solve(change.problem)
        if other.objective is None:
            continue
        sign = -1.0 if change.problem.objective == "throughput" else 1.0
        saves = sign * (result.objective - other.objective)
        noise = sum((r.gap_fraction or 0.0) * abs(r.objective or 0.0) for r in (result, other))
        if saves > noise + 1e-6 * abs(result.objective):
            found.append(BindingLimit(change, other, saves))
    return sorted(found, key=lambda b: (-b.saves, b.change.limit))
