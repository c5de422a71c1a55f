"""Properties that hold for any inputs."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solver.tco.alternatives import PurchasedFleet, RentedFleet
from solver.tco.break_even import crossings
from solver.tco.cash_flows import LINEAR_LINES
from solver.tco.compare import AlternativeCost, compare
from solver.tco.figures import Figure, draw, exactly
from solver.tco.leasing import lease_rate_usd_per_month
from solver.tco.money import MICRO_PER_USD
from solver.tco.sampling import Sampling
from tests.seeds import cases
from tests.solver.tco.examples import api, bought, committed, kept, leased, rented, scenario, ten_alternatives

EXACT = Sampling(draws=0)
SEED_AND_DRAWS = Sampling(draws=200, seed=7)

fleets = st.one_of(
    st.builds(rented, nodes=st.integers(1, 50), usd_per_hour=st.floats(0.01, 500.0)),
    st.builds(committed, nodes=st.integers(1, 50), term_months=st.sampled_from([1, 12, 36]), upfront=st.floats(0, 1)),
    st.builds(bought, nodes=st.integers(1, 50), purchase_usd_per_node=st.floats(100.0, 1e6)),
    st.builds(
        lambda nodes, life, rate, term: replace(
            bought(nodes=nodes, finance_fraction_per_year=rate), life_months=life, finance_term_months=term
        ),
        st.integers(1, 50), st.integers(1, 72), st.floats(0.0, 0.3), st.integers(1, 84),
    ),
    st.builds(bought, nodes=st.integers(1, 50), decommissioning_usd_per_node=st.floats(0.0, 5000.0)),
    st.builds(
        lambda nodes, term, upfront, used: replace(
            committed(nodes=nodes, term_months=term, upfront=upfront), in_advance=True,
            figures={**rented().figures, "commitment_used_fraction": exactly(used)},
        ),
        st.integers(1, 50), st.sampled_from([1, 12, 36]), st.floats(0, 1), st.floats(0.3, 1.0),
    ),
    st.builds(lambda nodes: replace(rented(nodes=nodes), in_advance=True), st.integers(1, 50)),
    st.builds(
        leased, nodes=st.integers(1, 50), term=st.integers(1, 48), keep=st.integers(0, 36), advance=st.booleans(),
        decommissioning_usd_per_node=st.floats(0.0, 5000.0), buyout_usd_per_node=st.floats(1.0, 3e5),
    ),
    st.builds(kept, nodes=st.integers(5, 50), held=st.integers(1, 5), age=st.integers(1, 59)),
    st.builds(kept, nodes=st.just(5), held=st.just(5), age=st.just(30), decommissioning_usd_per_node=st.just(900.0)),
)  # fmt: skip
scenarios = st.builds(
    scenario,
    months=st.integers(1, 84),
    utilisation_fraction=st.floats(0.0, 1.0),
    growth_fraction_per_month=st.floats(-0.05, 0.05),
    discount_fraction_per_year=st.floats(0.0, 0.3),
    inflation_fraction_per_year=st.floats(0.0, 0.1),
    tax_fraction=st.floats(0.0, 0.25),
    income_tax_fraction=st.floats(0.0, 0.4),
)


def _only(alternative: RentedFleet | PurchasedFleet, at: object) -> AlternativeCost:
    return compare([alternative], at, EXACT).alternatives[0]


def _twice(fleet: RentedFleet | PurchasedFleet) -> RentedFleet | PurchasedFleet:
    held = getattr(fleet, "held", None)
    doubled = {"held": replace(held, nodes=2 * held.nodes)} if held is not None else {}
    return replace(fleet, nodes=2 * fleet.nodes, **doubled)


class TestMoneyAddsUp:
    @settings(max_examples=cases(60), deadline=None)
    @given(fleet=fleets, at=scenarios)
    def test_lines_sum_to_totals_exactly(self, fleet, at) -> None:
        cost = _only(fleet, at)
        assert sum(line.total for line in cost.lines) == cost.total
        assert sum(cost.flows) == cost.total
        for line in cost.lines:
            assert sum(line.flows) == line.total
        for month, flow in enumerate(cost.flows):
            assert sum(line.flows[month] for line in cost.lines) == flow
        assert sum(line.present_value for line in cost.lines) == cost.npv

    @settings(max_examples=40, deadline=None)
    @given(fleet=fleets, at=scenarios)
    def test_present_value_without_discounting_is_the_sum(self, fleet, at) -> None:
        figures = {**at.figures, "discount_fraction_per_year": at.figures["growth_fraction_per_month"]}
        zero = {
            **figures,
            "discount_fraction_per_year": scenario(discount_fraction_per_year=0.0).figures["tax_fraction"],
        }
        cost = _only(fleet, replace(at, figures=zero))
        assert cost.npv == cost.total

    def test_present_value_without_discounting_is_the_sum_beyond_double_precision(self) -> None:
        # 20,000 nodes at 6,000,000 USD: 1.2e17 micro-dollars and more, above 2**53.
        fleet = bought(nodes=20_000, purchase_usd_per_node=6_000_000.0)
        cost = _only(fleet, scenario(36, discount_fraction_per_year=0.0))
        assert cost.total > 2**53
        assert cost.npv == cost.total

    @settings(max_examples=40, deadline=None)
    @given(fleet=fleets, at=scenarios)
    def test_twice_the_fleet_costs_twice_the_linear_lines(self, fleet, at) -> None:
        steady = replace(at, figures={**at.figures, **scenario(growth_fraction_per_month=0.0).figures})
        single = {line.name: line for line in _only(fleet, steady).lines}
        double = {line.name: line for line in _only(_twice(fleet), steady).lines}
        assert set(single) & set(LINEAR_LINES)
        for name in set(single) | set(double):
            columns = len(next(iter(double.values())).flows)
            for month in range(columns):
                one = single[name].flows[month] if name in single else 0
                two = double[name].flows[month] if name in double else 0
                assert abs(two - 2 * one) <= 2, name  # each flow is rounded to a micro-dollar by itself

    @settings(max_examples=40, deadline=None)
    @given(fleet=fleets, at=scenarios)
    def test_discounting_never_makes_a_commitment_free_stream_dearer(self, fleet, at) -> None:
        cost = _only(fleet, at)
        if all(flow >= 0 for flow in cost.flows):
            assert cost.npv <= cost.total + len(cost.lines)


class TestLoan:
    @settings(max_examples=40, deadline=None)
    @given(rate=st.floats(0.0, 0.3), term=st.integers(1, 84), months=st.integers(1, 84))
    def test_principal_repaid_is_what_was_lent_and_its_value_at_the_loan_rate_is_the_price(
        self, rate, term, months
    ) -> None:
        cash = bought(maintenance_fraction_per_year=0.0)
        loan = replace(bought(finance_fraction_per_year=rate), finance_term_months=term, life_months=240)
        at = scenario(months, discount_fraction_per_year=rate)
        paid, lent = _only(loan, at), _only(replace(cash, life_months=240), at)
        hardware = ("purchase", "network", "storage", "spares")

        def total(cost: AlternativeCost, *names: str) -> int:
            return sum(line.total for line in cost.lines if line.name in names)

        def worth(cost: AlternativeCost, *names: str) -> int:
            return sum(line.present_value for line in cost.lines if line.name in names)

        tolerance = 5 * (months + 1)
        assert abs(total(paid, *hardware) - total(lent, *hardware)) <= tolerance
        assert abs(worth(paid, *hardware, "finance") - worth(lent, *hardware)) <= tolerance


def _lines(cost: AlternativeCost) -> dict[str, int]:
    return {line.name: line.total for line in cost.lines}


class TestLease:
    @settings(max_examples=40, deadline=None)
    @given(rate=st.floats(0.0, 0.3), term=st.integers(1, 60), share=st.floats(0.0, 0.9))
    def test_at_the_lessors_own_rate_it_is_worth_what_machines_cost_it(self, rate, term, share) -> None:
        """Rates, and the buyout at the end, discounted at the implicit rate: the price of the machine."""
        monthly = lease_rate_usd_per_month(340_000.0, 340_000.0 * share, rate, term)
        fleet = leased(
            nodes=1, term=term, keep=12, lease_usd_per_node_month=monthly, buyout_usd_per_node=340_000.0 * share
        )
        cost = _only(fleet, scenario(term, discount_fraction_per_year=rate))
        worth = sum(line.present_value for line in cost.lines if line.name in ("lease", "buyout"))
        assert worth / MICRO_PER_USD == pytest.approx(340_000.0, abs=0.01)

    def test_a_horizon_shorter_than_the_lease_owes_the_rest(self) -> None:
        lines = _lines(_only(leased(nodes=1, term=36), scenario(10)))
        assert lines["lease"] == 10 * 9_500 * MICRO_PER_USD
        assert lines["unexpired_commitment"] == 26 * 9_500 * MICRO_PER_USD
        assert "purchase" not in lines

    def test_returned_machines_fetch_nothing_and_bought_out_ones_do(self) -> None:
        spare = 340_000.0 * 0.05 * 0.45
        returned, kept_on = (_lines(_only(leased(nodes=1, keep=keep), scenario(36))) for keep in (0, 24))
        assert returned["residual"] == pytest.approx(-spare * MICRO_PER_USD)
        assert kept_on["residual"] == pytest.approx(-(spare + 340_000.0 * 0.45) * MICRO_PER_USD)
        assert kept_on["buyout"] == 30_000 * MICRO_PER_USD

    def test_in_advance_is_a_month_earlier(self) -> None:
        late, early = (
            next(line.flows for line in _only(leased(advance=advance), scenario(12)).lines if line.name == "lease")
            for advance in (False, True)
        )
        assert early[:-1] == late[1:]
        assert (early[-1], late[0]) == (0, 0)


class TestHeld:
    @settings(max_examples=30, deadline=None)
    @given(at=scenarios, age=st.integers(1, 59))
    def test_machines_there_already_cost_what_they_would_fetch(self, at, age) -> None:
        steady = replace(
            at, figures={**at.figures, **scenario(growth_fraction_per_month=0.0).figures}, horizon_months=1
        )
        lines = _lines(_only(kept(nodes=1, held=1, age=age), steady))
        fetches = {now: 310_000.0 * _resale(now) * MICRO_PER_USD for now in (age, age + 1)}
        assert lines.get("foregone_sale", 0) == pytest.approx(fetches[age], abs=2)
        assert -lines.get("residual", 0) == pytest.approx(fetches[age + 1], abs=2)
        assert not {"purchase", "network", "storage", "spares"} & lines.keys()

    def test_they_are_replaced_at_the_end_of_their_life(self) -> None:
        cost = _only(kept(nodes=3, held=2, age=50), scenario(24))
        purchase = next(line for line in cost.lines if line.name == "purchase")
        assert [month for month, usd in enumerate(purchase.flows) if usd] == [0, 10]
        assert purchase.flows[0] * 2 == purchase.flows[10]


def _resale(age: int) -> float:
    return 1 - 0.55 * age / 36 if age <= 36 else 0.45 - 0.35 * (age - 36) / 24


class TestPaymentTiming:
    def test_rent_in_advance_is_paid_a_month_earlier(self) -> None:
        for fleet in (rented(), committed(term_months=12)):
            late = _only(fleet, scenario(24))
            early = _only(replace(fleet, in_advance=True), scenario(24))
            assert early.flows[:-1] == late.flows[1:]
            assert early.total == late.total
            assert early.npv > late.npv

    def test_a_commitment_half_used_costs_twice_what_is_used(self) -> None:
        fleet = committed(term_months=36, upfront=0.5)
        wasted = replace(fleet, figures={**fleet.figures, "commitment_used_fraction": exactly(0.5)})
        lines = _lines(_only(wasted, scenario(30)))
        assert lines["unused_commitment"] == pytest.approx(lines["rent"] + lines["unexpired_commitment"])
        assert _only(wasted, scenario(30)).total == pytest.approx(2 * _only(fleet, scenario(30)).total)


class TestBreakEvenMonth:
    @settings(max_examples=cases(100), deadline=None)
    @given(st.lists(st.tuples(st.integers(-1000, 1000), st.integers(-1000, 1000)), min_size=1, max_size=60))
    def test_it_is_where_the_curves_cross(self, flows) -> None:
        first, second = (np.cumsum(side).astype(float) for side in zip(*flows, strict=True))
        found = crossings("a", "b", first, second, len(flows))
        gap = first - second
        nonzero = np.sign(gap[gap != 0])
        assert len(found.months) == int((nonzero[1:] != nonzero[:-1]).sum())
        for month in found.months:
            # The gap between the two curves, drawn as straight lines, is zero there.
            assert np.interp(month, np.arange(len(gap)), gap) == pytest.approx(0.0, abs=1e-9 * (1 + np.abs(gap).max()))
        if found.cheaper_at_horizon is not None:
            assert (found.cheaper_at_horizon == "a") == (gap[-1] < 0)

    @settings(max_examples=cases(100), deadline=None)
    @given(fleet=fleets, at=scenarios, month=st.integers(1, 60))
    def test_a_curve_shows_what_the_same_would_have_cost_had_that_month_been_the_horizon(
        self, fleet, at, month
    ) -> None:
        curve = _only(fleet, at).standing
        ended = _only(fleet, replace(at, horizon_months=month))
        scale = 1.0 + abs(curve.cash).max() * 1e-9
        assert curve.if_ended[month] == pytest.approx(ended.total / MICRO_PER_USD, abs=1e-3 * scale)
        rate = at.figures["discount_fraction_per_year"].typical
        worth = curve.present_value_if_ended(rate)[month]
        assert worth == pytest.approx(ended.npv / MICRO_PER_USD, abs=1e-3 * scale)

    @pytest.mark.parametrize(
        "owned", [bought(), replace(bought(finance_fraction_per_year=0.11), finance_term_months=48)]
    )
    def test_it_does_not_depend_on_the_horizon(self, owned) -> None:
        found = [
            compare([owned, rented()], scenario(months), EXACT).break_even_months[0] for months in (24, 36, 48, 60)
        ]
        assert found[0].if_ended.month is not None
        for measure in ("if_ended", "discounted", "cash"):
            assert {getattr(pair, measure).months for pair in found} == {getattr(found[0], measure).months}

    def test_cash_pays_back_when_the_rent_saved_has_paid_the_price_and_what_is_left_pays_back_sooner(self) -> None:
        comparison = compare([bought(), rented()], scenario(36), EXACT)
        buy, rent = comparison.alternatives
        found = comparison.break_even_months[0]
        assert found.cash.cheaper_at_start == "rent"
        upfront, running = buy.flows[0], buy.flows[1]
        assert found.cash.month == pytest.approx(upfront / (rent.flows[1] - running))
        # discounted, the money tied up in machines costs something: later than undiscounted, both before cash alone
        assert found.if_ended.month < found.discounted.month < found.cash.month


class TestVerdict:
    def test_the_stated_case_lies_in_the_middle_half_of_its_own_draws(self) -> None:
        for cost in compare(ten_alternatives(), scenario(60), Sampling(draws=2000)).alternatives:
            assert cost.uncertainty.npv_usd.holds(cost.npv / MICRO_PER_USD), cost.name

    def test_the_value_at_stake_is_what_the_right_choice_would_have_saved(self) -> None:
        found = compare([bought(), rented()], scenario(), SEED_AND_DRAWS).verdict
        assert found.value_at_stake_usd >= 0
        shares = {
            c.name: c.uncertainty.cheapest_fraction
            for c in compare([bought(), rented()], scenario(), SEED_AND_DRAWS).alternatives
        }
        assert found.chance == shares[found.name]
        assert found.most_often_chance == max(shares.values())
        certain = compare([rented(), rented("dear", usd_per_hour=60.0)], scenario(), SEED_AND_DRAWS).verdict
        assert (certain.name, certain.chance, certain.value_at_stake_usd) == ("rent", 1.0, 0.0)

    def test_machines_lose_value_in_the_draws_in_which_rent_falls(self) -> None:
        table = {
            "rent_change_fraction_per_year": Figure(-0.3, -0.1, 0.1),
            "residual_fraction_after_3_years": Figure(0.2, 0.45, 0.7),
        }
        rent, resale = (draw(figure, name, 500, 3) for name, figure in table.items())
        assert (np.argsort(rent) == np.argsort(resale)).all()


class TestGrowth:
    def test_spare_capacity_is_used_before_a_node_is_added(self) -> None:
        spare = replace(bought(nodes=1), carries=2.6)
        for grown in (0.001, 0.02):
            flows = [
                line
                for line in _only(spare, scenario(36, growth_fraction_per_month=grown)).lines
                if line.name == "purchase"
            ]
            assert [month for month, flow in enumerate(flows[0].flows) if flow] == [0]
        # 1.05^t exceeds 2.6 after ln 2.6 / ln 1.05 = 19.6 months, what two nodes carry (5.2) after 33.8
        late = _only(spare, scenario(36, growth_fraction_per_month=0.05))
        purchase = next(line for line in late.lines if line.name == "purchase")
        assert [month for month, flow in enumerate(purchase.flows) if flow] == [0, 20, 34]

    def test_a_tenth_of_a_percent_a_month_with_half_again_to_spare_costs_next_to_nothing_in_the_first_year(
        self,
    ) -> None:
        for fleet in (bought(nodes=1), rented(nodes=1), committed(nodes=1)):
            flat = _only(replace(fleet, carries=1.5), scenario(12))
            grown = _only(replace(fleet, carries=1.5), scenario(12, growth_fraction_per_month=0.001))
            assert abs(grown.total / flat.total - 1) <= 0.02

    def test_nodes_ordered_ahead_are_paid_ahead(self) -> None:
        fleet = replace(bought(nodes=2), lead_time_months=4)
        cost = _only(fleet, scenario(36, growth_fraction_per_month=0.05))
        now = _only(replace(fleet, lead_time_months=0), scenario(36, growth_fraction_per_month=0.05))

        def paid(cost: AlternativeCost) -> list[int]:
            line = next(line for line in cost.lines if line.name == "purchase")
            return [month for month, flow in enumerate(line.flows) if flow]

        # 2 · 1.05^t: a third from month 1, a fourth from 9, a fifth from 15, …
        assert paid(now)[:4] == [0, 1, 9, 15]
        assert paid(cost)[:3] == [0, 5, 11]

    def test_demand_that_ramps_up_takes_its_nodes_as_it_comes(self) -> None:
        cost = _only(rented(nodes=4), replace(scenario(6), ramp_months=4))
        assert [flow / (30 * 730 * 10**6) for flow in cost.flows[1:]] == [1, 2, 3, 4, 4, 4]


class TestBreakEvenUtilisation:
    def test_costs_are_equal_there(self) -> None:
        found = compare([bought(), api()], scenario(36), EXACT).break_even_utilisations[0]
        assert found.utilisation_fraction is not None
        at_it = compare([bought(), api()], scenario(36, utilisation_fraction=found.utilisation_fraction), EXACT)
        buy, call = at_it.alternatives
        assert buy.npv / MICRO_PER_USD == pytest.approx(call.npv / MICRO_PER_USD, rel=1e-9)
        assert (found.cheaper_below, found.cheaper_above) == ("api", "buy")

    def test_two_rents_never_meet(self) -> None:
        found = compare([rented(), committed()], scenario(36), EXACT).break_even_utilisations[0]
        assert found.utilisation_fraction is None
        assert found.reason == "reserve is cheaper at every utilisation"


class TestDraws:
    def test_equal_seeds_give_equal_results_and_others_differ(self) -> None:
        once, again = (compare([bought()], scenario(), SEED_AND_DRAWS) for _ in range(2))
        assert once == again
        assert compare([bought()], scenario(), Sampling(draws=200, seed=8)) != once

    def test_adding_an_alternative_changes_nothing_for_the_others(self) -> None:
        alone = compare([bought()], scenario(), SEED_AND_DRAWS).alternatives[0]
        beside = compare([rented(), bought()], scenario(), SEED_AND_DRAWS).alternatives[1]
        assert replace(alone.uncertainty, cheapest_fraction=0) == replace(beside.uncertainty, cheapest_fraction=0)
        assert alone.lines == beside.lines

    def test_percentiles_are_in_order_and_shares_of_cheapest_sum_to_one(self) -> None:
        costs = compare(ten_alternatives(), scenario(), SEED_AND_DRAWS).alternatives
        for cost in costs:
            for spread in (
                cost.uncertainty.npv_usd,
                cost.uncertainty.total_usd,
                cost.uncertainty.usd_per_million_tokens,
            ):
                assert spread.p10 <= spread.p50 <= spread.p90
        assert sum(cost.uncertainty.cheapest_fraction for cost in costs) == pytest.approx(1.0)

    def test_inputs_without_a_range_leave_no_spread(self) -> None:
        spread = compare([rented()], scenario(), SEED_AND_DRAWS).alternatives[0].uncertainty.npv_usd
        assert spread.p10 == pytest.approx(spread.p90, rel=1e-12)


class TestSwings:
    def test_sorted_by_effect_and_each_end_is_the_model_at_that_value(self) -> None:
        swings = compare([bought()], scenario(), EXACT).alternatives[0].swings
        effects = [swing.effect_usd for swing in swings]
        assert effects == sorted(effects, reverse=True)
        tariff = next(swing for swing in swings if swing.input == "electricity_usd_per_kwh")
        assert (tariff.low, tariff.high) == pytest.approx((0.08, 0.12))
        dear = _only(bought(), scenario(electricity_usd_per_kwh=0.12))
        assert tariff.npv_usd_at_high == pytest.approx(dear.npv / MICRO_PER_USD)

    def test_a_step_stays_inside_the_domain(self) -> None:
        at = scenario(power_usage_effectiveness=1.1, utilisation_fraction=0.9)
        swings = {swing.input: swing for swing in compare([bought()], at, EXACT).alternatives[0].swings}
        assert swings["power_usage_effectiveness"].low == 1.0
        assert swings["utilisation_fraction"].high == 1.0

    def test_range_mode_goes_to_low_and_high(self) -> None:
        swings = compare([bought()], scenario(), Sampling(draws=0, swing_mode="range")).alternatives[0].swings
        price = next(swing for swing in swings if swing.input == "purchase_usd_per_node")
        assert (price.low, price.high) == (300_000.0, 420_000.0)
