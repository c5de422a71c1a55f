"""Screen every candidate of one workload: the rate each replica serves within the targets, and why others cannot."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from solver.candidates.confidence import margins
from solver.candidates.distinct_times import DistinctTimes, merged
from solver.candidates.more_servers import all_tokens_per_s
from solver.candidates.operating import points_of
from solver.candidates.phase_capacity import LEAST_REQUESTS_PER_S, RoleCapacities, Streamed, role_capacities
from solver.candidates.space import SearchSpace
from solver.capacity.goal import Goal
from solver.capacity.sustained_rate import CandidateReplica
from solver.corrections.applied import CorrectionSet, configuration_correction
from solver.engine.screened_capacity import (
    Capacity,
    ScreenedTimes,
    capacity,
    most_requests_per_s,
    saturation_requests_per_s,
)
from solver.prediction.estimate import without_probes
from solver.step.power import capped_w
from solver.traffic_classes import each_alone, with_targets_of
from solver.workload import Targets, Workload

Floats = NDArray[np.float64]
Rows = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ScreenedClass:
    """Requests of one kind over the candidates of a workload: rows of its space, with capacities (0 where a target cannot be met).

    workload: of this class alone. requests_per_s: what the closed form expects of a replica. most_requests_per_s: what no replica
    sustains more than, by the same; what one does sustain is for simulation to say (``CandidateReplica.bracket``).

    network_s: round trip between users and a candidate, (N, 1). Where a workload states distances, its space holds
    every candidate once for each, nearest first.

    roles: what prefill and decode replicas would serve, where the workload admits them.
    """

    workload: Workload
    space: SearchSpace
    distinct: DistinctTimes
    margin: Floats | float
    allowed: NDArray[np.bool_]
    capacity: Capacity
    requests_per_s: Floats
    most_requests_per_s: Floats
    saturation_requests_per_s: Floats
    power_w_per_replica: Floats
    network_s: Floats | float = 0.0
    corrections: CorrectionSet | None = None
    roles: RoleCapacities | None = None

    @property
    def serves(self) -> NDArray[np.bool_]:
        """Rows that serve this class within its targets, as far as screening can tell."""
        able: NDArray[np.bool_] = self.most_requests_per_s > 0.0
        return able

    def network_of(self, row: int) -> float:
        """Round trip between the users and this candidate, in seconds."""
        return float(self.network_s[row, 0]) if isinstance(self.network_s, np.ndarray) else self.network_s

    def margin_of(self, row: int) -> float:
        """Factor on this candidate's predicted times that the asked confidence takes."""
        return float(self.margin[row, 0]) if isinstance(self.margin, np.ndarray) else self.margin

    def candidate(self, row: int) -> CandidateReplica:
        """What a row sustains, as far as it is known, and the means to find out."""
        configuration = self.space.configuration(row)
        correction = configuration_correction(self.corrections, configuration)
        base = int(self.space.twin[row])
        measured = correction is not None and bool(correction.factors)
        return CandidateReplica(
            self.space.runs.of(
                (base, measured), self.workload.traffic, lambda: without_probes(configuration, correction)
            ),
            Goal(
                self.workload.only.targets,
                correction.factors if correction else {},
                self.margin_of(row),
                self.network_of(row),
                first_tokens_only=self.workload.traffic.output.maximum <= 1,
            ),
            float(self.most_requests_per_s[row]),
            float(self.saturation_requests_per_s[row]),
        )


@dataclass(frozen=True, slots=True)
class Screened:
    """One workload's candidates, with what they do for each of its traffic classes alone.

    No one rate says what a mix of several comes to; power is that of the class that draws most.
    """

    workload: Workload
    classes: tuple[ScreenedClass, ...]
    power_w_per_replica: Floats

    @property
    def only(self) -> ScreenedClass:
        """The class of a workload that has one. Raises ValueError for several."""
        (one,) = self.classes
        return one

    @property
    def space(self) -> SearchSpace:
        """The candidates, the same for every class."""
        return self.classes[0].space

    @property
    def roles(self) -> RoleCapacities | None:
        """What prefill and decode replicas would serve; None where the workload does not admit them, or is of several classes."""
        return self.classes[0].roles

    def class_capacities(self, rows: NDArray[np.int64]) -> Floats:
        """(rows, classes): what a replica sustains of each class alone at most, in requests per second."""
        return np.stack([one.most_requests_per_s[rows] for one in self.classes], axis=1)

    @property
    def serves(self) -> NDArray[np.bool_]:
        """Rows that serve any of its traffic within the targets, as far as screening can tell."""
        able: NDArray[np.bool_] = np.any([one.serves for one in self.classes], axis=0)
        return able

    def network_of(self, row: int) -> float:
        """Round trip between the users and this candidate, in seconds."""
        return self.classes[0].network_of(row)

    @property
    def copies(self) -> int:
        """How often the space holds every candidate: once for each distance."""
        return copies_of(self.workload)

    def alike(self, row: int) -> int:
        """The first candidate that performs as this one does, at the same distance."""
        base = len(self.space.rows) // self.copies
        return row - row % base + int(self.space.twin[row])

    def all_alike(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """``alike`` of many rows."""
        base = len(self.space.rows) // self.copies
        return rows // base * base + self.space.twin[rows]

    def with_at_most(self, at_most: Mapping[int, float]) -> "Screened":
        """The same where replicas of these rows, the first of their like, are known to sustain no more."""
        if not at_most:
            return self
        rows = np.arange(len(self.only.most_requests_per_s))
        known = np.full(len(rows), np.inf)
        known[list(at_most)] = [max(rate, LEAST_REQUESTS_PER_S) for rate in at_most.values()]
        most = np.minimum(self.only.most_requests_per_s, known[self.all_alike(rows)])
        return replace(self, classes=(replace(self.only, most_requests_per_s=most),))

    def siblings(self, row: int) -> list[int]:
        """First of their like: the same layout on the same device, in every precision."""
        base = len(self.space.rows) // self.copies
        first, cuts = row - row % base, self.space.cut
        same = first + np.flatnonzero(cuts[:base] == cuts[row])
        return sorted({self.alike(other) for other in same.tolist() if self.serves[other]})


def copies_of(workload: Workload) -> int:
    """How often a workload's space holds every candidate: once for each distance from its users."""
    return max(1, len(workload.distances_s))


def exchange_names(screened: Screened) -> list[str]:
    """By row: what the other side of an exchange must share, beside provider and region: cache format, engine, vendor."""
    space = screened.space
    own = [f"{platform.engine}/{platform.device.vendor}" for platform in space.platforms]
    return [f"{kv}/{own[p]}" for kv, p in zip(space.kv_formats.tolist(), space.platform_index.tolist(), strict=True)]


def screen(
    workload: Workload,
    space: SearchSpace,
    *,
    power_matters: bool = False,
    corrections: CorrectionSet | None = None,
    among: Rows | None = None,
) -> Screened:
    """Evaluate all rows of a space under the traffic and targets of each of a workload's classes.

    Classes whose requests are of the same lengths share the work. power_matters: devices whose power nobody publishes are left out.
    corrections: what measurements say about single configurations. among: rows that are asked about, with all that perform alike; others
    then serve nothing. Nothing that is said of one row depends on those of other machines.
    """
    found: list[ScreenedClass] = []
    for alone in each_alone(workload):
        twin = next((one for one in found if _differ_in_targets_only(one.workload, alone)), None)
        if twin is None:
            found.append(_screened_class(alone, space, among, power_matters=power_matters, corrections=corrections))
        else:
            found.append(_retargeted(twin, alone, twin.margin))
    return of_classes(workload, found)


def _differ_in_targets_only(one: Workload, other: Workload) -> bool:
    sure = one.only.targets.confidence_fraction == other.only.targets.confidence_fraction
    return sure and one.traffic == other.traffic


def of_classes(workload: Workload, classes: Sequence[ScreenedClass]) -> Screened:
    """A workload whose classes are screened, without what steps of the next smaller size, or one process that answers, do as well."""
    dropped = no_better_than_smaller(classes) | no_better_than_one_process(classes)
    return together(workload, [_without(one, dropped) for one in classes])


def together(workload: Workload, classes: Sequence[ScreenedClass]) -> Screened:
    """A workload of these classes, which has as many candidates as they have."""
    power = [np.where(one.serves, one.power_w_per_replica, 0.0) for one in classes]
    return Screened(workload, tuple(classes), np.max(power, axis=0))


def _without(one: ScreenedClass, dropped: NDArray[np.bool_]) -> ScreenedClass:
    """A class that these rows do not serve, in pools aside, whose steps are as asked."""
    if not one.serves[dropped].any():
        return one
    return replace(_narrowed(one, ~dropped), roles=one.roles)


LITTLE_LESS = 0.98
"""Share of what the largest steps complete, whatever the latency, from which on the next smaller ones stand for them: in what simulation
finds replicas to sustain within their targets that loses little (``python -m tests.bench.steps_tried``). No target decides it,
so that a looser one never leaves fewer to choose among."""


def no_better_than_smaller(classes: Sequence[ScreenedClass]) -> NDArray[np.bool_]:
    """Rows whose next smaller steps complete about as many requests of every class."""
    space = classes[0].space
    copies = len(classes[0].saturation_requests_per_s) // len(space.rows)
    largest, smaller = space.next_smaller_steps
    found = np.zeros((copies, len(space.rows)), dtype=np.bool_)
    for copy in range(copies):
        most = [one.saturation_requests_per_s.reshape(copies, -1)[copy] for one in classes]
        found[copy, largest] = np.all([of[smaller] >= LITTLE_LESS * of[largest] for of in most], axis=0)
    return found.ravel()


def no_better_than_one_process(classes: Sequence[ScreenedClass]) -> NDArray[np.bool_]:
    """Rows with more processes that answer, of which no class needs them: it is sustained at no more than those pass on that are asked. A
    looser target never leaves fewer rows."""
    space = classes[0].space
    many, asked = space.behind_more_servers
    found = np.zeros(len(space.rows), dtype=np.bool_)
    passed_on = space.passed_on_tokens_per_s[asked]
    found[many] = np.all(
        [one.most_requests_per_s[many] * max(1.0, one.workload.traffic.output.mean) <= passed_on for one in classes],
        axis=0,
    )
    return found


def one_process_is_enough(screened: Screened, requests_per_s: float) -> NDArray[np.bool_]:
    """Rows with more processes that answer than a replica needs that is sent all of so many requests a second, of all classes in their
    proportions: as many as are asked pass that on."""
    workload, space = screened.workload, screened.space
    many, asked = space.behind_more_servers
    found = np.zeros(len(space.rows), dtype=np.bool_)
    if len(many):
        found[many] = all_tokens_per_s(workload, requests_per_s) <= space.passed_on_tokens_per_s[asked]
    return found


def _screened_class(
    workload: Workload,
    space: SearchSpace,
    among: Rows | None,
    *,
    power_matters: bool,
    corrections: CorrectionSet | None,
) -> ScreenedClass:
    """Evaluate all rows of a space, or those ``among``, for a workload of one class."""
    traffic = workload.traffic
    mean_context = traffic.prompt.mean + traffic.output.mean / 2.0
    unshared = 1.0 - traffic.shared_memory_fraction
    cache = space.cache_tokens(mean_context)
    # A shared prefix is held once: requests add only what is their own.
    own = mean_context - traffic.prompt.mean * traffic.shared_memory_fraction
    cache = cache * (mean_context / max(own, 1.0)) if unshared < 1.0 else cache
    first, place = space.distinct
    allowed = np.isin(space.weight_formats, workload.weight_formats) & np.isin(
        space.kv_formats, workload.kv_cache_formats
    )
    if among is not None and among.any():
        asked_of = np.zeros(len(first), dtype=np.bool_)
        asked_of[place[among]] = True
        allowed &= asked_of[place]
        first, place = first[asked_of], np.maximum(np.cumsum(asked_of) - 1, 0)[place]
    behind = ((front, np.flatnonzero(np.isin(first, members))) for front, members in space.fronts)
    result = [
        (mine, points_of(space, first[mine], traffic, front, cache, mean_context))
        for front, mine in behind
        if len(mine)
    ]
    points = result[0][1] if len(result) == 1 else merged(len(first), result)
    distinct = DistinctTimes(ScreenedTimes(points, traffic), first, place)
    asked = margins(workload, space, corrections)
    margin: Floats | float = 1.0 if asked is None else asked[:, None]
    if power_matters:
        allowed &= space.power_limit_w > 0.0
    if distances := workload.distances_s:
        return _at_distances(workload, space, distinct, margin, allowed, distances, corrections)
    return _within_targets(workload, space, distinct, margin, allowed, 0.0, corrections)


def _at_distances(
    workload: Workload,
    space: SearchSpace,
    distinct: DistinctTimes,
    margin: Floats | float,
    allowed: NDArray[np.bool_],
    distances_s: tuple[float, ...],
    corrections: CorrectionSet | None,
) -> ScreenedClass:
    copies = len(distances_s)
    each_margin = np.tile(margin, (copies, 1)) if isinstance(margin, np.ndarray) else margin
    network_s = np.repeat(np.array(distances_s), len(space.rows))[:, None]
    return _within_targets(
        workload, space.repeated(copies), distinct.repeated(copies, len(space.rows)), each_margin,
        np.tile(allowed, copies), network_s, corrections,
    )  # fmt: skip


def narrowed(screened: Screened, kept: NDArray[np.bool_]) -> Screened:
    """A workload that may run on some of its candidates only."""
    return replace(screened, classes=tuple(_narrowed(one, kept) for one in screened.classes))


def _narrowed(one: ScreenedClass, kept: NDArray[np.bool_]) -> ScreenedClass:
    roles = one.roles
    if roles is not None:
        roles = RoleCapacities(np.where(kept, roles.prefill, 0.0), np.where(kept, roles.decode, 0.0))
    return replace(
        one,
        roles=roles,
        requests_per_s=np.where(kept, one.requests_per_s, 0.0),
        most_requests_per_s=np.where(kept, one.most_requests_per_s, 0.0),
    )


def with_targets(screened: Screened, targets: Targets, number: int = 0) -> Screened:
    """The same candidates under other targets of the class with this number."""
    return with_workload(screened, with_targets_of(screened.workload, number, targets))


def with_workload(screened: Screened, workload: Workload) -> Screened:
    """The same candidates under other targets and rates; nothing is evaluated again but the comparison."""
    pairs = zip(screened.classes, each_alone(workload), strict=True)
    return of_classes(workload, [_retargeted(one, alone, one.margin) for one, alone in pairs])


def at_even_odds(screened: Screened, workload: Workload) -> Screened:
    """The same candidates held to the prediction itself: ``workload`` asks for no more confidence than that."""
    pairs = zip(screened.classes, each_alone(workload), strict=True)
    return of_classes(workload, [_retargeted(one, alone, 1.0) for one, alone in pairs])


def _retargeted(one: ScreenedClass, workload: Workload, margin: Floats | float) -> ScreenedClass:
    if margin is one.margin and _differ_in_rates_only(one.workload, workload):
        return replace(one, workload=workload)
    return _within_targets(workload, one.space, one.distinct, margin, one.allowed, one.network_s, one.corrections)


def _differ_in_rates_only(one: Workload, other: Workload) -> bool:
    """Is what replicas sustain of them the same?"""
    return one.only.targets == other.only.targets and one.traffic == other.traffic and one.roles == other.roles


def _within_targets(
    workload: Workload,
    space: SearchSpace,
    distinct: DistinctTimes,
    margin: Floats | float,
    allowed: NDArray[np.bool_],
    network_s: Floats | float,
    corrections: CorrectionSet | None,
) -> ScreenedClass:
    targets = workload.only.targets
    times, first, place = distinct.times, distinct.first, distinct.place
    slower = margin[first] if isinstance(margin, np.ndarray) else margin
    away = network_s[first] if isinstance(network_s, np.ndarray) else network_s
    found = capacity(times, targets, slower, away).take(place)
    passed_on = space.passed_on_tokens_per_s / max(1.0, workload.traffic.output.mean)
    served = np.minimum(passed_on, found.requests_per_s)
    served = np.where(allowed & (served > LEAST_REQUESTS_PER_S), served, 0.0)
    most = most_requests_per_s(times, targets, slower * least_factor(corrections, workload.llm_id), away)[place]
    most = np.minimum(passed_on, np.where(allowed & (most > LEAST_REQUESTS_PER_S), most, 0.0))
    roles = None
    if "disaggregated" in workload.roles:
        grid = space.grid_of(np.arange(len(space.rows)) % len(space.grid_row))
        stream = Streamed(space, grid, distinct.points_of_all(), workload.traffic, targets, margin, network_s)
        roles = role_capacities(stream, allowed)
        roles = replace(roles, decode=np.minimum(roles.decode, passed_on))
    power = _power_w(space, found)
    return ScreenedClass(
        workload, space, distinct, margin, allowed, found, served, most, saturation_requests_per_s(times.points)[place], power,
        network_s, corrections=corrections, roles=roles,
    )  # fmt: skip


def least_factor(corrections: CorrectionSet | None, llm: str) -> float:
    """The smallest factor by which runs of any configuration of a model correct a prediction; at most 1. Plans are of trained weights."""
    if corrections is None:
        return 1.0
    evidence = (one.factors for each in corrections.corrections for one in each.evidence
                if one.llm == llm and not one.random_routing)  # fmt: skip
    cells = (found.factors for cell, found in corrections.cells.items() if cell.llm == llm and not cell.random_routing)
    return min(1.0, *(factor for factors in (*evidence, *cells) for factor in factors.values()), 1.0)


def _power_w(space: SearchSpace, found: Capacity) -> Floats:
    """Mean power of a replica's devices at its capacity: what a plan at full use draws."""
    shares = np.array(
        [
            [
                p.constants.si("idle_power_fraction"),
                p.constants.si("memory_power_fraction"),
                p.constants.si("compute_power_fraction_16bit"),
                p.constants.si("compute_power_fraction_8bit"),
                p.constants.si("power_cap_fraction"),
            ]
            for p in space.platforms
        ]
    )[space.platform_index]
    compute = np.where(space.narrow, shares[:, 3], shares[:, 2])
    raw = space.power_limit_w * (
        shares[:, 0]
        + shares[:, 1] * found.memory_utilisation / space.memory_bandwidth
        + compute * found.compute_utilisation / space.matrix_rate
    )
    per_device: Floats = np.nan_to_num(np.asarray(capped_w(raw, space.power_limit_w * shares[:, 4])))
    return per_device * space.devices_per_replica


def sustained_power_w(space: SearchSpace) -> Floats:
    """Most that a replica's devices draw for long, by row: the sustained maximum of each, power limit × cap fraction."""
    cap = np.array([platform.constants.si("power_cap_fraction") for platform in space.platforms])[space.platform_index]
    watts: Floats = np.nan_to_num(space.power_limit_w * cap) * space.devices_per_replica
    return watts
