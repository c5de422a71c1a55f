"""A training plan on the wire."""

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal

from service.recommendations.sourcing import line_source
from service.training.inputs import TrainingModel
from service.training.predict import cautions, interval, present_layout, present_memory
from service.training.recommend import SECONDS_PER_DAY, Planned, job_usd, limits_of, relaxed
from service.training.said import IDLE
from service.training.serving import SERVED
from service.wire.quantities import Interval
from service.wire.recommendations import InputsOut
from service.wire.training_plans import (
    TrainingBesideOut,
    TrainingCommitmentOut,
    TrainingFrontOut,
    TrainingLineOut,
    TrainingPointOut,
    TrainingRecommendationIn,
    TrainingRelaxationOut,
    TrainingResultOut,
    TrainingServedNodesOut,
    TrainingServingOut,
    TrainingSolveOut,
)
from solver.llm_shape import LlmShape
from solver.training.programme import HOURS_OF_DAY, JobColumn, committed_nodes, frontier, plan_usd
from solver.units import HOURS_PER_MONTH, SECONDS_PER_HOUR

MOST_POINTS = 12
NOT_COUNTED = (
    "not counted: starting the machines, bringing model and data to them, storage and its traffic, evaluation between steps;"
    " nothing here says how good the trained model is"
)


def usd(amount: float) -> Decimal:
    return Decimal(f"{amount:.6f}")


def present_plan(
    planned: Planned,
    asked: TrainingRecommendationIn,
    shapes: dict[str, LlmShape],
    starts_at: dt.datetime,
    inputs: InputsOut,
    model: TrainingModel,
) -> TrainingResultOut:
    """On the wire: dates, days, dollars; each line with what is doubtful about it."""
    chosen = planned.chosen
    lines = [present_line(planned, column, asked, starts_at, inputs.price_as_of) for column in planned.taken]
    told = [f"{line.job}: {_old_price(line)}" for line in lines if line.ask_for_quote]
    told += [note for column in planned.taken for note in _doubts(planned, column, shapes[column.job])]
    found = chosen.columns is not None
    commitments = present_commitments(planned)
    told += [_bought(one) for one in commitments if one.due_at_start_usd is not None]
    status = (
        ("proven_optimal" if chosen.proven else "feasible")
        if found
        else ("proven_infeasible" if chosen.proven else "no_plan_found")
    )
    return TrainingResultOut.model_validate(
        {
            "outcome": ("optimal" if chosen.proven else "feasible") if found else "infeasible",
            "solve": TrainingSolveOut.model_validate(
                {
                    "status": status,
                    "usd": usd(chosen.usd) if found else None,
                    "bound_usd": None if chosen.bound_usd is None else usd(chosen.bound_usd),
                    "undiscounted_usd": usd(plan_usd(chosen.columns or (), planned.shared)) if found else None,
                    "candidates": chosen.considered,
                    "seconds": chosen.seconds,
                }
            ),
            "plan": lines,
            "serving": present_serving(planned),
            "commitments": commitments,
            "beside": present_beside(planned),
            "own": planned.owned.used,
            "left_out": planned.owned.left_out,
            "discount": planned.owned.discount,
            "fronts": [_front(planned, task.name) for task in planned.tasks],
            "conflicts": [] if found else conflicts(planned),
            "relaxations": [] if found else [_relaxation(*one, starts_at) for one in relaxed(planned)],
            "cautions": [*told, NOT_COUNTED] if lines else told,
            "inputs": inputs,
            "training_digest": model.catalog.digest,
        }
    )


def present_line(
    planned: Planned,
    column: JobColumn,
    asked: TrainingRecommendationIn,
    starts_at: dt.datetime,
    price_as_of: dt.datetime,
) -> TrainingLineOut:
    allocation, offer = planned.allocations[column.key], planned.offers[column.offer]
    source = line_source(offer, limits_of(asked), price_as_of)
    begins = starts_at + dt.timedelta(days=column.start_slot)
    taken_s = column.finish_s - column.start_slot * SECONDS_PER_DAY
    slow = taken_s / min(allocation.spread.low_ratio, 1.0)
    fast = taken_s / max(allocation.spread.high_ratio, 1.0)
    return TrainingLineOut(
        job=column.job,
        offer=offer.id,
        provider=offer.provider,
        region=offer.region,
        node=offer.node.id,
        device=offer.node.device.id,
        nodes=allocation.nodes,
        devices=allocation.devices,
        starts_at=begins,
        finishes_at=begins + dt.timedelta(seconds=round(taken_s)),
        daily_hours=list(column.hours),
        duration_days=Interval(
            expected=taken_s / SECONDS_PER_DAY, low=fast / SECONDS_PER_DAY, high=slow / SECONDS_PER_DAY
        ),
        goodput_fraction=allocation.goodput,
        tokens_per_s_per_device=interval(
            allocation.found.chosen.tokens_per_s_per_device * allocation.factor, allocation.spread
        ),
        mfu_fraction=interval(allocation.found.mfu_fraction * allocation.factor, allocation.spread),
        layout=present_layout(allocation.found.chosen),
        memory=present_memory(allocation.found),
        basis="corrected"
        if allocation.anchors or allocation.trained.evidence
        else "borrowed"
        if allocation.trained.is_fitted
        else "analytical",
        evidence=[*allocation.trained.evidence, *allocation.anchors],
        stack=allocation.trained.stack.id,
        sequence_tokens=allocation.trained.run.sequence_tokens,
        global_batch_sequences=allocation.trained.run.global_batch_sequences,
        usd_per_node_hour=usd(offer.usd_per_hour),
        stated_on=None if offer.sale.priced_day is None else dt.date.fromordinal(offer.sale.priced_day),
        price_age_days=source.price_age_days,
        ask_for_quote=source.ask_for_quote,
        usd=usd(planned.shared.paid_usd(column)),
        usd_low=usd(_usd_of(planned, column, fast)),
        usd_high=usd(_usd_of(planned, column, slow)),
    )


def _usd_of(planned: Planned, column: JobColumn, taken_s: float) -> float:
    """What it costs if it takes so long: nothing by the hour on nodes that are committed to."""
    if column.offer in planned.shared.usd_per_term:
        return 0.0
    share = len(column.hours) / HOURS_OF_DAY if column.hours else 1.0
    return job_usd(planned.offers[column.offer], column.nodes, taken_s * share, None)


def _old_price(line: TrainingLineOut) -> str:
    return (
        f"the price of {line.offer} was stated on {line.stated_on}, {line.price_age_days} days before this plan: ask {line.provider}"
        " for a quote before you count on it"
    )


def _bought(one: TrainingCommitmentOut) -> str:
    sold = -sum(float(amount) for amount in (one.lines or {}).values() if amount < 0)
    return (
        f"{one.offer}: ${float(one.due_at_start_usd or 0):,.0f} are due at once for {one.nodes} node{'s' * (one.nodes > 1)}, and"
        f" ${sold:,.0f} come back only if they are sold after {one.term_months} months at what the catalog takes them to fetch;"
        " they are taken to stand ready at the plan's beginning, and no maker was asked when it delivers"
    )


def present_commitments(planned: Planned) -> list[TrainingCommitmentOut]:
    """What is paid for a term or bought, and how much of it the jobs use."""
    found = []
    for offer, nodes in committed_nodes(planned.taken, planned.shared).items():
        own, term = planned.offers[offer], planned.terms[offer]
        held_s = sum(c.nodes * (c.finish_s - c.start_slot * SECONDS_PER_DAY) for c in planned.taken if c.offer == offer)
        bought = term.bought
        due = None if bought is None else nodes * sum(amount for month, amount in bought.payments if month == 0)
        found.append(
            TrainingCommitmentOut(
                offer=offer,
                commitment=own.commitment,
                nodes=nodes,
                term_months=term.months,
                usd=usd(nodes * term.usd),
                used_fraction=held_s / SECONDS_PER_HOUR / (nodes * term.months * HOURS_PER_MONTH),
                present_usd=usd(nodes * term.present_usd),
                due_at_start_usd=None if due is None else usd(due),
                lines=None if bought is None else {line: usd(nodes * paid) for line, paid in bought.lines.items()},
            )
        )
    return found


def present_beside(planned: Planned) -> TrainingBesideOut | None:
    """What fleet and jobs cost, and how much less a plan of both could at most: dropping the jobs from it leaves a plan of the fleet's
    demand, which costs no less than the fleet's bound."""
    beside, chosen = planned.beside, planned.chosen
    if not beside.fleet or beside.fleet_usd is None or chosen.columns is None:
        return None
    both, bound = beside.fleet_usd + chosen.usd, beside.fleet_bound_usd
    return TrainingBesideOut(
        fleet=beside.fleet,
        fleet_usd=usd(beside.fleet_usd),
        usd=usd(both),
        joint_saving_at_most_usd=None if bound is None else usd(max(0.0, both - bound)),
    )


def present_serving(planned: Planned) -> TrainingServingOut | None:
    """Which plan serves beside the jobs, and what the two would cost planned one after the other."""
    column = next((c for c in planned.chosen.columns or () if c.job == SERVED), None)
    if planned.serving is None or column is None:
        return None
    choice = planned.serving.choices[column.key]
    apart = planned.apart
    return TrainingServingOut(
        recommendation=planned.serving.recommendation,
        why=choice.why,
        nodes=[
            TrainingServedNodesOut(
                offer=one.offer, nodes=one.nodes, nodes_by_hour=list(one.used) if min(one.used) < one.nodes else []
            )
            for one in choice.nodes
        ],
        usd_per_hour=usd(choice.usd_per_hour),
        usd=usd(column.usd),
        usd_apart=None if apart is None or apart.columns is None else usd(apart.usd),
        considered=len(planned.serving.choices),
    )


def _doubts(planned: Planned, column: JobColumn, shape: LlmShape) -> list[str]:
    allocation = planned.allocations[column.key]
    task = next(one for one in planned.tasks if one.name == column.job)
    slow = (column.finish_s - column.start_slot * SECONDS_PER_DAY) / min(allocation.spread.low_ratio, 1.0)
    told = [f"{column.job}: {note}" for note in cautions(allocation.trained, shape, allocation.found)]
    if task.deadline_s is not None and column.start_slot * SECONDS_PER_DAY + slow > task.deadline_s:
        told.append(
            f"{column.job}: at the slow end of its interval it takes {slow / SECONDS_PER_DAY:.1f} days, past its deadline"
        )
    if task.max_usd is not None and _usd_of(planned, column, slow) > task.max_usd:
        told.append(f"{column.job}: at the slow end of its interval it costs more than its budget")
    if column.offer in planned.beside.free:
        told.append(
            f"{column.job}: runs {_when(column)}, on nodes that fleet {planned.beside.fleet} pays for and leaves idle then; the fleet was"
            " planned without the jobs, and `beside` says how much less both together could cost at most"
        )
    elif column.offer.startswith(IDLE):
        told.append(f"{column.job}: runs {_when(column)}, on nodes that what is served pays for and does not use then")
    elif column.hours:
        told.append(f"{column.job}: runs {_when(column)}, when what is served gives nodes of {column.offer} back")
    term = planned.terms.get(column.offer)
    if term is not None and term.bought is None:
        told.append(
            f"{column.job}: on nodes that are paid for a whole term; what is left of it after the job is worth something only"
            " to who uses it"
        )
    if column.offer not in planned.shared.nodes and (term is None or term.bought is None):
        nodes = f"{allocation.nodes} node{'s' * (allocation.nodes > 1)}"
        told.append(f"{column.job}: ask whether {column.offer} has {nodes}; nobody publishes how many there are")
    return told


def _when(column: JobColumn) -> str:
    return "all day" if not column.hours else f"at the hours {hours_text(column.hours)} of each day"


def hours_text(hours: Sequence[int]) -> str:
    """
    >>> hours_text((0, 1, 2, 22, 23))
    '0-2, 22-23'
    """
    parts: list[list[int]] = []
    for hour in hours:
        if parts and parts[-1][-1] == hour - 1:
            parts[-1].append(hour)
        else:
            parts.append([hour])
    return ", ".join(str(p[0]) if len(p) == 1 else f"{p[0]}-{p[-1]}" for p in parts)


def _front(planned: Planned, job: str) -> TrainingFrontOut:
    found = beyond_the_first_hour(frontier(planned.columns, job))
    step = max(1, -(-len(found) // MOST_POINTS))
    shown = found[::-1][::step][::-1]
    points = [
        TrainingPointOut(offer=c.offer, nodes=c.nodes, duration_days=c.finish_s / SECONDS_PER_DAY, usd=usd(c.usd))
        for c in shown
    ]
    return TrainingFrontOut(job=job, points=points)


def beyond_the_first_hour(front: Sequence[JobColumn]) -> list[JobColumn]:
    """Without ways that pay for more machines only to end sooner within an hour: hours are paid whole, and what it takes to
    start machines is not part of the prediction."""
    return [c for c in front if c.finish_s > 3600.0 or c.usd <= min(o.usd for o in front if o.finish_s <= 3600.0)]


def conflicts(planned: Planned) -> list[str]:
    """Which limits rule everything out, in words."""
    told = []
    for task in planned.tasks:
        own = [c for c in planned.columns if c.job == task.name]
        if not own:
            reasons = str(planned.dropped.get(task.name, ""))
            told.append(
                f"{task.name}: nothing that the limits admit trains it in time{': ' + reasons if reasons else ''}"
            )
        elif not any(task.allows(c) for c in own):
            told.append(f"{task.name}: no way keeps both its deadline and its budget")
    return told or ["the jobs' limits hold one by one: together they need more nodes or money than there is"]


def _relaxation(job: str, limit: str, column: JobColumn, starts_at: dt.datetime) -> TrainingRelaxationOut:
    to = (
        (starts_at + dt.timedelta(seconds=whole_hours_s(column.finish_s))).isoformat()
        if limit == "deadline"
        else f"{column.usd:.6f}"
    )
    return TrainingRelaxationOut(job=job, limit=limit, relaxing_to=to, usd=usd(column.usd))


def whole_hours_s(seconds: float) -> float:
    """Whole hours, in seconds: a deadline that is sure to be kept.

    >>> whole_hours_s(3601.0)
    7200.0
    """
    return -(-seconds // 3600.0) * 3600.0
