"""Prefill and decode in pools of their own, as a further kind of deployment: found, confirmed, and compared with the rest.

The cheapest plan of aggregated replicas is in hand; the optimiser over all three roles looks for one that costs less. What it
chooses is simulated, both pools and the transfer between them, and replicas that fail get the capacity the simulation
finds, as for every other plan. Opt-in, since it takes a second search.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from solver.candidates.phase_capacity import role_capacities
from solver.candidates.screening import Screened
from solver.confirmation.confirmations import OPTIMISM, Confirmations
from solver.errors import InvalidInputError, NoPlanInTimeError, VerificationError
from solver.fleet.phases.formulation import Role, RoleDeployment, RolesPlan, RolesProblem, RolesResult
from solver.fleet.phases.solve import solve_roles
from solver.fleet.phases.verify import verify_roles
from solver.fleet.plan import PROVEN_GAP_FRACTION
from solver.fleet.problem import OfferSlot
from solver.hardware import Offer
from solver.outcome import Outcome, status_of_plan
from solver.planning.assemble import Assembly
from solver.planning.types import Alternative, PlanningInput, PoolsReport, Recommendation, SolveReport
from solver.recommend.disaggregation_confirm import Floats, PoolSearch, failures, has_pools
from solver.recommend.disaggregation_entries import pool_entries
from solver.workload import Workload

MOST_ROUNDS = 40
NOT_FROM_A_FLEET = "pools of their own are not planned from a fleet that runs"


def wants_pools(planning: PlanningInput) -> bool:
    return any("disaggregated" in workload.roles for workload in planning.workloads)


def without_pools(planning: PlanningInput) -> PlanningInput:
    """The same with replicas that do both only. Raises InvalidInputError where a workload admits nothing but pools."""
    forced = [w.name for w in planning.workloads if "aggregated" not in w.roles]
    if forced:
        raise InvalidInputError(f"{', '.join(forced)}: {NOT_FROM_A_FLEET}")
    return replace(planning, workloads=tuple(replace(w, roles=("aggregated",)) for w in planning.workloads))


def not_considered(planning: PlanningInput) -> str | None:
    """Why pools are not looked for under these limits and targets; None where they are."""
    limits = planning.limits
    survive = limits.survive
    if planning.objective != "cost":
        return "pools of their own are looked for at the objective cost only"
    if limits.spare_nodes or survive.nodes or survive.providers or survive.regions:
        return "pools of their own are not planned for losses and spare nodes"
    if limits.max_spot_fraction is not None or limits.quotas or limits.max_power_w is not None:
        return "pools of their own are not planned within quotas, a share of spot or a power limit"
    mixed = [workload.name for workload in planning.workloads if workload.classes]
    if mixed:
        return f"pools of their own are not planned with traffic classes, which {', '.join(mixed)} has"
    for workload in planning.workloads:
        if "disaggregated" in workload.roles and workload.targets.end_to_end_s:
            return f"an end-to-end target joins both pools of {workload.name}: state TTFT and TPOT"
        if workload.network_s_by_region is not None:
            return f"pools of their own are not planned with network latency by region, which {workload.name} states"
        if workload.min_replicas > 1:
            return f"{workload.name} wants several replicas at least, which is not defined for pools"
    return None


def with_pools(
    planning: PlanningInput, assembly: Assembly, confirmations: Confirmations, found: Recommendation
) -> Recommendation:
    """The recommendation with pools where they are cheaper, or where a workload admits nothing else.

    found: the best without pools, or that there is none. The answer says by how much the better one is better; the price
    of the dearer is looked for only where alternatives are asked for. Raises NoPlanInTimeError where only pools are
    admitted and none was found or ruled out in time, VerificationError on a defect, and InvalidInputError where only pools are
    admitted and the limits rule their search out.
    """
    reason = not_considered(planning)
    forced = [w.name for w in planning.workloads if "aggregated" not in w.roles]
    if reason is not None:
        if forced:
            raise InvalidInputError(f"{', '.join(forced)}: {reason}")
        return replace(found, pools=PoolsReport(chosen=False, reason=reason))
    search = _search(planning, assembly, confirmations)
    ceiling = found.usd_per_hour if found.entries and not forced else math.inf
    result, plan = _cheapest(search, ceiling, without_both=False)
    if result.outcome is Outcome.UNKNOWN and forced:
        raise NoPlanInTimeError(planning.time_limit_s)
    cheaper = plan is not None and (not found.entries or forced or (result.usd_per_hour or 0.0) < ceiling * (1 - 1e-9))
    if plan is not None and cheaper and has_pools(search, plan):
        return _chosen(search, result, plan, found)
    return _not_chosen(search, result, found, forced)


def _search(planning: PlanningInput, assembly: Assembly, confirmations: Confirmations) -> PoolSearch:
    offers = {offer.id: offer for offer in planning.offers}
    rates: dict[tuple[int, Role], Floats] = {}
    for w, one in enumerate(assembly.screened):
        if "disaggregated" in one.workload.roles:
            capacities = role_capacities(one)
            rates[w, "prefill"], rates[w, "decode"] = capacities.prefill, capacities.decode
    return PoolSearch(planning, assembly, offers, _limited_slots(planning), rates, confirmations)


def _limited_slots(planning: PlanningInput) -> tuple[OfferSlot, ...]:
    """Every offer with a limit of nodes. Dearer ones stay: pools meet in one region, which a cheaper offer may not be in."""
    return tuple(
        OfferSlot(
            id=offer.id,
            node_type_id=offer.node.id,
            device_id=offer.node.device.id,
            devices=offer.node.devices,
            provider=offer.provider,
            region=offer.region,
            commitment=offer.commitment,
            usd_per_hour=offer.usd_per_hour,
            max_nodes=_most_nodes(planning, offer),
            host_power_w=0.0 if math.isnan(offer.node.host_power_w) else offer.node.host_power_w,
        )
        for offer in planning.offers
    )


def _most_nodes(planning: PlanningInput, offer: Offer) -> int:
    """The offer's own limit, else the default, else as many as there are requests: no plan needs more nodes than that."""
    if offer.max_nodes is not None:
        return offer.max_nodes
    return planning.default_max_nodes or 1_000


def _cheapest(search: PoolSearch, ceiling: float, *, without_both: bool) -> tuple[RolesResult, RolesPlan | None]:
    """The cheapest plan no dearer than ``ceiling`` whose replicas all hold in simulation.

    without_both: workloads that admit pools get nothing else. What cannot be settled in time is ``unknown``.
    """
    planning = search.planning
    while True:
        search.rounds += 1
        problem = _problem(search, without_both=without_both)
        left_s = max(planning.time_limit_s - search.seconds, 0.05 * planning.time_limit_s)
        result = solve_roles(problem, time_limit_s=left_s, gap_fraction=planning.gap_fraction, at_most_usd=ceiling)
        search.seconds += result.solver_seconds
        if result.plan is None:
            return result, None
        errors = verify_roles(problem, result)
        if errors:
            raise VerificationError("; ".join(errors[:5]))
        failed = failures(search, result.plan)
        if not failed:
            return result, result.plan
        search.known.update(failed)
        if search.rounds >= MOST_ROUNDS or search.seconds > planning.time_limit_s:
            return replace(result, outcome=Outcome.UNKNOWN, plan=None), None


def _problem(search: PoolSearch, *, without_both: bool) -> RolesProblem:
    planning, assembly = search.planning, search.assembly
    search.keys = []
    rows: list[RoleDeployment] = []
    table = assembly.problem.deployments
    for w, one in enumerate(assembly.screened):
        pools_only = "aggregated" not in one.workload.roles or (without_both and "disaggregated" in one.workload.roles)
        if not pools_only:
            mine = np.flatnonzero((assembly.workload_of == w) & (table.nodes_per_replica == 1))
            rates = np.zeros(len(one.space.rows))
            rates[assembly.row_of[mine]] = table.capacity_requests_per_s[mine, 0]
            rows += _deployments(search, w, one, "aggregated", rates)
        for role in ("prefill", "decode"):
            if (w, role) in search.screened_rates:
                rows += _deployments(search, w, one, role, _scaled(search, w, one, role))
    return RolesProblem(
        search.slots,
        tuple(rows),
        tuple(one.workload.requests_per_s for one in assembly.screened),
        tuple(one.workload.utilisation_limit_fraction for one in assembly.screened),
        planning.limits.max_usd_per_hour,
        None,
        tuple(_admitted(one.workload, search.slots) for one in assembly.screened),
        planning.limits.most_places,
    )


def _admitted(workload: Workload, slots: Sequence[OfferSlot]) -> frozenset[str]:
    return frozenset(slot.id for slot in slots if workload.places.admit(slot.provider, slot.region))


def _scaled(search: PoolSearch, w: int, one: Screened, role: Role) -> Floats:
    """Screened rates, corrected where simulated and scaled by the best ratio of those like them elsewhere (see ``Confirmations``)."""
    rates = search.screened_rates[w, role]
    similar = one.space.similar
    found = {row: rate for (v, row, r), rate in search.known.items() if v == w and r == role}
    if not found:
        return rates
    ratios: dict[int, float] = defaultdict(float)
    for row, rate in found.items():
        ratios[int(similar[row])] = max(ratios[int(similar[row])], rate / float(rates[row]))
    factors = np.full(len(rates), max(ratios.values()) * OPTIMISM)
    for family, ratio in ratios.items():
        factors[similar == family] = ratio * OPTIMISM
    scaled = rates * np.minimum(np.where(factors > 0.0, factors, 1.0), 1.0)
    for row, rate in found.items():
        scaled[row] = rate
    return scaled


def _deployments(search: PoolSearch, w: int, one: Screened, role: Role, rates: Floats) -> list[RoleDeployment]:
    """Candidates of one role on whole devices that no smaller one of the same platform, format and engine replaces."""
    space = one.space
    alike: dict[tuple[int, str], list[int]] = defaultdict(list)
    whole = np.array([own.device.partition is None for own in space.platforms], dtype=np.bool_)
    for row in np.flatnonzero((rates > 0.0) & whole[space.platform_index]).tolist():
        alike[int(space.platform_index[row]), str(space.kv_formats[row]) if role != "aggregated" else ""].append(row)
    found = []
    for (platform, cache), members in alike.items():
        best: list[int] = []
        for row in sorted(members, key=lambda r: (int(space.devices_per_replica[r]), -float(rates[r]), r)):
            size = int(space.devices_per_replica[row])
            if any(size // int(space.devices_per_replica[b]) * rates[b] >= rates[row] for b in best):
                continue
            best.append(row)
            own = space.platforms[platform]
            exchange = "" if role == "aggregated" else f"{cache}/{own.engine}/{own.device.vendor}"
            for node_id in space.platforms[platform].node_ids:
                search.keys.append((w, row, role))
                found.append(
                    RoleDeployment(
                        len(search.keys) - 1, w, role, node_id, size, float(rates[row]),
                        float(one.power_w_per_replica[row]), exchange,
                    )
                )  # fmt: skip
    return found


def _chosen(search: PoolSearch, result: RolesResult, plan: RolesPlan, found: Recommendation) -> Recommendation:
    entries = pool_entries(search, plan)
    usd = result.usd_per_hour or 0.0
    extra = found.usd_per_hour - usd if found.entries else None
    other = (
        Alternative("cheapest without pools of their own", extra, extra, found.entries)
        if found.entries
        else Alternative("cheapest without pools of their own", None, None, ())
    )
    return replace(
        found,
        solve=_report(search, result, found.solve),
        entries=entries,
        splits=(),
        nodes=dict(sorted(plan.nodes.items())),
        usd_per_hour=usd,
        power_w=sum(e.power_w for e in entries),
        confidence_premium_usd_per_hour=None,
        throughput_multiple=1.0,
        alternatives=(other,) if search.planning.alternatives else (),
        binding=(),
        conflicts=(),
        relaxations=(),
        largest_servable_multiple=None,
        sourcing=(),
        lower_precision=None,
        unsettled=(),
        pools=PoolsReport(chosen=True, saves_usd_per_hour=extra),
    )


def _not_chosen(
    search: PoolSearch, result: RolesResult, found: Recommendation, forced: Sequence[str]
) -> Recommendation:
    """Say what pools would cost instead, where alternatives are asked for and time is left."""
    reason = "no plan with pools of their own costs less" if found.entries else "no plan with pools of their own exists"
    if result.outcome is Outcome.UNKNOWN:
        reason = "none was found in the time left, and none was ruled out"
    if forced or not search.planning.alternatives or result.outcome is Outcome.UNKNOWN:
        if forced:
            nothing = replace(found.solve, outcome=Outcome.INFEASIBLE, objective=None, bound=None, gap_fraction=None)
            found = replace(found, solve=nothing, entries=(), nodes={}, usd_per_hour=0.0, power_w=0.0, binding=())
        return replace(found, pools=PoolsReport(chosen=False, reason=reason))
    other, plan = _cheapest(search, math.inf, without_both=True)
    why = "cheapest with prefill and decode in pools of their own"
    if plan is None or other.usd_per_hour is None:
        known = other.outcome is Outcome.INFEASIBLE
        dearer = (Alternative(why, None, None, ()),) if known else ()
        return replace(
            found, alternatives=(*found.alternatives, *dearer), pools=PoolsReport(chosen=False, reason=reason)
        )
    extra = other.usd_per_hour - found.usd_per_hour if found.entries else None
    return replace(
        found,
        alternatives=(*found.alternatives, Alternative(why, extra, extra, pool_entries(search, plan, predict=False))),
        pools=PoolsReport(chosen=False, extra_usd_per_hour=extra, reason=reason),
    )


def _report(search: PoolSearch, result: RolesResult, before: SolveReport) -> SolveReport:
    return SolveReport(
        outcome=result.outcome,
        status=status_of_plan(result.gap_fraction or 0.0, search.planning.gap_fraction, PROVEN_GAP_FRACTION),
        objective=result.usd_per_hour,
        bound=result.bound,
        gap_fraction=result.gap_fraction,
        candidates=before.candidates + result.candidates,
        solver="highs",
        solver_seconds=before.solver_seconds + search.seconds,
        confirmation_rounds=before.confirmation_rounds + search.rounds,
        simulated=before.simulated + search.simulations,
    )
