"""One owned node as a plan over time sees it: what it costs, payment by payment, if bought in a given month."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from solver.tco.alternatives import PurchasedFleet, Scenario, check_alternatives
from solver.tco.cash_flows import Line, bought_in_month
from solver.tco.figures import FigureTable
from solver.tco.sampling import inputs_used
from solver.tco.tokens import TokenDemand

Payments: TypeAlias = tuple[tuple[int, float], ...]
NO_TOKENS = TokenDemand(0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class OwnedNode:
    """A node bought at the start of ``start_month`` and kept for ``term_months``: its life, or until the horizon ends.

    lines: USD by cost line; received money (resale) is negative. payments: (months after the start of the horizon, USD).
    """

    start_month: int
    term_months: int
    lines: dict[Line, float]
    payments: Payments

    @property
    def usd(self) -> float:
        """All payments, undiscounted, less what the node is sold for."""
        return sum(self.lines.values())


def owned_node(
    subject: str,
    shared: FigureTable,
    figures: FigureTable,
    devices: int,
    life_months: int,
    finance_months: int | None,
    horizon_months: int,
    start_month: int,
) -> OwnedNode:
    """The purchase of ``cash_flows``, for a single node at the typical value of every figure.

    shared: electricity, inflation, utilisation and other figures of the place; figures: of the machine.
    Raises FigureMissingError naming ``subject``, CostInputError.
    """
    fleet = PurchasedFleet(subject, 1, devices, figures, life_months, finance_months)
    scenario = Scenario(horizon_months, NO_TOKENS, shared)
    check_alternatives((fleet,), scenario)
    values = {name: np.array([[figure.typical]]) for name, figure in inputs_used(fleet, scenario).items()}
    flows = bought_in_month(fleet, scenario, values, start_month).lines
    by_month = sum((flow[0] for flow in flows.values()), start=np.zeros(horizon_months + 1))
    return OwnedNode(
        start_month,
        min(life_months, horizon_months - start_month),
        {line: float(flow.sum()) for line, flow in flows.items() if flow.any()},
        tuple((int(month), float(by_month[month])) for month in np.flatnonzero(by_month)),
    )
