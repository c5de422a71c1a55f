"""Times of candidates while screening, once for all that differ in the machine they stand in alone."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solver.engine.screened_capacity import ScreenedTimes
from solver.engine.steady import OperatingPoints


@dataclass(frozen=True, slots=True)
class DistinctTimes:
    """Times of candidates that differ in more than the machine they stand in. first: the row of each, the first of its like.
    place: of every row, its like's among them."""

    times: ScreenedTimes
    first: NDArray[np.int64]
    place: NDArray[np.int64]

    def repeated(self, copies: int, rows: int) -> "DistinctTimes":
        """The same several times over, for a space of ``rows`` that is."""
        points = self.times.points
        tiled = {name: np.tile(getattr(points, name), (copies, 1)) for name in OperatingPoints.__slots__}
        each, offsets = len(self.first), np.arange(copies)[:, None]
        return DistinctTimes(
            ScreenedTimes(OperatingPoints(**tiled), self.times.traffic),
            (offsets * rows + self.first).ravel(),
            (offsets * each + self.place).ravel(),
        )

    def points_of_all(self) -> OperatingPoints:
        """Operating points of every row."""
        points = self.times.points
        return OperatingPoints(**{name: getattr(points, name)[self.place] for name in OperatingPoints.__slots__})


def merged(rows: int, parts: list[tuple[NDArray[np.int64], OperatingPoints]]) -> OperatingPoints:
    """Operating points of several groups of rows, back in the space's order."""
    columns = {}
    for name in OperatingPoints.__slots__:
        first = getattr(parts[0][1], name)
        whole = np.empty((rows, first.shape[1]), dtype=first.dtype)
        for members, points in parts:
            whole[members] = getattr(points, name)
        columns[name] = whole
    return OperatingPoints(**columns)
