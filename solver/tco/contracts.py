"""Contracts of a fixed term, commitments to rent and leases: what is paid when, and what is owed if they end early."""

import numpy as np

from solver.tco.by_month import at_month_ends, at_month_starts
from solver.tco.cohorts import alive_sum
from solver.tco.figures import Array


def bills(by_month: Array, months: int, in_advance: bool) -> Array:
    """What is charged for each month, in the column it is paid in: its end, or its start.

    >>> bills(np.array([[7.0, 8.0]]), 2, False).tolist(), bills(np.array([[7.0, 8.0]]), 2, True).tolist()
    ([[0.0, 7.0, 8.0]], [[7.0, 8.0, 0.0]])
    """
    return at_month_starts(by_month, months) if in_advance else at_month_ends(by_month, months)


def contract_flows(
    contracted: Array, term_months: int, upfront_fraction: float, in_advance: bool
) -> tuple[Array, Array]:
    """What is paid while the horizon lasts, and what outlasts it and is owed there, by column.

    contracted: USD a month of the contracts that start in each month; they keep it to their end.

    >>> paid, owed = contract_flows(np.array([[10.0, 0.0, 0.0]]), 4, 0.0, False)
    >>> paid.tolist(), owed.tolist()
    ([[0.0, 10.0, 10.0, 10.0]], [[0.0, 0.0, 0.0, 10.0]])
    """
    months = contracted.shape[-1]
    upfront = contracted * term_months * upfront_fraction
    instalments = alive_sum(contracted, term_months) * (1.0 - upfront_fraction)
    months_left = np.maximum(0.0, np.arange(months) + term_months - months)
    left = (contracted * months_left).sum(axis=-1, keepdims=True) * (1.0 - upfront_fraction)
    owed = np.zeros((left.shape[0], months + 1))
    owed[:, -1:] = left
    return at_month_starts(upfront, months) + bills(instalments, months, in_advance), owed


def contract_standing(
    contracted: Array, term_months: int, upfront_fraction: float, in_advance: bool
) -> tuple[Array, Array]:
    """Of the stated case, at each column: paid at that instant for contracts that begin there, and still to be paid."""
    last = len(contracted)
    prepaid, owed = np.zeros(last + 1), np.zeros(last + 1)
    for month in np.flatnonzero(contracted).tolist():
        later = contracted[month] * (1.0 - upfront_fraction)
        prepaid[month] += contracted[month] * term_months * upfront_fraction + (later if in_advance else 0.0)
        ahead = np.arange(month + 1, min(month + term_months, last) + 1)
        # The instalment of the month that begins is paid already where it is paid in advance; at the last column none begins.
        paid_already = np.where(ahead < last, float(in_advance), 0.0)
        owed[ahead] += later * np.maximum(0.0, month + term_months - ahead - paid_already)
    return prepaid, owed
