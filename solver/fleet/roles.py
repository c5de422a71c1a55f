"""Prefill and decode in pools of their own, beside replicas that do both: which offers run which, at least cost.

Sets: w workloads, j deployments (role aggregated, prefill or decode), o offers, s exchanges: places within which a prompt's
cache can travel (one provider, one region, one cache format and engine). Variables: x_jo replicas and n_o nodes
(integer), f_ws requests per second of w that s serves by pools (continuous). The ratio of prefill to decode replicas
follows; it is not a choice of its own.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import pulp

from solver.errors import InvalidInputError
from solver.fleet.highs import solve_with_highs
from solver.fleet.packing import chain_rows, is_chain
from solver.fleet.plan import PROVEN_GAP_FRACTION, gap_between
from solver.fleet.problem import OfferSlot

Role = Literal["aggregated", "prefill", "decode"]
Terms = dict[pulp.LpVariable, float]
Placed = tuple[int, str]
"""(deployment key, offer id)."""

SHARE_TOLERANCE = 1e-7


@dataclass(frozen=True, slots=True)
class RoleDeployment:
    """One way of running one role of one workload on one node type, each replica inside one node.

    capacity_requests_per_s: prompts a prefill replica takes in, replies a decode replica makes, or requests an aggregated
    one serves, within the targets. exchange: what a pool's partner must share besides provider and region.
    """

    key: int
    workload: int
    role: Role
    node_type_id: str
    devices_per_replica: int
    capacity_requests_per_s: float
    power_w_per_replica: float = 0.0
    exchange: str = ""


@dataclass(frozen=True, slots=True)
class RolesProblem:
    """rates: requests per second by workload. utilisation: share of a replica's capacity that may be used, by workload.
    Limits on nodes are the offers' own; budget and power are of the whole fleet, None is no limit."""

    offers: tuple[OfferSlot, ...]
    deployments: tuple[RoleDeployment, ...]
    rates: tuple[float, ...]
    utilisation: tuple[float, ...]
    budget_usd_per_hour: float | None = None
    power_w: float | None = None

    def __post_init__(self) -> None:
        if any(offer.max_nodes is None for offer in self.offers):
            raise InvalidInputError("every offer needs a limit of nodes here")
        if len(self.rates) != len(self.utilisation) or any(not r >= 0 for r in self.rates):
            raise InvalidInputError("one rate, not negative, and one utilisation for each workload")
        if any(not 0 < u <= 1 for u in self.utilisation):
            raise InvalidInputError("a utilisation lies in (0, 1]")
        if len({d.key for d in self.deployments}) != len(self.deployments):
            raise InvalidInputError("deployment keys are not unique")
        for d in self.deployments:
            if not (math.isfinite(d.capacity_requests_per_s) and d.capacity_requests_per_s >= 0):
                raise InvalidInputError("capacities are finite and not negative")
            if d.devices_per_replica < 1 or not 0 <= d.workload < len(self.rates):
                raise InvalidInputError("a replica needs a device and a workload")


@dataclass(frozen=True, slots=True)
class RolesPlan:
    """nodes by offer; replicas and requests per second by (deployment key, offer id). A pool's requests are counted in both
    of its roles."""

    nodes: Mapping[str, int]
    replicas: Mapping[Placed, int]
    requests_per_s: Mapping[Placed, float]

    def usd_per_hour(self, problem: RolesProblem) -> float:
        price = {offer.id: offer.usd_per_hour for offer in problem.offers}
        return math.fsum(price[offer] * count for offer, count in self.nodes.items())

    def power_w(self, problem: RolesProblem) -> float:
        """Σ host power × nodes + Σ replica power × replicas."""
        host = {offer.id: offer.host_power_w for offer in problem.offers}
        each = {d.key: d.power_w_per_replica for d in problem.deployments}
        nodes_w = math.fsum(host[offer] * count for offer, count in self.nodes.items())
        return nodes_w + math.fsum(each[key] * count for (key, _), count in self.replicas.items())


@dataclass(frozen=True, slots=True)
class RolesResult:
    """bound: no plan costs less. gap_fraction: ours, from the plan's own cost. status as of a fleet's result."""

    outcome: Literal["optimal", "feasible", "infeasible", "unknown"]
    plan: RolesPlan | None
    usd_per_hour: float | None
    bound: float | None
    gap_fraction: float | None
    candidates: int
    solver_seconds: float


@dataclass(slots=True)
class _Model:
    programme: pulp.LpProblem
    problem: RolesProblem
    placed: list[tuple[RoleDeployment, OfferSlot]]
    replicas: list[pulp.LpVariable] = field(default_factory=list)
    nodes: dict[str, pulp.LpVariable] = field(default_factory=dict)
    flows: dict[tuple[int, tuple[str, ...]], pulp.LpVariable] = field(default_factory=dict)

    def state(self, terms: Terms, sense: int, limit: float, name: str) -> None:
        self.programme.addConstraint(pulp.LpConstraint(pulp.LpAffineExpression(terms), sense, name, limit))


def exchange_of(deployment: RoleDeployment, offer: OfferSlot) -> tuple[str, ...]:
    """Where a pool's partner must be: same provider and region, and whatever else its cache and engine ask."""
    return offer.provider, offer.region, deployment.exchange


def solve_roles(
    problem: RolesProblem,
    *,
    time_limit_s: float = 10.0,
    gap_fraction: float = 0.0,
    at_most_usd: float = math.inf,
    exact_steps: bool = True,
) -> RolesResult:
    """The cheapest plan, or that there is none dearer than nothing and no dearer than ``at_most_usd``.

    exact_steps: off keeps every candidate, for comparing. Raises SolverFailedError where the solver fails.
    """
    every = placements(problem)
    ceiling = min(at_most_usd, math.inf if problem.budget_usd_per_hour is None else problem.budget_usd_per_hour)
    bound, kept = prune(problem, every, ceiling) if exact_steps else (0.0, every)
    if math.isinf(bound) or bound > ceiling * (1 + PROVEN_GAP_FRACTION):
        return RolesResult("infeasible", None, None, None, None, len(every), 0.0)
    model = build_roles(problem, kept)
    solved = solve_with_highs(model.programme, None, time_limit_s, gap_fraction, 0)
    if solved.proof == "infeasible":
        return RolesResult("infeasible", None, None, None, None, len(every), solved.seconds)
    if solved.proof == "no_plan_found":
        return RolesResult("unknown", None, None, max(bound, solved.bound or 0.0), None, len(every), solved.seconds)
    plan = read_plan(model)
    usd = plan.usd_per_hour(problem)
    lower = min(usd, max(bound, solved.bound if solved.bound is not None else 0.0))
    gap = gap_between(usd, lower)
    if gap <= PROVEN_GAP_FRACTION:
        gap, lower = 0.0, usd
    return RolesResult("optimal" if gap == 0.0 else "feasible", plan, usd, lower, gap, len(every), solved.seconds)


def placements(problem: RolesProblem) -> list[tuple[RoleDeployment, OfferSlot]]:
    """Every deployment on every offer of its node type that holds it, pools only where both roles can meet."""
    by_type: dict[str, list[OfferSlot]] = defaultdict(list)
    for offer in problem.offers:
        if offer.max_nodes:
            by_type[offer.node_type_id].append(offer)
    found = [
        (d, offer)
        for d in problem.deployments
        if d.capacity_requests_per_s > 0.0
        for offer in by_type.get(d.node_type_id, ())
        if d.devices_per_replica <= offer.devices
    ]
    roles: dict[tuple[int, tuple[str, ...]], set[Role]] = defaultdict(set)
    for d, offer in found:
        roles[d.workload, exchange_of(d, offer)].add(d.role)
    return [
        (d, offer)
        for d, offer in found
        if d.role == "aggregated" or roles[d.workload, exchange_of(d, offer)] >= {"prefill", "decode"}
    ]


@dataclass(frozen=True, slots=True)
class _Prices:
    """Dual prices in USD/h for a request per second: of demand by workload, of each role by (workload, exchange)."""

    demand: list[float]
    prefill: dict[tuple[int, tuple[str, ...]], float]
    decode: dict[tuple[int, tuple[str, ...]], float]

    def of(self, d: RoleDeployment, offer: OfferSlot) -> float:
        if d.role == "aggregated":
            return self.demand[d.workload]
        return (self.prefill if d.role == "prefill" else self.decode)[d.workload, exchange_of(d, offer)]


def dual_prices(problem: RolesProblem, placed: list[tuple[RoleDeployment, OfferSlot]]) -> _Prices:
    """A dual solution of the relaxation with divisible nodes: π_w = min(cheapest aggregated, min_s (p_s + d_s)).

    p_s and d_s are the cheapest cost of a request per second in each role; π is split so that neither role's price
    exceeds its cheapest: prefill gets min(p_s, π), decode the rest.
    """
    least: dict[tuple[int, Role, tuple[str, ...]], float] = defaultdict(lambda: math.inf)
    for d, offer in placed:
        place = () if d.role == "aggregated" else exchange_of(d, offer)
        useful = d.capacity_requests_per_s * problem.utilisation[d.workload]
        each = offer.usd_per_hour * d.devices_per_replica / offer.devices / useful
        least[d.workload, d.role, place] = min(least[d.workload, d.role, place], each)
    exchanges = {(w, place) for w, role, place in least if role == "prefill"}
    demand = []
    for w in range(len(problem.rates)):
        pools = [least[w, "prefill", s] + least[w, "decode", s] for v, s in exchanges if v == w]
        demand.append(min([least[w, "aggregated", ()], *pools]))
    prefill = {(w, s): min(least[w, "prefill", s], demand[w]) for w, s in exchanges}
    return _Prices(demand, prefill, {(w, s): demand[w] - prefill[w, s] for w, s in exchanges})


def prune(
    problem: RolesProblem, placed: list[tuple[RoleDeployment, OfferSlot]], ceiling: float
) -> tuple[float, list[tuple[RoleDeployment, OfferSlot]]]:
    """A lower bound on cost, and the placements that a plan no dearer than ``ceiling`` can contain.

    With prices π of a dual solution every plan costs at least Σ π_w λ_w; one with a replica of j on o costs at least
    c_o g_j / G − price · capacity more. Infinite where some workload has no candidate.
    """
    served = {d.workload for d, _ in placed}
    if any(rate > 0 and w not in served for w, rate in enumerate(problem.rates)):
        return math.inf, []
    prices = dual_prices(problem, placed)
    bound = math.fsum(p * rate for p, rate in zip(prices.demand, problem.rates, strict=True) if rate > 0)
    if math.isinf(ceiling):
        return bound, undominated(problem, placed)
    room = ceiling * (1 + 1e-9) - bound
    kept = []
    for d, offer in placed:
        useful = d.capacity_requests_per_s * problem.utilisation[d.workload]
        excess = offer.usd_per_hour * d.devices_per_replica / offer.devices - prices.of(d, offer) * useful
        if problem.rates[d.workload] > 0 and excess <= room:
            kept.append((d, offer))
    return bound, undominated(problem, kept)


def undominated(
    problem: RolesProblem, placed: list[tuple[RoleDeployment, OfferSlot]]
) -> list[tuple[RoleDeployment, OfferSlot]]:
    """Without deployments that smaller ones of the same role on the same offer replace: ⌊g/g'⌋ · μ' ≥ μ, g' ≤ g.

    Exact where replicas cost nothing by themselves; under a power limit everything is kept.
    """
    if problem.power_w is not None:
        return placed
    alike: dict[tuple[object, ...], list[RoleDeployment]] = defaultdict(list)
    for d, offer in placed:
        place = exchange_of(d, offer) if d.role != "aggregated" else ()
        alike[d.workload, d.role, offer.id, place].append(d)
    kept: set[Placed] = set()
    for (_, _, offer_id, _), rows in alike.items():
        best: list[RoleDeployment] = []
        for d in sorted(rows, key=lambda d: (d.devices_per_replica, -d.capacity_requests_per_s, d.key)):
            if not any(
                d.devices_per_replica // b.devices_per_replica * b.capacity_requests_per_s >= d.capacity_requests_per_s
                for b in best
            ):
                best.append(d)
                kept.add((d.key, str(offer_id)))
    return [(d, offer) for d, offer in placed if (d.key, offer.id) in kept]


def build_roles(problem: RolesProblem, placed: list[tuple[RoleDeployment, OfferSlot]]) -> _Model:
    """All variables, constraints and the objective  min Σ c_o n_o;  names are positions."""
    model = _Model(pulp.LpProblem("roles", pulp.LpMinimize), problem, placed)
    add = model.programme.add_variable
    for i, (d, offer) in enumerate(placed):
        most = (offer.max_nodes or 0) * (offer.devices // d.devices_per_replica)
        model.replicas.append(add(f"x_{i}", 0, most, cat="Integer"))
        if offer.id not in model.nodes:
            model.nodes[offer.id] = add(f"n_{len(model.nodes)}", 0, offer.max_nodes, cat="Integer")
        if d.role == "prefill":
            place = (d.workload, exchange_of(d, offer))
            if place not in model.flows:
                model.flows[place] = add(f"f_{len(model.flows)}", 0, problem.rates[d.workload])
    price = {offer.id: offer.usd_per_hour for offer in problem.offers}
    objective: Terms = {variable: price[offer] for offer, variable in model.nodes.items()}
    model.programme.setObjective(pulp.LpAffineExpression(objective))
    add_demand(model)
    add_pools(model)
    add_packing(model)
    add_limits(model)
    return model


def _useful(model: _Model, i: int) -> float:
    deployment = model.placed[i][0]
    return deployment.capacity_requests_per_s * model.problem.utilisation[deployment.workload]


def add_demand(model: _Model) -> None:
    """Every workload is served, by aggregated replicas or by pools:  Σ_agg ρ μ x + Σ_s f_ws ≥ λ_w."""
    for w, rate in enumerate(model.problem.rates):
        if rate <= 0:
            continue
        terms: Terms = {
            model.replicas[i]: _useful(model, i)
            for i, (d, _) in enumerate(model.placed)
            if d.workload == w and d.role == "aggregated"
        }
        terms.update({flow: 1.0 for (v, _), flow in model.flows.items() if v == w})
        model.state(terms, pulp.LpConstraintGE, rate, f"demand_{w}")


def add_pools(model: _Model) -> None:
    """What an exchange serves, its prefill replicas take in and its decode replicas answer:

    f_ws ≤ Σ_{prefill in s} ρ μ x,   f_ws ≤ Σ_{decode in s} ρ μ x
    """
    for number, ((w, place), flow) in enumerate(model.flows.items()):
        for role in ("prefill", "decode"):
            terms: Terms = {
                model.replicas[i]: -_useful(model, i)
                for i, (d, offer) in enumerate(model.placed)
                if d.workload == w and d.role == role and exchange_of(d, offer) == place
            }
            terms[flow] = 1.0
            model.state(terms, pulp.LpConstraintLE, 0.0, f"{role}_{number}")


def add_packing(model: _Model) -> None:
    """Replicas of an offer fit its nodes (see ``packing.chain_rows``):  Σ_{g ≥ s} g x ≤ s ⌊G/s⌋ n_o.

    Raises InvalidInputError for sizes that do not divide each other.
    """
    rows: dict[str, list[int]] = defaultdict(list)
    for i, (_, offer) in enumerate(model.placed):
        rows[offer.id].append(i)
    for number, (offer_id, members) in enumerate(rows.items()):
        sizes = {model.placed[i][0].devices_per_replica for i in members}
        if not is_chain(sizes):
            raise InvalidInputError(f"replica sizes {sorted(sizes)} do not divide each other")
        for smallest, usable in chain_rows(sizes, model.placed[members[0]][1].devices):
            terms: Terms = {
                model.replicas[i]: float(model.placed[i][0].devices_per_replica)
                for i in members
                if model.placed[i][0].devices_per_replica >= smallest
            }
            terms[model.nodes[offer_id]] = -float(usable)
            model.state(terms, pulp.LpConstraintLE, 0.0, f"packing_{number}_{smallest}")


def add_limits(model: _Model) -> None:
    """Σ c_o n_o ≤ B,   Σ W_o n_o + Σ P_j x_jo ≤ P."""
    offers = {offer.id: offer for offer in model.problem.offers}
    if model.problem.budget_usd_per_hour is not None:
        terms: Terms = {variable: offers[o].usd_per_hour for o, variable in model.nodes.items()}
        model.state(terms, pulp.LpConstraintLE, model.problem.budget_usd_per_hour, "budget")
    if model.problem.power_w is not None:
        terms = {variable: offers[o].host_power_w for o, variable in model.nodes.items()}
        terms.update({x: d.power_w_per_replica for x, (d, _) in zip(model.replicas, model.placed, strict=True)})
        model.state(terms, pulp.LpConstraintLE, model.problem.power_w, "power")


def read_plan(model: _Model) -> RolesPlan:
    """Integers rounded, flows worked out anew from what the rounded replicas carry, in proportion to capacity."""
    nodes = {o: round(v.varValue or 0.0) for o, v in model.nodes.items()}
    count: Counter[Placed] = Counter()
    row: dict[Placed, int] = {}
    for i, variable in enumerate(model.replicas):
        placed = (model.placed[i][0].key, model.placed[i][1].id)
        row[placed] = i
        if replicas := round(variable.varValue or 0.0):
            count[placed] = replicas
    rates: dict[Placed, float] = {}
    for w, wanted in enumerate(model.problem.rates):
        carried = _carried(model, w, count, row)
        total = math.fsum(carried.values())
        for (role_place, place), most in carried.items():
            share = wanted * most / total if total > 0 else 0.0
            roles: tuple[Role, ...] = ("aggregated",) if role_place == "aggregated" else ("prefill", "decode")
            for role in roles:
                members = [
                    p for p in count
                    if (d := model.placed[row[p]][0]).workload == w and d.role == role
                    and (role == "aggregated" or exchange_of(d, model.placed[row[p]][1]) == place)
                ]  # fmt: skip
                capacity = math.fsum(count[p] * _useful(model, row[p]) for p in members)
                for p in members:
                    rates[p] = share * count[p] * _useful(model, row[p]) / capacity
    used = {p: n for p, n in count.items() if rates.get(p, 0.0) > SHARE_TOLERANCE * max(model.problem.rates)}
    return RolesPlan({o: n for o, n in nodes.items() if n}, used, {p: rates[p] for p in used})


def _carried(
    model: _Model, w: int, count: Mapping[Placed, int], row: Mapping[Placed, int]
) -> dict[tuple[str, tuple[str, ...]], float]:
    """Most requests per second of workload w by aggregated replicas, and by the pools of each exchange (the lesser role)."""
    by_role: dict[tuple[Role, tuple[str, ...]], float] = defaultdict(float)
    for p, replicas in count.items():
        d, offer = model.placed[row[p]]
        if d.workload == w:
            place = () if d.role == "aggregated" else exchange_of(d, offer)
            by_role[d.role, place] += replicas * _useful(model, row[p])
    carried: dict[tuple[str, tuple[str, ...]], float] = {}
    for (role, place), most in by_role.items():
        if role == "aggregated":
            carried["aggregated", place] = most
        elif role == "prefill":
            carried["pools", place] = min(most, by_role.get(("decode", place), 0.0))
    return {key: most for key, most in carried.items() if most > 0.0}


def without_role(problem: RolesProblem, role: Role, workload: int | None = None) -> RolesProblem:
    """The same without a role, of one workload or of all."""
    kept = tuple(d for d in problem.deployments if d.role != role or (workload is not None and d.workload != workload))
    return replace(problem, deployments=kept)
