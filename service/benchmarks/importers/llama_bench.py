"""llama.cpp ``llama-bench``: JSON, JSON lines, CSV and markdown.

It runs one sequence without a server: ``pp`` rows time the prompt alone (read as TTFT, without the first token's
sampling), ``tg`` rows time generation alone (read as TPOT), ``pp+tg`` rows time both (read as E2E). Each row is a run
of its own. Times are in nanoseconds, ``t/s`` in tokens per second.
"""

import re
from collections.abc import Mapping
from typing import Any

from service.benchmarks.document import Document, ReadingError, number_in_text
from service.benchmarks.reading import MS_PER_NS, MS_PER_S, FileFacts, Reading, instant
from service.wire.benchmarks import BenchmarkResults, MeasuredClosedLoad, MeasuredFixed, MeasuredTraffic, Statistics

TOOL = "llama-bench"
_OWN_KEYS = {"n_prompt", "n_gen", "avg_ts", "model_type"}
_TEST = re.compile(r"^(?:pp\s*(?P<pp>\d+))?\+?(?:tg\s*(?P<tg>\d+))?(?:\s*@\s*d\s*(?P<depth>\d+))?$")
_HEADER = re.compile(r"^\|.*\|\s*test\s*\|\s*t/s\s*\|", re.MULTILINE)
_DEVICE_LINE = re.compile(r"^\s*Device \d+: (?P<name>[^,\n]+)", re.MULTILINE)
_BUILD_LINE = re.compile(r"^build: (?P<commit>\w+) \((?P<number>\d+)\)", re.MULTILINE)
_WEIGHTS = {"Q4_K - Medium": "q4_k_m", "Q8_0": "q8_0", "BF16": "bf16", "F16": "fp16", "F32": "fp32"}
_CACHE = {"f16": "fp16", "bf16": "bf16", "f32": "fp32"}


def recognises(document: Document) -> bool:
    rows = _rows(document)
    return bool(rows) and all(row.keys() >= _OWN_KEYS for row in rows)


def read(document: Document) -> list[Reading]:
    return [_run(row) for row in _rows(document)]


def _rows(document: Document) -> list[Mapping[str, Any]]:
    if document.value is not None or (document.text or "").lstrip().startswith("{"):
        return list(document.objects)
    if _HEADER.search(document.text or ""):
        return _markdown_rows(document.text or "")
    return [row for block in document.csv_blocks for row in block]


def _markdown_rows(markdown: str) -> list[Mapping[str, Any]]:
    """Rows of the table, with the same keys as the other formats; the device stands in the log lines above it."""
    cells = [[c.strip() for c in line.strip().strip("|").split("|")] for line in markdown.splitlines() if "|" in line]
    header = next((row for row in cells if "test" in row and "t/s" in row), None)
    if header is None:
        return []
    device, build = _DEVICE_LINE.search(markdown), _BUILD_LINE.search(markdown)
    rows: list[Mapping[str, Any]] = []
    for values in cells[cells.index(header) + 1 :]:
        row = dict(zip(header, values, strict=False))
        test = _TEST.match(row.get("test", ""))
        if test is None or not (test["pp"] or test["tg"]):
            continue
        rows.append(
            {
                "model_type": row.get("model", ""),
                "n_prompt": int(test["pp"] or 0),
                "n_gen": int(test["tg"] or 0),
                "n_depth": int(test["depth"] or 0),
                "avg_ts": row.get("t/s", "").split("±")[0].strip(),
                "n_gpu_layers": row.get("ngl"),
                "type_k": row.get("type_k"),
                "gpu_info": device["name"] if device else "",
                "build_commit": build["commit"] if build else None,
                "build_number": build["number"] if build else None,
            }
        )
    return rows


def _run(row: Mapping[str, Any]) -> Reading:
    prompt, generated = _count(row, "n_prompt"), _count(row, "n_gen")
    depth = _count(row, "n_depth")
    rate = number_in_text(row, "avg_ts")
    if not rate or not (prompt or generated):
        raise ReadingError("/payload/avg_ts", "is missing or zero, or the row times no tokens")
    elapsed_ms = number_in_text(row, "avg_ns", scale=MS_PER_NS) or (prompt + generated) / rate * MS_PER_S
    elapsed = Statistics(mean=elapsed_ms)
    if not generated:
        results = BenchmarkResults(completed=_samples(row), input_tokens_per_s=rate, ttft_ms=elapsed)
    elif not prompt:
        tpot = Statistics(mean=elapsed_ms / generated)
        results = BenchmarkResults(completed=_samples(row), output_tokens_per_s=rate, tpot_ms=tpot)
    else:
        generated_per_s = generated / elapsed_ms * MS_PER_S
        results = BenchmarkResults(completed=_samples(row), output_tokens_per_s=generated_per_s, e2e_ms=elapsed)
    traffic = MeasuredTraffic(
        prompt_tokens=MeasuredFixed(tokens=prompt + depth), output_tokens=MeasuredFixed(tokens=generated)
    )
    kind = f"pp{prompt}" * bool(prompt) + "+" * bool(prompt and generated) + f"tg{generated}" * bool(generated)
    load = MeasuredClosedLoad(concurrency=1, requests=_samples(row) or None)
    return Reading(TOOL, results, load, traffic, _facts(row), (f"llama-bench test {kind}, depth {depth}",))


def _count(row: Mapping[str, Any], key: str) -> int:
    value = number_in_text(row, key) or 0.0
    if value != int(value):
        raise ReadingError(f"/payload/{key}", f"is {value:g}, not a whole number")
    return int(value)


def _samples(row: Mapping[str, Any]) -> int | None:
    samples = row.get("samples_ns")
    return len(samples) if isinstance(samples, list) else None


def _facts(row: Mapping[str, Any]) -> FileFacts:
    """On the GPU when layers were put there, else on the CPU."""
    on_gpu = (number_in_text(row, "n_gpu_layers") or 0) > 0
    names = [name.strip() for name in str(row.get("gpu_info" if on_gpu else "cpu_info") or "").split(",")]
    commit, build = row.get("build_commit"), row.get("build_number")
    model = str(row.get("model_type") or "")
    return FileFacts(
        device_name=names[0] or None,
        devices=len(names) if names[0] else None,
        llm_name=str(row["model_filename"]) if row.get("model_filename") else None,
        engine_name="llama.cpp",
        engine_version=f"b{build} ({commit})" if build and commit else None,
        weights=next((ours for theirs, ours in _WEIGHTS.items() if model.endswith(theirs)), None),
        kv_cache=_CACHE.get(str(row.get("type_k") or "")),
        measured_at=instant(str(row.get("test_time") or "")),
    )
