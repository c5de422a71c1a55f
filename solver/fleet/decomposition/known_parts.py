"""What parts of fleets cost in places, kept from one problem to the next: a question about a plan changes few of them.

What a part costs in a place depends on its candidates and offers there and on its demands, whatever numbers these have in a problem. So
it is known by a digest of just that.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np

from solver.fleet.deployments import WHOLE, BoolArray, FloatArray, IntArray
from solver.fleet.found import placement_keys
from solver.fleet.groups.required import meeting
from solver.fleet.heuristic.greedy import Draft
from solver.fleet.problem import FleetProblem
from solver.fleet.realise import Slots
from solver.fleet.reduce import ReducedProblem

DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class Alone:
    """What one workload takes in one place by itself. usd: of whole replicas on divisible nodes; whole_usd: on whole nodes. devices: of
    the fewest that its replicas take."""

    usd: float
    whole_usd: float
    devices: float


@dataclass(frozen=True, slots=True)
class WholeNumbers:
    """A plan by position: replicas of each pair, nodes of each offer of one group after the other, and of groups whose nodes the
    solver cut the sizes on a node, and how many nodes."""

    replicas: tuple[int, ...]
    nodes: tuple[int, ...]
    cuts: tuple[tuple[int, tuple[tuple[tuple[int, ...], int], ...]], ...]

    @classmethod
    def of(cls, reduced: ReducedProblem, draft: Draft, slots: Slots) -> "WholeNumbers":
        position = {group.offers[0]: p for p, group in enumerate(reduced.groups)}
        return cls(
            tuple(draft.replicas.get(key, 0) for key in placement_keys(reduced)),
            tuple(draft.nodes.get(offer, 0) for group in reduced.groups for offer in group.offers),
            tuple((position[anchor], tuple(cut)) for anchor, cut in slots.items()),
        )

    def placed(self, reduced: ReducedProblem) -> tuple[Draft, Slots]:
        """The plan in a problem that has the same digest."""
        offers = (offer for group in reduced.groups for offer in group.offers)
        nodes = {offer: count for offer, count in zip(offers, self.nodes, strict=True) if count}
        keys = placement_keys(reduced)
        replicas = {key: count for key, count in zip(keys, self.replicas, strict=True) if count}
        slots = {reduced.groups[p].offers[0]: cut for p, cut in self.cuts}
        return Draft(nodes, replicas, np.nan, np.nan), slots


@dataclass(frozen=True, slots=True)
class SolvedPart:
    """bound: it costs no less, infinite where it cannot be. plan: None where there is none."""

    bound: float
    plan: WholeNumbers | None


@dataclass(slots=True)
class PartsMemo:
    """By digest; it only ever grows."""

    alone: dict[bytes, Alone] = field(default_factory=dict)
    covered: dict[bytes, float] = field(default_factory=dict)
    """Devices that a part takes, in whole nodes: USD an hour."""
    solved: dict[bytes, SolvedPart] = field(default_factory=dict)
    numbers: dict[Hashable, int] = field(default_factory=dict)

    def number_of(self, thing: Hashable) -> int:
        """One number for equal things."""
        return self.numbers.setdefault(thing, len(self.numbers))


class Contents:
    """A reduced problem's pairs by workload and place: where they are, and digests of what makes up their costs."""

    def __init__(self, reduced: ReducedProblem, place: IntArray, memo: PartsMemo) -> None:
        problem, pairs = reduced.problem, reduced.pairs
        self._demands = len(problem.demands)
        cell = place * self._demands + pairs.workload
        order = np.argsort(cell, kind="stable")
        self._order = order
        cells = (int(place.max(initial=0)) + 1) * self._demands
        self._edges = np.searchsorted(cell[order], np.arange(cells + 1)).tolist()
        self._figures = np.ascontiguousarray(_figures(reduced, place, memo)[order])
        self._demand = [str(memo.number_of(_of_demand(problem, w))).encode() for w in range(self._demands)]
        self._digests: dict[int, bytes] = {}

    def rows(self, w: int, s: int) -> IntArray:
        """Pairs of a workload in a place."""
        cell = s * self._demands + w
        return np.asarray(self._order[self._edges[cell] : self._edges[cell + 1]])

    def digest(self, w: int, s: int) -> bytes:
        """Of all that tells what a workload costs in a place, alone or with others."""
        cell = s * self._demands + w
        if cell not in self._digests:
            rows = self._figures[self._edges[cell] : self._edges[cell + 1]]
            self._digests[cell] = blake2b(rows.tobytes() + self._demand[w], digest_size=DIGEST_BYTES).digest()
        return self._digests[cell]

    def digest_of_part(self, workloads: Sequence[int], s: int, *others: int) -> bytes:
        """The same of workloads that are together, under ``others`` that matter to them."""
        return b"".join(self.digest(w, s) for w in workloads) + repr(others).encode()


def _of_demand(problem: FleetProblem, w: int) -> Hashable:
    one = problem.demands[w]
    rates = one.requests_per_s, one.utilisation_limit_fraction
    return rates, one.min_replicas, one.most_copies, one.most_places


def _figures(reduced: ReducedProblem, place: IntArray, memo: PartsMemo) -> FloatArray:
    """By pair: what it takes and costs, which group of its place it is in, and what is offered there."""
    problem, groups, pairs = reduced.problem, reduced.groups, reduced.pairs
    offered = np.zeros(len(groups))
    for p in np.unique(pairs.group).tolist():
        offers = [problem.offers[o] for o in groups[p].offers]
        terms = tuple((one.usd_per_hour, one.max_nodes) for one in offers)
        offered[p] = memo.number_of((offers[0].device_id, groups[p].devices, groups[p].max_nodes, terms))
    table = problem.deployments
    splits = [float(memo.number_of(split)) for split in table.splits]
    split = np.array([*splits, WHOLE])[pairs.split]
    columns: Iterable[FloatArray | IntArray | BoolArray] = (
        pairs.devices, split, pairs.instances, pairs.nodes_per_replica, pairs.node_fraction, pairs.slots,
        pairs.role, pairs.exchange, pairs.usd_per_node_hour, table.copies_of_model[pairs.deployment],
        offered[pairs.group], _rank_in_place(pairs.group, place)[pairs.group], _rank_in_group(reduced),
        *(meeting(problem, groups, pairs, requirement) for requirement in problem.required), *pairs.load.T,
    )  # fmt: skip
    return np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])


def _rank_in_place(group: IntArray, place: IntArray) -> FloatArray:
    """By group: how many of its place come before it."""
    used, first = np.unique(group, return_index=True)
    where = place[first]
    order = np.argsort(where, kind="stable")
    starts = np.searchsorted(where[order], where[order])
    ranks = np.zeros(int(group.max(initial=-1)) + 1)
    ranks[used[order]] = np.arange(len(used)) - starts
    return ranks


def _rank_in_group(reduced: ReducedProblem) -> FloatArray:
    """By pair: the position in its group of the offer that it names, below zero where any will do."""
    pairs = reduced.pairs
    ranks = np.full(len(pairs), -1.0)
    for i in np.flatnonzero(pairs.offer >= 0).tolist():
        ranks[i] = reduced.groups[int(pairs.group[i])].offers.index(int(pairs.offer[i]))
    return ranks
