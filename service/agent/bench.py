"""``agent bench``: drive an OpenAI-compatible engine, measure, keep the result, upload it."""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import gzip
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from service.agent.lengths import FixedTokens, LengthDistribution, LognormalTokens, UniformTokens
from service.agent.load import (
    ClosedLoop,
    Load,
    OpenLoop,
    PlannedRequest,
    SentTraffic,
    after_burst,
    plan_requests,
    plan_text_requests,
    run_load,
)
from service.agent.power import PowerSampler
from service.agent.progress import AgentProgress
from service.agent.records import LoadRun
from service.agent.stream import Endpoint
from service.wire.benchmarks import BenchmarkUpload

CLOSED_ROUNDS = 3
"""Requests for each client of a closed loop when their number is not stated: ramp-up, steady state, drain."""
OPEN_REQUESTS = 200
WARM_UP_REQUESTS = 24
WARM_UP_CLIENTS = 8
WARM_UP_OPEN_CLIENTS = 64
"""At once, at the end of the warm-up of an open loop, whose requests in flight nobody knows beforehand."""
WARM_UP_ANSWER_TOKENS = 8
WARM_UP_WAVE_S = 30.0
"""A wave of the warm-up that takes as long is the last: twice as many would take up to twice as long, on a slow device for an hour."""
WARM_UP_SEED = 1_000_000
"""Above the seeds of loads: prompts that are sent again would be found in the engine's cache."""


class NothingMeasuredError(Exception):
    """Not one request was answered."""


@dataclass(frozen=True)
class LoadPoint:
    """One load to measure."""

    load: Load
    seed: int

    @property
    def name(self) -> str:
        if isinstance(self.load, ClosedLoop):
            return f"{self.load.concurrency} clients"
        return f"{self.load.requests_per_s:g} requests/s{after_burst(self.load.at_once)}"


@dataclass(frozen=True)
class Prompts:
    """What is sent: random token ids below ``vocabulary_tokens``, or the given texts."""

    prompt_tokens: LengthDistribution
    output_tokens: LengthDistribution
    vocabulary_tokens: int | None
    texts: tuple[str, ...] = ()

    def plan(self, endpoint: Endpoint, requests: int, seed: int) -> list[PlannedRequest]:
        if self.texts:
            return plan_text_requests(endpoint, self.texts, self.output_tokens, requests, seed)
        if self.vocabulary_tokens is None:
            raise ValueError("prompts of token ids need --vocabulary-tokens (or give --prompts FILE)")
        traffic = SentTraffic(self.prompt_tokens, self.output_tokens, self.vocabulary_tokens)
        return plan_requests(endpoint, traffic, requests, seed)


def parse_lengths(text: str, longest: int = 1_000_000) -> LengthDistribution:
    """``1024``, ``819:1024`` (uniform), or ``lognormal:1200:4000`` (mean and 95th percentile).

    >>> parse_lengths("819:1024")
    UniformTokens(low=819, high=1024)
    """
    try:
        if text.startswith("lognormal:"):
            _, mean, p95 = text.split(":")
            return LognormalTokens(float(mean), float(p95), longest)
        low, _, high = text.partition(":")
        return UniformTokens(int(low), int(high)) if high else FixedTokens(int(low))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None


def points_of(
    concurrencies: Sequence[int], rates: Sequence[float], requests: int | None, seed: int, at_once: int = 0
) -> list[LoadPoint]:
    """Every load of a sweep: concurrencies first, then rates, each of which begins with a burst of ``at_once``."""
    loads: list[Load] = [ClosedLoop(c, requests or CLOSED_ROUNDS * c) for c in concurrencies]
    loads += [OpenLoop(rate, requests or OPEN_REQUESTS, seed, at_once) for rate in rates]
    return [LoadPoint(load, seed + number) for number, load in enumerate(loads)]


def check_burst_options(options: argparse.Namespace) -> None:
    """Raises ValueError for a burst without an open load to follow it, and for one that would be uploaded as a load without."""
    if options.at_once and not options.rate:
        raise ValueError("--at-once is what an open load begins with: state its --rate")
    if options.at_once and not options.no_upload:
        raise ValueError("the service takes no loads that begin with a burst: give --no-upload")


def warm_up(
    endpoint: Endpoint, prompts: Prompts, requests: int, timeout_s: float, clients: int = WARM_UP_OPEN_CLIENTS
) -> None:
    """Requests before the clock starts: graphs are captured, kernels chosen, caches allocated. Not recorded.

    After whole requests come short ones of 1, 2, 4, … and at last ``clients`` at once: engines compile some kernels when a batch of
    a new size first comes. A wave that takes 30 s ends the warm-up.

    Raises NothingMeasuredError, with the first error, when the engine answers none of them.
    """
    if requests == 0:
        return
    planned = prompts.plan(endpoint, requests, seed=0)
    run = asyncio.run(run_load(endpoint, planned, ClosedLoop(min(WARM_UP_CLIENTS, requests), requests), timeout_s))
    if not run.completed:
        raise NothingMeasuredError(f"the engine answered no warm-up request: {next(iter(run.failures()), '')}")
    short = replace(prompts, output_tokens=FixedTokens(WARM_UP_ANSWER_TOKENS))
    for wave in doubling(clients):
        planned = short.plan(endpoint, wave, seed=WARM_UP_SEED + wave)
        if asyncio.run(run_load(endpoint, planned, ClosedLoop(wave, wave), timeout_s)).duration_s >= WARM_UP_WAVE_S:
            return


def doubling(most: int) -> list[int]:
    """1, 2, 4, … and ``most``.

    >>> doubling(6), doubling(1)
    ([1, 2, 4, 6], [1])
    """
    return [1 << power for power in range(most.bit_length()) if 1 << power < most] + [most]


def clients_of(points: Sequence[LoadPoint]) -> int:
    """The most requests that the loads of a sweep are expected to have in flight."""
    return max(p.load.concurrency if isinstance(p.load, ClosedLoop) else WARM_UP_OPEN_CLIENTS for p in points)


def measure(
    endpoint: Endpoint,
    prompts: Prompts,
    point: LoadPoint,
    context: dict[str, Any],
    timeout_s: float,
    devices: list[int] | None,
) -> tuple[dict[str, Any], LoadRun]:
    """Run one load. The upload in canonical form, and the requests it summarises.

    Power is sampled once a second and counted only when every named board gave samples. Raises NothingMeasuredError
    when no request was answered.
    """
    planned = prompts.plan(endpoint, point.load.requests, point.seed)
    measured_at = dt.datetime.now(dt.UTC)
    with PowerSampler(devices) as power, AgentProgress(point.name, len(planned)) as bar:
        started = time.perf_counter()
        run = asyncio.run(
            run_load(endpoint, planned, point.load, timeout_s, lambda record: bar.step(failed=not record.succeeded))
        )
        watts = power.mean_w(started, time.perf_counter())
    if not run.completed:
        raise NothingMeasuredError(f"{point.name}: no request was answered: {next(iter(run.failures()), '')}")
    wanted = context.get("devices")
    full = context | {"measured_at": measured_at.isoformat()}
    if watts and (wanted is None or len(watts) == wanted):
        full["power_w_mean"] = round(sum(watts.values()), 2)
    load = {name: value for name, value in point.load.as_json().items() if name not in ("seed", "at_once")}
    upload = {
        "context": full,
        "load": load | {"range": f"{len(run.records)} requests, warm-up excluded, ramp-up and drain included"},
        "traffic": _traffic(prompts, run),
        "results": run.results(),
    }
    checked = BenchmarkUpload.model_validate_json(json.dumps(upload)).model_dump(mode="json", exclude_none=True)
    if isinstance(point.load, OpenLoop) and point.load.at_once:  # what is printed says so; it is not uploaded
        checked["load"]["at_once"] = point.load.at_once
    return checked, run


def _traffic(prompts: Prompts, run: LoadRun) -> dict[str, Any]:
    """As drawn; with text prompts, the mean number of tokens the server counted."""
    output = prompts.output_tokens.as_json()
    if not prompts.texts:
        return {"prompt_tokens": prompts.prompt_tokens.as_json(), "output_tokens": output}
    counted = [record.prompt_tokens for record in run.completed if record.prompt_tokens]
    if not counted:
        return {"output_tokens": output}
    return {
        "prompt_tokens": {"distribution": "mean", "mean": sum(counted) / len(counted)},
        "output_tokens": output,
    }


def keep_records(file: Path, load: str, run: LoadRun) -> None:
    """Append every request of a run to a gzip file of JSON lines."""
    with gzip.open(file, "at") as out:
        for record in run.records:
            out.write(json.dumps({"point": load} | record.as_json(with_chunks=True)) + "\n")


def summary(load: str, upload: dict[str, Any], run: LoadRun) -> str:
    """One line a person can read."""
    results = upload["results"]
    parts = [
        f"{load}:",
        f"{results['output_tokens_per_s']:.0f} tokens/s,",
        f"TTFT {results['ttft_ms']['mean']:.0f} ms (p95 {results['ttft_ms']['p95']:.0f}),",
    ]
    if "mean" in results.get("tpot_ms", {}):
        parts.append(f"TPOT {results['tpot_ms']['mean']:.2f} ms (p95 {results['tpot_ms']['p95']:.2f})")
    if watts := upload["context"].get("power_w_mean"):
        parts.append(f", {watts:.0f} W")
    if run.failed:
        reasons = "; ".join(f"{count} × {error}" for error, count in list(run.failures().items())[:3])
        parts.append(f"· {len(run.failed)} of {len(run.records)} FAILED: {reasons}")
    return " ".join(parts)


def say(text: str) -> None:
    """Messages go to standard error; standard output is for results."""
    sys.stderr.write(text + "\n")
