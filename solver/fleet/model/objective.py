"""What the programme minimises or maximises: price, power, emissions, or the multiple of all demand that is served."""

import pulp

from solver.fleet.model.programme import FleetProgramme, Terms
from solver.units import kg_per_hour

LEAST_USD = 1e-5
"""An hour of a node that costs nothing, as the solver sees it: above its tolerance, far below a price."""


def add_objective(model: FleetProgramme) -> None:
    """Cost: min Σ c_o n_o.  Power: min Σ W_o n_o + Σ P_i x_i, for carbon each times γ of its place.  Throughput: max θ."""
    objective = model.reduced.problem.objective
    if model.multiple is not None:
        terms: Terms = {model.multiple: 1.0}
    elif objective == "cost":
        terms = no_idle_gifts(cost_terms(model))
    elif objective == "power":
        terms = power_terms(model)
    else:
        terms = carbon_terms(model)
    model.programme.setObjective(pulp.LpAffineExpression(terms))


def no_idle_gifts(terms: Terms) -> Terms:
    """The same where nodes that cost nothing cost next to nothing, so that none stands idle in a plan."""
    return {variable: price or LEAST_USD for variable, price in terms.items()}


def cost_terms(model: FleetProgramme) -> Terms:
    """Σ c_o n_o in USD per hour."""
    offers = model.reduced.problem.offers
    return {variable: offers[o].usd_per_hour for o, variable in model.nodes.items()}


def power_terms(model: FleetProgramme) -> Terms:
    """Σ W_o n_o + Σ P_i x_i in watts."""
    offers = model.reduced.problem.offers
    terms: Terms = {variable: offers[o].host_power_w for o, variable in model.nodes.items()}
    terms.update(zip(model.replicas, model.reduced.pairs.power_w.tolist(), strict=True))
    return terms


def carbon_terms(model: FleetProgramme) -> Terms:
    """Σ γ_o W_o n_o + Σ γ_p P_i x_i in kg CO2e per hour, γ of the place in kg per Wh."""
    offers = model.reduced.problem.offers
    terms: Terms = {
        variable: kg_per_hour(offers[o].host_power_w, offers[o].kg_co2e_per_kwh) for o, variable in model.nodes.items()
    }
    terms.update(zip(model.replicas, model.reduced.pairs.takes("carbon")[1].tolist(), strict=True))
    return terms
