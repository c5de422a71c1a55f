"""A stored recommendation's plans as columns beside training jobs: one of them serves until the last deadline, and by a profile of the
day leaves nodes to the jobs at the hours at which it needs fewer."""

import datetime as dt
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session

from service.answers.queries import answer_by_id
from service.problems import FieldError, InvalidFieldsError
from service.recommendations.tables import RecommendationTable
from service.training.said import BY_THE_HOUR, IDLE
from solver.hardware import Node, Offer
from solver.training.programme import HOURS_OF_DAY, Hours, JobColumn, Task, all_day
from solver.units import SECONDS_PER_HOUR

SERVED = " served"
"""The task of serving in the programme: no job is called so."""
CENT = 0.01
Profile = Sequence[float]
"""Share of a recommendation's rate that is served, by hour of the day."""


@dataclass(frozen=True)
class ServedNodes:
    """Nodes of one offer. used: that serve, by hour of the day. usd_per_hour: of each. line: of the plan, what is stored of it."""

    offer: str
    nodes: int
    used: Hours
    usd_per_hour: float
    line: Mapping[str, Any]

    @property
    def held(self) -> Hours:
        """What is rented by the hour is given back when it is not used; all else is paid for and kept."""
        return self.used if self.line.get("commitment") in BY_THE_HOUR else all_day(self.nodes)

    @property
    def idle(self) -> Hours:
        return tuple(held - used for held, used in zip(self.held, self.used, strict=True))


@dataclass(frozen=True)
class ServingChoice:
    """One way to serve. why: null of the recommendation's own plan, else the alternative's reason."""

    why: str | None
    nodes: tuple[ServedNodes, ...]

    @property
    def usd_per_hour(self) -> float:
        """At the busiest hour."""
        return math.fsum(one.nodes * one.usd_per_hour for one in self.nodes)

    def usd(self, hours: int, first_hour: int) -> float:
        """Of so many hours, the first being this hour of the day."""
        times = [len(range((hour - first_hour) % HOURS_OF_DAY, hours, HOURS_OF_DAY)) for hour in range(HOURS_OF_DAY)]
        return math.fsum(
            one.usd_per_hour * nodes * count for one in self.nodes for nodes, count in zip(one.held, times, strict=True)
        )

    def free(self, offer: str, most: int | None) -> Hours:
        """Nodes that it leaves of an offer that has ``most``, or of those it pays for and leaves idle, by hour of the day."""
        own = next((one for one in self.nodes if one.offer == offer.removeprefix(IDLE)), None)
        if offer.startswith(IDLE):
            return all_day(0) if own is None else own.idle
        taken = all_day(0) if own is None else own.held
        return tuple((most or 0) - nodes for nodes in taken)


@dataclass(frozen=True)
class Serving:
    """A recommendation with the ways to serve it that say all that they rent, its own plan first. first_hour: of the day, at which the
    plan begins. idle: nodes that some way pays for and leaves idle at some hour, at no price."""

    recommendation: str
    choices: tuple[ServingChoice, ...]
    first_hour: int
    idle: tuple[Offer, ...]

    def columns(self, until_s: float) -> list[JobColumn]:
        """One for each way, from the beginning to ``until_s``: nodes are held by the day and paid by the hour."""
        hours = math.ceil(until_s / SECONDS_PER_HOUR - 1e-9)
        days = tuple(range(math.ceil(until_s / SECONDS_PER_HOUR / HOURS_OF_DAY)))
        found = []
        for number, choice in enumerate(self.choices):
            beside = [(one.offer, one.held) for one in choice.nodes]
            beside += [
                (f"{IDLE}{one.offer}", tuple(-free for free in one.idle)) for one in choice.nodes if any(one.idle)
            ]
            usd = choice.usd(hours, self.first_hour)
            found.append(JobColumn(SERVED, SERVED, 0, 0, days, 0.0, usd, number, beside=tuple(beside)))
        return found

    @property
    def task(self) -> Task:
        return Task(SERVED)

    def limited(self, offers: Sequence[Offer]) -> dict[str, Hours]:
        """Nodes that its offers have, where they state how many; of idle ones there are as many as it leaves."""
        named = {one.offer for choice in self.choices for one in choice.nodes}
        stated = {o.id: all_day(o.max_nodes) for o in offers if o.id in named and o.max_nodes is not None}
        return stated | {one.id: all_day(0) for one in self.idle}

    def free_ways(self, offer: Offer) -> Iterator[Hours]:
        """What each way to serve leaves of an offer by hour of the day, where that changes with the hour or is of idle nodes."""
        for choice in self.choices:
            left = choice.free(offer.id, offer.max_nodes)
            if len(set(left)) > 1 or (offer.id.startswith(IDLE) and any(left)):
                yield left


def read_serving(
    session: Session,
    recommendation: str | None,
    profile: Profile | None,
    starts_at: dt.datetime,
    nodes: Mapping[str, Node],
) -> Serving | None:
    """profile: by the hour of the day in UTC; None: all day as much. nodes: of the catalog.

    Raises InvalidFieldsError for one that is not stored, or has no plan of machines that serves all of its traffic.
    """
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
    least = {one["name"]: int(one.get("min_replicas", 1)) for one in row.request.get("workloads", ())}
    own = _choice(None, result["fleet"], result["plan"], profile, least)
    others = (_alternative(one, own.usd_per_hour, profile, least) for one in result.get("alternatives", ()))
    choices = (own, *(one for one in others if one is not None))
    return Serving(recommendation, choices, starts_at.astimezone(dt.UTC).hour, tuple(_idle(choices, nodes)))


def _choice(
    why: str | None, rented: Sequence[Mapping[str, Any]], lines: Sequence[Mapping[str, Any]], profile: Profile | None,
    least: Mapping[str, int],
) -> ServingChoice:  # fmt: skip
    found = []
    for one in rented:
        own = [line for line in lines if line["offer"] == one["offer"]]
        used = all_day(one["nodes"]) if profile is None else used_by_hour(one["nodes"], own, profile, least)
        found.append(
            ServedNodes(one["offer"], one["nodes"], used, float(one["usd_per_hour"]) / one["nodes"], [*own, one][0])
        )
    return ServingChoice(why, tuple(sorted(found, key=lambda one: one.offer)))


def used_by_hour(nodes: int, lines: Sequence[Mapping[str, Any]], profile: Profile, least: Mapping[str, int]) -> Hours:
    """Nodes that serve shares of the rate with no more of it on a replica than planned: of each line so many of its replicas, rounded
    up, and never fewer than the workload's least. Spares stay; where lines share nodes all do.

    >>> line = {"workload": "chat", "nodes": 6, "replicas": 3}
    >>> used_by_hour(7, [line], [0.0, 0.3, 0.5, 1.0], {"chat": 1})
    (1, 3, 5, 7)
    """
    spare = nodes - sum(line["nodes"] for line in lines)
    if spare < 0:
        return tuple(nodes for _ in profile)

    def of_line(line: Mapping[str, Any], share: float) -> int:
        replicas = int(line["replicas"])
        kept = max(math.ceil(share * replicas - 1e-9), min(replicas, least.get(line["workload"], 1)))
        return math.ceil(kept * line["nodes"] / replicas - 1e-9) if share > 0.0 else 0

    return tuple(spare + sum(of_line(line, share) for line in lines) for share in profile)


def _alternative(
    stored: Mapping[str, Any], usd_per_hour: float, profile: Profile | None, least: Mapping[str, int]
) -> ServingChoice | None:
    """None for one without a plan, on tokens, or whose lines do not say all that it rents: they share nodes, or spares stand by."""
    lines, extra = stored["plan"], stored["extra_usd_per_hour"]
    offers = [line["offer"] for line in lines]
    if not lines or extra is None or stored.get("published_lines") or len(set(offers)) < len(offers):
        return None
    found = _choice(stored["why"], lines, lines, profile, least)
    return found if abs(found.usd_per_hour - usd_per_hour - float(extra)) < CENT else None


def _idle(choices: Sequence[ServingChoice], nodes: Mapping[str, Node]) -> Iterator[Offer]:
    """Of each offer that some way keeps and does not use all day; the most that any leaves."""
    most: dict[str, tuple[int, Mapping[str, Any]]] = {}
    for one in (served for choice in choices for served in choice.nodes if any(served.idle)):
        most[one.offer] = max(max(one.idle), most.get(one.offer, (0, one.line))[0]), one.line
    for offer, (count, line) in sorted(most.items()):
        if line["node"] in nodes:
            node = nodes[line["node"]]
            yield Offer(f"{IDLE}{offer}", node, line["provider"], line["region"], line["commitment"], 0.0, count)
