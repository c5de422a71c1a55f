"""Dividing traffic over the replicas of a finished plan.

Integers first, shares after: a MILP solver's shares are only within its tolerance of a plan whose replicas were
rounded, so the linear programme is solved again with the replicas as they are.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache

import numpy as np

from solver.fleet.deployments import AGGREGATED, DECODE, PREFILL, BoolArray, FloatArray, IntArray
from solver.fleet.problem import FleetProblem

Placed = tuple[int, int]
"""(deployment row, position of an offer)."""
KEPT_BALANCES = 2_000
"""Divisions of traffic kept, of some hundred bytes each."""
LEAST_SHARE = 1e-9
"""Of a class's demand: less than this is a solver's rounding."""


def route(
    problem: FleetProblem, load: FloatArray, replicas: Mapping[Placed, int]
) -> tuple[float, dict[Placed, FloatArray]]:
    """(t, shares by placement and class) of one workload's replicas, as ``balance_load`` routes them.

    Replicas of a row are one where they do both; of a side of an exchange, those in one place are. Each gets its part by number.
    load: see ``Pairs.load``, by deployment row.
    """
    table, offers = problem.deployments, problem.offers
    units: dict[tuple[int, Hashable], int] = {}
    unit_of: dict[Placed, tuple[int, Hashable]] = {}
    for (row, offer), count in replicas.items():
        place: Hashable = None
        if table.exchange is not None and table.roles[row] != AGGREGATED:
            place = offers[offer].place("region"), int(table.exchange[row])
        unit_of[row, offer] = (row, place)
        units[row, place] = units.get((row, place), 0) + count
    ordered = sorted(units, key=lambda unit: (unit[0], str(unit[1])))
    rows = [row for row, _ in ordered]
    counts = [units[unit] for unit in ordered]
    if all(place is None for _, place in ordered):
        busiest, shares = balance_load(load[rows], counts)
    else:
        busiest, shares = balance_exchanges(load[rows], counts, table.roles[rows].tolist(), [p for _, p in ordered])
    position = {unit: i for i, unit in enumerate(ordered)}
    parts = {
        placed: shares[position[unit_of[placed]]] * (count / units[unit_of[placed]])
        for placed, count in replicas.items()
    }
    return busiest, parts


def balance_load(load: FloatArray, replicas: Sequence[int]) -> tuple[float, FloatArray]:
    """(t, shares): route every class so that the busiest deployment is as idle as it can be.

        min t   with  Σ_j y_jk = 1,   Σ_k load_jk y_jk ≤ t · x_j

    load: deployments × classes in replicas' worth of work; inf where a class cannot be served, 0 without demand.
    All demand fits while t ≤ 1, and 1/t times all demand is the most these replicas can serve. t is inf when some
    class finds no replica.

    >>> t, shares = balance_load(np.array([[1.0], [2.0]]), [1, 2])
    >>> round(t, 6), shares.round(6).tolist()
    (0.5, [[0.5], [0.5]])
    """
    shares = np.zeros_like(load)
    counts = np.asarray(replicas, dtype=np.float64)
    classes = np.flatnonzero((load > 0).any(axis=0))
    usable = np.isfinite(load) & (load > 0) & (counts[:, None] > 0)
    if not len(classes):
        return 0.0, shares
    if not usable[:, classes].any(axis=0).all():
        return math.inf, shares
    if len(load) == 1:
        shares[0, classes] = 1.0
        return float(load[0, classes].sum() / counts[0]), shares
    if len(classes) == 1:
        k = int(classes[0])
        rate = np.where(usable[:, k], counts / np.where(usable[:, k], load[:, k], 1.0), 0.0)
        shares[:, k] = rate / rate.sum()
        return float(1.0 / rate.sum()), shares
    busiest, known = _balanced(load.shape, load.astype(np.float64).tobytes(), counts.tobytes())
    return busiest, known.copy()


@lru_cache(maxsize=KEPT_BALANCES)
def _balanced(shape: tuple[int, int], load_bytes: bytes, count_bytes: bytes) -> tuple[float, FloatArray]:
    """The programme of ``balance_load``, of several rows and classes. Kept: a search asks several times of the same replicas, when it
    leaves some out, divides traffic and checks.

    load_bytes, count_bytes: the arrays, of 64-bit floating-point numbers, by which it is known again.
    """
    load, counts = np.frombuffer(load_bytes).reshape(shape), np.frombuffer(count_bytes)
    shares = np.zeros_like(load)
    classes = np.flatnonzero((load > 0).any(axis=0))
    usable = np.isfinite(load) & (load > 0) & (counts[:, None] > 0)
    from scipy.optimize import linprog  # many plans need none, and it is large
    from scipy.sparse import coo_array

    rows, columns = np.nonzero(usable)
    variables = np.arange(len(rows))
    position = {int(k): i for i, k in enumerate(classes)}
    equal = coo_array(
        (np.ones(len(rows)), ([position[int(k)] for k in columns], variables)), shape=(len(classes), len(rows) + 1)
    )
    work = coo_array(
        (
            np.concatenate([load[rows, columns], -counts]),
            (np.concatenate([rows, np.arange(len(load))]), np.concatenate([variables, np.full(len(load), len(rows))])),
        ),
        shape=(len(load), len(rows) + 1),
    )
    objective = np.zeros(len(rows) + 1)
    objective[-1] = 1.0
    solved = linprog(
        objective, A_ub=work.tocsr(), b_ub=np.zeros(len(load)), A_eq=equal.tocsr(), b_eq=np.ones(len(classes)),
        method="highs-ds",
    )  # fmt: skip
    if solved.status != 0:
        return math.inf, shares
    shares[rows, columns] = np.maximum(solved.x[:-1], 0.0)
    shares[:, classes] /= shares[:, classes].sum(axis=0)
    work_done = np.where(usable, load, 0.0) * shares
    with np.errstate(divide="ignore", invalid="ignore"):
        busy = np.where(counts > 0, work_done.sum(axis=1) / counts, 0.0)
    return float(busy.max()), shares


def balance_exchanges(
    load: FloatArray, replicas: Sequence[int], roles: Sequence[int], exchanges: Sequence[Hashable]
) -> tuple[float, FloatArray]:
    """``balance_load`` where some rows prefill and some decode: what an exchange serves, both its sides take.

        min t   with  Σ_{aggregated} y_jk + Σ_s f_sk = 1,   Σ_{prefill in s} y_jk = Σ_{decode in s} y_jk = f_sk,
                      Σ_k load_jk y_jk ≤ t · x_j

    >>> load = np.array([[1.0], [0.5], [2.0]])          # one that does both, one that prefills, one that decodes
    >>> t, shares = balance_exchanges(load, [1, 1, 2], [0, 1, 2], [None, "east", "east"])
    >>> round(t, 6), shares.round(6).tolist()           # 1 of both, and min(1/0.5, 2/2) = 1 by the exchange
    (0.5, [[0.5], [0.5], [0.5]])
    """
    shares = np.zeros_like(load)
    counts, role = np.asarray(replicas, dtype=np.float64), np.asarray(roles)
    classes = np.flatnonzero((load > 0).any(axis=0)).tolist()
    if not classes:
        return 0.0, shares
    usable = np.isfinite(load) & (load > 0) & (counts[:, None] > 0)
    numbers = {s: n for n, s in enumerate(dict.fromkeys(s for s, r in zip(exchanges, roles, strict=True) if r))}
    exchange = np.array([numbers[s] if r else -1 for s, r in zip(exchanges, roles, strict=True)])
    if len(classes) == 1:
        shares[:, classes[0]] = np.where(
            usable[:, classes[0]], counts / np.where(usable, load, 1.0)[:, classes[0]], 0.0
        )
    else:
        found = _least_busy(load, counts, role, exchange, usable, classes)
        if found is None:
            return math.inf, shares
        shares = found
    for s in range(len(numbers)):
        for k in classes:
            sides = [(exchange == s) & (role == side) for side in (PREFILL, DECODE)]
            served = min(float(shares[side, k].sum()) for side in sides)
            for side in sides:
                total = float(shares[side, k].sum())
                shares[side, k] *= served / total if served > LEAST_SHARE else 0.0
    total_of = shares[(role == AGGREGATED) | (role == DECODE)].sum(axis=0)
    if (total_of[classes] <= 0.0).any():
        return math.inf, np.zeros_like(load)
    shares[:, classes] /= total_of[classes]
    with np.errstate(divide="ignore", invalid="ignore"):
        busy = np.where(counts > 0, (np.where(usable, load, 0.0) * shares).sum(axis=1) / counts, 0.0)
    return float(busy.max()), shares


def _least_busy(
    load: FloatArray, counts: FloatArray, role: IntArray, exchange: IntArray, usable: BoolArray, classes: list[int]
) -> FloatArray | None:
    """The shares of the programme of ``balance_exchanges``, to a solver's tolerance; None where some class finds no replica."""
    able = usable.copy()
    able[:, [k for k in range(load.shape[1]) if k not in classes]] = False
    rows, columns = np.nonzero(able)
    variables = len(rows)
    served = np.zeros((len(classes), variables + 1))
    balance: list[FloatArray] = []
    for n, k in enumerate(classes):
        served[n, :variables] = (columns == k) & (role[rows] != PREFILL)
        for s in range(int(exchange.max(initial=-1)) + 1):
            mine = (columns == k) & (exchange[rows] == s)
            balance.append(np.append(mine * np.where(role[rows] == PREFILL, 1.0, -1.0), 0.0))
    work = np.zeros((len(load), variables + 1))
    work[rows, np.arange(variables)] = load[rows, columns]
    work[:, -1] = -counts
    objective = np.append(np.zeros(variables), 1.0)
    equal = np.vstack([served, *balance]) if balance else served
    wanted = np.append(np.ones(len(classes)), np.zeros(len(balance)))
    from scipy.optimize import linprog

    solved = linprog(objective, A_ub=work, b_ub=np.zeros(len(load)), A_eq=equal, b_eq=wanted, method="highs-ds")
    if solved.status != 0:
        return None
    shares = np.zeros_like(load)
    shares[rows, columns] = np.maximum(solved.x[:-1], 0.0)
    return shares
