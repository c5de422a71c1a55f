"""What the cost model refuses, told in terms of the request's own fields."""

from service.problems import FieldError, InvalidFieldsError
from service.wire.tco import ComparisonIn
from solver.errors import FigureMissingError
from solver.tco.errors import CostInputError

POINTERS = {
    "horizon_months": "/horizon_months",
    "utilisation_fraction": "/utilisation_fraction",
    "hourly_profile": "/hourly_profile",
    "growth_fraction_per_month": "/growth_percent_per_month",
    "discount_fraction_per_year": "/discount_rate_percent",
    "inflation_fraction_per_year": "/inflation_percent_per_year",
    "rent_change_fraction_per_year": "/market/rent_percent_per_year",
    "api_change_fraction_per_year": "/market/api_percent_per_year",
    "hardware_change_fraction_per_year": "/market/hardware_percent_per_year",
    "ramp_months": "/ramp_months",
    "tax_fraction": "/tax_percent",
    "income_tax_fraction": "/income_tax_percent",
    "electricity_usd_per_kwh": "/electricity/usd_per_kwh",
    "demand_charge_usd_per_kw_month": "/electricity/demand_charge_usd_per_kw_month",
    "grid_kg_co2e_per_kwh": "/electricity/grid_kg_co2e_per_kwh",
    "power_usage_effectiveness": "/power_usage_effectiveness",
    "colocation_usd_per_kw_month": "/colocation_usd_per_kw_month",
}
"""The cost model's inputs that stand at the top of a request."""
OF_PURCHASE = {
    "purchase_usd_per_node": "usd_per_node",
    "staff_fte_per_node": "staff_fte_per_node",
    "maintenance_fraction_per_year": "maintenance_percent_per_year",
    "peak_w_per_node": "peak_kw_per_node",
    "lead_time_months": "lead_time_months",
    "network_usd_per_node": "network_usd_per_node",
    "storage_usd_per_node": "storage_usd_per_node",
    "residual_fraction": "residual_fraction",
    "finance_fraction_per_year": "finance_rate_percent",
    "depreciation_months": "depreciation_months",
    "finance_term_months": "finance_months",
}

OF_ALTERNATIVE = {
    "egress_gb_per_month": "egress_gb_per_month",
    "rented_storage_usd_per_month": "storage_usd_per_month",
    "commitment_used_fraction": "commitment_used_fraction",
    "lease_usd_per_node_month": "lease/usd_per_node_month",
    "buyout_usd_per_node": "lease/buyout_usd_per_node",
    "lease": "lease",
    "lease.term_months": "lease/term_months",
    "held_usd_per_node": "owned/usd_paid_per_node",
    "owned.nodes": "owned/nodes",
    "owned.age_months": "owned/age_months",
}


def pointed(asked: ComparisonIn, error: CostInputError | FigureMissingError) -> InvalidFieldsError:
    """The refusal as a problem that points at the field, as closely as one exists for it."""
    if isinstance(error, FigureMissingError):
        detail, alternative, name = f"figure_missing: {error}", error.subject, error.figure
    else:
        detail, alternative, name = str(error), error.alternative or "", error.field
    position = next((i for i, a in enumerate(asked.alternatives) if a.name == alternative), None)
    if name in POINTERS:
        pointer = POINTERS[name]
    elif position is not None:
        below = f"/purchase/{OF_PURCHASE[name]}" if name in OF_PURCHASE else ""
        below = f"/{OF_ALTERNATIVE[name]}" if name in OF_ALTERNATIVE else below
        pointer = f"/alternatives/{position}{below}"
    else:
        pointer = ""
    return InvalidFieldsError([FieldError(detail, pointer=pointer)])


def where_stated(name: str) -> str | None:
    """The field of the request that states an input of the cost model, as a pointer; ``*`` for any alternative."""
    if name in POINTERS:
        return POINTERS[name]
    if name in OF_PURCHASE:
        return f"/alternatives/*/purchase/{OF_PURCHASE[name]}"
    if name in OF_ALTERNATIVE:
        return f"/alternatives/*/{OF_ALTERNATIVE[name]}"
    if name.startswith("residual_fraction"):
        return "/alternatives/*/purchase/residual_fraction"
    if name.startswith("api_usd_per_million"):
        return f"/alternatives/*/api/{name.removeprefix('api_')}"
    return "/alternatives/*/fleet/*/usd_per_node_hour" if name == "rent_usd_per_node_hour" else None
