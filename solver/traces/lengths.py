"""Token counts of a trace: statistics, a lognormal with its goodness, and the histogram that a plan takes."""

import math
from dataclasses import dataclass

import numpy as np

from solver.lengths import Lengths
from solver.traces.trace import Counts, Floats

MOST_BINS = 64
"""As many points as a lognormal is cut into (``solver.workload``)."""
Z95 = 1.6448536269514722


@dataclass(frozen=True, slots=True)
class LognormalFit:
    """mean and p95 of the fitted lognormal, and how far it is from what was recorded (``kolmogorov_distance``)."""

    mean_tokens: float
    p95_tokens: float
    distance: float


def fitted_lognormal(tokens: Counts) -> LognormalFit | None:
    """The lognormal of greatest likelihood: μ and σ are mean and standard deviation of the logarithms.

    mean = exp(μ + σ²/2), p95 = exp(μ + 1.6449 σ). Source: maximum likelihood of a lognormal. None where all are alike, and
    where σ is above 1.6449: mean and p95 are then those of a narrower one too, which is what a request with them states.

    >>> fitted_lognormal(np.array([100, 200, 400])).mean_tokens > 200, fitted_lognormal(np.array([7, 7]))
    (True, None)
    """
    logs = np.log(tokens)
    mu, sigma = float(logs.mean()), float(logs.std())
    if sigma <= 0.0 or sigma > Z95:
        return None
    mean, p95 = math.exp(mu + sigma * sigma / 2.0), math.exp(mu + Z95 * sigma)
    values, counts = np.unique(tokens, return_counts=True)
    model = _normal_shares((np.log(values + 0.5) - mu) / sigma)  # whole tokens: the step at t spans t - 1/2 to t + 1/2
    return LognormalFit(mean, p95, kolmogorov_distance(np.cumsum(counts) / len(tokens), model))


def _normal_shares(deviations: Floats) -> Floats:
    """Φ of each: ½ erfc(−x / √2)."""
    return np.array([math.erfc(-deviation / math.sqrt(2.0)) / 2.0 for deviation in deviations.tolist()])


def kolmogorov_distance(recorded: Floats, model: Floats) -> float:
    """Largest difference of two cumulative shares at the same token counts: 0 is perfect, 1 is nothing in common.

    Source: Kolmogorov (1933), the statistic of his test; no test is made of it, since with 100,000 requests none would pass.

    >>> kolmogorov_distance(np.array([0.5, 1.0]), np.array([0.25, 1.0]))
    0.25
    """
    return float(np.abs(recorded - model).max())


def binned_lengths(tokens: Counts, most_bins: int = MOST_BINS) -> Lengths:
    """What was recorded in at most ``most_bins`` token counts: equally likely slices by their means, and the longest.

    The longest stays a count of its own, since it decides how much context is needed; the mean is kept to rounding.

    >>> binned_lengths(np.array([1, 1, 2, 9])).shares, binned_lengths(np.arange(1, 101), 5).tokens
    ((0.5, 0.25, 0.25), (13, 38, 62, 87, 100))
    """
    ordered = np.sort(tokens)
    values, counts = np.unique(ordered, return_counts=True)
    if len(values) > most_bins:
        longest = int(ordered[-1])
        below = ordered[ordered < longest]
        edges = np.linspace(0, len(below), most_bins).round().astype(np.int64)
        sizes = np.diff(edges)
        kept = sizes > 0
        sums = np.add.reduceat(below, edges[:-1][kept])
        means = np.concatenate((np.rint(sums / sizes[kept]).astype(np.int64), [longest]))
        shares = np.concatenate((sizes[kept], [len(ordered) - len(below)]))
        values, inverse = np.unique(means, return_inverse=True)
        counts = np.bincount(inverse, weights=shares).astype(np.int64)
    return Lengths(tuple(int(v) for v in values), tuple(float(c) / len(ordered) for c in counts))


def binning_distance(tokens: Counts, lengths: Lengths) -> float:
    """How far a histogram is from what was recorded, as ``kolmogorov_distance``.

    >>> binning_distance(np.array([1, 2, 3, 4]), Lengths((1, 2, 3, 4), (0.25, 0.25, 0.25, 0.25)))
    0.0
    """
    values, counts = np.unique(tokens, return_counts=True)
    steps = np.concatenate(([0.0], np.cumsum(lengths.shares)))
    model = steps[np.searchsorted(np.asarray(lengths.tokens), values, side="right")]
    return kolmogorov_distance(np.cumsum(counts) / len(tokens), model)


def rank_correlation(prompt_tokens: Counts, output_tokens: Counts) -> float | None:
    """Correlation of the ranks of prompts and replies, equal lengths sharing a rank. Source: Spearman (1904).

    None where either is the same for all.

    >>> rank_correlation(np.array([10, 20, 30]), np.array([5, 5, 9])) > 0.8
    True
    """
    prompt, output = _ranks(prompt_tokens), _ranks(output_tokens)
    if prompt.std() == 0.0 or output.std() == 0.0:
        return None
    return float(np.corrcoef(prompt, output)[0, 1])


def _ranks(values: Counts) -> Floats:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    middle: Floats = (last - (counts - 1) / 2.0)[inverse]
    return middle
