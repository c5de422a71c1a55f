"""How long a comparison of costs computes: ten alternatives, sixty months, a thousand draws. ``python -m tests.bench.tco_compare``."""

import statistics
import time

from solver.tco.compare import compare
from solver.tco.sampling import Sampling
from tests.solver.tco.examples import scenario, ten_alternatives

RUNS = 9


def main() -> None:
    at = scenario(
        60, growth_fraction_per_month=0.02, inflation_fraction_per_year=0.02, rent_change_fraction_per_year=-0.1
    )
    compare(ten_alternatives(), at, Sampling(draws=1000))
    seconds = []
    for _ in range(RUNS):
        began = time.perf_counter()
        compare(ten_alternatives(), at, Sampling(draws=1000))
        seconds.append(time.perf_counter() - began)
    print(
        f"{1e3 * statistics.median(seconds):.0f} ms at the median of {RUNS}, {1e3 * min(seconds):.0f} to {1e3 * max(seconds):.0f}"
    )


if __name__ == "__main__":
    main()
