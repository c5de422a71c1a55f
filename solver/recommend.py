"""Workloads in, plan out: screen, assemble, solve, confirm by simulation, verify, explain."""

import math
from collections.abc import MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from solver.assemble import (
    Assembly,
    assemble,
    fewest_nodes,
    plan_entries,
    split_devices,
    with_default_limits,
)
from solver.confidence import margins
from solver.confirm import Confirmations
from solver.confirm_mixes import groups_of, learn
from solver.confirmed_plans import progress, solve_confirmed
from solver.errors import NoPlanInTimeError, VerificationError
from solver.fleet import FleetResult, Plan, verify
from solver.fleet.explain import devices_used, without_device
from solver.fleet.plan import gap_between
from solver.fleet.survival import losses_of_plan
from solver.planning import (
    Alternative,
    Loss,
    Observer,
    PlanningInput,
    Recommendation,
    SearchProgress,
    unobserved,
)
from solver.pools import wants_pools, with_pools
from solver.predicted_lines import with_estimate
from solver.reasons import EXPLANATION_TIME_FRACTION, explain_infeasible, explain_plan
from solver.relaxed import confirmed_multiple, confirmed_targets, served_share
from solver.search import Rejection, Screened, rejections, screen, screen_classes
from solver.shedding import shed
from solver.solve_report import report
from solver.space import SearchSpace, build_space
from solver.traffic_classes import streams_of, with_confidence
from solver.workload import EngineSettings, Workload

ROUNDING_FRACTION = 1e-6
"""Of a price: what two proofs may differ by."""

SpaceMemo = MutableMapping[tuple[object, ...], SearchSpace]


@dataclass(frozen=True, slots=True)
class Standing:
    """A request as it was solved: what every question about its answer starts from.

    assembly: with the capacities in force at the end. alternatives: None where they were not looked for yet.
    """

    planning: PlanningInput
    assembly: Assembly
    result: FleetResult
    rounds: int
    confirmations: Confirmations
    alternatives: tuple[Alternative, ...] | None = None


def recommend(planning: PlanningInput, memo: SpaceMemo, observe: Observer = unobserved) -> Recommendation:
    """The proven-cheapest plan for all workloads together, or the reasons why there is none.

    memo keeps search spaces between calls with the same catalog_key. observe is told how far the search is.
    Raises InvalidInputError for workloads no catalog row can describe, NoPlanInTimeError and SolverFailedError where
    there is no answer, and VerificationError on a defect.
    """
    return explained(stand(planning, memo, observe), memo, observe)


def stand(planning: PlanningInput, memo: SpaceMemo, observe: Observer = unobserved) -> Standing:
    """Screen, assemble, solve and confirm; raises as ``recommend`` does."""
    observe(SearchProgress("screening"))
    assembly = assemble(planning, [screened(planning, w, memo) for w in planning.workloads])
    if planning.default_max_nodes is not None and fewest_nodes(assembly) > planning.default_max_nodes:
        assembly = with_default_limits(planning, assembly)
    confirmations = Confirmations()
    learn_alone(planning, assembly, confirmations)
    standing = Standing(planning, *solve_confirmed(assembly, planning, confirmations, observe), confirmations)
    if any(workload.classes for workload in planning.workloads):
        standing = bettered(standing, observe)
    if standing.result.plan is not None:
        check(standing.assembly, standing.result)
    return standing


def learn_alone(planning: PlanningInput, assembly: Assembly, confirmations: Confirmations) -> None:
    """What simulation finds of each traffic class's best replicas where it has the offers to itself.

    A problem of one class is solved in a small part of the time that one of many takes, and what a row does for a class
    alone holds in every company.
    """
    for w, one in enumerate(assembly.screened):
        for group in groups_of(one):
            if not one.classes:
                continue
            stream = one.classes[group[0]]
            rate = math.fsum(one.classes[k].workload.requests_per_s for k in group)
            stream = replace(stream, workload=replace(stream.workload, requests_per_s=rate))
            alone = Confirmations()
            single = replace(planning, workloads=(stream.workload,))
            with suppress(NoPlanInTimeError):  # what it has simulated until then is known all the same
                alone_only = assemble(single, [stream], assembly.problem.offers)
                solve_confirmed(alone_only, single, alone, among_all=False)
            learn(confirmations, w, group, one, alone)


def bettered(standing: Standing, observe: Observer) -> Standing:
    """The standing plan with its alternatives, or a cheaper one that looking for those has led to.

    What simulation says of one mix is held against like ones, so a plan without a device can turn out cheaper than the
    first with it: what was learnt on the way is then planned with once more, and the cheapest of all is the answer.
    """
    planning, first = standing.planning, standing.result
    if first.plan is None or not planning.alternatives or planning.objective != "cost":
        return standing
    learnt = standing.confirmations.copied()
    others = without_each_device(planning, standing.assembly, first, learnt)
    best = min((other for _, _, other in others if other.status != "unconfirmed"), key=_price, default=first)
    if _price(best) < _price(first) * (1.0 - ROUNDING_FRACTION):
        assembly, result, rounds = solve_confirmed(standing.assembly, planning, learnt, observe, draft_first=False)
        if result.plan is None or _price(best) < _price(result) * (1.0 - ROUNDING_FRACTION):
            assembly, result = next((a, other) for _, a, other in others if other is best)
            # Proven for fewer offers, so all that is known of the whole is the lower of both bounds.
            bound = min(best.bound or 0.0, first.bound or 0.0)
            gap = gap_between(_price(best), bound)
            result = replace(best, outcome="feasible", status="time_limit", bound=bound, gap_fraction=gap)
            assembly = replace(assembly, problem=replace(assembly.problem, offers=standing.assembly.problem.offers))
        standing = Standing(planning, assembly, result, standing.rounds + rounds, learnt)
    return replace(standing, alternatives=alternatives(planning, standing.result, others))


def _price(result: FleetResult) -> float:
    return math.inf if result.usd_per_hour is None else result.usd_per_hour


def screened(planning: PlanningInput, workload: Workload, memo: SpaceMemo) -> Screened:
    """One workload's candidates with the capacities that its targets leave them."""
    space = space_of(planning, workload, memo)

    def screen_one(stream: Workload) -> Screened:
        return screen(stream, space, margins(stream, space, planning.corrections), power_matters=planning.power_matters)

    return screen_classes(workload, screen_one) if workload.classes else screen_one(workload)


def check(assembly: Assembly, result: FleetResult) -> None:
    """Raises VerificationError where the independent checker refuses the plan."""
    problems = verify(assembly.problem, result)
    if problems:
        raise VerificationError("; ".join(problems[:5]))


def explained(standing: Standing, memo: SpaceMemo, observe: Observer = unobserved) -> Recommendation:
    """The answer of a request that is solved: entries, alternatives, binding limits, or why there is no plan."""
    observe(progress("explaining", standing.result))
    planning, assembly, result = standing.planning, standing.assembly, standing.result
    confirmations, rounds = standing.confirmations, standing.rounds
    rejected = [reason for one in assembly.screened for reason in rejections(one)]
    if result.plan is None:
        refused = infeasible(planning, assembly, result, rejected, confirmations, rounds)
        if wants_pools(planning):
            refused = with_pools(planning, assembly, confirmations, refused)
            if refused.entries:
                return refused
        return refused if planning.on_shortage == "refuse" else shortened(planning, assembly, confirmations, refused)
    entries = tuple(with_estimate(planning, entry) for entry in plan_entries(planning, assembly, result.plan))
    binding = explain_plan(planning, assembly, result, confirmations) if planning.explain else ()
    found = Recommendation(
        confidence_premium_usd_per_hour=confidence_premium(planning, result, memo),
        solve=report(result, confirmations, rounds),
        entries=entries,
        nodes=result.plan.nodes_by_offer(),
        usd_per_hour=result.usd_per_hour or 0.0,
        power_w=result.power_w or 0.0,
        throughput_multiple=result.throughput_multiple,
        alternatives=alternatives(
            planning, result, without_each_device(planning, assembly, result, confirmations.copied())
        )
        if standing.alternatives is None
        else standing.alternatives,
        binding=binding,
        rejected=tuple(rejected),
        worst_losses=worst_losses(assembly, result.plan),
        splits=split_devices(assembly, result.plan),
    )
    return with_pools(planning, assembly, confirmations, found) if wants_pools(planning) else found


def shortened(
    planning: PlanningInput, assembly: Assembly, confirmations: Confirmations, refused: Recommendation
) -> Recommendation:
    """A plan for what can be served, by priority, with the reasons why not everything can; as ``refused`` if nothing."""
    confirmations = replace(confirmations, solver_seconds=0.0)
    cut = shed(planning, assembly, lambda changed: solve_confirmed(changed, planning, confirmations))
    if cut is None or cut.result.plan is None:
        return refused
    check(cut.assembly, cut.result)
    entries = plan_entries(planning, cut.assembly, cut.result.plan)
    return replace(
        refused,
        solve=report(cut.result, confirmations, cut.rounds),
        entries=tuple(with_estimate(planning, entry) for entry in entries),
        nodes=cut.result.plan.nodes_by_offer(),
        usd_per_hour=cut.result.usd_per_hour or 0.0,
        power_w=cut.result.power_w or 0.0,
        throughput_multiple=cut.result.throughput_multiple,
        worst_losses=worst_losses(cut.assembly, cut.result.plan),
        splits=split_devices(cut.assembly, cut.result.plan),
        shares=cut.shares,
    )


def worst_losses(assembly: Assembly, plan: Plan) -> tuple[Loss, ...]:
    """For each workload and kind of loss to be survived, the worst and what it leaves."""
    return tuple(
        Loss(assembly.screened[one.workload].workload.name, one.kind, one.lost, one.utilisation_fraction)
        for one in losses_of_plan(assembly.problem, plan)
    )


def confidence_premium(planning: PlanningInput, result: FleetResult, memo: SpaceMemo) -> float | None:
    """What meeting the targets with more than even odds adds to the price; None where nobody asked for that."""
    streams = [stream for workload in planning.workloads for stream in streams_of(workload)]
    if all(one.targets.confidence_fraction <= 0.5 for one in streams) or result.usd_per_hour is None:
        return None
    even = tuple(replace(with_confidence(w, 0.5), roles=("aggregated",)) for w in planning.workloads)
    plain = recommend(replace(planning, workloads=even, explain=False, alternatives=0), memo)
    return result.usd_per_hour - plain.usd_per_hour if plain.entries else None


def space_of(planning: PlanningInput, workload: Workload, memo: SpaceMemo) -> SearchSpace:
    """The search space of a workload's model at its context and formats, from the memo where it is known."""
    settings = engine_settings(planning.engine, workload)
    partitions = planning.limits.partitions
    formats = (workload.weight_formats, workload.kv_cache_formats)
    key = (planning.catalog_key, workload.llm_id, *formats, settings, partitions)
    space = memo.get(key)
    if space is None:
        space = memo[key] = build_space(
            planning.shapes[workload.llm_id],
            planning.nodes,
            planning.priors,
            workload.weight_formats,
            workload.kv_cache_formats,
            settings,
            partitions,
        )
    return space


def engine_settings(engine: EngineSettings, workload: Workload) -> EngineSettings:
    """Engine settings with the workload's context as the longest request."""
    return replace(engine, max_context_tokens=workload.context_tokens)


def without_each_device(
    planning: PlanningInput, assembly: Assembly, result: FleetResult, confirmations: Confirmations
) -> list[tuple[str, Assembly, FleetResult]]:
    """The cheapest confirmed plans without each device of the optimum, dearest device first; ``confirmations`` learn."""
    found = []
    for device in devices_used(assembly.problem, result)[: planning.alternatives]:
        without = replace(assembly, problem=without_device(assembly.problem, device))
        with suppress(NoPlanInTimeError):  # not known is not the same as none
            changed, other, _ = solve_confirmed(without, planning, confirmations, among_all=False)
            found.append((f"cheapest without {device}", changed, other))
    return found


def alternatives(
    planning: PlanningInput, result: FleetResult, others: Sequence[tuple[str, Assembly, FleetResult]]
) -> tuple[Alternative, ...]:
    """What each of these plans costs beyond the one that is recommended."""
    return tuple(
        Alternative(why, None, ())
        if other.plan is None or other.usd_per_hour is None
        else Alternative(
            why, other.usd_per_hour - (result.usd_per_hour or 0.0), plan_entries(planning, changed, other.plan)
        )
        for why, changed, other in others
    )


def infeasible(
    planning: PlanningInput,
    assembly: Assembly,
    result: FleetResult,
    rejected: Sequence[Rejection],
    confirmations: Confirmations,
    rounds: int,
) -> Recommendation:
    """No plan: what conflicts, what relaxing each limit alone would cost, and the most that can be served."""
    why = explain_infeasible(planning, assembly, confirmations)
    brief = replace(planning, time_limit_s=planning.time_limit_s * EXPLANATION_TIME_FRACTION)

    def in_time(changed: Assembly, known: Confirmations) -> FleetResult | None:
        try:
            return solve_confirmed(changed, brief, known)[1]
        except NoPlanInTimeError:
            return None

    relaxations = confirmed_targets(
        planning, assembly, why.relaxations, lambda relaxed: in_time(relaxed, Confirmations())
    )
    multiple = confirmed_multiple(
        assembly,
        why.largest_servable_multiple,
        lambda other: in_time(other, replace(confirmations, solver_seconds=0.0)),
    )
    return Recommendation(
        solve=report(result, confirmations, rounds),
        entries=(),
        nodes={},
        usd_per_hour=0.0,
        power_w=0.0,
        throughput_multiple=None,
        alternatives=(),
        binding=(),
        rejected=tuple(rejected),
        conflicts=why.conflicts,
        relaxations=tuple(served_share(one, multiple) for one in relaxations),
        largest_servable_multiple=multiple,
    )


__all__ = ["Screened", "SpaceMemo", "Standing", "VerificationError", "explained", "recommend", "stand"]
