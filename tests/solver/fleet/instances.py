"""Random fleet problems, reproducible by seed."""

import random
from dataclasses import replace

import numpy as np

from solver.fleet import (
    Demand,
    Deployment,
    DeploymentTable,
    FaultTolerance,
    FleetProblem,
    Limits,
    OfferSlot,
    Quota,
    Split,
)
from solver.fleet.deployments import ROLES
from solver.hardware import PlaceKind
from solver.objective import Objective


def tiny_problem(seed: int) -> FleetProblem:
    """Small enough to enumerate: every offer has at most three nodes. All kinds of limits, sizes that do not divide."""
    rng = random.Random(seed)
    types = [(f"t{i}", rng.choice((1, 2, 3, 4, 8)), rng.choice((0.0, 50.0))) for i in range(rng.randint(1, 2))]
    offers = []
    for i in range(rng.randint(1, 3)):
        node_type, devices, host_w = rng.choice(types)
        offers.append(
            OfferSlot(
                f"o{i}",
                node_type,
                f"d-{node_type}",
                devices,
                f"p{i % 2}",
                "r",
                "on_demand",
                float(rng.randint(1, 9)),
                rng.randint(1, 3),
                host_w,
                rng.random() < 0.3,
            )
        )
    workloads = rng.choice((1, 1, 2))
    classes = rng.choice((1, 1, 2, 3))
    rows = []
    for key in range(rng.randint(workloads, 3)):
        node_type, devices, _ = rng.choice(types)
        spans = rng.random() < 0.15
        capacity = tuple(float(rng.choice((0, 1, 2, 3, 5))) for _ in range(classes))
        size = devices if spans else rng.randint(1, devices)
        rows.append(
            Deployment(key % workloads, node_type, size, 2 if spans else 1, capacity, rng.choice((100.0, 250.0)), key)
        )
    names = [offer.id for offer in offers]
    demands = tuple(
        Demand(
            tuple(round(rng.uniform(0.0, 4.0), 2) if rng.random() < 0.85 else 0.0 for _ in range(classes)),
            rng.choice((1.0, 0.8)),
            rng.choice((0, 1, 1, 2)),
            frozenset(rng.sample(names, rng.randint(1, len(names)))) if rng.random() < 0.2 else None,
        )
        for _ in range(workloads)
    )
    objective: Objective = rng.choice(("cost", "cost", "cost", "power", "throughput"))
    if not any(sum(demand.requests_per_s) for demand in demands):
        objective = "cost"
    limits = Limits(
        budget_usd_per_hour=rng.choice((None, None, 6.0, 12.0, 20.0)),
        power_w=rng.choice((None, None, None, 600.0, 1500.0)),
        spare_nodes=rng.choice((0, 0, 0, 1)),
        max_spot_fraction=rng.choice((None, None, 0.0, 0.5)),
        quotas=(Quota("q", frozenset(names[:2]), rng.choice((2, 4, 9))),) if rng.random() < 0.2 else (),
    )
    return FleetProblem(tuple(offers), DeploymentTable.from_rows(rows), demands, limits, objective)


def tiny_split_problem(seed: int) -> FleetProblem:
    """A tiny problem some of whose replicas take one instance of a split device; losses to be survived now and then."""
    rng = random.Random(60_000 + seed)
    problem = tiny_problem(rng.randrange(10**6))
    widest = rng.choice((1, 2, 2, 3))
    power_matters = problem.objective == "power" or problem.limits.power_w is not None
    most = 1 if power_matters else 2  # every sub-vector of replicas is enumerated where power matters
    offers = tuple(
        replace(
            offer, devices=1 + (offer.devices - 1) % widest, max_nodes=rng.randint(1, most), region=rng.choice("ab")
        )
        for offer in problem.offers
    )
    devices = {offer.node_type_id: offer.devices for offer in offers}
    splits = (Split("half", 2), Split("third", 3), Split("other half", 2))
    table, rows = problem.deployments, []
    for row in range(len(table)):
        node_type = table.node_type_ids[table.node_type[row]]
        share = rng.choice((None, *splits)) if row else rng.choice(splits)
        size = min(int(table.devices_per_replica[row]), devices.get(node_type, 1))
        rows.append(
            Deployment(
                int(table.workload[row]),
                node_type,
                1 if share else size,
                1 if share else int(table.nodes_per_replica[row]),
                tuple(float(rate) / (1.5 if share else 1.0) for rate in table.capacity_requests_per_s[row]),
                rng.choice((50.0, 100.0)),
                row,
                split=share,
            )
        )
    fault_tolerance = FaultTolerance(regions=1) if rng.random() < 0.1 and not power_matters else FaultTolerance()
    return replace(
        problem,
        offers=offers,
        deployments=DeploymentTable.from_rows(rows),
        limits=replace(problem.limits, fault_tolerance=fault_tolerance),
    )


def shared_split_problem(seed: int) -> FleetProblem:
    """Several workloads on whole and split devices of a few node types: more than can be enumerated."""
    rng = random.Random(80_000 + seed)
    workloads, classes = rng.choice((2, 3, 5)), rng.choice((1, 1, 2))
    splits = (Split("seventh", 7), Split("third", 3), Split("half", 2))
    offers, rows = [], []
    for t in range(rng.randint(2, 4)):
        devices, speed = rng.choice((1, 2, 4, 8)), rng.lognormvariate(0.0, 0.5)
        for o in range(rng.randint(1, 2)):
            usd = round(devices * speed * rng.uniform(0.8, 1.5), 3)
            most = rng.choice((None, None, 1, 3))
            offers.append(
                OfferSlot(f"o{t}-{o}", f"t{t}", f"d{t}", devices, f"p{o}", f"r{o}", "on_demand", usd, most, 200.0)
            )
        for w in range(workloads):
            for _ in range(rng.randint(0, 3)):
                share = rng.choice((None, *splits))
                size = 1 if share else rng.choice([g for g in (1, 2, 3, 4) if g <= devices])
                part = share.instances * rng.uniform(0.8, 1.5) if share else 1.0
                rate = 3.0 * speed * size * rng.uniform(0.5, 1.2) / part
                capacity = tuple(rate * rng.choice((0.0, 0.6, 1.0, 1.0)) for _ in range(classes))
                rows.append(Deployment(w, f"t{t}", size, 1, capacity, 300.0 * size / part, len(rows), split=share))
    demands = tuple(Demand(tuple(rng.uniform(0.1, 4.0) for _ in range(classes)), 0.85) for _ in range(workloads))
    objective: Objective = rng.choice(("cost", "cost", "power"))
    limits = Limits(spare_nodes=rng.choice((0, 0, 0, 1)))
    return FleetProblem(tuple(offers), DeploymentTable.from_rows(rows), demands, limits, objective)


def tiny_exchange_problem(seed: int) -> FleetProblem:
    """A tiny problem with replicas that prefill only and decode only, in two places, under every kind of limit now and then."""
    rng = random.Random(90_000 + seed)
    types = [(f"t{i}", rng.choice((1, 2, 3, 4)), rng.choice((0.0, 50.0))) for i in range(2)]
    power_matters = rng.random() < 0.15  # every sub-vector of replicas is enumerated then
    offers = []
    for i in range(rng.choice((2, 3, 3))):
        node_type, devices, host_w = rng.choice(types)
        region = rng.choice(("east", "east", "east", "west"))
        offers.append(
            OfferSlot(
                f"o{i}", node_type, f"d-{node_type}", devices, rng.choice("pppq"), region, "on_demand",
                float(rng.randint(1, 9)), 1 if power_matters else rng.randint(1, 2), host_w, rng.random() < 0.2, 0.1,
            )
        )  # fmt: skip
    workloads, classes = rng.choice((1, 1, 1, 2)), rng.choice((1, 1, 1, 2))
    rows = []
    for key in range(rng.randint(3, 4) if workloads == 1 else 4):
        node_type, devices, _ = rng.choice(types)
        role = ROLES[(key + seed) % 3] if workloads == 1 else rng.choice(ROLES)
        spans = role == "aggregated" and rng.random() < 0.1
        capacity = tuple(
            float(rng.choice((0, 0, 1, 2) if role == "aggregated" else (1, 2, 3, 5))) for _ in range(classes)
        )
        rows.append(
            Deployment(
                key % workloads, node_type, rng.randint(1, devices), 2 if spans else 1, capacity,
                rng.choice((100.0, 250.0)), key, role=role, exchange=rng.choice(("bf16", "bf16", "bf16", "fp8")),
            )
        )  # fmt: skip
    names = [offer.id for offer in offers]
    few: tuple[tuple[PlaceKind, int], ...] = rng.choice(((),) * 8 + ((("region", 1),), (("device", 1),)))
    demands = tuple(
        Demand(
            tuple(round(rng.uniform(0.1, 2.5) / classes, 2) for _ in range(classes)),
            rng.choice((1.0, 0.8)),
            rng.choice((0, 1, 1, 1, 2)),
            frozenset(rng.sample(names, rng.randint(1, len(names)))) if rng.random() < 0.1 else None,
            most_places=few,
        )
        for _ in range(workloads)
    )
    limits = Limits(
        budget_usd_per_hour=rng.choice((None, None, None, None, 8.0, 20.0)),
        power_w=rng.choice((None, 600.0, 1500.0)) if power_matters else None,
        spare_nodes=rng.choice((0,) * 7 + (1,)),
        max_spot_fraction=rng.choice((None, None, 0.5)),
        quotas=(Quota("q", frozenset(names[:2]), rng.choice((4, 6, 9))),) if rng.random() < 0.2 else (),
        fault_tolerance=rng.choice(
            (FaultTolerance(),) * 7
            + (FaultTolerance(regions=1), FaultTolerance(providers=1, utilisation_limit_fraction=0.9))
        ),
    )
    objective: Objective = "power" if power_matters else rng.choice(("cost", "cost", "cost", "throughput"))
    return FleetProblem(tuple(offers), DeploymentTable.from_rows(rows), demands, limits, objective)


def tiny_resilient_problem(seed: int) -> FleetProblem:
    """A tiny problem over a few regions and providers, some of which may be lost."""
    rng = random.Random(20_000 + seed)
    problem = tiny_problem(rng.randrange(10**6))
    power_matters = rng.random() < 0.15  # every sub-vector of replicas is enumerated then
    offers = [
        replace(
            offer,
            provider=rng.choice(("p0", "p1", "p2")),
            region=rng.choice(("r0", "r1", "r2")),
            max_nodes=1 if power_matters else rng.randint(1, 2),
        )
        for offer in problem.offers
    ]
    # A second place to run what the first offer runs makes most of them feasible.
    offers.append(replace(offers[0], id="o9", provider="p3", region="r3", usd_per_hour=float(rng.randint(1, 9))))
    providers, regions = rng.choice(((1, 0), (0, 1), (0, 1), (1, 1), (0, 2)))
    demands = tuple(
        replace(demand, requests_per_s=tuple(rate / 3 for rate in demand.requests_per_s), allowed_offer_ids=None)
        if rng.random() < 0.9
        else demand
        for demand in problem.demands
    )
    limits = Limits(
        budget_usd_per_hour=rng.choice((None, None, None, 20.0)),
        power_w=1500.0 if power_matters and rng.random() < 0.5 else None,
        spare_nodes=rng.choice((0, 0, 0, 0, 1)),
        max_spot_fraction=rng.choice((None, None, None, 0.5)),
        fault_tolerance=FaultTolerance(providers, regions, rng.choice((1.0, 1.0, 0.9))),
    )
    objective: Objective = "power" if power_matters else rng.choice(("cost", "cost", "cost", "throughput"))
    if not any(sum(demand.requests_per_s) for demand in demands):
        objective = "cost"
    return replace(problem, offers=tuple(offers), demands=demands, limits=limits, objective=objective)


def tiny_placed_problem(seed: int) -> FleetProblem:
    """A tiny problem whose workloads may be in few places: providers, regions or kinds of devices."""
    rng = random.Random(50_000 + seed)
    problem = tiny_problem(rng.randrange(10**6))
    offers = tuple(
        replace(
            offer,
            provider=rng.choice(("p0", "p1")),
            region=rng.choice(("r0", "r1")),
            device_id=rng.choice((offer.device_id, "d")),
            max_nodes=rng.randint(1, 2),
        )
        for offer in problem.offers
    )
    offers += (replace(offers[0], id="o9", region="r2", usd_per_hour=float(rng.randint(1, 9))),)
    kinds: list[tuple[PlaceKind, int]] = [("provider", 1), ("region", rng.choice((1, 1, 2))), ("device", 1)]

    def few() -> tuple[tuple[PlaceKind, int], ...]:
        return tuple(sorted(rng.sample(kinds, rng.choice((0, 1, 1, 2, 3)))))

    demands = [
        replace(demand, requests_per_s=tuple(rate / 2 for rate in demand.requests_per_s), most_places=few())
        for demand in problem.demands
    ]
    if not any(demand.most_places for demand in demands):
        demands[0] = replace(demands[0], most_places=(("region", 1),))
    limits = replace(
        problem.limits,
        power_w=None,
        budget_usd_per_hour=rng.choice((None, None, 20.0)),
        fault_tolerance=FaultTolerance(regions=1) if rng.random() < 0.1 else FaultTolerance(),
    )
    objective = "cost" if problem.objective == "power" else problem.objective
    return replace(problem, offers=offers, demands=tuple(demands), limits=limits, objective=objective)


def tiny_copies_problem(seed: int) -> FleetProblem:
    """A tiny problem whose workloads may have few copies of their models, of which a replica may have two."""
    rng = random.Random(110_000 + seed)
    problem = tiny_problem(rng.randrange(10**6))
    offers = tuple(replace(offer, max_nodes=rng.randint(1, 2)) for offer in problem.offers)
    demands = [replace(one, most_copies=rng.choice((None, 1, 2, 2, 3, 4, 6))) for one in problem.demands]
    if all(one.most_copies is None for one in demands):
        demands[0] = replace(demands[0], most_copies=rng.randint(1, 3))
    copies = np.array([rng.choice((1, 1, 2)) for _ in range(len(problem.deployments))], dtype=np.int64)
    table = replace(problem.deployments, copies=copies)
    return replace(problem, offers=offers, demands=tuple(demands), deployments=table)


def tiny_distant_problem(seed: int) -> FleetProblem:
    """A tiny problem over two regions, in one of which deployments serve less, or nothing, because it is far away."""
    rng = random.Random(40_000 + seed)
    problem = tiny_problem(rng.randrange(10**6))
    offers = tuple(
        replace(offer, region=rng.choice(("near", "far", "far")), max_nodes=rng.randint(1, 2))
        for offer in problem.offers
    )
    table, rows = problem.deployments, []
    for row in range(len(table)):
        for region, share in (("near", 1.0), ("far", rng.choice((0.0, 0.5, 1.0)))):
            rows.append(
                Deployment(
                    int(table.workload[row]),
                    table.node_type_ids[table.node_type[row]],
                    int(table.devices_per_replica[row]),
                    int(table.nodes_per_replica[row]),
                    tuple(share * rate for rate in table.capacity_requests_per_s[row]),
                    100.0,
                    len(rows),
                    None if share == 1.0 and region == "far" else frozenset({region}),
                )
            )
    objective = "cost" if problem.objective == "power" else problem.objective
    limits = replace(problem.limits, power_w=None)
    return replace(
        problem, offers=offers, deployments=DeploymentTable.from_rows(rows), objective=objective, limits=limits
    )


def tiny_carbon_problem(seed: int) -> FleetProblem:
    """A tiny problem on electricity of several kinds, emissions limited or the objective."""
    rng = random.Random(70_000 + seed)
    problem = tiny_problem(rng.randrange(10**6))
    offers = tuple(
        replace(offer, kg_co2e_per_kwh=rng.choice((0.0, 0.03, 0.4, 0.7)), max_nodes=rng.randint(1, 2))
        for offer in problem.offers
    )
    demands = tuple(
        replace(demand, requests_per_s=tuple(rate / 2 for rate in demand.requests_per_s)) for demand in problem.demands
    )
    objective: Objective = rng.choice(("cost", "cost", "carbon", "carbon", "throughput"))
    if not any(sum(demand.requests_per_s) for demand in demands):
        objective = "cost"
    limits = replace(
        problem.limits,
        power_w=rng.choice((None, None, 900.0)),
        carbon_kg_per_hour=rng.choice((None, 0.05, 0.2, 0.4))
        if objective == "carbon"
        else rng.choice((0.02, 0.1, 0.3)),
    )
    return replace(problem, offers=offers, demands=demands, limits=limits, objective=objective)


def tiny_rack_problem(seed: int) -> FleetProblem:
    """One workload runs only on a large node; others may join it there or stay on small ones."""
    rng = random.Random(90_000 + seed)
    devices = rng.choice((3, 4, 4))
    rack = [("rack", devices, float(rng.randint(3, 9)), rng.choice((1, 1, 1, 2)))]
    small = [(f"s{t}", rng.choice((1, 1, 2)), float(rng.randint(1, 3)), rng.choice((1, 1, 2))) for t in range(2)]
    racks = rack + [("other-rack", devices, float(rng.randint(3, 9)), 1)] * rng.randint(0, 1)
    offers = tuple(
        OfferSlot(f"o{o}", name, name, size, f"p{o}", "r", "on_demand", usd, most, rng.choice((0.0, 50.0)))
        for o, (name, size, usd, most) in enumerate(racks + small)
    )
    rows: list[Deployment] = []
    classes, workloads = rng.choice((1, 1, 2)), rng.choice((2, 2, 2, 3))

    def add(workload: int, node: str, size: int) -> None:
        capacity = tuple(size * float(rng.choice((1, 1, 2))) for _ in range(classes))
        rows.append(Deployment(workload, node, size, 1, capacity, 100.0 * size, len(rows)))

    for name, *_ in racks:
        add(0, name, rng.choice((2, 3)))
    for w in range(1, workloads):
        add(w, "rack", rng.choice((1, 2)))
        node, size, *_ = rng.choice(small)
        add(w, node, rng.randint(1, size))
    demands = tuple(
        Demand(tuple(round(rng.uniform(0.2, 1.5), 2) for _ in range(classes)), rng.choice((1.0, 0.8)))
        for _ in range(workloads)
    )
    limits = Limits(
        budget_usd_per_hour=rng.choice((None, None, None, 12.0)), spare_nodes=rng.choice((0, 0, 0, 0, 0, 1))
    )
    objective: Objective = rng.choice(("cost", "cost", "cost", "cost", "cost", "cost", "power"))
    return FleetProblem(offers, DeploymentTable.from_rows(rows), demands, limits, objective)


def middling_problem(seed: int) -> FleetProblem:
    """A small catalogue with shared fleets, limited and unlimited offers."""
    rng = random.Random(10_000 + seed)
    workloads, classes = rng.choice((1, 1, 1, 2)), rng.choice((1, 1, 2, 3))
    offers, rows = [], []
    node_sizes = (1, 2, 4, 4, 6, 8)
    for t in range(rng.randint(3, 6)):
        devices, speed = rng.choice(node_sizes), rng.lognormvariate(0.0, 0.6)
        offers += [
            OfferSlot(
                f"o{t}-{o}",
                f"t{t}",
                f"d{t // 2}",
                devices,
                f"p{o}",
                f"r{o}",
                "spot" if o == 2 else "on_demand",
                round(devices * speed * rng.uniform(0.8, 1.6), 4),
                rng.choice((None, None, 1, 4, 10)),
                200.0,
                o == 2,
            )
            for o in range(rng.randint(1, 3))
        ]
        for w in range(workloads):
            for _ in range(rng.randint(0, 4)):
                spans = devices >= 4 and rng.random() < 0.1
                size = devices if spans else rng.choice([g for g in (1, 2, 3, 4, 6, 8) if g <= devices])
                base = speed * size * (2 if spans else 1) * rng.uniform(0.5, 1.2)
                capacity = tuple(base * rng.choice((0.0, 0.6, 1.0, 1.0)) for _ in range(classes))
                rows.append(Deployment(w, f"t{t}", size, 2 if spans else 1, capacity, 300.0 * size, len(rows)))
    demands = tuple(
        Demand(tuple(rng.uniform(0.5, 6.0) for _ in range(classes)), rng.choice((1.0, 0.85)), rng.choice((1, 1, 2)))
        for _ in range(workloads)
    )
    limits = Limits(
        budget_usd_per_hour=rng.choice((None, None, None, 60.0)),
        power_w=rng.choice((None, None, None, 20_000.0)),
        spare_nodes=rng.choice((0, 0, 1)),
        max_spot_fraction=rng.choice((None, None, 0.3)),
    )
    objective: Objective = rng.choice(("cost", "cost", "cost", "power", "throughput"))
    if objective == "throughput":
        limits = Limits(budget_usd_per_hour=rng.choice((30.0, 80.0)), spare_nodes=limits.spare_nodes)
    return FleetProblem(tuple(offers), DeploymentTable.from_rows(rows), demands, limits, objective)
