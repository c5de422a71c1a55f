"""Every bar of the page of figures, measured: what it asks, what it is here and now, and whether that meets it."""

import json
import random
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from solver.fleet import FleetProblem, SolveOptions, solve_fleet, verify
from tests.bench.class_fleets import catalog_fleets
from tests.bench.estimates import asked as estimates_asked
from tests.bench.light_requests import BAR_MS, CLIENTS, at_percent, taken_ms
from tests.bench.planner import Answers, cpu_s, peak_mib, post, recommendations
from tests.bench.server_process import ServerProcess
from tests.bench.simulation import simulated_per_s
from tests.bench.why_answers import SEED as WHY_SEED
from tests.bench.why_answers import questions
from tests.bench.workloads import requests

ROOT = Path(__file__).resolve().parents[2]
RAG = ROOT / "examples" / "chat-rag-70b.json"
LAST_RUN = ROOT / ".pytest_cache" / "v" / "clusterwright" / "last_run"
"""What the last run of all tests took (tests/processor_time.py)."""
ONE_P50_S, ONE_P95_S, FIVE_P50_S, RAG_S, WHY_S, CLASSES_S, ESTIMATES_S = 0.25, 0.5, 1.5, 3.0, 3.0, 3.0, 5.0
REPLAYED_PER_S, READY_S, MEMORY_MB, TESTS_S = 2_000_000.0, 3.0, 500.0, 300.0
LINEAR = 1.1
"""A million requests may take that much more than ten times a hundred thousand: what two timings of one loop differ by."""
MIB_IN_MB = 1024.0**2 / 1e6


@dataclass(frozen=True)
class Row:
    """key: by what its profile is found; empty where it has none. met: None where it was not measured. note: a profile in words."""

    what: str
    bar: str
    figure: str
    met: bool | None
    key: str = ""
    note: str = ""


def one_workload(server: ServerProcess, count: int) -> Row:
    found = recommendations(server, count, 1)
    p50, p95 = found.quantile(0.5), found.quantile(0.95)
    figure = f"{p50 * 1e3:.0f} / {p95 * 1e3:.0f} ms, {_proven(found, count)}, {found.mean_cpu_s:.2f} processor s each"
    met = p50 <= ONE_P50_S and p95 <= ONE_P95_S and found.proven == count
    return Row("one workload, whole catalog, proven and confirmed, p50 / p95", "≤ 250 / ≤ 500 ms", figure, met, "one")


def five_workloads(server: ServerProcess, count: int) -> Row:
    found = recommendations(server, count, 5)
    p50 = found.quantile(0.5)
    figure = f"p50 {p50:.2f} s, at most {max(found.seconds):.2f} s, {_proven(found, count)}, {found.mean_cpu_s:.2f} processor s each"
    return Row("five workloads", "p50 ≤ 1.5 s, proven", figure, p50 <= FIVE_P50_S and found.proven == count, "five")


def _proven(found: Answers, count: int) -> str:
    return f"{found.proven} of {count} proven"


def traffic_classes(server: ServerProcess, times: int = 3) -> Row:
    """The same request cold and after others, each with a new key: an answer that is kept would say nothing."""
    body = json.loads(RAG.read_text(encoding="utf-8"))
    seconds, prices, spent = [], set(), []
    with httpx.Client(base_url=server.address, timeout=300) as client:
        for number in range(times):
            began, before = time.perf_counter(), cpu_s(server.pid)
            prices.add(str(post(client, body)["solve"]["usd_per_hour"]))
            seconds.append(time.perf_counter() - began)
            spent.append(cpu_s(server.pid) - before)
            post(client, requests(1, 1, number)[0])
    figure = f"{_listed(seconds)} s ({_listed(spent)} processor s), USD/h {', '.join(sorted(prices))}"
    met = max(seconds) <= RAG_S and len(prices) == 1
    return Row("three traffic classes (chat-rag-70b)", "≤ 3 s, same price every time", figure, met, "rag")


def why_answers(server: ServerProcess, plans: int = 6) -> Row:
    seconds, spent = [], []
    with httpx.Client(base_url=server.address, timeout=300) as client:
        for body in requests(plans, 5, WHY_SEED):
            answer = post(client, body)
            began, before = time.perf_counter(), cpu_s(server.pid)
            ask_why(client, answer)
            seconds.append(time.perf_counter() - began)
            spent.append(cpu_s(server.pid) - before)
    figure = f"{_listed(seconds)} s ({_listed(spent)} processor s)"
    return Row(
        f"five why-answers on a plan of five workloads, {plans} plans",
        "≤ 3 s each",
        figure,
        max(seconds) <= WHY_S,
        "why",
    )


def _listed(seconds: list[float]) -> str:
    return ", ".join(f"{one:.1f}" for one in seconds)


def ask_why(client: Any, answer: dict[str, Any]) -> None:
    """The five questions, one after the other."""
    for _, path, question in questions(answer):
        response = client.post(f"/v1/recommendations/{answer['id']}/{path}", json=question)
        response.raise_for_status()


@dataclass(frozen=True)
class ClassFleet:
    problem: FleetProblem
    seconds: float


def class_fleets(url: str, first_seed: int, count: int = 10, limit_s: float = 10.0) -> tuple[Row, list[ClassFleet]]:
    """The row, and fleets that were not proven in time."""
    fleets = catalog_fleets(url)
    met, texts, slow = 0, [], []
    for seed in range(first_seed, first_seed + count):
        problem = fleets.problem(seed, 5, 10)
        began, used = time.perf_counter(), time.process_time()
        found = solve_fleet(problem, SolveOptions(time_limit_s=limit_s, gap_fraction=0.0))
        took, spent = time.perf_counter() - began, time.process_time() - used
        assert not verify(problem, found), seed
        in_time = took <= CLASSES_S and not (found.gap_fraction or 0.0)
        met += in_time
        texts.append(f"{took:.1f} ({spent:.1f})" if not found.gap_fraction else f"{found.gap_fraction:.1%} open")
        if not in_time:
            slow.append(ClassFleet(problem, spent))
    figure = f"{met} of {count} in time: {', '.join(texts)} s (processor s); seeds from {first_seed}"
    bar = f"≤ 3 s, proven, on ≥ {9 * count // 10} of {count} fresh seeds"
    return Row("5 workloads × 10 traffic classes", bar, figure, 10 * met >= 9 * count, "classes"), slow


def estimates(server: ServerProcess, count: int = 1_000) -> Row:
    with httpx.Client(base_url=server.address, timeout=300) as client:
        began, before = time.perf_counter(), cpu_s(server.pid)
        response = client.post("/v1/estimates", json={"estimates": estimates_asked(count)})
        took, spent = time.perf_counter() - began, cpu_s(server.pid) - before
    figure, answered = f"{took:.1f} s ({spent:.1f} processor s)", response.status_code == httpx.codes.OK
    if not answered:
        figure += f", refused: {response.json()['detail']}"
    return Row(f"{count:,} estimates in one call", "≤ 5 s", figure, answered and took <= ESTIMATES_S, "estimates")


def simulation() -> Row:
    few, many = 100_000, 1_000_000
    found = {closed: simulated_per_s((few, many), closed=closed) for closed in (False, True)}
    slowest = min(rate for rates in found.values() for rate in rates)
    growth = max(rates[0] / rates[1] for rates in found.values())
    figure = f"{slowest:,.0f} requests/s; ten times the requests take {10.0 * growth:.1f} times as long"
    met = slowest >= REPLAYED_PER_S and growth <= LINEAR
    each = "; ".join(
        f"{'closed' if closed else 'open'} loop {1e9 / rates[0]:.0f} ns a request of {few:,}, {1e9 / rates[1]:.0f} ns of {many:,}"
        for closed, rates in found.items()
    )
    bar = "≥ 2,000,000 requests/s, no slower than linear"
    return Row(
        "simulation, one core", bar, figure, met, note=f"{each}: arrays of the longer run leave the processor's cache"
    )


def start(seconds: float) -> Row:
    note = "" if seconds <= READY_S else f"importing the service alone takes {_import_s():.1f} s of a process's time"
    return Row("start to ready", "≤ 3 s", f"{seconds:.1f} s", seconds <= READY_S, note=note)


def _import_s() -> float:
    code = "import time; import service.main; print(time.process_time())"
    return float(
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    )


def memory(server: ServerProcess, after: list[tuple[str, float]]) -> Row:
    """after: what had been asked, and the largest resident set until then in MB."""
    peak = peak_mib(server.pid) * MIB_IN_MB
    note = "largest resident set, MB: " + ", ".join(f"{what} {mb:.0f}" for what, mb in after)
    return Row("memory after the bench", "≤ 500 MB", f"{peak:.0f} MB", peak <= MEMORY_MB, note=note)


def light_requests(server: ServerProcess, seconds: float = 20.0) -> Row:
    took = taken_ms(server, seconds)
    p50, p99 = at_percent(took, 50), at_percent(took, 99)
    figure = f"p50 {p50:.0f} ms, p99 {p99:.0f} ms of {sum(len(each) for each in took.values())}"
    worst = ", ".join(f"{path} {max(each):.0f} ms at most" for path, each in took.items() if each)
    return Row(
        f"light requests while {CLIENTS} clients solve", f"p99 ≤ {BAR_MS:.0f} ms", figure, p99 <= BAR_MS, note=worst
    )


def tests_took() -> Row:
    """As the last whole run recorded it; nothing is run here."""
    what, bar = "make test", "≤ 5 min"
    if not LAST_RUN.exists():
        return Row(what, bar, "no whole run is recorded here: run `make test` by itself", None)
    found = json.loads(LAST_RUN.read_text(encoding="utf-8"))
    figure = (
        f"{found['seconds'] / 60.0:.1f} min, {found['tests']:,} tests, {found['processor_s']:.0f} processor s, "
        f"{found['failed']} failed, on {found['date']}, load average {found['load']:.1f} at the end"
    )
    return Row(what, bar, figure, found["seconds"] <= TESTS_S and not found["failed"], note=found["note"])


def fresh_seed() -> int:
    """Of problems that nobody has seen."""
    return random.SystemRandom().randrange(10**6)
