"""Limits of the whole fleet, one function a constraint: stock, quotas, spot, budget, power, emissions."""

from solver.fleet.model.objective import carbon_terms, cost_terms, power_terms
from solver.fleet.model.programme import FleetProgramme, Terms


def add_group_availability(model: FleetProgramme) -> None:
    """Σ_{o in p} n_o ≤ N_p, the most nodes of the group that a best plan can need."""
    for p, group in enumerate(model.reduced.groups):
        if len(group.offers) > 1:
            model.at_most(
                {model.nodes[o]: 1.0 for o in group.offers}, float(model.reduced.max_nodes[p]), f"available_{p}"
            )


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
