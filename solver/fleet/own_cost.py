"""What each workload costs at least on its own, with whole replicas on divisible nodes.

Workloads of one fleet meet only on nodes they share and in the limits of the whole. Priced by the fraction of a node a
replica takes, each is a small programme of its own, solved to proof in a moment; the sum of their optima bounds the
fleet far closer than its linear relaxation, which divides replicas too. The same optima make rows that hand this bound
to the solver's search, and prices that show which pairs no near-best plan contains.
"""

from dataclasses import dataclass, replace

import numpy as np
import pulp

from solver.errors import SolverFailedError
from solver.fleet.highs import solve_with_highs
from solver.fleet.model import Model
from solver.fleet.plan import PROVEN_GAP_FRACTION
from solver.fleet.pools import Pairs
from solver.fleet.problem import FleetProblem, FloatArray, IntArray
from solver.fleet.reduce import ReducedProblem, drop_unused_pools, most_nodes, workload_ranges

SOLVER_SLACK = 1e-8
"""Relative; a proven optimum is taken for this much less, so that its row never cuts off the optimum itself."""
WHOLE_SLACK = 1e-12
"""Work above a whole number of replicas by less than this is floating point, not work."""


@dataclass(frozen=True, slots=True, eq=False)
class OwnCost:
    """lower: of the objective, summed over workloads. of_workload: each one's part of it.

    price: by pair, at most its share of node and replica price, such that Σ price_i x_i ≥ of_workload for every plan.
    excess: by pair, how much more than ``lower`` a plan that uses it costs.
    """

    lower: float
    of_workload: FloatArray
    price: FloatArray
    excess: FloatArray
    seconds: float


def own_cost(reduced: ReducedProblem, time_limit_s: float, seed: int) -> OwnCost:
    """Each workload's least cost (or power) with divisible nodes:

        S_w = min Σ_i p_i x_i,  p_i = a_i + c_i f_i,  with  Σ_i y_ik = 1,  Σ_k load_ik y_ik ≤ x_i,  x whole

    Sum of S_w ≤ every plan's objective, whatever other limits hold: nodes of a pool cost at least the fractions that
    replicas take of them. Replacing one replica of i by t of j, t = ⌈max_k load_jk / load_ik⌉, keeps all traffic
    served, so with r_i = min(p_i, min_j t r_j) also Σ_i r_i x_i ≥ S_w, and a plan with a replica of i costs at least
    S_w + p_i − r_i; by duality it also costs at least Σ_k π_k + p_i − max_k π_k / load_ik (``bound_candidates``).
    """
    problem, pairs = reduced.problem, reduced.pairs
    unit = unit_price(problem, pairs)
    price, excess = unit.copy(), np.zeros(len(pairs))
    lower = np.zeros(len(problem.demands))
    seconds = 0.0
    for w, (start, end) in enumerate(workload_ranges(problem, pairs)):
        load = pairs.load[start:end]
        load = load[:, (load > 0).any(axis=0)]
        if start == end or not load.shape[1]:
            price[start:end] = 0.0
            continue
        mine = unit[start:end]
        relaxed, value = _relaxed(load, mine)
        replaced, needed = replacement_price(load, mine)
        least = problem.demands[w].min_replicas
        solved, spent, _ = _least_cost(load[needed], mine[needed], least, time_limit_s, seed)
        seconds += spent
        if solved <= relaxed:
            lower[w], price[start:end] = relaxed, value
        else:
            lower[w], price[start:end] = solved, replaced
        by_replacement = mine - replaced if solved > relaxed else np.zeros(end - start)
        excess[start:end] = np.maximum(np.maximum(relaxed + mine - value - lower[w], by_replacement), 0.0)
    return OwnCost(float(lower.sum()), lower, price, excess, seconds)


@dataclass(frozen=True, slots=True, eq=False)
class Least:
    """Σ price_i x_i ≥ lower for every plan, over the pairs of a workload. replicas: of one that is near it."""

    lower: float
    price: FloatArray
    replicas: dict[int, int]
    seconds: float


def least_at(reduced: ReducedProblem, w: int, unit: FloatArray, time_limit_s: float, seed: int) -> Least:
    """What a workload needs at least at other prices of its pairs, S_w of ``own_cost`` for any p ≥ 0."""
    start, end = workload_ranges(reduced.problem, reduced.pairs)[w]
    load = reduced.pairs.load[start:end]
    load = load[:, (load > 0).any(axis=0)]
    replaced, needed = replacement_price(load, unit)
    least = reduced.problem.demands[w].min_replicas
    solved, spent, counts = _least_cost(load[needed], unit[needed], least, time_limit_s, seed)
    relaxed, value = _relaxed(load, unit)
    replicas = {int(needed[i]): count for i, count in enumerate(counts) if count}
    if solved <= relaxed:
        return Least(relaxed, value, replicas, spent)
    return Least(solved, replaced, replicas, spent)


def unit_price(problem: FleetProblem, pairs: Pairs) -> FloatArray:
    """p_i: what one replica adds to the objective where nodes are divisible, in USD/h, W or kg CO2e/h."""
    node, replica = pairs.takes("cost" if problem.objective == "throughput" else problem.objective)
    price: FloatArray = replica + node * pairs.node_fraction
    return price


def replacement_price(load: FloatArray, unit: FloatArray) -> tuple[FloatArray, IntArray]:
    """(r, rows): the least price of whole replicas that do all one of i does, and the rows nothing cheaper replaces."""
    replaced = unit.copy()
    kept: list[int] = []
    refused = np.isinf(load)
    for i in np.lexsort((np.arange(len(unit)), unit)).tolist():
        if kept:
            with np.errstate(invalid="ignore"):
                ratio = np.where(refused[i], 0.0, load[kept] / load[i]).max(axis=1)
            others = float((np.maximum(np.ceil(ratio - WHOLE_SLACK), 1.0) * unit[kept]).min())
            if others <= unit[i]:
                replaced[i] = others
                continue
        kept.append(i)
    return replaced, np.array(kept, dtype=np.int64)


def add_own_cost(model: Model, own: OwnCost) -> None:
    """Σ_{i in w} r_i x_i ≥ S_w for each workload: the bound the linear relaxation lacks."""
    for w, (start, end) in enumerate(workload_ranges(model.reduced.problem, model.reduced.pairs)):
        if end > start and own.of_workload[w] > 0:
            terms = {model.replicas[i]: float(own.price[i]) for i in range(start, end) if own.price[i] > 0}
            model.at_least(terms, float(own.of_workload[w]), f"own_{w}")


def within(reduced: ReducedProblem, own: OwnCost, ceiling: float) -> tuple[ReducedProblem, OwnCost]:
    """Only pairs that a plan no dearer than ``ceiling`` can contain."""
    keep = own.lower + own.excess <= ceiling * (1 + PROVEN_GAP_FRACTION)
    return kept(reduced, own, keep)


def promising(reduced: ReducedProblem, own: OwnCost, fraction: float) -> tuple[ReducedProblem, OwnCost]:
    """Only pairs that use up at most ``fraction`` of the distance between bound and draft; the draft's pairs stay."""
    draft = reduced.draft
    assert draft is not None
    keep = own.excess <= fraction * max(draft.objective - own.lower, 0.0)
    anchors = np.array([pool.offers[0] for pool in reduced.pools])[reduced.pairs.pool]
    keys = zip(reduced.pairs.deployment.tolist(), anchors.tolist(), reduced.pairs.offer.tolist(), strict=True)
    keep |= np.fromiter((key in draft.replicas for key in keys), dtype=np.bool_, count=len(keep))
    return kept(reduced, own, keep)


def kept(reduced: ReducedProblem, own: OwnCost, keep: np.typing.NDArray[np.bool_]) -> tuple[ReducedProblem, OwnCost]:
    pools, pairs = drop_unused_pools(reduced.problem, reduced.pools, reduced.pairs.take(keep))
    most = most_nodes(reduced.problem, pools, pairs, reduced.draft, reduced.bound)
    fewer = replace(reduced, pools=pools, pairs=pairs, max_nodes=most)
    return fewer, replace(own, price=own.price[keep], excess=own.excess[keep])


def _relaxed(load: FloatArray, unit: FloatArray) -> tuple[float, FloatArray]:
    """(Σ_k π_k, value of a replica): the bound with replicas divisible as well, π_k = min_i p_i load_ik."""
    with np.errstate(invalid="ignore", divide="ignore"):
        least = np.where(np.isinf(load), np.inf, unit[:, None] * load).min(axis=0)
        value = np.where(load > 0, least / load, 0.0).max(axis=1)
    return float(least.sum()), value


def _least_cost(
    load: FloatArray, unit: FloatArray, min_replicas: int, time_limit_s: float, seed: int
) -> tuple[float, float, list[int]]:
    """(S_w or the best bound of it in time, solver seconds, replicas); 0 where the solver has nothing to say."""
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
    try:
        solved = solve_with_highs(programme, None, time_limit_s, 0.0, seed)
    except SolverFailedError:
        return 0.0, 0.0, []
    counts = [round(replica.varValue or 0.0) for replica in replicas] if solved.proof in ("optimal", "feasible") else []
    return (solved.bound or 0.0) * (1 - SOLVER_SLACK), solved.seconds, counts
