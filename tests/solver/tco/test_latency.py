"""The comparison stays interactive."""

import time

from solver.tco.compare import compare
from solver.tco.sampling import Sampling
from tests.solver.tco.examples import scenario, ten_alternatives


def test_ten_alternatives_over_sixty_months_with_a_thousand_draws_take_at_most_300_ms() -> None:
    at = scenario(
        60, growth_fraction_per_month=0.02, inflation_fraction_per_year=0.02, rent_change_fraction_per_year=-0.1
    )
    compare(ten_alternatives(), at, Sampling(draws=1000))
    seconds = []
    for _ in range(5):
        started = time.perf_counter()
        comparison = compare(ten_alternatives(), at, Sampling(draws=1000))
        seconds.append(time.perf_counter() - started)
    assert len(comparison.break_even_months) == 45
    assert min(seconds) <= 0.3, seconds
