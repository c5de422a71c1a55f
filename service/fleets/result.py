"""The planner's answer → wire."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from service.fleets.operation import present_operation
from service.fleets.prepare import FleetInputs
from service.problems import UnavailableError
from service.recommendations.limit_names import choice_name, miss_reason, rejection_words
from service.recommendations.money import usd
from service.recommendations.statuses import fleet_status, plan_outcome
from service.wire.deployment import LayoutIn, PrecisionIn
from service.wire.fleet_answers import (
    CommitmentOut,
    DemandFitOut,
    FleetAlternativeOut,
    FleetDeploymentOut,
    FleetResultOut,
    FleetSolveOut,
    FleetTotalsOut,
    PeriodNodesOut,
    PeriodOut,
    PeriodReplicasOut,
)
from service.wire.plan_explained import RejectedOut
from solver.outcome import Outcome
from solver.units import HOURS_PER_MONTH

if TYPE_CHECKING:
    from solver.horizon.fleet import FleetPlan
    from solver.horizon.plan import HorizonPlan
    from solver.horizon.problem import HorizonProblem
    from solver.horizon.reasons import Reason

PURCHASE = "purchase"


def present_result(inputs: FleetInputs, found: "FleetPlan", seconds: float) -> FleetResultOut:
    """Raises UnavailableError where the time ended with neither a plan nor a proof that there is none, or with a plan that simulation
    refuses."""
    result, problem = found.result, found.problem
    if result.outcome is Outcome.UNKNOWN:
        raise UnavailableError("no plan was found in the time given; give more, or fewer devices, offers and workloads")
    if found.unconfirmed:
        raise UnavailableError(
            "no plan that holds in simulation was found in the time given; give more, or fewer devices, offers and workloads"
        )
    reached = result.gap_fraction is not None and result.gap_fraction <= inputs.request.gap_fraction
    used = {d for c in result.plan.choices for d, n in enumerate(c.replicas) if n} if result.plan else set()
    names = problem.workloads
    return FleetResultOut(
        outcome=plan_outcome(result.outcome),
        solve=FleetSolveOut(
            status=fleet_status(result.outcome, within_gap=reached),
            usd=None if result.usd is None else usd(result.usd),
            bound_usd=None if result.bound_usd is None else usd(result.bound_usd),
            gap_fraction=result.gap_fraction,
            distinct_periods=result.periods,
            periods_solved=result.periods_solved,
            branches=result.branches,
            simulations=found.simulated,
            seconds=round(seconds, 4),
        ),
        demand=DemandFitOut(
            points=found.fit.points,
            hours=found.fit.hours,
            periods=found.fit.periods,
            overstated_fraction=found.fit.overstated_fraction,
            worst_hour_fraction=found.fit.worst_hour_fraction,
            peak_requests_per_s=dict(zip(names, found.fit.peaks_requests_per_s, strict=True)),
        ),
        totals=None if result.plan is None else _totals(found, result.plan),
        commitments=[] if result.plan is None else _commitments(inputs, found, result.plan),
        deployments=[_deployment(found, d) for d in sorted(used)],
        periods=[] if result.plan is None else list(_periods(found, result.plan)),
        calendar=[] if result.plan is None else [list(sequence) for sequence in found.sequences],
        operation=None if result.plan is None else present_operation(inputs, found, result.plan),
        alternatives=_alternatives(found),
        rejected=[
            RejectedOut(
                workload=r.workload,
                device=r.device_id,
                reason=miss_reason(r.reason, r.missed),
                count=r.count,
                nearest=rejection_words(r),
            )
            for r in found.rejected
        ],
        left_out=list(inputs.left_out),
        spot=inputs.spot,
        discount=inputs.owned.discount,
        own=inputs.owned.used,
        reasons=[_words(one) for one in found.reasons] or list(result.reasons),
    )


def _words(reason: "Reason") -> str:
    lost = sorted(choice_name(limit) for limit in reason.left_out_by)
    beyond = f"; {' and '.join(lost)} leave out what they would admit" if lost else ""
    return f"{reason.workload}: {reason.detail}{beyond}"


def _totals(found: "FleetPlan", plan: "HorizonPlan") -> FleetTotalsOut:
    problem, on_demand = found.problem, found.on_demand.plan
    total, present = plan.usd(problem), plan.present_usd(problem)
    owned = plan.committed_usd(problem, PURCHASE)
    hourly = hourly_present = None
    if on_demand is not None:
        bare = replace(problem, commitments=())
        hourly, hourly_present = on_demand.usd(bare), on_demand.present_usd(bare)
    return FleetTotalsOut(
        usd=usd(total),
        usd_per_month=usd(total / problem.months),
        purchase_usd=usd(owned),
        reserved_usd=usd(plan.committed_usd(problem) - owned),
        on_demand_part_usd=usd(plan.hourly_usd(problem, interruptible=False)),
        spot_usd=usd(plan.hourly_usd(problem, interruptible=True)),
        on_demand_usd=None if hourly is None else usd(hourly),
        saved_usd=None if hourly is None else usd(hourly - total),
        saved_fraction=None if not hourly else (hourly - total) / hourly,
        present_usd=usd(present),
        on_demand_present_usd=None if hourly_present is None else usd(hourly_present),
        saved_present_usd=None if hourly_present is None else usd(hourly_present - present),
        saved_present_fraction=None if not hourly_present else (hourly_present - present) / hourly_present,
    )


def _commitments(inputs: FleetInputs, found: "FleetPlan", plan: "HorizonPlan") -> list[CommitmentOut]:
    problem = found.problem
    used = _used_hours(problem, plan)
    answers = []
    for c, (nodes, one) in enumerate(zip(plan.commitments, problem.commitments, strict=True)):
        if not nodes:
            continue
        provider, region = _place(found, one.id)
        bought = inputs.owned.node(one.id, one.start_month)
        inside = min(one.end_month, problem.months) - one.start_month
        total = nodes * one.usd_per_node
        node = problem.node_types[one.node_type].machine
        answers.append(
            CommitmentOut(
                offer=one.id,
                provider=provider,
                region=region,
                commitment=one.kind,
                node=node,
                device=found.device_of(node),
                start_month=one.start_month,
                term_months=one.term_months,
                nodes=nodes,
                usd=usd(total),
                present_usd=usd(nodes * float(problem.present_usd_per_node[c])),
                usd_per_node_hour=usd(one.usd_per_node / (one.term_months * HOURS_PER_MONTH)),
                beyond_horizon_usd=usd(total * (one.term_months - inside) / one.term_months),
                used_fraction=min(1.0, used[c] / (nodes * inside * HOURS_PER_MONTH)),
                lines=None if bought is None else {line: usd(nodes * each) for line, each in bought.lines.items()},
            )
        )
    return answers


def _place(found: "FleetPlan", source: str) -> tuple[str, str]:
    """Provider and region of an offer or a purchase."""
    return found.places[source]


def _used_hours(problem: "HorizonProblem", plan: "HorizonPlan") -> dict[int, float]:
    """Node-hours of each commitment in use."""
    hours: defaultdict[int, float] = defaultdict(float)
    for period, choice in zip(problem.periods, plan.choices, strict=True):
        for c, nodes in _taken(problem, plan, period.month, choice.committed):
            hours[c] += nodes * period.hours
    return hours


def _taken(
    problem: "HorizonProblem", plan: "HorizonPlan", month: int, committed: tuple[int, ...]
) -> Iterable[tuple[int, int]]:
    """Which commitments the committed nodes in use belong to: in the problem's order."""
    left = list(committed)
    for c, (nodes, one) in enumerate(zip(plan.commitments, problem.commitments, strict=True)):
        if nodes and problem.live[c, month] and left[one.node_type]:
            taken = min(nodes, left[one.node_type])
            left[one.node_type] -= taken
            yield c, taken


def _deployment(found: "FleetPlan", d: int) -> FleetDeploymentOut:
    one = found.problem.deployments[d]
    configuration, away = found.configurations[one.key], found.network_s.get(one.key)
    layout, precision = configuration.layout, configuration.precision
    node = found.problem.node_types[one.node_type].machine
    return FleetDeploymentOut(
        id=d,
        workload=found.problem.workloads[one.workload],
        node=node,
        device=configuration.device.id,
        engine=configuration.engine.name,
        layout=LayoutIn(
            tensor_parallel=layout.tensor_parallel,
            pipeline_parallel=layout.pipeline_parallel,
            data_parallel=layout.data_parallel,
            expert_parallel=layout.expert_parallel,
        ),
        precision=PrecisionIn(weights=precision.weights, kv_cache=precision.kv_cache),
        requests_per_s=one.requests_per_s,
        nodes_per_replica=found.problem.spans(one),
        network_ms=None if away is None else away * 1e3,
        max_batched_tokens=configuration.engine.max_batched_tokens,
    )


def _periods(found: "FleetPlan", plan: "HorizonPlan") -> Iterable[PeriodOut]:
    problem = found.problem

    def nodes_of(offer: str, kind: str, count: int, spare: int = 0) -> PeriodNodesOut:
        provider, region = _place(found, offer)
        return PeriodNodesOut(offer=offer, provider=provider, region=region, commitment=kind, nodes=count, spare=spare)

    for period, choice in zip(problem.periods, plan.choices, strict=True):
        nodes = [
            nodes_of(problem.commitments[c].id, problem.commitments[c].kind, n)
            for c, n in _taken(problem, plan, period.month, choice.committed)
        ]
        spares = list(choice.spares)
        for n, offer in zip(choice.hourly, problem.hourly, strict=True):
            if n:
                spare = min(n, spares[offer.node_type]) if offer.interruptible else 0
                spares[offer.node_type] -= spare
                kind = "spot" if offer.interruptible else "on_demand"
                nodes.append(nodes_of(offer.id, kind, n, spare))
        rates = dict(zip(problem.workloads, period.requests_per_s, strict=True))
        for rate, work in zip(choice.batch_requests_per_s, problem.batch, strict=True):
            rates[problem.workloads[work.workload]] = rate
        yield PeriodOut(
            month=period.month,
            hours=period.hours,
            requests_per_s=rates,
            nodes=nodes,
            replicas=[
                PeriodReplicasOut(workload=problem.workloads[problem.deployments[d].workload], deployment=d, replicas=n)
                for d, n in enumerate(choice.replicas)
                if n
            ],
            usd_per_hour=usd(
                sum(n * offer.usd_per_hour for n, offer in zip(choice.hourly, problem.hourly, strict=True))
            ),
        )


def _alternatives(found: "FleetPlan") -> list[FleetAlternativeOut]:
    best = found.result.usd
    return [
        FleetAlternativeOut(
            why=why,
            usd=None if other.usd is None else usd(other.usd),
            bound_usd=None if other.bound_usd is None else usd(other.bound_usd),
            gap_fraction=other.gap_fraction,
            extra_usd=None if other.usd is None or best is None else usd(other.usd - best),
        )
        for why, other in (("without commitments", found.hourly), ("on demand only", found.on_demand))
    ]
