"""Fleets each of whose workloads is in one place: a bound, and often the plan, from the places one by one.

Workloads in different places share nothing. So a plan parts its workloads into those that are together, each part in a place, and
costs at least what the parts cost there by themselves:

    min over partitions of the workloads  Σ_parts min_s f_s(part)

f_s is first bounded by arithmetic, then by knapsacks, and only where the best partition turns on it solved: a programme of one
place is small.
"""

import math
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from solver.fleet.decomposition.covering import Coverer, least_cover
from solver.fleet.decomposition.drafts import only_demand_of
from solver.fleet.decomposition.known_parts import Alone, Contents, PartsMemo, SolvedPart, WholeNumbers
from solver.fleet.deployments import BoolArray, FloatArray, IntArray
from solver.fleet.found import Found, realised, slots_of
from solver.fleet.groups.places import limited_kinds, place_of_pairs
from solver.fleet.groups.required import meeting
from solver.fleet.heuristic.greedy import Draft
from solver.fleet.heuristic.taken import PlacementKey
from solver.fleet.plan import PROVEN_GAP_FRACTION
from solver.fleet.problem import FleetProblem, Limits
from solver.fleet.reduce import ReducedProblem, drop_unused_groups, most_nodes
from solver.fleet.restricted import Effort, tried
from solver.hardware import PlaceKind

MOST_WORKLOADS = 6
"""More of them have too many partitions."""
MOST_REQUIRED = 2
"""Each may be met by any part, which doubles the parts."""
PART_TIME_FRACTION = 0.2
"""Share of the time limit that one part in one place may take."""
TINY_USD = 1e-9
"""An hour: what is free costs next to nothing."""
BY_ARITHMETIC, BY_KNAPSACK, SOLVED = range(3)
"""How closely it is known what a part costs in a place."""

Part = tuple[int, int]
"""Workloads that are together, and requirements that they meet: bits."""


@dataclass(frozen=True, slots=True)
class ByPlace:
    """bound: no plan costs less. found: the plan that costs it, where there is one cheaper than the one in hand. seconds: the solver's."""

    bound: float
    found: Found | None
    seconds: float


def parts_by_place(problem: FleetProblem) -> bool:
    """Does every plan part into places that only meet in the money they cost? Not where a workload needs nothing: no place is its."""
    limits = problem.limits
    meets = bool(limits.quotas or limits.fault_tolerance.losses) or limits.max_spot_fraction is not None
    idle = any(sum(demand.requests_per_s) <= 0.0 for demand in problem.demands)
    few = len(problem.demands) <= MOST_WORKLOADS and len(problem.required) <= MOST_REQUIRED
    if problem.objective != "cost" or problem.matters("power") or problem.matters("carbon") or meets or idle or not few:
        return False
    kinds = [_kinds_of_one(problem, w) for w in range(len(problem.demands))]
    return len(kinds) == 1 or (bool(kinds[0]) and all(kind == kinds[0] for kind in kinds))


def solve_by_place(
    reduced: ReducedProblem, ceiling: float, time_limit_s: float, gap_fraction: float, seed: int, memo: PartsMemo
) -> ByPlace:
    """Bound of a problem that ``parts_by_place``, and its plan where that costs less than ``ceiling``; ``memo`` learns."""
    enough = ceiling * (1.0 - max(PROVEN_GAP_FRACTION, gap_fraction))
    search = _PartsInPlaces(reduced, enough, time_limit_s, seed, memo)
    while True:
        bound, parts = search.best_partition()
        if bound >= enough:
            return ByPlace(min(bound, ceiling), None, search.seconds)
        open_parts = [(part, s) for part, s in parts if search.level[part][s] < search.closest]
        if not open_parts or search.seconds > time_limit_s:
            return ByPlace(bound, None if open_parts else search.plan(parts), search.seconds)
        for part, s in open_parts:
            search.refine(part, s)


def _kinds_of_one(problem: FleetProblem, workload: int) -> tuple[PlaceKind, ...]:
    """Kinds of places of which the workload is in one."""
    return tuple(sorted(kind for kind, most in limited_kinds(problem, workload).items() if most == 1))


@dataclass(slots=True)
class _PartsInPlaces:
    """place: by pair. divisible: what each workload (column) costs at least in each place (row). named: by requirement, whether there is
    what it names, for each place and workload. bounds, level: by part and place, no less than it costs, and how that is known.
    least: the least of a part's bounds, and where it is. enough: parts that cost as much are not looked at more closely."""

    reduced: ReducedProblem
    enough: float
    time_limit_s: float
    seed: int
    memo: PartsMemo
    contents: Contents = field(init=False)
    devices: IntArray = field(init=False)
    divisible: FloatArray = field(init=False)
    named: list[BoolArray] = field(init=False)
    bounds: dict[Part, FloatArray] = field(default_factory=dict)
    level: dict[Part, IntArray] = field(default_factory=dict)
    least: dict[Part, tuple[float, int]] = field(default_factory=dict)
    answers: dict[tuple[Part, int], WholeNumbers] = field(default_factory=dict)
    seconds: float = 0.0

    def __post_init__(self) -> None:
        problem, pairs, groups = self.reduced.problem, self.reduced.pairs, self.reduced.groups
        place = np.zeros(len(pairs), dtype=np.int64)
        for kind in _kinds_of_one(problem, 0):
            column = place_of_pairs(problem, groups, pairs.group, kind)[1]
            place = np.unique(place * (int(column.max()) + 1) + column, return_inverse=True)[1]
        self.contents = Contents(self.reduced, place, self.memo)
        self.devices = np.array([group.devices for group in groups], dtype=np.int64)[pairs.group]
        shape = int(place.max(initial=0)) + 1, len(problem.demands)
        with np.errstate(invalid="ignore"):
            whole = np.where(np.isinf(pairs.load), np.inf, self._unit()[:, None] * pairs.load)
        least = np.full((*shape, pairs.load.shape[1]), np.inf)
        np.minimum.at(least, (place, pairs.workload), whole)
        self.divisible = least.sum(axis=2)
        self.named = []
        for requirement in problem.required:
            there = np.zeros(shape, dtype=np.bool_)
            counted = meeting(problem, groups, pairs, requirement)
            there[place[counted], pairs.workload[counted]] = True
            self.named.append(there)

    @property
    def closest(self) -> int:
        """A place that is all there is would be the problem itself once more."""
        return SOLVED if len(self.divisible) > 1 else BY_KNAPSACK

    def least_of(self, part: Part) -> tuple[float, int]:
        """The least of a part's bounds, and its place."""
        if part not in self.least:
            workloads, met = part
            mine = _bits(workloads)
            bounds = self.divisible[:, mine].sum(axis=1)
            for r in _bits(met):
                bounds = np.where(self.named[r][:, mine].any(axis=1), bounds, np.inf)
            self.bounds[part], self.level[part] = bounds, np.full(len(bounds), BY_ARITHMETIC)
            self._renew(part)
        return self.least[part]

    def _renew(self, part: Part) -> None:
        bounds = self.bounds[part]
        s = int(bounds.argmin())
        self.least[part] = float(bounds[s]), s

    def best_partition(self) -> tuple[float, list[tuple[Part, int]]]:
        """The least total of bounds, and the parts with the places where it lies."""
        every, required = (1 << len(self.reduced.problem.demands)) - 1, (1 << len(self.reduced.problem.required)) - 1
        known: dict[Part, tuple[float, Part | None]] = {(0, 0): (0.0, None)}

        def best(left: int, needed: int) -> float:
            if (left, needed) in known:
                return known[left, needed][0]
            least, chosen = math.inf, None
            if left:
                first = left & -left
                for others in _subsets(left ^ first):
                    for met in _subsets(needed):
                        part = (first | others, met)
                        cost = self.least_of(part)[0]
                        if cost < least:
                            cost += best(left ^ part[0], needed ^ met)
                            if cost < least:
                                least, chosen = cost, part
            known[left, needed] = least, chosen
            return least

        total = best(every, required)
        parts: list[tuple[Part, int]] = []
        left, needed = every, required
        while left and (part := known[left, needed][1]) is not None:
            parts.append((part, self.least_of(part)[1]))
            left, needed = left ^ part[0], needed ^ part[1]
        return total, parts

    def refine(self, part: Part, s: int) -> None:
        """Know more closely what a part costs in a place, and where another seems cheaper then, by knapsack what it costs there."""
        self._look_closer(part, s)
        bound, s = self.least[part]
        while bound < self.enough and self.level[part][s] < BY_KNAPSACK:
            self._look_closer(part, s)
            bound, s = self.least[part]

    def _look_closer(self, part: Part, s: int) -> None:
        level = self.level[part]
        level[s] += 1
        found = self.by_knapsack(part, s) if level[s] == BY_KNAPSACK else self.solved(part, s)
        self.bounds[part][s] = max(self.bounds[part][s], found)
        self._renew(part)

    def by_knapsack(self, part: Part, s: int) -> float:
        """The most of what whole replicas cost, what the dearest workload does on whole nodes, and where the place has one kind of
        device, what whole nodes cost that have as many as all workloads take."""
        each = [self._alone_in(w, s) for w in _bits(part[0])]
        apart = max(math.fsum(one.usd for one in each), max(one.whole_usd for one in each))
        devices = math.fsum(one.devices for one in each)
        if len(each) == 1 or not math.isfinite(apart + devices):
            return apart
        key = self.contents.digest_of_part(_bits(part[0]), s)
        if key not in self.memo.covered:
            self.memo.covered[key] = least_cover(self._nodes_of(part, s), devices)
        return max(apart, self.memo.covered[key])

    def _alone_in(self, w: int, s: int) -> Alone:
        key = self.contents.digest(w, s)
        if key not in self.memo.alone:
            self.memo.alone[key] = self._by_itself(self.contents.rows(w, s))
        return self.memo.alone[key]

    def _by_itself(self, rows: IntArray) -> Alone:
        """Of a workload on these pairs. One of several traffic classes parts replicas between them: its are divisible here."""
        pairs, load = self.reduced.pairs, self.reduced.pairs.load[rows]
        load = load[:, (load > 0.0).any(axis=0)]
        size = pairs.devices[rows] / pairs.instances[rows]
        size = np.where(pairs.slots[rows] > 0, size, pairs.nodes_per_replica[rows] * self.devices[rows])
        if load.shape[1] != 1:
            with np.errstate(invalid="ignore"):
                devices = np.where(np.isinf(load), np.inf, size[:, None] * load).min(axis=0, initial=math.inf)
            return Alone(0.0, 0.0, float(devices.sum()))
        able = np.isfinite(load[:, 0])
        rows, work, size = rows[able], load[able, 0], size[able]
        unit = self._unit()[rows]
        usd = least_cover(_things(unit, 1.0 / work), 1.0)
        devices = least_cover(_things(size, 1.0 / work), 1.0)
        return Alone(usd, least_cover(self._nodes(rows, 1.0 / (pairs.node_fraction[rows] * work)), 1.0), devices)

    def _unit(self) -> FloatArray:
        """USD an hour of the share of a node that a replica takes, by pair."""
        pairs = self.reduced.pairs
        return np.asarray(pairs.usd_per_node_hour * pairs.node_fraction)

    def _nodes_of(self, part: Part, s: int) -> list[Coverer]:
        """Nodes that a part may take in a place by the devices that they have; what needs nothing where these are of several kinds."""
        rows = np.concatenate([self.contents.rows(w, s) for w in _bits(part[0])])
        groups, offers = self.reduced.groups, self.reduced.problem.offers
        kinds = {offers[groups[p].offers[0]].device_id for p in np.unique(self.reduced.pairs.group[rows]).tolist()}
        one_kind = self._nodes(rows, self.devices[rows].astype(np.float64))
        return one_kind if len(kinds) == 1 else [Coverer(TINY_USD, math.inf)]

    def _nodes(self, rows: IntArray, weight: FloatArray) -> list[Coverer]:
        """The offers of these pairs, each with the most that a pair makes of one of its nodes."""
        groups, offers = self.reduced.groups, self.reduced.problem.offers
        heaviest: dict[int, float] = {}
        for p, one in zip(self.reduced.pairs.group[rows].tolist(), weight.tolist(), strict=True):
            heaviest[p] = max(heaviest.get(p, 0.0), one)
        things = []
        for p, most_weight in heaviest.items():
            for offer in groups[p].offers:
                most = offers[offer].max_nodes
                cost = max(offers[offer].usd_per_hour, TINY_USD)
                things.append(Coverer(cost, most_weight, math.inf if most is None else most))
        return things

    def solved(self, part: Part, s: int) -> float:
        """What the part costs there by itself."""
        spares = self.reduced.problem.limits.spare_nodes
        key = self.contents.digest_of_part(_bits(part[0]), s, part[1], spares, self.seed)
        known = self.memo.solved.get(key)
        if known is None:
            few = self._only(part, s)
            answered = tried(few, Effort(PART_TIME_FRACTION * self.time_limit_s, seed=self.seed))
            if answered is None:
                return 0.0
            self.seconds += answered.solved.seconds
            draft = answered.draft()
            plan = None if draft is None else WholeNumbers.of(few, draft, slots_of(answered.model))
            bound = max(answered.bound, 0.0) * (1.0 - PROVEN_GAP_FRACTION / 10)
            known = SolvedPart(math.inf if answered.solved.proof == "infeasible" else bound, plan)
            if answered.solved.proof in ("optimal", "infeasible"):  # else more time would say more
                self.memo.solved[key] = known
        if known.plan is not None:
            self.answers[part, s] = known.plan
        return known.bound

    def _only(self, part: Part, s: int) -> ReducedProblem:
        """The problem of this part in this place."""
        reduced, problem = self.reduced, self.reduced.problem
        alone = only_demand_of(problem, _bits(part[0]))
        required = tuple(problem.required[r] for r in _bits(part[1]))
        alone = replace(alone, limits=Limits(spare_nodes=problem.limits.spare_nodes), required=required)
        rows = np.sort(np.concatenate([self.contents.rows(w, s) for w in _bits(part[0])]))
        groups, pairs = drop_unused_groups(alone, reduced.groups, reduced.pairs.take(rows))
        most = most_nodes(alone, groups, pairs, None, 0.0)
        return replace(reduced, problem=alone, groups=groups, pairs=pairs, max_nodes=most, bound=0.0, draft=None)

    def plan(self, parts: list[tuple[Part, int]]) -> Found | None:
        """The plans of the parts together; None where one has none, or they do not fit."""
        nodes: dict[int, int] = {}
        replicas: dict[PlacementKey, int] = {}
        slots: dict[int, list[tuple[tuple[int, ...], int]]] = {}
        for part, s in parts:
            if (part, s) not in self.answers:
                return None
            draft, cut = self.answers[part, s].placed(self._only(part, s))
            for offer, count in draft.nodes.items():
                nodes[offer] = nodes.get(offer, 0) + count
            for key, count in draft.replicas.items():
                replicas[key] = replicas.get(key, 0) + count
            for anchor, some in cut.items():
                slots.setdefault(anchor, []).extend(some)
        return realised(self.reduced, Draft(nodes, replicas, math.nan, 1.0), slots, "highs")


def _things(costs: FloatArray, weights: FloatArray) -> list[Coverer]:
    return [Coverer(max(c, TINY_USD), w) for c, w in zip(costs.tolist(), weights.tolist(), strict=True)]


@cache
def _bits(mask: int) -> list[int]:
    """Numbers of the bits that are set."""
    return [n for n in range(mask.bit_length()) if mask >> n & 1]


@cache
def _subsets(mask: int) -> tuple[int, ...]:
    """Every choice of the bits that are set, none of them among these."""
    found, some = [0], mask
    while some:
        found.append(some)
        some = (some - 1) & mask
    return tuple(found)
