"""Constants moved within their ranges: what intervals are made of where no measurement gives a spread."""

from dataclasses import replace

from solver.step.constants import CONSTANTS, Constants

HELD_CONSTANTS = ("clock_headroom_fraction", "schedule_lag_fraction", "block_tokens")
"""Constants that do not move with the others when an interval is made: they have no slow and fast end."""
FASTER_WHEN_LARGER = ("efficiency", "widest_share", "quick_share", "recurrent_chunk_tokens")
"""What names say of constants whose large end is the fast one; of all others it is the slow one."""


def moved_constants(constants: Constants, *, towards_slow: bool, share: float = 0.5) -> Constants:
    """Every constant moved by ``share`` of the way to the slow or fast end of its range: made once for the same constants."""
    found = constants.moved.get((towards_slow, share))
    if found is None:
        found = constants.moved[towards_slow, share] = _moved_constants(constants, towards_slow, share)
    return found


def _moved_constants(constants: Constants, towards_slow: bool, share: float) -> Constants:
    values = {}
    for name, prior in constants.priors.items():
        if CONSTANTS[name].unit not in ("fraction", "us", "ms", "tokens") or "power" in name or name in HELD_CONSTANTS:
            continue
        faster_when_larger = any(part in name for part in FASTER_WHEN_LARGER)
        slow_end, fast_end = (prior.low, prior.high) if faster_when_larger else (prior.high, prior.low)
        values[name] = prior.value + share * ((slow_end if towards_slow else fast_end) - prior.value)
    return Constants(
        constants.subject,
        {n: replace(p, value=values[n]) if n in values else p for n, p in constants.priors.items()},
    )
