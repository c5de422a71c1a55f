"""InferenceX (formerly InferenceMAX) aggregate rows: one object or a list (``agg_bmk.json``).

Latencies in seconds, throughput per GPU. The load is a closed loop of ``conc`` clients with ``isl``/``osl`` as upper
ends of the lengths drawn. Rows carry no counts and no duration.
"""

from service.benchmarks.document import Document, JsonObject, ReadingError, number, text, whole
from service.benchmarks.reading import MS_PER_S, FileFacts, Reading, engine_of, instant, mean_traffic, statistics
from service.wire.benchmarks import BenchmarkResults, MeasuredClosedLoad, Statistics

TOOL = "inferencex"
_OWN_KEYS = {"conc", "isl", "osl", "tput_per_gpu", "mean_ttft", "mean_tpot"}


def recognises(document: Document) -> bool:
    return bool(document.objects) and all(row.keys() >= _OWN_KEYS for row in document.objects)


def read(document: Document) -> list[Reading]:
    return [_run(row) for row in document.objects]


def _run(row: JsonObject) -> Reading:
    gpus = _gpus(row)
    concurrency = whole(row, "conc")
    results = BenchmarkResults(
        output_tokens_per_s=_deployment(row, "output_tput_per_gpu", gpus),
        input_tokens_per_s=_deployment(row, "input_tput_per_gpu", gpus),
        ttft_ms=_latency(row, "ttft"),
        tpot_ms=_latency(row, "tpot"),
        itl_ms=_latency(row, "itl"),
        e2e_ms=_latency(row, "e2el"),
    )
    facts = FileFacts(
        device_name=text(row, "device") or text(row, "hw"),
        devices=gpus,
        llm_name=text(row, "model"),
        engine_name=engine_of(text(row, "framework")),
        engine_version=text(row, "image"),
        tensor_parallel=whole(row, "tp"),
        pipeline_parallel=whole(row, "pp") or 1,
        data_parallel=1 if not _true(row, "dp_attention") else None,
        expert_parallel=whole(row, "ep"),
        weights=text(row, "precision"),
        measured_at=instant(text(row, "date")),
    )
    load = MeasuredClosedLoad(concurrency=concurrency) if concurrency else None
    note = f"throughput per GPU times {gpus} GPUs"
    return Reading(TOOL, results, load, mean_traffic(number(row, "isl"), number(row, "osl")), facts, (note,))


def _true(row: JsonObject, key: str) -> bool:
    """A flag, which older rows write as text."""
    return str(row.get(key, "false")).lower() == "true"


def _gpus(row: JsonObject) -> int:
    """GPUs the per-GPU figures were divided by: tp × pp, or both pools of a disaggregated run."""
    if _true(row, "disagg"):
        pools = [whole(row, "num_prefill_gpu"), whole(row, "num_decode_gpu")]
        if None in pools:
            raise ReadingError("/payload/disagg", "is a disaggregated run without its numbers of GPUs")
        return sum(count for count in pools if count is not None)
    tensor_parallel = whole(row, "tp")
    if not tensor_parallel:
        raise ReadingError("/payload/tp", "is missing: throughput per GPU cannot be scaled up")
    return tensor_parallel * (whole(row, "pp") or 1)


def _deployment(row: JsonObject, key: str, gpus: int) -> float | None:
    return number(row, key, scale=gpus)


def _latency(row: JsonObject, name: str) -> Statistics:
    keys = {"mean": "mean", "p50": "median", "p90": "p90", "p95": "p95", "p99": "p99"}
    return statistics(row, MS_PER_S, **{ours: f"{theirs}_{name}" for ours, theirs in keys.items()})
