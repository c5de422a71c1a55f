"""Confirms replicas that prefill or decode only, by simulating both sides of their exchange and the transfer between them.

A prefill replica makes first tokens only, which is what its share of the targets is about. A decode replica is simulated behind as
many prefill replicas as feed it, over the slowest link among those that do: time per output token, and whole requests where those
have a target, are laid on it. What does not hold gets the capacity the simulation finds, and candidates like it are believed to fall
short alike (``Confirmations``).
"""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from solver.candidates.screening import Screened
from solver.capacity.goal import Goal
from solver.confirmation.confirmations import (
    CLOSE_ENOUGH,
    LARGEST_STEP,
    OPTIMISM,
    RATE_RESOLUTION,
    STEP_WHEN_SATURATED,
    Confirmations,
    RoleKey,
)
from solver.confirmation.rates import ROUNDING, rate_to_hold
from solver.deployment.kv_transfer import ServingPool, kv_link
from solver.errors import FigureMissingError, InvalidInputError, SaturatedError
from solver.fleet.deployments import DECODE, PREFILL, ROLES
from solver.hardware import Node
from solver.lengths import fixed_lengths
from solver.planning.assemble import Assembly
from solver.planning.placements import Placement
from solver.replay.disaggregated import replay_disaggregated
from solver.replay.long_run import LongRun, draw_requests, enough_draws
from solver.replay.one_stream import Replay
from solver.workload import Load, Targets

Floats = NDArray[np.float64]

MOST_TRIES = 8
MOST_PARTNERS = 64
"""Replicas of the other role simulated beside one whose capacity is looked for: as many as it needs, up to this."""


class Exchanges:
    """Of replicas that prefill or decode only. nodes: of each offer."""

    known_by_candidate = False
    most_rounds: float = math.inf

    def __init__(self, confirmations: Confirmations, nodes: Mapping[str, Node]) -> None:
        self._confirmations, self._nodes = confirmations, nodes

    def assumed(self, assembly: Assembly) -> Assembly:
        """The problem in which they sustain what simulation found of them, or of those like them."""
        return with_role_capacity(assembly, self._confirmations)

    def confirmed(self, assembly: Assembly) -> Assembly:
        """The problem in which they sustain what was seen to hold, and others nothing."""
        return with_role_capacity(assembly, self._confirmations, confirmed=True)

    def apart(self, assembly: Assembly) -> Assembly:
        """The same: none of these replicas serves a mix."""
        return self.confirmed(assembly)

    def hold(self, assembly: Assembly, places: Sequence[Placement], in_time: Callable[[], bool]) -> bool:
        """Do both sides of every exchange of a plan meet their targets?"""
        return exchanges_hold(assembly, places, self._confirmations, self._nodes, in_time)

    def hold_confirmed(self, _assembly: Assembly, _places: Sequence[Placement]) -> bool:
        """What was seen to hold is taken to hold beside other partners."""
        return True

    def settle_plan(
        self, assembly: Assembly, places: Sequence[Placement], capacity: Floats, _in_time: Callable[[], bool]
    ) -> None:
        """What they carry as simulated, else as the plan asks of them at least."""
        for place in places:
            if place.role != "aggregated" and place.requests_per_s > 0.0:
                mine = assembly.rows_in_role(place.workload, ROLES.index(place.role))
                rate = capacity_found(place, rate_to_hold(assembly, place), self._confirmations)
                capacity[mine & (assembly.row_of == place.row), 0] = rate

    def be_pessimistic(self) -> None:
        """What was found of a replica is believed of it from the beginning."""


def partners_of(places: Sequence[Placement], one: Placement) -> list[Placement]:
    """The other side of its exchange, those with most traffic first; none for replicas that do both."""
    mine = [p for p in places if p.workload == one.workload and p.exchange == one.exchange and p.role != one.role]
    return sorted((p for p in mine if p.exchange and p.requests_per_s > 0.0), key=lambda p: -p.requests_per_s)


def exchanges_hold(
    assembly: Assembly,
    places: Sequence[Placement],
    confirmations: Confirmations,
    nodes: Mapping[str, Node],
    in_time: Callable[[], bool],
) -> bool:
    """Do all prefill and decode replicas meet their targets? What is found to be too much corrects their capacities.

    nodes: of each offer. Prefill comes first: a decode replica is simulated behind prefill
    replicas that hold their rates, else in a later round. False, too, where there is no time to know.
    """
    failed: set[RoleKey] = set()
    for one in sorted(places, key=lambda p: p.role == "decode"):
        key, rate = (one.workload, one.row, one.role), rate_to_hold(assembly, one)
        if one.exchange is None or rate <= 0.0 or key in failed:
            continue
        partners = partners_of(places, one)
        if one.role == "decode" and any((p.workload, p.row, p.role) in failed for p in partners):
            continue
        if rate <= confirmations.role_holds.get(key, 0.0):
            continue
        if not in_time():
            return False
        partner = simulated_with(partners, one, nodes)
        targets, beside = assembly.screened[one.workload].workload.only.targets, rate_to_hold(assembly, partner)

        def ratio(
            tried: float,
            one: Placement = one,
            partner: Placement = partner,
            beside: float = beside,
            targets: Targets = targets,
        ) -> float:
            return exchange_ratio(assembly, one, partner, (tried, beside), targets, nodes, confirmations)

        held = _false_position(ratio, rate, confirmations.role_holds.get(key, 0.0))
        confirmations.role_holds[key] = max(held, confirmations.role_holds.get(key, 0.0))
        if held < rate * (1.0 - ROUNDING):
            failed.add(key)
            confirmations.role_capacity[key] = held
    return not failed


def simulated_with(partners: Sequence[Placement], one: Placement, nodes: Mapping[str, Node]) -> Placement:
    """Of the other side of an exchange, which replicas one is simulated beside: those with most traffic, or the slowest link."""

    def bytes_per_s_of_a_device(place: Placement) -> float:
        node = nodes[place.offer_id]
        return node.network_bytes_per_s / node.devices

    return partners[0] if one.role == "prefill" else min(partners, key=bytes_per_s_of_a_device)


def with_role_capacity(assembly: Assembly, confirmations: Confirmations, *, confirmed: bool = False) -> Assembly:
    """The problem with what simulation found of prefill and decode replicas; all others have what screening leaves them, times the
    best ratio found of those like them. confirmed: they have what was seen to hold, and others nothing."""
    if assembly.problem.deployments.role is None:
        return assembly
    capacity = assembly.problem.deployments.capacity_requests_per_s.copy()
    for w, one in enumerate(assembly.screened):
        for role in (PREFILL, DECODE):
            mine = assembly.rows_in_role(w, role)
            if mine.any():
                capacity[mine, 0] = _rates(one, w, role, confirmations, confirmed=confirmed)[assembly.row_of[mine]]
    return assembly.with_capacity(capacity)


def _rates(one: Screened, w: int, role: int, confirmations: Confirmations, *, confirmed: bool) -> Floats:
    assert one.roles is not None
    screened = one.roles.prefill if role == PREFILL else one.roles.decode
    if confirmed:
        rates = np.zeros_like(screened)
        for (v, row, name), held in confirmations.role_holds.items():
            if v == w and name == ROLES[role]:
                rates[row] = held
        return rates
    found = {
        row: rate for (v, row, name), rate in confirmations.role_capacity.items() if v == w and name == ROLES[role]
    }
    if not found:
        return screened
    similar = np.tile(one.space.similar, len(screened) // len(one.space.similar))
    ratios: dict[int, float] = defaultdict(float)
    for row, rate in found.items():
        if screened[row] > 0.0:
            ratios[int(similar[row])] = max(ratios[int(similar[row])], rate / float(screened[row]))
    factors = np.full(len(screened), max(ratios.values(), default=1.0) * OPTIMISM)
    for family, ratio in ratios.items():
        factors[similar == family] = ratio * OPTIMISM
    rates = screened * np.minimum(np.where(factors > 0.0, factors, 1.0), 1.0)
    for row, rate in found.items():
        rates[row] = min(rate, screened[row])
    return rates


def capacity_found(place: Placement, rate: float, confirmations: Confirmations) -> float:
    """What one prefill or decode replica of a plan carries: as simulated, else as the plan asks of it at least."""
    key = (place.workload, place.row, place.role)
    return confirmations.role_capacity.get(key, max(confirmations.role_holds.get(key, 0.0), rate))


def serving_pool(assembly: Assembly, place: Placement, replicas: int, nodes: Mapping[str, Node]) -> ServingPool:
    return ServingPool(
        assembly.screened[place.workload].space.configuration(place.row), replicas, nodes[place.offer_id]
    )


def exchange_ratio(
    assembly: Assembly,
    one: Placement,
    partner: Placement,
    rates: tuple[float, float],
    targets: Targets,
    nodes: Mapping[str, Node],
    confirmations: Confirmations,
) -> float:
    """Worst simulated value over its target of what is laid on the role, at these rates of a replica of it and of its partner;
    infinite above its capacity."""
    screened = assembly.screened[one.workload].only
    traffic, beside = screened.workload.traffic, 1
    rate, partner_rate = rates
    if one.role == "prefill":
        own, traffic = Targets(targets.time_to_first_token_s), replace(traffic, output=fixed_lengths(1))
    else:
        own = replace(targets, time_to_first_token_s={})
        beside = min(MOST_PARTNERS, max(1, math.ceil(rate / max(partner_rate, 1e-9))))
    alone, others = serving_pool(assembly, one, 1, nodes), serving_pool(assembly, partner, beside, nodes)
    prefill, decode = (alone, others) if one.role == "prefill" else (others, alone)
    load = Load("open", requests_per_s=rate)
    goal = Goal(own, margin=screened.margin_of(one.row), network_s=screened.network_of(one.row))
    requests = draw_requests(alone.configuration)
    try:
        link = kv_link("network", prefill, decode)

        def draw_of(seed: int) -> Replay:
            confirmations.simulations += 1
            return replay_disaggregated(prefill, decode, link, traffic, load, seed=seed, requests=requests).statistics

        run = LongRun(enough_draws(draw_of, LongRun))
    except (SaturatedError, InvalidInputError, FigureMissingError):
        return math.inf
    return goal.ratio_of(run)


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
