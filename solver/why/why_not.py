"""What it costs to use something the plan does without: a device, an offer, a provider, a precision, a layout, or instances
of split devices.

Two questions about each: at least one replica on it with all else free (``forced_in``), and one workload on nothing
else (``only``). Both are solved like any request; where there is no plan the reasons are those of the candidates.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from solver.candidates.screening import Screened, narrowed
from solver.confirmation.confirmations import Confirmations
from solver.errors import NoPlanInTimeError
from solver.explain.resolver import Resolver
from solver.fleet import FleetProblem, MustUse
from solver.fleet import loosened_limits as fleet_limits
from solver.fleet import relaxations as fleet_relaxations
from solver.hardware import Offer
from solver.limit import Limit
from solver.planning.assemble import Assembly, with_default_limits
from solver.planning.types import PlanningInput
from solver.recommend.predicted_lines import with_estimates
from solver.recommend.recommend import SolvedRequest, SpaceMemo, screened
from solver.why.misses import Miss, misses_of_devices, misses_of_rows, rows_of_devices
from solver.why.resolve import (
    Clock,
    QuestionOutcome,
    Rows,
    SolvedChange,
    assembled,
    known_of,
    on_new_rows,
    resolve,
    unchanged,
    without_rows,
)

Kind = Literal["device", "offer", "provider", "precision", "layout", "partition"]


@dataclass(frozen=True, slots=True)
class Thing:
    """Something named. offers: those it is about, priced now; None where it is about how replicas run. A partition is named
    by its profile.

    weights, kv_cache, degrees: of a precision or a layout; None and missing ones are free.
    """

    kind: Kind
    name: str
    offers: tuple[Offer, ...] | None = None
    devices: frozenset[str] = frozenset()
    weights: str | None = None
    kv_cache: str | None = None
    degrees: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WhyNot:
    """in_plan: the plan uses it already. only: None where no workload was singled out.

    misses: why its candidates serve nothing. limits: those of the request that leave no plan with it, where its
    candidates could serve.
    """

    thing: Thing
    in_plan: bool
    forced_in: SolvedChange
    only: SolvedChange | None
    misses: tuple[Miss, ...] = ()
    limits: tuple[Limit, ...] = ()


def why_not(solved_request: SolvedRequest, thing: Thing, workload: int | None, memo: SpaceMemo, clock: Clock) -> WhyNot:
    """The cost of one thing. workload: whose replicas are meant; None is anybody's.

    Raises InvalidInputError where a named precision can describe no candidate, and VerificationError on a defect.
    """
    found = _why_not(solved_request, thing, workload, memo, clock)
    planning = solved_request.planning
    only = None if found.only is None else _predicted(planning, found.only)
    return replace(found, forced_in=_predicted(planning, found.forced_in), only=only)


def _predicted(planning: PlanningInput, answer: SolvedChange) -> SolvedChange:
    """With what each line does: a price alone does not say why the plan does without."""
    return replace(answer, entries=with_estimates(planning, answer.entries))


def _why_not(
    solved_request: SolvedRequest, thing: Thing, workload: int | None, memo: SpaceMemo, clock: Clock
) -> WhyNot:
    planning, every = _with_thing(solved_request, thing, workload, memo)
    rows = [rows_of(thing, one) for one in every]
    concerned = range(len(every)) if workload is None else (workload,)
    used = _uses(solved_request, thing, concerned)
    if used and all(used):
        same = unchanged(solved_request)
        return WhyNot(thing, True, same, None if workload is None else same)
    known = known_of(solved_request)
    for w, (old, new) in enumerate(zip(solved_request.assembly.screened, every, strict=True)):
        known = on_new_rows(known, w, old, new)
    changed = _Changed(planning, assembled(planning, every, thing.offers or ()), tuple(every), tuple(rows), known)
    only = None if workload is None else _only(solved_request, changed, thing, workload, clock)
    misses = _misses(thing, every, rows, concerned)
    if any(used):
        return WhyNot(thing, True, unchanged(solved_request), only, _if_none(only, misses))
    requirement = _requirement(thing, changed, concerned)
    if _no_candidate(changed.assembly.problem, requirement):
        return WhyNot(thing, False, SolvedChange(QuestionOutcome.INFEASIBLE), only, misses)
    known = changed.known_again()
    asked = replace(changed.assembly, problem=replace(changed.assembly.problem, required=(requirement,)))
    forced = resolve(solved_request, planning, asked, known, clock)
    limits = _limits_to_blame(planning, asked, known) if forced.outcome is QuestionOutcome.INFEASIBLE else ()
    return WhyNot(thing, False, forced, only, _if_none(forced, misses) or _if_none(only, misses), limits)


@dataclass(frozen=True, slots=True)
class _Changed:
    """The request with the thing allowed. rows: candidates of each workload that the thing is about, or runs on."""

    planning: PlanningInput
    assembly: Assembly
    screened: tuple[Screened, ...]
    rows: tuple[Rows, ...]
    known: Confirmations

    def known_again(self) -> Confirmations:
        """What is known, for one solve to add to."""
        return self.known.copied()


def _if_none(answer: SolvedChange | None, misses: tuple[Miss, ...]) -> tuple[Miss, ...]:
    return misses if answer is not None and answer.outcome is QuestionOutcome.INFEASIBLE else ()


def _with_thing(
    solved_request: SolvedRequest, thing: Thing, workload: int | None, memo: SpaceMemo
) -> tuple[PlanningInput, list[Screened]]:
    """The request with the thing allowed: its offers on the market, its formats and profiles among the choices."""
    planning = solved_request.planning
    every = list(solved_request.assembly.screened)
    if thing.offers:
        here = {offer.id for offer in planning.offers}
        planning = replace(planning, offers=(*planning.offers, *(o for o in thing.offers if o.id not in here)))
    if thing.kind == "partition" and thing.name not in planning.limits.partitions:
        planning = replace(
            planning, limits=replace(planning.limits, partitions=planning.limits.partitions | {thing.name})
        )
        return planning, [screened(planning, one, memo) for one in planning.workloads]
    if thing.kind != "precision":
        return planning, every
    workloads = list(planning.workloads)
    for w, one in enumerate(workloads):
        if workload is not None and w != workload:
            continue
        weights = _with_format(one.weight_formats, thing.weights)
        caches = _with_format(one.kv_cache_formats, thing.kv_cache)
        if (weights, caches) != (one.weight_formats, one.kv_cache_formats):
            workloads[w] = replace(one, weight_formats=weights, kv_cache_formats=caches)
            every[w] = screened(planning, workloads[w], memo)
    return replace(planning, workloads=tuple(workloads)), every


def _with_format(allowed: tuple[str, ...], wanted: str | None) -> tuple[str, ...]:
    return allowed if wanted is None or wanted in allowed else (*allowed, wanted)


def rows_of(thing: Thing, one: Screened) -> Rows:
    """Candidates of a workload that the thing is about; for offers, all on their devices."""
    space = one.space
    if thing.offers is not None:
        return rows_of_devices(one, thing.devices)
    rows: Rows = np.ones(len(space.rows), dtype=np.bool_)
    if thing.kind == "precision":
        if thing.weights is not None:
            rows &= space.weight_formats == thing.weights
        if thing.kv_cache is not None:
            rows &= space.kv_formats == thing.kv_cache
    if thing.kind == "partition":
        profiles = [own.device.partition.profile if own.device.partition else None for own in space.platforms]
        rows &= np.array([name == thing.name for name in profiles], dtype=np.bool_)[space.platform_index]
    for name, degree in thing.degrees.items():
        rows &= np.array([getattr(row.layout, name) == degree for row in space.rows], dtype=np.bool_)
    return rows


def _requirement(thing: Thing, changed: _Changed, concerned: Sequence[int]) -> MustUse:
    assembly = changed.assembly
    named = np.zeros(len(assembly.row_of), dtype=np.bool_)
    for w in concerned:
        mine = assembly.workload_of == w
        named[mine] = True if thing.offers is not None else changed.rows[w][assembly.row_of[mine]]
    offers = None if thing.offers is None else frozenset(o.id for o in thing.offers)
    keys = None if named.all() else frozenset(np.flatnonzero(named).tolist())
    return MustUse(f"{thing.kind} {thing.name}", keys, offers)


def _no_candidate(problem: FleetProblem, requirement: MustUse) -> bool:
    """Does nothing that could be rented run what is required?"""
    table = problem.deployments
    types = {
        o.node_type_id
        for o in problem.offers
        if (requirement.offer_ids is None or o.id in requirement.offer_ids) and o.max_nodes != 0
    }
    on_type = np.isin(table.node_type, [i for i, t in enumerate(table.node_type_ids) if t in types])
    if requirement.keys is not None:
        on_type &= np.isin(table.key, sorted(requirement.keys))
    return not on_type.any()


def _only(solved_request: SolvedRequest, changed: _Changed, thing: Thing, workload: int, clock: Clock) -> SolvedChange:
    """The cheapest plan in which one workload runs on the thing alone."""
    if thing.offers is not None:
        problem = changed.assembly.problem
        demands = list(problem.demands)
        named, admitted = frozenset(o.id for o in thing.offers), demands[workload].allowed_offer_ids
        demands[workload] = replace(
            demands[workload], allowed_offer_ids=named if admitted is None else named & admitted
        )
        restricted = replace(changed.assembly, problem=replace(problem, demands=tuple(demands)))
        return resolve(solved_request, changed.planning, restricted, changed.known_again(), clock)
    rows = changed.rows[workload]
    chosen = list(changed.screened)
    chosen[workload] = narrowed(chosen[workload], rows)
    if not chosen[workload].serves.any():
        return SolvedChange(QuestionOutcome.INFEASIBLE)
    known = without_rows(changed.known_again(), workload, rows)
    return resolve(solved_request, changed.planning, assembled(changed.planning, chosen), known, clock)


def _misses(
    thing: Thing, every: Sequence[Screened], rows: Sequence[Rows], concerned: Sequence[int]
) -> tuple[Miss, ...]:
    found: list[Miss] = []
    for w in concerned:
        if thing.offers is None:
            found += misses_of_rows(every[w], rows[w])
        else:
            found += misses_of_devices(every[w], thing.devices)
    return tuple(found)


def _uses(solved_request: SolvedRequest, thing: Thing, concerned: Sequence[int]) -> list[bool]:
    """For every kind of replica that the plan runs for these workloads: is it the thing?"""
    plan = solved_request.result.plan
    offers = None if thing.offers is None else {o.id for o in thing.offers}
    masks = {w: rows_of(thing, solved_request.assembly.screened[w]) for w in concerned} if offers is None else {}
    used = []
    for key, offer_id in plan.replicas() if plan else ():
        w, row = int(solved_request.assembly.workload_of[key]), int(solved_request.assembly.row_of[key])
        if w in concerned:
            used.append(bool(masks[w][row]) if offers is None else offer_id in offers)
    return used


def _limits_to_blame(planning: PlanningInput, asked: Assembly, known: Confirmations) -> tuple[Limit, ...]:
    """The request's limits that together leave no plan with the thing; empty where they are not to blame, or that was not
    settled in time."""
    limited = with_default_limits(planning, asked)
    resolver = Resolver(planning, replace(known, spent_s=0.0))

    def has_plan(lifted: frozenset[Limit]) -> bool:
        return resolver.has_plan(replace(limited, problem=fleet_limits.without_limits(limited.problem, lifted)))

    try:
        return fleet_relaxations.conflicts(fleet_limits.stated_limits(limited.problem), has_plan)
    except NoPlanInTimeError:
        return ()
