"""What uploaded runs of a model say about its other configurations on the same device under the same engine.

Layouts and precisions of one model on one device err alike: its kernels, its routing and the harness are the same. With n measured
configurations whose measured-over-predicted has the logarithms r₁ … rₙ, another is expected at

    exp( Σ rᵢ / (n + k) )

where k is the variance within models over the variance between them: the mean of a normal prior about no error at all (James and
Stein, 1961; Efron and Morris, 1973).

Errors go with the load as well: what one client's steps are off says little of sixty's. Of a closed loop every rᵢ is therefore the mean
of its runs' residuals, each with the weight

    w = exp( −½ (Δ ln clients)² / b² − ½ (Δ ln prompt)² / b² )        rᵢ = Σ w r / (Σ w + m)

(kernel regression: Nadaraya, 1964; Watson, 1964), b = ``kin_bandwidth``, m = ``kin_run_shrinkage`` runs that agree with the prediction.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MeasuredLoad:
    """Runs of one configuration under much the same closed loop. clients: of a replica; prompt_tokens: the mean; residuals: means of
    ln(measured/predicted) by metric."""

    clients: float
    prompt_tokens: float
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


@dataclass(frozen=True, slots=True)
class Kin:
    """What relatives say together. benchmarks: one run of each. factors: at any load."""

    benchmarks: tuple[str, ...]
    factors: Mapping[str, float]
    relatives: tuple[Relative, ...] = ()
    shrinkage: Shrinkage | None = None

    def at(self, clients: float, prompt_tokens: float) -> Mapping[str, float]:
        """Factors for a closed loop of so many clients a replica with prompts of so many tokens on average: of metrics that a relative
        states by load; the others as at any load.

        >>> run = MeasuredLoad(8.0, 1024.0, 3, {"power": 0.2})
        >>> own = Kin(("b",), {"power": 1.0}, (Relative("fp8", ("1",), ("b",), {}, True, (run,)),), Shrinkage(1.0, 1.0, 0.8))
        >>> round(own.at(8.0, 1024.0)["power"], 3), round(own.at(512.0, 1024.0)["power"], 3)
        (1.078, 1.0)
        """
        if self.shrinkage is None:
            return self.factors
        if clients <= 0.0 or prompt_tokens <= 0.0:
            return self.factors  # generation alone: no logarithm says how far off it is
        k, runs, bandwidth = self.shrinkage.relatives, self.shrinkage.runs, self.shrinkage.bandwidth
        means: dict[str, list[float]] = {}
        for relative in self.relatives:
            sums: dict[str, list[float]] = {}
            for point in relative.points:
                away = math.hypot(math.log(clients / point.clients), math.log(prompt_tokens / point.prompt_tokens))
                weight = point.runs * math.exp(-0.5 * (away / bandwidth) ** 2)
                for metric, residual in point.residuals.items():
                    known = sums.setdefault(metric, [0.0, 0.0])
                    known[0] += weight * residual
                    known[1] += weight
            for metric, (total, weight) in sums.items():
                means.setdefault(metric, []).append(total / (weight + runs))
        return {**self.factors, **{m: math.exp(sum(each) / (len(each) + k)) for m, each in means.items()}}


def kin_of(relatives: Sequence[Relative], weights: str, version: str | None, shrinkage: Shrinkage) -> Kin | None:
    """None where no relative was uploaded: a catalog release's own fit has seen its runs already.

    weights: the format asked for, whose kernels are its own: relatives in it go before those in others. version: of the engine
    asked for; None stands for any.

    >>> known = Relative("fp8", ("1",), ("b",), {"power": 1.21}, True)
    >>> little = Shrinkage(1.0, 1.0, 0.8)
    >>> round(kin_of([known], "bf16", None, little).factors["power"], 3), kin_of([known], "fp8", "2", little)
    (1.1, None)
    """
    fitting = [r for r in relatives if version is None or version in r.versions]
    if any(r.uploaded and r.weights == weights for r in fitting):
        fitting = [r for r in fitting if r.weights == weights]
    if not any(r.uploaded for r in fitting):
        return None
    metrics = sorted({metric for r in fitting for metric in r.factors})
    factors = {
        metric: _shrunk((r.factors[metric] for r in fitting if metric in r.factors), shrinkage.relatives)
        for metric in metrics
    }
    cited = tuple(r.benchmarks[0] for r in fitting if r.benchmarks)
    return Kin(cited, factors, tuple(r for r in fitting if r.points), shrinkage)


def _shrunk(factors: Iterable[float], shrinkage: float) -> float:
    logs = [math.log(factor) for factor in factors]
    return math.exp(sum(logs) / (len(logs) + shrinkage))
