"""Queues that stay: what a deployment completes once requests wait for seats, on the wire and in words."""

from service.figures import readable, rounded_down
from service.wire.lasting_queue import LastingQueueOut
from solver.prediction.lasting_queue import LastingQueue


def present_lasting_queue(found: LastingQueue | None) -> LastingQueueOut | None:
    return (
        None
        if found is None
        else LastingQueueOut(
            completed_requests_per_s=found.completed_requests_per_s,
            max_sequences=found.max_sequences,
            settled_requests_per_s=found.settled_requests_per_s,
            prefix_hit_fraction=found.found_fraction,
        )
    )


def lasting_queue_doubt(queue: LastingQueueOut, asked_requests_per_s: float, max_sequences: int) -> str:
    """What is to be known of a load that is served only as long as nothing waits. max_sequences: the seats it was predicted with."""
    told = (
        f"{readable(asked_requests_per_s)} requests per second are served as they come, but once requests wait for seats, after a "
        f"burst or while a replica is away, {readable(queue.completed_requests_per_s)} are completed, and they go on to wait"
    )
    if queue.prefix_hit_fraction is not None:
        return (
            f"{told}: of the more sessions that are under way then the cache holds less, and {100 * queue.prefix_hit_fraction:.0f} % of "
            f"prompts are found. Bound the sessions under way, or ask for no more than {rounded_down(queue.completed_requests_per_s)}"
        )
    if queue.max_sequences == max_sequences:
        return f"{told}: shed load then"
    return f"{told}: with max_sequences {queue.max_sequences} in place of {max_sequences} it is {readable(queue.settled_requests_per_s)}"
