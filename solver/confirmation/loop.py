"""Solve over what replicas can at most carry, simulate what was chosen, and solve again until the plan is true.

The optimiser believes of every replica as much as is not ruled out (``capacities``), so what it finds is no dearer than the best true
plan; where the replicas it chose hold what it asks of them, that plan is the best true one (docs/decisions/0029). Where they do not,
simulation lowers what is believed of them. When time is up, the best plan of what has been seen to hold is the answer, and the newest
optimum is its bound.

A search is a machine of few states: ``SearchStage``, with a total map ``NEXT`` of what each round leads to.
"""

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum

from solver.confirmation.apart import best_apart, is_better
from solver.confirmation.brackets import Brackets
from solver.confirmation.capacities import EveryCapacity
from solver.confirmation.confirmations import Confirmations
from solver.confirmation.exchanges import Exchanges
from solver.confirmation.fewer_processes import behind_fewer_processes
from solver.confirmation.mix_capacities import MOST_MIX_ROUNDS, Mixes
from solver.confirmation.mixes import mixed_workloads
from solver.confirmation.rivals import simulate_rivals
from solver.confirmation.sharing import look_at_sharing
from solver.confirmation.watch import Watch
from solver.errors import NoPlanInTimeError
from solver.fleet import FleetProblem, FleetResult, SolveOptions, solve_fleet
from solver.fleet.decomposition.by_place import parts_by_place
from solver.fleet.decomposition.whole_nodes import is_least
from solver.fleet.plan import PROVEN_GAP_FRACTION, gap_between
from solver.fleet.reach import within_reach
from solver.outcome import Outcome, Status, status_of_plan
from solver.planning.assemble import Assembly, exceeds_default, with_default_limits
from solver.planning.placements import placements
from solver.planning.types import Observer, PlanningInput, SearchProgress, unobserved

PATIENT_ROUNDS = 12
"""Rounds after which mixes of traffic classes that nobody has simulated are no longer planned with."""
UNCONFIRMED_SHARE_FRACTION = 0.25
"""Of what is left of the time: what one solve may take while no plan of the search has held in simulation."""
CHALLENGED_SHARE_FRACTION = 0.5
"""The same where a plan is known that holds, and only a cheaper one would be simulated."""
LEAST_SOLVE_FRACTION = 0.02
"""Share of the time limit that the last solve gets where the others have used it up."""
LOOKING_TIME_FRACTION = 0.5
"""Of what is left of the time: what looks at candidates for shared nodes may take before the first plan of what they leave."""
DRAFT_GAP_FRACTION = 0.03
"""Gap to which plans of several workloads are solved until one is known that holds in simulation; a proof is only worth its time
once there is one to beat."""


class SearchStage(StrEnum):
    """Where a search is."""

    DRAFT = "draft"
    """No plan is known to hold: they are solved roughly where several workloads make a proof dear."""
    PROOF = "proof"
    """One is, or what is known makes the first plan likely to: they are solved as closely as was asked."""
    HELD = "held"
    """Ended: the newest plan holds."""
    NO_PLAN = "no_plan"
    """Ended: not even what replicas can at most carry admits a plan."""
    OUT_OF_TIME = "out_of_time"
    """Ended: the best plan of what has been seen to hold is the answer."""


class RoundOutcome(StrEnum):
    """What came of solving once."""

    INFEASIBLE = "infeasible"
    BEYOND_DEFAULT = "beyond_default"
    """The plan takes more of an offer than its seller is believed to have."""
    LEARNT = "learnt"
    """What could be cheapest was simulated before any plan counts."""
    FAILS = "fails"
    """Some replica of the plan does not hold."""
    FAILS_LAST = "fails_last"
    """The same, and there is no time, or no round, for another plan."""
    HOLDS = "holds"
    """All do; the plan is not proven to the gap asked."""
    HOLDS_AS_BEST = "holds_as_best"
    """All do, and nothing better is to be found: it is proven, or there is no time to."""


OPEN_STAGES = (SearchStage.DRAFT, SearchStage.PROOF)
NEXT: dict[tuple[SearchStage, RoundOutcome], SearchStage] = {
    (SearchStage.DRAFT, RoundOutcome.INFEASIBLE): SearchStage.NO_PLAN,
    (SearchStage.DRAFT, RoundOutcome.BEYOND_DEFAULT): SearchStage.DRAFT,
    (SearchStage.DRAFT, RoundOutcome.LEARNT): SearchStage.DRAFT,
    (SearchStage.DRAFT, RoundOutcome.FAILS): SearchStage.DRAFT,
    (SearchStage.DRAFT, RoundOutcome.FAILS_LAST): SearchStage.OUT_OF_TIME,
    (SearchStage.DRAFT, RoundOutcome.HOLDS): SearchStage.PROOF,
    (SearchStage.DRAFT, RoundOutcome.HOLDS_AS_BEST): SearchStage.HELD,
    (SearchStage.PROOF, RoundOutcome.INFEASIBLE): SearchStage.NO_PLAN,
    (SearchStage.PROOF, RoundOutcome.BEYOND_DEFAULT): SearchStage.PROOF,
    (SearchStage.PROOF, RoundOutcome.LEARNT): SearchStage.PROOF,
    (SearchStage.PROOF, RoundOutcome.FAILS): SearchStage.PROOF,
    (SearchStage.PROOF, RoundOutcome.FAILS_LAST): SearchStage.OUT_OF_TIME,
    (SearchStage.PROOF, RoundOutcome.HOLDS): SearchStage.HELD,
    (SearchStage.PROOF, RoundOutcome.HOLDS_AS_BEST): SearchStage.HELD,
}
"""What a round leads to."""


def solve_confirmed(
    assembly: Assembly,
    planning: PlanningInput,
    confirmations: Confirmations,
    observe: Observer = unobserved,
    *,
    draft_first: bool = True,
    known: FleetResult | None = None,
    least_known: FleetResult | None = None,
    settles: bool = True,
    parts_classes: bool = False,
) -> tuple[Assembly, FleetResult, int]:
    """The best plan whose replicas all hold in simulation, with what is proven about it, and rounds.

    Offers without a limit get the default one as soon as a plan goes beyond it. draft_first: off where most is known already, so
    that the first plan is likely to hold. known: a plan that holds, of the same deployments by their keys, to be beaten.
    least_known: an answer whose plan holds and is one of this problem's too, by machines if not by keys, where cost is minimised:
    dearer ones are not looked at, and where none is cheaper it is the answer. Returns the problem with the capacities that the plan
    was made for, those of the chosen replicas found out exactly where it ``settles``. parts_classes: whether any plan will do where
    there was no time for mixes of traffic classes, one without them too. Raises NoPlanInTimeError.
    """
    stage = SearchStage.DRAFT if draft_first else SearchStage.PROOF
    search = Search(assembly, planning, confirmations, observe, stage, known, least_known, parts_classes=parts_classes)
    search.run()
    return search.answer(settles=settles)


def settled_plan(
    assembly: Assembly, planning: PlanningInput, confirmations: Confirmations, result: FleetResult
) -> tuple[Assembly, FleetResult]:
    """A plan that was searched for without settling, and its problem, as ``solve_confirmed`` returns them where it does."""
    brackets = Brackets(assembly.screened, confirmations.facts)
    capacities = capacities_of(assembly, confirmations, brackets)
    settled = _settled(assembly, result, capacities, Watch(planning, confirmations).in_time)
    confirmations.simulations += brackets.simulations
    return settled


def _settled(
    assembly: Assembly, result: FleetResult, capacities: EveryCapacity, in_time: Callable[[], bool]
) -> tuple[Assembly, FleetResult]:
    result = behind_fewer_processes(assembly, result, capacities, in_time)
    return with_settled_capacities(assembly, result, capacities, in_time), result


class Search:
    """One search, from its first solve to its answer.

    ``rounds``: solved so far. ``bound``: what no plan can be better than, as far as any round has shown. ``current``, ``result``: the
    problem of the newest round and what came of it. ``known``: the plan to beat.
    """

    def __init__(
        self,
        assembly: Assembly,
        planning: PlanningInput,
        confirmations: Confirmations,
        observe: Observer,
        stage: SearchStage,
        known: FleetResult | None,
        least_known: FleetResult | None,
        *,
        parts_classes: bool = False,
    ) -> None:
        self.assembly, self.planning, self.confirmations, self.observe = assembly, planning, confirmations, observe
        self.stage, self.known, self.given, self.least_known = stage, known, known, least_known
        self.most_usd_per_hour = None if least_known is None else least_known.usd_per_hour
        self.parts_classes = parts_classes
        self.watch = Watch(planning, confirmations)
        self.brackets = Brackets(assembly.screened, confirmations.facts)
        self.capacities = capacities_of(assembly, confirmations, self.brackets)
        self.rounds = 0
        self.bound: float | None = None
        self.current = assembly
        self.result: FleetResult
        self.is_one_class = sum(len(one.classes) for one in planning.workloads) == 1
        self.is_mixed = any(one.is_mixed for one in planning.workloads)
        self.shares_nodes = not self.is_one_class and planning.objective == "cost" and not self.is_mixed

    def run(self) -> None:
        """Solve and simulate until the search has ended."""
        self.observe(SearchProgress("solving"))
        while self.stage in OPEN_STAGES:
            outcome = self.round()
            reached = NEXT[self.stage, outcome]
            if (self.stage, reached) == (SearchStage.DRAFT, SearchStage.PROOF):
                self.known = self.result if self.shares_nodes else self.given
            self.stage = reached

    def round(self) -> RoundOutcome:
        """Solve once over what is believed, and find out whether the plan is true."""
        self.rounds += 1
        if self.rounds == PATIENT_ROUNDS:
            self.capacities.be_pessimistic()
        self.current = self.capacities.assumed(self.assembly)
        if self.rounds == 1 and self.most_usd_per_hour is not None and not self.shares_nodes:
            simulate_rivals(self.current, self.brackets, self.watch.in_time, self.most_usd_per_hour)
            self.current = self.brackets.assumed(self.current)
        problem, most = self.in_reach(), self.most_usd_per_hour
        if self.least_known is not None and most is not None and is_least(problem, most):
            self.result, self.bound = self.least_known, most
            return RoundOutcome.HOLDS_AS_BEST
        self.result = self.solve(problem)
        if self.least_known is not None and self.is_nothing_cheaper():
            is_sure = self.capacities.known_by_candidate or self.stage is SearchStage.PROOF
            is_sure = is_sure or self.result.outcome is not Outcome.FEASIBLE
            self.result, self.bound = self.least_known, most
            return RoundOutcome.HOLDS_AS_BEST if is_sure else RoundOutcome.HOLDS
        if self.result.outcome is Outcome.INFEASIBLE:
            return RoundOutcome.INFEASIBLE
        if self.exceeds_default(self.result):
            self.assembly = with_default_limits(self.planning, self.assembly)
            return RoundOutcome.BEYOND_DEFAULT
        self.bound = _tighter(self.bound, self.result.bound, self.planning.objective == "throughput")
        if self.rounds == 1 and self.look_at_rivals():
            return RoundOutcome.LEARNT
        self.observe(self.progress("confirming"))
        holds = self.holds()
        self.observe(self.progress("solving"))
        if holds:
            is_best = self.result.outcome is Outcome.OPTIMAL or not self.watch.in_time()
            return RoundOutcome.HOLDS_AS_BEST if is_best else RoundOutcome.HOLDS
        is_last = not self.watch.in_time() or (self.rounds >= self.capacities.most_rounds and self.something_holds())
        return RoundOutcome.FAILS_LAST if is_last else RoundOutcome.FAILS

    def is_nothing_cheaper(self) -> bool:
        """Does the newest solve leave nothing to look at beside the answer that is known? Where what is believed bounds what is true, that
        is for its bound to say: the known plan may have more replicas than this problem admits."""
        if self.most_usd_per_hour is None:
            return False
        if self.capacities.known_by_candidate:
            bound = self.result.bound
            return bound is not None and bound >= self.most_usd_per_hour * (1.0 - PROVEN_GAP_FRACTION)
        found = self.result.usd_per_hour
        if found is None:
            return self.result.outcome is Outcome.INFEASIBLE
        return found >= self.most_usd_per_hour * (1.0 - PROVEN_GAP_FRACTION)

    def progress(self, stage: str) -> SearchProgress:
        """How far the newest plan is, with a bound where the search's is one: what is found of a mix says little of another."""
        found = progress(stage, self.result)
        return found if self.capacities.known_by_candidate else replace(found, bound=None, gap_fraction=None)

    def something_holds(self) -> bool:
        """Is there a plan of what simulation has seen to hold? Without one there is nothing to give the search up for."""
        try:
            self.best_believed()
        except NoPlanInTimeError:
            return False
        return True

    def in_reach(self) -> FleetProblem:
        """What is believed, as far as a plan worth finding may contain it."""
        asked, most = self.current.problem, self.most_usd_per_hour
        return asked if most is None else within_reach(asked, most)

    def solve(self, problem: FleetProblem) -> FleetResult:
        """The best plan over what is believed, as closely as its stage asks."""
        result = solve_fleet(problem, self.options(), self.known, self.confirmations.facts.parts)
        self.watch.solved(result.solver_seconds)
        return result

    def options(self) -> SolveOptions:
        """What is left of the time limit, for a proof or a draft; after its end drafts only, each in a moment.

        Until its plan has held in simulation no solve may take all of it: what it proves may be of replicas that do not hold.
        """
        is_final, left_s, planning = self.stage is SearchStage.PROOF, self.watch.left_s(), self.planning
        proves = (is_final or self.is_one_class or self.known is not None) and left_s > 0.0
        gap = planning.gap_fraction if proves else max(planning.gap_fraction, DRAFT_GAP_FRACTION)
        share = UNCONFIRMED_SHARE_FRACTION if self.known is None else CHALLENGED_SHARE_FRACTION
        share_s = left_s if is_final else left_s * share
        return SolveOptions(time_limit_s=max(share_s, LEAST_SOLVE_FRACTION * planning.time_limit_s), gap_fraction=gap)

    def look_at_rivals(self) -> bool:
        """Simulate what no bound rules out before the first plan counts; was there something to learn, and is there time to use it?"""
        if self.most_usd_per_hour is not None and not self.shares_nodes:
            return False
        before = self.brackets.learnt
        simulate_rivals(self.current, self.brackets, self.watch.in_time)
        if self.shares_nodes and self.known is None:
            self.known = self.best_that_holds()
            self.look_at_sharing()
        return self.brackets.learnt > before and self.watch.in_time()

    def best_that_holds(self) -> FleetResult | None:
        """The best plan of replicas that simulation has seen to hold, as the one to beat; None where there is none, or one that
        goes beyond what any seller is believed to have."""
        if not self.watch.in_time():
            return None
        confirmed = self.brackets.confirmed(self.current).problem
        limit_s = LEAST_SOLVE_FRACTION * self.planning.time_limit_s
        found = solve_fleet(confirmed, SolveOptions(limit_s, DRAFT_GAP_FRACTION), parts=self.confirmations.facts.parts)
        self.watch.solved(found.solver_seconds)
        return None if found.plan is None or self.exceeds_default(found) else found

    def look_at_sharing(self) -> None:
        """Look at candidates that a cheaper plan of several workloads on shared nodes may well contain.

        Only where plans take long to tell apart: of workloads each in one place they do not, and the next plan says itself what to
        simulate.
        """
        if parts_by_place(self.current.problem):
            return
        if self.known is not None and self.known.usd_per_hour is not None:
            until_s = (1.0 - LOOKING_TIME_FRACTION) * self.watch.left_s()

            def in_time() -> bool:
                return self.watch.left_s() > until_s

            look_at_sharing(self.current, self.brackets, self.known.usd_per_hour, in_time)

    def holds(self) -> bool:
        """Do all replicas of the newest plan hold what is asked of them? False, too, where there is no plan, or no time to know."""
        if self.result.plan is None:
            return False
        return self.capacities.hold(self.current, placements(self.current, self.result.plan), self.watch.in_time)

    def exceeds_default(self, result: FleetResult) -> bool:
        """Does a plan take more of an offer without a limit than its seller is believed to have?"""
        return result.plan is not None and exceeds_default(result.plan, self.current, self.planning.default_max_nodes)

    def answer(self, *, settles: bool) -> tuple[Assembly, FleetResult, int]:
        """The problem with the capacities in force, its plan, and rounds. Raises NoPlanInTimeError."""
        self.confirmations.simulations += self.brackets.simulations
        match self.stage:
            case SearchStage.HELD:
                own = self.result is not self.least_known  # another problem's plan names that one's deployments
                if self.result.outcome is Outcome.FEASIBLE:  # an earlier round may have shown more
                    self.result = with_bound(self.result, self.bound, self.planning.gap_fraction)
                if settles and own:
                    self.current, self.result = _settled(self.current, self.result, self.capacities, self.watch.in_time)
            case SearchStage.NO_PLAN:
                self.current = with_default_limits(self.planning, self.current)
            case _:
                self.current, self.result = self.best_confirmed()
        return self.current, self.result, self.rounds

    def best_confirmed(self) -> tuple[Assembly, FleetResult]:
        """The best plan of what simulation has seen to hold, where there was no time for more. Raises NoPlanInTimeError.

        A plan without mixes comes first: it takes no luck to find, and mixes are tried in what time there is beside it.
        """
        apart = None
        if self.parts_classes and self.is_mixed and self.bound is not None:
            apart = best_apart(self.assembly, self.planning, self.capacities, self.solve_in_a_moment)
        try:
            return self.best_believed(None if apart is None else apart[1])
        except NoPlanInTimeError:
            if apart is None:
                raise
        found = with_bound(apart[1], self.bound, self.planning.gap_fraction)
        if found.status is Status.PROVEN_OPTIMAL:  # by what is believed of mixes, which no search has ended for
            found = replace(found, outcome=Outcome.FEASIBLE, status=Status.TIME_LIMIT)
        return apart[0], found

    def solve_in_a_moment(self, problem: FleetProblem) -> FleetResult:
        """About the best plan over what is given."""
        result = solve_fleet(problem, self.least_options(), parts=self.confirmations.facts.parts)
        self.watch.solved(result.solver_seconds)
        return result

    def least_options(self) -> SolveOptions:
        """Of a solve that is to take a moment."""
        gap = max(self.planning.gap_fraction, DRAFT_GAP_FRACTION)
        return SolveOptions(LEAST_SOLVE_FRACTION * self.planning.time_limit_s, gap)

    def best_believed(self, to_beat: FleetResult | None = None) -> tuple[Assembly, FleetResult]:
        """The best plan, mixes among it, that is believed of what was simulated, and holds. Raises NoPlanInTimeError where there is
        none, or none better than one that is known."""
        planning = self.planning
        self.capacities.be_pessimistic()
        self.current = self.capacities.confirmed(self.assembly)
        for _ in range(MOST_MIX_ROUNDS):
            if self.watch.is_long_over():
                break
            result = solve_fleet(self.current.problem, self.least_options(), self.known, self.confirmations.facts.parts)
            if result.plan is None or not (to_beat is None or is_better(result, to_beat, of=self.current.problem)):
                raise NoPlanInTimeError(planning.time_limit_s)
            if self.exceeds_default(result):
                self.current = with_default_limits(planning, self.current)
            elif self.capacities.hold_confirmed(self.current, placements(self.current, result.plan)):
                return self.current, with_bound(result, self.bound, planning.gap_fraction)
            else:
                self.current = self.capacities.confirmed(self.assembly)
        raise NoPlanInTimeError(planning.time_limit_s)


def capacities_of(assembly: Assembly, confirmations: Confirmations, brackets: Brackets | None = None) -> EveryCapacity:
    """What replicas of an assembly's candidates sustain, of as many kinds as there are among them."""
    mixes = [Mixes(confirmations, assembly.screened)] if mixed_workloads(assembly.screened) else []
    apart = assembly.problem.deployments.role is not None
    nodes = {offer.id: offer.node for offer in assembly.offers}
    return EveryCapacity(
        [
            *mixes,
            brackets or Brackets(assembly.screened, confirmations.facts),
            *([Exchanges(confirmations, nodes)] if apart else []),
        ]
    )


def _tighter(one: float | None, other: float | None, larger_is_better: bool) -> float | None:
    """The better of two bounds on the same optimum."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other) if larger_is_better else max(one, other)


def with_bound(result: FleetResult, bound: float | None, gap_asked: float) -> FleetResult:
    """A plan with a bound that was found on a wider problem; None is no bound."""
    assert result.objective is not None
    if bound is None:
        return replace(result, outcome=Outcome.FEASIBLE, status=Status.TIME_LIMIT, bound=None, gap_fraction=None)
    gap = gap_between(result.objective, bound)
    status = status_of_plan(gap, gap_asked, PROVEN_GAP_FRACTION)
    if status is Status.PROVEN_OPTIMAL:
        return replace(result, outcome=Outcome.OPTIMAL, status=status, bound=result.objective, gap_fraction=0.0)
    return replace(result, outcome=Outcome.FEASIBLE, status=status, bound=bound, gap_fraction=gap)


def progress(stage: str, result: FleetResult) -> SearchProgress:
    """What the newest solve says about the plan that is searched."""
    return SearchProgress(stage, result.usd_per_hour, result.bound, result.gap_fraction)


def with_settled_capacities(
    assembly: Assembly, result: FleetResult, capacities: EveryCapacity, in_time: Callable[[], bool]
) -> Assembly:
    """The problem with what the chosen replicas sustain, no more and no less, as far as there is time to find out."""
    assert result.plan is not None
    capacity = assembly.problem.deployments.capacity_requests_per_s.copy()
    capacities.settle_plan(assembly, placements(assembly, result.plan), capacity, in_time)
    return assembly.with_capacity(capacity)
