"""Does the rate that a replica is said to sustain hold for hours? ``python -m tests.bench.long_capacities``.

Replicas of several layouts under requests of equal and of spread lengths: what a crowd completes, what a replica is said to sustain
with a loose target and without one, and whether an open load of that rate is still served after as many requests as
``--requests``: its first tokens in the last fifth of the run then come about as early as before. ``--held-out``: replicas, lengths
and arrivals that nothing was fitted or chosen by.
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
from solver.engine.simulate import simulate
from solver.layout import Layout
from solver.lengths import fixed_lengths, lognormal_lengths, uniform_lengths
from solver.precision import Precision
from solver.replay.one_stream import capacity_requests_per_s, sampled_requests
from solver.workload import EngineSettings, Targets, Traffic
from tests.llm_shapes import shape
from tests.solver.samples import configuration

ANCHOR = 4.0
"""The search for a rate begins so many times above what a crowd completes."""
EASE = 0.95
"""Of a rate that is said to be sustained, the share that is tried: two runs of a crowd differ by a few per cent."""
GROWN = 1.25
"""Times as late as before, and a second: first tokens of a queue that grows."""
GOALS = {"none": Goal(Targets()), "TTFT p95 30 s": Goal(Targets(time_to_first_token_s={"p95": 30.0}))}

TRAFFICS = {
    "800 → 300": Traffic(fixed_lengths(800), fixed_lengths(300)),
    "4,000 → 200": Traffic(fixed_lengths(4_000), fixed_lengths(200)),
    "200 → 1,000": Traffic(fixed_lengths(200), fixed_lengths(1_000)),
    "50 → 20": Traffic(fixed_lengths(50), fixed_lengths(20)),
    "800 → 4": Traffic(fixed_lengths(800), fixed_lengths(4)),
    "800 → 1": Traffic(fixed_lengths(800), fixed_lengths(1)),
    "200 to 1,400 → 300": Traffic(uniform_lengths(200, 1_400), fixed_lengths(300)),
    "lognormal 800 → 300": Traffic(lognormal_lengths(800, 2_400), lognormal_lengths(300, 900)),
}


def replicas() -> dict[str, Configuration]:
    dense, mixture = shape("llama-3.1-70b"), shape("qwen3-30b-a3b")
    return {
        "8B, H100": configuration(shape("llama-3.1-8b"), engine=EngineSettings(max_sequences=256)),
        "8B, H100, 1,024 seats": configuration(shape("llama-3.1-8b"), engine=EngineSettings(max_sequences=1_024)),
        "8B, L40S": configuration(shape("llama-3.1-8b"), "l40s"),
        "70B, H200, TP 4": configuration(dense, "h200-sxm", Layout(4)),
        "70B, H200, TP 2, PP 2": configuration(dense, "h200-sxm", Layout(2, 2)),
        "70B, H200, PP 4": configuration(dense, "h200-sxm", Layout(1, 4)),
        "30B-A3B, MI300X": configuration(mixture, "mi300x", Layout(), Precision("fp8", "fp8")),
    }


HELD_OUT_TRAFFICS = {
    "1,500 → 100": Traffic(fixed_lengths(1_500), fixed_lengths(100)),
    "300 → 2": Traffic(fixed_lengths(300), fixed_lengths(2)),
    "100 → 50": Traffic(fixed_lengths(100), fixed_lengths(50)),
    "2,000 → 600": Traffic(fixed_lengths(2_000), fixed_lengths(600)),
    "500 → 270 to 330": Traffic(fixed_lengths(500), uniform_lengths(270, 330)),
}
SEEDS, HELD_OUT_SEEDS = (5,), (11, 23)
"""Of the long run's arrivals: a rate holds on that does with each."""


def held_out_replicas() -> dict[str, Configuration]:
    dense, mixture = shape("llama-3.1-8b"), shape("qwen3-30b-a3b")
    fp8 = Precision("fp8", "fp8")
    return {
        "8B, H100, 64 seats": configuration(dense, engine=EngineSettings(max_sequences=64)),
        "8B, L40S, PP 2": configuration(dense, "l40s", Layout(1, 2)),
        "70B, H100, TP 2, PP 4": configuration(shape("llama-3.1-70b"), "h100-sxm", Layout(2, 4)),
        "30B-A3B, H100": configuration(mixture, "h100-sxm", Layout(), fp8, engine=EngineSettings(max_sequences=256)),
        "30B-A3B, H200, PP 2": configuration(mixture, "h200-sxm", Layout(1, 2), fp8),
    }


def holds_on(of: Configuration, traffic: Traffic, requests_per_s: float, requests: int, seed: int = SEEDS[0]) -> bool:
    """Is an open load still served after so many requests a lane? One draw, from an empty replica."""
    prompts, outputs, arrivals_s = sampled_requests(traffic, requests, seed)
    schedule = of.schedule(traffic.shared_prefix_fraction)
    schedule = replace(schedule, contending_lanes=of.batches - 1)
    per_lane = requests_per_s / of.lanes
    trace = simulate(of.tables(), schedule, prompts, outputs, arrivals_s=arrivals_s / per_lane, notes_gaps=False)
    fifths = [float(np.mean(one)) for one in np.array_split(trace.time_to_first_token_s, 5)]
    return fifths[4] <= GROWN * max(fifths[1:3]) + 1.0


@dataclass(frozen=True, slots=True)
class Claim:
    """What one replica is said to sustain under each goal, and whether that holds on, in requests per second."""

    replica: str
    traffic: str
    crowd: float
    sustained: dict[str, float]
    holds: dict[str, bool]


def claims(requests: int, ease: float, *, is_held_out: bool = False) -> Iterator[Claim]:
    """ease: of each rate, the share that is offered."""
    machines, traffics, seeds = (
        (held_out_replicas(), HELD_OUT_TRAFFICS, HELD_OUT_SEEDS) if is_held_out else (replicas(), TRAFFICS, SEEDS)
    )
    for (name, of), (lengths, traffic) in product(machines.items(), traffics.items()):
        crowd = capacity_requests_per_s(of, of.tables(), traffic)
        sustained, holds = {}, {}
        for goal, asked in GOALS.items():
            runs = Runs((0, True), of, traffic, TableMemo())
            found = CandidateReplica(runs, asked, ANCHOR * crowd, ANCHOR * crowd).bracket(is_settled).holds
            sustained[goal] = found
            holds[goal] = found <= 0.0 or all(holds_on(of, traffic, ease * found, requests, seed) for seed in seeds)
        yield Claim(name, lengths, crowd, sustained, holds)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.long_capacities", description=__doc__)
    parser.add_argument("--requests", type=int, default=60_000, help="of a long run, each lane (default 60,000)")
    parser.add_argument("--ease", type=float, default=EASE, help=f"share of each rate that is offered (default {EASE})")
    parser.add_argument(
        "--held-out", action="store_true", help="replicas, lengths and arrivals that nothing was chosen by"
    )
    options = parser.parse_args()
    table = Table("replica", "prompt → reply", "a crowd completes", *(f"target {goal}" for goal in GOALS))
    found = list(claims(options.requests, options.ease, is_held_out=options.held_out))
    for one in found:
        each = (f"{one.sustained[goal]:.2f}{'' if one.holds[goal] else ', does not hold on'}" for goal in GOALS)
        table.add_row(one.replica, one.traffic, f"{one.crowd:.2f}", *each)
    Console(width=140).print(table)
    wrong = sum(not held for one in found for held in one.holds.values())
    print(
        f"{len(found) * len(GOALS)} rates in requests per second, tried at {options.ease:.0%}: {wrong} do not hold on"
    )


if __name__ == "__main__":
    main()
