"""Does a queue that is said to stay do so, and go with the seats that are named? ``python -m tests.bench.lasting_queues``.

Each replica is asked for ``--share`` of what it is said to sustain without a target. A burst of three times its seats comes first; what
the first tokens at the end of the run wait then says whether the queue is still there. ``--held-out``: replicas, lengths, sessions and
arrivals that nothing was chosen by.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from rich.console import Console
from rich.table import Table

from solver.capacity.goal import Goal
from solver.capacity.runs import Runs, TableMemo
from solver.capacity.sustained_rate import CandidateReplica, is_settled
from solver.deployment.configuration import Configuration
from solver.engine.simulate import simulate, simulate_sessions
from solver.layout import Layout
from solver.lengths import Lengths, fixed_lengths, lognormal_lengths, uniform_lengths
from solver.precision import Precision
from solver.prediction.lasting_queue import LastingQueue, lasting_queue
from solver.replay.crowds import GLANCE_TURNOVERS
from solver.replay.one_stream import capacity_requests_per_s, sampled_requests
from solver.replay.session_draws import open_draw
from solver.replay.sessions import paced
from solver.sessions import session_traffic
from solver.workload import Load, Sessions, Targets, Traffic
from tests.bench.long_capacities import ANCHOR
from tests.llm_shapes import shape
from tests.solver.samples import configuration

REQUESTS = 20_000
BURST_OVER_SEATS = 3
SHARE = 0.85
"""Of what replicas sustain, that plans ask of them unless told otherwise."""
MOST_TURNS_PER_S = 60.0
GROWN = 5.0
"""Times as long as without a burst, and a second: a queue that has not gone."""

TRAFFICS = {
    "800 → 300": Traffic(lognormal_lengths(800, 2_400), lognormal_lengths(300, 900)),
    "2,000 → 1,500": Traffic(lognormal_lengths(2_000, 6_000), lognormal_lengths(1_500, 5_000)),
    "300 → 3,000": Traffic(lognormal_lengths(300, 900), lognormal_lengths(3_000, 9_000)),
    "8,000 → 200": Traffic(lognormal_lengths(8_000, 24_000), lognormal_lengths(200, 600)),
    "50 → 300": Traffic(lognormal_lengths(50, 150), lognormal_lengths(300, 900)),
    "50 → 200 to 400": Traffic(lognormal_lengths(50, 150), uniform_lengths(200, 400)),
}

SESSIONS_AT_ONCE = 600
"""More than there would be, when a burst of sessions begins."""
TURNS = 40_000
CHATS = {
    "chats": (Sessions(fixed_lengths(6), fixed_lengths(150), 30.0, system_tokens=1_500), lognormal_lengths(300, 900)),
    "agents": (
        Sessions(uniform_lengths(8, 16), lognormal_lengths(600, 1_800), 10.0, system_tokens=2_000),
        lognormal_lengths(200, 600),
    ),
    "50 tenants": (
        Sessions(fixed_lengths(3), fixed_lengths(300), 30.0, system_tokens=4_000, system_prompts=50),
        lognormal_lengths(200, 600),
    ),
    "coding": (
        Sessions(uniform_lengths(10, 30), lognormal_lengths(1_500, 5_000), 20.0, system_tokens=8_000),
        lognormal_lengths(400, 1_200),
    ),
}


def session_replicas() -> dict[str, Configuration]:
    """With caches as large as their memory leaves."""
    large = configuration(shape("llama-3.1-70b"), "h100-sxm", Layout(2), Precision("fp8", "fp8"))
    return {
        "8B, H100": replace(configuration(shape("llama-3.1-8b")), kv_cache_tokens=420_000.0),
        "70B in fp8, H100, TP 2": replace(large, kv_cache_tokens=330_000.0),
    }


def replicas() -> dict[str, Configuration]:
    eight_bits = Precision("fp8", "fp8")
    mixture = shape("qwen3-30b-a3b")
    return {
        "8B, H100": configuration(shape("llama-3.1-8b")),
        "8B, L40S": configuration(shape("llama-3.1-8b"), "l40s"),
        "70B in fp8, H100, TP 2": configuration(shape("llama-3.1-70b"), "h100-sxm", Layout(2), eight_bits),
        "70B, H200, TP 4": configuration(shape("llama-3.1-70b"), "h200-sxm", Layout(4)),
        "30B-A3B, H100": configuration(mixture, "h100-sxm", Layout(), eight_bits),
        "30B-A3B, MI300X": configuration(mixture, "mi300x", Layout(), eight_bits),
    }


HELD_OUT_TRAFFICS = {
    "1,200 → 600": Traffic(lognormal_lengths(1_200, 3_600), lognormal_lengths(600, 1_800)),
    "150 → 800": Traffic(lognormal_lengths(150, 450), lognormal_lengths(800, 2_400)),
    "4,000 → 1,000": Traffic(lognormal_lengths(4_000, 12_000), lognormal_lengths(1_000, 3_000)),
    "400 → 2,000": Traffic(lognormal_lengths(400, 1_200), lognormal_lengths(2_000, 6_000)),
}
HELD_OUT_CHATS = {
    "support": (
        Sessions(uniform_lengths(2, 8), lognormal_lengths(80, 240), 45.0, system_tokens=800),
        lognormal_lengths(250, 750),
    ),
    "research": (
        Sessions(uniform_lengths(5, 12), lognormal_lengths(2_500, 8_000), 30.0, system_tokens=3_000),
        lognormal_lengths(600, 1_800),
    ),
    "10 shops": (
        Sessions(fixed_lengths(4), fixed_lengths(60), 20.0, system_tokens=6_000, system_prompts=10),
        lognormal_lengths(120, 360),
    ),
}


def held_out_replicas() -> dict[str, Configuration]:
    def of(llm: str, device: str, layout: Layout, precision: Precision, kv_cache_tokens: float) -> Configuration:
        return replace(configuration(shape(llm), device, layout, precision), kv_cache_tokens=kv_cache_tokens)

    return {
        "32B, H100, TP 2": of("qwen3-32b", "h100-sxm", Layout(2), Precision(), 300_000.0),
        "8B, A100": of("llama-3.1-8b", "a100-sxm-80", Layout(), Precision(), 420_000.0),
        "8x7B in fp8, H200": of("mixtral-8x7b", "h200-sxm", Layout(), Precision("fp8", "fp8"), 900_000.0),
        "30B-A3B, H200": of("qwen3-30b-a3b", "h200-sxm", Layout(), Precision(), 600_000.0),
    }


@dataclass(frozen=True, slots=True)
class Cases:
    """Replicas and lengths; replicas and sessions; seeds of the arrivals of requests and of turns."""

    replicas: dict[str, Configuration]
    traffics: dict[str, Traffic]
    session_replicas: dict[str, Configuration]
    chats: dict[str, tuple[Sessions, Lengths]]
    seed: int = 5
    turns_seed: int = 3


def in_view() -> Cases:
    return Cases(replicas(), TRAFFICS, session_replicas(), CHATS)


def held_out() -> Cases:
    every = held_out_replicas()
    two = {name: every[name] for name in ("32B, H100, TP 2", "8B, A100")}
    return Cases(every, HELD_OUT_TRAFFICS, two, HELD_OUT_CHATS, seed=11, turns_seed=8)


def waits_after_a_burst_s(
    of: Configuration, traffic: Traffic, requests_per_s: float, *, burst: bool = True, seed: int = 5
) -> float:
    """Mean seconds to the first token at the end of an open load. burst: it begins with more requests than there are seats."""
    prompts, outputs, unit_s = sampled_requests(traffic, REQUESTS, seed)
    at_once = BURST_OVER_SEATS * of.engine.max_sequences if burst else 0
    arrivals_s = np.maximum(unit_s - unit_s[at_once], 0.0) * of.lanes / requests_per_s
    schedule = replace(of.schedule(), contending_lanes=of.batches - 1)
    run = simulate(of.tables(), schedule, prompts, outputs, arrivals_s=arrivals_s, notes_gaps=False)
    return float(run.time_to_first_token_s[-REQUESTS // 10 :].mean())


@dataclass(frozen=True, slots=True)
class Later:
    """Mean seconds to the first token in the third quarter of a run of turns, and the share of prompts found from its middle on."""

    first_token_s: float
    found_fraction: float


def after_a_burst(
    of: Configuration, traffic: Traffic, requests_per_s: float, *, burst: bool = True, seed: int = 3
) -> Later:
    """An open load of sessions. burst: SESSIONS_AT_ONCE more begin with it."""
    assert traffic.sessions is not None
    tables, schedule = of.tables(), of.schedule()
    service_s = paced(tables, schedule, traffic, requests_per_s).service_s
    draw = open_draw(
        traffic, requests_per_s, service_s, TURNS, seed,
        block_tokens=schedule.block_tokens, cache_tokens=schedule.kv_cache_tokens,
    )  # fmt: skip
    sooner_s = SESSIONS_AT_ONCE * traffic.sessions.turns.mean / requests_per_s if burst else 0.0
    arrivals_s = np.maximum(draw.arrivals_s - sooner_s, 0.0)
    run = simulate_sessions(
        tables, schedule, draw.prompts, draw.outputs, draw.turns, arrivals_s=arrivals_s, notes_gaps=False
    )
    waits_s = run.trace.time_to_first_token_s[TURNS // 2 : 3 * TURNS // 4]
    return Later(float(waits_s.mean()), run.found_fraction(TURNS // 2))


@dataclass(frozen=True, slots=True)
class Found:
    """One replica asked for a rate: what crowds complete, what is said of its queue, and what it is after a burst, with its seats and
    with those named. glance: what a crowd completes in a glance over what it does in the long run."""

    replica: str
    traffic: str
    requests_per_s: float
    crowd_requests_per_s: float
    glance: float
    queue: LastingQueue | None
    stays: bool
    stays_with_fewer: bool


def found(of_cases: Cases, share: float) -> Iterator[Found]:
    for (name, of), (lengths, traffic) in product(of_cases.replicas.items(), of_cases.traffics.items()):
        tables = of.tables()
        crowd = capacity_requests_per_s(of, tables, traffic)
        glance = capacity_requests_per_s(of, tables, traffic, GLANCE_TURNOVERS) / crowd
        rate = share * sustained_per_s(of, traffic, ANCHOR * crowd)
        queue = lasting_queue(of, tables, traffic, Load("open", requests_per_s=rate), Configuration.tables)
        calm_s = waits_after_a_burst_s(of, traffic, rate, burst=False, seed=of_cases.seed)
        fewer = of if queue is None else replace(of, engine=replace(of.engine, max_sequences=queue.max_sequences))
        late_s, with_fewer_s = (waits_after_a_burst_s(on, traffic, rate, seed=of_cases.seed) for on in (of, fewer))
        most_s = GROWN * calm_s + 1.0
        stays_with_fewer = queue is not None and with_fewer_s > most_s
        yield Found(name, lengths, rate, crowd, glance, queue, late_s > most_s, stays_with_fewer)


def sustained_per_s(of: Configuration, traffic: Traffic, most: float) -> float:
    """Requests per second that a replica sustains without a target."""
    runs = Runs((0, True), of, traffic, TableMemo())
    return CandidateReplica(runs, Goal(Targets()), most, most).bracket(is_settled).holds


@dataclass(frozen=True, slots=True)
class FoundOfTurns:
    """One replica asked for turns of sessions: what is said of a queue, and what they meet without a burst and after one."""

    replica: str
    sessions: str
    requests_per_s: float
    queue: LastingQueue | None
    calm: Later
    late: Later


def found_of_sessions(of_cases: Cases, share: float) -> Iterator[FoundOfTurns]:
    for (name, of), (kind, (sessions, output)) in product(of_cases.session_replicas.items(), of_cases.chats.items()):
        traffic, _ = session_traffic(sessions, output, None)
        rate = share * sustained_per_s(of, traffic, MOST_TURNS_PER_S)
        queue = lasting_queue(of, of.tables(), traffic, Load("open", requests_per_s=rate), Configuration.tables)
        calm, late = (
            after_a_burst(of, traffic, rate, burst=burst, seed=of_cases.turns_seed) for burst in (False, True)
        )
        yield FoundOfTurns(name, kind, rate, queue, calm, late)


def show_requests(every: list[Found], share: float) -> None:
    columns = (
        "replica",
        "prompt → reply",
        "asked, requests/s",
        "a crowd",
        "a queue",
        "seats",
        "a crowd then",
        "a queue",
    )
    table = Table(*columns)
    for one in every:
        told = ("", "", "")
        if one.queue is not None:
            gone = "stays" if one.stays_with_fewer else "goes"
            told = (str(one.queue.max_sequences), f"{one.queue.settled_requests_per_s:.2f}", gone)
        rates = f"{one.requests_per_s:.2f}", f"{one.crowd_requests_per_s:.2f}"
        table.add_row(one.replica, one.traffic, *rates, "stays" if one.stays else "goes", *told)
    Console(width=140).print(table)
    said = [one for one in every if one.queue is not None]
    glances = [one.glance for one in every]
    print(
        f"{len(every)} loads at {share:.0%} of what is sustained: in {sum(one.stays for one in every)} a queue stays, of which "
        f"{sum(one.stays for one in said)} are said to; {sum(not one.stays for one in said)} more are said to; with the seats that are "
        f"named it stays in {sum(one.stays_with_fewer for one in said)}. In a glance crowds complete {min(glances):.2f} to "
        f"{max(glances):.2f} times what they do in the long run"
    )


def show_turns(every: list[FoundOfTurns]) -> None:
    columns = ("asked, turns/s", "first token, s", "found", "after a burst, s", "found", "said: completes", "finds")
    table = Table("replica", "sessions", *columns)
    for one in every:
        said = ("", "")
        if one.queue is not None:
            said = (f"{one.queue.completed_requests_per_s:.2f}", f"{one.queue.found_fraction:.0%}")
        calm, late = (
            (f"{each.first_token_s:.{digits}f}", f"{each.found_fraction:.0%}")
            for each, digits in ((one.calm, 2), (one.late, 1))
        )
        table.add_row(one.replica, one.sessions, f"{one.requests_per_s:.2f}", *calm, *late, *said)
    Console(width=140).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.lasting_queues", description=__doc__)
    parser.add_argument("--share", type=float, default=SHARE, help=f"of what is sustained (default {SHARE})")
    parser.add_argument("--held-out", action="store_true", help="cases that nothing was chosen by")
    options = parser.parse_args()
    of_cases = held_out() if options.held_out else in_view()
    show_requests(list(found(of_cases, options.share)), options.share)
    show_turns(list(found_of_sessions(of_cases, options.share)))


if __name__ == "__main__":
    main()
