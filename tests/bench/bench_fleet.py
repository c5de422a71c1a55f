"""Medians of the fleet optimiser on synthetic catalogues: ``python tests/bench/bench_fleet.py``.

One workload over the whole catalogue (250 node types, 2,500 offers, 60 deployments each) and five workloads that share
the fleet, from a finished candidate table to a verified plan.
"""

import argparse
import statistics
import time

import numpy as np

from solver.fleet import Demand, DeploymentTable, FleetProblem, Limits, OfferSlot, SolveOptions, solve_fleet, verify

NODE_TYPES = 250
OFFERS_PER_TYPE = 10
DEPLOYMENTS_PER_TYPE = 60
NODE_SIZES = (1, 2, 4, 8, 8, 8, 16)


def synthetic_problem(
    seed: int, workloads: int, classes: int, requests_per_s: float, limits: Limits | None = None, limited: float = 0.1
) -> FleetProblem:
    """Prices that follow capacity with noise; ``limited`` of the offers have few nodes."""
    rng = np.random.default_rng(seed)
    devices = rng.choice(NODE_SIZES, NODE_TYPES)
    speed = np.exp(rng.normal(0.0, 0.8, NODE_TYPES))
    offers = []
    for t in range(NODE_TYPES):
        base = 2.0 * speed[t] ** 0.9 * np.exp(rng.normal(0.0, 0.25))
        for o in range(OFFERS_PER_TYPE):
            usd = round(float(devices[t] * base * np.exp(rng.normal(0.0, 0.2))), 4)
            most = int(rng.integers(1, 20)) if rng.random() < limited else None
            offers.append(
                OfferSlot(
                    f"offer-{t:03d}-{o}", f"node-{t:03d}", f"device-{t // 3}", int(devices[t]), f"provider-{o}",
                    f"region-{o % 5}", "on_demand", usd, most, 500.0,
                )
            )  # fmt: skip
    columns: dict[str, list[np.ndarray]] = {name: [] for name in ("w", "t", "g", "m", "mu", "power")}
    for w in range(workloads):
        smallest = int(rng.choice((1, 1, 2, 4)))
        hardness = np.exp(rng.normal(0.0, 0.3, classes))
        for t in range(NODE_TYPES):
            sizes = [g for g in (1, 2, 4, 8, 16) if g <= devices[t]]
            g = rng.choice(sizes, DEPLOYMENTS_PER_TYPE)
            m = np.ones(DEPLOYMENTS_PER_TYPE, dtype=int)
            if devices[t] >= 8:
                spans = rng.random(DEPLOYMENTS_PER_TYPE) < 0.1
                m[spans], g[spans] = 2, devices[t]
            efficiency = (g * m) ** -0.1 * np.exp(rng.normal(0.0, 0.3, DEPLOYMENTS_PER_TYPE))
            mu = 0.5 * speed[t] * (g * m * efficiency)[:, None] * hardness[None, :]
            mu = np.where((g * m * speed[t] < smallest)[:, None], 0.0, mu)
            mu = np.where(rng.random(mu.shape) < 0.1, 0.0, mu)
            for name, column in (("w", np.full(len(g), w)), ("t", np.full(len(g), t)), ("g", g), ("m", m), ("mu", mu)):
                columns[name].append(column)
            columns["power"].append(400.0 * g * m)
    joined = {name: np.concatenate(parts) for name, parts in columns.items()}
    table = DeploymentTable(
        tuple(f"node-{t:03d}" for t in range(NODE_TYPES)), joined["w"], joined["t"], joined["g"], joined["m"],
        joined["mu"], joined["power"], np.arange(len(joined["w"])),
    )  # fmt: skip
    demands = []
    for _ in range(workloads):
        share = rng.dirichlet(np.ones(classes)) * requests_per_s * np.exp(rng.normal(0.0, 0.7))
        demands.append(Demand(tuple(float(s) for s in share), 0.85))
    return FleetProblem(tuple(offers), table, tuple(demands), limits or Limits())


CASES = (
    ("1 workload, 1 class, 20 req/s", 1, 1, 20.0, Limits(), 0.1),
    ("1 workload, 1 class, 2 req/s", 1, 1, 2.0, Limits(), 0.1),
    ("1 workload, 1 class, 500 req/s", 1, 1, 500.0, Limits(), 0.1),
    ("1 workload, 20 req/s, 1 spare node", 1, 1, 20.0, Limits(spare_nodes=1), 0.1),
    ("1 workload, every offer limited", 1, 1, 200.0, Limits(), 1.0),
    ("1 workload, 10 classes, 20 req/s", 1, 10, 20.0, Limits(), 0.1),
    ("5 workloads, 1 class, 20 req/s each", 5, 1, 20.0, Limits(), 0.1),
    ("5 workloads, 1 class, 2 req/s each", 5, 1, 2.0, Limits(), 0.1),
    ("5 workloads, 10 classes, 20 req/s each", 5, 10, 20.0, Limits(), 0.1),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=7)
    parser.add_argument("--time-limit-s", type=float, default=10.0)
    parser.add_argument("--only", type=int, default=None)
    arguments = parser.parse_args()
    header = f"{'case':40} {'median ms':>9} {'max ms':>8} {'solver ms':>9} {'proven':>7} {'pairs':>6} {'worst gap':>9}"
    print(header)
    for number, (name, workloads, classes, rate, limits, limited) in enumerate(CASES):
        if arguments.only is not None and number != arguments.only:
            continue
        times, solver, proven, pairs, gaps = [], [], 0, [], []
        for seed in range(arguments.seeds):
            problem = synthetic_problem(seed, workloads, classes, rate, limits, limited)
            began = time.perf_counter()
            result = solve_fleet(problem, SolveOptions(time_limit_s=arguments.time_limit_s))
            times.append((time.perf_counter() - began) * 1e3)
            errors = verify(problem, result)
            if errors:
                raise SystemExit(f"{name}, seed {seed}: {errors}")
            solver.append(result.solver_seconds * 1e3)
            proven += result.outcome == "optimal"
            pairs.append(result.solver_candidates)
            gaps.append(result.gap_fraction or 0.0)
        print(
            f"{name:40} {statistics.median(times):9.1f} {max(times):8.1f} {statistics.median(solver):9.1f} "
            f"{proven:4d}/{len(times)} {statistics.median(pairs):6.0f} {max(gaps):9.2e}"
        )


if __name__ == "__main__":
    main()
