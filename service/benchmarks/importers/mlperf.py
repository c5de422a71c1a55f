"""MLPerf Inference ``mlperf_log_summary.txt``, alone or with the submission's system description.

Payload: the summary's text, or an object holding both files: ``{"summary": "…text…", "system": {…}}`` (any keys).
Latencies in nanoseconds. Server arrivals are Poisson; Offline sends every sample at time zero, so its sample latency
is an E2E that starts with the burst, and its run lasts as long as its slowest sample.
"""

import re
from collections.abc import Mapping

from service.benchmarks.document import Document, JsonObject, ReadingError, number_in_text, text, whole
from service.benchmarks.reading import MS_PER_NS, MS_PER_S, FileFacts, Reading, engine_of, mean_traffic, ratio
from service.wire.benchmarks import BenchmarkResults, MeasuredClosedLoad, MeasuredLoad, MeasuredOpenLoad, Statistics

TOOL = "mlperf"
_TITLE = "MLPerf Results Summary"
_LINE = re.compile(r"^\s*(?P<key>[^:\n]+?)\s*:\s*(?P<value>\S.*?)\s*$")


def recognises(document: Document) -> bool:
    return _TITLE in _summary(document)


def read(document: Document) -> list[Reading]:
    lines = _lines(_summary(document))
    if "scenario" not in lines:
        raise ReadingError("/payload", "is an MLPerf summary without a scenario")
    scenario = lines["scenario"]
    rate = _first(lines, "samples per second", "completed samples per second")
    e2e = _latency(lines, "", "latency")
    longest_s = _first(lines, "max latency (ns)", scale=MS_PER_NS / MS_PER_S)
    burst = round(rate * longest_s) if scenario == "Offline" and rate and longest_s else None
    tokens = _first(lines, "tokens per second", "completed tokens per second")
    results = BenchmarkResults(
        completed=burst,
        duration_s=longest_s if burst else None,
        requests_per_s=rate,
        output_tokens_per_s=tokens,
        ttft_ms=_latency(lines, "first token ", "first token latency"),
        tpot_ms=_tpot(lines),
        e2e_ms=e2e,
    )
    verdict = lines.get("result is", "VALID")
    objections = () if verdict == "VALID" else (f"MLPerf calls the result {verdict}",)
    facts = _facts(document)
    return [
        Reading(TOOL, results, _load(scenario, lines, burst), mean_traffic(None, ratio(tokens, rate)), facts,
                ("mean output length is tokens per second over samples per second",), objections)
    ]  # fmt: skip


def _summary(document: Document) -> str:
    if document.object is not None:
        texts = [value for value in document.object.values() if isinstance(value, str)]
        return next((value for value in texts if _TITLE in value), "")
    return document.text or ""


def _lines(summary: str) -> Mapping[str, str]:
    """ "key : value" lines, keys in lower case; the first of a repeated key wins."""
    found: dict[str, str] = {}
    for line in summary.splitlines():
        if match := _LINE.match(line):
            found.setdefault(match["key"].lower(), match["value"])
    return found


def _first(lines: Mapping[str, str], *keys: str, scale: float = 1.0) -> float | None:
    return next((value for key in keys if (value := number_in_text(lines, key, scale=scale)) is not None), None)


def _latency(lines: Mapping[str, str], mean: str, percentile: str) -> Statistics:
    """Statistics whose lines read "Mean First Token latency (ns)" and "50.00 percentile first token latency (ns)"."""
    return Statistics(
        mean=_first(lines, f"mean {mean}latency (ns)", scale=MS_PER_NS),
        p50=_first(lines, f"50.00 percentile {percentile} (ns)", scale=MS_PER_NS),
        p90=_first(lines, f"90.00 percentile {percentile} (ns)", scale=MS_PER_NS),
        p95=_first(lines, f"95.00 percentile {percentile} (ns)", scale=MS_PER_NS),
        p99=_first(lines, f"99.00 percentile {percentile} (ns)", scale=MS_PER_NS),
    )


def _tpot(lines: Mapping[str, str]) -> Statistics:
    spread = _latency(lines, "", "time to output token")
    return spread.model_copy(update={"mean": _first(lines, "mean time to output token (ns)", scale=MS_PER_NS)})


def _load(scenario: str, lines: Mapping[str, str], burst: int | None) -> MeasuredLoad | None:
    if scenario == "Offline":
        return MeasuredClosedLoad(concurrency=burst, requests=burst) if burst else None
    if scenario == "SingleStream":
        return MeasuredClosedLoad(concurrency=1)
    offered = _first(lines, "scheduled samples per second", "target_qps")
    return MeasuredOpenLoad(requests_per_s=offered) if scenario == "Server" and offered else None


def _facts(document: Document) -> FileFacts:
    """What the system description says, when it came along."""
    systems = [v for v in (document.object or {}).values() if isinstance(v, dict) and "accelerator_model_name" in v]
    if not systems:
        return FileFacts()
    system: JsonObject = systems[0]
    nodes, per_node = whole(system, "number_of_nodes"), whole(system, "accelerators_per_node")
    framework = text(system, "framework") or ""
    version = re.match(r"\S+\s+([\w.+\-]+)", framework)
    return FileFacts(
        device_name=text(system, "accelerator_model_name"),
        devices=nodes * per_node if nodes and per_node else None,
        engine_name=engine_of(framework.split(" ")[0]),
        engine_version=version[1] if version else None,
    )
