"""Cost against power: the cheapest plan within each of several power limits."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from solver.hardware import Offer
from solver.planning import PlanningInput
from solver.recommend import SpaceMemo, Standing, screened
from solver.search import Screened
from solver.why.pareto import RELATIVE_NOISE, Front, Sample, front_of
from solver.why.resolve import Answer, Clock, assembled, known_of, resolve, unchanged

AUTOMATIC_LIMITS = 6
LEAST_POWER_TIME_FRACTION = 0.25
NO_LIMIT_W = 1e12


@dataclass(frozen=True, slots=True)
class Unmetered:
    """Offers that cannot be planned against power: one node type of theirs, and the figure nobody publishes."""

    node: str
    figure: str
    offers: int


def unmetered(offers: Sequence[Offer]) -> tuple[Unmetered, ...]:
    """By node type: what is left out of a front against power."""
    count: dict[tuple[str, str], int] = {}
    for offer in offers:
        if figure := missing_figure(offer):
            key = offer.node.id, figure
            count[key] = count.get(key, 0) + 1
    return tuple(Unmetered(node, figure, offers) for (node, figure), offers in sorted(count.items()))


def missing_figure(offer: Offer) -> str | None:
    if math.isnan(offer.node.host_power_w):
        return "host_power_w"
    return None if offer.node.device.power_limit_w > 0.0 else "power_limit_w"


def power_front(standing: Standing, limits_w: Sequence[float] | None, memo: SpaceMemo, clock: Clock) -> Front:
    """limits_w: where to solve; None: from the least power any plan needs to that of the cheapest one.

    Values are the plans' power at full use, in watts. Raises VerificationError on a defect.
    """
    metered = within(standing.planning, NO_LIMIT_W)
    every = [screened(metered, workload, memo) for workload in metered.workloads]

    def at(limits_w: Sequence[float]) -> list[Sample]:
        found = []
        for number, limit_w in enumerate(limits_w):
            planning = within(standing.planning, limit_w)
            share = 1.0 / (len(limits_w) - number)
            answer = resolve_within(standing, planning, every, clock, share)
            found.append(Sample(limit_w, answer.power_w, answer))
        return found

    if limits_w is not None:
        return front_of(at(limits_w))
    cheapest = cheapest_of(standing, every, clock)
    if cheapest.power_w is None:
        return front_of([Sample(math.inf, None, cheapest)])
    samples = [Sample(cheapest.power_w, cheapest.power_w, cheapest)]
    least = least_power(standing, every, clock)
    if least.power_w is None:
        return front_of(samples, reaches_cheapest=True)
    tightest = least.power_w * (1.0 + RELATIVE_NOISE)
    if tightest < cheapest.power_w:
        grid = np.linspace(tightest, cheapest.power_w, AUTOMATIC_LIMITS)[:-1]
        found = at(grid.tolist())
        if found[0].value is None:
            found[0] = Sample(tightest, least.power_w, priced(standing, least, cheapest))
        samples += found
    none_below = least.power_w * (1.0 - (least.gap_fraction or 0.0))
    return front_of(samples, none_below, reaches_cheapest=True)


def within(planning: PlanningInput, limit_w: float) -> PlanningInput:
    """The request with a power limit, or its own where that is tighter."""
    own = planning.limits.max_power_w
    limit_w = limit_w if own is None else min(own, limit_w)
    return replace(planning, limits=replace(planning.limits, max_power_w=limit_w))


def cheapest_of(standing: Standing, every: Sequence[Screened], clock: Clock) -> Answer:
    """The standing plan, or where a figure of its power is missing the cheapest one of which all are known."""
    plan = standing.result.plan
    used = frozenset(plan.nodes_by_offer()) if plan is not None else frozenset()
    if used and not any(missing_figure(o) for o in standing.planning.offers if o.id in used):
        return unchanged(standing)
    planning = within(standing.planning, NO_LIMIT_W)
    return resolve(standing, planning, assembled(planning, every), known_of(standing), clock)


def least_power(standing: Standing, every: Sequence[Screened], clock: Clock) -> Answer:
    """The plan that draws least, whatever it costs; its gap is of its power."""
    planning = replace(standing.planning, objective="power")
    return resolve_within(standing, planning, every, clock, LEAST_POWER_TIME_FRACTION)


def resolve_within(
    standing: Standing, planning: PlanningInput, every: Sequence[Screened], clock: Clock, share: float
) -> Answer:
    """Solve in a share of the time that is left, so that one hard limit does not take that of all others."""
    given_s = clock.left_s * share
    own = Clock(given_s)
    answer = resolve(standing, planning, assembled(planning, every), known_of(standing), own)
    clock.spent(given_s - own.left_s)
    return answer


def priced(standing: Standing, least: Answer, cheapest: Answer) -> Answer:
    """The plan of least power as one of the front: no plan is cheaper than the bound of the cheapest."""
    assert least.usd_per_hour is not None
    assert cheapest.usd_per_hour is not None
    bound = cheapest.usd_per_hour * (1.0 - (cheapest.gap_fraction or 0.0))
    base = standing.result.usd_per_hour or 0.0
    extra = least.usd_per_hour - base
    return replace(
        least,
        outcome="feasible",
        objective=least.usd_per_hour,
        gap_fraction=max(0.0, 1.0 - bound / least.usd_per_hour) if least.usd_per_hour > 0.0 else 0.0,
        extra=extra,
        measurable=extra > (standing.result.gap_fraction or 0.0) * base + RELATIVE_NOISE * base,
    )
