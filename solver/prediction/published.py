"""What a request meets on a system of which nothing but measured speeds is published."""

import math
from dataclasses import dataclass

from solver.errors import UnsupportedError
from solver.prediction.intervals import PredictedInterval
from solver.workload import Load, Traffic


@dataclass(frozen=True, slots=True)
class FirstToken:
    """Published time to first token of a prompt of so many tokens."""

    prompt_tokens: int
    seconds: float


@dataclass(frozen=True, slots=True)
class PublishedSpeed:
    """One model on one system, as one stream of requests sees it.

    tokens_per_s: every figure published. first_token: by prompt length; empty where none is published. factor: how far from
    them others may be met. shared: a service of many users, each of whom is served so; otherwise one stream at a time.
    """

    device_id: str
    llm_id: str
    engine: str
    weights: str
    shared: bool
    tokens_per_s: tuple[float, ...]
    first_token: tuple[FirstToken, ...]
    factor: float
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PublishedEstimate:
    """One stream's times in seconds, its tokens and its requests a second."""

    time_to_first_token_s: PredictedInterval
    time_per_output_token_s: PredictedInterval
    end_to_end_s: PredictedInterval
    output_tokens_per_s: PredictedInterval
    requests_per_s: PredictedInterval


def check_single_stream(load: Load) -> None:
    """Raises UnsupportedError for any load but one client that waits for its reply: nothing else is published."""
    if load.kind != "closed" or load.concurrency != 1:
        raise UnsupportedError(
            "figure_missing",
            "only the speed of one stream of requests is published of it: ask for a closed load of concurrency 1",
        )


def published_estimate(speed: PublishedSpeed, traffic: Traffic) -> PublishedEstimate:
    """One stream of requests of this traffic's mean lengths.

    A token takes 1/v, between 1/(f · max v) and f / min v. End to end: TTFT + (n - 1) · TPOT.

    >>> from solver.lengths import fixed_lengths
    >>> speed = PublishedSpeed("d", "m", "e", "fp8", True, (100.0,), (FirstToken(500, 0.2),), 2.0)
    >>> found = published_estimate(speed, Traffic(fixed_lengths(500), fixed_lengths(101)))
    >>> found.time_per_output_token_s
    PredictedInterval(expected=0.01, low=0.005, high=0.02)
    >>> found.end_to_end_s.expected, found.end_to_end_s.high
    (1.2, 2.4)
    """
    slowest, fastest = min(speed.tokens_per_s), max(speed.tokens_per_s)
    token = PredictedInterval(
        1.0 / math.sqrt(slowest * fastest), 1.0 / (fastest * speed.factor), speed.factor / slowest
    )
    first = first_token(speed, traffic.prompt.mean)
    further = max(traffic.output.mean - 1.0, 0.0)
    whole = PredictedInterval(
        first.expected + further * token.expected, first.low + further * token.low, first.high + further * token.high
    )
    requests = PredictedInterval(1.0 / whole.expected, 1.0 / whole.high, 1.0 / whole.low)
    output = PredictedInterval(*(traffic.output.mean * x for x in (requests.expected, requests.low, requests.high)))
    return PublishedEstimate(first, token, whole, output, requests)


def first_token(speed: PublishedSpeed, prompt_tokens: float) -> PredictedInterval:
    """Time to first token in seconds: as published of the shortest prompt that is no shorter, in proportion beyond the longest.

    Where none is published: no less than a token takes, and no more than the prompt read one token at a time, since a system
    reads no slower than it writes; the middle of both in proportion.
    """
    if not speed.first_token:
        low = 1.0 / (max(speed.tokens_per_s) * speed.factor)
        high = max(prompt_tokens, 1.0) * speed.factor / min(speed.tokens_per_s)
        return PredictedInterval(math.sqrt(low * high), low, high)
    longer = [one for one in speed.first_token if one.prompt_tokens >= prompt_tokens]
    known = (
        min(longer, key=lambda one: one.prompt_tokens)
        if longer
        else max(speed.first_token, key=lambda one: one.prompt_tokens)
    )
    seconds = known.seconds * max(1.0, prompt_tokens / known.prompt_tokens)
    return PredictedInterval(seconds, seconds / speed.factor, seconds * speed.factor)
