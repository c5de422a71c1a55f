"""A stored recommendation solved again: its own request and price instant, the catalog and corrections of now.

Catalog rows of earlier catalog releases are not kept, so a recommendation older than the newest catalog release cannot be computed as
it was. Answers are then compared with the plan the newest figures give, and say what has changed since.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, TypeVar

from fastapi.concurrency import run_in_threadpool

from service import VERSION
from service.problems import ConflictError, InvalidFieldsError, NotFoundError
from service.recommendations.create import PlanningContext, provenance, read_inputs
from service.recommendations.money import MICRO, usd
from service.recommendations.plan import PlanningInputs, solved
from service.recommendations.queries import recommendation_by_id
from service.recommendations.statuses import plan_outcome
from service.recommendations.tables import RecommendationTable
from service.wire.recommendations import InputsOut, RecommendationIn
from service.wire.why import BaseOut
from solver.outcome import Outcome
from solver.recommend.recommend import SolvedRequest

Found = TypeVar("Found")


@dataclass(frozen=True)
class ReplayedRequest:
    """What a question needs: the stored row's facts, and the inputs to solve it from."""

    stored: RecommendationTable
    inputs: PlanningInputs

    @property
    def request(self) -> RecommendationIn:
        return self.inputs.request


async def answered(
    recommendation_id: str, context: PlanningContext, kind: str, answer: Callable[[ReplayedRequest, SolvedRequest], Found],
    check: Callable[[ReplayedRequest], Any],
) -> Found:  # fmt: skip
    """Read, check the question against the request, solve in a solver thread.

    Raises NotFoundError for an unknown id, ConflictError where the stored request cannot be planned any more, and what
    ``check`` and ``answer`` raise.
    """
    replay = await run_in_threadpool(read_replay, recommendation_id, context)
    check(replay)
    return await context.pool.run(kind, lambda: answer(replay, standing_of(replay)))


def read_replay(recommendation_id: str, context: PlanningContext) -> ReplayedRequest:
    with context.database.reading() as session:
        row = recommendation_by_id(session, recommendation_id)
        if row is None:
            raise NotFoundError(f"no recommendation {recommendation_id[:80]!r}")
        session.expunge(row)
        if row.request.get("current") is not None:
            raise ConflictError(f"{row.id} was planned from a running fleet; ask about a request without `current`")
        if row.result.get("published_lines"):
            raise ConflictError(
                f"part of the plan of {row.id} rests on published speeds: what else it could be is not computed"
            )
        try:
            asked = RecommendationIn.model_validate(row.request)
            inputs = read_inputs(session, asked, row.price_as_of, context)
        except (ValueError, InvalidFieldsError) as gone:
            raise ConflictError(f"{row.id} cannot be planned any more with what is stored now: {gone}") from gone
    return ReplayedRequest(row, replace(inputs, solved_requests=context.solved_requests))


def standing_of(replay: ReplayedRequest) -> SolvedRequest:
    return solved(replay.inputs)


def require_plan(solved_request: SolvedRequest, recommendation_id: str) -> None:
    """Raises ConflictError where there is no plan to compare with."""
    if solved_request.result.plan is None:
        raise ConflictError(
            f"{recommendation_id} has no plan to compare with; its conflicts and relaxations say what would make one"
        )


def present_base(replay: ReplayedRequest, solved_request: SolvedRequest) -> BaseOut:
    """The plan that is compared with, and what has changed since it was stored."""
    stored, result = replay.stored, solved_request.proven
    inputs = provenance(replay.inputs)
    cost = None if result.usd_per_hour is None else usd(result.usd_per_hour)
    return BaseOut(
        recommendation=stored.id,
        outcome=plan_outcome(Outcome.INFEASIBLE if result.plan is None else result.outcome),
        usd_per_hour=cost,
        gap_fraction=result.gap_fraction,
        stored_usd_per_hour=stored.usd_per_hour,
        stored_at=stored.created_at,
        inputs=inputs,
        changed=_changed(stored, inputs, cost),
    )


def _changed(stored: RecommendationTable, inputs: InputsOut, cost: Decimal | None) -> list[str]:
    changed = [
        name
        for name, before, now in (
            ("catalog_digest", stored.catalog_digest, inputs.catalog_digest),
            ("correction_set", stored.correction_set, inputs.correction_set),
            ("version", stored.version, VERSION),
        )
        if before != now
    ]
    before = stored.usd_per_hour
    if (before is None) != (cost is None) or (before is not None and cost is not None and abs(before - cost) > MICRO):
        changed.append("usd_per_hour")
    return changed


def elapsed_since(began: float) -> float:
    return round(time.perf_counter() - began, 4)
