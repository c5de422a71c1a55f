"""What a replica's percentiles are held against: targets, what measurements correct predictions by, confidence, distance."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from solver.capacity.factors import factor_of
from solver.replay.long_run import SURE_FRACTION, DrawPercentiles, Metric
from solver.workload import Percentile, Targets

QUICK_EXCESS = 1.3
"""A quick look that far above a target is believed: it shows too little crowding, so a long run shows more."""
QUICK_LIKELY = 0.8
"""A quick look below that much of a target is most likely right: ``python -m tests.bench.beliefs`` counts how often."""
QUICK_EASE = 0.4
"""A quick look that far below a target is believed once one draw agrees."""
IDLE_EXCESS = 1.1
"""The same without load, where nothing but lengths differs from one look to the next."""
DRAW_EXCESS, DRAW_EASE = 1.1, 0.7
"""The same for one draw of a long run."""
SPARSE_FRACTION = 0.2
"""Of the seats: one draw with no more than that in flight is believed that a rate holds (``python -m tests.bench.one_draw``)."""

FIRST: Metric = "time_to_first_token_s"
_METRICS: tuple[tuple[str, Metric, str], ...] = (
    ("time_to_first_token_s", "time_to_first_token_s", "time_to_first_token"),
    ("time_per_output_token_s", "time_per_output_token_s", "time_per_output_token"),
    ("end_to_end_s", "end_to_end_s", "end_to_end"),
    ("time_to_first_answer_s", "time_to_first_answer_s", "time_to_first_answer"),
)


@dataclass(frozen=True, slots=True)
class Goal:
    """Targets of one stream of requests on one candidate.

    first_tokens_only: replies have one token, so that whole requests end with it. factors: measured over predicted, by metric or
    ``metric.percentile`` (``solver.prediction.estimate.Correction``). margin: factor on predicted times that the asked confidence
    takes. network_s: round trip between users and replica, part of the wait for the first and for the last token.
    """

    targets: Targets
    factors: Mapping[str, float] = field(default_factory=dict)
    margin: float = 1.0
    network_s: float = 0.0
    first_tokens_only: bool = False

    def ratio_of(self, run: DrawPercentiles) -> float:
        """Largest value over its target, its sampling error counted; at most 1 where all hold, 0 without targets.

        The error counts up to SURE_FRACTION of the value: what is expected to keep a target with that much to spare keeps it.
        """

        def value(metric: Metric, percentile: Percentile) -> float:
            value = run.value_s(metric, percentile)
            return value + min(run.standard_error_s(metric, percentile), SURE_FRACTION * value)

        return max(self._ratios(value), default=0.0)

    def _ratios(self, value_of: Callable[[Metric, Percentile], float]) -> Iterator[float]:
        for name, metric, corrected in _METRICS:
            limits: Mapping[Percentile, float] = getattr(self.targets, name)
            away = 0.0 if metric == "time_per_output_token_s" else self.network_s
            for percentile, limit in limits.items():
                predicted = self._corrected(value_of, metric, corrected, percentile) * self.margin
                yield (predicted + away) / limit if limit > 0.0 else math.inf

    def _corrected(
        self, value_of: Callable[[Metric, Percentile], float], metric: Metric, corrected: str, percentile: Percentile
    ) -> float:
        """A value times what measurements correct it by. A whole request ends no earlier than its first token comes."""
        own = value_of(metric, percentile) * factor_of(f"{corrected}.{percentile}", self.factors)
        if metric not in ("end_to_end_s", "time_to_first_answer_s"):
            return own
        first = value_of(FIRST, percentile) * factor_of(f"time_to_first_token.{percentile}", self.factors)
        return first if self.first_tokens_only else max(own, first)
