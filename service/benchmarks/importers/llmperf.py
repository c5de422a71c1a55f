"""Ray LLMPerf ``*_summary.json``, with its results nested under ``results`` or flattened to ``results_…``.

Latencies in seconds, requests per minute. Its "inter-token latency" is E2E / output tokens and so holds the TTFT;
TPOT is derived from the means as (E2E − TTFT) / (output tokens − 1), and has no percentiles.
"""

from service.benchmarks.document import Document, JsonObject, number, number_in_text, text, whole
from service.benchmarks.reading import MS_PER_S, FileFacts, Reading, instant_of_epoch, mean_traffic, statistics
from service.wire.benchmarks import BenchmarkResults, MeasuredClosedLoad, Statistics

TOOL = "llmperf"
SECONDS_PER_MINUTE = 60.0


def recognises(document: Document) -> bool:
    row = _flat(document.object or {})
    return "num_concurrent_requests" in row and "results_end_to_end_latency_s_mean" in row


def read(document: Document) -> list[Reading]:
    return [_run(_flat(document.object or {}))]


def _flat(row: JsonObject) -> JsonObject:
    """Nested objects joined by "_", as LLMPerf's own summary files are."""
    flat = dict(row)
    for key, value in row.items():
        if isinstance(value, dict):
            flat |= {f"{key}_{inner}": below for inner, below in _flat(value).items()}
    return flat


def _run(row: JsonObject) -> Reading:
    ttft = _latency(row, "ttft_s")
    e2e = _latency(row, "end_to_end_latency_s")
    output_tokens = number(row, "results_number_output_tokens_mean")
    completed = whole(row, "results_num_completed_requests")
    per_minute = number(row, "results_num_completed_requests_per_min")
    results = BenchmarkResults(
        completed=completed,
        failed=whole(row, "results_number_errors"),
        duration_s=completed * SECONDS_PER_MINUTE / per_minute if completed and per_minute else None,
        requests_per_s=None if per_minute is None else per_minute / SECONDS_PER_MINUTE,
        output_tokens_per_s=number(row, "results_mean_output_throughput_token_per_s"),
        ttft_ms=ttft,
        tpot_ms=Statistics(mean=_tpot_ms(ttft.mean, e2e.mean, output_tokens)),
        e2e_ms=e2e,
    )
    concurrency = whole(row, "num_concurrent_requests")
    requests = whole(row, "results_num_requests_started") or None
    return Reading(
        TOOL,
        results,
        MeasuredClosedLoad(concurrency=concurrency, requests=requests) if concurrency else None,
        mean_traffic(number(row, "results_number_input_tokens_mean"), output_tokens),
        FileFacts(llm_name=text(row, "model"), measured_at=instant_of_epoch(number_in_text(row, "timestamp"))),
        ("LLMPerf's inter-token latency is E2E / output tokens: TPOT is derived from the means instead",),
    )


def _tpot_ms(ttft_ms: float | None, e2e_ms: float | None, output_tokens: float | None) -> float | None:
    """(E2E − TTFT) / (output tokens − 1), of means.

    >>> round(_tpot_ms(253.822, 1184.065, 99.44), 2)
    9.45
    """
    if ttft_ms is None or e2e_ms is None or output_tokens is None or output_tokens <= 1 or e2e_ms < ttft_ms:
        return None
    return (e2e_ms - ttft_ms) / (output_tokens - 1)


def _latency(row: JsonObject, name: str) -> Statistics:
    keys = {"mean": "mean"} | {p: f"quantiles_{p}" for p in ("p50", "p90", "p95", "p99")}
    return statistics(row, MS_PER_S, **{ours: f"results_{name}_{theirs}" for ours, theirs in keys.items()})
