"""What the load generator writes down: one record a request, and the run they make together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from service.agent.percentiles import latency_statistics

MS_PER_S = 1e3
TICKS_PER_S = 1e5  # chunk times travel as whole ticks of 10 µs: finer than any engine step, small once compressed


@dataclass(frozen=True)
class RequestRecord:
    """One request as the client saw it. Times are seconds on one monotonic clock that starts with the run."""

    sent_s: float
    prompt_tokens: int
    output_tokens: int
    chunk_s: tuple[float, ...] = field(repr=False)
    """When each streamed chunk that carried tokens arrived; an engine may put several tokens in one chunk."""
    tokens_counted_by: str = "usage"
    """`usage` when the server said how many tokens it produced, `chunks` when it did not and chunks were counted."""
    error: str | None = None
    cached_tokens: int | None = None
    """Of the prompt, found in the cache of prefixes; None where the server does not say."""
    session: int | None = None
    turn: int | None = None
    """Which turn of which session it was, from 0; None for requests that are no turns."""
    replica: int | None = None
    """Which of several replicas it was sent to, from 0; None where there is one."""

    @property
    def succeeded(self) -> bool:
        return self.error is None and bool(self.chunk_s)

    @property
    def time_to_first_token_s(self) -> float:
        """TTFT: from sending the request to the arrival of the first token."""
        return self.chunk_s[0] - self.sent_s

    @property
    def end_to_end_s(self) -> float:
        """E2E: from sending the request to the arrival of the last token."""
        return self.chunk_s[-1] - self.sent_s

    @property
    def time_per_output_token_s(self) -> float | None:
        """TPOT = (E2E − TTFT) / (output tokens − 1); undefined for a single token."""
        if self.output_tokens < 2:
            return None
        return (self.end_to_end_s - self.time_to_first_token_s) / (self.output_tokens - 1)

    @property
    def inter_token_latencies_s(self) -> list[float]:
        """ITL: the gaps between successive chunks."""
        return [later - earlier for earlier, later in pairwise(self.chunk_s)]

    def as_json(self, *, with_chunks: bool = False) -> dict[str, Any]:
        """The record in compact form; with `with_chunks` also every gap between chunks, in ticks of 10 µs."""
        compact: dict[str, Any] = {
            "sent_s": round(self.sent_s, 5),
            "prompt_tokens": self.prompt_tokens,
            "output_tokens": self.output_tokens,
        }
        if self.chunk_s:
            compact["ttft_ms"] = round(self.time_to_first_token_s * MS_PER_S, 2)
            compact["e2e_ms"] = round(self.end_to_end_s * MS_PER_S, 2)
            if with_chunks:
                compact["gap_ticks"] = [round(gap * TICKS_PER_S) for gap in self.inter_token_latencies_s]
        if self.tokens_counted_by != "usage":
            compact["tokens_counted_by"] = self.tokens_counted_by
        for name in ("cached_tokens", "session", "turn", "replica"):
            if (known := getattr(self, name)) is not None:
                compact[name] = known
        if self.error is not None:
            compact["error"] = self.error
        return compact


@dataclass(frozen=True)
class LoadRun:
    """A finished run: every request sent, and the wall time from the first send to the last answer."""

    duration_s: float
    records: tuple[RequestRecord, ...] = field(repr=False)

    @property
    def completed(self) -> tuple[RequestRecord, ...]:
        return tuple(record for record in self.records if record.succeeded)

    @property
    def failed(self) -> tuple[RequestRecord, ...]:
        return tuple(record for record in self.records if not record.succeeded)

    def results(self) -> dict[str, Any]:
        """The `results` of a benchmark record: rates over the whole wall time, latencies over completed requests.

        Tokens of failed requests are not counted; ramp-up and drain are part of the wall time.
        """
        completed = self.completed
        output_tokens = sum(record.output_tokens for record in completed)
        results: dict[str, Any] = {
            "completed": len(completed),
            "failed": len(self.failed),
            "duration_s": round(self.duration_s, 5),
            "requests_per_s": round(len(completed) / self.duration_s, 6),
            "output_tokens_per_s": round(output_tokens / self.duration_s, 4),
        }
        time_per_output_token_s = [record.time_per_output_token_s for record in completed]
        for name, seconds in (
            ("ttft_ms", [record.time_to_first_token_s for record in completed]),
            ("tpot_ms", [value for value in time_per_output_token_s if value is not None]),
            ("itl_ms", [gap for record in completed for gap in record.inter_token_latencies_s]),
            ("e2e_ms", [record.end_to_end_s for record in completed]),
        ):
            statistics = latency_statistics([value * MS_PER_S for value in seconds])
            results[name] = statistics.as_json() if statistics is not None else None
        return results

    def failures(self) -> dict[str, int]:
        """How often each error was seen, most frequent first."""
        return _counted([record.error or "no token arrived" for record in self.failed])


def _counted(errors: Sequence[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for error in errors:
        counts[error] = counts.get(error, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: -item[1]))
