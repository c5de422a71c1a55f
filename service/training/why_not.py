"""POST /v1/training/recommendations/{id}/why-not: the stored plan's jobs, done with what it leaves out."""

import time
from collections.abc import Sequence

from fastapi.concurrency import run_in_threadpool
from sqlmodel import Session

from service.answers.store import answer_named
from service.problems import FieldError, InvalidFieldsError, unknown_name
from service.recommendations.create import PlanningContext
from service.recommendations.limits import allowed_offers
from service.training.inputs import training_model
from service.training.job import TRAINING
from service.training.plans import PreparedPlan, prepare_plan
from service.training.present import present_stored
from service.training.present_plan import conflicts, present_commitments, present_line, usd
from service.training.recommend import limits_of, plan_training
from service.training.tables import TrainingPlanTable
from service.wire.training_plans import (
    TrainingLimitsIn,
    TrainingRecommendationIn,
    TrainingWhyNotIn,
    TrainingWhyNotOut,
)
from solver.hardware import Offer

LIFTED: dict[str, object] = {"devices": None, "providers": None, "regions": None, "sourcing": "any"}
"""What of the request's limits can keep an offer out, and what it is without."""


async def answer_training_why_not(plan_id: str, asked: TrainingWhyNotIn, context: PlanningContext) -> TrainingWhyNotOut:
    """Raises NotFoundError, and InvalidFieldsError for what the catalog does not offer and jobs that the plan has not."""
    began = time.perf_counter()
    row, prepared = await run_in_threadpool(_replayed, plan_id, context)
    kind, name = _thing(asked, prepared, row)
    return await context.pool.run("training why-not", lambda: _answer(kind, name, asked.job, row, prepared, began))


def stored_plan(session: Session, plan_id: str) -> TrainingPlanTable:
    """Raises NotFoundError."""
    return answer_named(session, TrainingPlanTable, TRAINING.noun, plan_id)


def _replayed(plan_id: str, context: PlanningContext) -> tuple[TrainingPlanTable, PreparedPlan]:
    """The request at its own instants, with the runs that were measured then."""
    with context.database.reading() as session:
        row = stored_plan(session, plan_id)
    asked = TrainingRecommendationIn.model_validate(row.request)
    return row, prepare_plan(asked, context, row.created_at)


def _thing(asked: TrainingWhyNotIn, prepared: PreparedPlan, row: TrainingPlanTable) -> tuple[str, str]:
    kind = "device" if asked.device else "provider" if asked.provider else "offer"
    name = asked.device or asked.provider or asked.offer or ""
    known = sorted({_of(kind, offer) for offer in prepared.snapshot.offers})
    wrong = []
    if name not in known:
        wrong.append(FieldError(unknown_name(kind, name, known), pointer=f"/{kind}"))
    jobs = [job["name"] for job in row.jobs]
    if asked.job is not None and asked.job not in jobs:
        wrong.append(FieldError(unknown_name("job", asked.job, jobs), pointer="/job"))
    if wrong:
        raise InvalidFieldsError(wrong)
    return kind, name


def _of(kind: str, offer: Offer) -> str:
    return {"device": offer.node.device.id, "provider": offer.provider, "offer": offer.id}[kind]


def _answer(
    kind: str, name: str, job: str | None, row: TrainingPlanTable, prepared: PreparedPlan, began: float
) -> TrainingWhyNotOut:
    stored = present_stored(row)
    wanted = tuple(offer for offer in prepared.snapshot.offers if _of(kind, offer) == name)
    excluded = excluding_limits(prepared.asked, wanted)
    limits = prepared.asked.limits.model_copy(update={one: LIFTED[one] for one in excluded})
    if kind == "offer" and name in limits.offers and limits.offers[name].max_nodes == 0:
        excluded = [*excluded, "offers"]
    asked = prepared.asked.model_copy(update={"limits": limits})

    others = {offer.id for offer in allowed_offers(prepared.snapshot.offers, limits_of(prepared.asked))}
    others |= prepared.beside.free.keys()
    others |= {one.id for one in prepared.owned.machines}
    others |= {one.id for one in prepared.serving.idle} if prepared.serving is not None else set()

    def only(of_job: str, offer: Offer) -> bool:
        return _of(kind, offer) == name if job in (None, of_job) else offer.id in others

    planned = plan_training(
        asked, prepared.shapes, prepared.snapshot.offers, training_model(), prepared.starts_at, prepared.runs, only,
        prepared.beside, prepared.serving, prepared.owned, prepared.snapshot.nodes,
    )  # fmt: skip
    found = planned.chosen.columns is not None
    cost = usd(planned.chosen.usd) if found else None
    lines = [line for line in stored.plan if job in (None, line.job)]
    return TrainingWhyNotOut.model_validate(
        {
            "kind": kind,
            "name": name,
            "in_plan": any(getattr(line, kind) == name for line in lines),
            "excluded_by": [f"limits.{one}" for one in excluded],
            "outcome": ("optimal" if planned.chosen.proven else "feasible") if found else "infeasible",
            "usd": cost,
            "extra_usd": None if cost is None or stored.solve.usd is None else cost - stored.solve.usd,
            "plan": [
                present_line(planned, column, asked, prepared.starts_at, prepared.price_as_of)
                for column in planned.taken
            ],
            "commitments": present_commitments(planned),
            "reasons": [] if found else conflicts(planned),
            "seconds": time.perf_counter() - began,
        }
    )


def excluding_limits(asked: TrainingRecommendationIn, wanted: Sequence[Offer]) -> list[str]:
    """Limits that must go for any of the offers to be admitted: all are lifted, then set again one by one where some stay."""
    lifted = dict(LIFTED)
    for name in LIFTED:
        tried = {one: value for one, value in lifted.items() if one != name}
        if _admitted(asked.limits.model_copy(update=tried), asked, wanted):
            lifted = tried
    return list(lifted) if _admitted(asked.limits.model_copy(update=lifted), asked, wanted) else []


def _admitted(limits: TrainingLimitsIn, asked: TrainingRecommendationIn, wanted: Sequence[Offer]) -> bool:
    return bool(allowed_offers(tuple(wanted), limits_of(asked.model_copy(update={"limits": limits}))))
