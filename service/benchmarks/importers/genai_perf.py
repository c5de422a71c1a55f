"""GenAI-Perf ``profile_export_genai_perf.json`` and ``.csv``."""

from service.benchmarks.document import Document, JsonObject, number, section, text, whole
from service.benchmarks.metric_records import is_report, metrics_of_csv, model_name, reading
from service.benchmarks.reading import FileFacts, Reading, engine_of
from service.wire.benchmarks import MeasuredClosedLoad, MeasuredLoad, MeasuredOpenLoad

TOOL = "genai-perf"


def recognises(document: Document) -> bool:
    """Its JSON keeps the load generator's settings under ``perf_analyzer``; its CSV counts requests "per sec"."""
    report = document.object
    if report is not None:
        settings = section(report, "input_config")
        return is_report(report) and bool({"perf_analyzer", "subcommand", "stimulus"} & settings.keys())
    return metrics_of_csv(document).get("request_throughput", {}).get("unit") == "per sec"


def read(document: Document) -> list[Reading]:
    report = document.object
    if report is None:
        return [reading(TOOL, metrics_of_csv(document), load=None)]
    metrics = {name: record for name, record in report.items() if isinstance(record, dict) and "unit" in record}
    backend = text(section(report, "input_config", "endpoint"), "backend")
    facts = FileFacts(llm_name=model_name(report), engine_name=engine_of(backend))
    return [reading(TOOL, metrics, _load(report), facts)]


def _load(report: JsonObject) -> MeasuredLoad | None:
    """The stimulus: a number of clients, or a rate."""
    settings = section(report, "input_config")
    stimulus = section(settings, "perf_analyzer", "stimulus") or section(settings, "stimulus") or settings
    if concurrency := whole(stimulus, "concurrency"):
        return MeasuredClosedLoad(concurrency=concurrency)
    rate = number(stimulus, "request_rate")
    return MeasuredOpenLoad(requests_per_s=rate, arrivals="other") if rate else None
