"""From one stored plan to another: nodes rented and released, replicas started and stopped, and what it saves."""

import json
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from service.recommendations.fleet_of import OfferNodes, fleet_of
from service.recommendations.tables import RecommendationTable
from service.wire.deployment import LayoutIn, PrecisionIn
from service.wire.diff import DiffSideOut, NodesChangeOut, PlanDiffOut, ReplicasChangeOut, RoutingChangeOut
from service.wire.roles import StatedDraftIn

DEGREES = {"tensor_parallel": "TP", "pipeline_parallel": "PP", "data_parallel": "DP", "expert_parallel": "EP"}
PERCENT = 100.0
LEAST_SHARE_CHANGE = 0.005
"""Below this a routing is called the same: plans of equal cost divide traffic a little differently."""
SCHEDULER = ("max_batched_tokens", "max_sequences", "max_captured_tokens", "api_servers")
NOT_TOLD = 0
ReplicaKey = tuple[str, str, str, str, tuple[int, ...], str, str, str, float, float, tuple[int, ...]]
"""Workload, offer, device, engine, degrees, weights, KV cache, how it drafts as JSON (empty: not at all), GiB of the host's memory and
of its disks, and what the engine's server is told: tokens of its largest step, seats, tokens that are captured, processes that answer."""


def plan_diff(before: RecommendationTable, after: RecommendationTable) -> PlanDiffOut:
    """What changes on the way from ``before`` to ``after``; either may be infeasible."""
    nodes = nodes_changes(fleet_of(before.result), fleet_of(after.result))
    replicas = replicas_changes(before.result["plan"], after.result["plan"])
    routing = routing_changes(before.result["plan"], after.result["plan"])
    change = None
    if before.usd_per_hour is not None and after.usd_per_hour is not None:
        change = Decimal(after.usd_per_hour) - Decimal(before.usd_per_hour)
    same = not nodes and not replicas and not routing
    return PlanDiffOut(
        before=_side(before),
        after=_side(after),
        usd_per_hour_change=change,
        nodes=nodes,
        replicas=replicas,
        routing=routing,
        same=same,
        words=["nothing changes"] if same else [*_price_words(change), *_steps(nodes, replicas, routing)],
    )


def _steps(
    nodes: list[NodesChangeOut], replicas: list[ReplicasChangeOut], routing: list[RoutingChangeOut]
) -> list[str]:
    """What to do, in an order that serves all the while where machines are rented; else room is made first."""
    rented, released = [n for n in nodes if n.after > n.before], [n for n in nodes if n.after < n.before]
    started, stopped = [r for r in replicas if r.after > r.before], [r for r in replicas if r.after < r.before]
    if rented:
        new = [*nodes_words(rented), *_replica_words(started), *_routing_words(routing)]
        return [*new, *_replica_words(stopped), *nodes_words(released)]
    return [*_replica_words(stopped), *_replica_words(started), *_routing_words(routing), *nodes_words(released)]


def _side(row: RecommendationTable) -> DiffSideOut:
    return DiffSideOut(
        recommendation=row.id,
        outcome=row.outcome,
        usd_per_hour=row.usd_per_hour,
        nodes=sum(f.nodes for f in fleet_of(row.result).values()),
    )


def nodes_changes(before: Mapping[str, OfferNodes], after: Mapping[str, OfferNodes]) -> list[NodesChangeOut]:
    """Offers of which another number is rented, those with most change first."""
    changes = [
        NodesChangeOut(
            offer=offer,
            node=known.node,
            device=known.device,
            before=before[offer].nodes if offer in before else 0,
            after=after[offer].nodes if offer in after else 0,
        )
        for offer, known in sorted({**before, **after}.items())
    ]
    return sorted((c for c in changes if c.before != c.after), key=lambda c: -abs(c.after - c.before))


def replicas_changes(before: list[Mapping[str, Any]], after: list[Mapping[str, Any]]) -> list[ReplicasChangeOut]:
    """Ways of running a workload whose number of replicas differs, by workload."""
    counts = [_replicas(plan) for plan in (before, after)]
    return [
        ReplicasChangeOut(
            workload=key[0],
            offer=key[1],
            device=key[2],
            engine=key[3],
            layout=LayoutIn(**dict(zip(DEGREES, key[4], strict=True))),
            precision=PrecisionIn.model_validate({"weights": key[5], "kv_cache": key[6]}),
            speculative=StatedDraftIn.model_validate_json(key[7]) if key[7] else None,
            host_cache_gib=key[8],
            disk_cache_gib=key[9],
            **{name: tokens or None for name, tokens in zip(SCHEDULER, key[10], strict=True)},
            before=counts[0][key],
            after=counts[1][key],
        )
        for key in sorted(counts[0].keys() | counts[1].keys())
        if counts[0][key] != counts[1][key]
    ]


def _replicas(plan: list[Mapping[str, Any]]) -> Counter[ReplicaKey]:
    found: Counter[ReplicaKey] = Counter()
    for line in plan:
        found[_key(line)] += line["replicas"]
    return found


def _key(line: Mapping[str, Any]) -> ReplicaKey:
    degrees, precision = line["layout"], line["precision"]
    settings = line.get("engine_settings") or {}
    drafting = settings.get("speculative")
    return (
        line["workload"], line["offer"], line["device"], line["engine"], tuple(degrees[d] for d in DEGREES),
        precision["weights"], precision["kv_cache"], json.dumps(drafting, sort_keys=True) if drafting else "",
        settings.get("host_cache_gib") or 0.0, settings.get("disk_cache_gib") or 0.0,
        tuple(settings.get(name) or NOT_TOLD for name in SCHEDULER),
    )  # fmt: skip


def routing_changes(before: list[Mapping[str, Any]], after: list[Mapping[str, Any]]) -> list[RoutingChangeOut]:
    """Traffic classes of which other replicas take another share, by workload and class."""
    shares = [_shares(plan) for plan in (before, after)]
    return [
        RoutingChangeOut(
            workload=key[0],
            traffic_class=name,
            offer=key[1],
            device=key[2],
            layout=LayoutIn(**dict(zip(DEGREES, key[4], strict=True))),
            precision=PrecisionIn.model_validate({"weights": key[5], "kv_cache": key[6]}),
            max_batched_tokens=key[10][0] or None,
            before_fraction=min(1.0, shares[0].get((key, name), 0.0)),
            after_fraction=min(1.0, shares[1].get((key, name), 0.0)),
        )
        for key, name in sorted(shares[0].keys() | shares[1].keys(), key=lambda pair: (pair[0][0], pair[1], pair[0]))
        if abs(shares[0].get((key, name), 0.0) - shares[1].get((key, name), 0.0)) >= LEAST_SHARE_CHANGE
    ]


def _shares(plan: list[Mapping[str, Any]]) -> dict[tuple[ReplicaKey, str], float]:
    found: dict[tuple[ReplicaKey, str], float] = {}
    for line in plan:
        for one in line.get("classes", ()):
            place = _key(line), one["traffic_class"]
            found[place] = found.get(place, 0.0) + one["share_fraction"]
    return found


def _price_words(change: Decimal | None) -> list[str]:
    if change is None:
        return []
    if not change:
        return ["the price stays the same"]
    return [f"{'saves' if change < 0 else 'costs'} {abs(change):,.2f} USD an hour{'' if change < 0 else ' more'}"]


def nodes_words(changes: list[NodesChangeOut]) -> list[str]:
    """
    >>> nodes_words([NodesChangeOut(offer="aws:x", node="p5", device="h100-sxm", before=3, after=1)])
    ['release 2 of 3 p5 nodes (h100-sxm) at aws:x']
    >>> nodes_words([NodesChangeOut(offer="aws:x", node="p5", device="h100-sxm", before=0, after=1)])
    ['rent 1 p5 node (h100-sxm) at aws:x']
    """
    words = []
    for c in changes:
        size = abs(c.after - c.before)
        of = f" of {c.before}" if c.after and c.before > c.after else ""
        total = c.before if of else size
        noun = f"{c.node} node{'' if total == 1 else 's'} ({c.device}) at {c.offer}"
        verb = "rent" if c.after > c.before else "release"
        words.append(f"{verb} {size}{' more' if c.before and c.after > c.before else of} {noun}")
    return words


def _routing_words(changes: list[RoutingChangeOut]) -> list[str]:
    return [
        f"{c.workload}: {c.traffic_class} from {PERCENT * c.before_fraction:.3g} to {PERCENT * c.after_fraction:.3g} %"
        f" on {_layout_words(c.layout)}, weights {c.precision.weights}, {c.device} at {c.offer}{_steps_words(c)}"
        for c in changes
    ]


def _steps_words(change: ReplicasChangeOut | RoutingChangeOut) -> str:
    return f", steps of at most {change.max_batched_tokens:,} tokens" if change.max_batched_tokens else ""


def _layout_words(layout: LayoutIn) -> str:
    degrees = layout.model_dump()
    return " ".join(f"{DEGREES[d]}{degrees[d]}" for d in DEGREES if degrees[d] > 1) or "TP1"


def _replica_words(changes: list[ReplicasChangeOut]) -> list[str]:
    words = []
    for c in changes:
        how = f"{_layout_words(c.layout)}, weights {c.precision.weights}, KV {c.precision.kv_cache}, {c.device} at {c.offer}"
        how += "" if c.speculative is None else f", drafting {c.speculative.draft_tokens} tokens a step"
        how += f", {c.host_cache_gib:g} GiB of the host beside each device" if c.host_cache_gib else ""
        how += f", {c.disk_cache_gib:g} GiB of disk for each" if c.disk_cache_gib else ""
        how += _steps_words(c)
        how += f", {c.max_sequences:,} seats" if c.max_sequences else ""
        how += f", graphs of at most {c.max_captured_tokens:,} tokens" if c.max_captured_tokens else ""
        how += f", {c.api_servers} processes that answer" if (c.api_servers or 1) > 1 else ""
        size = abs(c.after - c.before)
        words.append(f"{c.workload}: {'start' if c.after > c.before else 'stop'} {size} × {how}")
    return words
