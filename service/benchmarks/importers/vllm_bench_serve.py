"""``vllm bench serve --save-result`` (one JSON object) and ``--append-result`` (JSON lines).

Scalars are in milliseconds and named ``{mean,median,pNN}_{ttft,tpot,itl,e2el}_ms``; the per-request arrays, present
with ``--save-detailed``, are in seconds and are used for lengths only. ``request_rate`` is the text "inf" when all
requests were sent at once.
"""

from service.benchmarks.document import Document, JsonObject, ReadingError, number, text, whole
from service.benchmarks.reading import FileFacts, Reading, engine_of, instant, mean_traffic, measured_lengths, ratio
from service.wire.benchmarks import (
    BenchmarkResults,
    MeasuredClosedLoad,
    MeasuredLoad,
    MeasuredOpenLoad,
    MeasuredTraffic,
    Statistics,
)

TOOL = "vllm-bench-serve"
_OWN_KEYS = {"num_prompts", "tokenizer_id", "request_throughput", "output_throughput"}


def recognises(document: Document) -> bool:
    """Rows with vLLM's own keys; SGLang's client writes similar rows without ``num_prompts`` and ``tokenizer_id``."""
    return bool(document.objects) and all(row.keys() >= _OWN_KEYS for row in document.objects)


def read(document: Document) -> list[Reading]:
    return [_run(row) for row in document.objects]


def _run(row: JsonObject) -> Reading:
    completed = whole(row, "completed")
    sent = whole(row, "num_prompts")
    failed = whole(row, "failed")
    if failed is None and sent is not None and completed is not None:
        failed = max(0, sent - completed)
    results = BenchmarkResults(
        completed=completed,
        failed=failed,
        duration_s=number(row, "duration"),
        requests_per_s=number(row, "request_throughput"),
        output_tokens_per_s=number(row, "output_throughput"),
        ttft_ms=_latency(row, "ttft"),
        tpot_ms=_latency(row, "tpot"),
        itl_ms=_latency(row, "itl"),
        e2e_ms=_latency(row, "e2el"),
    )
    facts = FileFacts(
        llm_name=text(row, "model_id"),
        engine_name=engine_of(text(row, "backend")),
        measured_at=instant(text(row, "date"), "%Y%m%d-%H%M%S"),
    )
    return Reading(TOOL, results, _load(row, sent), _traffic(row, completed), facts)


def _latency(row: JsonObject, name: str) -> Statistics:
    median = number(row, f"median_{name}_ms")
    return Statistics(
        mean=number(row, f"mean_{name}_ms"),
        p50=median if median is not None else number(row, f"p50_{name}_ms"),
        p90=number(row, f"p90_{name}_ms"),
        p95=number(row, f"p95_{name}_ms"),
        p99=number(row, f"p99_{name}_ms"),
    )


def _load(row: JsonObject, sent: int | None) -> MeasuredLoad | None:
    """A finite rate is open, capped or not; an infinite one sends everything at once, ``max_concurrency`` in flight."""
    rate = row.get("request_rate")
    cap = whole(row, "max_concurrency")
    if rate in (None, "inf"):
        return MeasuredClosedLoad(concurrency=cap or sent, requests=sent) if cap or sent else None
    requests_per_s = number(row, "request_rate")
    if not requests_per_s:
        raise ReadingError("/payload/request_rate", "must be above zero")
    burstiness = number(row, "burstiness")
    arrivals = "poisson" if burstiness in (None, 1.0) else "other"
    return MeasuredOpenLoad(
        requests_per_s=requests_per_s,
        requests=sent,
        arrivals=arrivals,
        max_concurrency=cap,
    )


def _traffic(row: JsonObject, completed: int | None) -> MeasuredTraffic:
    """Detailed files list every length, others only totals."""
    means = mean_traffic(
        ratio(number(row, "total_input_tokens"), completed), ratio(number(row, "total_output_tokens"), completed)
    )
    return MeasuredTraffic(
        prompt_tokens=measured_lengths(row.get("input_lens")) or means.prompt_tokens,
        output_tokens=measured_lengths(row.get("output_lens")) or means.output_tokens,
    )
