"""Does a queue that is said to stay do so, and go with the seats that are named? ``python -m tests.bench.lasting_queues``.

Each replica is asked for ``--share`` of what it is said to sustain without a target. A burst of three times its seats comes first; what
the first tokens at the end of the run wait then says whether the queue is still there.
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
from solver.lengths import fixed_lengths, lognormal_lengths, uniform_lengths
from solver.precision import Precision
from solver.prediction.lasting_queue import LastingQueue, lasting_queue
from solver.replay.one_stream import capacity_requests_per_s, sampled_requests
from solver.replay.session_draws import open_draw
from solver.replay.sessions import turn_s
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


def waits_after_a_burst_s(of: Configuration, traffic: Traffic, requests_per_s: float, *, burst: bool = True) -> float:
    """Mean seconds to the first token at the end of an open load. burst: it begins with more requests than there are seats."""
    prompts, outputs, unit_s = sampled_requests(traffic, REQUESTS, 5)
    at_once = BURST_OVER_SEATS * of.engine.max_sequences if burst else 0
    arrivals_s = np.maximum(unit_s - unit_s[at_once], 0.0) * of.lanes / requests_per_s
    schedule = replace(of.schedule(), contending_lanes=of.layout.pipeline_parallel - 1)
    run = simulate(of.tables(), schedule, prompts, outputs, arrivals_s=arrivals_s, notes_gaps=False)
    return float(run.time_to_first_token_s[-REQUESTS // 10 :].mean())


def turns_wait_after_a_burst_s(
    of: Configuration, traffic: Traffic, requests_per_s: float, *, burst: bool = True
) -> float:
    """Mean seconds to the first token in the third quarter of an open load of sessions. burst: SESSIONS_AT_ONCE more begin with it."""
    assert traffic.sessions is not None
    tables, schedule = of.tables(), of.schedule()
    service_s = turn_s(tables, schedule, traffic, requests_per_s)
    draw = open_draw(
        traffic, requests_per_s, service_s, TURNS, 3,
        block_tokens=schedule.block_tokens, cache_tokens=schedule.kv_cache_tokens,
    )  # fmt: skip
    sooner_s = SESSIONS_AT_ONCE * traffic.sessions.turns.mean / requests_per_s if burst else 0.0
    arrivals_s = np.maximum(draw.arrivals_s - sooner_s, 0.0)
    run = simulate_sessions(
        tables, schedule, draw.prompts, draw.outputs, draw.turns, arrivals_s=arrivals_s, notes_gaps=False
    )
    return float(run.trace.time_to_first_token_s[TURNS // 2 : 3 * TURNS // 4].mean())


@dataclass(frozen=True, slots=True)
class Found:
    """One replica asked for a rate: what is said of its queue, and what it is after a burst, with its seats and with those named."""

    replica: str
    traffic: str
    requests_per_s: float
    queue: LastingQueue | None
    stays: bool
    stays_with_fewer: bool


def found(share: float) -> Iterator[Found]:
    for (name, of), (lengths, traffic) in product(replicas().items(), TRAFFICS.items()):
        crowd = ANCHOR * capacity_requests_per_s(of, of.tables(), traffic)
        runs = Runs((0, True), of, traffic, TableMemo())
        rate = share * CandidateReplica(runs, Goal(Targets()), crowd, crowd).bracket(is_settled).holds
        queue = lasting_queue(of, of.tables(), traffic, Load("open", requests_per_s=rate), Configuration.tables)
        calm_s = waits_after_a_burst_s(of, traffic, rate, burst=False)

        def stays(
            with_seats: Configuration, traffic: Traffic = traffic, rate: float = rate, calm_s: float = calm_s
        ) -> bool:
            return waits_after_a_burst_s(with_seats, traffic, rate) > GROWN * calm_s + 1.0

        fewer = of if queue is None else replace(of, engine=replace(of.engine, max_sequences=queue.max_sequences))
        yield Found(name, lengths, rate, queue, stays(of), queue is not None and stays(fewer))


def of_sessions(share: float) -> Iterator[tuple[str, str, float, LastingQueue | None, float, float]]:
    """Replica, sessions, turns per second, what is said of a queue, and seconds to the first token without a burst and after one."""
    for (name, of), (kind, (sessions, output)) in product(session_replicas().items(), CHATS.items()):
        traffic, _ = session_traffic(sessions, output, None)
        runs = Runs((0, True), of, traffic, TableMemo())
        rate = (
            share
            * CandidateReplica(runs, Goal(Targets()), MOST_TURNS_PER_S, MOST_TURNS_PER_S).bracket(is_settled).holds
        )
        queue = lasting_queue(of, of.tables(), traffic, Load("open", requests_per_s=rate), Configuration.tables)
        calm_s = turns_wait_after_a_burst_s(of, traffic, rate, burst=False)
        yield name, kind, rate, queue, calm_s, turns_wait_after_a_burst_s(of, traffic, rate)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.lasting_queues", description=__doc__)
    parser.add_argument("--share", type=float, default=SHARE, help=f"of what is sustained (default {SHARE})")
    options = parser.parse_args()
    table = Table(
        "replica", "prompt → reply", "asked, requests/s", "a queue", "completes then", "seats", "and then", "a queue"
    )
    every = list(found(options.share))
    for one in every:
        told = ("", "", "", "")
        if one.queue is not None:
            told = (
                f"{one.queue.completed_requests_per_s:.2f}", str(one.queue.max_sequences),
                f"{one.queue.settled_requests_per_s:.2f}", "stays" if one.stays_with_fewer else "goes",
            )  # fmt: skip
        table.add_row(one.replica, one.traffic, f"{one.requests_per_s:.2f}", "stays" if one.stays else "goes", *told)
    Console(width=140).print(table)
    said = [one for one in every if one.queue is not None]
    print(
        f"{len(every)} loads at {options.share:.0%} of what is sustained: in {sum(one.stays for one in every)} a queue stays, of which "
        f"{sum(one.stays for one in said)} are said to; {sum(not one.stays for one in said)} more are said to; with the seats that are "
        f"named it stays in {sum(one.stays_with_fewer for one in said)}"
    )
    turns = Table(
        "replica", "sessions", "asked, turns/s", "first token, s", "after a burst, s", "completes then", "found then"
    )
    for name, kind, rate, queue, calm_s, late_s in of_sessions(options.share):
        then = ("", "") if queue is None else (f"{queue.completed_requests_per_s:.2f}", f"{queue.found_fraction:.0%}")
        turns.add_row(name, kind, f"{rate:.2f}", f"{calm_s:.2f}", f"{late_s:.1f}", *then)
    Console(width=140).print(turns)


if __name__ == "__main__":
    main()
