"""The planner over time against trying everything where nodes may be taken back, and where work may wait."""

from functools import partial

from tests.solver.horizon.comparing import check_against_enumeration, takes_spot, works
from tests.solver.horizon.instances import cheapest, cheapest_with_batch, tiny, tiny_batch


def test_spot_equals_enumeration() -> None:
    check_against_enumeration(partial(tiny, spot=True), cheapest, takes_spot)


def test_batch_work_equals_enumeration() -> None:
    check_against_enumeration(tiny_batch, cheapest_with_batch, works)
