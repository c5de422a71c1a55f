"""What a comparison needs of stored training plans: jobs that end, done once or again and again.

All of a plan's jobs done once are a run. Alternatives are plans of the same jobs; the peak of their demand is runs back to back on
the plan that takes longest, so that ``utilisation_fraction`` is the share of the time for which that one trains. A plan that is
sooner done works for less of it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlmodel import Session

from service.problems import FieldError, InvalidFieldsError
from service.tco.defaults import MachineFacts
from service.tco.queries import training_plans_by_ids
from service.tco.resolve import STANDING_HERE, Nodes
from service.training.said import IDLE, tokens_of
from service.training.tables import TrainingPlanTable
from service.wire.tco import AlternativeIn, ComparisonIn
from service.wire.training_plans import TrainingJobIn, TrainingLineOut, TrainingRecommendationIn
from solver.tco.tokens import TokenDemand
from solver.units import HOURS_PER_MONTH, SECONDS_PER_HOUR

SAME = ("llm", "method", "adapters", "reference", "adapter_rank", "sequence_tokens", "global_batch_sequences")
"""What must agree of a job. Machines, layout, precision, deadline and budget are a plan's own choice."""
SPOT = "spot"


@dataclass(frozen=True, slots=True)
class TrainedNodes:
    """Nodes of one offer. nodes: that jobs hold at once; node_hours: paid in one run; together: of the largest job, which stops
    when one of them is interrupted."""

    node: str
    offer: str
    nodes: int
    node_hours: float
    usd_per_node_hour: Decimal
    together: int


@dataclass(frozen=True, slots=True)
class TrainedPlan:
    """hours: of one run, from its beginning to the end of its last job, as hours are paid."""

    jobs: Mapping[str, TrainingJobIn]
    lines: tuple[TrainedNodes, ...]
    hours: float

    @property
    def tokens(self) -> float:
        return math.fsum(tokens_of(job) for job in self.jobs.values())

    @property
    def precision(self) -> tuple[str, ...]:
        return tuple(sorted({job.precision for job in self.jobs.values()}))


@dataclass(frozen=True, slots=True)
class TrainingDemand:
    """What every training plan of a comparison does, and for how long the one that takes longest does it."""

    jobs: tuple[str, ...]
    tokens_per_run: float
    hours_per_run: float

    @property
    def runs_per_month_at_most(self) -> float:
        return HOURS_PER_MONTH / self.hours_per_run

    @property
    def at_peak(self) -> TokenDemand:
        """Runs back to back: a request is a run, its input what is trained on."""
        return TokenDemand(1.0 / (self.hours_per_run * SECONDS_PER_HOUR), self.tokens_per_run, 0.0)


def trained_plans(session: Session, asked: ComparisonIn) -> dict[str, TrainedPlan]:
    """Plans by id. Raises InvalidFieldsError for those that are not stored, have no plan, run on what a fleet leaves idle, or
    are not of the same jobs."""
    named = [
        (position, one.training_plan)
        for position, one in enumerate(asked.alternatives)
        if one.training_plan is not None
    ]
    stored = training_plans_by_ids(session, {name for _, name in named})
    errors: list[FieldError] = []
    found: dict[str, TrainedPlan] = {}
    for position, name in named:
        row = stored.get(name)
        wrong = f"no training plan {name[:80]!r}" if row is None else _unusable(row)
        if row is not None and wrong is None:
            found[name] = trained_plan(row)
            wrong = _difference(next(iter(found.values())), found[name])
        if wrong is not None:
            errors.append(FieldError(wrong, pointer=f"/alternatives/{position}/training_plan"))
    if errors:
        raise InvalidFieldsError(errors)
    return found


def _unusable(row: TrainingPlanTable) -> str | None:
    if row.outcome == "infeasible":
        return f"the training plan is infeasible ({'; '.join(row.result['conflicts']) or 'no plan keeps the limits'})"
    if any(line["offer"].startswith(IDLE) or line.get("daily_hours") for line in row.result["plan"]):
        return "part of it runs on what a fleet or a served plan leaves idle or gives back, at its hours: nothing is bought for it"
    if row.result.get("commitments"):
        return "part of it is bought or committed to for a term that its jobs do not fill: plan them on demand, state acquisition here"
    return None


def _difference(first: TrainedPlan, own: TrainedPlan) -> str | None:
    if first.jobs.keys() != own.jobs.keys():
        return f"not the same jobs: {', '.join(own.jobs)} against {', '.join(first.jobs)}"
    for name, job in own.jobs.items():
        other = first.jobs[name]
        differ = [field for field in SAME if getattr(job, field) != getattr(other, field)]
        if not math.isclose(tokens_of(job), tokens_of(other)):
            differ.append("tokens")
        if differ:
            return f"does not do the same as the first plan: {', '.join(differ)} of job {name!r} differ"
    return None


def trained_plan(row: TrainingPlanTable) -> TrainedPlan:
    """What a stored plan rents in one run."""
    request = TrainingRecommendationIn.model_validate(row.request)
    lines = [TrainingLineOut.model_validate(line) for line in row.result["plan"]]
    begins = min(line.starts_at for line in lines)
    held = [(line, (line.starts_at - begins).total_seconds() / SECONDS_PER_HOUR, _paid_hours(line)) for line in lines]
    offers: dict[str, list[tuple[TrainingLineOut, float, float]]] = {}
    for one in held:
        offers.setdefault(one[0].offer, []).append(one)
    return TrainedPlan(
        jobs={job.name: job for job in request.jobs},
        lines=tuple(_of_offer(own) for own in offers.values()),
        hours=max(since + hours for _, since, hours in held),
    )


def _of_offer(held: Sequence[tuple[TrainingLineOut, float, float]]) -> TrainedNodes:
    first = held[0][0]
    node_hours = math.fsum(line.nodes * hours for line, _, hours in held)
    usd = sum((line.usd for line, _, _ in held), start=Decimal(0))
    return TrainedNodes(
        node=first.node,
        offer=first.offer,
        # Most are held at once where some job begins.
        nodes=max(sum(o.nodes for o, at, hours in held if at <= since < at + hours) for _, since, _ in held),
        node_hours=node_hours,
        usd_per_node_hour=usd / Decimal(repr(node_hours)),
        together=max(line.nodes for line, _, _ in held),
    )


def _paid_hours(line: TrainingLineOut) -> float:
    """Hours are paid whole."""
    return float(math.ceil((line.finishes_at - line.starts_at).total_seconds() / SECONDS_PER_HOUR - 1e-6))


def training_demand(plans: Mapping[str, TrainedPlan]) -> TrainingDemand | None:
    """None where nothing trains."""
    if not plans:
        return None
    first = next(iter(plans.values()))
    return TrainingDemand(tuple(first.jobs), first.tokens, max(plan.hours for plan in plans.values()))


def with_runs(asked: ComparisonIn, demand: TrainingDemand | None) -> ComparisonIn:
    """The request with its runs a month as a share of the time. Raises InvalidFieldsError for more than there is time for."""
    runs = asked.training_runs_per_month
    if demand is None or runs is None:
        return asked
    if runs > demand.runs_per_month_at_most * (1.0 + 1e-9):
        detail = (
            f"a run takes {demand.hours_per_run:g} hours: at most {demand.runs_per_month_at_most:.4g} a month fit on these machines; "
            "plan the jobs with an earlier deadline"
        )
        raise InvalidFieldsError([FieldError(detail, pointer="/training_runs_per_month")])
    share = min(1.0, runs / demand.runs_per_month_at_most)
    return asked.model_copy(update={"utilisation_fraction": share})


def nodes_that_train(
    plan: TrainedPlan, demand: TrainingDemand, machines: Mapping[str, MachineFacts], position: int
) -> list[Nodes]:
    """What a plan rents, as nodes of a comparison."""
    return [
        Nodes(
            machine=machines[line.node],
            count=line.nodes,
            offer=line.offer,
            usd_per_node_hour=line.usd_per_node_hour,
            stated=False,
            pointer=f"/alternatives/{position}/training_plan",
            busy_fraction=line.node_hours / (line.nodes * demand.hours_per_run),
            interrupted_together=line.together,
            preempted=line.offer.endswith(f":{SPOT}"),
        )
        for line in plan.lines
    ]


def notes_on_training(asked: AlternativeIn, nodes: Sequence[Nodes]) -> list[str]:
    """What the figures of machines that serve do not know of those that train."""
    planned = {part.preempted for part in nodes}
    told = ["the plan's days are its expected ones; its lines state the interval"]
    if True in planned and asked.acquisition not in (None, SPOT):
        told.append("its days count preemptions of spot capacity, which machines of this kind do not have")
    if asked.acquisition == SPOT and False in planned:
        told.append(
            "an interruption stops every node of a job; what it takes is a node's return, without the work since the last "
            "checkpoint: plan with limits.commitments spot and a rate of preemptions to count both"
        )
    if asked.acquisition in STANDING_HERE:
        told.append("machines that train draw the upper end of serving_power_fraction rather than its typical value")
    return told
