"""Capital: discounting, annuities, depreciation, residual value, loans. Textbook laws, one a function."""

import numpy as np

from solver.tco.errors import CostInputError
from solver.tco.figures import Array, Quantity

MONTHS_PER_YEAR = 12


def monthly_rate(annual_fraction: Quantity) -> Quantity:
    """The monthly rate that compounds to the annual one: (1 + r)^(1/12) − 1.

    >>> round(monthly_rate(0.08), 6)
    0.006434
    """
    return (1.0 + annual_fraction) ** (1.0 / MONTHS_PER_YEAR) - 1.0


def discount_factors(annual_fraction: Quantity, months: int) -> Array:
    """Present value of one dollar at the start and at the end of each month: (1 + r)^(−k/12), k = 0 … months.

    >>> [round(float(f), 4) for f in discount_factors(0.08, 24)[::12]]
    [1.0, 0.9259, 0.8573]
    """
    exponent = -np.arange(months + 1) / MONTHS_PER_YEAR
    return np.asarray((1.0 + np.asarray(annual_fraction)) ** exponent)


def present_value(flows: Array, annual_fraction: Quantity) -> Array:
    """Sum of flows times discount factors along the last axis; at a rate of 0 the plain sum.

    >>> float(present_value(np.array([100.0, 10.0, 10.0]), 0.0))
    120.0
    """
    return np.asarray((flows * discount_factors(annual_fraction, flows.shape[-1] - 1)).sum(axis=-1))


def annuity_factor(rate_per_period: Quantity, periods: int) -> Quantity:
    """Level payment per dollar of principal: i / (1 − (1 + i)^−n), and 1/n at a rate of 0.

    >>> round(float(annuity_factor(0.08, 5)), 6), float(annuity_factor(0.0, 5))
    (0.250456, 0.2)
    """
    if periods < 1:
        raise CostInputError("periods", "an annuity needs at least one payment")
    rate = np.asarray(rate_per_period, dtype=float)
    safe = np.where(rate == 0.0, 1.0, rate)  # the branch not taken must not divide by zero
    return np.asarray(np.where(rate == 0.0, 1.0 / periods, safe / -np.expm1(-periods * np.log1p(safe))))


def capital_recovery_usd_per_month(
    price_usd: Quantity, residual_usd: Quantity, annual_fraction: Quantity, months: int
) -> Quantity:
    """What a machine must earn each month to pay back its price with interest, less what it still fetches.

        (P − R · (1 + i)^−n) · i / (1 − (1 + i)^−n),   i monthly, n months

    >>> round(float(capital_recovery_usd_per_month(36_000.0, 0.0, 0.0, 36)), 2)
    1000.0
    """
    rate = monthly_rate(annual_fraction)
    return (price_usd - residual_usd * (1.0 + rate) ** -months) * annuity_factor(rate, months)


def straight_line_book_value(price: Quantity, residual: Quantity, life_months: int, age_months: Quantity) -> Quantity:
    """Price less equal monthly charges down to the residual: P − (P − R) · min(age, n) / n.

    >>> float(straight_line_book_value(60_000.0, 0.0, 60, 15))
    45000.0
    """
    if life_months < 1:
        raise CostInputError("depreciation_months", "must be at least 1")
    return price - (price - residual) * (np.minimum(age_months, life_months) / life_months)


def declining_balance_rate_per_month(life_months: int, multiple: float) -> float:
    """Monthly charge as a share of book value: multiple / n (a multiple of 2 is double declining).

    >>> declining_balance_rate_per_month(60, 2.0) == 2 / 60
    True
    """
    if life_months < 1:
        raise CostInputError("depreciation_months", "must be at least 1")
    return min(1.0, multiple / life_months)


def declining_book_value(price: Quantity, residual: Quantity, rate_per_month: float, age_months: Quantity) -> Quantity:
    """Price less a fixed share of what is left each month, never below the residual: max(R, P · (1 − d)^age).

    >>> round(float(declining_book_value(60_000.0, 0.0, 2 / 60, 12)), 2)
    39945.9
    """
    return np.maximum(residual, price * (1.0 - rate_per_month) ** age_months)


def residual_fraction_at(age_months: Quantity, after_3_years: Quantity, after_5_years: Quantity) -> Quantity:
    """Resale value as a fraction of the price paid: straight lines through 1 at age 0 and the values at 3 and 5 years,
    the last line carried on, never below 0 and never rising.

    >>> [round(float(residual_fraction_at(a, 0.45, 0.10)), 3) for a in (0, 18, 36, 48, 60, 120)]
    [1.0, 0.725, 0.45, 0.275, 0.1, 0.0]
    """
    at_5 = np.minimum(after_5_years, after_3_years)
    young = 1.0 + (after_3_years - 1.0) * np.minimum(age_months, 36) / 36
    return np.maximum(0.0, young + (at_5 - after_3_years) * np.maximum(np.asarray(age_months) - 36.0, 0.0) / 24)


def residual_fraction_towards(age_months: Quantity, residual_at_end: Quantity, life_months: int) -> Quantity:
    """A stated value at the end of the machines' life: one straight line from the price paid.

    >>> float(residual_fraction_towards(18, 0.15, 36))
    0.575
    """
    return 1.0 + (residual_at_end - 1.0) * np.minimum(age_months, life_months) / life_months


def loan_balance_fraction(annual_fraction: Quantity, term_months: int, paid_months: Quantity) -> Quantity:
    """Principal still owed after so many level payments: 1 − ((1+i)^k − 1) / ((1+i)^n − 1); linear at a rate of 0.

    >>> round(float(loan_balance_fraction(0.0, 60, 15)), 3), float(loan_balance_fraction(0.1, 60, 60))
    (0.75, 0.0)
    """
    if term_months < 1:
        raise CostInputError("finance_term_months", "must be at least 1")
    paid = np.minimum(paid_months, term_months)
    growth = np.log1p(monthly_rate(annual_fraction))
    flat = growth == 0.0
    safe = np.where(flat, 1.0, growth)
    repaid = np.where(flat, paid / term_months, np.expm1(paid * safe) / np.expm1(term_months * safe))
    return np.asarray(1.0 - repaid)
