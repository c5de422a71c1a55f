"""How wide intervals are where no measurement says: from replays with constants moved to both ends of their ranges."""

from solver.replay.one_stream import Replay
from solver.step.constants import Constants


def power_spread(constants: Constants) -> tuple[float, float]:
    """Factors (low, high) on a board's power where no measured run says more."""
    share = constants.si("interval_power_fraction")
    return 1.0 - share, 1.0 + share


def moved_spreads(centre: Replay, slow: Replay, fast: Replay, constants: Constants) -> dict[str, tuple[float, float]]:
    """Factors (low, high) by metric and percentile from the two moved replays."""

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
    spreads["power"] = power_spread(constants)
    return spreads
