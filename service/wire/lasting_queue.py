"""A queue that stays, as it is sent."""

from service.wire.quantities import Answer


class LastingQueueOut(Answer):
    """What is completed once requests wait for seats: less than is asked for, so that they go on to wait.

    Of one replica in a plan, and of the whole deployment in an estimate.
    """

    completed_requests_per_s: float
    """Requests per second, with all seats taken and some waiting."""
    max_sequences: int
    """Seats of a replica with which it then completes the most of all that were tried: the stated ones where none were better."""
    settled_requests_per_s: float
    """Requests per second that it completes with those."""
    prefix_hit_fraction: float | None = None
    """Share of the tokens of prompts then found in the cache; null where requests are no turns of sessions."""
