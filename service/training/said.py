"""What a request and a stored plan say by themselves: how much is trained on, and on whose nodes. Needs no solver."""

from service.wire.training_plans import TrainingJobIn

IDLE = "idle:"
"""Before the name of the offer or purchase whose nodes a fleet or a served plan leaves idle."""
BY_THE_HOUR = ("on_demand", "spot")
"""Commitments that are paid while nodes are held; all others are paid for all the time."""
PAIR_SEQUENCES = 2
"""Of a sample of preferences: a chosen and a rejected one."""


def tokens_of(job: TrainingJobIn) -> float:
    """Trained on in all."""
    return tokens_once(job) * job.epochs


def tokens_once(job: TrainingJobIn) -> float:
    """Of one epoch. A sample of preferences is a pair of sequences."""
    each = float(job.sequence_tokens or 0) * (PAIR_SEQUENCES if job.method == "dpo" else 1)
    return job.tokens if job.tokens is not None else float(job.samples or 0) * each
