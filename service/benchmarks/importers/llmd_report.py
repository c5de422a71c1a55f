"""llm-d benchmark report, YAML or JSON, versions 0.1 and 0.2.

Every record states its ``units``. 0.1 keeps results under ``metrics`` and the platform under ``scenario.host`` and
``scenario.platform``; 0.2 keeps them under ``results.request_performance.aggregate`` and ``scenario.stack``. The
report passes on what its load generator measured: "time per output token" leaves the first token out.
"""

from dataclasses import replace
from typing import Any

from service.benchmarks.document import Document, JsonObject, number, section, text, whole
from service.benchmarks.reading import (
    FileFacts,
    Reading,
    engine_of,
    instant,
    instant_of_epoch,
    mean_traffic,
    milliseconds_per,
    statistics,
)
from service.wire.benchmarks import (
    BenchmarkResults,
    MeasuredClosedLoad,
    MeasuredLoad,
    MeasuredOpenLoad,
    MeasuredTraffic,
    Statistics,
)

TOOL = "llm-d-benchmark-report"


def recognises(document: Document) -> bool:
    report = document.object or {}
    return "scenario" in report and "version" in report and ("metrics" in report or "results" in report)


def read(document: Document) -> list[Reading]:
    report = document.object or {}
    return [_v01(report) if "metrics" in report else _v02(report)]


def _results(requests: JsonObject, latency: JsonObject, rates: dict[str, float | None], duration_s: float | None,
             total: int | None) -> BenchmarkResults:  # fmt: skip
    failed = whole(requests, "failures")
    return BenchmarkResults(
        completed=None if total is None else max(0, total - (failed or 0) - (whole(requests, "incomplete") or 0)),
        failed=failed,
        duration_s=duration_s,
        **rates,
        ttft_ms=_spread(latency, "time_to_first_token"),
        tpot_ms=_spread(latency, "time_per_output_token"),
        itl_ms=_spread(latency, "inter_token_latency"),
        e2e_ms=_spread(latency, "request_latency"),
    )


def _spread(latency: JsonObject, name: str) -> Statistics:
    record = section(latency, name)
    if not record:
        return Statistics()
    scale = milliseconds_per(text(record, "units"), f"{name}/units")
    return statistics(record, scale, mean="mean", p50="p50", p90="p90", p95="p95", p99="p99")


def _v01(report: JsonObject) -> Reading:
    metrics = section(report, "metrics")
    requests, throughput = section(metrics, "requests"), section(metrics, "throughput")
    rates = {
        "requests_per_s": number(throughput, "requests_per_sec"),
        "output_tokens_per_s": number(throughput, "output_tokens_per_sec"),
        "input_tokens_per_s": number(throughput, "input_tokens_per_sec"),
    }
    duration_s = number(section(metrics, "time"), "duration")
    results = _results(requests, section(metrics, "latency"), rates, duration_s, whole(requests, "total"))
    accelerators = _objects(section(report, "scenario", "host").get("accelerator"))
    engines = _objects(section(report, "scenario", "platform").get("engine"))
    accelerator, engine = (accelerators or [{}])[0], (engines or [{}])[0]
    facts = FileFacts(
        device_name=text(accelerator, "model"),
        devices=sum(whole(a, "count") or 0 for a in accelerators) or None,
        llm_name=text(section(report, "scenario", "model"), "name"),
        engine_name=engine_of(text(engine, "name")),
        engine_version=text(engine, "version"),
        measured_at=instant_of_epoch(number(section(metrics, "time"), "start")),
    )
    facts = _with_degrees(facts, section(accelerator, "parallelism"))
    return Reading(TOOL, results, None, _lengths(requests), facts, ("version 0.1 does not state the load",))


def _v02(report: JsonObject) -> Reading:
    aggregate = section(report, "results", "request_performance", "aggregate")
    requests, throughput = section(aggregate, "requests"), section(aggregate, "throughput")
    rates = {
        "requests_per_s": number(section(throughput, "request_rate"), "mean"),
        "output_tokens_per_s": number(section(throughput, "output_token_rate"), "mean"),
        "input_tokens_per_s": number(section(throughput, "input_token_rate"), "mean"),
    }
    time = section(report, "run", "time")
    total = whole(requests, "total")
    results = _results(requests, section(aggregate, "latency"), rates, _iso_seconds(text(time, "duration")), total)
    engines = [
        standardized
        for part in _objects(section(report, "scenario").get("stack"))
        if (standardized := section(part, "standardized")).get("kind") == "inference_engine"
    ]
    engine = (engines or [{}])[0]
    accelerator = section(engine, "accelerator")
    counts = [(whole(section(e, "accelerator"), "count") or 0) * (whole(e, "replicas") or 1) for e in engines]
    facts = FileFacts(
        device_name=text(accelerator, "model"),
        devices=sum(counts) or None,
        llm_name=text(section(engine, "model"), "name"),
        engine_name=engine_of(text(engine, "tool")),
        engine_version=text(engine, "tool_version"),
        measured_at=instant(text(time, "start")),
    )
    facts = _with_degrees(facts, section(accelerator, "parallelism"), whole(engine, "replicas") or 1)
    notes = ("several engine pools: the layout is that of the first",) if len(engines) > 1 else ()
    load = _load(section(report, "scenario", "load", "standardized"), total)
    return Reading(TOOL, results, load, _lengths(requests), facts, notes)


def _objects(value: Any) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _with_degrees(facts: FileFacts, parallelism: JsonObject, replicas: int = 1) -> FileFacts:
    """With degrees of parallelism; replicas of the engine are copies, so they multiply data parallelism."""
    if not parallelism:
        return facts
    return replace(
        facts,
        tensor_parallel=whole(parallelism, "tp"),
        pipeline_parallel=whole(parallelism, "pp"),
        data_parallel=(whole(parallelism, "dp") or 1) * replicas,
        expert_parallel=whole(parallelism, "ep"),
    )


def _lengths(requests: JsonObject) -> MeasuredTraffic:
    return mean_traffic(*(number(section(requests, name), "mean") for name in ("input_length", "output_length")))


def _load(load: JsonObject, requests: int | None) -> MeasuredLoad | None:
    """A rate is open (infinite concurrency); without one, the concurrency is a closed loop."""
    rate = number(load, "rate_qps")
    if rate:
        return MeasuredOpenLoad(requests_per_s=rate, requests=requests or None, arrivals="other")
    concurrency = load.get("concurrency")
    if isinstance(concurrency, (int, float)) and not isinstance(concurrency, bool) and 1 <= concurrency < 1e9:
        return MeasuredClosedLoad(concurrency=int(concurrency), requests=requests or None)
    return None


def _iso_seconds(duration: str | None) -> float | None:
    """An ISO 8601 duration of hours, minutes and seconds.

    >>> _iso_seconds("PT1M49.5S")
    109.5
    """
    if not duration or not duration.startswith("PT"):
        return None
    total, digits = 0.0, ""
    for character in duration[2:]:
        if character in "HMS":
            try:
                total += float(digits) * {"H": 3600, "M": 60, "S": 1}[character]
            except ValueError:
                return None
            digits = ""
        else:
            digits += character
    return total if total > 0 else None
