"""What uploaded runs of a model say about its other configurations on the same device under the same engine.

Layouts and precisions of one model on one device err alike: its kernels, its routing and the harness are the same. With n measured
configurations whose measured-over-predicted has the logarithms r₁ … rₙ, another is expected at

    exp( Σ rᵢ / (n + k) )

where k is the variance within models over the variance between them: the mean of a normal prior about no error at all (James and
Stein, 1961; Efron and Morris, 1973).

Errors go with the load as well: what one client's steps are off says little of sixty's, and prompts of one length little of others.
Of closed loops errors are therefore a Gaussian process about none (Rasmussen and Williams, 2006, eq. 2.25) over the logarithms x of
the clients of a replica, the mean prompt, the mean reply and the degrees that a replica is cut by. With r of all relatives' runs

    ln f(x) = k(x)ᵀ (K + m·diag(1/runs))⁻¹ r        K_ij = exp( −½ |xᵢ − xⱼ|² / b² )

b = ``kin_bandwidth``, m = ``kin_run_shrinkage``: the variance of one run's own error over that of what loads share.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from solver.layout import Layout

Array = NDArray[np.float64]
ONE_DEVICE = Layout()
MOST_POINTS = 128
"""Those most alike count; what is left out has next to no weight beside them."""


@dataclass(frozen=True, slots=True)
class MeasuredLoad:
    """Runs of one configuration under much the same closed loop. clients: of a replica; prompt_tokens, output_tokens: the means;
    residuals: means of ln(measured/predicted) by metric."""

    clients: float
    prompt_tokens: float
    output_tokens: float
    runs: int
    residuals: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Shrinkage:
    """relatives: k, in configurations. runs: m. bandwidth: b, in logarithms."""

    relatives: float
    runs: float
    bandwidth: float


@dataclass(frozen=True, slots=True)
class Relative:
    """One measured configuration of a model. weights: their format; versions: of the engine it was measured under; factors: measured
    over predicted."""

    weights: str
    versions: tuple[str, ...]
    benchmarks: tuple[str, ...]
    factors: Mapping[str, float]
    uploaded: bool
    points: tuple[MeasuredLoad, ...] = ()
    layout: Layout = ONE_DEVICE


@dataclass(frozen=True, slots=True)
class Kin:
    """What relatives say together of a configuration. benchmarks: one run of each. factors: at any load. layout: of the configuration."""

    benchmarks: tuple[str, ...]
    factors: Mapping[str, float]
    relatives: tuple[Relative, ...] = ()
    shrinkage: Shrinkage | None = None
    layout: Layout = ONE_DEVICE

    def at(self, clients: float, prompt_tokens: float, output_tokens: float) -> Mapping[str, float]:
        """Factors for a closed loop of so many clients a replica with prompts and replies of so many tokens on average: of metrics that
        a relative states by load; the others as at any load.

        >>> run = MeasuredLoad(8.0, 1024.0, 128.0, 3, {"power": 0.2})
        >>> own = Kin(("b",), {"power": 1.0}, (Relative("fp8", ("1",), ("b",), {}, True, (run,)),), Shrinkage(1.0, 1.0, 0.8))
        >>> round(own.at(8.0, 1024.0, 128.0)["power"], 3), round(own.at(512.0, 1024.0, 128.0)["power"], 3)
        (1.162, 1.0)
        """
        if self.shrinkage is None:
            return self.factors
        if min(clients, prompt_tokens, output_tokens) <= 0.0:
            return self.factors  # generation alone: no logarithm says how far off it is
        points = [(point, _place(point, relative.layout)) for relative in self.relatives for point in relative.points]
        asked = _place(MeasuredLoad(clients, prompt_tokens, output_tokens, 0, {}), self.layout)
        points = sorted(points, key=lambda one: math.dist(one[1], asked))[:MOST_POINTS]
        found: dict[str, float] = {}
        told: dict[tuple[bool, ...], list[str]] = {}
        for metric in sorted({metric for point, _ in points for metric in point.residuals}):
            told.setdefault(tuple(metric in point.residuals for point, _ in points), []).append(metric)
        for which, metrics in told.items():
            own = list(compress(points, which))
            means = _regressed(own, metrics, asked, self.shrinkage)
            found.update(zip(metrics, map(math.exp, means), strict=True))
        return {**self.factors, **found}


def _place(load: MeasuredLoad, layout: Layout) -> tuple[float, ...]:
    """Where a load of a configuration lies: what its errors go with, in logarithms."""
    sizes = load.clients, load.prompt_tokens, load.output_tokens, layout.tensor_parallel, layout.pipeline_parallel
    return tuple(map(math.log, sizes))


def _regressed(
    points: Sequence[tuple[MeasuredLoad, tuple[float, ...]]],
    metrics: Sequence[str],
    asked: tuple[float, ...],
    law: Shrinkage,
) -> list[float]:
    """The mean of the process where it is asked for, in logarithms, of metrics that all points state."""
    places = np.array([place for _, place in points])
    residuals = np.array([[point.residuals[metric] for metric in metrics] for point, _ in points])
    own = np.array([law.runs / point.runs for point, _ in points])

    def alike(distance: Array) -> Array:
        return np.asarray(np.exp(-0.5 * (distance**2).sum(axis=-1) / law.bandwidth**2))

    between = alike(places[:, None, :] - places[None, :, :]) + np.diag(own)
    return [float(mean) for mean in alike(places - np.array(asked)) @ np.linalg.solve(between, residuals)]


def kin_of(
    relatives: Sequence[Relative], weights: str, version: str | None, shrinkage: Shrinkage, layout: Layout = ONE_DEVICE
) -> Kin | None:
    """None where no relative was uploaded: a catalog release's own fit has seen its runs already.

    weights: the format asked for, whose kernels are its own: at any load relatives in it go before those in others. By load all tell:
    what harness and host add they share, and formats told apart left out were no nearer. version: of the engine asked for; None
    stands for any. layout: asked for.

    >>> known = Relative("fp8", ("1",), ("b",), {"power": 1.21}, True)
    >>> little = Shrinkage(1.0, 1.0, 0.8)
    >>> round(kin_of([known], "bf16", None, little).factors["power"], 3), kin_of([known], "fp8", "2", little)
    (1.1, None)
    """
    fitting = [r for r in relatives if version is None or version in r.versions]
    by_load = tuple(r for r in fitting if r.points)
    if any(r.uploaded and r.weights == weights for r in fitting):
        fitting = [r for r in fitting if r.weights == weights]
    if not any(r.uploaded for r in fitting):
        return None
    metrics = sorted({metric for r in fitting for metric in r.factors})
    factors = {
        metric: _shrunk((r.factors[metric] for r in fitting if metric in r.factors), shrinkage.relatives)
        for metric in metrics
    }
    cited = tuple(dict.fromkeys(r.benchmarks[0] for r in (*fitting, *by_load) if r.benchmarks))
    return Kin(cited, factors, by_load, shrinkage, layout)


def _shrunk(factors: Iterable[float], shrinkage: float) -> float:
    logs = [math.log(factor) for factor in factors]
    return math.exp(sum(logs) / (len(logs) + shrinkage))
