"""Where the processor seconds of answers go, by named stage: what a missed bar is explained with.

Two tables of the same seconds. By kind of work each second is counted once, in the innermost stage that it is spent in; by what is asked,
with all that is done for it. Functions are timed where they are called, without a profiler, so that Python's part counts for what it takes.
"""

import functools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any
from unittest.mock import patch

from solver.replay.draw_sizes import DRAW_SEEDS, FURTHER_SEEDS, QUICK_SEED

WORK = {
    ("solver.candidates.tabulated", "build_space"): "tabulating step times",
    ("solver.candidates.screening", "screen"): "screening",
    ("solver.candidates.screening", "with_workload"): "screening",
    ("solver.candidates.screening", "at_even_odds"): "screening",
    ("solver.planning.assemble", "assemble"): "candidates and offers put together",
    ("solver.fleet.reach", "within_reach"): "reduction",
    ("solver.fleet.reduce", "reduce_problem"): "reduction",
    ("solver.fleet.highs", "solve_with_highs"): "HiGHS: masters, pricing, whole numbers",
    ("solver.fleet.solve", "solve_fleet"): "fleet problems beside HiGHS",
    ("solver.replay.long_run", "draw_mixed"): "simulation: mixes of traffic classes",
    ("solver.confirmation.loop", "solve_confirmed"): "searches beside all these",
    ("solver.recommend.predicted_lines", "with_estimates"): "predictions of the plan's lines",
    ("service.estimates.predict", "predict"): "predictions of estimates",
    ("solver.candidates.rejections", "rejections"): "reasons of what does not work",
    ("service.recommendations.present_result", "present_result"): "serialisation",
}  # fmt: skip
"""By module and name: the stage that a function's own seconds are counted in."""
ASKED = {
    ("solver.recommend.recommend", "solve_request"): "the plan",
    ("solver.recommend.recommend", "bettered"): "… of it: without its devices, of traffic classes",
    ("solver.explain.sourcing", "sourcing_changes"): "what the buying policy costs",
    ("solver.explain.freed", "lower_precision"): "8-bit formats",
    ("solver.explain.binding", "binding_limits"): "what limits it",
    ("solver.recommend.alternatives", "without_each_device"): "without each device",
    ("solver.recommend.alternatives", "confidence_premium"): "confidence",
    ("solver.why.why_not", "why_not"): "why not",
    ("solver.why.price_curve", "price_curve"): "price curve",
}
LOOKS = {
    (QUICK_SEED,): "simulation: quick looks", DRAW_SEEDS[:1]: "simulation: first draws",
    DRAW_SEEDS[1:]: "simulation: the other draws", FURTHER_SEEDS: "simulation: further draws",
}  # fmt: skip
REST = "reading, storing, HTTP and the rest"


@dataclass
class Stages:
    """count, seconds: by stage, each second in one. asked: by question, overlapping."""

    count: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    asked: dict[str, float] = field(default_factory=dict)
    whole_s: float = 0.0
    _within: threading.local = field(default_factory=threading.local)

    def add(self, stage: str, count: int, seconds: float) -> None:
        self.count[stage] = self.count.get(stage, 0) + count
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds

    def timed(self, of: Callable[..., Any], stage: Callable[..., tuple[str, int]]) -> Callable[..., Any]:
        """The function, its own seconds counted in the stage that its arguments say."""

        @functools.wraps(of)
        def counting(*args: Any, **named: Any) -> Any:
            began, inner = time.process_time(), getattr(self._within, "inner_s", 0.0)
            self._within.inner_s = 0.0
            try:
                return of(*args, **named)
            finally:
                took = time.process_time() - began
                name, count = stage(*args, **named)
                self.add(name, count, took - self._within.inner_s)
                self._within.inner_s = inner + took

        return counting

    def noted(self, of: Callable[..., Any], question: str) -> Callable[..., Any]:
        """The function, all of its seconds counted for the question."""

        @functools.wraps(of)
        def counting(*args: Any, **named: Any) -> Any:
            began = time.process_time()
            try:
                return of(*args, **named)
            finally:
                self.asked[question] = self.asked.get(question, 0.0) + time.process_time() - began

        return counting

    def lines(self) -> list[tuple[str, str, str, str]]:
        """(what, times, processor seconds, share), by work and then by question, dearest first."""
        own = dict(self.seconds)
        own[REST] = max(0.0, self.whole_s - sum(own.values()))
        rows = [(name, str(self.count.get(name, "")), s) for name, s in sorted(own.items(), key=lambda one: -one[1])]
        rows += [(f"asked: {name}", "", s) for name, s in sorted(self.asked.items(), key=lambda one: -one[1])]
        return [(name, count, f"{s:.2f}", f"{s / max(self.whole_s, 1e-9):.0%}") for name, count, s in rows]


@contextmanager
def staged() -> Iterator[Stages]:
    """Counts what is done meanwhile in this process."""
    stages, undo = Stages(), []
    chosen = [(name, stages.timed(_function(name), _always(stage))) for name, stage in WORK.items()]
    for name, question in ASKED.items():
        inner = next((made for known, made in chosen if known == name), None)
        chosen.append((name, stages.noted(inner or _function(name), question)))
    for name, made in chosen:
        undo += _put(_function(name), made)
    from solver.capacity.runs import Runs

    counted = stages.timed(Runs._simulated, lambda _self, _rate, seeds, _count: (LOOKS[seeds], len(seeds)))
    began = time.process_time()
    try:
        with patch.object(Runs, "_simulated", counted):
            yield stages
    finally:
        stages.whole_s = time.process_time() - began
        for module, attribute, before in reversed(undo):
            setattr(module, attribute, before)


def _always(stage: str) -> Callable[..., tuple[str, int]]:
    return lambda *_args, **_named: (stage, 1)


def _function(name: tuple[str, str]) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(import_module(name[0]), name[1])
    return found


def _put(function: Callable[..., Any], made: Callable[..., Any]) -> list[tuple[Any, str, Any]]:
    """Put ``made`` wherever a module names the function; what to put back."""
    undo: list[tuple[Any, str, Any]] = []
    for module in [m for name, m in sys.modules.items() if name.split(".")[0] in ("solver", "service")]:
        for attribute, value in list(vars(module).items()):
            if value is function:
                undo.append((module, attribute, value))
                setattr(module, attribute, made)
    return undo
