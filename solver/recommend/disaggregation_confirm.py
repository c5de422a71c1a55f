"""Confirms plans with pools by simulation: both pools and the transfer between them, at the planned rates."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from solver.capacity.goal import Goal
from solver.capacity.sustained_rate import carries
from solver.confirmation.confirmations import (
    CLOSE_ENOUGH,
    LARGEST_STEP,
    RATE_RESOLUTION,
    STEP_WHEN_SATURATED,
    Confirmations,
)
from solver.deployment.kv_transfer import ServingPool, kv_link
from solver.errors import FigureMissingError, InvalidInputError, SaturatedError
from solver.fleet.phases.formulation import Role, RolesPlan
from solver.fleet.problem import OfferSlot
from solver.hardware import Offer
from solver.planning.assemble import Assembly
from solver.planning.types import PlanningInput
from solver.replay.disaggregated import replay_disaggregated
from solver.replay.long_run import LongRun, draw_requests, enough_draws
from solver.replay.one_stream import Replay
from solver.workload import Load, Targets, fixed_lengths

Floats = NDArray[np.float64]
Candidate = tuple[int, int, Role]
"""(workload, row of its space, role)."""

MOST_TRIES = 8
MOST_PARTNERS = 64
"""Replicas of the other role simulated beside one whose capacity is looked for: as many as it needs, up to this."""


@dataclass(slots=True)
class PoolSearch:
    """What is known while plans with pools are looked for. screened_rates: by (workload, role), one for each row."""

    planning: PlanningInput
    assembly: Assembly
    offers: Mapping[str, Offer]
    slots: tuple[OfferSlot, ...]
    screened_rates: dict[tuple[int, Role], Floats]
    confirmations: Confirmations
    known: dict[Candidate, float] = field(default_factory=dict)
    holds: dict[Candidate, float] = field(default_factory=dict)
    keys: list[Candidate] = field(default_factory=list)
    rounds: int = 0
    simulations: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class PlacedRole:
    """Replicas of one candidate on one offer with their traffic; rate: of one replica, over the utilisation limit."""

    candidate: Candidate
    offer: Offer
    replicas: int
    requests_per_s: float
    rate: float
    exchange: tuple[str, ...]


def placed_roles(search: PoolSearch, plan: RolesPlan) -> list[PlacedRole]:
    found = []
    for (key, offer_id), replicas in sorted(plan.replicas.items()):
        w, row, role = search.keys[key]
        one, offer = search.assembly.screened[w], search.offers[offer_id]
        rate = plan.requests_per_s[key, offer_id]
        platform = one.space.platforms[int(one.space.platform_index[row])]
        exchange = (
            offer.provider,
            offer.region,
            str(one.space.kv_formats[row]),
            platform.engine,
            platform.device.vendor,
        )
        limit = one.workload.utilisation_limit_fraction
        found.append(PlacedRole((w, row, role), offer, replicas, rate, rate / replicas / limit, exchange))
    return found


def has_pools(search: PoolSearch, plan: RolesPlan) -> bool:
    return any(search.keys[key][2] == "decode" for key, _ in plan.replicas)


def partners_of(placed: Sequence[PlacedRole], one: PlacedRole) -> list[PlacedRole]:
    """The other role's replicas in reach, those with most traffic first."""
    w, _, role = one.candidate
    other = "decode" if role == "prefill" else "prefill"
    reach = [p for p in placed if p.candidate[0] == w and p.candidate[2] == other and p.exchange == one.exchange]
    return sorted(reach, key=lambda p: -p.requests_per_s)


def serving_pool(search: PoolSearch, placed: PlacedRole, replicas: int) -> ServingPool:
    w, row, _ = placed.candidate
    return ServingPool(search.assembly.screened[w].space.configuration(row), replicas, placed.offer.node)


def failures(search: PoolSearch, plan: RolesPlan) -> dict[Candidate, float]:
    """Capacities of chosen replicas that do not hold theirs in simulation.

    Prefill comes first: a decode replica is simulated behind prefill replicas that hold their rates, else in a later round.
    """
    placed = placed_roles(search, plan)
    failed: dict[Candidate, float] = {}
    for one in sorted(placed, key=lambda p: p.candidate[2] == "decode"):
        w, row, role = one.candidate
        if one.candidate in failed or one.rate <= 0.0:
            continue
        if role == "aggregated":
            # A row of the aggregated assembly: its capacity is corrected there, for later rounds too.
            candidate = search.assembly.screened[w].candidate(row)
            before = candidate.runs.simulations
            bracket = candidate.bracket(carries(one.rate * (1.0 - 1e-9)))
            search.simulations += candidate.runs.simulations - before
            if bracket.holds < one.rate * (1.0 - 1e-9):
                failed[one.candidate] = bracket.at_most
                _correct_aggregated(search, w, row, bracket.at_most)
            continue
        partners = partners_of(placed, one)
        if role == "decode" and any(p.candidate in failed for p in partners):
            continue
        held = _largest_rate(search, one, partners)
        if held < one.rate * (1.0 - 1e-9):
            failed[one.candidate] = held
    return failed


def _correct_aggregated(search: PoolSearch, w: int, row: int, capacity: float) -> None:
    table = search.assembly.problem.deployments
    rates = table.capacity_requests_per_s.copy()
    rates[(search.assembly.workload_of == w) & (search.assembly.row_of == row), 0] = capacity
    changed = replace(search.assembly.problem, deployments=replace(table, capacity_requests_per_s=rates))
    search.assembly = replace(search.assembly, problem=changed)


def _largest_rate(search: PoolSearch, one: PlacedRole, partners: Sequence[PlacedRole]) -> float:
    """The planned rate where the role's target holds at it in simulation, else the largest found below it (0: none).

    A prefill replica makes first tokens only, which is all its target is about; a decode replica is simulated behind as
    many prefill replicas as feed it, over the slowest link among those that do.
    """
    key = one.candidate
    if one.rate <= search.holds.get(key, 0.0):
        return one.rate
    partner = partners[0]
    if key[2] == "decode":
        partner = min(partners, key=lambda p: p.offer.node.network_bytes_per_s / p.offer.node.devices)

    def ratio(rate: float) -> float:
        return _ratio(search, one, partner, rate)

    held = _false_position(ratio, one.rate, search.holds.get(key, 0.0))
    search.holds[key] = max(held, search.holds.get(key, 0.0))
    return held


def _false_position(ratio: Callable[[float], float], high: float, low: float) -> float:
    """The largest rate with ratio ≤ 1, at most ``high`` and at least ``low``, to RATE_RESOLUTION: values grow with the rate."""
    found = ratio(high)
    if found <= 1.0:
        return high
    best, best_ratio = low, CLOSE_ENOUGH
    for _ in range(MOST_TRIES):
        if best <= 0.0:
            guess = high * (STEP_WHEN_SATURATED if math.isinf(found) else max(LARGEST_STEP, found**-1.0))
        elif math.isinf(found):
            guess = (best + high) / 2.0
        else:
            share = -math.log(best_ratio) / (math.log(found) - math.log(best_ratio))
            guess = best + min(max(share, 0.1), 0.9) * (high - best)
        value = ratio(guess)
        if value <= 1.0:
            best, best_ratio = guess, max(value, 1e-6)
            if value >= CLOSE_ENOUGH:
                break
        else:
            high, found = guess, value
        if best > 0.0 and high - best <= RATE_RESOLUTION * high:
            break
    return best


def _ratio(search: PoolSearch, one: PlacedRole, partner: PlacedRole, rate: float) -> float:
    """Worst simulated value of the role's own target over it at this rate of one replica; infinite above its capacity."""
    w, row, role = one.candidate
    screened = search.assembly.screened[w]
    targets = screened.workload.targets
    own, traffic, beside = Targets(time_to_first_token_s=targets.time_to_first_token_s), screened.workload.traffic, 1
    if role == "prefill":
        traffic = replace(traffic, output=fixed_lengths(1))
    else:
        own = Targets(time_per_output_token_s=targets.time_per_output_token_s)
        beside = min(MOST_PARTNERS, max(1, math.ceil(rate / max(partner.rate, 1e-9))))
    alone, others = serving_pool(search, one, 1), serving_pool(search, partner, beside)
    prefill, decode = (alone, others) if role == "prefill" else (others, alone)
    load = Load("open", requests_per_s=rate)
    goal = Goal(own, margin=screened.margin_of(row))
    requests = draw_requests(alone.configuration)
    try:
        link = kv_link("network", prefill, decode)

        def draw_of(seed: int) -> Replay:
            search.simulations += 1
            return replay_disaggregated(prefill, decode, link, traffic, load, seed=seed, requests=requests).statistics

        run = LongRun(enough_draws(draw_of, LongRun))
    except (SaturatedError, InvalidInputError, FigureMissingError):
        return math.inf
    return goal.ratio_of(run)
