"""How a plan over time is run → wire: configurations, the stock it counts on, and what each rule of operation costs."""

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from service.fleets.prepare import FleetInputs
from service.recommendations.money import usd
from service.wire.operating import FreedomOut, OperationOut, StockOut

if TYPE_CHECKING:  # what plans loads libraries that listing the catalog does without
    from solver.horizon.fleet import FleetPlan
    from solver.horizon.operated import Freedom
    from solver.horizon.plan import HorizonPlan


def present_operation(inputs: FleetInputs, found: "FleetPlan", plan: "HorizonPlan") -> OperationOut:
    from solver.horizon.verify_operation import least_stay

    problem = found.problem
    used = {d for choice in plan.choices for d, count in enumerate(choice.replicas) if count}
    counts = Counter(problem.workloads[problem.deployments[d].workload] for d in used)
    hourly = _hours(found, plan)
    stays = [stay for months in hourly for month in months if (stay := least_stay(month)) is not None]
    paid = plan.present_usd(problem)
    return OperationOut(
        configurations=len(used),
        configurations_by_workload={name: counts[name] for name in problem.workloads},
        least_hours_up=min(stays, default=None),
        stock=[
            _stock(inputs, found, plan, o, months)
            for o, months in enumerate(hourly)
            if any(any(month) for month in months)
        ],
        freedoms=[_freedom(one, paid) for one in found.freedoms],
    )


def _hours(found: "FleetPlan", plan: "HorizonPlan") -> list[list[list[int]]]:
    """Nodes in each hour, by offer and month."""
    return [
        [[plan.choices[t].hourly[o] for t in sequence] for sequence in found.sequences]
        for o in range(len(found.problem.hourly))
    ]


def _stock(inputs: FleetInputs, found: "FleetPlan", plan: "HorizonPlan", o: int, months: list[list[int]]) -> StockOut:
    hours = sum(
        period.hours * choice.hourly[o] for period, choice in zip(found.problem.periods, plan.choices, strict=True)
    )
    offer = found.problem.hourly[o]
    provider, region = found.places[offer.id]
    return StockOut(
        offer=offer.id,
        provider=provider,
        region=region,
        commitment="spot" if offer.interruptible else "on_demand",
        node=found.problem.node_types[offer.node_type].machine,
        usd=usd(hours * offer.usd_per_hour),
        most_nodes=max(max(month) for month in months),
        most_started=max(max(0, b - a) for month in months for a, b in pairwise((*month, month[0]))),
        assumed_nodes=offer.max_nodes if offer.max_nodes is not None else inputs.request.limits.max_nodes_per_offer,
    )


def _freedom(one: "Freedom", paid: float) -> FreedomOut:
    """Amounts in present value. A plan found without a rule that is dearer only shows that the time was short."""
    without = None if one.usd is None else min(one.usd, paid)
    return FreedomOut(
        rule=one.rule,
        usd=None if without is None else usd(without),
        bound_usd=None if one.bound_usd is None else usd(one.bound_usd),
        saves_usd=None if without is None else usd(paid - without),
        saves_at_most_usd=None if one.bound_usd is None else usd(max(0.0, paid - one.bound_usd)),
        saves_fraction=None if not without else (paid - without) / without,
    )
