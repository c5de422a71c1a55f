"""An independent check of a plan with pools: plain arithmetic over the problem, no formulation and no solver."""

import math
from collections import defaultdict

from solver.fleet.phases.formulation import RolesPlan, RolesProblem, RolesResult
from solver.outcome import Outcome

TOLERANCE = 2e-6


def verify_roles(problem: RolesProblem, result: RolesResult) -> list[str]:
    """Everything wrong with a result; empty for a correct one."""
    plan = result.plan
    if plan is None:
        wrong = result.outcome in (Outcome.OPTIMAL, Outcome.FEASIBLE) or result.usd_per_hour is not None
        return ["a result without a plan claims one"] if wrong else []
    if result.usd_per_hour is None or result.bound is None or result.gap_fraction is None:
        return ["a result with a plan leaves out its figures"]
    errors = verify_roles_plan(problem, plan)
    if errors:
        return errors
    usd = math.fsum(o.usd_per_hour * plan.nodes.get(o.id, 0) for o in problem.offers)
    if not math.isclose(usd, result.usd_per_hour, rel_tol=1e-9, abs_tol=1e-9):
        errors.append(f"the cost is stated as {result.usd_per_hour}, the plan gives {usd}")
    if result.bound > result.usd_per_hour * (1 + 1e-9):
        errors.append("the bound is above the plan's own cost")
    gap = abs(result.usd_per_hour - result.bound) / result.usd_per_hour if result.usd_per_hour else 0.0
    if not math.isclose(gap, result.gap_fraction, abs_tol=1e-9):
        errors.append("the gap does not follow from cost and bound")
    if (result.outcome is Outcome.OPTIMAL) != (result.gap_fraction == 0.0):
        errors.append(f"outcome {result.outcome} with a gap of {result.gap_fraction}")
    return errors


def verify_roles_plan(problem: RolesProblem, plan: RolesPlan) -> list[str]:
    """Everything wrong with a plan."""
    offers = {o.id: o for o in problem.offers}
    rows = {d.key: d for d in problem.deployments}
    unknown = [str(p) for p in {*plan.replicas, *plan.requests_per_s} if p[0] not in rows or p[1] not in offers]
    unknown += [o for o in plan.nodes if o not in offers]
    if unknown:
        return [f"the plan names what the problem lacks: {', '.join(sorted(unknown))}"]
    errors = [f"{o}: {n} nodes" for o, n in plan.nodes.items() if n < 1 or n > (offers[o].max_nodes or 0)]
    errors += [f"{p}: {n} replicas" for p, n in plan.replicas.items() if n < 1]
    errors += [
        f"{p}: on another node type" for p in plan.replicas if rows[p[0]].node_type_id != offers[p[1]].node_type_id
    ]
    allowed = problem.allowed_offer_ids
    errors += [f"{p}: may not run there" for p in plan.replicas if allowed and p[1] not in allowed[rows[p[0]].workload]]
    errors += _check_bins(problem, plan)
    for kind, most in problem.most_places:
        for w in range(len(problem.rates)):
            places = {offers[o].place(kind) for key, o in plan.replicas if rows[key].workload == w}
            if len(places) > most:
                errors.append(f"workload {w} is in {len(places)} places of kind {kind}, at most {most} are allowed")
    errors += _check_traffic(problem, plan)
    usd = math.fsum(offers[o].usd_per_hour * n for o, n in plan.nodes.items())
    if problem.budget_usd_per_hour is not None and usd > problem.budget_usd_per_hour * (1 + TOLERANCE):
        errors.append(f"{usd} USD/h is above the budget")
    watts = math.fsum(offers[o].host_power_w * n for o, n in plan.nodes.items())
    watts += math.fsum(rows[key].power_w_per_replica * n for (key, _), n in plan.replicas.items())
    if problem.power_w is not None and watts > problem.power_w * (1 + TOLERANCE):
        errors.append(f"{watts} W is above the power limit")
    return errors


def _check_bins(problem: RolesProblem, plan: RolesPlan) -> list[str]:
    """Replicas go into the nodes one by one, largest first, into the fullest node that still holds them."""
    size = {d.key: d.devices_per_replica for d in problem.deployments}
    errors = []
    for offer in problem.offers:
        free = [offer.devices] * plan.nodes.get(offer.id, 0)
        wanted = sorted(
            (size[key] for (key, o), count in plan.replicas.items() if o == offer.id for _ in range(count)),
            reverse=True,
        )
        for devices in wanted:
            room = [i for i, left in enumerate(free) if left >= devices]
            if not room:
                errors.append(f"the replicas at {offer.id} do not fit its {len(free)} nodes")
                break
            free[min(room, key=lambda i: free[i])] -= devices
    return errors


def _check_traffic(problem: RolesProblem, plan: RolesPlan) -> list[str]:
    """Loads within capacity, all demand served, and in every exchange as much prefilled as decoded."""
    offers = {o.id: o for o in problem.offers}
    rows = {d.key: d for d in problem.deployments}
    errors = []
    served: defaultdict[int, float] = defaultdict(float)
    sides: defaultdict[tuple[int, str, str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for placed, rate in plan.requests_per_s.items():
        row, offer = rows[placed[0]], offers[placed[1]]
        most = row.capacity_requests_per_s * problem.utilisation[row.workload] * plan.replicas.get(placed, 0)
        if not 0 <= rate <= most * (1 + TOLERANCE):
            errors.append(f"{placed} is routed {rate} requests/s and may carry {most}")
        if row.role == "aggregated":
            served[row.workload] += rate
            continue
        where = (row.workload, offer.provider, offer.region, row.exchange)
        sides[where][row.role == "decode"] += rate
    for place, (prefilled, decoded) in sides.items():
        if not math.isclose(prefilled, decoded, rel_tol=TOLERANCE, abs_tol=1e-12):
            errors.append(f"{place}: {prefilled} prompts/s are prefilled and {decoded} decoded")
        served[place[0]] += decoded
    for w, rate in enumerate(problem.rates):
        if not math.isclose(served[w], rate, rel_tol=TOLERANCE, abs_tol=1e-12):
            errors.append(f"workload {w}: {served[w]} of {rate} requests/s are served")
    return errors
