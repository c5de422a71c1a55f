"""AIPerf ``profile_export_aiperf.json`` and ``.csv``.

GPU telemetry, where it was collected, gives the device's name and the power of each GPU it watched.
"""

from service.benchmarks.document import Document, JsonObject, number, section, text, whole
from service.benchmarks.metric_records import is_report, metrics_of_csv, model_name, reading
from service.benchmarks.reading import FileFacts, Reading, instant
from service.wire.benchmarks import MeasuredClosedLoad, MeasuredLoad, MeasuredOpenLoad

TOOL = "aiperf"


def recognises(document: Document) -> bool:
    """Its JSON names its version or has its own sections; its CSV counts "requests/sec"."""
    report = document.object
    if report is not None:
        settings = section(report, "input_config")
        own = "aiperf_version" in report or "telemetry_data" in report or bool({"loadgen", "phases"} & settings.keys())
        return is_report(report) and own
    return metrics_of_csv(document).get("request_throughput", {}).get("unit") == "requests/sec"


def read(document: Document) -> list[Reading]:
    report = document.object
    if report is None:
        return [reading(TOOL, metrics_of_csv(document), load=None)]
    metrics = {name: record for name, record in report.items() if isinstance(record, dict) and "unit" in record}
    gpus = _gpus(report)
    watts = [number(section(gpu, "metrics", "gpu_power_usage"), "avg") for gpu in gpus]
    known = [value for value in watts if value is not None]
    facts = FileFacts(
        device_name=next((name for gpu in gpus if (name := text(gpu, "gpu_name"))), None),
        llm_name=model_name(report),
        power_w_mean=sum(known) if known and len(known) == len(gpus) else None,
        power_devices=len(gpus) or None,
        measured_at=instant(
            text(report, "start_time") or text(section(report, "telemetry_data", "summary"), "start_time")
        ),
    )
    return [reading(TOOL, metrics, _load(report), facts)]


def _gpus(report: JsonObject) -> list[JsonObject]:
    """Every GPU watched, over all telemetry endpoints."""
    endpoints = section(report, "telemetry_data", "endpoints")
    return [
        gpu
        for name in endpoints
        for gpu in section(endpoints, name, "gpus").values()
        if isinstance(gpu, dict)
    ]  # fmt: skip


def _load(report: JsonObject) -> MeasuredLoad | None:
    """Newer reports list phases, older ones have ``loadgen``; a rate beside a concurrency means a capped open load."""
    settings = section(report, "input_config")
    listed = settings.get("phases")
    phases = [p for p in listed if isinstance(p, dict)] if isinstance(listed, list) else []
    phase = next((p for p in phases if p.get("kind") == "profiling"), None) or section(settings, "loadgen")
    requests = whole(phase, "requests") or whole(phase, "request_count")
    concurrency = whole(phase, "concurrency")
    rate = number(phase, "rate") or number(phase, "request_rate")
    if rate:
        kind = text(phase, "type") or text(phase, "arrival_pattern") or ""
        arrivals = "poisson" if "poisson" in kind else "constant" if "constant" in kind else "other"
        return MeasuredOpenLoad(requests_per_s=rate, requests=requests, arrivals=arrivals, max_concurrency=concurrency)
    return MeasuredClosedLoad(concurrency=concurrency, requests=requests) if concurrency else None
