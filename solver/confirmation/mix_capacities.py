"""Capacities of traffic classes in a fleet problem: screened ones, as far as simulation has not found others.

Also the replicas that take part of a workload's traffic classes only: they join the problem once a mix has failed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from solver.candidates.screening import Screened
from solver.confirmation.confirmations import Confirmations, Scales
from solver.confirmation.mixes import be_pessimistic, groups_of, held_alone, mix_holds, mixed_workloads
from solver.confirmation.rates import rates_to_hold
from solver.fleet import DeploymentTable
from solver.planning.assemble import Assembly, Floats, Integers
from solver.planning.placements import Placement
from solver.traffic_classes import ClassSet

MOST_MIX_ROUNDS = 40
"""Rounds after which a plan with mixes that still do not hold is given up for one of what does."""


class Mixes:
    """Of replicas that serve several traffic classes: see ``solver.confirmation.mixes``."""

    known_by_candidate = False
    most_rounds: float = MOST_MIX_ROUNDS

    def __init__(self, confirmations: Confirmations, screened: Sequence[Screened]) -> None:
        self._confirmations, self._screened = confirmations, screened
        self._workloads = {w for w, _ in mixed_workloads(screened)}

    def assumed(self, assembly: Assembly) -> Assembly:
        """The problem in which mixes are believed as far as those like them hold."""
        return with_mix_capacity(assembly, self._confirmations)

    def confirmed(self, assembly: Assembly) -> Assembly:
        """The same: once pessimistic, it is of what has been simulated. No mix but that of a plan is known to hold."""
        return self.assumed(assembly)

    def apart(self, assembly: Assembly) -> Assembly:
        """The problem in which each replica is kept to one class, of which it sustains what simulation has seen it hold alone: no mix needs
        to be simulated for a plan of it."""
        return with_classes_apart(assembly, self._confirmations)

    def hold(self, assembly: Assembly, places: Sequence[Placement], in_time: Callable[[], bool]) -> bool:
        """Do all of a plan's replicas meet every class's targets at the mixes that they are sent?"""
        held = True
        for place in places:
            if place.workload not in self._workloads or place.requests_per_s <= 0.0:
                continue
            if not in_time():
                return False
            one, rates = self._screened[place.workload], rates_to_hold(assembly, place)
            held &= mix_holds(self._confirmations, place.workload, one, place.row, place.classes, rates)
        return held

    def hold_confirmed(self, assembly: Assembly, places: Sequence[Placement]) -> bool:
        """Do they, however long it takes?"""
        return self.hold(assembly, places, lambda: True)

    def settle_plan(
        self, _assembly: Assembly, _places: Sequence[Placement], _capacity: Floats, _in_time: Callable[[], bool]
    ) -> None:
        """What a replica sustains of one mix says little of another: capacities stay as the plan was made for."""

    def be_pessimistic(self) -> None:
        """From now on plan only with mixes of rows that have been simulated."""
        be_pessimistic(self._confirmations, self._screened)


def with_mix_capacity(assembly: Assembly, confirmations: Confirmations) -> Assembly:
    """The same problem with the capacities of traffic classes that simulation of mixes found; zero drops a candidate.

    All others have their screened ones times what like candidates fell short by. Replicas for part of a workload's classes
    join it, where simulation has found that they may be wanted.
    """
    if not (confirmations.mix_factors or confirmations.pessimistic):
        return assembly
    scales = confirmations.scales(mixed_workloads(assembly.screened))
    return scaled(with_class_sets(assembly, confirmations.class_sets, scales), scales)


def with_classes_apart(assembly: Assembly, confirmations: Confirmations) -> Assembly:
    """The same problem where no replica serves classes that an engine tells apart, and sustains what it was seen to hold of its own."""
    sets: dict[int, tuple[ClassSet, ...]] = {}
    scales: dict[int, Scales] = {}
    for w, one in mixed_workloads(assembly.screened):
        nothing = np.zeros((len(one.space.rows), len(one.classes)))
        factors = dict.fromkeys(assembly.class_sets, nothing)
        for group in groups_of(one):
            factors[tuple(group)] = held_alone(confirmations, w, one, group)
        sets[w], scales[w] = tuple(tuple(group) for group in groups_of(one)), factors
    return scaled(with_class_sets(assembly, sets, scales), scales)


def scaled(assembly: Assembly, scales: Mapping[int, Scales]) -> Assembly:
    """Screened capacities times factors by workload, classes and row."""
    capacity = assembly.problem.deployments.capacity_requests_per_s.copy()
    for w, factors in scales.items():
        one = assembly.screened[w]
        for number, classes in enumerate(assembly.class_sets):
            mine = np.flatnonzero(assembly.rows_in_role(w) & (assembly.classes_of == number))
            if len(mine):
                rows = assembly.row_of[mine]
                found = one.class_capacities(rows) * factors[classes][rows] * _mask(one, classes)
                capacity[mine] = 0.0
                capacity[mine, : found.shape[1]] = found
    return assembly.with_capacity(capacity)


def _mask(one: Screened, classes: ClassSet) -> Floats:
    """1 for the classes that replicas take, 0 for others."""
    return np.array([1.0 if not classes or k in classes else 0.0 for k in range(len(one.classes))])


def with_class_sets(
    assembly: Assembly, wanted: Mapping[int, tuple[ClassSet, ...]], scales: Mapping[int, Scales]
) -> Assembly:
    """The same problem with replicas for these classes of these workloads beside those that take all of them.

    What is required of the whole candidates may be met by these, too. Of replicas for one class that take the same devices
    only the best is of use.
    """
    for workload, sets in wanted.items():
        for classes in sets:
            assembly = _with_class_set(assembly, workload, classes, scales[workload][classes])
    return assembly


def _with_class_set(assembly: Assembly, workload: int, classes: ClassSet, scale: Floats) -> Assembly:
    sets = assembly.class_sets if classes in assembly.class_sets else (*assembly.class_sets, classes)
    number, mine = sets.index(classes), assembly.rows_in_role(workload)
    if (mine & (assembly.classes_of == number)).any():
        return assembly
    problem, table = assembly.problem, assembly.problem.deployments
    one = assembly.screened[workload]
    mask = _mask(one, classes)
    added = np.flatnonzero(mine & (assembly.classes_of == 0))
    assumed = one.class_capacities(assembly.row_of[added]) * scale[assembly.row_of[added]] * mask
    able = (assumed > 0.0).any(axis=1)
    added, assumed = added[able], assumed[able]
    if not len(added):
        return assembly
    power_matters = problem.objective in ("power", "carbon") or problem.limits.power_w is not None
    if len(classes) == 1 and not (power_matters or problem.limits.carbon_kg_per_hour is not None or problem.required):
        added = added[_best_of_their_kind(table.take(added), assumed.max(axis=1))]
    keys = len(table) + np.arange(len(added), dtype=np.int64)
    part = replace(table.take(added), power_w_per_replica=_power_w(assembly, workload, classes, added))
    capacity = part.capacity_requests_per_s.copy()
    capacity[:, : len(mask)] *= mask
    joined = _below(table, replace(part, capacity_requests_per_s=capacity, key=keys))
    copies = dict(zip(table.key[added].tolist(), keys.tolist(), strict=True))
    required = tuple(
        one if one.keys is None else replace(one, keys=one.keys | {copies[key] for key in one.keys if key in copies})
        for one in problem.required
    )
    return replace(
        assembly,
        problem=replace(problem, deployments=joined, required=required),
        workload_of=np.concatenate([assembly.workload_of, assembly.workload_of[added]]),
        row_of=np.concatenate([assembly.row_of, assembly.row_of[added]]),
        classes_of=np.concatenate([assembly.classes_of, np.full(len(added), number, dtype=np.int64)]),
        class_sets=sets,
    )


def _best_of_their_kind(table: DeploymentTable, capacity_requests_per_s: Floats) -> Integers:
    """Rows that serve most of those which take the same devices of the same nodes, one each."""
    same = [table.node_type, table.devices_per_replica, table.nodes_per_replica]
    same += [column for column in (table.site, table.split) if column is not None]
    order = np.lexsort((-capacity_requests_per_s, *same))
    ordered = np.stack(same)[:, order]
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    best: Integers = np.sort(order[first])
    return best


def _below(table: DeploymentTable, part: DeploymentTable) -> DeploymentTable:
    """Both tables as one; they are of the same node types, sites and splits."""
    return replace(
        table,
        workload=np.concatenate([table.workload, part.workload]),
        node_type=np.concatenate([table.node_type, part.node_type]),
        devices_per_replica=np.concatenate([table.devices_per_replica, part.devices_per_replica]),
        nodes_per_replica=np.concatenate([table.nodes_per_replica, part.nodes_per_replica]),
        capacity_requests_per_s=np.concatenate([table.capacity_requests_per_s, part.capacity_requests_per_s]),
        power_w_per_replica=np.concatenate([table.power_w_per_replica, part.power_w_per_replica]),
        key=np.concatenate([table.key, part.key]),
        site=None if table.site is None or part.site is None else np.concatenate([table.site, part.site]),
        split=None if table.split is None or part.split is None else np.concatenate([table.split, part.split]),
        role=None if table.role is None or part.role is None else np.concatenate([table.role, part.role]),
        exchange=None
        if table.exchange is None or part.exchange is None
        else np.concatenate([table.exchange, part.exchange]),
        copies=None if table.copies is None else np.concatenate([table.copies, part.copies_of_model]),
    )


def _power_w(assembly: Assembly, workload: int, classes: ClassSet, keys: Integers) -> Floats:
    """Of replicas that take these classes: that of the class that draws most."""
    rows, one = assembly.row_of[keys], assembly.screened[workload]
    each = [one.classes[k] for k in classes]
    able = [np.where(c.most_requests_per_s[rows] > 0.0, c.power_w_per_replica[rows], 0.0) for c in each]
    most: Floats = np.stack(able).max(axis=0)
    return most
