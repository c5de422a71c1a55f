"""Solving a changed request from where the first one ended: what simulation found then is not simulated again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from solver.candidates.screening import Screened
from solver.confirmation.confirmations import Confirmations
from solver.confirmation.loop import solve_confirmed
from solver.errors import NoPlanInTimeError
from solver.fleet import FleetResult
from solver.hardware import Offer
from solver.outcome import Outcome
from solver.planning.assemble import Assembly, assemble, offer_slots, slot_of, within_default_where_needed
from solver.planning.needed_offers import needed_offers
from solver.planning.placements import Placement, placements, plan_entries
from solver.planning.types import PlanEntry, PlanningInput
from solver.recommend.classes_alone import proven_of_mixes
from solver.recommend.recommend import SolvedRequest
from solver.recommend.solve_report import check

Rows = NDArray[np.bool_]
RELATIVE_NOISE = 1e-6
"""Of the objective: two proofs are each this good."""


class QuestionOutcome(StrEnum):
    """What came of a question."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    NOT_IN_TIME = "not_in_time"


@dataclass(frozen=True, slots=True)
class SolvedChange:
    """A changed request, solved. ``extra``: its objective above the plan's; below zero it is better.

    measurable: whether the difference is beyond what the two gaps leave open. entries: without predictions.
    carbon_kg_per_hour: true only where the grids of all offers in it are known.
    nodes: bought per offer, spares included. placements: replicas by row of the workloads' candidates.
    """

    outcome: QuestionOutcome
    entries: tuple[PlanEntry, ...] = ()
    nodes: Mapping[str, int] | None = None
    usd_per_hour: float | None = None
    power_w: float | None = None
    carbon_kg_per_hour: float | None = None
    throughput_multiple: float | None = None
    objective: float | None = None
    gap_fraction: float | None = None
    extra: float | None = None
    measurable: bool = False
    placements: tuple[Placement, ...] = ()

    @property
    def open_fraction(self) -> float:
        """By how much of it a better plan may undercut this one, as far as is proven: all of it where nothing is."""
        return 1.0 if self.gap_fraction is None else self.gap_fraction

    def takes(self, of: Literal["power", "carbon"]) -> float | None:
        """W at full use, or kg CO2e per hour of that."""
        return self.power_w if of == "power" else self.carbon_kg_per_hour


class Clock:
    """Seconds of solving a question may still use: all its solves together stay within one limit."""

    def __init__(self, limit_s: float) -> None:
        self.left_s = limit_s

    def spent(self, seconds: float) -> None:
        self.left_s = max(0.0, self.left_s - seconds)


def resolve(
    solved_request: SolvedRequest, planning: PlanningInput, assembly: Assembly, known: Confirmations, clock: Clock
) -> SolvedChange:
    """The best confirmed plan of a changed problem, compared with the one that is asked about.

    known: what simulation found so far for these targets; it learns. Raises VerificationError on a defect.
    """
    if clock.left_s <= 0.0:
        return SolvedChange(QuestionOutcome.NOT_IN_TIME)
    known.spent_s = 0.0
    brief = replace(planning, time_limit_s=clock.left_s)
    try:
        changed, result, _ = solve_confirmed(assembly, brief, known, draft_first=False)
    except NoPlanInTimeError:
        return SolvedChange(QuestionOutcome.NOT_IN_TIME)
    finally:
        clock.spent(known.spent_s)
    if result.plan is None:
        return SolvedChange(QuestionOutcome.INFEASIBLE)
    check(changed, result)
    return answer_of(solved_request, changed, result, plan_entries(planning, changed, result.plan))


def unchanged(solved_request: SolvedRequest) -> SolvedChange:
    """The plan as the answer: what was asked about is in it already. Raises ValueError without a plan."""
    if solved_request.result.plan is None:
        raise ValueError("there is no plan")
    entries = plan_entries(solved_request.planning, solved_request.assembly, solved_request.result.plan)
    return answer_of(solved_request, solved_request.assembly, solved_request.result, entries)


def answer_of(
    solved_request: SolvedRequest, assembly: Assembly, result: FleetResult, entries: tuple[PlanEntry, ...]
) -> SolvedChange:
    assert result.plan is not None
    extra, measurable = difference(solved_request.result, result, solved_request.planning.objective == "throughput")
    # Searches over mixes prove nothing: plans are compared as they were found.
    proven = proven_of_mixes(result, None, solved_request.planning)
    return SolvedChange(
        outcome=QuestionOutcome.OPTIMAL if proven.outcome is Outcome.OPTIMAL else QuestionOutcome.FEASIBLE,
        entries=entries,
        nodes=result.plan.nodes_by_offer(),
        usd_per_hour=result.usd_per_hour,
        power_w=result.power_w,
        carbon_kg_per_hour=result.plan.carbon_kg_per_hour(assembly.problem),
        throughput_multiple=result.throughput_multiple,
        objective=result.objective,
        gap_fraction=proven.gap_fraction,
        extra=extra,
        measurable=measurable,
        placements=tuple(placements(assembly, result.plan)),
    )


def difference(base: FleetResult, other: FleetResult, larger_is_better: bool = False) -> tuple[float | None, bool]:
    """(how much worse the other objective is, whether that is beyond both gaps).

    The true optima lie within gap · objective of what was found, each on its own side.
    """
    if base.objective is None or other.objective is None:
        return None, False
    worse = base.objective - other.objective if larger_is_better else other.objective - base.objective
    noise = sum((r.gap_fraction or 0.0) * abs(r.objective or 0.0) for r in (base, other))
    return worse, abs(worse) > noise + RELATIVE_NOISE * abs(base.objective)


def known_of(solved_request: SolvedRequest) -> Confirmations:
    """A copy of what simulation found for the plan; what a question adds to it stays with the question.

    Candidates nobody simulated are believed as far as they were for the plan: a plan with something forced in
    is then never cheaper than it.
    """
    found = solved_request.confirmations
    return replace(found.copied(), spent_s=0.0)


def without_rows(known: Confirmations, workload: int, kept: Rows) -> Confirmations:
    """What is known of all rows but those of a workload that are no longer candidates."""
    return known.renumbered(workload, lambda row: row if kept[row] else None)


def on_new_rows(known: Confirmations, workload: int, old: Screened, new: Screened) -> Confirmations:
    """What is known of a workload's rows, under their numbers in another space over the same whole devices."""
    if old.space is new.space:
        return known
    number = {row: i for i, row in enumerate(new.space.rows)}
    # Platforms of whole devices come first in every space; those of instances may be others under the same number.
    same = [
        before.device.partition == after.device.partition and before.device.id == after.device.id
        for before, after in zip(old.space.platforms, new.space.platforms, strict=False)
    ]
    moved = {i: number[row] for i, row in enumerate(old.space.rows) if row in number and same[row.platform]}

    return known.renumbered(workload, moved.get)


def assembled(planning: PlanningInput, screened: Sequence[Screened], named: Sequence[Offer] = ()) -> Assembly:
    """The problem of these workloads, with the named ones of the planning's offers in it even where others beat them."""
    slots = offer_slots(planning)
    here = {slot.id for slot in slots}
    named_slots = tuple(slot_of(o) for o in needed_offers(replace(planning, offers=tuple(named))) if o.id not in here)
    return within_default_where_needed(planning, assemble(planning, screened, slots + named_slots))
