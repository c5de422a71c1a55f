"""Which candidates are worth a look where several workloads share nodes.

There a replica costs the share of a node that it takes, and what is worth taking is told by all workloads together: with nodes
divisible, a workload w costs at least

    S_w = min_i p_i · Λ_w / u_i

with p_i the price of the share of a node that a replica of i takes and u_i the most that it sustains, so that a plan with a replica of
i costs at least Σ S_w + p_i − S_w · min(u_i, Λ_w) / Λ_w. As long as screening alone is believed, hundreds of candidates look better than
a plan that holds, and the optimiser spends its time on telling apart what is not there. So those that would leave most to save are
looked at first, by short runs, and each that turns out slower raises S_w, until what is left unseen would cost a plan a good part of
what there is to be saved at all. Those that still cost hardly any of it have one draw of a long run, which takes ten times as long.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solver.confirmation.brackets import Brackets
from solver.confirmation.facts import Seen
from solver.confirmation.rivals import Offered, offered_to
from solver.planning.assemble import Assembly

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

WORTH_LOOKING_FRACTION = 0.2
"""Of what a plan that holds costs above the bound: candidates whose use would take up more of it are not looked at."""
WORTH_A_DRAW_FRACTION = 0.05
"""The same for one draw of a long run."""
LOOKS_AT_ONCE = 16
"""Candidates looked at before the bound is taken anew."""


def look_at_sharing(assembly: Assembly, brackets: Brackets, usd_per_hour: float, in_time: Callable[[], bool]) -> None:
    """Lower the upper ends of candidates that a plan for less than ``usd_per_hour`` may well contain."""
    workloads = [offered_to(assembly, w) for w in range(len(assembly.screened))]
    while in_time():
        wanted = _worth_looking(workloads, brackets, usd_per_hour)
        if not wanted:
            return
        for workload, row in wanted:
            if not in_time():
                return
            brackets.look_further(workload, row, in_time)


@dataclass(frozen=True, slots=True)
class _Excess:
    """Of one workload's candidates: what a plan with a replica costs more than the bound. least: its part of the bound."""

    least: float
    of_row: Floats


def _excess(one: Offered, most: Floats) -> _Excess:
    share_usd = one.price / one.replicas
    with np.errstate(divide="ignore", invalid="ignore"):
        whole = np.where(most > 0.0, share_usd * one.load / most, np.inf)
        least = float(whole.min(initial=np.inf))
        excess = np.where(most > 0.0, share_usd - least * np.minimum(most / one.load, 1.0), np.inf)
    return _Excess(least, excess)


def _worth_looking(workloads: list[Offered], brackets: Brackets, usd_per_hour: float) -> list[tuple[int, int]]:
    """(workload, row) of the next to be looked at, those of least excess first."""
    each = [_excess(one, brackets.all_at_most(w, one.rows, one.alike)) for w, one in enumerate(workloads)]
    room = usd_per_hour - sum(one.least for one in each)
    waiting: list[tuple[float, int, int, int]] = []
    for w, (one, found) in enumerate(zip(workloads, each, strict=True)):
        near = (found.of_row <= WORTH_LOOKING_FRACTION * room) & ~brackets.are_seen(w, one.alike, Seen.SHORTLY)
        near |= (found.of_row <= WORTH_A_DRAW_FRACTION * room) & ~brackets.are_seen(w, one.alike, Seen.IN_ONE_DRAW)
        waiting += [
            (float(found.of_row[k]), w, int(one.alike[k]), int(one.rows[k])) for k in np.flatnonzero(near).tolist()
        ]
    wanted: dict[tuple[int, int], int] = {}
    for _, w, alike, row in sorted(waiting):
        wanted.setdefault((w, alike), row)
        if len(wanted) == LOOKS_AT_ONCE:
            break
    return [(w, row) for (w, _), row in wanted.items()]
