"""A single owned node, month by month, against the comparison of costs and against figures worked out in comments."""

import pytest

from solver.errors import FigureMissingError
from solver.tco.compare import compare
from solver.tco.figures import exactly
from solver.tco.owned_node import OwnedNode, owned_node
from solver.tco.sampling import Sampling
from tests.solver.tco.examples import OWNED, SHARED, bought, scenario


def owned(months: int, start: int, life: int = 60, **figures: float) -> OwnedNode:
    table = {**OWNED, **{name: exactly(value) for name, value in figures.items()}}
    return owned_node("node", SHARED, table, 8, life, None, months, start)


def test_bought_at_the_start_it_is_the_comparison_of_costs() -> None:
    node = owned(36, 0)
    compared = compare([bought(nodes=1)], scenario(36), Sampling(draws=0)).alternatives[0]
    assert node.usd == pytest.approx(sum(line.total for line in compared.lines) / 1e6, abs=1e-4)
    flows = {month: micro / 1e6 for month, micro in enumerate(compared.flows) if micro}
    assert dict(node.payments) == pytest.approx(flows, abs=1e-4)


def test_bought_later_it_is_younger_when_it_is_sold() -> None:
    # 340,000 and 5 % of spares are worth 1 − 0.55 · 24/36 of themselves after two of the first three years.
    node = owned(36, 12)
    assert (node.start_month, node.term_months) == (12, 24)
    assert min(month for month, _ in node.payments) == 12
    assert node.lines["residual"] == pytest.approx(-340_000 * 1.05 * (1 - 0.55 * 24 / 36))


def test_at_the_end_of_its_life_it_is_sold_and_not_bought_anew() -> None:
    node = owned(36, 0, life=12)
    assert node.term_months == 12
    assert max(month for month, _ in node.payments) == 12
    assert node.lines["purchase"] == 340_000.0


def test_payments_add_up_to_the_lines() -> None:
    node = owned(24, 5)
    assert sum(usd for _, usd in node.payments) == pytest.approx(node.usd)


def test_a_missing_price_is_refused_by_name() -> None:
    table = {name: figure for name, figure in OWNED.items() if name != "purchase_usd_per_node"}
    with pytest.raises(FigureMissingError, match="node: no sourced value for purchase_usd_per_node"):
        owned_node("node", SHARED, table, 8, 60, None, 36, 0)
