"""The bucket problem of Mélange (arXiv 2404.14527) as a fleet, beside its own formulation: ``python -m tests.bench.bucket_ilp``.

Requests in buckets by prompt and reply length, GPUs of several types, each with a throughput by bucket. Mélange cuts
every bucket into slices and gives each slice to one type; here a bucket is a traffic class that may be divided freely,
which can only be cheaper.
"""

import argparse
import statistics
import time

import numpy as np
import pulp
from rich.console import Console
from rich.table import Table

from solver.fleet import Demand, Deployment, DeploymentTable, FleetProblem, OfferSlot, SolveOptions, solve_fleet, verify
from solver.fleet.highs import FastHiGHS

SIDE = 10
USD_PER_HOUR = (0.7, 1.0, 2.0, 3.7, 7.5)
"""Cards from small to large, in the ratios of cloud prices."""
SLICES = 8
"""The paper's slice factor: slices a bucket is cut into."""


def bucket_fleet(
    seed: int, side: int = SIDE, gpus: int = len(USD_PER_HOUR), requests_per_s: float = 32.0
) -> FleetProblem:
    """side² buckets, log-even in both lengths; throughput falls with the tokens of a request, faster on small cards,
    and long requests do not fit the smallest ones."""
    rng = np.random.default_rng(seed)
    prompt = np.geomspace(32, 8_000, side)[:, None]
    output = np.geomspace(16, 2_000, side)[None, :]
    tokens = (prompt / 8.0 + output).ravel()
    share = rng.dirichlet(np.full(side * side, 0.5))
    offers, rows = [], []
    for g in range(len(USD_PER_HOUR) - gpus, len(USD_PER_HOUR)):
        price = USD_PER_HOUR[g]
        speed = 900.0 * price ** rng.uniform(0.9, 1.15)
        capacity = speed / (tokens + tokens**1.4 / (30.0 * price)) * np.exp(rng.normal(0.0, 0.1, side * side))
        capacity[(prompt + output).ravel() > 4_000.0 * price] = 0.0
        offers.append(OfferSlot(f"gpu{g}", f"node{g}", f"gpu{g}", 1, "p", "r", "on_demand", price))
        rows.append(Deployment(0, f"node{g}", 1, 1, tuple(float(mu) for mu in capacity), 1.0, g))
    demand = Demand(tuple(float(s) * requests_per_s for s in share))
    return FleetProblem(tuple(offers), DeploymentTable.from_rows(rows), (demand,))


def sliced_cost(problem: FleetProblem, slices: int, time_limit_s: float) -> tuple[float | None, bool]:
    """(cost, proven) of the paper's integer programme:

    min Σ_j c_j B_j,   Σ_j A_ij = 1 for each slice i,   Σ_i load_ij A_ij ≤ B_j,   A binary, B whole
    """
    capacity = problem.deployments.capacity_requests_per_s
    rates = problem.demands[0].requests_per_s
    programme = pulp.LpProblem("slices", pulp.LpMinimize)
    count = [programme.add_variable(f"B_{j}", 0, None, cat="Integer") for j in range(len(capacity))]
    programme.setObjective(
        pulp.LpAffineExpression({b: offer.usd_per_hour for b, offer in zip(count, problem.offers, strict=True)})
    )
    load: list[dict[pulp.LpVariable, float]] = [{b: -1.0} for b in count]
    for k, rate in enumerate(rates):
        for s in range(slices):
            one = {}
            for j in range(len(count)):
                if capacity[j, k] > 0:
                    given = programme.add_variable(f"A_{k}_{s}_{j}", 0, 1, cat="Integer")
                    one[given] = 1.0
                    load[j][given] = rate / slices / float(capacity[j, k])
            programme.addConstraint(
                pulp.LpConstraint(pulp.LpAffineExpression(one), pulp.LpConstraintEQ, f"slice_{k}_{s}", 1.0)
            )
    for j, terms in enumerate(load):
        programme.addConstraint(
            pulp.LpConstraint(pulp.LpAffineExpression(terms), pulp.LpConstraintLE, f"load_{j}", 0.0)
        )
    programme.solve(FastHiGHS(gapRel=0.0, gapAbs=0.0, timeLimit=time_limit_s))
    if programme.sol_status not in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible):
        return None, False
    return float(pulp.value(programme.objective)), programme.sol_status == pulp.LpSolutionOptimal


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bucket_ilp", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--peer-time-limit-s", type=float, default=20.0)
    arguments = parser.parse_args()
    table = Table(title=f"{SIDE * SIDE} buckets × {len(USD_PER_HOUR)} GPU types (bar: proven ≤ 1 s, never dearer)")
    for heading in ("seed", "USD/h", "status", "seconds", "processor s", "sliced USD/h", "proven"):
        table.add_column(heading)
    spent, used = [], []
    for seed in range(arguments.seeds):
        problem = bucket_fleet(seed)
        began, cpu = time.perf_counter(), time.process_time()
        result = solve_fleet(problem, SolveOptions())
        spent.append(time.perf_counter() - began)
        used.append(time.process_time() - cpu)
        wrong = verify(problem, result)
        sliced, proven = sliced_cost(problem, SLICES, arguments.peer_time_limit_s)
        if wrong or result.objective is None or (sliced is not None and result.objective > sliced * (1 + 1e-6)):
            raise SystemExit(f"seed {seed}: {wrong[:3]} {result.objective} against {sliced}")
        table.add_row(
            str(seed), f"{result.objective:.2f}", result.status, f"{spent[-1]:.2f}", f"{used[-1]:.2f}",
            "none" if sliced is None else f"{sliced:.2f}", str(proven),
        )  # fmt: skip
    Console(width=120).print(table)
    Console().print(f"medians: {statistics.median(spent):.2f} s, {statistics.median(used):.2f} processor seconds")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
