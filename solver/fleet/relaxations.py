"""Fleets that no plan serves: which limits conflict, and the smallest change of each that admits a plan.

Every figure comes from solving a changed problem, none from a dual.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from solver.fleet.loosened_limits import (
    ChangedProblem,
    default_nodes_change,
    fault_tolerance_change,
    offer_change,
    places_change,
    replicas_change,
)
from solver.fleet.plan import FleetResult
from solver.fleet.problem import MOST_NODES_PLACED, FleetProblem, OfferSlot
from solver.fleet.solve import Solve, solve_fleet
from solver.limit import Limit, LimitKind


@dataclass(frozen=True, slots=True)
class RelaxedLimit:
    """The smallest change of one limit that admits a plan, and the plan with its price."""

    change: ChangedProblem
    result: FleetResult


def has_plan(problem: FleetProblem, solve: Solve = solve_fleet) -> bool:
    """Is there any plan? Asked of the cost problem; an unknown answer counts as none."""
    return solve(replace(problem, objective="cost")).plan is not None


def is_unlimited(problem: FleetProblem) -> bool:
    """Can everything be bought as often as wanted? Then any demand has a plan that has one at all."""
    limits = problem.limits
    return (
        limits.budget_usd_per_hour is None
        and limits.power_w is None
        and limits.carbon_kg_per_hour is None
        and limits.max_spot_fraction is None
        and not limits.quotas
        and not limits.fault_tolerance.losses
        and all(offer.max_nodes is None for offer in problem.offers)
    )


def conflicts(limits: Sequence[Limit], has_plan_without: Callable[[frozenset[Limit]], bool]) -> tuple[Limit, ...]:
    """A set of limits that together rule every plan out, none of which can be spared (deletion filter).

    ``has_plan_without(lifted)`` says whether some of ``limits`` lifted leave a plan. Limits are tried for removal in order,
    so put those to blame last. Empty where a plan exists, or where lifting everything does not help: then the demand itself
    cannot be served.
    """
    everything = frozenset(limits)
    if has_plan_without(frozenset()) or not has_plan_without(everything):
        return ()
    lifted: frozenset[Limit] = frozenset()
    for limit in limits:
        if not has_plan_without(lifted | {limit}):
            lifted |= {limit}
    return tuple(limit for limit in limits if limit not in lifted)


def relaxations(
    problem: FleetProblem,
    solve: Solve = solve_fleet,
    offer_ids: Sequence[str] = (),
    further: Sequence[Sequence[ChangedProblem]] = (),
) -> list[RelaxedLimit]:
    """Each single smallest change that admits a plan, cheapest plan first.

    Budget and power are minimised outright; counts (spares, nodes of ``offer_ids`` and of all that state none) are searched by
    halving; each sequence in ``further`` holds one limit's changes in growing order, of which the first with a plan is taken.
    """
    found = [_least_budget(problem, solve), _least_power(problem, solve)]
    spare = problem.limits.spare_nodes
    fewer = [
        ChangedProblem(
            Limit(LimitKind.SPARE_NODES), spare, k, replace(problem, limits=replace(problem.limits, spare_nodes=k))
        )
        for k in range(spare - 1, -1, -1)
    ]
    found.append(_first_with_plan(fewer, solve))
    for kind, count in problem.limits.fault_tolerance.losses:
        steps = [fault_tolerance_change(problem, kind, count, k) for k in range(count - 1, -1, -1)]
        found.append(_first_with_plan(steps, solve))
    for w, demand in enumerate(problem.demands):
        if demand.min_replicas > 1:
            steps = [replicas_change(problem, w, k) for k in _halvings(demand.min_replicas)]
            found.append(_first_with_plan(steps, solve))
        if demand.allowed_offer_ids is not None:
            found.append(_first_with_plan([places_change(problem, w)], solve))
    limited = [offer for offer in problem.offers if offer.id in offer_ids and offer.max_nodes is not None]
    found += [_fewest_more_nodes(problem, offer, solve) for offer in limited]
    found.append(_fewest_nodes_of_each(problem, solve))
    found += [_first_with_plan(steps, solve) for steps in further]
    present = [relaxation for relaxation in found if relaxation is not None]
    return sorted(present, key=lambda r: (r.result.usd_per_hour or 0.0, r.change.limit))


def _least_budget(problem: FleetProblem, solve: Solve) -> RelaxedLimit | None:
    budget = problem.limits.budget_usd_per_hour
    if budget is None:
        return None
    free = replace(problem, limits=replace(problem.limits, budget_usd_per_hour=None), objective="cost")
    result = solve(free)
    if result.usd_per_hour is None:
        return None
    changed = replace(problem, limits=replace(problem.limits, budget_usd_per_hour=result.usd_per_hour))
    return RelaxedLimit(ChangedProblem(Limit(LimitKind.BUDGET), budget, result.usd_per_hour, changed), result)


def _least_power(problem: FleetProblem, solve: Solve) -> RelaxedLimit | None:
    cap = problem.limits.power_w
    if cap is None:
        return None
    free = replace(problem, limits=replace(problem.limits, power_w=None), objective="power")
    result = solve(free)
    if result.power_w is None:
        return None
    changed = replace(problem, limits=replace(problem.limits, power_w=result.power_w))
    return RelaxedLimit(ChangedProblem(Limit(LimitKind.POWER), cap, result.power_w, changed), result)


def _first_with_plan(changes: Iterable[ChangedProblem], solve: Solve) -> RelaxedLimit | None:
    for change in changes:
        result = solve(change.problem)
        if result.plan is not None:
            return RelaxedLimit(change, result)
    return None


def _fewest_more_nodes(problem: FleetProblem, offer: OfferSlot, solve: Solve) -> RelaxedLimit | None:
    if offer.max_nodes is None:
        return None
    return _fewest(lambda most: offer_change(problem, offer, most), offer.max_nodes, (offer.id,), solve)


def _fewest_nodes_of_each(problem: FleetProblem, solve: Solve) -> RelaxedLimit | None:
    """The fewest nodes of every offer that states no number, all alike, with which there is a plan."""
    alike = {offer.id: offer.max_nodes for offer in problem.offers if offer.is_default_most}
    now = next(iter(alike.values()), None)
    if now is None:
        return None
    return _fewest(lambda most: default_nodes_change(problem, most), now, tuple(alike), solve)


def _fewest(
    change: Callable[[int], ChangedProblem], now: int, offer_ids: Sequence[str], solve: Solve
) -> RelaxedLimit | None:
    """The least count of these offers' nodes that admits a plan, between ``now``, which does not, and what the cheapest takes where
    they are many; None where MOST_NODES_PLACED do not."""
    if now >= MOST_NODES_PLACED:
        return None
    result = solve(replace(change(MOST_NODES_PLACED).problem, objective="cost"))
    if result.plan is None:
        return None
    taken = result.plan.nodes_by_offer()
    low, high = now, max(now + 1, *(taken.get(name, 0) for name in offer_ids))
    while high - low > 1:
        middle = (low + high) // 2
        if has_plan(change(middle).problem, solve):
            high = middle
        else:
            low = middle
    return _first_with_plan([change(high)], solve)


def _halvings(count: int) -> list[int]:
    """Fewer and fewer, down to one: 12 → 6, 3, 1."""
    steps = []
    while count > 1:
        count //= 2
        steps.append(count)
    return steps
