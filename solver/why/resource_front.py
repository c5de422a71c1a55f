"""Cost against what a plan takes besides money: the cheapest plan within each of several limits of power or carbon."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from solver.candidates.screening import Screened
from solver.hardware import Offer
from solver.planning.types import PlanningInput
from solver.recommend.recommend import SolvedRequest, SpaceMemo, screened
from solver.why.pareto import RELATIVE_NOISE, Front, Sample, front_of
from solver.why.resolve import Clock, QuestionOutcome, SolvedChange, assembled, known_of, resolve, unchanged

Metered = Literal["power", "carbon"]
"""Power at full use in W, and what the electricity for it emits in kg CO2e per hour."""
AUTOMATIC_LIMITS = 6
LEAST_TIME_FRACTION = 0.25
NO_LIMIT = 1e12


@dataclass(frozen=True, slots=True)
class Unmetered:
    """Offers left out of a front: of a node type whose power nobody publishes, or of a place whose grid nobody names.

    node: None for a place. provider, region: None for a node type.
    """

    node: str | None
    provider: str | None
    region: str | None
    figure: str
    offers: int


def unmetered(offers: Sequence[Offer], of: Metered) -> tuple[Unmetered, ...]:
    """What is left out of a front, with the figure that is missing."""
    count: dict[tuple[str, str, str, str], int] = {}
    for offer in offers:
        if figure := missing_figure(offer, of):
            place = (offer.provider, offer.region) if figure == "grid_kg_co2e_per_kwh" else ("", "")
            key = ("" if place[0] else offer.node.id, *place, figure)
            count[key] = count.get(key, 0) + 1
    return tuple(
        Unmetered(node or None, provider or None, region or None, figure, offers)
        for (node, provider, region, figure), offers in sorted(count.items())
    )


def missing_figure(offer: Offer, of: Metered) -> str | None:
    """Which figure keeps an offer out of such a front."""
    if math.isnan(offer.node.host_power_w):
        return "host_power_w"
    if not offer.node.device.power_limit_w > 0.0:
        return "power_limit_w"
    return "grid_kg_co2e_per_kwh" if of == "carbon" and math.isnan(offer.kg_co2e_per_kwh) else None


def resource_front(
    solved_request: SolvedRequest, of: Metered, limits: Sequence[float] | None, memo: SpaceMemo, clock: Clock
) -> Front:
    """limits: where to solve, in W or kg per hour; None: from the least any plan needs to that of the cheapest one.

    Values are the plans' own, at full use. Raises VerificationError on a defect.
    """
    metered = within(solved_request.planning, of, NO_LIMIT)
    every = [screened(metered, workload, memo) for workload in metered.workloads]

    def at(limits: Sequence[float]) -> list[Sample]:
        found = []
        for number, limit in enumerate(limits):
            planning = within(solved_request.planning, of, limit)
            share = 1.0 / (len(limits) - number)
            answer = resolve_within(solved_request, planning, every, clock, share)
            found.append(Sample(limit, answer.takes(of), answer))
        return found

    if limits is not None:
        return front_of(at(limits))
    cheapest = cheapest_of(solved_request, of, every, clock)
    most = cheapest.takes(of)
    if most is None:
        return front_of([Sample(math.inf, None, cheapest)])
    samples = [Sample(most, most, cheapest)]
    least = least_of(solved_request, of, every, clock)
    fewest = least.takes(of)
    if fewest is None:
        return front_of(samples, reaches_cheapest=True)
    tightest = fewest * (1.0 + RELATIVE_NOISE)
    if tightest < most:
        grid = np.linspace(tightest, most, AUTOMATIC_LIMITS)[:-1]
        found = at(grid.tolist())
        if found[0].value is None:
            found[0] = Sample(tightest, fewest, priced(solved_request, least, cheapest))
        samples += found
    none_below = fewest * (1.0 - least.open_fraction)
    return front_of(samples, none_below, reaches_cheapest=True)


def within(planning: PlanningInput, of: Metered, limit: float) -> PlanningInput:
    """The request with a limit, or its own where that is tighter."""
    limits = planning.limits
    own = limits.max_power_w if of == "power" else limits.max_carbon_kg_per_hour
    limit = limit if own is None else min(own, limit)
    if of == "power":
        return replace(planning, limits=replace(limits, max_power_w=limit))
    return replace(planning, limits=replace(limits, max_carbon_kg_per_hour=limit))


def cheapest_of(solved_request: SolvedRequest, of: Metered, every: Sequence[Screened], clock: Clock) -> SolvedChange:
    """The plan, or where a figure of it is missing the cheapest one of which all are known."""
    plan = solved_request.result.plan
    used = frozenset(plan.nodes_by_offer()) if plan is not None else frozenset()
    if used and not any(missing_figure(o, of) for o in solved_request.planning.offers if o.id in used):
        return unchanged(solved_request)
    planning = within(solved_request.planning, of, NO_LIMIT)
    return resolve(solved_request, planning, assembled(planning, every), known_of(solved_request), clock)


def least_of(solved_request: SolvedRequest, of: Metered, every: Sequence[Screened], clock: Clock) -> SolvedChange:
    """The plan that takes least, whatever it costs; its gap is of what it takes."""
    planning = replace(solved_request.planning, objective=of)
    return resolve_within(solved_request, planning, every, clock, LEAST_TIME_FRACTION)


def resolve_within(
    solved_request: SolvedRequest, planning: PlanningInput, every: Sequence[Screened], clock: Clock, share: float
) -> SolvedChange:
    """Solve in a share of the time that is left, so that one hard limit does not take that of all others."""
    given_s = clock.left_s * share
    own = Clock(given_s)
    answer = resolve(solved_request, planning, assembled(planning, every), known_of(solved_request), own)
    clock.spent(given_s - own.left_s)
    return answer


def priced(solved_request: SolvedRequest, least: SolvedChange, cheapest: SolvedChange) -> SolvedChange:
    """The plan that takes least as one of the front: no plan is cheaper than the bound of the cheapest."""
    assert least.usd_per_hour is not None
    assert cheapest.usd_per_hour is not None
    bound = cheapest.usd_per_hour * (1.0 - cheapest.open_fraction)
    base = solved_request.result.usd_per_hour or 0.0
    extra = least.usd_per_hour - base
    return replace(
        least,
        outcome=QuestionOutcome.FEASIBLE,
        objective=least.usd_per_hour,
        gap_fraction=max(0.0, 1.0 - bound / least.usd_per_hour) if least.usd_per_hour > 0.0 else 0.0,
        extra=extra,
        measurable=extra > (solved_request.result.gap_fraction or 0.0) * base + RELATIVE_NOISE * base,
    )


def on_grids(solved_request: SolvedRequest, kg_co2e_per_kwh: dict[str, float]) -> SolvedRequest:
    """The same plan with the carbon intensity of these offers' electricity (by id) put in place of what was known."""

    def known(figure: float) -> float:
        return 0.0 if math.isnan(figure) else figure

    offers = tuple(
        replace(o, kg_co2e_per_kwh=kg_co2e_per_kwh.get(o.id, o.kg_co2e_per_kwh)) for o in solved_request.planning.offers
    )
    problem = solved_request.assembly.problem
    slots = tuple(
        replace(s, kg_co2e_per_kwh=known(kg_co2e_per_kwh.get(s.id, s.kg_co2e_per_kwh))) for s in problem.offers
    )
    return replace(
        solved_request,
        planning=replace(solved_request.planning, offers=offers),
        assembly=replace(solved_request.assembly, problem=replace(problem, offers=slots)),
    )
