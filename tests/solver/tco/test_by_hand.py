"""Whole alternatives against figures worked out in comments."""

from dataclasses import replace

import pytest

from solver.tco.alternatives import MixedFleet
from solver.tco.compare import AlternativeCost, compare
from solver.tco.figures import exactly
from solver.tco.sampling import Sampling
from tests.solver.tco.examples import SPOT, api, bought, committed, rented, scenario

EXACT = Sampling(draws=0)


def _cost(alternative: object, at: object) -> AlternativeCost:
    return compare([alternative], at, EXACT).alternatives[0]


def _usd(cost: AlternativeCost) -> dict[str, float]:
    return {line.name: line.total / 1e6 for line in cost.lines}


class TestRent:
    def test_by_the_hour(self) -> None:
        # 2 nodes · 30 USD/h · 730 h · 36 months
        assert _usd(_cost(rented(), scenario(36))) == {"rent": 2 * 30 * 730 * 36}

    def test_by_the_hour_is_paid_at_month_ends(self) -> None:
        flows = _cost(rented(), scenario(2)).flows
        assert flows == (0, 43_800_000_000, 43_800_000_000)

    def test_spot_pays_for_lost_hours(self) -> None:
        spot = replace(rented(), interruptible=True, figures={**rented().figures, **SPOT})
        # 0.5 interruptions · 0.25 h = 0.125 h of 730 are lost
        assert _usd(_cost(spot, scenario(1)))["rent"] == pytest.approx(43_800 / (1 - 0.125 / 730))

    def test_paid_all_upfront(self) -> None:
        cost = _cost(committed(term_months=12, upfront=1.0), scenario(12))
        assert cost.flows[0] == 2 * 18 * 730 * 12 * 10**6
        assert set(cost.flows[1:]) == {0}

    def test_half_upfront(self) -> None:
        cost = _cost(committed(term_months=12, upfront=0.5), scenario(12))
        assert cost.flows[0] == 157_680 * 10**6
        assert cost.flows[1] == 13_140 * 10**6

    def test_renewed_while_needed(self) -> None:
        cost = _cost(committed(term_months=12, upfront=1.0), scenario(36))
        assert [month for month, flow in enumerate(cost.flows) if flow] == [0, 12, 24]

    def test_what_outlasts_the_horizon_is_still_owed(self) -> None:
        # 36 months committed, 24 looked at: 12 · 2 · 18 · 730 remain
        assert _usd(_cost(committed(term_months=36), scenario(24))) == {
            "rent": 24 * 26_280,
            "unexpired_commitment": 12 * 26_280,
        }

    def test_growth_rents_whole_nodes(self) -> None:
        # 2 · 1.1^t for t = 0 … 4: 2, 2.2, 2.42, 2.662, 2.9282 → 2, 3, 3, 3, 3 nodes
        cost = _cost(rented(), scenario(5, growth_fraction_per_month=0.1))
        assert [flow / (30 * 730 * 10**6) for flow in cost.flows[1:]] == [2, 3, 3, 3, 3]

    def test_data_sent_out_grows_with_demand_and_disks_do_not(self) -> None:
        stated = {"egress_gb_per_month": 500.0, "egress_usd_per_gb": 0.09, "rented_storage_usd_per_month": 40.0}
        fleet = replace(rented(), figures={**rented().figures, **{name: exactly(v) for name, v in stated.items()}})
        usd = _usd(_cost(fleet, scenario(2, growth_fraction_per_month=0.1)))
        assert usd["egress"] == pytest.approx(500 * 0.09 * 2.1)
        assert usd["rented_storage"] == 80

    def test_following_the_day(self) -> None:
        at = replace(scenario(1), hourly_profile=(0.5,) * 12 + (1.0,) * 12)
        follows = replace(rented(nodes=3), follows_demand=True)
        # 12 of 24 hours need ceil(1.5) = 2 nodes, 12 need 3
        assert _usd(_cost(follows, at))["rent"] == pytest.approx(30 * 730 * 2.5)

    def test_a_falling_market_lowers_rent_but_not_a_commitment(self) -> None:
        at = scenario(36, rent_change_fraction_per_year=-0.2)
        assert _cost(rented(), at).flows[13] / 1e6 == pytest.approx(43_800 * 0.8)
        assert set(_cost(committed(), at).flows[1:]) == {26_280 * 10**6}


class TestPurchase:
    def test_every_line(self) -> None:
        usd = _usd(_cost(bought(), scenario(12)))
        assert usd["purchase"] == 680_000
        assert usd["network"] == 70_000
        assert usd["storage"] == 20_000
        assert usd["spares"] == 34_000  # 5 % of the machines
        # 10.96 kW · (0.4 + 0.35 · 0.6) = 6.6856 kW; · 2 · 730 · 12 = 117,131.712 kWh
        assert usd["power"] == pytest.approx(11_713.1712)
        assert usd["cooling"] == pytest.approx(2_928.2928)
        assert usd["space"] == pytest.approx(10.96 * 2 * 184 * 12)
        assert usd["maintenance"] == pytest.approx(804_000 * 0.04)
        assert usd["insurance"] == pytest.approx(804_000 * 0.007)
        assert usd["staff"] == pytest.approx(0.5 * 200_000)
        # after 12 months 1 − 0.55 / 3 of machines and spares is left
        assert usd["residual"] == pytest.approx(-714_000 * (1 - 0.55 / 3))
        assert "support" not in usd
        assert "tax" not in usd

    def test_energy_carbon_and_water(self) -> None:
        footprint = _cost(bought(), scenario(12)).footprint
        assert footprint.it_kwh == pytest.approx(117_131.712)
        assert footprint.facility_kwh == pytest.approx(117_131.712 * 1.25)
        assert footprint.kg_co2e == pytest.approx(117_131.712 * 1.25 * 0.369)
        assert footprint.water_l == pytest.approx(117_131.712 * 1.8)

    def test_a_stated_residual_stands_at_the_end_of_life(self) -> None:
        at_end = _usd(_cost(bought(residual_fraction=0.15), scenario(60)))
        assert at_end["residual"] == pytest.approx(-714_000 * 0.15)
        # 36 of 60 months on: 1 − 0.85 · 0.6
        usd = _usd(_cost(bought(residual_fraction=0.15), scenario(36)))
        assert usd["residual"] == pytest.approx(-714_000 * 0.49)

    def test_replaced_at_the_end_of_life(self) -> None:
        cost = _cost(replace(bought(), life_months=24), scenario(36))
        purchase = next(line for line in cost.lines if line.name == "purchase")
        assert [month for month, flow in enumerate(purchase.flows) if flow] == [0, 24]
        residual = next(line for line in cost.lines if line.name == "residual")
        assert [month for month, flow in enumerate(residual.flows) if flow] == [24, 36]

    def test_tax_is_on_what_is_bought_from_others(self) -> None:
        usd = _usd(_cost(bought(), scenario(12, tax_fraction=0.1)))
        taxed = sum(v for k, v in usd.items() if k not in ("tax", "residual", "staff", "insurance"))
        assert usd["tax"] == pytest.approx(0.1 * taxed)

    def test_taking_machines_out_is_paid_when_they_are_sold(self) -> None:
        fleet = replace(bought(decommissioning_usd_per_node=1500.0), life_months=24)
        cost = _cost(fleet, scenario(36, inflation_fraction_per_year=0.1))
        line = next(line for line in cost.lines if line.name == "decommissioning")
        found = {month: flow / 1e6 for month, flow in enumerate(line.flows) if flow}
        assert found == pytest.approx({24: 3000 * 1.1 ** (23 / 12), 36: 3000 * 1.1 ** (35 / 12)})

    def test_demand_charge_is_on_the_peak_at_the_meter(self) -> None:
        usd = _usd(_cost(bought(), scenario(1, demand_charge_usd_per_kw_month=10.0)))
        assert usd["demand_charge"] == pytest.approx(2 * 10.96 * 1.25 * 10)


class TestApi:
    def test_by_kind_of_token(self) -> None:
        # 20 requests/s · 0.6 · 2,628,000 s = 31,536,000 requests a month; 1,200 in (a quarter cached), 300 out
        usd = _usd(_cost(api(), scenario(1)))
        assert usd == pytest.approx(
            {"api_input": 31.536 * 900 * 0.60, "api_cached": 31.536 * 300 * 0.10, "api_output": 31.536 * 300 * 0.80}
        )

    def test_unit_costs(self) -> None:
        unit = _cost(api(), scenario(1)).unit
        # per request 900 · 0.6 + 300 · 0.1 + 300 · 0.8 = 810 millionths of a dollar
        assert unit.usd_per_request == pytest.approx(810e-6)
        assert unit.usd_per_million_output_tokens == pytest.approx(810 / 300)
        assert unit.usd_per_million_input_tokens == pytest.approx(810 / 1200)
        assert unit.usd_per_million_tokens == pytest.approx(810 / 1500)

    def test_no_footprint_is_claimed(self) -> None:
        assert _cost(api(), scenario(1)).footprint.facility_kwh is None


def test_no_use_leaves_the_cost_per_token_undefined_and_says_so() -> None:
    cost = compare([rented(), api()], scenario(12, utilisation_fraction=0.0), Sampling(draws=50)).alternatives[0]
    assert cost.total == 2 * 30 * 730 * 12 * 10**6
    assert cost.unit.usd_per_million_tokens is None
    assert "undefined" in cost.unit.undefined_because
    assert cost.uncertainty.usd_per_million_tokens is None


def test_energy_of_rented_machines_is_told_where_their_power_is_known() -> None:
    known = {
        "peak_w_per_node": exactly(10_960.0),
        "idle_power_fraction": exactly(0.4),
        "serving_power_fraction": exactly(0.75),
    }
    fleet = replace(rented(), figures={**rented().figures, **known})
    assert _cost(fleet, scenario(12)).footprint.it_kwh == pytest.approx(117_131.712)


class TestMixedFleet:
    def test_parts_add_up_line_by_line(self) -> None:
        mixed = MixedFleet("both", (rented(nodes=1), bought(nodes=3), rented(nodes=2, usd_per_hour=5.0)))
        whole = _cost(mixed, scenario(36))
        lines: dict[str, int] = {}
        for part in mixed.parts:
            for line in _cost(part, scenario(36)).lines:
                lines[line.name] = lines.get(line.name, 0) + line.total
        assert {line.name: line.total for line in whole.lines} == pytest.approx(lines, abs=200)
        assert whole.kind == "mixed"

    def test_an_input_that_differs_between_parts_swings_in_all_of_them(self) -> None:
        mixed = MixedFleet("both", (rented(nodes=1, usd_per_hour=30.0), rented(nodes=1, usd_per_hour=10.0)))
        swings = {swing.input: swing for swing in _cost(mixed, scenario(12)).swings}
        rent = swings["rent_usd_per_node_hour"]
        assert (rent.low, rent.high) == (None, None)
        assert rent.npv_usd_at_high / rent.npv_usd_at_low == pytest.approx(1.2 / 0.8)

    def test_energy_is_unknown_when_a_parts_is(self) -> None:
        assert _cost(MixedFleet("both", (rented(), bought())), scenario(12)).footprint.it_kwh is None
        two = _cost(MixedFleet("both", (bought(nodes=1), bought(nodes=1))), scenario(12))
        assert two.footprint.it_kwh == pytest.approx(117_131.712)
