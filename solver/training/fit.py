"""Constants fitted to published runs: least squares of logarithms, held near their priors, doubtful runs counting less.

Every constant is positive, so its logarithm is fitted; a prior is a normal distribution of it. What the runs say nothing
about stays at its prior.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solver.training.work import Values

Predict = Callable[[Values], Values]
DIFFERENCE = 1e-4
"""Step in the logarithm for derivatives."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """values: of the free constants. deviations: standard error of each logarithm. residuals: log measured − log predicted."""

    values: Values
    deviations: Values
    residuals: Values


def fit(
    predict: Predict,
    measured: Values,
    weights: Values,
    prior: Values,
    prior_deviation: Values,
    *,
    scale: float,
    start: Values | None = None,
    rounds: int = 15,
) -> Fitted:
    """Levenberg-Marquardt on Student's t with few degrees of freedom, by reweighting.

    predict: the free constants to the logarithms of what was measured. scale: the error expected of a good run, as a logarithm.
    start: where the search begins, the prior unless told.
    """
    centre = np.log(prior)
    x = centre.copy() if start is None else np.log(start)
    damping = 1e-2
    residual = measured - predict(np.exp(x))
    cost = _cost(residual, weights, x - centre, prior_deviation, scale)
    for _ in range(rounds):
        jacobian = _jacobian(predict, x)
        trust = weights * (FREEDOM + 1.0) / (FREEDOM + (residual / scale) ** 2) / scale**2
        normal = jacobian.T @ (jacobian * trust[:, None]) + np.diag(1.0 / prior_deviation**2)
        gradient = jacobian.T @ (trust * residual) - (x - centre) / prior_deviation**2
        improved = False
        for _ in range(6):
            move = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), gradient)
            tried = x + np.clip(move, -0.5, 0.5)
            off = measured - predict(np.exp(tried))
            new = _cost(off, weights, tried - centre, prior_deviation, scale)
            if new < cost:
                improved = cost - new > 1e-4 * cost
                x, residual, cost, damping = tried, off, new, damping / 3.0
                break
            damping *= 4.0
        if not improved:
            break
    deviations = np.sqrt(np.diag(np.linalg.inv(normal)))
    return Fitted(np.exp(x), deviations, residual)


FREEDOM = 4.0
"""Degrees of freedom of Student's t: a run three scales off pulls a third as hard as under a normal distribution."""


def _cost(residual: Values, weights: Values, moved: Values, deviation: Values, scale: float) -> float:
    heavy = weights * (FREEDOM + 1.0) * np.log1p((residual / scale) ** 2 / FREEDOM)
    return float(heavy.sum() + ((moved / deviation) ** 2).sum())


def _jacobian(predict: Predict, x: Values) -> Values:
    base = predict(np.exp(x))
    columns = []
    for position in range(len(x)):
        moved = x.copy()
        moved[position] += DIFFERENCE
        columns.append((predict(np.exp(moved)) - base) / DIFFERENCE)
    return np.stack(columns, axis=1)


def cluster_weights(clusters: Sequence[object]) -> Values:
    """Runs of one cluster (the same stack, device, model and count) are nearly the same run: together they weigh √n.

    >>> [round(float(w), 2) for w in cluster_weights(["a", "a", "a", "a", "b"])]
    [0.5, 0.5, 0.5, 0.5, 1.0]
    """
    counts: dict[object, int] = {}
    for one in clusters:
        counts[one] = counts.get(one, 0) + 1
    return np.array([counts[one] ** -0.5 for one in clusters])


def quantiles(ratios: NDArray[np.float64], weights: Values, low: float, high: float) -> tuple[float, float]:
    """Weighted quantiles of ratios."""
    order = np.argsort(ratios)
    share = np.cumsum(weights[order]) - 0.5 * weights[order]
    share /= weights.sum()
    found = np.interp([low, high], share, ratios[order])
    return float(found[0]), float(found[1])
