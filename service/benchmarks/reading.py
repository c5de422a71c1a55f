"""What one run in a tool's file says, in our definitions and units, before its context is added."""

import datetime as dt
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from service.benchmarks.document import JsonObject, ReadingError, number
from service.wire.benchmarks import (
    BenchmarkResults,
    MeasuredBin,
    MeasuredFixed,
    MeasuredHistogram,
    MeasuredLengths,
    MeasuredLoad,
    MeasuredMean,
    MeasuredTraffic,
    Statistics,
)

MS_PER_S = 1e3
MS_PER_NS = 1e-6
MS_PER_US = 1e-3

MILLISECONDS_BY_UNIT: Mapping[str, float] = {
    "s": MS_PER_S, "sec": MS_PER_S, "seconds": MS_PER_S, "s/token": MS_PER_S,
    "ms": 1.0, "milliseconds": 1.0, "ms/token": 1.0,
    "us": MS_PER_US, "µs": MS_PER_US,
    "ns": MS_PER_NS,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What the file says about the deployment, in its own names; they are resolved against the catalog later."""

    device_name: str | None = None
    devices: int | None = None
    llm_name: str | None = None
    engine_name: str | None = None
    engine_version: str | None = None
    engine_arguments: tuple[str, ...] = ()
    tensor_parallel: int | None = None
    pipeline_parallel: int | None = None
    data_parallel: int | None = None
    expert_parallel: int | None = None
    weights: str | None = None
    kv_cache: str | None = None
    power_w_mean: float | None = None
    power_devices: int | None = None
    """How many devices the power was summed over."""
    measured_at: dt.datetime | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """One run. ``notes`` say what was derived or left out; ``objections`` are the tool's own doubts about it."""

    tool: str
    results: BenchmarkResults
    load: MeasuredLoad | None = None
    traffic: MeasuredTraffic = field(default_factory=MeasuredTraffic)
    facts: FileFacts = field(default_factory=FileFacts)
    notes: tuple[str, ...] = ()
    objections: tuple[str, ...] = ()


def milliseconds_per(unit: str | None, where: str) -> float:
    """Factor from a stated unit of time to milliseconds. Raises ReadingError for a unit that is not one of time."""
    factor = MILLISECONDS_BY_UNIT.get((unit or "").strip().lower())
    if factor is None:
        raise ReadingError(f"/payload/{where}", f"has unit {unit!r}, which is not a known unit of time")
    return factor


def statistics(row: JsonObject, scale: float = 1.0, **keys: str) -> Statistics:
    """The statistics named by ``keys`` (mean="avg", p50="median", …) of ``row``, times ``scale``."""
    return Statistics(**{name: number(row, key, scale=scale) for name, key in keys.items()})


def mean_traffic(prompt_tokens: float | None, output_tokens: float | None) -> MeasuredTraffic:
    """Traffic of which only mean lengths are known."""
    return MeasuredTraffic(
        prompt_tokens=None if prompt_tokens is None else MeasuredMean(mean=prompt_tokens),
        output_tokens=None if output_tokens is None else MeasuredMean(mean=output_tokens),
    )


def measured_lengths(values: object) -> MeasuredLengths | None:
    """Per-request token counts as a distribution; None when ``values`` is not a list of whole numbers.

    >>> measured_lengths([128, 128])
    MeasuredFixed(distribution='fixed', tokens=128)
    """
    if not isinstance(values, list) or not values or not all(type(v) is int and v >= 0 for v in values):
        return None
    counts = Counter(values)
    if len(counts) == 1:
        return MeasuredFixed(tokens=values[0])
    bins = [MeasuredBin(tokens=tokens, share=counts[tokens] / len(values)) for tokens in sorted(counts)]
    return MeasuredHistogram(histogram=bins)


def ratio(numerator: float | None, denominator: float | None) -> float | None:
    """
    >>> ratio(299700, 300)
    999.0
    >>> ratio(1.0, 0) is None
    True
    """
    if numerator is None or not denominator:
        return None
    return numerator / denominator


def instant(text: str | None, *formats: str) -> dt.datetime | None:
    """A time stamp in ISO 8601 or one of ``formats``; without a zone it is read as UTC. None when unreadable."""
    if not text:
        return None
    parsed: dt.datetime | None = None
    try:
        parsed = dt.datetime.fromisoformat(text)
    except ValueError:
        for candidate in formats:
            try:
                parsed = dt.datetime.strptime(text, candidate)
                break
            except ValueError:
                continue
    if parsed is None:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=dt.UTC)


def instant_of_epoch(seconds: float | None) -> dt.datetime | None:
    """A Unix time as a time stamp; None when it is absent or out of range."""
    if seconds is None:
        return None
    try:
        return dt.datetime.fromtimestamp(seconds, tz=dt.UTC)
    except (OverflowError, OSError, ValueError):
        return None


def engine_of(name: str | None) -> str | None:
    """The engine a tool's backend name stands for, where the name is an engine's.

    Client protocols (openai, openai-chat, kserve) say nothing about the server behind them.

    >>> engine_of("vllm-gaudi"), engine_of("tensorrtllm"), engine_of("openai-chat")
    ('vllm', 'tensorrt-llm', None)
    """
    words = re.sub(r"[^a-z0-9]+", "", (name or "").lower())
    for start, engine in (
        ("vllm", "vllm"), ("sglang", "sglang"), ("tensorrtllm", "tensorrt-llm"), ("trtllm", "tensorrt-llm"),
        ("trt", "tensorrt-llm"), ("tgi", "tgi"), ("llamacpp", "llama.cpp"), ("lmdeploy", "lmdeploy"),
    ):  # fmt: skip
        if words.startswith(start):
            return engine
    return None
