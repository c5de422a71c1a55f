"""An independent check of a plan: plain arithmetic over the problem as it was stated.

It knows nothing of pools, pruning, models or solvers, so that a mistake in any of them shows here.
"""

import itertools
import math
from collections import Counter, defaultdict

import numpy as np

from solver.fleet.deployments import AGGREGATED, DECODE, PREFILL
from solver.fleet.plan import FleetResult, NodeGroup, Plan, gap_between
from solver.fleet.problem import FleetProblem, OfferSlot
from solver.outcome import Outcome

Placed = tuple[int, tuple[object, ...] | None]
"""(deployment row, where the other side has to be)."""

TOLERANCE = 2e-6
"""Relative; twice the tolerance at which plans are accepted, so that rounding in between is not an error."""


def verify(problem: FleetProblem, result: FleetResult) -> list[str]:
    """Everything wrong with a result; empty for a correct one."""
    plan = result.plan
    if plan is None:
        claimed = (result.objective, result.usd_per_hour, result.power_w, result.throughput_multiple)
        wrong = result.outcome in (Outcome.OPTIMAL, Outcome.FEASIBLE) or any(value is not None for value in claimed)
        return ["a result without a plan claims one"] if wrong else []
    if None in (result.objective, result.bound, result.gap_fraction, result.usd_per_hour, result.power_w):
        return ["a result with a plan leaves out its figures"]
    assert result.objective is not None
    assert result.bound is not None
    assert result.gap_fraction is not None
    errors = verify_plan(problem, plan, result.throughput_multiple or 0.0)
    if errors:
        return errors
    usd, power_w = plan.usd_per_hour(problem), plan.power_w(problem)
    own = {
        "cost": usd,
        "power": power_w,
        "carbon": plan.carbon_kg_per_hour(problem),
        "throughput": result.throughput_multiple or 0.0,
    }[problem.objective]
    for name, stated, computed in (
        ("usd_per_hour", result.usd_per_hour, usd),
        ("power_w", result.power_w, power_w),
        ("objective", result.objective, own),
    ):
        if stated is None or not math.isclose(stated, computed, rel_tol=1e-9, abs_tol=1e-9):
            errors.append(f"{name} is stated as {stated}, the plan gives {computed}")
    sign = -1.0 if problem.objective == "throughput" else 1.0
    if sign * result.bound > sign * result.objective + 1e-9 * abs(result.objective):
        errors.append("the bound is better for the plan than its own objective")
    if not math.isclose(result.gap_fraction, gap_between(result.objective, result.bound), abs_tol=1e-9):
        errors.append("the gap does not follow from objective and bound")
    if result.outcome not in (Outcome.OPTIMAL, Outcome.FEASIBLE) or (
        result.outcome is Outcome.OPTIMAL and result.gap_fraction > 0
    ):
        errors.append(f"outcome {result.outcome} with a gap of {result.gap_fraction}")
    return errors


def verify_plan(problem: FleetProblem, plan: Plan, multiple: float) -> list[str]:
    """Everything wrong with a plan that should serve ``multiple`` of all demand."""
    offers = {offer.id: offer for offer in problem.offers}
    named = {key for group in plan.groups for key, _ in group.replicas} | {route.key for route in plan.routes}
    keys = problem.deployments.key
    row_of = {int(keys[row]): row for row in np.flatnonzero(np.isin(keys, list(named))).tolist()}
    unknown = {group.offer_id for group in plan.groups if group.offer_id not in offers}
    unknown |= {str(key) for group in plan.groups for key, _ in group.replicas if key not in row_of}
    unknown |= {f"{route.key}@{route.offer_id}" for route in plan.routes if route.key not in row_of}
    if unknown:
        return [f"the plan names what the problem lacks: {', '.join(sorted(unknown))}"]
    errors: list[str] = []
    for group in plan.groups:
        errors += _check_group(problem, group, row_of)
    errors += _check_offers(problem, plan)
    errors += _check_spares(problem, plan)
    errors += _check_demand(problem, plan, multiple, row_of)
    errors += _check_exchanges(problem, plan, row_of)
    errors += _check_load(problem, plan, row_of)
    errors += _check_limits(problem, plan)
    errors += _check_losses(problem, plan, row_of, multiple)
    errors += _check_required(problem, plan)
    errors += _check_places(problem, plan, row_of)
    errors += _check_copies(problem, plan, row_of)
    return errors


def _check_group(problem: FleetProblem, group: NodeGroup, row_of: dict[int, int]) -> list[str]:
    """What runs on one unit fits it, belongs to its node type, and may run at this offer."""
    table = problem.deployments
    offer = next(offer for offer in problem.offers if offer.id == group.offer_id)
    errors = []
    if group.units < 1 or group.nodes_per_unit < 1 or any(count < 1 for _, count in group.replicas):
        errors.append(f"{group.offer_id}: counts below one")
    devices = sum(count for _, count in group.splits)
    instances: Counter[int] = Counter()
    for key, count in group.replicas:
        row = row_of[key]
        if table.node_type_ids[table.node_type[row]] != offer.node_type_id:
            errors.append(f"deployment {key} does not run on nodes of {offer.id}")
        if table.site is not None and table.site[row] >= 0 and offer.region not in table.sites[table.site[row]]:
            errors.append(f"deployment {key} may not run in {offer.region}")
        allowed = problem.demands[int(table.workload[row])].allowed_offer_ids
        if allowed is not None and offer.id not in allowed:
            errors.append(f"workload {table.workload[row]} may not use offer {offer.id}")
        spanned = int(table.nodes_per_replica[row])
        if spanned != group.nodes_per_unit:
            errors.append(f"deployment {key} spans {spanned} nodes, its unit has {group.nodes_per_unit}")
        if table.split is not None and table.split[row] >= 0:
            instances[int(table.split[row])] += count
        else:
            devices += count * (offer.devices * spanned if spanned > 1 else int(table.devices_per_replica[row]))
    errors += _check_splits(problem, group, instances)
    if devices > offer.devices * group.nodes_per_unit:
        errors.append(f"{devices} devices on a unit of {offer.devices * group.nodes_per_unit} at {offer.id}")
    return errors


def _check_splits(problem: FleetProblem, group: NodeGroup, instances: Counter[int]) -> list[str]:
    """Devices are split as often as stated, each for one profile, and hold the instances that run on them."""
    splits, split_devices = problem.deployments.splits, dict(group.splits)
    if len(split_devices) < len(group.splits) or any(not 0 <= s < len(splits) or n < 1 for s, n in group.splits):
        return [f"{group.offer_id}: devices are split in no way the problem knows"]
    return [
        f"{count} instances of {splits[s].name} on {split_devices.get(s, 0)} devices of {splits[s].instances} at {group.offer_id}"
        for s, count in instances.items()
        if count > split_devices.get(s, 0) * splits[s].instances
    ]


def _check_offers(problem: FleetProblem, plan: Plan) -> list[str]:
    nodes = plan.nodes_by_offer()
    errors = [
        f"{nodes[offer.id]} nodes of {offer.id}, at most {offer.max_nodes} are offered"
        for offer in problem.offers
        if offer.max_nodes is not None and nodes.get(offer.id, 0) > offer.max_nodes
    ]
    for quota in problem.limits.quotas:
        devices = sum(nodes.get(offer.id, 0) * offer.devices for offer in problem.offers if offer.id in quota.offer_ids)
        if devices > quota.max_devices:
            errors.append(f"quota {quota.name}: {devices} devices, at most {quota.max_devices}")
    return errors


def _check_spares(problem: FleetProblem, plan: Plan) -> list[str]:
    """Losing any k nodes of an interchangeable set leaves idle ones in it to restart on.

    Interchangeable: one node type, interruptibility, admitted workloads and deployments, quotas, lost together where a loss is to be
    survived, in one place where caches travel; one offer for replicas over nodes.
    """
    wanted = problem.limits.spare_nodes
    if not wanted:
        return []

    def interchange(offer_id: str) -> tuple[object, ...]:
        offer = next(offer for offer in problem.offers if offer.id == offer_id)
        admitted = tuple(d.allowed_offer_ids is None or offer_id in d.allowed_offer_ids for d in problem.demands)
        quotas = tuple(offer_id in quota.offer_ids for quota in problem.limits.quotas)
        lost_with = tuple(offer.domain(kind) for kind, _ in problem.limits.fault_tolerance.losses)
        named = tuple(offer_id in (required.offer_ids or ()) for required in problem.required)
        sites = problem.deployments.sites_of(offer.region)
        reach = (offer.provider, offer.region) if problem.deployments.role is not None else None
        return offer.node_type_id, offer.interruptible, admitted, quotas, lost_with, named, sites, reach

    idle: Counter[object] = Counter()
    needed: set[object] = set()
    for group in plan.groups:
        places = (("offer", group.offer_id), ("pool", interchange(group.offer_id)))
        if not group.replicas:
            idle.update(dict.fromkeys(places, group.nodes))
        else:
            needed |= set(places if group.nodes_per_unit > 1 else places[1:])
    return [f"{idle[place]} spare nodes in {place}, {wanted} wanted" for place in needed if idle[place] < wanted]


def _check_demand(problem: FleetProblem, plan: Plan, multiple: float, row_of: dict[int, int]) -> list[str]:
    """All traffic is answered: by replicas that do both, or by those that decode what others prefilled."""
    roles = problem.deployments.roles
    served: defaultdict[tuple[int, int], float] = defaultdict(float)
    errors = []
    for route in plan.routes:
        if not math.isfinite(route.requests_per_s) or route.requests_per_s < 0:
            errors.append(f"deployment {route.key} is routed {route.requests_per_s} requests/s")
        if roles[row_of[route.key]] != PREFILL:
            served[route.workload, route.traffic_class] += route.requests_per_s
    if problem.most_multiple is not None and multiple > problem.most_multiple * (1 + TOLERANCE):
        errors.append(f"{multiple} times the demand is served, at most {problem.most_multiple} was asked")
    for w, demand in enumerate(problem.demands):
        times = 1.0 if demand.is_fixed else multiple
        for k, rate in enumerate(demand.requests_per_s):
            if not math.isclose(served.pop((w, k), 0.0), rate * times, rel_tol=TOLERANCE, abs_tol=1e-12):
                errors.append(f"workload {w} class {k}: routed traffic is not the demand of {rate * times}")
    errors += [f"traffic routed for an unknown workload or class {place}" for place in served]
    if problem.objective != "throughput" and multiple != 1.0:
        errors.append(f"{multiple} times the demand is served, 1 was asked")
    return errors


def _check_exchanges(problem: FleetProblem, plan: Plan, row_of: dict[int, int]) -> list[str]:
    """Within one provider and region, among sides that share what they must, as much is prefilled as is decoded."""
    offers = {offer.id: offer for offer in problem.offers}
    sides: defaultdict[tuple[object, ...], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for route in plan.routes:
        place = _exchange(problem, row_of[route.key], offers[route.offer_id])
        if place is not None:
            decodes = problem.deployments.roles[row_of[route.key]] == DECODE
            sides[route.workload, route.traffic_class, place][int(decodes)] += route.requests_per_s
    return [
        f"{place}: {prefilled} prompts/s are prefilled and {decoded} decoded"
        for place, (prefilled, decoded) in sides.items()
        if not math.isclose(prefilled, decoded, rel_tol=TOLERANCE, abs_tol=1e-12)
    ]


def _exchange(problem: FleetProblem, row: int, offer: OfferSlot) -> tuple[object, ...] | None:
    """Where the other side of a deployment has to be; None where it prefills and decodes."""
    table = problem.deployments
    if table.exchange is None or table.roles[row] == AGGREGATED:
        return None
    return offer.provider, offer.region, int(table.exchange[row])


def _check_load(problem: FleetProblem, plan: Plan, row_of: dict[int, int]) -> list[str]:
    """Each deployment's share of time, Σ_k rate / capacity, is within the utilisation limit of its replicas."""
    table = problem.deployments
    replicas = plan.replicas()
    busy: defaultdict[tuple[int, str], float] = defaultdict(float)
    errors = []
    for route in plan.routes:
        row = row_of[route.key]
        capacity = float(table.capacity_requests_per_s[row, route.traffic_class])
        if table.workload[row] != route.workload:
            errors.append(f"deployment {route.key} serves another workload than its own")
        if capacity <= 0:
            errors.append(f"deployment {route.key} cannot serve class {route.traffic_class}")
            continue
        busy[route.key, route.offer_id] += route.requests_per_s / capacity
    for (key, offer_id), work in busy.items():
        limit = problem.demands[int(table.workload[row_of[key]])].utilisation_limit_fraction
        if work > limit * replicas.get((key, offer_id), 0) * (1 + TOLERANCE):
            errors.append(f"deployment {key} at {offer_id} is overloaded")
    for w, demand in enumerate(problem.demands):
        for other, phase in ((DECODE, "prefill"), (PREFILL, "decode")):
            running = sum(
                count
                for (key, _), count in replicas.items()
                if table.workload[row_of[key]] == w and table.roles[row_of[key]] != other
            )
            if running < demand.min_replicas:
                errors.append(
                    f"workload {w} has {running} replicas that {phase}, at least {demand.min_replicas} are wanted"
                )
    return errors


def _check_limits(problem: FleetProblem, plan: Plan) -> list[str]:
    limits, errors = problem.limits, []
    usd, power_w = plan.usd_per_hour(problem), plan.power_w(problem)
    if limits.budget_usd_per_hour is not None and usd > limits.budget_usd_per_hour * (1 + TOLERANCE):
        errors.append(f"{usd} USD/h is above the budget")
    if limits.power_w is not None and power_w > limits.power_w * (1 + TOLERANCE):
        errors.append(f"{power_w} W is above the power limit")
    carbon = plan.carbon_kg_per_hour(problem)
    if limits.carbon_kg_per_hour is not None and carbon > limits.carbon_kg_per_hour * (1 + TOLERANCE):
        errors.append(f"{carbon} kg CO2e/h is above the carbon limit")
    if limits.max_spot_fraction is not None:
        nodes = plan.nodes_by_offer()
        devices = [(nodes.get(offer.id, 0) * offer.devices, offer.interruptible) for offer in problem.offers]
        spot = sum(count for count, interruptible in devices if interruptible)
        if spot > limits.max_spot_fraction * sum(count for count, _ in devices) + TOLERANCE:
            errors.append(f"{spot} interruptible devices are above the share allowed")
    return errors


def _check_losses(problem: FleetProblem, plan: Plan, row_of: dict[int, int], multiple: float) -> list[str]:
    """Whatever providers (regions) are lost, the replicas elsewhere can take all the demand within their limit."""
    offers = {offer.id: offer for offer in problem.offers}
    errors = []
    for kind, count in problem.limits.fault_tolerance.losses:
        for w, demand in enumerate(problem.demands):
            by_domain: defaultdict[str, Counter[Placed]] = defaultdict(Counter)
            for (key, offer_id), number in plan.replicas().items():
                if problem.deployments.workload[row_of[key]] == w:
                    offer = offers[offer_id]
                    by_domain[offer.domain(kind)][row_of[key], _exchange(problem, row_of[key], offer)] += number
            times = 1.0 if demand.is_fixed else multiple
            classes = [k for k, rate in enumerate(demand.requests_per_s) if rate * times > 0]
            if not classes:
                continue
            for lost in _lost_sets(problem, by_domain, classes, count):
                left: Counter[Placed] = Counter()
                for name, replicas in by_domain.items():
                    if name not in lost:
                        left.update(replicas)
                if not _can_serve(problem, left, [(k, demand.requests_per_s[k] * times) for k in classes]):
                    errors.append(f"workload {w} is not served after the loss of {kind} {', '.join(sorted(lost))}")
    return errors


def _lost_sets(
    problem: FleetProblem, by_domain: dict[str, Counter[Placed]], classes: list[int], count: int
) -> list[frozenset[str]]:
    """Every loss of so many domains; of a single class and replicas that do both only the one that takes most capacity, which
    is the worst."""
    names = sorted(by_domain)
    if len(classes) > 1 or problem.deployments.role is not None:
        return [frozenset(lost) for lost in itertools.combinations(names, min(count, len(names)))]
    capacity = problem.deployments.capacity_requests_per_s[:, classes[0]]
    held = {name: sum(capacity[row] * n for (row, _), n in by_domain[name].items()) for name in names}
    return [frozenset(sorted(names, key=lambda name: -held[name])[:count])]


def _can_serve(problem: FleetProblem, replicas: Counter[Placed], rates: list[tuple[int, float]]) -> bool:
    """Is there a routing of these rates (class, requests/s) over the replicas within the limit that holds after a loss?

    max Σ r_jk   with   Σ_j r_jk ≤ rate_k,   Σ_k r_jk / μ_jk ≤ ρ_f x_j,   as much prefilled as decoded in every exchange;
    of prefill and decode only the latter counts
    """
    table, limit = problem.deployments, problem.limits.fault_tolerance.utilisation_limit_fraction
    capacity, rows = table.capacity_requests_per_s, sorted(replicas, key=str)
    places = sorted({place for _, place in rows if place is not None}, key=str)
    if len(rates) == 1 and not places:
        ((k, rate),) = rates
        return bool(sum(limit * capacity[row, k] * replicas[row, None] for row, _ in rows) >= rate * (1 - TOLERANCE))
    pairs = [(one, k) for one in rows for k, _ in rates if capacity[one[0], k] > 0]
    if not pairs:
        return False
    answers = [table.roles[one[0]] != PREFILL for one, _ in pairs]
    served = np.array(
        [[float(k == own and done) for (_, own), done in zip(pairs, answers, strict=True)] for k, _ in rates]
    )
    work = np.array([[1.0 / capacity[one[0], k] if one == own else 0.0 for own, k in pairs] for one in rows])
    room = np.array([limit * replicas[one] for one in rows])
    even = [
        [
            (1.0 if done else -1.0) * (own[1] == place and of == k)
            for (own, of), done in zip(pairs, answers, strict=True)
        ]
        for place in places
        for k, _ in rates
    ]
    from scipy.optimize import linprog  # many plans need none, and it is large

    solved = linprog(
        -np.array(answers, dtype=float),
        np.vstack([served, work]),
        np.concatenate([[rate for _, rate in rates], room]),
        np.array(even) if even else None,
        np.zeros(len(even)) if even else None,
    )
    wanted = sum(rate for _, rate in rates)
    return bool(solved.status == 0 and -solved.fun >= wanted * (1 - TOLERANCE))


def _check_required(problem: FleetProblem, plan: Plan) -> list[str]:
    """What the plan must contain runs somewhere it was asked for."""
    replicas = plan.replicas()
    errors = []
    for required in problem.required:
        running = sum(
            count
            for (key, offer_id), count in replicas.items()
            if (required.keys is None or key in required.keys)
            and (required.offer_ids is None or offer_id in required.offer_ids)
        )
        if running < 1:
            errors.append(f"no replica of {required.name}")
    return errors


def _check_places(problem: FleetProblem, plan: Plan, row_of: dict[int, int]) -> list[str]:
    """Each workload is in no more providers, regions and kinds of devices than it may be."""
    offers = {offer.id: offer for offer in problem.offers}
    used: dict[int, set[str]] = defaultdict(set)
    for group in plan.groups:
        for key, _ in group.replicas:
            used[int(problem.deployments.workload[row_of[key]])].add(group.offer_id)
    errors = []
    for w, demand in enumerate(problem.demands):
        for kind, most in demand.most_places:
            places = {offers[offer_id].place(kind) for offer_id in used[w]}
            if len(places) > most:
                errors.append(f"workload {w} is in {len(places)} places of kind {kind}, at most {most} are allowed")
    return errors


def _check_copies(problem: FleetProblem, plan: Plan, row_of: dict[int, int]) -> list[str]:
    """No workload has more copies of its model than it may."""
    table = problem.deployments
    found: Counter[int] = Counter()
    for (key, _), count in plan.replicas().items():
        row = row_of[key]
        found[int(table.workload[row])] += count * (1 if table.copies is None else int(table.copies[row]))
    return [
        f"workload {w} has {found[w]} copies of its model, at most {demand.most_copies} are allowed"
        for w, demand in enumerate(problem.demands)
        if demand.most_copies is not None and found[w] > demand.most_copies
    ]
