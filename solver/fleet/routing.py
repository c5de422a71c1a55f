"""Dividing traffic over the replicas of a finished plan.

Integers first, shares after: a MILP solver's shares are only within its tolerance of a plan whose replicas were
rounded, so the linear programme is solved again with the replicas as they are.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from solver.fleet.problem import FloatArray


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
