"""Operating points of a space's rows under a traffic: in closed form, turns of sessions at what their caches find."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from solver.candidates.space import SearchSpace
from solver.candidates.turns_found import turns_at
from solver.engine.screened_capacity import IN_FLIGHT_GRID
from solver.engine.steady import FrontEnd, OperatingPoints, operating_points
from solver.replay.found_shares import found_shares
from solver.workload import Traffic


def points_of(
    space: SearchSpace,
    rows: NDArray[np.int64],
    traffic: Traffic,
    front: FrontEnd,
    cache: NDArray[np.float64],
    mean_context: float,
) -> OperatingPoints:
    """Operating points of rows behind one front end. cache: tokens that each row's replica has room for, what is shared held once."""
    points = partial(
        operating_points,
        space.grid_of(rows),
        traffic,
        front if traffic.sessions is None else front.of_turns(),
        in_flight=IN_FLIGHT_GRID,
        kv_cache_tokens=cache[rows][:, None],
        max_batched_tokens=space.batched_tokens[rows][:, None].astype(float),
        max_sequences=float(space.settings.max_sequences),
    )
    if traffic.sessions is None:
        return points()
    lanes = space.grid.lanes[space.grid_row[rows]]
    # A tier under the cache is taken to forget nothing.
    is_all = space.without_host_cache[rows][:, None]
    own = np.where(is_all, space.cache_tokens(mean_context)[rows][:, None] / lanes, np.inf)
    return turns_at(points, found_shares(traffic), own, lanes, traffic.shared_prefix_fraction)
