"""Workloads in, plan out: screen, assemble, solve, confirm by simulation, verify, explain."""

import math
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from solver.candidates.more_servers import is_enough_of_all, with_more_servers
from solver.candidates.rejections import Rejection, rejections
from solver.candidates.screening import Screened, screen
from solver.candidates.space import SearchSpace
from solver.candidates.tabulated import build_space
from solver.confirmation.alone import learn_alone
from solver.confirmation.confirmations import Confirmations
from solver.confirmation.loop import progress, solve_confirmed
from solver.deployment.platforms import DiskCache
from solver.errors import NoPlanInTimeError, VerificationError
from solver.explain.binding import binding_limits
from solver.explain.freed import lower_precision
from solver.explain.infeasible import explain_infeasible
from solver.explain.resolver import Resolver
from solver.explain.sourcing import sourcing_changes
from solver.fleet import FleetResult, Plan
from solver.fleet.groups.losses import losses_of_plan
from solver.fleet.plan import gap_between
from solver.llm_shape import LlmShape
from solver.outcome import Outcome, Status
from solver.planning.assemble import Assembly, assemble, with_most_copies, within_default_where_needed
from solver.planning.placements import entries_of_units, machines_of, plan_entries, split_devices
from solver.planning.types import (
    Alternative,
    Binding,
    Freed,
    Loss,
    Observer,
    PlanningInput,
    PoolsReport,
    Question,
    Recommendation,
    SearchProgress,
    SourcingChange,
    unobserved,
)
from solver.recommend.alternatives import (
    alternatives,
    confidence_premium,
    without_disk_cache,
    without_drafting,
    without_each_device,
    without_host_cache,
)
from solver.recommend.classes_alone import bound_of_every_mix, proven_of_mixes
from solver.recommend.exchanges import (
    PoolSearch,
    alternative_with,
    alternative_without,
    checked,
    forced,
    not_considered,
    solve_exchanges,
)
from solver.recommend.predicted_lines import with_estimates
from solver.recommend.shedding import shed
from solver.recommend.solve_report import check, report
from solver.recommend.spread import SpreadProblem, is_open, solve_spread
from solver.workload import EngineSettings, Workload

ROUNDING_FRACTION = 1e-6
"""Of a price: what two proofs may differ by."""

Answer = TypeVar("Answer")
SpaceMemo = MutableMapping[tuple[object, ...], SearchSpace]


@dataclass(frozen=True, slots=True)
class SolvedRequest:
    """A request as it was solved: what every question about its answer starts from.

    planning: as it was searched: without roles that were not looked for, or that were no better. assembly: with the capacities in
    force at the end. alternatives: None where they were not looked for yet. pools: what came of prefill and decode apart, None where
    no workload admits them.
    """

    planning: PlanningInput
    assembly: Assembly
    result: FleetResult
    rounds: int
    confirmations: Confirmations
    alternatives: tuple[Alternative, ...] | None = None
    pools: PoolSearch | None = None
    bound_of_every_mix: float | None = None
    """Of workloads with several traffic classes: what no objective is better than, whatever replicas sustain of mixes."""

    @property
    def proven(self) -> FleetResult:
        """The result with what is proven of it. ``result`` is the search's own: what alternatives and explanations are compared with,
        which are searched for alike."""
        return proven_of_mixes(self.result, self.bound_of_every_mix, self.planning)


def recommend(planning: PlanningInput, memo: SpaceMemo, observe: Observer = unobserved) -> Recommendation:
    """The proven-cheapest plan for all workloads together, or the reasons why there is none.

    memo keeps search spaces between calls with the same catalog_key. observe is told how far the search is.
    Raises InvalidInputError for workloads no catalog row can describe, NoPlanInTimeError and SolverFailedError where
    there is no answer, and VerificationError on a defect.
    """
    return explained(solve_request(planning, memo, observe), memo, observe)


def solve_request(planning: PlanningInput, memo: SpaceMemo, observe: Observer = unobserved) -> SolvedRequest:
    """Screen, assemble, solve and confirm; raises as ``recommend`` does."""
    if any(is_open(workload) for workload in planning.workloads):
        return solve_spread(planning, lambda problem: _solve_stated(problem, memo, observe))
    return _solve_stated(SpreadProblem(planning, (), (), ()), memo, observe)


def _solve_stated(problem: SpreadProblem, memo: SpaceMemo, observe: Observer) -> SolvedRequest:
    """``solve_request`` where among how many replicas turns are spread is stated."""
    planning = problem.planning
    began = planning.clock()
    observe(SearchProgress("screening"))
    asked, planning = planning, checked(planning)
    every: list[Screened] = []
    for number, workload in enumerate(planning.workloads):
        every.append(problem.screened(number, workload, lambda one: screened(planning, one, memo)))
        if planning.clock() - began > planning.time_limit_s:
            raise NoPlanInTimeError(planning.time_limit_s)
    if problem.at_most:
        every = [one.with_at_most(rates) for one, rates in zip(every, problem.at_most, strict=True)]
    confirmations = Confirmations(spent_s=planning.clock() - began)
    problem.rule_out_others(every, confirmations.facts)
    if not planning.exchanges_caches:
        solved_request = _solved(planning, every, confirmations, observe, problem)
        if asked.exchanges_caches:
            refused = PoolsReport(chosen=False, reason=not_considered(asked))
            solved_request = replace(solved_request, pools=PoolSearch(refused))
    else:
        solved_request = _solved_with_pools(planning, every, confirmations, observe)
    if solved_request.result.plan is not None and not problem.is_known(solved_request.result):
        check(solved_request.assembly, solved_request.result)
    return solved_request


def _solved_with_pools(
    planning: PlanningInput, every: Sequence[Screened], confirmations: Confirmations, observe: Observer
) -> SolvedRequest:
    """The best plan of replicas that do both, or a better one in which some prefill and others decode."""
    first, without = None, None
    if not forced(planning):
        first = _solved(planning.without_exchanges(), every, confirmations, observe)
        confirmations, without = first.confirmations, (first.assembly, first.result)
    search, solved = solve_exchanges(planning, every, without, confirmations, observe)
    if solved is None:
        assert first is not None
        return replace(first, pools=search)
    assembly, result, rounds = solved
    rounds += first.rounds if first is not None else 0
    return SolvedRequest(planning, assembly, result, rounds, confirmations, pools=search)


def _solved(
    planning: PlanningInput,
    every: Sequence[Screened],
    confirmations: Confirmations,
    observe: Observer,
    spread: SpreadProblem | None = None,
) -> SolvedRequest:
    assembly = assemble(planning, every)
    if spread is not None and spread.spreads:
        assembly = with_most_copies(assembly, spread.most_copies, spread.spreads)
    assembly = within_default_where_needed(planning, assembly)
    alone = learn_alone(planning, assembly, confirmations, solve_confirmed)
    least, settles = (None, True) if spread is None else (spread.least_known, not spread.spreads)
    solved = solve_confirmed(
        assembly, planning, confirmations, observe, least_known=least, settles=settles, parts_classes=True
    )
    solved_request = SolvedRequest(planning, *solved, confirmations)
    if not alone:
        return solved_request
    bound = bound_of_every_mix(planning, assembly, alone, confirmations)
    return replace(bettered(solved_request, observe), bound_of_every_mix=bound)


def bettered(solved_request: SolvedRequest, observe: Observer) -> SolvedRequest:
    """The plan with its alternatives, or a cheaper one that looking for those has led to.

    What simulation says of one mix is held against like ones, so a plan without a device can turn out cheaper than the
    first with it: what was learnt on the way is then planned with once more, and the cheapest of all is the answer.
    """
    planning, first = solved_request.planning, solved_request.result
    if first.plan is None or not planning.alternatives or planning.objective != "cost":
        return solved_request
    learnt = solved_request.confirmations.copied()
    others = without_each_device(planning, solved_request.assembly, first, Resolver(planning, learnt, learns=True))
    best = min((other for _, _, other in others), key=_price, default=first)
    if _price(best) < _price(first) * (1.0 - ROUNDING_FRACTION):
        base = solved_request.assembly
        try:
            assembly, result, rounds = solve_confirmed(base, planning, learnt, observe, draft_first=False)
        except NoPlanInTimeError:  # there are two plans in hand
            assembly, result, rounds = base, first, 0
        if result.plan is None or _price(best) < _price(result) * (1.0 - ROUNDING_FRACTION):
            assembly, result = next((a, other) for _, a, other in others if other is best)
            # Proven for fewer offers, so all that is known of the whole is the lower of both bounds.
            bound = min(best.bound or 0.0, first.bound or 0.0)
            gap = gap_between(_price(best), bound)
            result = replace(best, outcome=Outcome.FEASIBLE, status=Status.TIME_LIMIT, bound=bound, gap_fraction=gap)
            assembly = replace(assembly, problem=replace(assembly.problem, offers=base.problem.offers))
        solved_request = SolvedRequest(planning, assembly, result, solved_request.rounds + rounds, learnt)
    return replace(solved_request, alternatives=alternatives(planning, solved_request.result, others))


def _price(result: FleetResult) -> float:
    return math.inf if result.usd_per_hour is None else result.usd_per_hour


def screened(planning: PlanningInput, workload: Workload, memo: SpaceMemo, *, offered: bool = False) -> Screened:
    """One workload's candidates with the capacities that its targets leave them. offered: on machines that are, at least."""
    space = space_of(planning, workload, memo)
    among = space.rows_on({offer.node.id for offer in planning.offers}) if offered else None
    power_matters, corrections = planning.power_matters, planning.corrections
    return screen(workload, space, power_matters=power_matters, corrections=corrections, among=among)


def explained(solved_request: SolvedRequest, memo: SpaceMemo, observe: Observer = unobserved) -> Recommendation:
    """The answer of a request that is solved: entries, alternatives, binding limits, or why there is no plan."""
    observe(progress("explaining", solved_request.proven))
    planning, assembly, result = solved_request.planning, solved_request.assembly, solved_request.result
    confirmations, rounds = solved_request.confirmations, solved_request.rounds
    # Of what could be bought: why anything else does not work is no answer to what was asked.
    offered = {offer.node.device.id for offer in planning.offers}
    rejected = [reason for one in assembly.screened for reason in rejections(one) if reason.device_id in offered]
    if result.plan is None:
        refused = infeasible(solved_request, rejected, memo)
        if solved_request.pools is not None:
            refused = replace(refused, pools=solved_request.pools.report)
        return refused if planning.on_shortage == "refuse" else shortened(planning, assembly, confirmations, refused)
    lines = plan_entries(planning, assembly, result.plan)
    resolver = Resolver(planning, confirmations)
    unsettled: list[Question] = []

    def settled(question: Question, answer: Callable[[], Answer]) -> Answer:
        before = resolver.unanswered
        found = answer()
        if resolver.unanswered > before and question not in unsettled:
            unsettled.append(question)
        return found

    entries = settled("predictions", lambda: with_estimates(planning, lines, resolver.may_predict))
    others = solved_request.alternatives
    search = solved_request.pools
    if others is None:
        fewer = planning
        if search is not None and search.without is not None and planning.alternatives:
            others = (alternative_without(planning, result, search.without),)
            fewer = replace(planning, alternatives=planning.alternatives - 1)
        each = settled("alternatives", lambda: without_each_device(fewer, assembly, result, resolver))
        others = (*(others or ()), *alternatives(planning, result, each))
    pools = None if search is None else search.report
    asked = None if search is None or search.report.chosen else search.asked
    if pools is not None and asked is not None and planning.alternatives:
        dearer = settled("alternatives", lambda: alternative_with(asked, assembly.screened, result, resolver))
        if dearer is not None:
            others = (*others, dearer)
            pools = replace(pools, extra_usd_per_hour=dearer.extra_usd_per_hour)
    if any(entry.configuration.speculation is not None for entry in entries):
        plain = settled("alternatives", lambda: without_drafting(planning, assembly, resolver))
        others += alternatives(planning, result, plain)
    if any(entry.configuration.engine.host_cache_bytes for entry in entries):
        bare = settled("alternatives", lambda: without_host_cache(planning, assembly, resolver))
        others += alternatives(planning, result, bare)
    if any(entry.configuration.engine.disk_cache_bytes for entry in entries):
        diskless = settled("alternatives", lambda: without_disk_cache(planning, assembly, resolver))
        others += alternatives(planning, result, diskless)
    binding: tuple[Binding, ...] = ()
    sourcing: tuple[SourcingChange, ...] = ()
    lower: Freed | None = None
    if planning.explain:
        binding = settled("binding", lambda: binding_limits(planning, assembly, result, resolver))
        sourcing = settled("sourcing", lambda: sourcing_changes(planning, assembly, result, resolver))
    if planning.explain and planning.lower_formats:
        lower = settled(
            "lower_precision",
            lambda: lower_precision(
                planning, lambda one: screened(planning, one, memo, offered=True), result, resolver
            ),
        )
    premium = settled("confidence", lambda: confidence_premium(planning, assembly, result, resolver))
    return Recommendation(
        confidence_premium_usd_per_hour=premium,
        solve=report(solved_request.proven, confirmations, rounds),
        entries=entries,
        nodes=machines_of(planning, result.plan),
        published=entries_of_units(planning, result.plan),
        usd_per_hour=result.usd_per_hour or 0.0,
        power_w=result.power_w or 0.0,
        throughput_multiple=result.throughput_multiple,
        alternatives=others,
        binding=binding,
        rejected=tuple(rejected),
        worst_losses=worst_losses(assembly, result.plan),
        splits=split_devices(assembly, result.plan),
        sourcing=sourcing,
        lower_precision=lower,
        unsettled=tuple(unsettled),
        pools=pools,
    )


def shortened(
    planning: PlanningInput, assembly: Assembly, confirmations: Confirmations, refused: Recommendation
) -> Recommendation:
    """A plan for what can be served, by priority, with the reasons why not everything can; as ``refused`` if nothing."""
    confirmations = replace(confirmations, spent_s=0.0)
    cut = shed(planning, assembly, lambda changed: solve_confirmed(changed, planning, confirmations))
    if cut is None or cut.result.plan is None:
        return refused
    check(cut.assembly, cut.result)
    entries = plan_entries(planning, cut.assembly, cut.result.plan)
    return replace(
        refused,
        solve=report(proven_of_mixes(cut.result, None, planning), confirmations, cut.rounds),
        entries=with_estimates(planning, entries),
        nodes=machines_of(planning, cut.result.plan),
        published=entries_of_units(planning, cut.result.plan),
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


def space_of(
    planning: PlanningInput, workload: Workload, memo: SpaceMemo, requests_per_s: float | None = None
) -> SearchSpace:
    """The search space of a workload's model at its context and formats, from the memo where it is known; with candidates behind more
    processes that answer where so many requests a second (None: as the workload states) may need them."""
    if planning.objective == "throughput":
        requests_per_s = math.inf
    elif requests_per_s is None:
        requests_per_s = workload.requests_per_s
    space = _asked_space_of(planning, workload, memo)
    return space if is_enough_of_all(space, workload, requests_per_s) else with_more_servers(space, planning.nodes)


def _asked_space_of(planning: PlanningInput, workload: Workload, memo: SpaceMemo) -> SearchSpace:
    """The same with as many processes as are asked."""
    settings = engine_settings(planning.engine, workload)
    partitions = planning.limits.partitions
    formats = (workload.weight_formats, workload.kv_cache_formats)
    shape = served_shape(planning.shapes[workload.llm_id], workload)
    # Only turns of sessions find what an earlier request left there.
    host_caches = () if workload.traffic.sessions is None else workload.host_caches_bytes
    disk = None
    if host_caches and workload.disk_cache_bytes:
        disk = DiskCache(workload.disk_cache_bytes, workload.disk_bytes_per_s)
    how = (
        workload.engines, workload.drafting, workload.adapters, workload.images, workload.guided_fraction,
        workload.token_ids_fraction, host_caches, disk,
    )  # fmt: skip
    key = (planning.catalog_key, workload.llm_id, *formats, settings, partitions, *how)
    space = memo.get(key)
    if space is None:
        space = memo[key] = build_space(
            shape,
            planning.nodes,
            planning.priors,
            workload.weight_formats,
            workload.kv_cache_formats,
            settings,
            partitions,
            workload.engines,
            workload.drafting,
            host_caches,
            disk,
        )
    return space


def served_shape(shape: LlmShape, workload: Workload) -> LlmShape:
    """The model as the workload serves it: with its adapters, over its images, held to its grammars."""
    if (
        workload.adapters is None
        and workload.images is None
        and not workload.guided_fraction
        and not workload.token_ids_fraction
    ):
        return shape
    return replace(
        shape,
        adapters=workload.adapters,
        images=workload.images,
        guided_fraction=workload.guided_fraction,
        token_ids_fraction=workload.token_ids_fraction,
    )


def engine_settings(engine: EngineSettings, workload: Workload) -> EngineSettings:
    """Engine settings with the workload's context as the longest request, and no more requests at once than its adapters have
    slots for."""
    most = engine.max_sequences
    if workload.adapters is not None:
        most = min(most, workload.adapters.most_sequences)
    return replace(engine, max_context_tokens=workload.context_tokens, max_sequences=most)


def infeasible(solved_request: SolvedRequest, rejected: Sequence[Rejection], memo: SpaceMemo) -> Recommendation:
    """No plan: whether fewer bits would give one, what conflicts, what relaxing each limit alone would cost, and the most that
    can be served."""
    planning = solved_request.planning
    resolver = Resolver(planning, solved_request.confirmations)
    unsettled: list[Question] = []
    lower = None
    if planning.explain and planning.lower_formats:
        result = solved_request.result
        lower = lower_precision(planning, lambda one: screened(planning, one, memo, offered=True), result, resolver)
        unsettled += ["lower_precision"] if resolver.unanswered else []
    before = resolver.unanswered
    why = explain_infeasible(planning, solved_request.assembly, resolver)
    unsettled += ["relaxations"] if resolver.unanswered > before else []
    return Recommendation(
        solve=report(solved_request.proven, solved_request.confirmations, solved_request.rounds),
        entries=(),
        nodes={},
        usd_per_hour=0.0,
        power_w=0.0,
        throughput_multiple=None,
        alternatives=(),
        binding=(),
        rejected=tuple(rejected),
        conflicts=why.conflicts,
        relaxations=why.relaxations,
        largest_servable_multiple=why.largest_servable_fraction,
        lower_precision=lower,
        unsettled=tuple(unsettled),
    )


__all__ = ["Screened", "SolvedRequest", "SpaceMemo", "VerificationError", "explained", "recommend", "solve_request"]
