"""Workloads that may use few places of a kind (``Demand.most_places``): which those could be, and whether a plan keeps to it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from solver.fleet.deployments import BoolArray, FloatArray, IntArray
from solver.fleet.groups.offer_groups import OfferGroup, Pairs, kinds_of_places
from solver.fleet.groups.required import meeting
from solver.fleet.problem import FleetProblem
from solver.hardware import PlaceKind

MOST_DRAFTS = 3
"""Places for each workload that plans are drafted in: the best on paper, and some that may share nodes or hold more."""


def limited_kinds(problem: FleetProblem, workload: int) -> dict[PlaceKind, int]:
    """How many places of each kind a workload may use, without what a finer kind already says."""
    most = dict(problem.demands[workload].most_places)
    if "region" in most and most.get("provider", 0) >= most["region"]:
        most.pop("provider")  # a region has one provider
    return most


def place_of_pairs(
    problem: FleetProblem, groups: list[OfferGroup], group: IntArray, kind: PlaceKind
) -> tuple[list[str], IntArray]:
    """Names of the places of a kind, and by pair the number of the one it is in."""
    position = kinds_of_places(problem).index(kind)
    names = sorted({one.places[position] for one in groups})
    number = {name: n for n, name in enumerate(names)}
    of_group = np.array([number[one.places[position]] for one in groups], dtype=np.int64)
    return names, of_group[group]


def in_few_places(problem: FleetProblem, groups: list[OfferGroup], pairs: Pairs) -> Iterator[Pairs]:
    """Pairs of which each workload with few places has those of no more places than it may be in: the most promising first.

    Promising is where one kind of replica serves all of the workload for least, on whole nodes; what plans must contain goes first.
    Where losses are to be survived, places that are lost together count once.
    """
    limited = {w: kinds for w in range(len(problem.demands)) if (kinds := limited_kinds(problem, w))}
    if not limited:
        yield pairs
        return
    cost, named = _cost_alone(pairs), _named(problem, groups, pairs)
    ranked: dict[int, list[BoolArray]] = {}
    for w, kinds in limited.items():
        places = _Places.of(problem, groups, pairs, w, tuple(kinds))
        least = np.full(len(places.keys), np.inf)
        np.minimum.at(least, places.number[places.rows], cost[places.rows])
        has_named = np.zeros(len(places.keys), dtype=np.bool_)
        has_named[places.number[places.rows[named[places.rows]]]] = True
        best = np.lexsort((least, ~has_named)).tolist()
        ranked[w] = [places.with_others(first, best, tuple(kinds.values())) for first in best[:MOST_DRAFTS]]
    free = ~np.isin(pairs.workload, list(limited))
    for n in range(max((len(members) for members in ranked.values()), default=0)):
        keep = free.copy()
        for members in ranked.values():
            if members:
                keep |= members[min(n, len(members) - 1)]
        yield pairs.take(keep)


@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """Of one workload. rows: its pairs. number: by pair, the place it is in, -1 for pairs of others. keys: by place, numbers of what it is
    of each kind. domains: by place, what it is lost with."""

    rows: IntArray
    number: IntArray
    keys: list[tuple[int, ...]]
    domains: list[tuple[str, ...]]

    @classmethod
    def of(
        cls, problem: FleetProblem, groups: list[OfferGroup], pairs: Pairs, workload: int, kinds: tuple[PlaceKind, ...]
    ) -> "_Places":
        """In the order of their keys."""
        rows = np.flatnonzero(pairs.workload == workload)
        columns = [place_of_pairs(problem, groups, pairs.group[rows], kind)[1] for kind in kinds]
        joined = np.zeros(len(rows), dtype=np.int64)
        for column in columns:
            joined = joined * (int(column.max(initial=0)) + 1) + column
        _, first, own = np.unique(joined, return_index=True, return_inverse=True)
        number = np.full(len(pairs), -1, dtype=np.int64)
        number[rows] = own
        keys = [tuple(int(column[i]) for column in columns) for i in first.tolist()]
        return cls(rows, number, keys, [groups[p].domains for p in pairs.group[rows[first]].tolist()])

    def with_others(self, first: int, ranked: list[int], most: tuple[int, ...]) -> BoolArray:
        """Pairs of a place and of as many more, best first, as a workload may be in."""
        taken = [first]
        for place in ranked if max(most) > 1 else ():
            apart = not any(
                a == b for other in taken for a, b in zip(self.domains[place], self.domains[other], strict=True)
            )
            counts = [len({self.keys[one][k] for one in (*taken, place)}) for k in range(len(most))]
            if place not in taken and apart and all(count <= limit for count, limit in zip(counts, most, strict=True)):
                taken.append(place)
        rows: BoolArray = np.isin(self.number, taken)
        return rows


def _cost_alone(pairs: Pairs) -> FloatArray:
    """USD per hour of whole nodes on which a pair serves all of its workload; infinite where it cannot."""
    replicas = np.maximum(np.ceil(pairs.load.sum(axis=1) - 1e-9), 1.0)
    nodes = np.where(
        pairs.slots > 0, np.ceil(replicas / np.maximum(pairs.slots, 1)), replicas * pairs.nodes_per_replica
    )
    return np.asarray(nodes * pairs.usd_per_node_hour)


def _named(problem: FleetProblem, groups: list[OfferGroup], pairs: Pairs) -> BoolArray:
    """Pairs of which the plan must contain some."""
    named = np.zeros(len(pairs), dtype=np.bool_)
    for requirement in problem.required:
        named |= meeting(problem, groups, pairs, requirement)
    return named


def keeps_to_few(problem: FleetProblem, used: Iterable[tuple[int, int]]) -> bool:
    """Is each workload in no more places than it may be? used: workloads and the offers they are on, both by number."""
    by_workload: dict[int, set[int]] = {}
    for workload, offer in used:
        by_workload.setdefault(workload, set()).add(offer)
    return all(
        len({problem.offers[offer].place(kind) for offer in offers}) <= most
        for workload, offers in by_workload.items()
        for kind, most in problem.demands[workload].most_places
    )
