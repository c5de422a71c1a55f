"""Bad input is refused with an error that names the field."""

import math
from dataclasses import replace
from decimal import Decimal

import pytest

from solver.errors import FigureMissingError, InvalidInputError
from solver.tco.alternatives import Scenario
from solver.tco.compare import compare
from solver.tco.errors import CostInputError
from solver.tco.figures import Figure, exactly
from solver.tco.money import in_currency
from solver.tco.sampling import Sampling
from solver.tco.tokens import TokenDemand, usd_per_million_tokens_at_rate
from tests.solver.tco.examples import DEMAND, SHARED, bought, committed, rented, scenario


@pytest.mark.parametrize(
    ("figures", "field"),
    [
        ({"discount_fraction_per_year": -1.0}, "discount_fraction_per_year"),
        ({"power_usage_effectiveness": 0.9}, "power_usage_effectiveness"),
        ({"utilisation_fraction": 1.2}, "utilisation_fraction"),
        ({"utilisation_fraction": -0.1}, "utilisation_fraction"),
        ({"electricity_usd_per_kwh": -0.09}, "electricity_usd_per_kwh"),
        ({"electricity_usd_per_kwh": math.nan}, "electricity_usd_per_kwh"),
        ({"electricity_usd_per_kwh": math.inf}, "electricity_usd_per_kwh"),
        ({"growth_fraction_per_month": 0.5}, "growth_fraction_per_month"),
        ({"rent_change_fraction_per_year": -1.0}, "rent_change_fraction_per_year"),
        ({"colour": 1.0}, "colour"),
    ],
)
def test_scenario_figures(figures: dict[str, float], field: str) -> None:
    with pytest.raises(CostInputError) as refused:
        scenario(36, **figures)
    assert refused.value.field == field
    assert isinstance(refused.value, InvalidInputError)


@pytest.mark.parametrize("months", [400, 0, -1])
def test_horizon(months: int) -> None:
    with pytest.raises(CostInputError, match="between 1 and 240") as refused:
        scenario(months)
    assert refused.value.field == "horizon_months"


@pytest.mark.parametrize(
    ("alternative", "field"),
    [
        (rented(usd_per_hour=-1.0), "rent_usd_per_node_hour"),
        (rented(nodes=0), "nodes"),
        (bought(purchase_usd_per_node=-5.0), "purchase_usd_per_node"),
        (bought(residual_fraction=1.1), "residual_fraction"),
        (bought(finance_fraction_per_year=-0.01), "finance_fraction_per_year"),
        (replace(bought(), life_months=0), "depreciation_months"),
        (replace(bought(finance_fraction_per_year=0.1), finance_term_months=0), "finance_term_months"),
        (committed(upfront=1.5), "upfront_fraction"),
        (committed(term_months=0), "term_months"),
        (replace(rented(), follows_demand=True), "follows_demand"),
    ],
)
def test_alternatives(alternative: object, field: str) -> None:
    with pytest.raises(CostInputError) as refused:
        compare([alternative], scenario())
    assert refused.value.field == field
    assert refused.value.alternative == alternative.name
    assert field in str(refused.value)


def test_two_alternatives_with_one_name() -> None:
    with pytest.raises(CostInputError, match="two alternatives are called 'rent'") as refused:
        compare([rented(), bought("rent")], scenario())
    assert refused.value.field == "alternatives.name"


def test_nothing_to_compare() -> None:
    with pytest.raises(CostInputError) as refused:
        compare([], scenario())
    assert refused.value.field == "alternatives"


def test_a_range_out_of_order() -> None:
    fleet = replace(rented(), figures={"rent_usd_per_node_hour": Figure(3.0, 2.0, 4.0)})
    with pytest.raises(CostInputError, match="not in order"):
        compare([fleet], scenario())


def test_a_missing_figure_is_refused_not_guessed() -> None:
    figures = {name: figure for name, figure in bought().figures.items() if name != "purchase_usd_per_node"}
    with pytest.raises(FigureMissingError) as refused:
        compare([replace(bought(), figures=figures)], scenario())
    assert (refused.value.subject, refused.value.figure) == ("buy", "purchase_usd_per_node")


def test_spot_needs_its_interruptions() -> None:
    with pytest.raises(FigureMissingError) as refused:
        compare([replace(rented(), interruptible=True)], scenario())
    assert refused.value.figure == "spot_interruptions_per_node_month"


@pytest.mark.parametrize("profile", [(1.0,) * 23, (1.5,) * 24, (-0.1,) * 24])
def test_profile(profile: tuple[float, ...]) -> None:
    with pytest.raises(CostInputError) as refused:
        Scenario(12, DEMAND, SHARED, profile)
    assert refused.value.field == "hourly_profile"


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ((-1.0, 10.0, 10.0), "requests_per_s"),
        ((1.0, math.nan, 10.0), "input_tokens"),
        ((1.0, 10.0, 10.0, 1.5), "cached_fraction"),
    ],
)
def test_demand(arguments: tuple[float, ...], field: str) -> None:
    with pytest.raises(CostInputError) as refused:
        TokenDemand(*arguments)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"draws": -1}, "draws"),
        ({"draws": 10**6}, "draws"),
        ({"swing_fraction": 1.0}, "swing_fraction"),
        ({"seed": -1}, "seed"),
    ],
)
def test_sampling(settings: dict[str, float], field: str) -> None:
    with pytest.raises(CostInputError) as refused:
        Sampling(**settings)
    assert refused.value.field == field


def test_costs_beyond_exact_money() -> None:
    with pytest.raises(CostInputError, match="check prices") as refused:
        compare([bought(nodes=1_000_000, purchase_usd_per_node=1e9)], scenario())
    assert refused.value.alternative == "buy"


@pytest.mark.parametrize("rate", [Decimal(0), Decimal(-1), Decimal("NaN"), Decimal("Infinity")])
def test_exchange_rate(rate: Decimal) -> None:
    with pytest.raises(CostInputError) as refused:
        in_currency(Decimal(1), rate)
    assert refused.value.field == "currency.usd_per_unit"


@pytest.mark.parametrize(("rate", "utilisation"), [(0.0, 0.5), (100.0, 0.0), (100.0, 1.1)])
def test_cost_per_token_without_tokens(rate: float, utilisation: float) -> None:
    with pytest.raises(CostInputError):
        usd_per_million_tokens_at_rate(1.0, rate, utilisation)


def test_spot_that_is_always_interrupted() -> None:
    always = {"spot_interruptions_per_node_month": exactly(1000.0), "spot_lost_hours_per_interruption": exactly(1.0)}
    fleet = replace(rented(), interruptible=True, figures={**rented().figures, **always})
    with pytest.raises(InvalidInputError, match="no useful hour"):
        compare([fleet], scenario())
