"""Limits as the API spells them, and their values in its units: what the solver names in its own nouns."""

import math
from collections.abc import Sequence

from service.figures import readable
from solver.candidates.rejections import ABOVE_TARGET, Rejection, TargetMiss
from solver.limit import Limit, LimitKind, TargetLimit, TargetMetric
from solver.planning.types import PlanningInput
from solver.workload import PERCENTILES, Workload

MS_PER_S, W_PER_KW = 1e3, 1e3
MICRO_DOLLARS = 1e6
ROUNDING = 1e-6
"""Of a micro-dollar: what sums of prices are off by."""
DIGITS = 15
"""Of a value that went from the API's unit to the solver's and back: what rounding leaves of what was asked."""

FIELDS: dict[TargetMetric, str] = {
    "time_to_first_token_s": "ttft_ms",
    "time_per_output_token_s": "tpot_ms",
    "end_to_end_s": "e2e_ms",
    "time_to_first_answer_s": "ttfat_ms",
}
OF_THE_FLEET = {
    LimitKind.BUDGET: "limits.max_usd_per_hour",
    LimitKind.POWER: "limits.max_power_kw",
    LimitKind.SPOT_SHARE: "limits.max_spot_fraction",
    LimitKind.SPARE_NODES: "limits.spare_nodes",
    LimitKind.NODES_UNLESS_STATED: "limits.max_nodes_per_offer",
    LimitKind.ALL_TARGETS: "targets (all, times a factor)",
}
PLACES_USED = {"provider": "max_providers", "region": "max_regions", "device": "max_device_types"}


def target_name(target: TargetLimit) -> str:
    """As the request spells it.

    >>> target_name(TargetLimit("time_to_first_token_s", "p95"))
    'targets.ttft_ms.p95'
    """
    return f"targets.{FIELDS[target.metric]}.{target.percentile}"


def target_of(name: str) -> TargetLimit:
    """The target that ``targets.ttft_ms.p95`` and the like name.

    >>> target_of("targets.tpot_ms.mean")
    TargetLimit(metric='time_per_output_token_s', percentile='mean')
    """
    _, field, stated = name.split(".")
    metric = next(metric for metric, spelt in FIELDS.items() if spelt == field)
    return TargetLimit(metric, next(p for p in PERCENTILES if p == stated))


def limit_name(planning: PlanningInput, limit: Limit) -> str:
    """A limit's field within the request, or within its workload where it is one's."""
    workloads, limits = planning.workloads, planning.limits
    match limit.kind:
        case LimitKind.TARGET:
            assert limit.target is not None
            prefix = f"traffic_classes.{limit.traffic_class}." if limit.traffic_class else ""
            return prefix + target_name(limit.target)
        case LimitKind.RATE:
            return (
                "traffic_classes.requests_per_s"
                if workloads[limit.workload].classes[0].name is not None
                else "traffic.requests_per_s"
            )
        case LimitKind.MIN_REPLICAS:
            return "min_replicas"
        case LimitKind.UTILISATION:
            return "utilisation_limit_fraction"
        case LimitKind.ADMITTED_OFFERS:
            return " and ".join(stated_places(workloads[limit.workload]))
        case LimitKind.QUOTA:
            return f"limits.quotas.{limit.of}" if limit.of else "limits.quotas"
        case LimitKind.LOSSES:
            return f"limits.fault_tolerance.{limit.of}s"
        case LimitKind.NODES:
            return _number_name(limit.of, limits.numbered_offers)
        case LimitKind.PLACES_USED:
            return f"limits.sourcing.{PLACES_USED[limit.of]}"
        case LimitKind.CHOICE | LimitKind.BUYING_RULE:
            return choice_name(limit)
        case LimitKind.SPARE_NODES if (
            limits.fault_tolerance.nodes > limits.spare_nodes
        ):  # two names: the one that asked for more
            return "limits.fault_tolerance.nodes"
        case _:
            return OF_THE_FLEET[limit.kind]


def _number_name(offer: str, numbered: frozenset[str]) -> str:
    """How many nodes of an offer there are, or of all that say so themselves: of the request, or of who stored the offer.

    >>> _number_name("us:rig:hall:on_demand", frozenset()), _number_name("us:rig:hall:on_demand", frozenset({"us:rig:hall:on_demand"}))
    ('offers.us:rig:hall:on_demand.max_nodes', 'limits.offers.us:rig:hall:on_demand.max_nodes')
    """
    if not offer:
        return "limits.offers" if numbered else "offers.max_nodes"
    return f"{'limits.' if offer in numbered else ''}offers.{offer}.max_nodes"


def choice_name(limit: Limit) -> str:
    """A choice or rule that leaves offers out.

    >>> choice_name(Limit(LimitKind.CHOICE, "regions")), choice_name(Limit(LimitKind.BUYING_RULE, "named_place"))
    ('limits.regions', 'limits.sourcing.named_place')
    """
    if limit.kind is LimitKind.CHOICE:
        return f"limits.{limit.of}"
    return f"limits.sourcing.{limit.of}" if limit.of else "limits.sourcing"


def stated_places(workload: Workload) -> tuple[str, ...]:
    """The choices of places that a workload states."""
    places = workload.places
    chosen = {
        "regions": places.only_regions is not None or places.never_regions,
        "providers": places.only_providers is not None or places.never_providers,
    }
    return tuple(name for name, stated in chosen.items() if stated)


def workload_name(planning: PlanningInput, limit: Limit) -> str | None:
    """Whose limit it is; None where it is the fleet's."""
    return planning.workloads[limit.workload].name if limit.workload >= 0 else None


def names_in_conflict(planning: PlanningInput, limit: Limit) -> list[str]:
    """A limit's fields by their whole path; what any workload asks to be served has one name for all of them."""
    if limit.kind is LimitKind.CANDIDATES:
        return ["limits", "workloads"]
    whose = workload_name(planning, limit)
    if whose is None or limit.kind is LimitKind.RATE:
        return [limit_name(planning, limit)]
    fields = (
        stated_places(planning.workloads[limit.workload])
        if limit.kind is LimitKind.ADMITTED_OFFERS
        else (limit_name(planning, limit),)
    )
    return [f"workloads.{whose}.{field}" for field in fields]


def conflict_words(limits: Sequence[Limit], *, any_one: bool) -> str:
    """What it means that these limits cannot hold together."""
    match limits[0].kind:
        case LimitKind.CANDIDATES:
            return "no device among the allowed offers can run the model at all"
        case LimitKind.RATE:
            return "the demand is above what all allowed offers together can serve"
        case _ if any_one and len(limits) == 1:
            return "this limit alone leaves no plan; without it there is one"
        case _ if any_one:
            return "these limits together leave no plan; any one lifted leaves one"
        case _ if len(limits) == 1:
            return "this limit leaves no plan, whatever the others are"
        case _:
            return "these limits together leave no plan, whatever the others are"


def in_milliseconds(seconds: float) -> float:
    """Without the digits that rounding left.

    >>> in_milliseconds(0.0551)
    55.1
    """
    return float(f"{seconds * MS_PER_S:.{DIGITS}g}")


def stated_value(limit: Limit, value: float | None) -> float | None:
    """A limit's value in the API's unit."""
    match limit.kind:
        case LimitKind.TARGET:
            return None if value is None else in_milliseconds(value)
        case LimitKind.POWER:
            return None if value is None else value / W_PER_KW
        case _:
            return value


def relaxed_value(limit: Limit, value: float | None) -> float | str:
    """What a limit may be relaxed to, as a request takes it: budgets have six decimals, and enough is no less.

    >>> relaxed_value(Limit(LimitKind.BUDGET), 89.33000000000001), relaxed_value(Limit(LimitKind.BUDGET), 89.3300004)
    (89.33, 89.330001)
    >>> relaxed_value(Limit(LimitKind.CHOICE, "commitments"), None), relaxed_value(Limit(LimitKind.BUYING_RULE), None)
    ('on_demand', 'any')
    """
    if value is None:
        return "on_demand" if limit == Limit(LimitKind.CHOICE, "commitments") else "any"
    if limit.kind is LimitKind.BUDGET:
        return math.ceil(value * MICRO_DOLLARS - ROUNDING) / MICRO_DOLLARS
    stated = stated_value(limit, value)
    assert stated is not None
    return stated


def miss_reason(reason: str, missed: TargetMiss | None) -> str:
    """A reason with the latency it is about: ``ttft_above_target``."""
    return f"{_short(missed.target.metric)}_{ABOVE_TARGET}" if missed is not None else reason


def rejection_words(rejection: Rejection) -> str:
    """How near the nearest candidate came, or what stopped it."""
    missed = rejection.missed
    if missed is None:
        return rejection.detail
    return (
        f"{missed.target.percentile} {_short(missed.target.metric).upper()} {missed.best_s * MS_PER_S:.0f} ms at"
        f" TP{missed.layout.tensor_parallel}{_stages(missed)}, {missed.weights} (target {missed.target_s * MS_PER_S:.0f} ms)"
    )


def miss_words(missed: TargetMiss) -> str:
    """By how much a target is missed at best, and where."""
    device = missed.device_id if missed.partition is None else f"{missed.device_id} ({missed.partition})"
    return (
        f"{missed.target.percentile} {_short(missed.target.metric).upper()} is {readable(missed.best_s * MS_PER_S)} ms at best"
        f" ({device}, TP{missed.layout.tensor_parallel}{_stages(missed)}, {missed.weights}),"
        f" {readable(100.0 * (missed.ratio - 1.0))} % above the target of {readable(missed.target_s * MS_PER_S)} ms"
    )


def _short(metric: TargetMetric) -> str:
    return FIELDS[metric].removesuffix("_ms")


def _stages(missed: TargetMiss) -> str:
    stages = missed.layout.pipeline_parallel
    return f" PP{stages}" if stages > 1 else ""
