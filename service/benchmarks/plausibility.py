"""Checks of a measured result against arithmetic and physics.

Each check is a pure function of the uploaded run (and, where it needs them, of limits looked up elsewhere) and
answers with a verdict and the figures it compared: ``pass``; ``flag``, odd but usable; ``fail``, which quarantines
the result; ``skipped`` when a figure it needs is missing. The tolerances are the margins within which careful
measurements differ from an identity: rounding, ramp-up and drain, means of products against products of means.
"""

import datetime as dt
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from service.wire.benchmarks import (
    BenchmarkResults,
    BenchmarkUpload,
    MeasuredClosedLoad,
    MeasuredLengths,
    MeasuredOpenLoad,
    PlausibilityCheck,
    Statistics,
    Verdict,
)

IDENTITY_TOLERANCE = 0.10
"""TTFT + TPOT · (n − 1) against E2E: tools' own results stay within 2 %, short runs (three requests) within 8 %."""
RATE_TOLERANCE = 0.05
"""Throughput against rate × length, and rate against count / duration."""
OCCUPANCY_TOLERANCE = 0.10
"""Share of its declared concurrency that a closed loop may leave idle, beyond the drain at its end."""
CONCURRENCY_TOLERANCE = 0.05
MOST_FAILED_FRACTION = 0.05
FEWEST_REQUESTS = 3
"""Below this a mean says nothing about spread."""
POWER_TOLERANCE = 0.05
"""Boards overshoot their limit for moments and meters differ; a mean does not exceed it by more."""
ROOFLINE_TOLERANCE = 0.02
CLOCK_TOLERANCE = dt.timedelta(minutes=5)
UNIT_SLIP = 1_000.0
"""Seconds for milliseconds or the reverse: the factor by which a slip shows."""
MOST_TOKENS_PER_S_PER_STREAM = 20_000.0
"""Six times the fastest published decoding of one stream (wafer-scale, about 3,000/s): beyond, a unit slipped."""

PERCENTILES = ("p50", "p90", "p95", "p99")
TAIL_FRACTION = {"p50": 0.5, "p90": 0.1, "p95": 0.05, "p99": 0.01}


@dataclass(frozen=True, slots=True)
class PhysicalLimits:
    """What no measurement of this deployment can beat, where it is known.

    tpot_ms, output_tokens_per_s: the roofline of the model on these devices. power_limit_w: of one device.
    """

    tpot_ms: float | None = None
    output_tokens_per_s: float | None = None
    power_limit_w: float | None = None


def check_all(upload: BenchmarkUpload, limits: PhysicalLimits, received_at: dt.datetime) -> list[PlausibilityCheck]:
    """Every check of ``upload``, in a fixed order."""
    checks = [check(upload) for check in CHECKS]
    checks.append(faster_than_roofline(upload, limits))
    checks.append(power_within_limit(upload, limits))
    checks.append(clock(upload, received_at))
    return checks


def mean_tokens(lengths: MeasuredLengths | None) -> float | None:
    """Mean of a length distribution, None when it is unknown."""
    if lengths is None:
        return None
    match lengths.distribution:
        case "fixed":
            return float(lengths.tokens)
        case "uniform":
            return (lengths.low + lengths.high) / 2
        case "histogram":
            return sum(b.tokens * b.share for b in lengths.histogram)
        case _:
            return lengths.mean


def mean_output_tokens(upload: BenchmarkUpload) -> float | None:
    """Mean output tokens of a request: as measured (tokens/s over requests/s), else as the traffic states."""
    results = upload.results
    if results.output_tokens_per_s and results.requests_per_s:
        return results.output_tokens_per_s / results.requests_per_s
    return mean_tokens(upload.traffic.output_tokens)


def requests_per_s(upload: BenchmarkUpload) -> float | None:
    """Completed requests per second: as stated, else count / duration, else tokens/s over tokens."""
    results = upload.results
    if results.requests_per_s is not None:
        return results.requests_per_s
    if results.completed is not None and results.duration_s:
        return results.completed / results.duration_s
    tokens = mean_tokens(upload.traffic.output_tokens)
    if results.output_tokens_per_s is not None and tokens:
        return results.output_tokens_per_s / tokens
    return None


def end_to_end_ms(upload: BenchmarkUpload) -> float | None:
    """Mean E2E: as stated, else TTFT + TPOT · (n − 1)."""
    if upload.results.e2e_ms.mean is not None:
        return upload.results.e2e_ms.mean
    return derived_end_to_end_ms(upload)


def derived_end_to_end_ms(upload: BenchmarkUpload) -> float | None:
    """TTFT + TPOT · (n − 1), of means.

    The law holds for every request; for means it holds up to the correlation of TPOT with length.
    """
    ttft, tpot = upload.results.ttft_ms.mean, upload.results.tpot_ms.mean
    tokens = mean_output_tokens(upload)
    if ttft is None or tpot is None or tokens is None:
        return None
    return ttft + tpot * max(0.0, tokens - 1)


def latency_identity(upload: BenchmarkUpload) -> PlausibilityCheck:
    """TTFT + TPOT · (n − 1) = E2E, of means."""
    name = "latency_identity"
    stated, derived = upload.results.e2e_ms.mean, derived_end_to_end_ms(upload)
    if stated is None or derived is None:
        return _skipped(name, "needs mean TTFT, TPOT, E2E and output length")
    if stated == 0:
        return _check(name, "fail", "mean E2E is 0 ms")
    ttft, tpot = upload.results.ttft_ms.mean, upload.results.tpot_ms.mean
    tokens = mean_output_tokens(upload)
    off = derived / stated - 1
    figures = (
        f"TTFT {ttft:.4g} ms + TPOT {tpot:.4g} ms · ({tokens:.4g} − 1) = {derived:.4g} ms, "
        f"mean E2E is {stated:.4g} ms ({off:+.1%})"
    )
    return _check(name, "pass" if abs(off) <= IDENTITY_TOLERANCE else "fail", figures + _slip(derived, stated))


def first_token_before_last(upload: BenchmarkUpload) -> PlausibilityCheck:
    """TTFT ≤ E2E, statistic by statistic."""
    name = "first_token_before_last"
    ttft, e2e = upload.results.ttft_ms, upload.results.e2e_ms
    pairs = [
        (statistic, first, last)
        for statistic in ("mean", *PERCENTILES)
        if (first := getattr(ttft, statistic)) is not None and (last := getattr(e2e, statistic)) is not None
    ]
    if not pairs:
        return _skipped(name, "needs TTFT and E2E")
    wrong = [f"{s}: TTFT {first:.4g} ms, E2E {last:.4g} ms" for s, first, last in pairs if first > last * (1 + 1e-9)]
    return _check(name, "fail" if wrong else "pass", "; ".join(wrong) or "no TTFT is above its E2E")


def littles_law(upload: BenchmarkUpload) -> PlausibilityCheck:
    """Requests in flight L = completed requests per second · mean E2E, against the declared concurrency.

    A closed loop of c clients sending N requests of equal length keeps N / (N + c) of its clients busy at the least:
    the last ones to finish leave the others idle for one request. Fewer in flight means the client was the bottleneck.
    """
    name = "littles_law"
    rate, e2e_ms = requests_per_s(upload), end_to_end_ms(upload)
    if rate is None or e2e_ms is None:
        return _skipped(name, "needs requests per second and mean E2E")
    in_flight = rate * e2e_ms / 1e3
    figures = f"{rate:.4g} requests/s · {e2e_ms:.4g} ms = {in_flight:.4g} in flight"
    load = upload.load
    if isinstance(load, MeasuredOpenLoad):
        cap = load.max_concurrency
        if cap is not None and in_flight > cap * (1 + CONCURRENCY_TOLERANCE):
            return _check(name, "fail", f"{figures}, above the cap of {cap}")
        return _check(name, "pass", figures)
    if load is None:
        return _skipped(name, f"{figures}; the load is not stated")
    concurrency = load.concurrency
    figures += f", declared concurrency {concurrency}"
    if in_flight > concurrency * (1 + CONCURRENCY_TOLERANCE):
        return _check(name, "fail", figures + _slip(in_flight, concurrency))
    requests = load.requests or upload.results.completed
    drained = requests / (requests + concurrency) if requests else 1.0
    if in_flight < concurrency * drained * (1 - OCCUPANCY_TOLERANCE):
        idle = 1 - in_flight / concurrency
        slip = _slip(in_flight, concurrency * drained)
        why = slip or f": {idle:.0%} of the clients were idle, so the client or its pauses set the pace"
        return _check(name, "fail", figures + why)
    return _check(name, "pass", figures)


def throughput_identity(upload: BenchmarkUpload) -> PlausibilityCheck:
    """Output tokens per second = requests per second · mean output length, where all three are stated."""
    name = "throughput_identity"
    results, tokens = upload.results, mean_tokens(upload.traffic.output_tokens)
    if results.output_tokens_per_s is None or results.requests_per_s is None or tokens is None:
        return _skipped(name, "needs output tokens per second, requests per second and output length")
    expected = results.requests_per_s * tokens
    figures = (
        f"{results.requests_per_s:.4g} requests/s · {tokens:.4g} tokens = {expected:.4g} tokens/s, "
        f"stated {results.output_tokens_per_s:.4g}"
    )
    # A stated distribution is what was asked for; with few requests the drawn lengths differ from its mean.
    lengths = upload.traffic.output_tokens
    requests = results.completed or (upload.load.requests if upload.load is not None else None)
    drawn = 1 / math.sqrt(requests) if requests and lengths is not None and lengths.distribution != "mean" else 0.0
    tolerance = max(RATE_TOLERANCE, drawn)
    return _check(name, "pass" if _close(expected, results.output_tokens_per_s, tolerance) else "fail", figures)


def rate_identity(upload: BenchmarkUpload) -> PlausibilityCheck:
    """Requests per second = completed / duration."""
    name = "rate_identity"
    results = upload.results
    if results.requests_per_s is None or results.completed is None or results.duration_s is None:
        return _skipped(name, "needs requests per second, completed requests and duration")
    expected = results.completed / results.duration_s
    figures = (
        f"{results.completed} requests / {results.duration_s:.4g} s = {expected:.4g} requests/s, "
        f"stated {results.requests_per_s:.4g}"
    )
    # Some tools average the rate over windows: one request more or less at the edges.
    edge = 1 / results.completed if results.completed else 0.0
    close = _close(expected, results.requests_per_s, RATE_TOLERANCE + edge)
    return _check(name, "pass" if close else "fail", figures)


def offered_rate(upload: BenchmarkUpload) -> PlausibilityCheck:
    """An open load is not answered faster than it is offered; answered much slower, its queue grew all along."""
    name = "offered_rate"
    rate = requests_per_s(upload)
    if not isinstance(upload.load, MeasuredOpenLoad) or rate is None:
        return _skipped(name, "needs an open load and requests per second")
    offered = upload.load.requests_per_s
    figures = f"offered {offered:.4g} requests/s, answered {rate:.4g}"
    requests = upload.load.requests or upload.results.completed
    # Poisson arrivals: the count in a window has a relative deviation of 1/√N; three of them cover it.
    drawn = 3 / math.sqrt(requests) if requests else RATE_TOLERANCE
    if rate > offered * (1 + max(RATE_TOLERANCE, drawn)):
        return _check(name, "fail", figures)
    if rate < offered * 0.5:
        return _check(name, "flag", f"{figures}: too short a run, or more load than the deployment can serve")
    return _check(name, "pass", figures)


def percentiles_in_order(upload: BenchmarkUpload) -> PlausibilityCheck:
    """p50 ≤ p90 ≤ p95 ≤ p99, and mean ≥ (1 − p) · percentile p (Markov: latencies are never negative)."""
    wrong = [problem for name, spread in _latencies(upload.results) for problem in _disorder(name, spread)]
    return _check("percentiles_in_order", "fail" if wrong else "pass", "; ".join(wrong) or "every percentile in order")


def _disorder(name: str, spread: Statistics) -> Iterator[str]:
    known = [(p, value) for p in PERCENTILES if (value := getattr(spread, p)) is not None]
    for (lower, low), (upper, high) in pairwise(known):
        if low > high * (1 + 1e-9):
            yield f"{name} {lower} {low:.4g} ms is above {upper} {high:.4g} ms"
    if spread.mean is not None:
        for percentile, value in known:
            if spread.mean < value * TAIL_FRACTION[percentile] * (1 - RATE_TOLERANCE):
                yield f"{name} mean {spread.mean:.4g} ms is too small for a {percentile} of {value:.4g} ms"


def units(upload: BenchmarkUpload) -> PlausibilityCheck:
    """Seconds where milliseconds belong, or the reverse."""
    name = "units"
    results = upload.results
    problems = []
    tpot, e2e = results.tpot_ms.mean, end_to_end_ms(upload)
    if tpot is not None and 0 < tpot < 1e3 / MOST_TOKENS_PER_S_PER_STREAM:
        problems.append(f"TPOT {tpot:.4g} ms is {1e3 / tpot:,.0f} tokens/s on one stream: are these seconds?")
    if e2e is not None and results.duration_s is not None and e2e > results.duration_s * 1e3 * (1 + RATE_TOLERANCE):
        problems.append(
            f"a mean request of {e2e:.4g} ms is longer than the whole run of {results.duration_s:.4g} s: "
            f"are the latencies in microseconds, or the duration in another unit?"
        )
    if tpot == 0 and (mean_output_tokens(upload) or 0) > 1:
        problems.append("TPOT is 0 ms")
    return _check(
        name, "fail" if problems else "pass", "; ".join(problems) or "the latencies have the size of milliseconds"
    )


def failed_share(upload: BenchmarkUpload) -> PlausibilityCheck:
    """Failed requests make the survivors' latencies unrepresentative."""
    name = "failed_share"
    completed, failed = upload.results.completed, upload.results.failed
    if failed is None or completed is None:
        return _skipped(name, "needs completed and failed requests")
    sent = completed + failed
    share = failed / sent if sent else 1.0
    figures = f"{failed} of {sent} requests failed ({share:.1%})"
    if share > MOST_FAILED_FRACTION:
        return _check(name, "fail", f"{figures}, more than {MOST_FAILED_FRACTION:.0%}")
    return _check(name, "flag" if failed else "pass", figures)


def enough_requests(upload: BenchmarkUpload) -> PlausibilityCheck:
    """A mean needs a few requests; a percentile p needs 1 / (1 − p) of them to exist at all."""
    name = "enough_requests"
    completed = upload.results.completed
    if completed is None:
        return _skipped(name, "the number of completed requests is not stated")
    if completed < FEWEST_REQUESTS:
        return _check(name, "fail", f"{completed} completed requests, fewer than {FEWEST_REQUESTS}")
    load = upload.load
    if isinstance(load, MeasuredClosedLoad) and completed < load.concurrency:
        return _check(name, "fail", f"{completed} completed requests never filled {load.concurrency} clients")
    unsure = [p for p in PERCENTILES if completed < 1 / TAIL_FRACTION[p] and _states(upload.results, p)]
    if unsure:
        return _check(name, "flag", f"{completed} completed requests are too few for {', '.join(unsure)}")
    return _check(name, "pass", f"{completed} completed requests")


def faster_than_roofline(upload: BenchmarkUpload, limits: PhysicalLimits) -> PlausibilityCheck:
    """Nothing decodes faster than its weights and cache can be read, nor computes faster than its units can."""
    name = "roofline"
    tpot, rate = upload.results.tpot_ms.mean, upload.results.output_tokens_per_s
    compared: list[str] = []
    wrong: list[str] = []
    if limits.tpot_ms is not None and tpot is not None:
        figures = f"TPOT {tpot:.4g} ms, roofline {limits.tpot_ms:.4g} ms"
        (wrong if tpot < limits.tpot_ms * (1 - ROOFLINE_TOLERANCE) else compared).append(figures)
    if limits.output_tokens_per_s is not None and rate is not None:
        figures = f"{rate:.4g} tokens/s, roofline {limits.output_tokens_per_s:.4g}"
        (wrong if rate > limits.output_tokens_per_s * (1 + ROOFLINE_TOLERANCE) else compared).append(figures)
    if wrong:
        return _check(name, "fail", "faster than the device can be: " + "; ".join(wrong))
    return _check(name, "pass", "; ".join(compared)) if compared else _skipped(name, "no roofline is known")


def power_within_limit(upload: BenchmarkUpload, limits: PhysicalLimits) -> PlausibilityCheck:
    """Mean power is above zero and within the boards' limit, summed over the devices."""
    name = "power"
    watts = upload.context.power_w_mean
    if watts is None:
        return _skipped(name, "power was not measured")
    if watts == 0:
        return _check(name, "fail", "0 W: the meter did not work")
    if limits.power_limit_w is None:
        return _skipped(name, "the device's power limit is not in the catalog")
    ceiling = limits.power_limit_w * upload.context.devices
    figures = f"{watts:.4g} W mean, {upload.context.devices} × {limits.power_limit_w:.4g} W limit"
    return _check(name, "fail" if watts > ceiling * (1 + POWER_TOLERANCE) else "pass", figures)


def clock(upload: BenchmarkUpload, received_at: dt.datetime) -> PlausibilityCheck:
    """A result cannot have been measured after it was received."""
    name = "clock"
    measured_at = upload.context.measured_at
    if measured_at is None:
        return _skipped(name, "the time of measurement is not stated")
    if measured_at.tzinfo is None:
        measured_at = measured_at.replace(tzinfo=dt.UTC)
    ahead = measured_at - received_at
    if ahead > CLOCK_TOLERANCE:
        minutes = ahead.total_seconds() / 60
        return _check(name, "fail", f"measured {minutes:.0f} minutes after it was received: the agent's clock is ahead")
    return _check(name, "pass", f"measured {measured_at.isoformat()}")


CHECKS: tuple[Callable[[BenchmarkUpload], PlausibilityCheck], ...] = (
    percentiles_in_order,
    units,
    first_token_before_last,
    latency_identity,
    littles_law,
    throughput_identity,
    rate_identity,
    offered_rate,
    failed_share,
    enough_requests,
)
"""The checks that need nothing but the upload."""


def quarantine_reasons(checks: Iterable[PlausibilityCheck]) -> list[str]:
    """Why a result is quarantined; empty when it is not."""
    return [f"{check.name}: {check.message}" for check in checks if check.verdict == "fail"]


def warnings(checks: Iterable[PlausibilityCheck]) -> list[str]:
    """What is odd about a result without disqualifying it."""
    return [f"{check.name}: {check.message}" for check in checks if check.verdict == "flag"]


def _latencies(results: BenchmarkResults) -> tuple[tuple[str, Statistics], ...]:
    return (("TTFT", results.ttft_ms), ("TPOT", results.tpot_ms), ("ITL", results.itl_ms), ("E2E", results.e2e_ms))


def _states(results: BenchmarkResults, percentile: str) -> bool:
    return any(getattr(spread, percentile) is not None for _, spread in _latencies(results))


def _close(a: float, b: float, tolerance: float) -> bool:
    return abs(a - b) <= tolerance * max(abs(a), abs(b))


def _slip(a: float, b: float) -> str:
    """A remark when two figures that should be equal differ by about a thousand.

    >>> _slip(0.0118, 11.8)
    ': a factor of about 1,000, as between seconds and milliseconds'
    >>> _slip(10.0, 11.8)
    ''
    """
    if a <= 0 or b <= 0:
        return ""
    factor = max(a / b, b / a)
    if UNIT_SLIP / 2 <= factor <= UNIT_SLIP * 2:
        return ": a factor of about 1,000, as between seconds and milliseconds"
    return ""


def _check(name: str, verdict: Verdict, message: str) -> PlausibilityCheck:
    return PlausibilityCheck(name=name, verdict=verdict, message=message)


def _skipped(name: str, message: str) -> PlausibilityCheck:
    return _check(name, "skipped", message)
