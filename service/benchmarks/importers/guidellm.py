"""GuideLLM ``benchmarks.json``, report versions 1 (GuideLLM 0.2 to 0.3) and 2 (from 0.4).

``request_latency`` is in seconds, metrics ending in ``_ms`` in milliseconds. "Time per output token" there counts the
first token too, so it holds the TTFT and is not ours; "inter-token latency" is a request's mean gap after the first
token, weighted by tokens: that is our TPOT. Only successful requests count.
"""

from service.benchmarks.document import Document, JsonObject, number, section, text, whole
from service.benchmarks.reading import MS_PER_S, FileFacts, Reading, instant_of_epoch, mean_traffic
from service.wire.benchmarks import BenchmarkResults, MeasuredClosedLoad, MeasuredLoad, MeasuredOpenLoad, Statistics

TOOL = "guidellm"
_NOTE = "GuideLLM's inter-token latency is read as TPOT; its time per output token includes the first token"


def recognises(document: Document) -> bool:
    runs = (document.object or {}).get("benchmarks")
    return isinstance(runs, list) and bool(runs) and all(isinstance(r, dict) and "metrics" in r for r in runs)


def read(document: Document) -> list[Reading]:
    report = document.object or {}
    version = text(section(report, "metadata"), "guidellm_version")
    return [_run(run, version) for run in report["benchmarks"]]


def _run(run: JsonObject, version: str | None) -> Reading:
    metrics = section(run, "metrics")
    totals = section(metrics, "request_totals") or section(run, "request_totals")
    results = BenchmarkResults(
        completed=whole(totals, "successful"),
        failed=whole(totals, "errored"),
        duration_s=number(run, "duration"),
        requests_per_s=_mean(metrics, "requests_per_second"),
        output_tokens_per_s=_mean(metrics, "output_tokens_per_second"),
        ttft_ms=_latency(metrics, "time_to_first_token_ms"),
        tpot_ms=_latency(metrics, "inter_token_latency_ms"),
        e2e_ms=_latency(metrics, "request_latency", MS_PER_S),
    )
    traffic = mean_traffic(_mean(metrics, "prompt_token_count"), _mean(metrics, "output_token_count"))
    backend = section(run, "config", "backend")
    facts = FileFacts(
        llm_name=text(backend, "model") or text(section(run, "worker"), "backend_model"),
        measured_at=instant_of_epoch(number(run, "start_time")),
    )
    notes = (_NOTE, f"GuideLLM {version}") if version else (_NOTE,)
    return Reading(TOOL, results, _load(run, results.completed), traffic, facts, notes)


def _mean(metrics: JsonObject, name: str) -> float | None:
    return number(section(metrics, name, "successful"), "mean")


def _latency(metrics: JsonObject, name: str, scale: float = 1.0) -> Statistics:
    spread = section(metrics, name, "successful")
    percentiles = section(spread, "percentiles")
    return Statistics(
        mean=number(spread, "mean", scale=scale),
        p50=number(percentiles, "p50", scale=scale),
        p90=number(percentiles, "p90", scale=scale),
        p95=number(percentiles, "p95", scale=scale),
        p99=number(percentiles, "p99", scale=scale),
    )


def _load(run: JsonObject, requests: int | None) -> MeasuredLoad | None:
    """The strategy: synchronous is one client, concurrent several, throughput all at once, the others arrive."""
    strategy = section(run, "config", "strategy") or section(run, "args", "strategy")
    kind = text(strategy, "type_")
    requests = requests or None
    if kind == "synchronous":
        return MeasuredClosedLoad(concurrency=1, requests=requests)
    if kind == "concurrent":
        streams = whole(strategy, "streams")
        return MeasuredClosedLoad(concurrency=streams, requests=requests) if streams else None
    if kind == "throughput":
        streams = whole(strategy, "max_concurrency") or requests
        return MeasuredClosedLoad(concurrency=streams, requests=requests) if streams else None
    rate = number(strategy, "rate")
    if not rate:
        return None
    if kind in ("poisson", "constant"):
        return MeasuredOpenLoad(requests_per_s=rate, requests=requests, arrivals=kind)
    return MeasuredOpenLoad(requests_per_s=rate, requests=requests, arrivals="other") if kind == "async" else None
