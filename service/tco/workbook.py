"""The cost model as spreadsheet formulas: inputs that may be changed, and every line of every month computed from them.

Written apart from ``solver/tco``: a workbook that agrees with the answer is a second computation of it. Node counts by month are
inputs too: a spreadsheet does not plan.
"""

from service.tco.workbook_cells import Inputs, MonthSheet
from service.tco.workbook_owned import OwnedSheet
from service.tco.workbook_rented import ApiSheet, RentedSheet
from service.wire.tco_answers import ComparisonOut

SHEETS: dict[str, type[MonthSheet]] = {
    "rent": RentedSheet,
    "purchase": OwnedSheet,
    "lease": OwnedSheet,
    "api": ApiSheet,
}


def month_sheets(comparison: ComparisonOut, inputs: Inputs) -> list[list[MonthSheet]]:
    """One sheet for every kind of node of every alternative, and for every API."""
    return [
        [SHEETS[used.kind](comparison, a, p, inputs) for p, used in enumerate(alternative.computed_from)]
        for a, alternative in enumerate(comparison.alternatives)
    ]
