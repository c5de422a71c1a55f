"""What an error in the time of steps becomes where requests keep arriving: near capacity a queue makes more of it.

How far predictions are off is measured on runs of all kinds, most of them with a fixed number in flight, where a step that takes a
tenth longer makes every token a tenth later. An open load is less forgiving: more requests are in flight then, and each step takes
longer for it. So the load is replayed with all steps as much slower, and as much faster, as the time of a token was ever off, and an
interval holds both ends.
"""

from collections.abc import Mapping
from dataclasses import replace

from solver.errors import SaturatedError
from solver.replay.one_stream import Replay, Statistics
from solver.step.constants import Constants
from solver.workload import Load

Spreads = Mapping[str, tuple[float, float]]

QUEUED = ("time_to_first_token_s", "time_per_output_token_s", "inter_token_s", "end_to_end_s", "time_to_first_answer_s")
STEP_METRIC = "time_per_output_token"
"""The metric whose spread is taken for that of steps."""


def dilated(result: Replay, factor: float) -> Replay:
    """A replay with every step ``factor`` times as long, from one at ``factor`` times the rate: only time is scaled by slower
    steps, so times are longer and rates lower, and shares stay."""

    def longer(values: Statistics) -> Statistics:
        return {name: value * factor for name, value in values.items()}

    return replace(
        result,
        time_to_first_token_s=longer(result.time_to_first_token_s),
        time_per_output_token_s=longer(result.time_per_output_token_s),
        inter_token_s=longer(result.inter_token_s),
        end_to_end_s=longer(result.end_to_end_s),
        time_to_first_answer_s=None if result.time_to_first_answer_s is None else longer(result.time_to_first_answer_s),
        output_tokens_per_s=result.output_tokens_per_s / factor,
        requests_per_s=result.requests_per_s / factor,
    )


def step_spread(spreads: Spreads) -> tuple[float, float]:
    """Factors (low, high) on the time of a step."""
    return spreads.get(STEP_METRIC, (1.0, 1.0))


def queued_spreads(spreads: Spreads, centre: Replay, slow: Replay, fast: Replay) -> dict[str, tuple[float, float]]:
    """Spreads, no narrower than from the replay with fast steps to that with slow ones. Those of power stay.

    >>> from solver.replay.one_stream import Replay
    >>> calm = Replay(*({"mean": 0.2, "p95": 0.4} for _ in range(4)), 100.0, 1.0, 0.5, 0.5, 4.0, 0)
    >>> queued_spreads({"end_to_end": (0.9, 1.1)}, calm, dilated(calm, 2.0), calm)["end_to_end.p95"]
    (0.9, 2.0)
    """
    wide = dict(spreads)
    for attribute in QUEUED:
        metric = attribute.removesuffix("_s")
        for name, middle in (getattr(centre, attribute) or {}).items():
            known = spreads.get(f"{metric}.{name}", spreads.get(metric))
            if known is None or middle <= 0.0:
                continue
            ends = (getattr(slow, attribute)[name] / middle, getattr(fast, attribute)[name] / middle)
            wide[f"{metric}.{name}"] = (min(known[0], *ends), max(known[1], *ends))
    if "output_rate" in spreads and centre.output_tokens_per_s > 0.0:
        low, high = spreads["output_rate"]
        wide["output_rate"] = min(low, slow.output_tokens_per_s / centre.output_tokens_per_s), high
    return wide


def reaching(spreads: Spreads, centre: Replay, other: Replay) -> dict[str, tuple[float, float]]:
    """Spreads that hold another replay of the same load as well. Those of power stay.

    >>> from solver.replay.one_stream import Replay
    >>> calm = Replay(*({"mean": 0.2, "p95": 0.4} for _ in range(4)), 100.0, 1.0, 0.5, 0.5, 4.0, 0)
    >>> found = reaching({"end_to_end": (0.9, 1.1), "output_rate": (0.8, 1.2)}, calm, dilated(calm, 0.5))
    >>> found["end_to_end.mean"], found["output_rate"]
    ((0.5, 1.1), (0.8, 2.0))
    """
    wide = queued_spreads(spreads, centre, other, other)
    if "output_rate" in spreads and centre.output_tokens_per_s > 0.0:
        low, high = wide["output_rate"]
        ratio = other.output_tokens_per_s / centre.output_tokens_per_s
        wide["output_rate"] = min(low, ratio), max(high, ratio)
    return wide


def stretched(fallback: Replay, load: Load, limit: SaturatedError, constants: Constants) -> Replay:
    """What to make of a load that saturates only at the slow end: later and slower in proportion to the excess."""
    wait = constants.si("interval_saturated_wait")
    stretch = max(
        constants.si("interval_saturated_stretch"), load.requests_per_s / max(limit.capacity_requests_per_s, 1e-12)
    )
    worse: Statistics = {name: value * stretch for name, value in fallback.time_per_output_token_s.items()}
    first = fallback.time_to_first_token_s
    later: Statistics = {name: value * wait * stretch for name, value in first.items()}

    def after_waiting(values: Statistics) -> Statistics:
        """Of what follows the first token nothing waits again."""
        return {name: (value + (wait - 1.0) * first[name]) * stretch for name, value in values.items()}

    answered = fallback.time_to_first_answer_s
    rate = min(load.requests_per_s, limit.capacity_requests_per_s) / load.requests_per_s
    return replace(
        fallback,
        time_per_output_token_s=worse,
        time_to_first_answer_s=None if answered is None else after_waiting(answered),
        time_to_first_token_s=later,
        end_to_end_s=after_waiting(fallback.end_to_end_s),
        inter_token_s={name: value * stretch for name, value in fallback.inter_token_s.items()},
        output_tokens_per_s=fallback.output_tokens_per_s * rate,
    )
