"""inference-perf lifecycle reports (``stage_N_lifecycle_metrics.json``, ``summary_…``), JSON or YAML, and its
server-side Prometheus reports.

Everything is in seconds. A lifecycle report measures at the client, a Prometheus report at the server: the latter's
lengths and queues are the server's, its counts cover whatever the server did meanwhile.
"""

from service.benchmarks.document import Document, JsonObject, number, section, whole
from service.benchmarks.reading import MS_PER_S, Reading, mean_traffic, statistics
from service.wire.benchmarks import BenchmarkResults, MeasuredLoad, MeasuredOpenLoad, Statistics

TOOL = "inference-perf"


def recognises(document: Document) -> bool:
    report = document.object or {}
    return "load_summary" in report and "successes" in report and "failures" in report


def read(document: Document) -> list[Reading]:
    report = document.object or {}
    if not section(report, "successes", "latency") and "rate" in section(report, "successes"):
        return [_server_side(report)]
    return [_lifecycle(report)]


def _lifecycle(report: JsonObject) -> Reading:
    successes = section(report, "successes")
    latency = section(successes, "latency")
    throughput = section(successes, "throughput")
    results = BenchmarkResults(
        completed=whole(successes, "count"),
        failed=whole(section(report, "failures"), "count"),
        duration_s=number(report, "benchmark_time_seconds"),
        requests_per_s=number(throughput, "requests_per_sec"),
        output_tokens_per_s=number(throughput, "output_tokens_per_sec"),
        input_tokens_per_s=number(throughput, "input_tokens_per_sec"),
        ttft_ms=_spread(latency, "time_to_first_token"),
        tpot_ms=_spread(latency, "time_per_output_token"),
        itl_ms=_spread(latency, "inter_token_latency"),
        e2e_ms=_spread(latency, "request_latency"),
    )
    prompt = number(section(successes, "prompt_len"), "mean")
    if prompt is None:
        prompt = number(section(successes, "prompt_tokens"), "mean")
    traffic = mean_traffic(prompt, number(section(successes, "output_len"), "mean"))
    return Reading(TOOL, results, _load(report), traffic)


def _server_side(report: JsonObject) -> Reading:
    """Prometheus figures. ``rate`` is per second; the lengths' means are totals of the window, so they are left out."""
    successes = section(report, "successes")
    results = BenchmarkResults(
        completed=whole(successes, "count"),
        requests_per_s=number(successes, "rate"),
        output_tokens_per_s=number(section(successes, "output_len"), "rate"),
        input_tokens_per_s=number(section(successes, "prompt_len"), "rate"),
        ttft_ms=_spread(successes, "time_to_first_token"),
        tpot_ms=_spread(successes, "time_per_output_token"),
        e2e_ms=_spread(successes, "request_latency"),
    )
    return Reading(TOOL, results, notes=("measured at the server (Prometheus): the load is not stated",))


def _spread(row: JsonObject, name: str) -> Statistics:
    return statistics(section(row, name), MS_PER_S, mean="mean", p50="median", p90="p90", p95="p95", p99="p99")


def _load(report: JsonObject) -> MeasuredLoad | None:
    summary = section(report, "load_summary")
    rate = number(summary, "requested_rate") or number(summary, "achieved_rate")
    if not rate:
        return None
    return MeasuredOpenLoad(requests_per_s=rate, requests=whole(summary, "count") or None, arrivals="other")
