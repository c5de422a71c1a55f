"""Pools of their own in the optimiser: equal to enumeration, and every mutation of a plan is refused."""

import itertools
import math
import random
from dataclasses import replace

import pytest

from solver.fleet.phases.formulation import Role, RoleDeployment, RolesPlan, RolesProblem, RolesResult
from solver.fleet.phases.solve import solve_roles
from solver.fleet.phases.verify import verify_roles
from solver.fleet.problem import OfferSlot

INSTANCES = 500
BATCH = 100


def tiny(seed: int) -> RolesProblem:
    """Few nodes, two places, sizes that divide each other: small enough to enumerate."""
    rng = random.Random(seed)
    types = [(f"t{i}", rng.choice((1, 2, 4)), rng.choice((0.0, 50.0))) for i in range(2)]
    offers = []
    for i in range(rng.randint(2, 3)):
        node_type, devices, host_w = rng.choice(types)
        region = rng.choice(("east", "east", "west"))
        offers.append(
            OfferSlot(
                f"o{i}", node_type, f"d-{node_type}", devices, "p", region, "on_demand", float(rng.randint(1, 9)),
                rng.randint(1, 2), host_w,
            )
        )  # fmt: skip
    workloads = rng.choice((1, 1, 1, 2))
    roles: tuple[Role, ...] = ("aggregated", "prefill", "decode")
    rows = []
    for key in range(rng.randint(3, 4) if workloads == 1 else 4):
        node_type, devices, _ = rng.choice(types)
        size = rng.choice([g for g in (1, 2, 4) if g <= devices])
        role = roles[(key + seed) % 3] if workloads == 1 else rng.choice(roles)
        capacity = float(rng.choice((0, 1, 1, 2) if role == "aggregated" else (1, 2, 3, 5)))
        rows.append(
            RoleDeployment(
                key, key % workloads, role, node_type, size, capacity, rng.choice((100.0, 250.0)),
                rng.choice(("bf16", "bf16", "bf16", "fp8")) if role != "aggregated" else "",
            )
        )  # fmt: skip
    return RolesProblem(
        tuple(offers),
        tuple(rows),
        tuple(round(rng.uniform(0.1, 4.0), 2) for _ in range(workloads)),
        tuple(rng.choice((1.0, 0.8)) for _ in range(workloads)),
        rng.choice((None, None, 8.0, 20.0)),
        rng.choice((None, None, None, 600.0, 1500.0)),
    )


def cheapest(problem: RolesProblem) -> float | None:
    """By enumeration of nodes, contents of each node, and which replicas run. Shares nothing with the optimiser."""
    best: float | None = None
    for nodes in itertools.product(*(range((o.max_nodes or 0) + 1) for o in problem.offers)):
        usd = sum(n * o.usd_per_hour for n, o in zip(nodes, problem.offers, strict=True))
        if (best is not None and usd >= best) or usd > (problem.budget_usd_per_hour or math.inf) + 1e-9:
            continue
        host_w = sum(n * o.host_power_w for n, o in zip(nodes, problem.offers, strict=True))
        options = [
            list(itertools.combinations_with_replacement(contents(problem, offer), count))
            for count, offer in zip(nodes, problem.offers, strict=True)
        ]
        if any(serves(problem, chosen, host_w) for chosen in itertools.product(*options)):
            best = usd
    return best


def contents(problem: RolesProblem, offer: OfferSlot) -> list[tuple[int, ...]]:
    """What one node may run, by deployment; under a power limit also less than it could hold."""
    rows = problem.deployments
    most = [offer.devices // d.devices_per_replica if d.node_type_id == offer.node_type_id else 0 for d in rows]
    fits = [
        c for c in itertools.product(*(range(m + 1) for m in most))
        if sum(n * d.devices_per_replica for n, d in zip(c, rows, strict=True)) <= offer.devices
    ]  # fmt: skip
    if problem.power_w is not None:
        return fits
    return [a for a in fits if not any(a != b and all(x <= y for x, y in zip(a, b, strict=True)) for b in fits)]


def serves(problem: RolesProblem, chosen: tuple[tuple[tuple[int, ...], ...], ...], host_w: float) -> bool:
    watts = host_w
    able: dict[tuple[object, ...], float] = {}
    for offer, filled in zip(problem.offers, chosen, strict=True):
        for content in filled:
            for n, d in zip(content, problem.deployments, strict=True):
                watts += n * d.power_w_per_replica
                where = (d.workload, d.role, offer.region if d.role != "aggregated" else "", d.exchange)
                carried = n * d.capacity_requests_per_s * problem.utilisation[d.workload]
                able[where] = able.get(where, 0.0) + carried
    if problem.power_w is not None and watts > problem.power_w + 1e-9:
        return False
    for w, rate in enumerate(problem.rates):
        total = able.get((w, "aggregated", "", ""), 0.0)
        for region, exchange in itertools.product(("east", "west"), ("bf16", "fp8")):
            total += min(able.get((w, role, region, exchange), 0.0) for role in ("prefill", "decode"))
        if total < rate - 1e-9:
            return False
    return True


@pytest.mark.parametrize("start", range(0, INSTANCES, BATCH))
def test_equals_enumeration(start: int) -> None:
    feasible = pooled = 0
    for seed in range(start, start + BATCH):
        problem = tiny(seed)
        expected, result = cheapest(problem), solve_roles(problem)
        assert verify_roles(problem, result) == [], f"seed {seed}"
        if expected is None:
            assert result.outcome == "infeasible", f"seed {seed}: {result}"
            continue
        assert result.outcome == "optimal", f"seed {seed}: {result}"
        assert result.usd_per_hour == pytest.approx(expected, rel=1e-6), f"seed {seed}"
        assert result.plan is not None
        feasible += 1
        pooled += any(problem.deployments[key].role == "decode" for key, _ in result.plan.replicas)
    assert BATCH // 5 < feasible < BATCH
    assert pooled >= BATCH // 20, "pools must be chosen now and then"


def test_pruning_changes_no_cost() -> None:
    for seed in range(2_000, 2_150):
        problem = tiny(seed)
        plain = solve_roles(problem, exact_steps=False)
        found = solve_roles(problem, at_most_usd=plain.usd_per_hour or math.inf)
        assert found.outcome == plain.outcome, f"seed {seed}"
        assert found.usd_per_hour == pytest.approx(plain.usd_per_hour), f"seed {seed}"


def test_nothing_below_a_ceiling_below_the_optimum() -> None:
    for seed in range(3_000, 3_060):
        problem = tiny(seed)
        usd = solve_roles(problem).usd_per_hour
        if usd:
            assert solve_roles(replace(problem, budget_usd_per_hour=usd * 0.99)).outcome == "infeasible"


def pooled_result() -> tuple[RolesProblem, RolesResult]:
    offers = (
        OfferSlot("a", "ta", "da", 2, "p", "east", "on_demand", 2.0, 3),
        OfferSlot("b", "tb", "db", 2, "p", "east", "on_demand", 2.0, 3),
        OfferSlot("c", "tb", "db", 2, "p", "west", "on_demand", 1.0, 3),
    )
    rows = (
        RoleDeployment(0, 0, "aggregated", "ta", 2, 1.0),
        RoleDeployment(1, 0, "prefill", "ta", 1, 3.0),
        RoleDeployment(2, 0, "decode", "tb", 2, 4.0),
    )
    problem = RolesProblem(offers, rows, (4.0,), (1.0,), 100.0, None)
    return problem, solve_roles(problem)


class TestByHand:
    def test_pools_beat_four_nodes_of_both(self) -> None:
        """Aggregated: 4 nodes of a, of which 3 exist. Pools in the east: one node of a (6 prompts/s), one of b (4/s)."""
        problem, result = pooled_result()
        assert result.usd_per_hour == 4.0
        assert result.plan == RolesPlan({"a": 1, "b": 1}, {(1, "a"): 2, (2, "b"): 1}, {(1, "a"): 4.0, (2, "b"): 4.0})
        assert verify_roles(problem, result) == []

    def test_the_cache_never_crosses_regions(self) -> None:
        """The west decodes for half the price, and has nothing to prefill with."""
        problem, _ = pooled_result()
        only_west = replace(problem, offers=tuple(o for o in problem.offers if o.id != "b"))
        assert solve_roles(only_west).outcome == "infeasible"


@pytest.mark.parametrize(
    ("nodes", "replicas", "rates", "usd"),
    [
        ({"a": 1}, {(1, "a"): 2, (2, "b"): 1}, {(1, "a"): 4.0, (2, "b"): 4.0}, 2.0),
        ({"a": 1, "b": 4}, {(1, "a"): 2, (2, "b"): 1}, {(1, "a"): 4.0, (2, "b"): 4.0}, 10.0),
        ({"a": 1, "b": 1}, {(1, "a"): 3, (2, "b"): 1}, {(1, "a"): 4.0, (2, "b"): 4.0}, 4.0),
        ({"a": 1, "b": 1}, {(1, "a"): 1, (2, "b"): 1}, {(1, "a"): 4.0, (2, "b"): 4.0}, 4.0),
        ({"a": 1, "b": 1}, {(1, "a"): 2, (2, "b"): 1}, {(1, "a"): 3.9, (2, "b"): 4.0}, 4.0),
        ({"a": 1, "b": 1}, {(1, "a"): 2, (2, "b"): 1}, {(1, "a"): 3.9, (2, "b"): 3.9}, 4.0),
        ({"a": 1, "c": 1}, {(1, "a"): 2, (2, "c"): 1}, {(1, "a"): 4.0, (2, "c"): 4.0}, 3.0),
        ({"a": 1, "b": 1}, {(1, "b"): 2, (2, "b"): 1}, {(1, "b"): 4.0, (2, "b"): 4.0}, 4.0),
        ({"a": 1, "b": 1}, {(1, "a"): 2, (2, "b"): 1}, {(1, "a"): 4.0, (2, "b"): 4.0}, 3.0),
        ({"a": 1, "b": 1}, {(1, "a"): 2, (9, "b"): 1}, {(1, "a"): 4.0, (9, "b"): 4.0}, 4.0),
        ({"a": 1, "b": 1}, {(1, "a"): 2, (2, "b"): 1}, {(1, "a"): -4.0, (2, "b"): -4.0}, 4.0),
    ],
    ids=[
        "node missing", "more nodes than offered", "too full", "overloaded", "unbalanced", "under-served",
        "across regions", "wrong node type", "wrong price", "unknown", "negative",
    ],
)  # fmt: skip
def test_mutations_are_refused(
    nodes: dict[str, int], replicas: dict[tuple[int, str], int], rates: dict[tuple[int, str], float], usd: float
) -> None:
    problem, result = pooled_result()
    changed = replace(result, plan=RolesPlan(nodes, replicas, rates), usd_per_hour=usd, bound=min(usd, 4.0))
    changed = replace(changed, gap_fraction=abs(usd - min(usd, 4.0)) / usd)
    changed = replace(changed, outcome="optimal" if changed.gap_fraction == 0.0 else "feasible")
    assert verify_roles(problem, changed) != []


def test_false_claims_are_refused() -> None:
    problem, result = pooled_result()
    for changed in (
        replace(result, bound=4.5), replace(result, bound=3.0), replace(result, outcome="feasible"),
        replace(result, plan=None), replace(result, gap_fraction=0.1),
    ):  # fmt: skip
        assert verify_roles(problem, changed) != []
    tight = replace(problem, budget_usd_per_hour=3.0)
    assert verify_roles(tight, result) != []
