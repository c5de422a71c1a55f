"""Confirms replicas that serve several traffic classes at once, by simulating the mix each of them gets.

The optimiser adds classes up as if a replica gave each a part of its time: Σ_k λ_k/μ_k ≤ x with every μ_k that of the
class alone. In a real engine classes meet: long prompts make short replies wait. So the mix of a plan's replicas is
simulated, every class against its own targets. Where it does not hold,

    μ_k ← f_k·μ_k   with   Σ_k s·r_k/(f_k·μ_k) = 1      for the classes in the mix

with s the largest share of the mix's rates r that holds: at that mix the replica's capacity is then what it serves
(``factors_of_mix`` says how the cost of company is laid on the classes). The factors hold for every mix on the row, which
is stricter than need be for some; so replicas for each class alone join the choice, and where some classes miss and others
do not, replicas for either. A row whose mixes keep failing is left to one class a replica, where no mix is needed.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from solver.candidates.screening import Screened, together
from solver.capacity.goal import DRAW_EXCESS
from solver.capacity.sustained_rate import Bracket, CandidateReplica
from solver.confirmation.brackets import Brackets
from solver.confirmation.confirmations import MOST_TRIES, Confirmations, Floats, MixKey, largest_holding
from solver.confirmation.rates import ROUNDING
from solver.errors import InvalidInputError, SaturatedError
from solver.replay.draw_sizes import DRAW_SEEDS, DRAWS, FURTHER_SEEDS
from solver.replay.long_run import MixedLongRun, draw_mixed, is_sure
from solver.replay.streams import MixedReplay, RequestStream
from solver.traffic_classes import ALONE, ClassSet, admitted, alike, with_rate

Rates = tuple[float, ...]
"""By class, of one replica; 0 where it takes none of a class."""

MOST_TRIES_IN_BAD_COMPANY = 3
"""Simulations to find how little of a mix holds where only some of its classes miss their targets: they had better part."""
MOST_SHARED_SETS = 2
"""Sets of several classes, beside all of them, for which a workload's replicas may be kept: each is a table of its own."""
MOST_MIXES = 4
"""Mixes of one row that may fail before its replicas are kept to one class each."""
LEAST_SHARE = 1e-6
"""Of a class's rate on a replica, in that of all classes together: less is none."""


def mixed_workloads(screened: Sequence[Screened]) -> list[tuple[int, Screened]]:
    """Numbers and candidates of workloads whose replicas may be sent a mix; what others sustain is one rate, and has a bracket."""
    return [(w, one) for w, one in enumerate(screened) if one.workload.is_mixed]


def mix_ratios(confirmations: Confirmations, screened: Screened, row: int, rates: Rates) -> Rates:
    """Simulate one replica under a mix: for each class its worst value over target; infinite above capacity.

    Classes that no engine tells apart are one stream.
    """
    groups = [[k for k in group if rates[k] > 0.0] for group in groups_of(screened)]
    groups = [group for group in groups if group]
    streams = [
        RequestStream(screened.classes[group[0]].workload.traffic, math.fsum(rates[k] for k in group))
        for group in groups
    ]
    runs = screened.classes[groups[0][0]].candidate(row).runs
    if len(groups) == 1:
        before = runs.simulations
        ratio = _ratio_alone(screened.classes[groups[0][0]].candidate(row), streams[0].requests_per_s)
        confirmations.simulations += runs.simulations - before
        return tuple(ratio if k in groups[0] else 0.0 for k in range(len(rates)))
    goals = [screened.classes[group[0]].candidate(row).goal for group in groups]
    draws: list[MixedReplay] = []
    each: list[float] = []
    for seed in (*DRAW_SEEDS, *FURTHER_SEEDS):
        if len(draws) == DRAWS and is_sure(MixedLongRun(tuple(draws)).whole):
            break
        confirmations.simulations += 1
        try:
            draws.append(draw_mixed(runs.configuration, runs.step_tables(), streams, seed, notes_gaps=False))
        except (SaturatedError, InvalidInputError):
            return tuple(math.inf if rate > 0.0 else 0.0 for rate in rates)
        found = MixedLongRun(tuple(draws))
        each = [goal.ratio_of(found.of_stream(stream)) for stream, goal in enumerate(goals)]
        if len(draws) == 1 and max(each) > DRAW_EXCESS:
            break  # one draw is enough to see that
    ratios = [0.0] * len(rates)
    for ratio, group in zip(each, groups, strict=True):
        for k in group:
            ratios[k] = ratio
    return tuple(ratios)


def worst_ratio(confirmations: Confirmations, screened: Screened, row: int, rates: Rates) -> float:
    """The worst value over its target of any class on one replica; infinite above capacity.

    Of requests of one kind every draw is kept with the candidate (``solver.capacity.runs``): a rate that was simulated is not
    simulated again.
    """
    if screened.workload.is_mixed:
        return max(mix_ratios(confirmations, screened, row, rates))
    return _ratio_alone(screened.only.candidate(row), math.fsum(rates))


def _ratio_alone(candidate: CandidateReplica, requests_per_s: float) -> float:
    run = candidate.runs.long_run(requests_per_s)
    return math.inf if run is None else candidate.goal.ratio_of(run)


def mix_holds(
    confirmations: Confirmations, workload: int, screened: Screened, row: int, classes: ClassSet, rates: Rates
) -> bool:
    """Does a replica meet every class's targets at these rates? What is found to be too much corrects the row's capacity."""
    total = math.fsum(rates)
    rates = tuple(rate if rate > LEAST_SHARE * total else 0.0 for rate in rates)
    groups = groups_of(screened)
    together = _together(groups, rates)
    if any(_covers(held, together) for held in confirmations.held_mixes.get((workload, row), ())):
        return True
    taking = [number for number, rate in enumerate(together) if rate > 0.0]
    alone = len(taking) == 1
    if alone and not _may_carry_alone(confirmations, workload, screened, row, groups[taking[0]], together[taking[0]]):
        return False

    def ratios_at(rate: float) -> Rates:
        return mix_ratios(confirmations, screened, row, tuple(part * (rate / total) for part in rates))

    first = ratios_at(total)
    missing = tuple(k for k, ratio in enumerate(first) if ratio > 1.0)
    held = total
    if missing:
        parts = sum(rate > 0.0 for rate in rates)
        tries = MOST_TRIES if len(missing) == parts else MOST_TRIES_IN_BAD_COMPANY
        known = iter([max(first)])
        held = largest_holding(lambda rate: next(known, None) or max(ratios_at(rate)), total, most_tries=tries)
    if held > 0.0:
        seen = confirmations.held_mixes.get((workload, row), ())
        mix = tuple(rate * (held / total) for rate in together)
        confirmations.held_mixes[workload, row] = (*seen, mix)
    if held >= total * (1.0 - 1e-9):
        return True
    _correct(confirmations, (workload, row, ALONE if alone else classes), screened, rates, held / total)
    if not alone:
        _divide(confirmations, (workload, row, classes), screened, rates, missing)
    return False


def alone_of(screened: Screened, group: Sequence[int]) -> Screened:
    """Classes that no engine tells apart as the only traffic of their workload, at the rate of all of them."""
    one = screened.classes[group[0]]
    workload = with_rate(one.workload, math.fsum(screened.workload.classes[k].requests_per_s for k in group))
    return together(workload, [replace(one, workload=workload)])


def _may_carry_alone(
    confirmations: Confirmations, workload: int, screened: Screened, row: int, group: Sequence[int], rate: float
) -> bool:
    """May a replica carry this rate of one class without company, as far as its bracket says? That is one rate, known to all questions of
    a request; where it does not it is found exactly. Where it does a plan is true only once all draws say so."""
    brackets, enough = Brackets([alone_of(screened, group)], confirmations.facts), rate * (1.0 - ROUNDING)
    bracket = brackets.carry(0, row, enough)
    may = bracket.holds >= enough
    if not may:
        _learn_row(confirmations, workload, row, screened, group, brackets.settle(0, row))
    confirmations.simulations += brackets.simulations
    return may


def learn(
    confirmations: Confirmations, workload: int, group: Sequence[int], screened: Screened, alone: Screened
) -> None:
    """Add what simulation has found of classes that no engine tells apart where they have a replica to themselves.

    alone: the workload of these classes only, about which the facts say what was found.
    """
    rows = np.arange(len(alone.only.most_requests_per_s))
    known = confirmations.facts.of(alone).known
    alike = alone.all_alike(rows)
    for row in np.flatnonzero(np.isin(alike, list(known))).tolist():
        _learn_row(confirmations, workload, row, screened, group, known[int(alike[row])])


def held_alone(confirmations: Confirmations, workload: int, screened: Screened, group: Sequence[int]) -> Floats:
    """Of what screening leaves each row of classes that no engine tells apart, the share that simulation has seen it hold without
    company, (rows, classes); 0 of other classes, and of rows that nobody has simulated."""
    only = alone_of(screened, group)
    most = only.only.most_requests_per_s
    held = np.zeros(len(most))
    alike = only.all_alike(np.arange(len(most)))
    for row, bracket in confirmations.facts.of(only).known.items():
        held[alike == row] = bracket.holds
    shares: Floats = np.zeros((len(most), len(screened.classes)))
    shares[:, list(group)] = np.divide(held, most, out=np.zeros(len(most)), where=most > 0.0)[:, None]
    for (w, row, classes), factors in confirmations.mix_factors.items():  # what all draws have since said is less
        if w == workload and classes == ALONE:
            shares[row] = np.minimum(shares[row], factors)
    return shares


def _learn_row(
    confirmations: Confirmations, workload: int, row: int, screened: Screened, group: Sequence[int], bracket: Bracket
) -> None:
    most = float(screened.classes[group[0]].most_requests_per_s[row])
    if most > 0.0 and bracket.at_most < most:
        factors = list(confirmations.mix_factors.get((workload, row, ALONE), (1.0,) * len(screened.classes)))
        for k in group:
            factors[k] = min(factors[k], bracket.at_most / most)
        confirmations.mix_factors[workload, row, ALONE] = tuple(factors)


def be_pessimistic(confirmations: Confirmations, screened: Sequence[Screened]) -> None:
    """From now on only mixes of rows are planned with that have been simulated; any class alone still is."""
    confirmations.pessimistic = True
    for workload, one in mixed_workloads(screened):
        known = confirmations.class_sets.get(workload, ())
        alone = [(k,) for k in range(len(one.classes))]
        confirmations.class_sets[workload] = tuple(dict.fromkeys((*known, *alone)))


def groups_of(screened: Screened) -> list[list[int]]:
    """Numbers of a workload's classes, those that no engine tells apart together."""
    return alike(screened.workload.classes)


def _together(groups: Sequence[Sequence[int]], rates: Rates) -> Rates:
    """Rates of classes that no engine tells apart, added up."""
    return tuple(math.fsum(rates[k] for k in group) for group in groups)


def _covers(held: Rates, rates: Rates) -> bool:
    return all(rate <= known * (1.0 + 1e-12) for known, rate in zip(held, rates, strict=True))


def _correct(confirmations: Confirmations, key: MixKey, screened: Screened, rates: Rates, share: float) -> None:
    """The capacities of the classes in the mix, so that what holds of it is all that the replica takes."""
    workload, row, _ = key
    groups = groups_of(screened)
    alone = confirmations.mix_factors.get((workload, row, ALONE), (1.0,) * len(rates))
    work = [
        share
        * math.fsum(rates[k] / float(screened.classes[k].most_requests_per_s[row]) for k in group if rates[k] > 0.0)
        for group in groups
    ]
    taking = [any(rates[k] > 0.0 for k in group) for group in groups]
    parts = [w / alone[group[0]] if alone[group[0]] > 0.0 else 0.0 for w, group in zip(work, groups, strict=True)]
    found = factors_of_mix(parts) if share > 0.0 else [0.0 if taken else 1.0 for taken in taking]
    factors = list(confirmations.mix_factors.get(key, (1.0,) * len(rates)))
    for group, factor in zip(groups, found, strict=True):
        for k in group:
            factors[k] = min(factors[k], factor * alone[k])
    confirmations.mix_factors[key] = tuple(factors)


def factors_of_mix(parts: Sequence[float]) -> list[float]:
    """Factors f on what each class can do alone, with which a mix that holds fills the replica: Σ_k q_k/f_k = 1.

    parts: q, the share of a replica that each class of the mix would take alone. What is missing from 1 is the cost of
    company. It is laid on the classes by how much company each had, 1/f_k = 1 + (1 − Q)·(Q − q_k)/Σ_j q_j·(Q − q_j) with
    Q = Σ q: a class that fills the replica nearly alone keeps its capacity, its few guests are what is dear. A class alone
    has f = q.

    >>> [round(f, 3) for f in factors_of_mix([0.6, 0.1, 0.0])]
    [0.8, 0.4, 1.0]
    >>> factors_of_mix([0.4])
    [0.4]
    """
    whole = math.fsum(parts)
    together = math.fsum(part * (whole - part) for part in parts)
    if together <= 0.0:
        return [min(1.0, part) if part > 0.0 else 1.0 for part in parts]
    missing = max(0.0, 1.0 - whole)
    return [1.0 / (1.0 + missing * (whole - part) / together) if part > 0.0 else 1.0 for part in parts]


def _divide(
    confirmations: Confirmations, key: MixKey, screened: Screened, rates: Rates, missing: Sequence[int]
) -> None:
    """Replicas for part of the classes, where the whole mix does not hold."""
    workload, _, classes = key
    taking = [k for k, rate in enumerate(rates) if rate > 0.0]
    whole = admitted(screened.workload, classes)
    sets: list[ClassSet] = [(k,) for k in taking]
    shared = sum(len(one) > 1 for one in confirmations.class_sets.get(workload, ()))
    if len(missing) < len(taking) and shared < MOST_SHARED_SETS:
        sets += [tuple(missing), tuple(k for k in whole if k not in missing)]
    failed = confirmations.mixes_failed.get(key, 0) + 1
    confirmations.mixes_failed[key] = failed
    if failed >= MOST_MIXES:
        confirmations.mix_factors[key] = (0.0,) * len(rates)
    known = confirmations.class_sets.get(workload, ())
    confirmations.class_sets[workload] = tuple(dict.fromkeys((*known, *(s for s in sets if s != whole))))
