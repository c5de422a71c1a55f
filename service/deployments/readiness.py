"""How long further replicas take to answer, and what waits for them: whether none may stand by, and how many should."""

from decimal import Decimal
from math import ceil

from catalog.readiness import PARTS, readiness_of
from service.deployments.plan import DeploymentPlan, ReplicaKind
from service.wire.deployments import ReadinessOut, ReadinessPartOut, SpareReplicasOut

SECONDS_PER_MINUTE = 60.0
MS_PER_S = 1e3
BOUGHT = "purchase"


def readiness(plan: DeploymentPlan, ramp_requests_per_s_per_minute: float | None) -> list[ReadinessOut]:
    """For each kind of replica. ramp: how fast the demand of all workloads together may rise; shared out as their plan is."""
    planned = sum(kind.line.serves_requests_per_s for kind in plan.kinds)
    found = []
    for kind in plan.kinds:
        parts, missing = parts_of(kind)
        fast = sum(part.fast_s for part in parts)
        slow = None if missing else sum(part.slow_s for part in parts)
        spares = None
        if ramp_requests_per_s_per_minute is not None and slow is not None and planned > 0.0:
            share = kind.line.serves_requests_per_s / planned
            spares = spare_replicas(kind, share * ramp_requests_per_s_per_minute, slow)
        found.append(
            ReadinessOut(
                replicas=kind.name,
                parts=parts,
                unknown=missing,
                fast_s=fast,
                slow_s=slow,
                scale_to_zero=scale_to_zero(kind, slow),
                spares=spares,
            )
        )
    return found


def parts_of(kind: ReplicaKind) -> tuple[list[ReadinessPartOut], list[str]]:
    """What is known, in order, and the names of parts of which nothing is. An own machine need not be ordered."""
    parts: list[ReadinessPartOut] = []
    missing: list[str] = []
    for part in PARTS:
        if part == "node" and kind.line.commitment == BOUGHT:
            continue
        row = readiness_of(part, kind.line.engine)
        if row is None or (part == "weights" and kind.memory is None):
            missing.append(part)
            continue
        loaded = 0.0 if kind.memory is None else kind.memory.weights_bytes * kind.devices / kind.nodes
        fast, slow = row.range_s(loaded)
        parts.append(ReadinessPartOut(part=part, fast_s=fast, slow_s=slow, source=row.provenance.source))
    return parts, missing


def scale_to_zero(kind: ReplicaKind, slow_s: float | None) -> bool:
    """May the first request wait for a replica to start, by the workload's targets?"""
    targets = kind.workload.targets
    limits_ms = [*targets.ttft_ms.values(), *targets.e2e_ms.values(), *targets.ttfat_ms.values()]
    return not limits_ms or (slow_s is not None and min(limits_ms) / MS_PER_S >= slow_s)


def spare_replicas(kind: ReplicaKind, ramp_requests_per_s_per_minute: float, slow_s: float) -> SpareReplicasOut:
    """Replicas that stand by so that a rise is served while further ones start: ⌈rise in that time / a replica's rate⌉."""
    rise = ramp_requests_per_s_per_minute * slow_s / SECONDS_PER_MINUTE
    replicas = ceil(rise / kind.requests_per_s) if kind.requests_per_s > 0.0 else 0
    each = Decimal(kind.line.usd_per_hour) / max(1, kind.line.replicas)
    return SpareReplicasOut(replicas=replicas, usd_per_hour=each * replicas)
