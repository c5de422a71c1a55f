"""What each workload costs at least on its own, with whole replicas on divisible nodes.

Workloads of one fleet meet only on nodes they share and in the limits of the whole. Priced by the fraction of a node a
replica takes, each is a small programme of its own, solved to proof in a moment; the sum of their optima bounds the
fleet far closer than its linear relaxation, which divides replicas too. The same optima make rows that hand this bound
to the solver's search, and prices that show which pairs no near-best plan contains.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pulp
from numpy.typing import NDArray

from solver.errors import SolverFailedError
from solver.fleet.deployments import BoolArray, FloatArray, IntArray
from solver.fleet.groups.offer_groups import Pairs
from solver.fleet.heuristic.greedy import Draft
from solver.fleet.highs import solve_with_highs
from solver.fleet.model.programme import FleetProgramme
from solver.fleet.plan import PROVEN_GAP_FRACTION
from solver.fleet.problem import FleetProblem
from solver.fleet.reduce import ReducedProblem, drop_unused_groups, most_nodes, workload_ranges

SOLVER_SLACK = 1e-8
"""Relative; a proven optimum is taken for this much less, so that its row never cuts off the optimum itself."""
WHOLE_SLACK = 1e-12
"""Work above a whole number of replicas by less than this is floating point, not work."""


@dataclass(frozen=True, slots=True, eq=False)
class DualRow:
    """Σ price_i x_i ≥ least, whatever the plan; zero for pairs of other workloads."""

    price: FloatArray
    least: float


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """Plans that take at least and at most so many nodes of some groups (their first offers) beyond spanning replicas'.

    bound: of their objective. excess: by pair, how much more than that a plan among them that uses it costs.
    """

    bound: float
    least: Mapping[int, int]
    most: Mapping[int, int]
    excess: FloatArray
    rows: tuple[DualRow, ...]


@dataclass(frozen=True, slots=True, eq=False)
class OwnCost:
    """lower: of the objective, summed over workloads. of_workload: each one's part of it.

    price: by pair, at most its share of node and replica price, such that Σ price_i x_i ≥ of_workload for every plan.
    excess: by pair, how much more than ``lower`` a plan that uses it costs. ways: pairs and replicas of each workload's
    optimum. leaves: every plan that costs no more than the one in hand is in one of them; none where plans were not split.
    """

    lower: float
    of_workload: FloatArray
    price: FloatArray
    excess: FloatArray
    seconds: float
    ways: tuple[dict[int, int], ...] = ()
    leaves: tuple[Leaf, ...] = ()


def own_cost(reduced: ReducedProblem, time_limit_s: float, seed: int) -> OwnCost:
    """Each workload's least cost (or power) with divisible nodes:

        S_w = min Σ_i p_i x_i,  p_i = a_i + c_i f_i,  with  Σ_i y_ik = 1,  Σ_k load_ik y_ik ≤ x_i,  x whole

    Sum of S_w ≤ every plan's objective, whatever other limits hold: nodes of a group cost at least the fractions that
    replicas take of them. Replacing one replica of i by t of j, t = ⌈max_k load_jk / load_ik⌉, keeps all traffic
    served, so with r_i = min(p_i, min_j t r_j) also Σ_i r_i x_i ≥ S_w, and a plan with a replica of i costs at least
    S_w + p_i − r_i; by duality it also costs at least Σ_k π_k + p_i − max_k π_k / load_ik (``bound_candidates``).
    """
    problem, pairs = reduced.problem, reduced.pairs
    unit = unit_price(problem, pairs)
    price, excess = unit.copy(), np.zeros(len(pairs))
    lower = np.zeros(len(problem.demands))
    ways: list[dict[int, int]] = []
    seconds = 0.0
    for w, (start, end) in enumerate(workload_ranges(problem, pairs)):
        load = pairs.load[start:end]
        load = load[:, (load > 0).any(axis=0)]
        if start == end or not load.shape[1]:
            price[start:end] = 0.0
            ways.append({})
            continue
        mine = unit[start:end]
        relaxed, value = divisible_cost(load, mine)
        replaced, needed = replacement_price(load, mine)
        least = problem.demands[w].min_replicas
        solved, spent, counts = least_cost(load[needed], mine[needed], least, time_limit_s, seed)
        ways.append({start + int(needed[i]): count for i, count in enumerate(counts) if count})
        seconds += spent
        if solved <= relaxed:
            lower[w], price[start:end] = relaxed, value
        else:
            lower[w], price[start:end] = solved, replaced
        by_replacement = mine - replaced if solved > relaxed else np.zeros(end - start)
        excess[start:end] = np.maximum(np.maximum(relaxed + mine - value - lower[w], by_replacement), 0.0)
    return OwnCost(float(lower.sum()), lower, price, excess, seconds, ways=tuple(ways))


def unit_price(problem: FleetProblem, pairs: Pairs) -> FloatArray:
    """p_i: what one replica adds to the objective where nodes are divisible, in USD/h, W or kg CO2e/h."""
    node, replica = pairs.takes("cost" if problem.objective == "throughput" else problem.objective)
    price: FloatArray = replica + node * pairs.node_fraction
    return price


def replacement_price(load: FloatArray, unit: FloatArray) -> tuple[FloatArray, IntArray]:
    """(r, rows): the least price of whole replicas that do all one of i does, and the rows nothing cheaper replaces."""
    replaced = unit.copy()
    kept: list[int] = []
    refused: NDArray[np.bool_] = np.asarray(np.isinf(load), dtype=np.bool_)
    some_refused: NDArray[np.bool_] = np.asarray(refused.any(axis=1), dtype=np.bool_)
    kept_load, kept_unit = np.empty_like(load), np.empty_like(unit)
    with np.errstate(invalid="ignore"):
        for i in np.lexsort((np.arange(len(unit)), unit)).tolist():
            count = len(kept)
            if count:
                ratio = kept_load[:count] / load[i]
                if some_refused[i]:
                    ratio = np.where(refused[i], 0.0, ratio)
                most = ratio.max(axis=1)
                whole = np.maximum(np.ceil(most - WHOLE_SLACK), 1.0) * kept_unit[:count]
                others = float(np.where(np.isinf(most), np.inf, whole).min())
                if others <= unit[i]:
                    replaced[i] = others
                    continue
            kept_load[count], kept_unit[count] = load[i], unit[i]
            kept.append(i)
    return replaced, np.array(kept, dtype=np.int64)


def add_own_cost(model: FleetProgramme, own: OwnCost) -> None:
    """Σ_{i in w} r_i x_i ≥ S_w for each workload: the bound the linear relaxation lacks."""
    for w, (start, end) in enumerate(workload_ranges(model.reduced.problem, model.reduced.pairs)):
        if end > start and own.of_workload[w] > 0:
            terms = {model.replicas[i]: float(own.price[i]) for i in range(start, end) if own.price[i] > 0}
            model.at_least(terms, float(own.of_workload[w]), f"own_{w}")


def add_leaf(model: FleetProgramme, leaf: Leaf) -> None:
    """Only plans of one leaf:  least_p ≤ Σ_o n_o − Σ_spanning m_i x_i ≤ most_p, and its rows  Σ_i r_i x_i ≥ S_w."""
    pairs = model.reduced.pairs
    for p, group in enumerate(model.reduced.groups):
        nodes = {model.nodes[offer]: 1.0 for offer in group.offers}
        nodes.update(
            {model.replicas[i]: -float(pairs.nodes_per_replica[i]) for i in model.group_rows[p] if not pairs.slots[i]}
        )
        if leaf.least.get(group.offers[0]):
            model.at_least(nodes, float(leaf.least[group.offers[0]]), f"least_{p}")
        if group.offers[0] in leaf.most:
            model.at_most(nodes, float(leaf.most[group.offers[0]]), f"most_{p}")
    for number, row in enumerate(leaf.rows):
        terms = {model.replicas[i]: float(row.price[i]) for i in np.flatnonzero(row.price).tolist()}
        if terms:
            model.at_least(terms, row.least, f"priced_{number}")


def within(reduced: ReducedProblem, own: OwnCost, ceiling: float) -> tuple[ReducedProblem, OwnCost]:
    """Only pairs that a plan no dearer than ``ceiling`` can contain."""
    keep = own.lower + own.excess <= ceiling * (1 + PROVEN_GAP_FRACTION)
    return kept(reduced, own, keep)


def promising(reduced: ReducedProblem, own: OwnCost, fraction: float) -> tuple[ReducedProblem, OwnCost]:
    """Only pairs that use up at most ``fraction`` of the distance between bound and draft; the draft's pairs stay."""
    draft = reduced.draft
    assert draft is not None
    near = own.excess <= fraction * max(draft.objective - own.lower, 0.0)
    return kept(reduced, own, near | in_draft(reduced, draft))


def in_draft(reduced: ReducedProblem, draft: Draft) -> BoolArray:
    """Pairs of which the draft has replicas."""
    anchors = np.array([group.offers[0] for group in reduced.groups])[reduced.pairs.group]
    keys = zip(reduced.pairs.deployment.tolist(), anchors.tolist(), reduced.pairs.offer.tolist(), strict=True)
    return np.fromiter((key in draft.replicas for key in keys), dtype=np.bool_, count=len(reduced.pairs))


def kept(reduced: ReducedProblem, own: OwnCost, keep: BoolArray) -> tuple[ReducedProblem, OwnCost]:
    groups, pairs = drop_unused_groups(reduced.problem, reduced.groups, reduced.pairs.take(keep))
    most = most_nodes(reduced.problem, groups, pairs, reduced.draft, reduced.bound)
    fewer = replace(reduced, groups=groups, pairs=pairs, max_nodes=most)
    position = np.cumsum(keep) - 1
    ways = tuple(
        {int(position[i]): count for i, count in way.items()} if all(keep[i] for i in way) else {} for way in own.ways
    )
    leaves = tuple(
        replace(
            leaf,
            excess=leaf.excess[keep],
            rows=tuple(replace(row, price=row.price[keep]) for row in leaf.rows),
        )
        for leaf in own.leaves
    )
    return fewer, replace(own, price=own.price[keep], excess=own.excess[keep], ways=ways, leaves=leaves)


def divisible_cost(load: FloatArray, unit: FloatArray) -> tuple[float, FloatArray]:
    """(Σ_k π_k, value of a replica): the bound with replicas divisible as well, π_k = min_i p_i load_ik."""
    with np.errstate(invalid="ignore", divide="ignore"):
        least = np.where(np.isinf(load), np.inf, unit[:, None] * load).min(axis=0)
        value = np.where(load > 0, least / load, 0.0).max(axis=1)
    return float(least.sum()), value


def least_cost(
    load: FloatArray,
    unit: FloatArray,
    min_replicas: int,
    time_limit_s: float,
    seed: int,
    start: Mapping[int, int] | None = None,
    gap_fraction: float = 0.0,
) -> tuple[float, float, list[int]]:
    """(S_w or the best bound of it in time, solver seconds, replicas); 0 where the solver has nothing to say.

    start: replicas of some rows that serve everything, to begin with.
    """
    programme = pulp.LpProblem("own", pulp.LpMinimize)
    replicas = [programme.add_variable(f"x_{i}", 0, None, cat="Integer") for i in range(len(unit))]
    shares = {(i, k): programme.add_variable(f"y_{i}_{k}", 0, 1) for i, k in np.argwhere(np.isfinite(load)).tolist()}
    programme.setObjective(pulp.LpAffineExpression(dict(zip(replicas, unit.tolist(), strict=True))))
    served: list[dict[pulp.LpVariable, float]] = [{} for _ in range(load.shape[1])]
    work: list[dict[pulp.LpVariable, float]] = [{replica: -1.0} for replica in replicas]
    for (i, k), share in shares.items():
        served[k][share] = 1.0
        work[i][share] = float(load[i, k])
    rows = [(terms, pulp.LpConstraintEQ, 1.0) for terms in served]
    rows += [(terms, pulp.LpConstraintLE, 0.0) for terms in work]
    rows.append((dict.fromkeys(replicas, 1.0), pulp.LpConstraintGE, float(max(min_replicas, 1))))
    for number, (terms, sense, rhs) in enumerate(rows):
        programme.addConstraint(pulp.LpConstraint(pulp.LpAffineExpression(terms), sense, f"r_{number}", rhs))
    first = {replica: float(start.get(i, 0)) for i, replica in enumerate(replicas)} if start else None
    try:
        solved = solve_with_highs(programme, first, time_limit_s, gap_fraction, seed, jumps=len(served) > 1)
    except SolverFailedError:
        return 0.0, 0.0, []
    counts = [round(replica.varValue or 0.0) for replica in replicas] if solved.proof in ("optimal", "feasible") else []
    return (solved.bound or 0.0) * (1 - SOLVER_SLACK), solved.seconds, counts
