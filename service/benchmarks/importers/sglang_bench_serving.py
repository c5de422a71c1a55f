"""``python -m sglang.bench_serving --output-file``: JSON lines, one object a run.

Scalars in milliseconds, ``{mean,median,p90,p99}_{ttft,tpot,itl,e2e_latency}_ms``. ``concurrency`` is the mean number
of requests in flight that was reached; ``max_concurrency`` is the cap that was asked for.
"""

from service.benchmarks.document import Document, JsonObject, number, text, whole
from service.benchmarks.reading import FileFacts, Reading, engine_of, mean_traffic, measured_lengths, ratio
from service.wire.benchmarks import (
    BenchmarkResults,
    MeasuredClosedLoad,
    MeasuredLoad,
    MeasuredOpenLoad,
    MeasuredTraffic,
    Statistics,
)

TOOL = "sglang-bench-serving"
_OWN_KEYS = {"mean_e2e_latency_ms", "total_output_tokens_retokenized", "request_throughput"}


def recognises(document: Document) -> bool:
    return bool(document.objects) and all(row.keys() >= _OWN_KEYS for row in document.objects)


def read(document: Document) -> list[Reading]:
    return [_run(row) for row in document.objects]


def _run(row: JsonObject) -> Reading:
    completed = whole(row, "completed")
    means = mean_traffic(
        ratio(number(row, "total_input_tokens"), completed), ratio(number(row, "total_output_tokens"), completed)
    )
    results = BenchmarkResults(
        completed=completed,
        duration_s=number(row, "duration"),
        requests_per_s=number(row, "request_throughput"),
        output_tokens_per_s=number(row, "output_throughput"),
        input_tokens_per_s=number(row, "input_throughput"),
        ttft_ms=_latency(row, "ttft"),
        tpot_ms=_latency(row, "tpot"),
        itl_ms=_latency(row, "itl"),
        e2e_ms=_latency(row, "e2e_latency"),
    )
    traffic = MeasuredTraffic(
        prompt_tokens=measured_lengths(row.get("input_lens")) or means.prompt_tokens,
        output_tokens=measured_lengths(row.get("output_lens")) or means.output_tokens,
    )
    facts = FileFacts(llm_name=text(row, "model_id"), engine_name=engine_of(text(row, "backend")))
    return Reading(TOOL, results, _load(row), traffic, facts, ("the file does not count failed requests",))


def _latency(row: JsonObject, name: str) -> Statistics:
    return Statistics(
        mean=number(row, f"mean_{name}_ms"),
        p50=number(row, f"median_{name}_ms"),
        p90=number(row, f"p90_{name}_ms"),
        p95=number(row, f"p95_{name}_ms"),
        p99=number(row, f"p99_{name}_ms"),
    )


def _load(row: JsonObject) -> MeasuredLoad | None:
    """A finite rate is Poisson arrivals; "inf" (or JSON's missing infinity) keeps ``max_concurrency`` in flight."""
    cap = whole(row, "max_concurrency")
    rate = row.get("request_rate")
    if isinstance(rate, (int, float)) and not isinstance(rate, bool) and 0 < rate < float("inf"):
        return MeasuredOpenLoad(requests_per_s=float(rate), max_concurrency=cap)
    return MeasuredClosedLoad(concurrency=cap) if cap else None
