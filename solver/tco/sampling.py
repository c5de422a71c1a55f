"""One evaluation for everything: the stated case, both ends of each input, and the draws, as rows of one table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from solver.tco.alternatives import (
    REQUIRED,
    SPOT_REQUIRED,
    WHERE_STATED,
    Alternative,
    PurchasedFleet,
    RentedFleet,
    Scenario,
    Single,
    parts_of,
)
from solver.tco.errors import CostInputError
from solver.tco.figures import QUANTITIES, Array, Figure, draw

STATED_ROW = 0
IDLE_ROW = 1
BUSY_ROW = 2
FIRST_SWING_ROW = 3
MOST_DRAWS = 20_000

SwingMode: TypeAlias = Literal["step", "range"]
"""``step``: each input up and down by a fraction of itself. ``range``: to its low and high, by the step without one."""

CARBON = "grid_kg_co2e_per_kwh"
_OPTIONAL = (CARBON, "water_l_per_kwh")
_ENERGY = ("peak_w_per_node", "idle_power_fraction", "serving_power_fraction", "power_usage_effectiveness")
_RESIDUAL = ("residual_fraction", "residual_fraction_after_3_years", "residual_fraction_after_5_years")


@dataclass(frozen=True, slots=True)
class Sampling:
    """How inputs are varied. Equal settings and inputs give equal results."""

    draws: int = 1000
    seed: int = 0
    swing_mode: SwingMode = "step"
    swing_fraction: float = 0.2

    def __post_init__(self) -> None:
        if not 0 <= self.draws <= MOST_DRAWS:
            raise CostInputError("draws", f"must be between 0 and {MOST_DRAWS}; got {self.draws}")
        if self.seed < 0:
            raise CostInputError("seed", "must not be negative")
        if not 0.0 < self.swing_fraction < 1.0:
            raise CostInputError("swing_fraction", "must lie between 0 and 1")


@dataclass(frozen=True, slots=True)
class Samples:
    """values: each part's inputs as columns. inputs: those varied, in the order of their pairs of rows, of which there are
    two sets: the swings asked for, then the ends of each input's own range; ends: the values of the swings, None where
    parts of a mixed fleet differ.
    """

    values: tuple[dict[str, Array], ...]
    inputs: tuple[str, ...]
    ends: tuple[tuple[float, float] | None, ...]

    def range_rows(self, name: str) -> tuple[int, int] | None:
        """The rows with one input at the low and at the high end of its range; None where it does not enter."""
        if name not in self.inputs:
            return None
        row = FIRST_SWING_ROW + 2 * (len(self.inputs) + self.inputs.index(name))
        return row, row + 1


def inputs_used(alternative: Single, scenario: Scenario) -> dict[str, Figure]:
    """The figures that enter this alternative's cost or energy; its own stand before the scenario's."""
    merged = {**scenario.figures, **alternative.figures}
    names: Sequence[str] = REQUIRED[type(alternative)]
    if isinstance(alternative, RentedFleet):
        names = (*names, *(SPOT_REQUIRED if alternative.interruptible else ()), *_ENERGY, *_OPTIONAL)
        if CARBON not in alternative.figures:
            merged.pop(CARBON, None)  # the scenario's grid feeds what is owned; a rented machine stands elsewhere
    elif isinstance(alternative, PurchasedFleet):
        residual = _RESIDUAL[:1] if "residual_fraction" in merged else _RESIDUAL[1:]
        finance = ("finance_fraction_per_year",) if alternative.finance_term_months is not None else ()
        names = (*names, *residual, *finance, *_OPTIONAL)
    names = (*names, *WHERE_STATED[type(alternative)])
    return {name: merged[name] for name in names if name in merged}


def sample(alternative: Alternative, scenario: Scenario, sampling: Sampling) -> Samples:
    """The table of inputs for one alternative.

    An input has the same draws in every alternative and in every part of a mixed fleet, each within its own range: a
    market in which one machine is dear is one in which they all are, and differences between alternatives are not noise.
    """
    parts = parts_of(alternative)
    used = [inputs_used(part, scenario) for part in parts]
    inputs = tuple(sorted({name for figures in used for name in figures}))
    rows = FIRST_SWING_ROW + 4 * len(inputs) + sampling.draws
    values: list[dict[str, Array]] = [{} for _ in parts]
    ends: list[tuple[float, float] | None] = []
    for position, name in enumerate(inputs):
        reached = set()
        for figures, columns in zip(used, values, strict=True):
            if name in figures:
                low, high = _ends(name, figures[name], sampling)
                reached.add((low, high))
                columns[name] = _column(name, figures[name], rows, (position, len(inputs)), (low, high), sampling)
        ends.append(reached.pop() if len(reached) == 1 else None)
    return Samples(tuple(values), inputs, tuple(ends))


def _column(
    name: str,
    figure: Figure,
    rows: int,
    place: tuple[int, int],
    ends: tuple[float, float],
    sampling: Sampling,
) -> Array:
    """One input over all rows. place: its position among the inputs, and how many there are."""
    column = np.full(rows, figure.typical)
    position, inputs = place
    swing_row, range_row = FIRST_SWING_ROW + 2 * position, FIRST_SWING_ROW + 2 * (inputs + position)
    column[swing_row : swing_row + 2] = ends
    column[range_row : range_row + 2] = figure.low, figure.high
    if name == "utilisation_fraction":
        column[IDLE_ROW], column[BUSY_ROW] = 0.0, 1.0
    if sampling.draws:
        column[-sampling.draws :] = draw(figure, name, sampling.draws, sampling.seed)
    return column[:, np.newaxis]


def _ends(name: str, figure: Figure, sampling: Sampling) -> tuple[float, float]:
    if sampling.swing_mode == "range" and figure.low < figure.high:
        return figure.low, figure.high
    domain = QUANTITIES[name]
    return figure.stepped(1.0 - sampling.swing_fraction, domain), figure.stepped(1.0 + sampling.swing_fraction, domain)
