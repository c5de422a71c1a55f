"""Fits physical constants to measured runs: ridge towards their priors, robust against bad runs.

    minimise  Σ_runs Σ_metrics ρ(ln(predicted/measured)/w_metric) + Σ_constants (ln(c/c₀)/s)²

ρ is the Huber loss, c₀ the prior and s its spread in logarithms. A run's figures are means over several draws of its requests, and
one that the model refuses to serve counts as far off. Solved by damped Gauss–Newton steps with a Jacobian
from finite differences; a constant never leaves its physical range. Leaving a group of runs out is one further
Gauss–Newton step from the optimum without their rows: exact where the model is linear in the logarithms.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solver.corrections.evidence import WEIGHTS, Measurement, misfits
from solver.step.constants import Constants, law_of

Array = NDArray[np.float64]

DIFFERENCE = 0.03
"""Step of the finite differences, in logarithms: above the granularity of discrete scheduling."""
HUBER = 1.5
ROUNDS = 8
DRAWS = 4
"""Of a run's requests, over which its figures are averaged. Steps are discrete: with one draw, constants that all move by a thousandth at
random change the sum by more than a percent, and with it where the search ends (``tests/bench/host_constants.py``)."""
REFUSED = math.log(2.0)
"""What each figure of a run is taken to be off by that was measured, and that the model says no server could serve."""
LARGEST_STEP = 0.35
CONVERGED = 2e-3
TAKEN_STANDARD_ERROR = 0.5
"""A constant whose standard error exceeds this share of its value keeps its prior."""
LEAST_SPREAD = 0.02


@dataclass(frozen=True, slots=True)
class FittedConstant:
    """value in the unit of the constant's row; standard_error_fraction relative to it."""

    value: float
    prior: float
    standard_error_fraction: float
    taken: bool


@dataclass(frozen=True, slots=True)
class Fit:
    """Fitted constants, with what leaving runs out needs: rows of the last linearisation."""

    constants: Constants
    fitted: Mapping[str, FittedConstant]
    names: tuple[str, ...]
    jacobian: Array
    residuals: Array
    weights: Array
    owners: NDArray[np.int64]
    """Index of the measurement of each row; −1 for the prior's rows."""


def spread_log(constants: Constants, name: str) -> float:
    """Spread of a prior in logarithms: low–high holds nine of ten values, so a quarter of a normal's 90 % width."""
    prior = constants.priors[name]
    low, high = max(prior.low, 1e-3 * abs(prior.value), 1e-9), max(prior.high, 1e-9)
    return max(LEAST_SPREAD, math.log(high / low) / 3.29) if high > low else LEAST_SPREAD


def moved(constants: Constants, names: Sequence[str], steps: Array) -> Constants:
    """Constants times exp(step), inside their physical ranges."""
    values = {}
    for name, step in zip(names, steps, strict=True):
        law, value = law_of(name), constants.priors[name].value
        values[name] = min(max(value * math.exp(float(step)), law.low), law.high)
    return constants.replaced(values, "corrected")


def _rows(measurements: Sequence[Measurement], constants: Constants) -> list[dict[str, float]]:
    return [misfits(m, constants, DRAWS) for m in measurements]


def _stack(rows: Sequence[Mapping[str, float]], keys: Sequence[tuple[int, str]]) -> Array:
    """Misfits in units of what is expected of their metric."""
    return np.array([rows[i].get(metric, REFUSED) / WEIGHTS[metric] for i, metric in keys])


def _slopes(
    rows: Sequence[Mapping[str, float]], others: Sequence[Mapping[str, float]], keys: Sequence[tuple[int, str]]
) -> Array:
    """By how much the misfits of ``others`` are larger. Of a run that either refuses nothing is known: a jump is no slope."""
    changes = [
        (others[i].get(metric, math.nan) - rows[i].get(metric, math.nan)) / WEIGHTS[metric] for i, metric in keys
    ]
    slopes: Array = np.nan_to_num(np.array(changes))
    return slopes


def fit_constants(
    measurements: Sequence[Measurement],
    prior: Constants,
    names: Sequence[str],
    rounds: int = ROUNDS,
    start: Mapping[str, float] | None = None,
    taken: Collection[str] | None = None,
) -> Fit:
    """Fit ``names`` on the measurements, shrunk towards the prior; the search begins there, or at ``start``. rounds: at most; with none
    the constants stay as they start, and what leaving runs out needs is linearised there. taken: which replace their priors, else
    those of little error."""
    names = tuple(n for n in names if n in prior.priors and prior.priors[n].value > 0)
    spreads = np.array([spread_log(prior, n) for n in names])
    position = np.array([math.log((start or {}).get(n, prior.priors[n].value) / prior.priors[n].value) for n in names])
    current = moved(prior, names, position)
    rows = _rows(measurements, current)
    keys = [
        (i, metric)
        for i, m in enumerate(measurements)
        for metric, value in m.measured.items()
        if metric in WEIGHTS and value > 0
    ]
    owners = np.array([i for i, _ in keys] + [-1] * len(names), dtype=np.int64)
    jacobian, residuals, weights = np.zeros((0, 0)), np.zeros(0), np.zeros(0)
    for _ in range(max(rounds, 1)):
        residuals = _stack(rows, keys)
        columns = []
        for k in range(len(names)):
            shifted = position.copy()
            # Downwards where the constant stands at its ceiling, else upwards.
            at_ceiling = current.priors[names[k]].value >= law_of(names[k]).high * 0.97
            shifted[k] += -DIFFERENCE if at_ceiling else DIFFERENCE
            others = _rows(measurements, moved(prior, names, shifted))
            columns.append(_slopes(rows, others, keys) / (shifted[k] - position[k]))
        jacobian = np.vstack([np.array(columns).T, np.diag(1.0 / spreads)])
        full = np.concatenate([residuals, position / spreads])
        weights = np.where(np.abs(full) <= HUBER, 1.0, HUBER / np.maximum(np.abs(full), 1e-12))
        if rounds < 1:
            break
        step = _solve(jacobian, full, weights)
        step = np.clip(step, -LARGEST_STEP, LARGEST_STEP)
        best, loss = 0.0, _loss(residuals, position / spreads)
        for scale in (1.0, 0.5, 0.25, 0.1):
            trial = position + scale * step
            trial_rows = _rows(measurements, moved(prior, names, trial))
            trial_loss = _loss(_stack(trial_rows, keys), trial / spreads)
            if trial_loss < loss:
                best, rows = scale, trial_rows
                break
        position = position + best * step
        current = moved(prior, names, position)
        if best == 0.0 or float(np.max(np.abs(best * step))) < CONVERGED:
            break
    residuals = np.concatenate([_stack(rows, keys), position / spreads])
    errors = _standard_errors(jacobian, weights)
    fitted = {}
    for k, name in enumerate(names):
        known = bool(errors[k] <= TAKEN_STANDARD_ERROR) if taken is None else name in taken
        fitted[name] = FittedConstant(current.priors[name].value, prior.priors[name].value, float(errors[k]), known)
    kept = prior.replaced({n: f.value for n, f in fitted.items() if f.taken}, "corrected")
    return Fit(kept, fitted, names, jacobian, residuals, weights, owners)


def without(fit: Fit, left_out: Sequence[int]) -> Constants:
    """The constants had these measurements (by index) not been there: one Gauss–Newton step from the optimum."""
    keep = ~np.isin(fit.owners, np.asarray(left_out, dtype=np.int64))
    step = _solve(fit.jacobian[keep], fit.residuals[keep], fit.weights[keep])
    return moved(fit.constants, fit.names, np.clip(step, -LARGEST_STEP, LARGEST_STEP))


def _solve(jacobian: Array, residuals: Array, weights: Array) -> Array:
    weighted = jacobian * weights[:, None]
    step: Array = -np.linalg.solve(
        jacobian.T @ weighted + 1e-9 * np.eye(jacobian.shape[1]), weighted.T @ residuals
    ).astype(float)
    return step


def _loss(residuals: Array, prior: Array) -> float:
    size = np.abs(residuals)
    huber = np.where(size <= HUBER, 0.5 * size * size, HUBER * (size - 0.5 * HUBER))
    return float(huber.sum() + 0.5 * (prior * prior).sum())


def _standard_errors(jacobian: Array, weights: Array) -> Array:
    information = jacobian.T @ (jacobian * weights[:, None])
    errors: Array = np.sqrt(np.maximum(np.diag(np.linalg.inv(information + 1e-9 * np.eye(len(information)))), 0.0))
    return errors
