"""Runs whose verdicts come from anywhere: what a search over rates promises must not rest on simulation being smooth."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solver.capacity.runs import Runs, TableMemo
from solver.replay.latencies import Latencies
from solver.workload import PERCENTILES
from tests.llm_shapes import shape
from tests.solver.planning_cases import CHAT
from tests.solver.samples import configuration

Replayed = Callable[[float, tuple[int, ...]], Latencies | None]


@dataclass(slots=True)
class MadeUpRuns(Runs):
    """Everything of Runs but the simulation itself, which is a function of the rate and the seeds."""

    replayed: Replayed = lambda _rate, _seeds: None

    def _simulated(self, requests_per_s: float, seeds: tuple[int, ...], requests: int) -> Latencies | None:  # noqa: ARG002  as Runs has it
        self.simulations += len(seeds)
        return self.replayed(requests_per_s, seeds)


def made_up(replayed: Replayed) -> MadeUpRuns:
    on = configuration(shape("llama-3.1-8b"))
    return MadeUpRuns((0, False), on, CHAT, TableMemo(), replayed=replayed)


def noisy(seed: int, saturated_fraction: float = 0.1) -> MadeUpRuns:
    """Percentiles that grow with the rate on the whole, by far less than they differ from one rate to the next; at times none."""

    def replayed(requests_per_s: float, seeds: tuple[int, ...]) -> Latencies | None:
        rng = random.Random(f"{seed} {requests_per_s!r} {seeds}")
        if rng.random() < saturated_fraction:
            return None
        middle = rng.gauss(0.4 * math.log(requests_per_s / 10.0), 1.0)
        return Latencies(
            *(
                np.array([[math.exp(middle + rng.gauss(0.0, 0.3)) for _ in PERCENTILES] for _ in seeds])
                for _ in range(4)
            )
        )

    return made_up(replayed)


def growing(knee_requests_per_s: float, exponent: float) -> MadeUpRuns:
    """Every percentile is (rate / knee)^exponent seconds in every draw, however short."""

    def replayed(requests_per_s: float, seeds: tuple[int, ...]) -> Latencies:
        value = (requests_per_s / knee_requests_per_s) ** exponent
        return Latencies(*(np.full((len(seeds), len(PERCENTILES)), value) for _ in range(4)))

    return made_up(replayed)
