"""What the planner over time returns."""

from dataclasses import dataclass

from solver.horizon.master import HorizonDuals
from solver.horizon.period import PeriodChoice
from solver.horizon.problem import HorizonProblem
from solver.outcome import Outcome
from solver.units import SECONDS_PER_HOUR

PROVEN_GAP_FRACTION = 1e-6
"""As in ``solver.fleet``: below this a gap is floating point."""


@dataclass(frozen=True, slots=True)
class HorizonPlan:
    """commitments: nodes by commitment of the problem. choices: by period of the problem."""

    commitments: tuple[int, ...]
    choices: tuple[PeriodChoice, ...]

    def committed_usd(self, problem: HorizonProblem, kind: str | None = None) -> float:
        """Every payment of every term of a kind (None: of all), what lies beyond the horizon included."""
        return sum(
            (
                nodes * one.usd_per_node
                for nodes, one in zip(self.commitments, problem.commitments, strict=True)
                if kind in (None, one.kind)
            ),
            0.0,
        )

    def hourly_usd(self, problem: HorizonProblem, *, interruptible: bool) -> float:
        """Σ_t hours_t Σ_o c_o n_ot over offers that may, or may not, be taken back."""
        return sum(
            (
                period.hours * nodes * offer.usd_per_hour
                for period, choice in zip(problem.periods, self.choices, strict=True)
                for nodes, offer in zip(choice.hourly, problem.hourly, strict=True)
                if offer.interruptible == interruptible
            ),
            0.0,
        )

    def usd(self, problem: HorizonProblem) -> float:
        """All payments as they fall due, undiscounted."""
        hourly = self.hourly_usd(problem, interruptible=False) + self.hourly_usd(problem, interruptible=True)
        return self.committed_usd(problem) + hourly

    def present_usd(self, problem: HorizonProblem) -> float:
        """The same in present value at the start of the horizon: what is minimised."""
        if problem.discount_fraction_per_year == 0.0:
            return self.usd(problem)
        committed = sum(
            (n * float(usd) for n, usd in zip(self.commitments, problem.present_usd_per_node, strict=True)), 0.0
        )
        hourly = (
            float(weight) * sum(n * offer.usd_per_hour for n, offer in zip(choice.hourly, problem.hourly, strict=True))
            for weight, choice in zip(problem.weights, self.choices, strict=True)
        )
        return committed + sum(hourly, 0.0)

    def batch_requests(self, problem: HorizonProblem) -> tuple[float, ...]:
        """Requests of each batch work done over the horizon."""
        return tuple(
            sum(
                choice.batch_requests_per_s[b] * period.hours * SECONDS_PER_HOUR
                for period, choice in zip(problem.periods, self.choices, strict=True)
            )
            for b in range(len(problem.batch))
        )


@dataclass(frozen=True, slots=True)
class HorizonResult:
    """A plan, its cost over the horizon in present value and the bound below which no plan can be; ``gap_fraction`` is
    recomputed.
    """

    outcome: Outcome
    plan: HorizonPlan | None
    usd: float | None
    bound_usd: float | None
    gap_fraction: float | None
    periods_solved: int
    """Period programmes solved: the effort, on any machine."""
    branches: int
    periods: int
    """Different periods: equal ones are solved once."""
    reasons: tuple[str, ...] = ()
    prices: HorizonDuals | None = None
    """Of committed nodes and batch work, where the bound over all commitments was best: to start a like problem from."""


def relative_gap(usd: float, bound: float) -> float:
    """How much dearer than the bound a plan is, as a share of its cost.

    >>> relative_gap(200.0, 198.0)
    0.01
    """
    if usd <= bound:
        return 0.0
    return (usd - bound) / max(usd, 1e-12)


def result_with_plan(
    plan: HorizonPlan,
    usd: float,
    bound_usd: float,
    *,
    periods_solved: int,
    branches: int,
    periods: int,
    prices: HorizonDuals | None = None,
) -> HorizonResult:
    """A plan that costs ``usd`` in present value beside a bound on all: proven where no more than PROVEN_GAP_FRACTION lies between."""
    gap = relative_gap(usd, bound_usd)
    proven = gap <= PROVEN_GAP_FRACTION
    return HorizonResult(
        outcome=Outcome.OPTIMAL if proven else Outcome.FEASIBLE,
        plan=plan,
        usd=usd,
        bound_usd=usd if proven else min(bound_usd, usd),
        gap_fraction=0.0 if proven else gap,
        periods_solved=periods_solved,
        branches=branches,
        periods=periods,
        prices=prices,
    )
