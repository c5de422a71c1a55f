"""What simulation has found of one candidate under one traffic, kept for every question that asks about it.

A run depends on the configuration, the shape of the requests and their rate, and on nothing else: not on targets, prices,
limits or other candidates. So whatever a plan, its explanations and later requests ask is simulated once.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field

from solver.capacity.goal import (
    DRAW_EASE,
    DRAW_EXCESS,
    IDLE_EXCESS,
    QUICK_EASE,
    QUICK_EXCESS,
    QUICK_LIKELY,
    SPARSE_FRACTION,
    Goal,
)
from solver.deployment.configuration import Configuration
from solver.errors import InvalidInputError, SaturatedError
from solver.replay.draw_sizes import DRAW_SEEDS, FURTHER_SEEDS, QUICK_REQUESTS, QUICK_SEED
from solver.replay.latencies import Latencies, SteadyLane
from solver.replay.long_run import draw_requests, is_sure
from solver.step.tables import StepTables
from solver.workload import Traffic

MOST_TABLES = 48
"""Step tables kept at once: some hundred kilobytes each, and a millisecond to make."""


InTime = Callable[[], bool]
"""Is there time left to simulate?"""


def always() -> bool:
    return True


Key = tuple[int, bool]
"""Row of a space, and whether its constants are those that factors of a measured configuration were made against."""


class TableMemo:
    """The step tables, and lanes ready to be replayed, that were used last."""

    def __init__(self, most: int = MOST_TABLES) -> None:
        self._tables: OrderedDict[Key, StepTables] = OrderedDict()
        self._lanes: OrderedDict[tuple[Key, Traffic], SteadyLane] = OrderedDict()
        self._most = most

    def of(self, key: Key, configuration: Configuration) -> StepTables:
        """The tables of a configuration known by ``key``."""
        found = self._tables.pop(key, None)
        if found is None:
            found = configuration.tables()
        self._tables[key] = found
        while len(self._tables) > self._most:
            self._tables.popitem(last=False)
        return found

    def lane(self, of: "Runs") -> SteadyLane:
        """The lane that runs are made on."""
        key = (of.key, of.traffic)
        found = self._lanes.pop(key, None)
        if found is None:
            found = SteadyLane(of.configuration, self.of(of.key, of.configuration), of.traffic)
        self._lanes[key] = found
        while len(self._lanes) > self._most:
            self._lanes.popitem(last=False)
        return found


@dataclass(slots=True)
class Looks:
    """What is known of one rate: percentiles of a quick look, of a first draw and of all. None: above capacity, or not asked."""

    quick: Latencies | None = None
    first: Latencies | None = None
    whole: Latencies | None = None
    known: int = 0
    """How many of the three have been asked for."""
    completes: float | None = None
    """Requests per second that are completed at a rate above capacity, where a look said so."""


@dataclass(slots=True)
class Runs:
    """``key``: by what ``tables`` knows the configuration. simulations: how many draws have been made for it."""

    key: Key
    configuration: Configuration
    traffic: Traffic
    tables: TableMemo
    by_rate: MutableMapping[float, Looks] = field(default_factory=dict)
    simulations: int = 0

    def holds(
        self, requests_per_s: float, goal: Goal, *, simulate: bool = True, in_time: InTime = always
    ) -> bool | None:
        """Does one replica keep within the goal at this rate? None: not known without simulating, and that was not asked for, or
        there is no time for a whole long run.

        Decided by a quick look and a first draw where those are clear, else by the whole long run. The verdict at a rate is
        a function of the goal that never turns from yes to no as a target is loosened.
        """
        clear = self.clearly_holds(requests_per_s, goal, simulate=simulate)
        if clear is not None:
            return clear
        looks = self.by_rate.get(requests_per_s)
        if (looks is None or looks.known < 3) and not (simulate and in_time()):
            return None
        whole = self._looks(requests_per_s, 3).whole
        return whole is not None and goal.ratio_of(whole) <= 1.0

    def clearly_holds(self, requests_per_s: float, goal: Goal, *, simulate: bool = True) -> bool | None:
        """The same where a quick look or one draw says so; None where they do not, or it is not known."""
        looks = self.by_rate.get(requests_per_s)
        if not simulate and (looks is None or looks.known < 1):
            return None
        quick = self._looks(requests_per_s, 1).quick
        if quick is None:
            return False
        first_look = goal.ratio_of(quick)
        if first_look > QUICK_EXCESS:
            return False
        if not simulate and (looks is None or looks.known < 2):
            return None
        first = self._looks(requests_per_s, 2).first
        if first is None:
            return False
        one_draw = goal.ratio_of(first)
        if one_draw > DRAW_EXCESS:
            return False
        # Where many seats are taken, crowds come and go slowly: another draw may be much harder, or above capacity.
        is_sparse = first.in_flight_fraction <= SPARSE_FRACTION
        return True if is_sparse and first_look <= QUICK_EASE and one_draw <= DRAW_EASE else None

    def is_not_too_much(self, requests_per_s: float, goal: Goal) -> bool:
        """Does a quick look leave it open that a replica keeps within the goal at this rate?"""
        quick = self._looks(requests_per_s, 1).quick
        return quick is not None and goal.ratio_of(quick) <= QUICK_EXCESS

    def completes(self, requests_per_s: float) -> float | None:
        """Requests per second that a replica completes of this rate, where a look has seen that to be above capacity; None elsewhere."""
        looks = self.by_rate.get(requests_per_s)
        return None if looks is None else looks.completes

    def is_not_clearly_too_much(self, requests_per_s: float, goal: Goal) -> bool:
        """Does one draw of a long run, too, leave it open?"""
        return self.clearly_holds(requests_per_s, goal) is not False

    def is_likely_to_hold(self, requests_per_s: float, goal: Goal, *, simulate: bool = True) -> bool:
        """Does a quick look say that a replica keeps well within the goal at this rate? False, too, where that is not known."""
        looks = self.by_rate.get(requests_per_s)
        if not simulate and (looks is None or looks.known < 1):
            return False
        quick = self._looks(requests_per_s, 1).quick
        return quick is not None and goal.ratio_of(quick) <= QUICK_LIKELY

    def holds_idle(self, requests_per_s: float, goal: Goal, *, simulate: bool = True) -> bool | None:
        """Does a replica that hardly any request shares keep within the goal, a few per cent aside? As ``holds`` else."""
        looks = self.by_rate.get(requests_per_s)
        if not simulate and (looks is None or looks.known < 1):
            return None
        quick = self._looks(requests_per_s, 1).quick
        return quick is not None and goal.ratio_of(quick) <= IDLE_EXCESS

    def long_run(self, requests_per_s: float) -> Latencies | None:
        """All draws at a rate; None above capacity."""
        return self._looks(requests_per_s, 3).whole

    def _looks(self, requests_per_s: float, known: int) -> Looks:
        """At least the first, the first two or all three of a rate's looks."""
        looks = self.by_rate.setdefault(requests_per_s, Looks())
        if looks.known < 1 <= known:
            looks.quick = self._simulated(requests_per_s, (QUICK_SEED,), QUICK_REQUESTS)
            looks.known = 1
        requests = draw_requests(self.configuration)
        if looks.known < 2 <= known:
            looks.first = self._simulated(requests_per_s, DRAW_SEEDS[:1], requests)
            looks.known = 2
        if looks.known < 3 <= known:
            if looks.first is not None:
                others = self._simulated(requests_per_s, DRAW_SEEDS[1:], requests)
                looks.whole = None if others is None else looks.first.joined(others)
                if looks.whole is not None and not is_sure(looks.whole):
                    further = self._simulated(requests_per_s, FURTHER_SEEDS, requests)
                    looks.whole = None if further is None else looks.whole.joined(further)
            looks.known = 3
        return looks

    def step_tables(self) -> StepTables:
        """Its step times, made anew where they were not used lately."""
        return self.tables.of(self.key, self.configuration)

    def _simulated(self, requests_per_s: float, seeds: tuple[int, ...], requests: int) -> Latencies | None:
        self.simulations += len(seeds)
        try:
            return self.tables.lane(self).latencies(requests_per_s, seeds, requests)
        except SaturatedError as error:
            self.by_rate[requests_per_s].completes = error.capacity_requests_per_s
        except InvalidInputError:
            pass
        return None


MOST_RUNS = 20_000
"""Candidates × traffics whose runs are kept: a few kilobytes each."""


class RunsMemo:
    """Runs by candidate and traffic; what was asked about longest ago is forgotten first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Key, Traffic], Runs] = OrderedDict()
        self._tables = TableMemo()

    def of(self, key: Key, traffic: Traffic, make: Callable[[], Configuration]) -> Runs:
        """The runs of the configuration known by ``key``, which ``make`` gives where there are none yet."""
        found = self._kept.get((key, traffic))
        if found is None:
            found = self._kept[key, traffic] = Runs(key, make(), traffic, self._tables)
            while len(self._kept) > MOST_RUNS:
                self._kept.popitem(last=False)
        return found


def rung(index: int) -> float:
    """Requests per second of one rung of the ladder on which capacities are found.

    >>> round(rung(0), 3), round(rung(78) / rung(70), 3)
    (1.0, 1.01)
    """
    return math.exp(index * LOG_STEP)


def rung_at_least(requests_per_s: float) -> int:
    """The lowest rung that is no lower than a rate."""
    return math.ceil(math.log(requests_per_s) / LOG_STEP - 1e-9)


LOG_STEP = math.log(1.01) / 8
"""A capacity is found to an eighth of one per cent: a plan that needs that little more is not told from one that holds."""
