"""One evaluation for everything: the stated case, both ends of each input, and the draws, as rows of one table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from solver.tco.alternatives import REQUIRED, SPOT_REQUIRED, Alternative, PurchasedFleet, RentedFleet, Scenario
from solver.tco.errors import CostInputError
from solver.tco.figures import QUANTITIES, Array, Figure, draw

STATED_ROW = 0
IDLE_ROW = 1
BUSY_ROW = 2
FIRST_SWING_ROW = 3
MOST_DRAWS = 20_000

SwingMode: TypeAlias = Literal["step", "range"]
"""``step``: each input up and down by a fraction of itself. ``range``: to its low and high, by the step without one."""

_OPTIONAL = ("grid_kg_co2e_per_kwh", "water_l_per_kwh")
_ENERGY = ("peak_kw_per_node", "idle_power_fraction", "serving_power_fraction", "power_usage_effectiveness")
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
    """values: each input as a column. inputs: those varied, in the order of their pairs of rows."""

    values: dict[str, Array]
    inputs: tuple[str, ...]
    ends: tuple[tuple[float, float], ...]

    @property
    def first_draw_row(self) -> int:
        return FIRST_SWING_ROW + 2 * len(self.inputs)


def inputs_used(alternative: Alternative, scenario: Scenario) -> dict[str, Figure]:
    """The figures that enter this alternative's cost or energy; its own stand before the scenario's."""
    merged = {**scenario.figures, **alternative.figures}
    names: Sequence[str] = REQUIRED[type(alternative)]
    if isinstance(alternative, RentedFleet):
        names = (*names, *(SPOT_REQUIRED if alternative.interruptible else ()), *_ENERGY, *_OPTIONAL)
    elif isinstance(alternative, PurchasedFleet):
        residual = _RESIDUAL[:1] if "residual_fraction" in merged else _RESIDUAL[1:]
        finance = ("finance_fraction_per_year",) if alternative.finance_term_months is not None else ()
        names = (*names, *residual, *finance, *_OPTIONAL)
    return {name: merged[name] for name in names if name in merged}


def sample(alternative: Alternative, scenario: Scenario, sampling: Sampling) -> Samples:
    """The table of inputs for one alternative.

    A figure of the scenario has the same draws in every alternative; a figure of the alternative its own.
    """
    figures = inputs_used(alternative, scenario)
    inputs = tuple(sorted(figures))
    rows = FIRST_SWING_ROW + 2 * len(inputs) + sampling.draws
    values: dict[str, Array] = {}
    ends: list[tuple[float, float]] = []
    for position, name in enumerate(inputs):
        figure = figures[name]
        column = np.full(rows, figure.typical)
        low, high = _ends(name, figure, sampling)
        ends.append((low, high))
        swing_row = FIRST_SWING_ROW + 2 * position
        column[swing_row], column[swing_row + 1] = low, high
        if name == "utilisation_fraction":
            column[IDLE_ROW], column[BUSY_ROW] = 0.0, 1.0
        if sampling.draws:
            stream = f"{alternative.name}:{name}" if name in alternative.figures else name
            column[-sampling.draws :] = draw(figure, stream, sampling.draws, sampling.seed)
        values[name] = column[:, np.newaxis]
    return Samples(values, inputs, tuple(ends))


def _ends(name: str, figure: Figure, sampling: Sampling) -> tuple[float, float]:
    if sampling.swing_mode == "range" and figure.low < figure.high:
        return figure.low, figure.high
    domain = QUANTITIES[name]
    return figure.stepped(1.0 - sampling.swing_fraction, domain), figure.stepped(1.0 + sampling.swing_fraction, domain)
