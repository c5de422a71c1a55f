"""Speculative decoding: a cheap model drafts a few tokens, the served model verifies them in one step.

    tokens a step      E = (1 − a^(k+1)) / (1 − a)                 k drafted, each accepted with probability a
    one step           verification of n·(k+1) tokens + k draft steps of n sequences

Leviathan, Kalman and Matias, Fast inference from transformers via speculative decoding, 2023 (arXiv:2211.17192),
equation 1. The cache of a sequence is read once for its k+1 queries. A draft model reads every prompt too: its pass over
a chunk is added to the served model's.
"""

from dataclasses import replace

import numpy as np

from solver.engine.simulate import Schedule
from solver.errors import InvalidInputError
from solver.step.tables import StepTables, Vector, from_zero
from solver.workload import SpeculativeDecoding


def expected_tokens_per_step(draft_tokens: int, acceptance_fraction: float) -> float:
    """Mean tokens one verification yields: (1 − a^(k+1)) / (1 − a); a rejected token is replaced, so at least 1.

    >>> round(expected_tokens_per_step(4, 0.8), 4), expected_tokens_per_step(4, 0.0), expected_tokens_per_step(4, 1.0)
    (3.3616, 1.0, 5.0)
    """
    if acceptance_fraction >= 1.0:
        return float(draft_tokens + 1)
    return (1.0 - acceptance_fraction ** (draft_tokens + 1)) / (1.0 - acceptance_fraction)


def draft_seconds(
    target: StepTables, draft: StepTables | None, speculative: SpeculativeDecoding, sequences: int
) -> Vector:
    """Seconds of k draft steps for 0 … ``sequences`` sequences.

    A draft model's context is read as its own tables say; it is left out here, where no context is known, and belongs
    to the slope that ``speculative_tables`` adds.
    """
    k = speculative.draft_tokens
    if draft is None:
        if speculative.draft_step_fraction is None:
            raise InvalidInputError("state a draft model or what drafting costs")
        share = speculative.draft_step_fraction * k
        seats = np.arange(sequences + 1)
        return share * (target.decode_s[seats] + target.head_s[seats] + seats * target.sequence_s)
    if len(draft.decode_s) <= sequences:
        raise InvalidInputError(f"the draft model has {len(draft.decode_s) - 1} seats for {sequences} sequences")
    drafting = np.arange(1, sequences + 1)
    return from_zero(k * (draft.decode_s[drafting] + draft.head_s[drafting] + drafting * draft.sequence_s))


def speculative_tables(
    plain: StepTables, wide: StepTables, speculative: SpeculativeDecoding, draft: StepTables | None = None
) -> StepTables:
    """Step tables of a model that verifies: ``decode_s[n]`` is drafting plus verification of n·(k+1) tokens.

    plain: its own, without drafting. wide: its own with k+1 queries a sequence, for k+1 times as many tokens. draft: the
    draft model's on the same devices, with at least as many seats. Raises InvalidInputError without one where no
    draft_step_fraction is stated.
    """
    width, seats = speculative.draft_tokens + 1, len(plain.decode_s) - 1
    drafting = draft_seconds(plain, draft, speculative, seats)
    verifying = replace(
        wide,
        decode_s=wide.decode_s[::width] + drafting,
        decode_bytes=wide.decode_bytes[::width].copy(),
        draft_s=drafting,
    )
    return verifying if draft is None else with_draft_model(verifying, draft, speculative.draft_tokens)


def with_draft_model(verifying: StepTables, draft: StepTables, draft_tokens: int) -> StepTables:
    """What a draft model adds beside the time of its decode steps, which ``decode_s`` holds already.

    Its own context is read k times a step; every prompt token passes through it once; its bytes and FLOPs count for
    power (k tokens of every k+1 that are worked on, and every prompt token).
    """
    k, longest = draft_tokens, len(draft.mixed_s) - 1

    def prompt_passes(values: Vector, most: int) -> Vector:
        beyond = np.arange(longest + 1, most + 1)
        return np.concatenate([values[: most + 1], values[longest] * beyond / longest])

    return replace(
        verifying,
        mixed_s=verifying.mixed_s + prompt_passes(draft.mixed_s, len(verifying.mixed_s) - 1),
        mixed_bytes=verifying.mixed_bytes + prompt_passes(draft.mixed_bytes, len(verifying.mixed_bytes) - 1),
        decode_bytes=verifying.decode_bytes + k * draft.decode_bytes[: len(verifying.decode_bytes)],
        context=(*verifying.context, *((limit, k * s, k * size) for limit, s, size in draft.context)),
        pairs=(*verifying.pairs, *draft.pairs),
        flops_per_token=verifying.flops_per_token + draft.flops_per_token,
        head_flops=verifying.head_flops + draft.head_flops,
    )


def speculative_schedule(schedule: Schedule, speculative: SpeculativeDecoding) -> Schedule:
    """The schedule of an engine that verifies: k+1 tokens worked on a sequence and step, E kept, k slots held ahead."""
    return replace(
        schedule,
        tokens_per_step=expected_tokens_per_step(speculative.draft_tokens, speculative.acceptance_fraction),
        query_tokens=speculative.draft_tokens + 1,
        block_slack_tokens=schedule.block_slack_tokens + speculative.draft_tokens,
    )
