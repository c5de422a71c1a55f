"""Prefill and decode in pools of their own, beside replicas that do both: which offers run which, at least cost.

Sets: w workloads, j deployments (role aggregated, prefill or decode), o offers, s exchanges: places within which a prompt's
cache can travel (one provider, region, cache format, engine and vendor). Variables: x_jo replicas and n_o nodes (integer),
f_ws requests per second of w that s serves by pools (continuous). The ratio of prefill to decode replicas follows; it is
not a choice of its own.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import pulp

from solver.errors import InvalidInputError
from solver.fleet.model.packing import chain_rows, is_chain
from solver.fleet.problem import OfferSlot
from solver.hardware import PlaceKind
from solver.outcome import Outcome

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
    Limits on nodes are the offers' own; budget and power are of the whole fleet, None is no limit. allowed_offer_ids: by
    workload, empty where every workload may use every offer. most_places: of how many places of a kind each workload may be.
    """

    offers: tuple[OfferSlot, ...]
    deployments: tuple[RoleDeployment, ...]
    rates: tuple[float, ...]
    utilisation: tuple[float, ...]
    budget_usd_per_hour: float | None = None
    power_w: float | None = None
    allowed_offer_ids: tuple[frozenset[str], ...] = ()
    most_places: tuple[tuple[PlaceKind, int], ...] = ()

    def allows(self, workload: int, offer_id: str) -> bool:
        return not self.allowed_offer_ids or offer_id in self.allowed_offer_ids[workload]

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

    outcome: Outcome
    plan: RolesPlan | None
    usd_per_hour: float | None
    bound: float | None
    gap_fraction: float | None
    candidates: int
    solver_seconds: float


@dataclass(slots=True)
class PhaseProgramme:
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
        if d.devices_per_replica <= offer.devices and problem.allows(d.workload, offer.id)
    ]
    roles: dict[tuple[int, tuple[str, ...]], set[Role]] = defaultdict(set)
    for d, offer in found:
        roles[d.workload, exchange_of(d, offer)].add(d.role)
    return [
        (d, offer)
        for d, offer in found
        if d.role == "aggregated" or roles[d.workload, exchange_of(d, offer)] >= {"prefill", "decode"}
    ]


def build_roles(
    problem: RolesProblem, placed: list[tuple[RoleDeployment, OfferSlot]], ceiling: float = math.inf
) -> PhaseProgramme:
    """All variables, constraints and the objective  min Σ c_o n_o;  names are positions.

    ceiling: a cost that the best plan does not exceed; no offer has more nodes than that buys.
    """
    model = PhaseProgramme(pulp.LpProblem("roles", pulp.LpMinimize), problem, placed)
    add = model.programme.add_variable
    for i, (d, offer) in enumerate(placed):
        nodes = offer.max_nodes or 0
        if offer.usd_per_hour > 0 and math.isfinite(ceiling):
            nodes = min(nodes, math.floor(ceiling * (1 + 1e-9) / offer.usd_per_hour))
        model.replicas.append(add(f"x_{i}", 0, nodes * (offer.devices // d.devices_per_replica), cat="Integer"))
        if offer.id not in model.nodes:
            model.nodes[offer.id] = add(f"n_{len(model.nodes)}", 0, nodes, cat="Integer")
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
    add_places(model)
    return model


def _useful(model: PhaseProgramme, i: int) -> float:
    deployment = model.placed[i][0]
    return deployment.capacity_requests_per_s * model.problem.utilisation[deployment.workload]


def add_demand(model: PhaseProgramme) -> None:
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


def add_pools(model: PhaseProgramme) -> None:
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


def add_packing(model: PhaseProgramme) -> None:
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


def add_limits(model: PhaseProgramme) -> None:
    """Σ c_o n_o ≤ B,   Σ W_o n_o + Σ P_j x_jo ≤ P."""
    offers = {offer.id: offer for offer in model.problem.offers}
    if model.problem.budget_usd_per_hour is not None:
        terms: Terms = {variable: offers[o].usd_per_hour for o, variable in model.nodes.items()}
        model.state(terms, pulp.LpConstraintLE, model.problem.budget_usd_per_hour, "budget")
    if model.problem.power_w is not None:
        terms = {variable: offers[o].host_power_w for o, variable in model.nodes.items()}
        terms.update({x: d.power_w_per_replica for x, (d, _) in zip(model.replicas, model.placed, strict=True)})
        model.state(terms, pulp.LpConstraintLE, model.problem.power_w, "power")


def add_places(model: PhaseProgramme) -> None:
    """A workload's replicas are in few places of a kind:  x_i ≤ X_i v_ws for i in s,  Σ_s v_ws ≤ K."""
    for kind, most in model.problem.most_places:
        chosen: dict[tuple[int, str], pulp.LpVariable] = {}
        for i, (d, offer) in enumerate(model.placed):
            place = (d.workload, offer.place(kind))
            if place not in chosen:
                chosen[place] = model.programme.add_variable(f"v_{kind}_{len(chosen)}", 0, 1, cat="Integer")
            bound = float(model.replicas[i].upBound or 0)
            model.state({model.replicas[i]: 1.0, chosen[place]: -bound}, pulp.LpConstraintLE, 0.0, f"place_{kind}_{i}")
        for w in range(len(model.problem.rates)):
            terms: Terms = {variable: 1.0 for (v, _), variable in chosen.items() if v == w}
            if len(terms) > most:
                model.state(terms, pulp.LpConstraintLE, float(most), f"places_{kind}_{w}")


def read_plan(model: PhaseProgramme) -> RolesPlan:
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
    model: PhaseProgramme, w: int, count: Mapping[Placed, int], row: Mapping[Placed, int]
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
