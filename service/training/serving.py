"""A stored recommendation's plans as columns beside training jobs: one of them serves until the last deadline."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session

from service.answers.queries import answer_by_id
from service.problems import FieldError, InvalidFieldsError
from service.recommendations.tables import RecommendationTable
from solver.hardware import Offer
from solver.training.programme import JobColumn, Task, all_day
from solver.units import SECONDS_PER_HOUR

SERVED = " served"
"""The task of serving in the programme: no job is called so."""
HOURS_PER_DAY = 24
CENT = 0.01


@dataclass(frozen=True)
class ServingChoice:
    """One way to serve. why: null of the recommendation's own plan, else the alternative's reason. nodes: by offer."""

    why: str | None
    nodes: Mapping[str, int]
    usd_per_hour: float


@dataclass(frozen=True)
class Serving:
    """A recommendation with the ways to serve it that say all that they rent, its own plan first."""

    recommendation: str
    choices: tuple[ServingChoice, ...]

    def columns(self, until_s: float) -> list[JobColumn]:
        """One for each way, from the beginning to ``until_s``: nodes are held by the day and paid by the hour."""
        days = tuple(range(math.ceil(until_s / SECONDS_PER_HOUR / HOURS_PER_DAY)))
        hours = math.ceil(until_s / SECONDS_PER_HOUR - 1e-9)
        found = []
        for number, choice in enumerate(self.choices):
            (offer, nodes), *rest = sorted(choice.nodes.items())
            usd = choice.usd_per_hour * hours
            found.append(JobColumn(SERVED, offer, nodes, 0, days, 0.0, usd, number, beside=tuple(rest)))
        return found

    @property
    def task(self) -> Task:
        return Task(SERVED)

    def quotas(self, offers: Sequence[Offer]) -> dict[str, tuple[int, ...]]:
        """Nodes that its offers have, where they state how many."""
        named = {offer for choice in self.choices for offer in choice.nodes}
        return {o.id: all_day(o.max_nodes) for o in offers if o.id in named and o.max_nodes is not None}


def read_serving(session: Session, recommendation: str | None) -> Serving | None:
    """Raises InvalidFieldsError for one that is not stored, or has no plan of machines that serves all of its traffic."""
    if recommendation is None:
        return None
    row = answer_by_id(session, RecommendationTable, recommendation)
    if row is None:
        raise InvalidFieldsError(
            [FieldError(f"no recommendation {recommendation[:80]!r} is stored", pointer="/serving")]
        )
    result = row.result
    totals = result.get("totals")
    if totals is None or not result.get("fleet") or result.get("published_lines"):
        detail = f"{recommendation} has no plan on machines alone that could be served beside the jobs"
        raise InvalidFieldsError([FieldError(detail, pointer="/serving")])
    own = _of_nodes(None, result["fleet"])
    others = (_alternative(one, own.usd_per_hour) for one in result.get("alternatives", ()))
    return Serving(recommendation, (own, *(one for one in others if one is not None)))


def _of_nodes(why: str | None, entries: Sequence[Mapping[str, Any]]) -> ServingChoice:
    nodes: dict[str, int] = {}
    for one in entries:
        nodes[one["offer"]] = nodes.get(one["offer"], 0) + one["nodes"]
    return ServingChoice(why, nodes, math.fsum(float(one["usd_per_hour"]) for one in entries))


def _alternative(stored: Mapping[str, Any], usd_per_hour: float) -> ServingChoice | None:
    """None for one without a plan, on tokens, or whose lines do not say all that it rents: they share nodes, or spares stand by."""
    lines, extra = stored["plan"], stored["extra_usd_per_hour"]
    offers = [line["offer"] for line in lines]
    if not lines or extra is None or stored.get("published_lines") or len(set(offers)) < len(offers):
        return None
    found = _of_nodes(stored["why"], lines)
    return found if abs(found.usd_per_hour - usd_per_hour - float(extra)) < CENT else None
