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
from solver.engine.simulate import simulate
from solver.layout import Layout
from solver.lengths import lognormal_lengths, uniform_lengths
from solver.precision import Precision
from solver.prediction.lasting_queue import LastingQueue, lasting_queue
from solver.replay.one_stream import capacity_requests_per_s, sampled_requests
from solver.workload import Load, Targets, Traffic
from tests.bench.long_capacities import ANCHOR
from tests.llm_shapes import shape
from tests.solver.samples import configuration

REQUESTS = 20_000
BURST_OVER_SEATS = 3
SHARE = 0.85
"""Of what replicas sustain, that plans ask of them unless told otherwise."""
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


if __name__ == "__main__":
    main()
