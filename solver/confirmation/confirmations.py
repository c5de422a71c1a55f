"""What simulation has found of replicas that serve several traffic classes, and the largest share of a mix that holds."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from solver.candidates.screening import Screened
from solver.confirmation.facts import FactsMemo
from solver.fleet.deployments import Role
from solver.traffic_classes import ALL_CLASSES, ALONE, ClassSet

Floats = NDArray[np.float64]

OPTIMISM = 1.2
"""How far above what simulation found for those like it an unsimulated candidate is still believed.

Too small, and a candidate better than those like it is never tried: at 1.06 one plan in ten of random small markets was dearer than
the best by 5 to 25 %, at 1.2 one in forty. Larger values cost more simulations: twice as many at 1.3 under tight targets.
"""
MOST_TRIES = 7
CLOSE_ENOUGH = 0.97
"""A capacity whose worst value is within 3 % below its target is taken: simulation noise is of that size."""
RATE_RESOLUTION = 0.01
STEP_WHEN_SATURATED = 0.7
LARGEST_STEP = 0.4
FIRST_EXPONENT = 0.5
"""Near its target a value grows about with the square of the rate; each guess that fails assumes a flatter curve."""
Value = TypeVar("Value")
Kind = TypeVar("Kind")


MixKey = tuple[int, int, ClassSet]
"""Workload, row, and the traffic classes that its replicas take."""
RoleKey = tuple[int, int, Role]
"""Workload, row, and whether its replicas prefill or decode."""
Scales = Mapping[ClassSet, Floats]
"""Factors on screened capacities, (rows, classes), by the classes that replicas take."""


@dataclass(slots=True)
class Confirmations:
    """What simulation has found so far, by (workload, row): capacities that hold and capacities that do not.

    Of workloads with traffic classes it is known by the classes that replicas take (``solver.confirmation.mixes``).
    """

    held_mixes: dict[tuple[int, int], tuple[tuple[float, ...], ...]] = field(default_factory=dict)
    """Rates by class, per replica, seen to meet the targets together."""
    mix_factors: dict[MixKey, tuple[float, ...]] = field(default_factory=dict)
    """Factors by class on screened capacities, where a mix did not hold; those of a class alone by ALONE."""
    mixes_failed: dict[MixKey, int] = field(default_factory=dict)
    class_sets: dict[int, tuple[ClassSet, ...]] = field(default_factory=dict)
    """By workload: classes that replicas may be kept for, beside replicas that take all."""
    pessimistic: bool = False
    """Are mixes that nobody has simulated no longer believed?"""
    role_holds: dict[RoleKey, float] = field(default_factory=dict)
    """Rates of prefill and decode replicas, per replica, seen to meet what is laid on the role."""
    role_capacity: dict[RoleKey, float] = field(default_factory=dict)
    """The same of those that did not hold what a plan asked of them: what they carry."""
    facts: FactsMemo = field(default_factory=FactsMemo)
    """What single replicas sustain of workloads without traffic classes; copies share it, since it is true of all."""
    simulations: int = 0
    spent_s: float = 0.0
    """Seconds spent so far, on plans and alternatives: the time limit holds for their sum."""

    def copied(self) -> "Confirmations":
        """What is known so far, for another search to add to."""
        return replace(
            self,
            held_mixes=dict(self.held_mixes),
            mix_factors=dict(self.mix_factors),
            mixes_failed=dict(self.mixes_failed),
            class_sets=dict(self.class_sets),
            role_holds=dict(self.role_holds),
            role_capacity=dict(self.role_capacity),
        )

    def renumbered(self, workload: int, number: Callable[[int], int | None]) -> "Confirmations":
        """What is known with a workload's rows under other numbers; None: the row is there no longer."""

        def moved(found: Mapping[tuple[int, int], Value]) -> dict[tuple[int, int], Value]:
            pairs = (((w, number(r) if w == workload else r), value) for (w, r), value in found.items())
            return {(w, r): value for (w, r), value in pairs if r is not None}

        def kinds(found: Mapping[tuple[int, int, Kind], Value]) -> dict[tuple[int, int, Kind], Value]:
            pairs = (((w, number(r) if w == workload else r, k), value) for (w, r, k), value in found.items())
            return {(w, r, k): value for (w, r, k), value in pairs if r is not None}

        return replace(
            self,
            held_mixes=moved(self.held_mixes),
            mix_factors=kinds(self.mix_factors),
            mixes_failed=kinds(self.mixes_failed),
            class_sets=dict(self.class_sets),
            role_holds=kinds(self.role_holds),
            role_capacity=kinds(self.role_capacity),
        )

    def scales(self, screened: Sequence[tuple[int, Screened]]) -> dict[int, Scales]:
        """Factors by (number of a) workload, classes and row on capacities nobody has simulated, at most 1.

        What screening leaves out grows with the speed of the device and of the layout, and is much the same for
        candidates that share both: a row gets the best ratio seen among those like it, raised by OPTIMISM. Of others it says nothing: a
        mix that hardly holds on one device once made all devices look as bad, and a plan of separate replicas 54 % dearer the best.
        """
        return {w: self._scales_of(w, one) for w, one in screened}

    def _scales_of(self, workload: int, screened: Screened) -> Scales:
        alone = self._class_factors(workload, screened, ALONE)
        return {
            classes: np.minimum(alone, self._class_factors(workload, screened, classes))
            * self._believed(workload, screened, classes)
            for classes in (ALL_CLASSES, *self.class_sets.get(workload, ()))
        }

    def _believed(self, workload: int, screened: Screened, classes: ClassSet) -> Floats | float:
        """1 for rows that may take these classes, 0 for others, (rows, 1)."""
        if not self.pessimistic or len(classes) == 1:
            return 1.0
        rows = [row for w, row, of in self.mix_factors if w == workload and of == classes]
        for (w, row), mixes in self.held_mixes.items():
            if w == workload and any(sum(rate > 0.0 for rate in mix) > 1 for mix in mixes):
                rows.append(row)
        assumed = np.zeros((len(screened.space.rows), 1))
        assumed[rows] = 1.0
        return assumed

    def _class_factors(self, workload: int, screened: Screened, classes: ClassSet) -> Floats:
        """(rows, classes): what was found of a row itself, else of those like it."""
        found = {row: f for (w, row, of), f in self.mix_factors.items() if w == workload and of == classes}
        columns = []
        for number in range(len(screened.classes)):
            known = [(row, factors[number]) for row, factors in found.items() if factors[number] < 1.0]
            column = self._factors(screened, known)
            for row, factor in known:
                column[row] = factor
            columns.append(column)
        return np.stack(columns, axis=1)

    def _factors(self, screened: Screened, corrected: list[tuple[int, float]]) -> Floats:
        similar = screened.space.similar
        best_of_kin: dict[int, float] = {}
        for row, ratio in corrected:
            family = int(similar[row])
            best_of_kin[family] = max(best_of_kin.get(family, 0.0), ratio)
        factors = np.ones(len(similar))
        for family, ratio in best_of_kin.items():
            if ratio > 0.0:
                factors[similar == family] = ratio * OPTIMISM
        limited: Floats = np.minimum(factors, 1.0)
        return limited


def largest_holding(
    ratio_of: Callable[[float], float], wanted: float, held: float = 0.0, most_tries: int = MOST_TRIES
) -> float:
    """``wanted`` where its ratio is at most 1, else the largest rate found below it whose ratio is.

    held: a lower rate that is known to hold; it is the answer where nothing above it is found to.
    """
    high, low = wanted, held
    ratio = ratio_of(high)
    if ratio <= 1.0:
        return high
    low_ratio = CLOSE_ENOUGH
    exponent = FIRST_EXPONENT
    guess = high * (STEP_WHEN_SATURATED if math.isinf(ratio) else max(LARGEST_STEP, ratio**-exponent))
    for _ in range(most_tries):
        if low > 0.0 and (high - low) <= RATE_RESOLUTION * high:
            break
        guess = max(guess, low + 0.1 * (high - low))
        found = ratio_of(guess)
        if found <= 1.0:
            low, low_ratio = guess, max(found, 1e-6)
            if found >= CLOSE_ENOUGH:
                break
        else:
            high, ratio = guess, found
        if low <= 0.0:
            exponent *= 2.0
            guess = high * (STEP_WHEN_SATURATED if math.isinf(ratio) else max(LARGEST_STEP, ratio**-exponent))
        elif math.isinf(ratio):
            guess = (low + high) / 2.0
        else:
            share = -math.log(low_ratio) / (math.log(ratio) - math.log(low_ratio))
            guess = low + min(max(share, 0.1), 0.9) * (high - low)
    return low
