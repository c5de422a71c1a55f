"""What measurements correct predictions by, percentile by percentile: the one rule for targets and for what is stated."""

from collections.abc import Mapping

TAIL_WEIGHT = {"p90": 0.551, "p95": 0.707}
"""How far a percentile lies from the median to the 99th, in standard deviations of a normal law: 1.282 and 1.645 of 2.326."""


def factor_of(metric: str, factors: Mapping[str, float]) -> float:
    """Measured over predicted of one figure. Runs are compared by mean and 99th percentile; a percentile between them lies
    between their factors, so that it can pass neither.

    >>> round(factor_of("time_to_first_token.p95", {"time_to_first_token": 1.2, "time_to_first_token.p99": 1.0}), 3)
    1.055
    >>> factor_of("time_to_first_token.p95", {"time_to_first_token": 1.1}), factor_of("power.mean", {})
    (1.1, 1.0)
    """
    stem, _, percentile = metric.partition(".")
    mean = factors.get(stem, 1.0)
    if metric in factors or percentile not in TAIL_WEIGHT:
        return factors.get(metric, mean)
    weight = TAIL_WEIGHT[percentile]
    return float(mean ** (1.0 - weight) * factors.get(f"{stem}.p99", mean) ** weight)
