"""Servers that are asked for nearly as many tokens a second as one process passes on, in words."""

from solver.engine.profiles import engine_profile

NEAR_FRACTION = 0.75
"""Of a front end's time, from which on a server may lag though the prediction says it does not: on a host measured here 0.72 was
served as predicted, and of 0.81 first tokens came after 900 ms in place of 44 (docs/accuracy.md, "Where one server's limit is")."""


MORE = 4
"""Times as many processes as there were, as were measured (the same section)."""


def front_end_doubt(engine: str, fraction: float, processes: int) -> str | None:
    """What is to be known of a replica whose front end, of so many processes, is so busy; None where it has time left, or the engine
    cannot be told to use more.

    >>> front_end_doubt("vllm", 0.5, 1) is front_end_doubt("sglang", 0.9, 1) is None
    True
    """
    if fraction < NEAR_FRACTION or not engine_profile(engine).many_api_servers:
        return None
    return (
        f"what passes its tokens on is busy for {100 * min(1.0, fraction):.0f} % of the time, and on slower processors tokens would "
        f"wait for it, the first ones for long: start it with --api-server-count {MORE * processes}, which divides that by {MORE}, or "
        "give a replica less"
    )
