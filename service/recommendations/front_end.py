"""Servers that are asked for nearly as many tokens a second as one process passes on, in words."""

from solver.deployment.configuration import Configuration
from solver.engine.profiles import PLANNED_SERVERS
from solver.prediction.front_end import planned_busy_fraction


def front_end_doubt(configuration: Configuration, fraction: float) -> str | None:
    """What is to be known of a replica whose front end is so busy; None where a plan may have it so busy, or the engine cannot be told to
    use more processes. The advice is of all copies of attention together, which an engine is told of at once."""
    planned = PLANNED_SERVERS.get(configuration.engine.name)
    if planned is None or fraction <= planned_busy_fraction(configuration.constants):
        return None
    more, processes = planned.api_servers, configuration.engine.api_servers * configuration.layout.data_parallel
    return (
        f"what passes its tokens on is busy for {100 * min(1.0, fraction):.0f} % of the time, and on slower processors tokens would "
        f"wait for it, the first ones for long: start it with --api-server-count {more * processes}, which divides that by {more}, or "
        "give a replica less"
    )
