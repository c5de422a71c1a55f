"""A fair comparison: every alternative serves the same workloads to the same targets, or is refused with the reason."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from service.problems import FieldError, InvalidFieldsError
from service.recommendations.catalog_snapshot import CatalogSnapshot
from service.recommendations.check import impossible_lengths
from service.recommendations.from_rows import traffic_from_wire
from service.recommendations.plan import PlanningInputs
from service.recommendations.tables import RecommendationTable
from service.tco.stored_plan import StoredPlan, stored_plan
from service.wire.recommendations import LimitsIn, RecommendationIn, ResultOut, WorkloadIn
from service.wire.tco import AlternativeIn, ComparisonIn
from solver.hardware import Offer
from solver.tco.errors import CostInputError
from solver.tco.tokens import TokenDemand

SAME = ("llm", "context_tokens", "traffic", "traffic_classes", "requests_per_s", "targets")
"""What must agree. Precision and head room are a plan's own choice."""
FLEET_PROVIDER = "fleet"


def usable_recommendations(asked: ComparisonIn, stored: Mapping[str, RecommendationTable]) -> dict[str, StoredPlan]:
    """Plans by id. Raises InvalidFieldsError for unknown, infeasible or partly serving recommendations."""
    errors: list[FieldError] = []
    usable: dict[str, StoredPlan] = {}
    for position, alternative in enumerate(asked.alternatives):
        wanted = alternative.recommendation
        if wanted is None:
            continue
        pointer = f"/alternatives/{position}/recommendation"
        row = stored.get(wanted)
        if row is None:
            errors.append(FieldError(f"no recommendation {wanted[:80]!r}", pointer=pointer))
            continue
        usable[wanted] = stored_plan(row)
        reason = _unusable(usable[wanted])
        if reason is not None:
            errors.append(FieldError(f"{alternative.name!r} cannot serve the workload: {reason}", pointer=pointer))
    if errors:
        raise InvalidFieldsError(errors)
    return usable


def _unusable(plan: StoredPlan) -> str | None:
    if plan.outcome == "infeasible":
        return f"the recommendation is infeasible ({'; '.join(plan.reasons) or 'no plan meets the targets'})"
    if plan.by_published_speeds:
        return "part of its plan rests on published speeds, which comparisons of costs do not know: compare an `api` instead"
    if not plan.lines:
        return "the recommendation has no plan"
    if plan.served_fraction is None:
        carries = "" if plan.serves_requests_per_s is None else f" (this plan carries {plan.serves_requests_per_s:.4g})"
        return (
            "its workloads state no rate of requests, so that nothing says what the others would have to serve: plan them with "
            f"traffic.requests_per_s{carries}"
        )
    if plan.served_fraction < 1.0:
        return f"its plan serves {plan.served_fraction:.1%} of the traffic"
    return None


def agreed_workloads(asked: ComparisonIn, plans: Mapping[str, StoredPlan]) -> Sequence[WorkloadIn]:
    """The one list of workloads that every alternative is about. Raises InvalidFieldsError where two differ, or no lengths are
    as one states."""
    agreed: Sequence[WorkloadIn] | None = asked.workloads
    origin = "workloads"
    errors = [one for n, workload in enumerate(asked.workloads or ()) for one in impossible_lengths(workload, n)]
    for position, alternative in enumerate(asked.alternatives):
        if alternative.recommendation is None:
            continue
        own = plans[alternative.recommendation].workloads
        if agreed is None:
            agreed, origin = own, repr(alternative.name)
        difference = _difference(agreed, own)
        if difference is not None:
            errors.append(
                FieldError(
                    f"{alternative.name!r} does not serve the same workload as {origin}: {difference}",
                    pointer=f"/alternatives/{position}/recommendation",
                )
            )
    if errors:
        raise InvalidFieldsError(errors)
    if agreed is None:
        raise InvalidFieldsError([FieldError("needed unless a recommendation brings them", pointer="/workloads")])
    return agreed


def _difference(first: Sequence[WorkloadIn], second: Sequence[WorkloadIn]) -> str | None:
    if len(first) != len(second):
        return f"{len(first)} against {len(second)} workloads"
    for one, other in zip(
        sorted(first, key=lambda w: (w.llm, w.name)), sorted(second, key=lambda w: (w.llm, w.name)), strict=True
    ):
        for field in SAME:
            if getattr(one, field) != getattr(other, field):
                return f"{field} of {one.name!r} and {other.name!r} differ"
    return None


def token_demand(workloads: Sequence[WorkloadIn]) -> TokenDemand:
    """All streams together: requests add up, tokens of a request are their mean.

    Raises CostInputError for images: how many tokens they are depends on the model.
    """
    streams = [stream for workload in workloads for stream in workload.streams]
    requests = sum(stream.requests_per_s for stream in streams)
    tokens_in = tokens_out = cached = 0.0
    for stream in streams:
        if stream.shape.media is not None:
            raise CostInputError(
                "workloads",
                "costs of workloads with images, video or audio are not compared: state them as prompt_tokens",
            )
        traffic = traffic_from_wire(stream.shape)
        prompt = stream.requests_per_s * traffic.prompt.mean
        tokens_in += prompt
        cached += prompt * traffic.shared_prefix_fraction
        tokens_out += stream.requests_per_s * traffic.output.mean
    return TokenDemand(
        requests_per_s=requests,
        input_tokens=tokens_in / requests,
        output_tokens=tokens_out / requests,
        cached_fraction=cached / tokens_in if tokens_in else 0.0,
    )


def fleet_planning(
    alternative: AlternativeIn, workloads: Sequence[WorkloadIn], inputs: PlanningInputs, position: int
) -> PlanningInputs:
    """The question whether an explicit fleet can serve the workloads, as a plan with nothing else to rent.

    Raises InvalidFieldsError for nodes whose devices lack a figure that planning needs.
    """
    snapshot = inputs.snapshot
    offers = []
    for number, part in enumerate(alternative.fleet or []):
        node = snapshot.nodes.get(part.node)
        if node is None:
            pointer = f"/alternatives/{position}/fleet/{number}/node"
            raise InvalidFieldsError(
                [FieldError(f"{part.node!r} cannot be planned with: {_why(snapshot)}", pointer=pointer)]
            )
        offers.append(
            Offer(
                id=_offer_id(number),
                node=node,
                provider=FLEET_PROVIDER,
                region="own",
                commitment="on_demand",
                usd_per_hour=1.0,  # any price: only whether a plan exists is asked
                max_nodes=part.count,
            )
        )
    request = RecommendationIn(
        workloads=tuple(workloads), limits=LimitsIn(commitments=None, sourcing="any"), alternatives=0
    )
    own = replace(
        snapshot,
        offers=tuple(offers),
        offer_ids=frozenset(o.id for o in offers),
        providers=frozenset((FLEET_PROVIDER,)),
        regions=frozenset(("own",)),
    )
    return replace(inputs, request=request, snapshot=own)


def _offer_id(number: int) -> str:
    return f"{FLEET_PROVIDER}:{number}:own:on_demand"


def _why(snapshot: CatalogSnapshot) -> str:
    figures = sorted(set(snapshot.refused.values()))
    return f"its device lacks a figure (one of {', '.join(figures)})" if figures else "its device lacks a figure"


def check_fleet(
    alternative: AlternativeIn, position: int, planning: PlanningInputs, plan: Callable[[PlanningInputs], ResultOut]
) -> ResultOut:
    """The plan on these nodes. Raises InvalidFieldsError with the planner's reason when they cannot serve the workloads."""
    result = plan(planning)
    if result.outcome != "infeasible":
        return result
    detail = f"{alternative.name!r} cannot serve the workload: {_reason(result)}"
    raise InvalidFieldsError([FieldError(detail, pointer=f"/alternatives/{position}/fleet")])


def _reason(result: ResultOut) -> str:
    """The planner's reason: what contradicts, and the smallest changes that would do."""
    because = [f"{conflict.detail} ({', '.join(map(_as_stated, conflict.limits))})" for conflict in result.conflicts]
    enough = [
        f"{_as_stated(change.limit)} of {_shown(change.relaxing_to)} would do"
        for change in result.relaxations
        if change.relaxing_to is not None
    ]
    return "; ".join([*because, *enough]) or "no layout meets the targets"


def _as_stated(limit: str) -> str:
    """A limit of the plan by the field of the alternative that states it.

    >>> [_as_stated(one) for one in ("offers.max_nodes", f"offers.{_offer_id(2)}.max_nodes", "traffic.requests_per_s")]
    ['fleet.count', 'fleet.2.count', 'traffic.requests_per_s']
    """
    of_offers, count = "offers.", "max_nodes"
    if not limit.startswith(of_offers):
        return limit
    named = limit.removeprefix(of_offers).removesuffix(count).removesuffix(".")
    return f"fleet.{named.split(':')[1]}.count" if named else "fleet.count"


def _shown(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"
