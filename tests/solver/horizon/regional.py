"""Tiny random fleets over regions: as asked of the planner, and as the plainest problem in which every source of nodes
is a machine of its own, for trying everything."""

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np

from solver.hardware import Offer
from solver.horizon.assemble import OWN, FleetCandidate, FleetInput, Purchase
from solver.horizon.problem import (
    Commitment,
    HorizonDeployment,
    HorizonProblem,
    HourlyOffer,
    NodeType,
    Period,
)
from solver.workload import Places, Workload
from tests.solver.planning_cases import node, planning, workload
from tests.solver.samples import device

MACHINES = (node("l4x1", device("l4"), 1), node("l40sx2", device("l40s"), 2))
REGIONS = ("east", "west", "north")
AWAY_S = (0.0, 0.02, 0.05)


@dataclass(frozen=True)
class Regional:
    asked: FleetInput
    candidates: list[FleetCandidate]
    periods: tuple[Period, ...]


def regional(seed: int) -> Regional:
    rng = np.random.default_rng([seed, 3])
    months = int(rng.integers(1, 3))
    workloads = tuple(_workload(rng, f"w{w}") for w in range(int(rng.integers(1, 3))))
    sources = {(int(rng.integers(2)), str(rng.choice(REGIONS)), str(rng.choice(["a", "b"]))) for _ in range(4)}
    offers = []
    for machine, region, provider in sorted(sources):
        on = MACHINES[machine]
        for kind, low, high in (("on_demand", 1.0, 3.0), ("reserved_1m", 0.4, 2.0)):
            if rng.random() < (0.8 if kind == "on_demand" else 0.35):
                price = round(float(on.devices * rng.uniform(low, high)), 2)
                most = None if rng.random() < 0.5 else int(rng.integers(1, 4))
                offers.append(Offer(f"{provider}:{on.id}:{region}:{kind}", on, provider, region, kind, price, most))
    purchases = []
    if rng.random() < 0.4:
        on, region = MACHINES[int(rng.integers(2))], str(rng.choice(REGIONS))
        price = float(on.devices * rng.uniform(200, 2_000))
        payments = ((0, price), (months, -price * float(rng.uniform(0.0, 0.8))))
        purchases.append(Purchase(f"own:{region}:{on.id}", on.id, on.devices, region, 0, months, payments))
    candidates = []
    rows = itertools.count()
    for w, one in enumerate(workloads):
        for on in MACHINES:
            for size in (1, 2):
                rate = float(size * rng.uniform(0.5, 1.5))
                if size > on.devices or rng.random() < 0.2:
                    continue
                for position, away in enumerate(one.distances_s or (0.0,)):
                    # The nearer, the more a replica serves within its targets.
                    near = round(rate * (1.0 - 8.0 * away), 3)
                    candidates.append(FleetCandidate(w, on.id, position, away, size, near, next(rows)))
    periods = tuple(
        Period(month, 730.0, tuple(round(float(rng.uniform(0, 1.4)), 2) for _ in workloads)) for month in range(months)
    )
    asked = FleetInput(
        planning=planning(*workloads, offers=offers, nodes=MACHINES),
        demands=(None,) * len(workloads),
        months=months,
        periods_per_month=1,
        terms={"reserved_1m": 1},
        purchases=tuple(purchases),
        discount_fraction_per_year=float(rng.choice([0.0, 0.5])),
    )
    return Regional(asked, candidates, periods)


def _workload(rng: np.random.Generator, name: str) -> Workload:
    only = frozenset(str(r) for r in rng.choice(REGIONS, 2)) if rng.random() < 0.4 else None
    never = frozenset({str(rng.choice(REGIONS))}) if rng.random() < 0.3 else frozenset()
    kept_out = frozenset({"a"}) if rng.random() < 0.15 else frozenset()
    away = {r: float(rng.choice(AWAY_S)) for r in REGIONS} if rng.random() < 0.4 else None
    return replace(workload(name), places=Places(only, never, None, kept_out), network_s_by_region=away)


def plainly(one: Regional) -> HorizonProblem:
    """Every offer and every purchase as a machine of its own, with the replicas that may stand there."""
    asked = one.asked
    types: list[NodeType] = []
    hourly: list[HourlyOffer] = []
    commitments: list[Commitment] = []
    deployments: list[HorizonDeployment] = []
    keys = itertools.count()
    sources = [(o.id, o.node.id, o.node.devices, o.provider, o.region, o) for o in asked.planning.offers]
    owned = [(p.id, p.machine, p.devices, OWN, p.region, p) for p in asked.purchases]
    for source, machine, devices, provider, region, what in (*sources, *owned):
        t = len(types)
        types.append(NodeType(source, devices))
        if isinstance(what, Purchase):
            usd = math.fsum(u for _, u in what.payments)
            commitments.append(
                Commitment(source, t, "purchase", what.start_month, what.term_months, usd, None, what.payments)
            )
        elif what.commitment == "on_demand":
            hourly.append(HourlyOffer(source, t, what.usd_per_hour, what.max_nodes))
        else:
            commitments += [
                Commitment(source, t, what.commitment, month, 1, 730.0 * what.usd_per_hour, what.max_nodes)
                for month in range(asked.months)
            ]
        for able in one.candidates:
            mine = asked.planning.workloads[able.workload]
            places, away = mine.places, mine.network_s_by_region
            if able.machine != machine or able.devices > devices or region in places.never_regions:
                continue
            if places.only_regions is not None and region not in places.only_regions:
                continue
            if provider in places.never_providers or (away is not None and away[region] != able.network_s):
                continue
            deployments.append(HorizonDeployment(able.workload, t, able.devices, able.requests_per_s, next(keys)))
    return HorizonProblem(
        asked.months,
        tuple(w.name for w in asked.planning.workloads),
        one.periods,
        tuple(types),
        tuple(deployments),
        tuple(hourly),
        tuple(commitments),
        discount_fraction_per_year=asked.discount_fraction_per_year,
    )
