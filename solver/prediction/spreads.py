"""How wide intervals are where no measurement says: from replays with constants moved to both ends of their ranges, and from what
public runs of other people were off beyond those, which is what the formulas and unknown settings miss.

    ln(high) = √(ln²(moved) + ln²(miss))

The miss of an engine on a family of devices is a row of its own where public runs tell it (``interval_token_miss``,
``interval_first_token_miss``); elsewhere it is that between devices and engines nobody here has measured. Of a release that is not
stated, or of an earlier generation of its engine, it is that of all releases (``…_any_release``).
"""

import math
from collections.abc import Iterable, Mapping

from solver.replay.one_stream import Replay
from solver.step.constants import Constants


def power_spread(constants: Constants) -> tuple[float, float]:
    """Factors (low, high) on a board's power where no measured run says more."""
    share = constants.si("interval_power_fraction")
    return 1.0 - share, 1.0 + share


def moved_spreads(
    centre: Replay, slow: Replay, fast: Replay, constants: Constants, *, any_release: bool = False
) -> dict[str, tuple[float, float]]:
    """Factors (low, high) by metric and percentile from the two moved replays. any_release: of the engine, not one of today's."""

    def pair(one: float, other: float, middle: float) -> tuple[float, float]:
        if middle <= 0:
            return 1.0, 1.0
        low, high = sorted((one / middle, other / middle))
        return min(low, 1.0), max(high, 1.0)

    spreads: dict[str, tuple[float, float]] = {}
    for metric, attribute in (
        ("time_to_first_token", "time_to_first_token_s"),
        ("time_per_output_token", "time_per_output_token_s"),
        ("inter_token", "inter_token_s"),
        ("end_to_end", "end_to_end_s"),
        ("time_to_first_answer", "time_to_first_answer_s"),
    ):
        for name, middle in (getattr(centre, attribute) or {}).items():
            spreads[f"{metric}.{name}"] = pair(getattr(slow, attribute)[name], getattr(fast, attribute)[name], middle)
    spreads["output_rate"] = pair(slow.output_tokens_per_s, fast.output_tokens_per_s, centre.output_tokens_per_s)
    return with_misses(spreads, constants, any_release=any_release) | {"power": power_spread(constants)}


def with_misses(
    spreads: Mapping[str, tuple[float, float]], constants: Constants, *, any_release: bool = False
) -> dict[str, tuple[float, float]]:
    """Spreads of times and rates with what public runs were off beyond them. Raises FigureMissingError."""
    of_which = "_any_release" if any_release else ""
    token = constants.range_si(f"interval_token_miss{of_which}")
    return joined(spreads, token, constants.range_si(f"interval_first_token_miss{of_which}"))


def joined(
    spreads: Mapping[str, tuple[float, float]], token: tuple[float, float], first: tuple[float, float]
) -> dict[str, tuple[float, float]]:
    """Spreads of times and rates with a further error of times per token and one of times to first tokens; power has none of it.

    >>> joined({"output_rate": (1.0, 1.0), "time_to_first_token.p95": (1.0, 1.0), "power": (0.9, 1.1)}, (0.8, 1.25), (0.5, 1.0))
    {'output_rate': (0.8, 1.25), 'time_to_first_token.p95': (0.5, 1.0), 'power': (0.9, 1.1)}
    """
    rate = 1.0 / token[1], 1.0 / token[0]
    missed: dict[str, tuple[float, float]] = {}
    for metric, spread in spreads.items():
        stem = metric.partition(".")[0]
        further = first if stem == "time_to_first_token" else rate if stem == "output_rate" else token
        missed[metric] = spread if stem == "power" else in_quadrature(spread, further)
    return missed


def in_quadrature(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """Factors (low, high) of two independent errors together.

    >>> tuple(round(x, 3) for x in in_quadrature((0.5, 2.0), (1.0, 2.0)))
    (0.5, 2.665)
    """
    (low, high), (further_low, further_high) = one, other
    return (
        math.exp(-math.hypot(math.log(low), math.log(min(further_low, 1.0)))) if low > 0.0 else 0.0,
        math.exp(math.hypot(math.log(high), math.log(max(further_high, 1.0)))),
    )


def widened(spreads: Mapping[str, tuple[float, float]], exponent: float) -> dict[str, tuple[float, float]]:
    """Spreads to a power above 1: for what was never measured.

    >>> widened({"power": (0.5, 2.0)}, 2.0)
    {'power': (0.25, 4.0)}
    """
    return {metric: (low**exponent, high**exponent) for metric, (low, high) in spreads.items()}


def narrowest_of(spreads: Iterable[Mapping[str, tuple[float, float]]]) -> dict[str, tuple[float, float]]:
    """By metric the spread that is narrowest from end to end.

    >>> narrowest_of([{"power": (0.9, 1.2)}, {"power": (0.8, 1.25)}])
    {'power': (0.9, 1.2)}
    """
    narrowest: dict[str, tuple[float, float]] = {}
    for each in spreads:
        for metric, (low, high) in each.items():
            known = narrowest.get(metric)
            if known is None or high * known[0] < known[1] * low:
                narrowest[metric] = low, high
    return narrowest


def widest_of(spreads: Iterable[Mapping[str, tuple[float, float]]]) -> dict[str, tuple[float, float]]:
    """By metric the least of the lows and the greatest of the highs.

    >>> widest_of([{"power": (0.9, 1.1)}, {"power": (0.8, 1.05)}])
    {'power': (0.8, 1.1)}
    """
    widest: dict[str, tuple[float, float]] = {}
    for each in spreads:
        for metric, (low, high) in each.items():
            known = widest.get(metric, (low, high))
            widest[metric] = min(low, known[0]), max(high, known[1])
    return widest
