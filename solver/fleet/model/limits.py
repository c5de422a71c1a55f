"""Limits of the whole fleet, one function a constraint: stock, spare nodes, quotas, spot, budget, power, emissions."""

from solver.fleet.model.objective import carbon_terms, cost_terms, power_terms
from solver.fleet.model.programme import FleetProgramme, Terms


def add_group_availability(model: FleetProgramme) -> None:
    """Σ_{o in p} n_o ≤ N_p, the most nodes of the group that a best plan can need."""
    for p, group in enumerate(model.reduced.groups):
        if len(group.offers) > 1:
            model.at_most(
                {model.nodes[o]: 1.0 for o in group.offers}, float(model.reduced.max_nodes[p]), f"available_{p}"
            )


def add_spare_nodes(model: FleetProgramme) -> None:
    """Replicas only in a group marked in use:  x_i ≤ X_i u_p,  u_o ≤ u_p.

    The k spares themselves are a term of the packing rows: any k nodes of the fleet may fail and, were they all in
    one group, that group's spares take their replicas unchanged. Conservative against re-routing to other groups.
    """
    if not model.in_use:
        return
    pairs = model.reduced.pairs
    for p, rows in enumerate(model.group_rows):
        for i in rows:
            user = model.in_use[p, int(pairs.offer[i])]
            model.at_most({model.replicas[i]: 1.0, user: -float(model.replicas_bound[i])}, 0.0, f"used_{i}")
    for (p, offer), user in model.in_use.items():
        if offer >= 0:
            model.at_most({user: 1.0, model.in_use[p, -1]: -1.0}, 0.0, f"used_group_{p}_{offer}")


def add_quotas(model: FleetProgramme) -> None:
    """Σ_{o in q} G_o n_o ≤ Q_q devices."""
    offers = model.reduced.problem.offers
    for q, quota in enumerate(model.reduced.problem.limits.quotas):
        terms: Terms = {
            variable: float(offers[o].devices) for o, variable in model.nodes.items() if offers[o].id in quota.offer_ids
        }
        if terms:
            model.at_most(terms, float(quota.max_devices), f"quota_{q}")


def add_spot_share(model: FleetProgramme) -> None:
    """Interruptible devices are at most a share of all:  Σ_{o spot} G_o n_o ≤ σ Σ_o G_o n_o."""
    share = model.reduced.problem.limits.max_spot_fraction
    offers = model.reduced.problem.offers
    if share is None or not any(offers[o].interruptible for o in model.nodes):
        return
    terms: Terms = {
        variable: offers[o].devices * ((1.0 if offers[o].interruptible else 0.0) - share)
        for o, variable in model.nodes.items()
    }
    model.at_most(terms, 0.0, "spot_share")


def add_budget(model: FleetProgramme) -> None:
    """Σ c_o n_o ≤ B."""
    budget = model.reduced.problem.limits.budget_usd_per_hour
    if budget is not None:
        model.at_most(cost_terms(model), budget, "budget")


def add_power_limit(model: FleetProgramme) -> None:
    """Σ W_o n_o + Σ P_i x_i ≤ P."""
    limit = model.reduced.problem.limits.power_w
    if limit is not None:
        model.at_most(power_terms(model), limit, "power")


def add_carbon_limit(model: FleetProgramme) -> None:
    """Σ γ_o W_o n_o + Σ γ_p P_i x_i ≤ E."""
    limit = model.reduced.problem.limits.carbon_kg_per_hour
    if limit is not None:
        model.at_most(carbon_terms(model), limit, "carbon")
