"""Changed requests, solved to the same rules as the plan they are compared with: screened, simulated, confirmed."""

from dataclasses import replace

from solver.confirmation.alone import learn_alone
from solver.confirmation.brackets import Brackets
from solver.confirmation.confirmations import Confirmations
from solver.confirmation.loop import capacities_of, solve_confirmed, with_settled_capacities
from solver.confirmation.watch import Watch
from solver.errors import NoPlanInTimeError, SolverFailedError
from solver.fleet import FleetProblem, FleetResult
from solver.fleet.problem import MOST_NODES_PLACED
from solver.fleet.relaxations import is_unlimited
from solver.planning.assemble import Assembly
from solver.planning.types import PlanningInput

ONE_QUESTION_FRACTION = 0.5
"""Share of the time limit that one question may take."""
PREDICTING_FRACTION = 0.2
"""Of the time limit: what predicting the lines of a plan may take beyond it."""
ANY_PLAN_GAP_FRACTION = 0.99
"""Gap at which a question of feasibility is answered: any plan will do."""


class Resolver:
    """Answers questions about one request, all of them together within what is left of its time.

    What simulation finds is kept with the candidates, so questions that resemble each other cost little more than one.
    """

    def __init__(self, planning: PlanningInput, confirmations: Confirmations, *, learns: bool = False) -> None:
        """learns: what questions find of mixes of traffic classes is kept in ``confirmations``."""
        self._planning, self._known, self._learns = planning, confirmations, learns
        self._before_s, self._began_s, self._searched_s = confirmations.spent_s, planning.clock(), 0.0
        self.unanswered = 0
        """Questions that there was no time for."""

    @property
    def _spent_s(self) -> float:
        """Whatever it was spent on: what stands between two searches takes time as well."""
        return self._before_s + max(self._planning.clock() - self._began_s, self._searched_s)

    @property
    def left_s(self) -> float:
        """Of the request's time limit."""
        return max(0.0, self._planning.time_limit_s - self._spent_s)

    def may_predict(self, seconds: float) -> bool:
        """Is there time to predict another line of the plan, which takes so long? Counted as a question where there is none."""
        most_s = self._planning.time_limit_s * (1.0 + PREDICTING_FRACTION)
        if self._spent_s + seconds <= most_s:
            return True
        self.unanswered += 1
        return False

    def require_time(self) -> float:
        """Seconds left, more than none. Raises NoPlanInTimeError, and counts the question, where there is no time to answer it."""
        left_s = self.left_s
        if left_s <= 0.0:
            self.unanswered += 1
            raise NoPlanInTimeError(self._planning.time_limit_s)
        return left_s

    def best(
        self,
        assembly: Assembly,
        *,
        other_targets: bool = False,
        gap_fraction: float | None = None,
        freer_than: FleetResult | None = None,
    ) -> FleetResult:
        """The best confirmed plan of a changed problem.

        other_targets: what is known of mixes of traffic classes then holds no longer. freer_than: the result of a problem of which
        this one admits every plan. Raises NoPlanInTimeError.
        """
        return self.confirmed(assembly, other_targets=other_targets, gap_fraction=gap_fraction, freer_than=freer_than)[
            1
        ]

    def confirmed(
        self,
        assembly: Assembly,
        *,
        other_targets: bool = False,
        gap_fraction: float | None = None,
        freer_than: FleetResult | None = None,
    ) -> tuple[Assembly, FleetResult]:
        """The same with the problem whose capacities the plan was made for, as far as they are known (``settled``)."""
        left_s = self.require_time()
        known = self._known if self._learns else self._known.copied()
        if other_targets:
            known = Confirmations(facts=self._known.facts)
        if freer_than is not None:
            known.pessimistic = False  # of what was not allowed before nothing has been simulated
        known.spent_s = 0.0
        limit_s = min(left_s, ONE_QUESTION_FRACTION * self._planning.time_limit_s)
        gap = self._planning.gap_fraction if gap_fraction is None else gap_fraction
        brief = replace(self._planning, time_limit_s=limit_s, gap_fraction=gap, objective=assembly.problem.objective)
        known_by_candidate = capacities_of(assembly, known).known_by_candidate
        is_asked_for_less = freer_than is not None and freer_than.plan is not None and brief.objective == "cost"
        least = freer_than if is_asked_for_less else None
        try:
            if other_targets:
                learn_alone(brief, assembly, known, solve_confirmed, again=False)
            changed, result, _ = solve_confirmed(
                assembly,
                brief,
                known,
                draft_first=not known_by_candidate,
                least_known=least,
                settles=not known_by_candidate,
            )
        except NoPlanInTimeError:
            self.unanswered += 1
            raise
        except SolverFailedError as failed:
            # No answer to this question either, and none that the request's own answer may be lost for.
            self.unanswered += 1
            raise NoPlanInTimeError(self._planning.time_limit_s) from failed
        finally:
            self._searched_s += known.spent_s
        return changed, result

    def settled(self, assembly: Assembly, result: FleetResult) -> Assembly:
        """A problem with what the replicas of its plan sustain, where there is time to find out; turns of sessions to one per cent."""
        known = Confirmations(facts=self._known.facts)
        capacities = capacities_of(assembly, known, Brackets(assembly.screened, known.facts, about=True))
        if result.plan is None or not capacities.known_by_candidate:
            return assembly  # with which it was solved
        watch = Watch(replace(self._planning, time_limit_s=self.left_s), known)
        settled = with_settled_capacities(assembly, result, capacities, watch.in_time)
        watch.left_s()
        self._searched_s += known.spent_s
        return settled

    def has_plan(self, assembly: Assembly, *, other_targets: bool = False) -> bool:
        """Is there any plan? Raises NoPlanInTimeError where that could not be settled."""
        problem = replace(assembly.problem, objective="cost")
        if is_unlimited(problem):
            # What serves one request a second serves any number, as often over, and programmes count no millions of nodes exactly.
            demands = tuple(
                replace(d, requests_per_s=tuple(min(rate, 1.0) for rate in d.requests_per_s)) for d in problem.demands
            )
            problem = replace(problem, demands=demands)
        else:
            problem = placeable(problem)
        cost = replace(assembly, problem=problem)
        return self.best(cost, other_targets=other_targets, gap_fraction=ANY_PLAN_GAP_FRACTION).plan is not None

    def fleet(
        self, assembly: Assembly, gap_fraction: float | None = None, freer_than: FleetResult | None = None
    ) -> "FleetResolver":
        """The same for problems that differ from an assembly's in limits, offers and demands only."""
        return FleetResolver(self, assembly, gap_fraction, freer_than)


def placeable(problem: FleetProblem) -> FleetProblem:
    """With as many nodes of offers whose limit was lifted as are worth planning with."""
    offers = tuple(
        replace(o, max_nodes=MOST_NODES_PLACED) if o.is_default_most and o.max_nodes is None else o
        for o in problem.offers
    )
    return replace(problem, offers=offers)


class FleetResolver:
    """Solves fleet problems over an assembly's candidates."""

    def __init__(
        self, resolver: Resolver, assembly: Assembly, gap_fraction: float | None, freer_than: FleetResult | None
    ) -> None:
        self._resolver, self._assembly = resolver, assembly
        self._gap_fraction, self._freer_than = gap_fraction, freer_than

    def __call__(self, problem: FleetProblem) -> FleetResult:
        changed = replace(self._assembly, problem=problem)
        return self._resolver.best(changed, gap_fraction=self._gap_fraction, freer_than=self._freer_than)
