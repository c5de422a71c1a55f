"""The lines of a plan with pools, each with its prediction."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from solver.corrections.sets import configuration_correction, pool_correction
from solver.errors import SaturatedError
from solver.fleet.phases.formulation import RolesPlan
from solver.planning.assemble import admitted_requests
from solver.planning.types import PlanEntry
from solver.prediction.disaggregated import estimate_disaggregated
from solver.prediction.estimate import Estimate, PredictedInterval, estimate
from solver.recommend.disaggregation_confirm import (
    MOST_PARTNERS,
    PlacedRole,
    PoolSearch,
    partners_of,
    placed_roles,
    serving_pool,
)
from solver.workload import Load

PREDICTION_REQUESTS = 500


def pool_entries(search: PoolSearch, plan: RolesPlan, *, predict: bool = True) -> tuple[PlanEntry, ...]:
    """Named entries, pools of one exchange side by side. A node shared by several entries is split by devices used."""
    placed = placed_roles(search, plan)
    devices = {(p.candidate, p.offer.id): _devices(search, p) * p.replicas for p in placed}
    used: dict[str, int] = defaultdict(int)
    for (_, offer_id), count in devices.items():
        used[offer_id] += count
    order = {"aggregated": 0, "prefill": 1, "decode": 2}
    entries = []
    for one in sorted(placed, key=lambda p: (p.candidate[0], p.exchange, order[p.candidate[2]], p.offer.id)):
        w, row, role = one.candidate
        screened, nodes = search.assembly.screened[w], plan.nodes[one.offer.id]
        share = devices[one.candidate, one.offer.id] / used[one.offer.id]
        capacity = _capacity(search, one)
        found = _prediction(search, placed, one) if predict else None
        host_w = 0.0 if math.isnan(one.offer.node.host_power_w) else one.offer.node.host_power_w
        watts = found.power_w.expected * one.replicas if found is not None else 0.0
        configuration = screened.space.configuration(row)
        entries.append(
            PlanEntry(
                workload=screened.workload.name,
                offer=one.offer,
                nodes=max(1, round(nodes * share)) if share < 1.0 else nodes,
                replicas=one.replicas,
                configuration=configuration,
                max_concurrency=admitted_requests(configuration),
                serves_requests_per_s=one.requests_per_s,
                capacity_requests_per_s=capacity * one.replicas,
                utilisation_fraction=one.requests_per_s / one.replicas / max(capacity, 1e-12),
                usd_per_hour=one.offer.usd_per_hour * nodes * share,
                power_w=(watts if math.isfinite(watts) else 0.0) + host_w * nodes * share,
                estimate=found,
                role=role,
            )
        )
    return tuple(entries)


def _devices(search: PoolSearch, placed: PlacedRole) -> int:
    w, row, _ = placed.candidate
    return int(search.assembly.screened[w].space.devices_per_replica[row])


def _capacity(search: PoolSearch, placed: PlacedRole) -> float:
    """What one replica carries: as simulated, else as the plan asks of it at least."""
    w, row, role = placed.candidate
    if role == "aggregated":
        table = search.assembly.problem.deployments
        mine = (search.assembly.workload_of == w) & (search.assembly.row_of == row)
        return float(table.capacity_requests_per_s[mine, 0].max())
    return search.known.get(placed.candidate, max(search.holds.get(placed.candidate, 0.0), placed.rate))


def _prediction(search: PoolSearch, placed: Sequence[PlacedRole], one: PlacedRole) -> Estimate | None:
    """Of an aggregated replica as of any; of a pool, the latencies of both together, and its own share of rate and power."""
    w, row, role = one.candidate
    screened, planning = search.assembly.screened[w], search.planning
    traffic = screened.workload.traffic
    own = screened.space.configuration(row)
    per_replica = one.requests_per_s / one.replicas
    if role == "aggregated":
        correction = configuration_correction(planning.corrections, own)
        load = Load("open", requests_per_s=per_replica)
        return estimate(own, traffic, load, correction)
    partner = partners_of(placed, one)[0]
    other_rate = partner.requests_per_s / partner.replicas
    beside = min(MOST_PARTNERS, max(1, round(per_replica / other_rate)))
    alone = min(MOST_PARTNERS, max(1, round(other_rate / per_replica)))
    mine, theirs = serving_pool(search, one, alone), serving_pool(search, partner, beside)
    pools = (mine, theirs) if role == "prefill" else (theirs, mine)
    corrections = tuple(pool_correction(planning.corrections, pool.configuration) for pool in pools)
    load = Load("open", requests_per_s=per_replica * alone)
    try:
        found = estimate_disaggregated(
            *pools, "network", traffic, load, (corrections[0], corrections[1]), requests=PREDICTION_REQUESTS
        )
    except SaturatedError:
        return None
    part = found.prefill if role == "prefill" else found.decode

    def each(value: PredictedInterval) -> PredictedInterval:
        return PredictedInterval(value.expected / alone, value.low / alone, value.high / alone)

    return replace(
        found.whole, output_tokens_per_s=each(found.whole.output_tokens_per_s), power_w=each(part.power_w),
        requests_per_s=each(found.whole.requests_per_s),
    )  # fmt: skip
