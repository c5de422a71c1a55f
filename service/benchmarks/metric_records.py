"""Reports made of metric records, each with its own unit: what AIPerf and GenAI-Perf write, as JSON and as CSV.

JSON: ``{"request_latency": {"unit": "ms", "avg": …, "p50": …}}``. CSV: a block of statistics over requests and a
block of single values, the unit in brackets after the name ("Request Latency (ms)") or in a column of its own.
Both forms become the same mapping, from which one reading is made.
"""

import re
from collections.abc import Mapping
from typing import Any

from service.benchmarks.document import Document, JsonObject, ReadingError, number, number_in_text, section, text
from service.benchmarks.reading import MS_PER_S, FileFacts, Reading, mean_traffic, milliseconds_per
from service.wire.benchmarks import BenchmarkResults, MeasuredLoad, Statistics

Metrics = Mapping[str, JsonObject]
_NAME_AND_UNIT = re.compile(r"^(?P<name>.+?)\s*(?:\((?P<unit>[^()]*)\))?$")
_NOTE = "inter-token latency is (request latency − TTFT) / (output tokens − 1): read as TPOT"


def is_report(report: JsonObject) -> bool:
    """Whether a JSON object has the records both tools always write."""
    names = ("request_latency", "request_throughput")
    return all(isinstance(report.get(name), dict) and "unit" in report[name] for name in names)


def metrics_of_csv(document: Document) -> Metrics:
    """Every row of every block by its snake-case name; empty when the text is not such a CSV."""
    found: dict[str, JsonObject] = {}
    for block in document.csv_blocks:
        for row in block:
            label = row.get("Metric")
            match = _NAME_AND_UNIT.match(label.strip()) if isinstance(label, str) else None
            if match is None or "GPU_Index" in row:
                continue
            name = re.sub(r"\W+", "_", match["name"].strip().lower()).strip("_")
            values: dict[str, Any] = {
                key: number_in_text(row, key) for key in row if key not in ("Metric", "Unit", "_rest")
            }
            if "Value" in values:
                values["avg"] = values.pop("Value")
            found[name] = values | {"unit": row.get("Unit") or match["unit"]}
    return found


def reading(
    tool: str, metrics: Metrics, load: MeasuredLoad | None, facts: FileFacts | None = None, notes: tuple[str, ...] = ()
) -> Reading:
    """One run from its metric records. Raises ReadingError for a unit that does not fit its quantity."""
    errors = _value(metrics, "error_request_count")
    completed = _value(metrics, "request_count")
    results = BenchmarkResults(
        completed=None if completed is None else int(completed),
        failed=_failed(metrics, errors, completed),
        duration_s=_duration_s(metrics),
        requests_per_s=_per_second(metrics, "request_throughput"),
        output_tokens_per_s=_per_second(metrics, "output_token_throughput"),
        input_tokens_per_s=_per_second(metrics, "input_token_throughput"),
        ttft_ms=_latency(metrics, "time_to_first_token"),
        tpot_ms=_latency(metrics, "inter_token_latency"),
        itl_ms=_latency(metrics, "inter_chunk_latency"),
        e2e_ms=_latency(metrics, "request_latency"),
    )
    traffic = mean_traffic(_value(metrics, "input_sequence_length"), _value(metrics, "output_sequence_length"))
    return Reading(tool, results, load, traffic, facts or FileFacts(), (_NOTE, *notes))


def model_name(report: JsonObject) -> str | None:
    """The model's name, which has lived in several places of ``input_config``."""
    settings = section(report, "input_config")
    candidates: list[Any] = [
        *_listed(settings.get("model_names")),
        *_listed(section(settings, "endpoint").get("model_names")),
        *(item.get("name") for item in _listed(section(settings, "models").get("items")) if isinstance(item, dict)),
    ]
    return next((name for name in candidates if isinstance(name, str) and name), None)


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _value(metrics: Metrics, name: str) -> float | None:
    return number(metrics.get(name, {}), "avg")


def _failed(metrics: Metrics, errors: float | None, completed: float | None) -> int | None:
    """AIPerf counts errors; its CSV gives them as a share of all answers."""
    if errors is not None:
        return int(errors)
    percent = _value(metrics, "request_error_rate")
    if percent is None or completed is None or percent >= 100:
        return None
    return round(completed * percent / (100 - percent))


def _duration_s(metrics: Metrics) -> float | None:
    record = metrics.get("benchmark_duration", {})
    value = number(record, "avg")
    return None if value is None else value * milliseconds_per(text(record, "unit"), "benchmark_duration") / MS_PER_S


def _per_second(metrics: Metrics, name: str) -> float | None:
    record = metrics.get(name, {})
    value = number(record, "avg")
    if value is None:
        return None
    unit = (text(record, "unit") or "").lower()
    if not re.search(r"(/|per )s(ec)?(ond)?$", unit):
        raise ReadingError(f"/payload/{name}", f"has unit {unit!r}, which is not a rate per second")
    return value


def _latency(metrics: Metrics, name: str) -> Statistics:
    record = metrics.get(name)
    if record is None:
        return Statistics()
    scale = milliseconds_per(text(record, "unit"), name)
    return Statistics(
        mean=number(record, "avg", scale=scale),
        p50=number(record, "p50", scale=scale),
        p90=number(record, "p90", scale=scale),
        p95=number(record, "p95", scale=scale),
        p99=number(record, "p99", scale=scale),
    )
