"""The best plan where what replicas sustain falls with their number: branch and bound over that number.

With c_n what a replica of n sustains, c_1 ≥ c_2 ≥ …, the plans of least ≤ n ≤ most replicas (a box) are among those that are feasible
at c_least and have at most ``most`` replicas. So the best of these bounds the box, and where it has no more than ``least`` replicas it
is true: it sustains at its own number at least as much. Else the box is divided.

What such a plan is made of may still make a true one, with more replicas (``true``): the price of that ends the search of every box in
which all is dearer, and where time ends first it is the answer.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

HARDLY_MORE = 2.0
"""Times as many replicas as were reckoned with."""
FEW = 4
"""Replicas of a workload up to which a box is looked at before any plan is known."""

Counts = tuple[int, ...]
"""Of replicas, by workload."""
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class CountBox:
    """Numbers of replicas by workload, from ``least`` to ``most``; None is no limit."""

    least: Counts
    most: tuple[int | None, ...]

    @property
    def is_open_ended(self) -> bool:
        """Is no number too many? One such box is left at any time: what is divided leaves one of its parts without a limit."""
        return all(most is None for most in self.most)

    def parts(self, copies: Counts) -> tuple["CountBox", "CountBox"]:
        """Two boxes with the same plans, the one to be looked at first in front; copies: of a plan that has more than ``least`` of some.

        A box without a limit is divided at the plan, since fewer replicas are then likely too few. One with a limit is divided in the
        middle of its ratio: what replicas find falls most over the first of them. So a plan of hardly more replicas than were
        reckoned with is likely true, and one of many more is not, while what fewer sustain is known already.

        >>> CountBox((4,), (None,)).parts((5,))
        (CountBox(least=(5,), most=(None,)), CountBox(least=(4,), most=(4,)))
        >>> CountBox((1,), (None,)).parts((9,))
        (CountBox(least=(1,), most=(8,)), CountBox(least=(9,), most=(None,)))
        >>> CountBox((1,), (8,)).parts((8,))
        (CountBox(least=(1,), most=(2,)), CountBox(least=(3,), most=(8,)))
        """
        ratios = [count / least for count, least in zip(copies, self.least, strict=True)]
        w = ratios.index(max(ratios))
        least, most = self.least[w], self.most[w]
        middle = copies[w] if most is None else max(least + 1, min(most, math.ceil(math.sqrt(least * most))))
        more, fewer = (
            CountBox(_with(self.least, w, middle), self.most),
            CountBox(self.least, _with(self.most, w, middle - 1)),
        )
        return (more, fewer) if middle <= HARDLY_MORE * least else (fewer, more)


Value = TypeVar("Value")


def _with(values: tuple[Value, ...], position: int, value: Value) -> tuple[Value, ...]:
    return (*values[:position], value, *values[position + 1 :])


@dataclass(frozen=True, slots=True)
class Solved(Generic[Answer]):
    """A box's problem at what replicas sustain where there are ``least``. value: of its plan, infinite where it has none; bound: of all
    its plans, infinite where there is none. copies: replicas of its plan."""

    answer: Answer
    value: float
    bound: float
    copies: Counts | None


@dataclass(frozen=True, slots=True)
class BestOfBoxes(Generic[Answer]):
    """The best true plan. value, bound: infinite where no plan exists; value alone, where none was found.

    refused: of the box without a limit that has no plan, where there is one: whatever is asked why no number of replicas will do.
    """

    best: Solved[Answer] | None
    bound: float
    refused: Solved[Answer] | None

    @property
    def value(self) -> float:
        return math.inf if self.best is None else self.best.value


def best_of_boxes(
    solve: Callable[[CountBox, Solved[Answer] | None], Solved[Answer] | None],
    workloads: int,
    gap_fraction: float,
    goes_on: Callable[[], bool],
    true: Callable[[Solved[Answer]], Solved[Answer] | None] = lambda _: None,
) -> BestOfBoxes[Answer] | None:
    """The least value over all numbers of replicas, with a bound. ``solve`` is told the best so far, to which plans that are no better
    may be left out; it says None where it finds neither plan nor proof in its time. So does this where that is all there is.

    true: a true plan made of what one is made of that has more replicas than were reckoned with, if there is one; asked until there is.
    goes_on: is there time for another box? gap_fraction: of the value, at which the search ends.
    """
    waiting: list[tuple[float, CountBox]] = [(-math.inf, CountBox((1,) * workloads, (None,) * workloads))]
    left: list[float] = []
    best: Solved[Answer] | None = None
    refused: Solved[Answer] | None = None
    is_known = False
    while waiting and (not is_known or goes_on()):
        waiting.sort(key=lambda one: one[0])
        if best is not None and waiting[0][0] >= best.value - gap_fraction * abs(best.value):
            break
        above, box = waiting.pop(0 if best is not None else _until_a_plan_is_known(waiting))
        solved = solve(box, best)
        if solved is None:
            left.append(above)
            continue
        is_known = True
        bound = max(above, solved.bound)
        if solved.copies is None:
            if not math.isinf(bound):
                left.append(bound)
            elif box.is_open_ended:
                refused = solved
        elif all(count <= least for count, least in zip(solved.copies, box.least, strict=True)):
            left.append(min(bound, solved.value))
            if best is None or solved.value < best.value:
                best = solved
        else:
            waiting = [*((bound, part) for part in box.parts(solved.copies)), *waiting]
            if best is None:
                best = true(solved)
    if not is_known:
        return None
    bounds = [*left, *(bound for bound, _ in waiting), math.inf if best is None else best.value]
    return BestOfBoxes(best, min(bounds), refused)


def _until_a_plan_is_known(waiting: list[tuple[float, CountBox]]) -> int:
    """The box in front where it has no limit, or so few replicas that it is soon looked at; else one without a limit, since those lead to a
    plan."""
    open_ended = [n for n, (_, box) in enumerate(waiting) if box.is_open_ended]
    front = waiting[0][1]
    is_soon = all(most is not None and most <= FEW for most in front.most)
    return 0 if is_soon or not open_ended else open_ended[0]
