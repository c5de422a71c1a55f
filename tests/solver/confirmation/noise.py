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
        return self.replayed(requests_per_s, seeds)


def made_up(replayed: Replayed) -> MadeUpRuns:
    on = configuration(shape("llama-3.1-8b"))
    return MadeUpRuns((0, False), on, CHAT, TableMemo(), replayed=replayed)


def noisy(seed: int, saturated_fraction: float = 0.1) -> MadeUpRuns:
    """Percentiles that grow with the rate on the whole, by far less than they differ from one rate to the next; at times none."""

    def replayed(requests_per_s: float, seeds: tuple[int, ...]) -> Latencies | None:
        # Of each draw by itself: with which others it is made is no matter of what it says.
        middle = random.Random(f"{seed} {requests_per_s!r}").gauss(0.4 * math.log(requests_per_s / 10.0), 1.0)
        of_draw = [random.Random(f"{one} of {seed} at {requests_per_s!r}") for one in seeds]
        if any(rng.random() < saturated_fraction for rng in of_draw):
            return None
        return Latencies(
            *(
                np.array([[math.exp(middle + rng.gauss(0.0, 0.3)) for _ in PERCENTILES] for rng in of_draw])
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
