"""What uploaded runs of a model say about its other configurations on the same device under the same engine.

Layouts and precisions of one model on one device err alike: its kernels, its routing and the harness are the same. With n measured
configurations whose measured-over-predicted has the logarithms r₁ … rₙ, another is expected at

    exp( Σ rᵢ / (n + k) )

where k is the variance within models over the variance between them: the mean of a normal prior about no error at all (James and
Stein, 1961; Efron and Morris, 1973).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Relative:
    """One measured configuration of a model. weights: their format; versions: of the engine it was measured under; factors: measured
    over predicted."""

    weights: str
    versions: tuple[str, ...]
    benchmarks: tuple[str, ...]
    factors: Mapping[str, float]
    uploaded: bool


@dataclass(frozen=True, slots=True)
class Kin:
    """What relatives say together. benchmarks: one run of each."""

    benchmarks: tuple[str, ...]
    factors: Mapping[str, float]


def kin_of(relatives: Sequence[Relative], weights: str, version: str | None, shrinkage: float) -> Kin | None:
    """None where no relative was uploaded: a catalog release's own fit has seen its runs already.

    weights: the format asked for, whose kernels are its own: relatives in it go before those in others. version: of the engine
    asked for; None stands for any. shrinkage: k above, in configurations.

    >>> known = Relative("fp8", ("1",), ("b",), {"power": 1.21}, True)
    >>> round(kin_of([known], "bf16", None, 1.0).factors["power"], 3), kin_of([known], "fp8", "2", 1.0)
    (1.1, None)
    """
    fitting = [r for r in relatives if version is None or version in r.versions]
    if any(r.uploaded and r.weights == weights for r in fitting):
        fitting = [r for r in fitting if r.weights == weights]
    if not any(r.uploaded for r in fitting):
        return None
    metrics = sorted({metric for r in fitting for metric in r.factors})
    factors = {
        metric: _shrunk((r.factors[metric] for r in fitting if metric in r.factors), shrinkage) for metric in metrics
    }
    return Kin(tuple(r.benchmarks[0] for r in fitting if r.benchmarks), factors)


def _shrunk(factors: Iterable[float], shrinkage: float) -> float:
    logs = [math.log(factor) for factor in factors]
    return math.exp(sum(logs) / (len(logs) + shrinkage))
