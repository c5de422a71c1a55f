"""Prefill and decode by different replicas: whether a plan with them is better, by how much, and what it would cost where not.

The best plan of replicas that do both is the one to beat. With prefill and decode rows beside, the same problem is solved and confirmed
by the same loop. Opt-in, since it takes a second search.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from solver.candidates.screening import Screened
from solver.confirmation.confirmations import Confirmations
from solver.confirmation.loop import solve_confirmed
from solver.errors import InvalidInputError, NoPlanInTimeError
from solver.explain.resolver import Resolver
from solver.fleet import FleetResult
from solver.outcome import Outcome
from solver.planning.assemble import Assembly, assemble, offer_slots, within_default_where_needed
from solver.planning.placements import plan_entries
from solver.planning.types import Alternative, Observer, PlanningInput, PoolsReport

WITHOUT = "cheapest without pools of their own"
WITH = "cheapest with prefill and decode in pools of their own"
NONE_CHEAPER = "no plan with pools of their own costs less"
NONE_EXISTS = "no plan with pools of their own exists"
RELATIVE_NOISE = 1e-9


Solved = tuple[Assembly, FleetResult]
"""A problem with the capacities that its plan was made for, and what came of it."""


@dataclass(frozen=True, slots=True)
class PoolSearch:
    """What came of looking for a plan with prefill and decode apart. asked: the request that admits them, where they were looked for.
    without: the best plan of replicas that do both, where that is not the answer."""

    report: PoolsReport
    asked: PlanningInput | None = None
    without: Solved | None = None


def forced(planning: PlanningInput) -> list[str]:
    """Workloads that admit nothing but prefill and decode apart."""
    return [workload.name for workload in planning.workloads if "aggregated" not in workload.roles]


def not_considered(planning: PlanningInput) -> str | None:
    """Why prefill and decode apart are not looked for; None where they are."""
    mixed = [w.name for w in planning.workloads if w.is_mixed and "disaggregated" in w.roles]
    if mixed:
        return f"pools of their own are not planned with traffic classes, which {', '.join(mixed)} has"
    return None


def checked(planning: PlanningInput) -> PlanningInput:
    """The request as it is searched. Raises InvalidInputError where a workload admits nothing that is looked for."""
    reason, only = not_considered(planning), forced(planning)
    if reason is None:
        return planning
    if only:
        raise InvalidInputError(f"{', '.join(only)}: {reason}")
    return planning.without_exchanges()


def solve_exchanges(
    planning: PlanningInput,
    screened: Sequence[Screened],
    without: Solved | None,
    confirmations: Confirmations,
    observe: Observer,
) -> tuple[PoolSearch, tuple[Assembly, FleetResult, int] | None]:
    """What came of the search, and the best confirmed plan with prefill and decode rows where it is the answer.

    without: the best plan of replicas that do both; None where some workload does not admit that, and then there is no other answer.
    Raises NoPlanInTimeError where none was found or ruled out in time and there is no other answer.
    """
    assembly = assembled(planning, screened, without[0] if without else None)
    known = without[1] if without and without[1].plan is not None else None
    try:
        solved = solve_confirmed(assembly, planning, confirmations, observe, known=known)
    except NoPlanInTimeError:
        if without is None:
            raise
        return _no_better("none was found in the time left, and none was ruled out", planning), None
    assembly, result, _ = solved
    if without is None:
        exists = result.plan is not None
        return PoolSearch(PoolsReport(chosen=exists, reason=None if exists else NONE_EXISTS)), solved
    if not uses_exchanges(assembly, result) or (known is not None and not _is_better(planning, result, known)):
        exists = known is not None or result.outcome is not Outcome.INFEASIBLE
        return _no_better(NONE_CHEAPER if exists else NONE_EXISTS, planning), None
    saves = None if known is None else (known.usd_per_hour or 0.0) - (result.usd_per_hour or 0.0)
    return PoolSearch(PoolsReport(chosen=True, saves_usd_per_hour=saves), planning, without), solved


def _no_better(reason: str, planning: PlanningInput) -> PoolSearch:
    return PoolSearch(PoolsReport(chosen=False, reason=reason), planning)


def assembled(planning: PlanningInput, screened: Sequence[Screened], without: Assembly | None) -> Assembly:
    """The problem with prefill and decode rows, over offers told apart by place and those of the problem without."""
    slots = offer_slots(planning)
    here = {slot.id for slot in slots}
    others = () if without is None else tuple(slot for slot in without.problem.offers if slot.id not in here)
    return within_default_where_needed(planning, assemble(planning, screened, slots + others))


def uses_exchanges(assembly: Assembly, result: FleetResult) -> bool:
    """Does a plan prefill and decode anything apart?"""
    table = assembly.problem.deployments
    if result.plan is None or table.role is None:
        return False
    return any(table.role[route.key] for route in result.plan.routes)


def _is_better(planning: PlanningInput, result: FleetResult, known: FleetResult) -> bool:
    if result.objective is None or known.objective is None:
        return known.objective is None
    if planning.objective == "throughput":
        return result.objective > known.objective * (1.0 + RELATIVE_NOISE)
    return result.objective < known.objective * (1.0 - RELATIVE_NOISE)


def alternative_without(planning: PlanningInput, result: FleetResult, without: Solved) -> Alternative:
    """The best plan of replicas that do both, beside one that is better."""
    assembly, other = without
    if other.plan is None or other.usd_per_hour is None:
        return Alternative(WITHOUT, None, None, ())
    extra = other.usd_per_hour - (result.usd_per_hour or 0.0)
    worse = abs((other.objective or 0.0) - (result.objective or 0.0))
    return Alternative(WITHOUT, extra, worse, plan_entries(planning, assembly, other.plan))


def alternative_with(
    planning: PlanningInput, screened: Sequence[Screened], result: FleetResult, resolver: Resolver
) -> Alternative | None:
    """The best plan in which workloads that admit it are prefilled and decoded apart, beside one that is better; None where that was
    not settled in time."""
    apart = tuple(replace(w, roles=("disaggregated",)) if "disaggregated" in w.roles else w for w in planning.workloads)
    changed = replace(planning, workloads=apart)
    try:
        assembly, other = resolver.confirmed(assembled(changed, screened, None))
    except NoPlanInTimeError:
        return None
    if other.plan is None or other.usd_per_hour is None:
        return Alternative(WITH, None, None, ())
    if result.plan is None:
        return Alternative(WITH, None, None, plan_entries(planning, assembly, other.plan))
    extra = other.usd_per_hour - (result.usd_per_hour or 0.0)
    worse = abs((other.objective or 0.0) - (result.objective or 0.0))
    return Alternative(WITH, extra, worse, plan_entries(planning, assembly, other.plan))
