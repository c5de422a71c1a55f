"""Ranges of misses by level (``solver.corrections.misses``): of everything, and of levels that have a range of their own."""

import math
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from solver.corrections.misses import (
    EXACT,
    LEAST_CLUSTERS,
    Cluster,
    PublicMiss,
    Range,
    calibrated,
    clustering,
    held,
    interval_score,
    left_out,
    shortest,
)


class Level(NamedTuple):
    """Families or a device under an engine; without any of them everything."""

    families: tuple[str, ...] = ()
    engine: str = "*"
    device: str = "*"

    def holds(self, one: PublicMiss) -> bool:
        return (
            self.device in ("*", one.device)
            and (not self.families or one.family in self.families)
            and self.engine in ("*", one.engine)
        )


EVERYTHING = Level()


class LevelRange(NamedTuple):
    """inside: of its runs by the ranges of constants alone; left_out_inside: with the range that the other clusters give.
    score, wider: left-out interval scores by the level's own other clusters, and by what is in no level."""

    level: Level
    range: Range
    clusters: int
    runs: int
    inside: float
    left_out_inside: float
    score: float = math.nan
    wider: float = math.nan
    kept: bool = False
    """It has one for today's releases, which are among these."""

    @property
    def taken(self) -> bool:
        """Is the level's own range better than what holds for everything?"""
        return self.level == EVERYTHING or self.kept or self.score < self.wider


def ranges(found: Sequence[PublicMiss], levels: Sequence[Level], kept: Collection[Level] = ()) -> list[LevelRange]:
    """Everything first, of the runs in no level that is taken, then each level with clusters enough. A run of several levels is in the
    last. kept: levels that are taken in any case."""
    shares = {level: _only(level, levels, found) for level in levels}
    rest = [one for one in found if not any(level.holds(one) for level in levels)]
    judged = (_judged(level, own, rest) for level, own in shares.items())
    answer = [one._replace(kept=one.level in kept) for one in judged if one is not None]
    left = [one for one in found if not any(each.taken and each.level.holds(one) for each in answer)]
    return [range_of(EVERYTHING, left, clustering(left)), *answer]


def _only(level: Level, levels: Sequence[Level], found: Iterable[PublicMiss]) -> list[PublicMiss]:
    later = levels[levels.index(level) + 1 :]
    return [one for one in found if level.holds(one) and not any(other.holds(one) for other in later)]


def _judged(level: Level, own: Sequence[PublicMiss], rest: Sequence[PublicMiss]) -> LevelRange | None:
    """A level against what the rest says of it; None with too few clusters."""
    cluster = clustering(own)
    if len({cluster(one) for one in own}) < LEAST_CLUSTERS:
        return None
    parts = left_out(own, cluster, partial(shortest, cluster=cluster))
    score = math.fsum(interval_score(members, miss, cluster) for members, miss in parts) / len(parts)
    wider = interval_score(own, shortest(rest, clustering(rest)), cluster)
    return range_of(level, own, cluster)._replace(score=score, wider=wider)


def range_of(level: Level, own: Sequence[PublicMiss], cluster: Cluster) -> LevelRange:
    """What a level's own runs say."""
    wide, reached = calibrated(own, cluster)
    return LevelRange(level, wide, len({cluster(one) for one in own}), len(own), held(own, EXACT, cluster), reached)
