"""The optimum by enumeration: every count of nodes, every way of filling them, every routing. Shares no code with the
optimiser except the problem's own dataclasses."""

import itertools
import math
from functools import cache
from typing import Any

import numpy as np
from scipy.optimize import linprog

from solver.fleet import FleetProblem


def best_objective(problem: FleetProblem) -> float | None:
    """Least cost, power or carbon, or greatest θ; None where nothing is feasible."""
    return _Enumeration(problem).best()


class _Enumeration:
    def __init__(self, problem: FleetProblem) -> None:
        self.problem = problem
        table = problem.deployments
        self.rows = range(len(table))
        self.type_of = [table.node_type_ids[t] for t in table.node_type]
        self.workload = table.workload.tolist()
        self.size = table.devices_per_replica.tolist()
        self.instances = table.instances.tolist()
        self.span = table.nodes_per_replica.tolist()
        self.power = table.power_w_per_replica.tolist()
        # Each of these depends on the problem alone, and is asked for thousands of times.
        self.busiest = cache(self._busiest)
        self.unit_of, self.group_of, self.runs_on = cache(self._unit), cache(self._group), cache(self._runs_on)
        self.patterns_of, self.spanning_of = cache(self._patterns), cache(self._spanning)
        self.counts_towards, self.place_of = cache(self._counts), cache(self._place)
        self.losses = self._losses()
        self.carbon_matters = problem.objective == "carbon" or problem.limits.carbon_kg_per_hour is not None
        self.kinds = sorted({kind for demand in problem.demands for kind, _ in demand.most_places})
        # Which offer a replica is in matters only where offers are lost apart, counted, or differ in how clean they are.
        self.apart = bool(self.losses) or self.carbon_matters or bool(self.kinds) or table.role is not None
        self.placed_at = [(row, o) for o in range(len(problem.offers) if self.apart else 1) for row in self.rows]
        self.units = sorted({self.unit_of(row, o) for row, o in self.placed_at}, key=str)

    def _unit(self, row: int, o: int) -> tuple[int, tuple[object, ...] | None]:
        """A row, and where the other side of its exchange has to be."""
        table, offer = self.problem.deployments, self.problem.offers[o]
        if table.role is None or table.exchange is None or table.role[row] == 0:
            return row, None
        return row, (offer.provider, offer.region, int(table.exchange[row]))

    def _losses(self) -> list[frozenset[int]]:
        """Positions of the offers that remain after each loss to be survived."""
        offers, fault_tolerance = self.problem.offers, self.problem.limits.fault_tolerance
        remaining = []
        for attribute, count in (("provider", fault_tolerance.providers), ("region", fault_tolerance.regions)):
            names = sorted({getattr(offer, attribute) for offer in offers})
            losses = itertools.combinations(names, min(count, len(names))) if count else ()
            remaining += [
                frozenset(o for o, offer in enumerate(offers) if getattr(offer, attribute) not in lost)
                for lost in losses
            ]
        return remaining

    def best(self) -> float | None:
        problem, limits = self.problem, self.problem.limits
        best: float | None = None
        every = itertools.product(*(range(self._most_nodes(o) + 1) for o in range(len(problem.offers))))
        for nodes in sorted(every, key=self._usd):  # of least cost: the first that will do
            if limits.budget_usd_per_hour is not None and self._usd(nodes) > limits.budget_usd_per_hour + 1e-9:
                break
            if not self._counts_allowed(nodes):
                continue
            tried: set[tuple[int, ...]] = set()
            for replicas in self._replica_counts(nodes):
                value = self._value(replicas, nodes, tried)
                if value is None:
                    continue
                if problem.objective == "cost":
                    return value
                better = best is None or (value > best if problem.objective == "throughput" else value < best)
                if better:
                    best = value
        return best

    def _usd(self, nodes: tuple[int, ...]) -> float:
        return sum(n * offer.usd_per_hour for n, offer in zip(nodes, self.problem.offers, strict=True))

    def _most_nodes(self, o: int) -> int:
        """Nodes that could run nothing are never taken, not even to raise the steady share of devices."""
        of_use = self.problem.offers[o].node_type_id in self.type_of
        of_use = of_use and any(self._allowed(w, o) for w in range(len(self.problem.demands)))
        return (self.problem.offers[o].max_nodes or 0) if of_use else 0

    def _counts_allowed(self, nodes: tuple[int, ...]) -> bool:
        problem = self.problem
        devices = [n * offer.devices for n, offer in zip(nodes, problem.offers, strict=True)]
        for quota in problem.limits.quotas:
            held = sum(d for d, offer in zip(devices, problem.offers, strict=True) if offer.id in quota.offer_ids)
            if held > quota.max_devices:
                return False
        share = problem.limits.max_spot_fraction
        spot = sum(d for d, offer in zip(devices, problem.offers, strict=True) if offer.interruptible)
        return share is None or spot <= share * sum(devices) + 1e-9

    def _value(
        self, replicas: tuple[int, ...], nodes: tuple[int, ...], tried: set[tuple[int, ...]] | None = None
    ) -> float | None:
        """Objective of the best sub-vector of ``replicas``: fewer replicas draw less power. Those of ``tried``, on the same nodes,
        were parts of other vectors; they are left out and the others added."""
        problem, limits = self.problem, self.problem.limits
        tried = set() if tried is None else tried
        usd = self._usd(nodes)
        host_w = sum(n * offer.host_power_w for n, offer in zip(nodes, problem.offers, strict=True))
        fewer_matter = problem.objective == "power" or limits.power_w is not None or self.carbon_matters
        fewer_matter = fewer_matter or bool(self.kinds)
        fewer_matter = fewer_matter or any(demand.most_copies is not None for demand in problem.demands)
        choices = itertools.product(*(range(count + 1) for count in replicas)) if fewer_matter else [replicas]
        best: float | None = None
        for chosen in choices:
            if chosen in tried:
                continue
            tried.add(chosen)
            total = self._by_row(chosen, None)
            power_w = host_w + sum(x * p for x, p in zip(total, self.power, strict=True))
            if limits.power_w is not None and power_w > limits.power_w + 1e-9:
                continue
            carbon = self._carbon(chosen, nodes) if self.carbon_matters else 0.0
            if limits.carbon_kg_per_hour is not None and carbon > limits.carbon_kg_per_hour + 1e-9:
                continue
            if any(
                sum(
                    number
                    for (row, o), number in zip(self.placed_at, chosen, strict=True)
                    if number and self.workload[row] == w and self.counts_towards(row, o, other)
                )
                < demand.min_replicas
                for w, demand in enumerate(problem.demands)
                if demand.min_replicas > 0
                for other in (1, 2)
            ):
                continue
            if self._too_many_places(chosen) or self._too_many_copies(chosen):
                continue
            after = limits.fault_tolerance.utilisation_limit_fraction
            remaining = [(self._by_unit(chosen, None), None)]
            remaining += [(self._by_unit(chosen, left), after) for left in self.losses]
            busiest, busiest_fixed = (
                max(self.busiest(units, usable, is_fixed) for units, usable in remaining) for is_fixed in (False, True)
            )
            if busiest_fixed > 1.0 + 1e-9:
                continue
            if problem.objective == "throughput":
                if math.isinf(busiest):
                    continue
                value = 1.0 / busiest if problem.most_multiple is None else min(1.0 / busiest, problem.most_multiple)
                best = value if best is None else max(best, value)
            elif busiest <= 1.0 + 1e-9:
                if problem.objective == "cost":
                    return usd  # whichever of them it is
                value = power_w if problem.objective == "power" else carbon
                best = value if best is None else min(best, value)
        return best

    def _place(self, o: int, kind: str) -> tuple[str, ...]:
        offer = self.problem.offers[o]
        return {
            "provider": (offer.provider,),
            "region": (offer.provider, offer.region),
            "device": (offer.device_id,),
        }[kind]

    def _too_many_places(self, placed: tuple[int, ...]) -> bool:
        """Is a workload in more places of a kind than it may be?"""
        for w, demand in enumerate(self.problem.demands):
            used = {
                o for (row, o), number in zip(self.placed_at, placed, strict=True) if number and self.workload[row] == w
            }
            for kind, most in demand.most_places:
                if len({self.place_of(o, kind) for o in used}) > most:
                    return True
        return False

    def _too_many_copies(self, placed: tuple[int, ...]) -> bool:
        """Has a workload more copies of its model than it may?"""
        table = self.problem.deployments
        each = [1] * len(table) if table.copies is None else table.copies.tolist()
        total = [0] * len(self.problem.demands)
        for (row, _), number in zip(self.placed_at, placed, strict=True):
            total[self.workload[row]] += number * each[row]
        return any(
            demand.most_copies is not None and copies > demand.most_copies
            for demand, copies in zip(self.problem.demands, total, strict=True)
        )

    def _carbon(self, placed: tuple[int, ...], nodes: tuple[int, ...]) -> float:
        """kg CO2e an hour: kilowatts of hosts and replicas, each at its offer's kg per kWh."""
        drawn_w = [n * offer.host_power_w for n, offer in zip(nodes, self.problem.offers, strict=True)]
        for (row, o), number in zip(self.placed_at, placed, strict=True):
            drawn_w[o] += number * self.power[row]
        return sum(w / 1000 * offer.kg_co2e_per_kwh for w, offer in zip(drawn_w, self.problem.offers, strict=True))

    def _by_row(self, placed: tuple[int, ...], offers: frozenset[int] | None) -> tuple[int, ...]:
        """Replicas of each row in these offers; in all of them for None."""
        count = [0] * len(self.rows)
        for (row, o), number in zip(self.placed_at, placed, strict=True):
            count[row] += number if offers is None or o in offers else 0
        return tuple(count)

    def _by_unit(self, placed: tuple[int, ...], offers: frozenset[int] | None) -> tuple[int, ...]:
        count = dict.fromkeys(self.units, 0)
        for (row, o), number in zip(self.placed_at, placed, strict=True):
            count[self.unit_of(row, o)] += number if offers is None or o in offers else 0
        return tuple(count[unit] for unit in self.units)

    def _counts(self, row: int, o: int, other: int) -> bool:
        """Does a replica take part in the phase that the other role has no part in? A side of an exchange without another side
        does not."""
        role, place = self.problem.deployments.roles, self.unit_of(row, o)[1]
        if role[row] == other or not self._serves(row):
            return False
        if place is None:
            return True
        most = range(len(self.problem.offers))
        return any(
            self.unit_of(partner, p)[1] == place
            and role[partner] == 3 - role[row]
            and self.workload[partner] == self.workload[row]
            and self._serves(partner)
            and self.runs_on(partner, p)
            and self.problem.offers[p].max_nodes
            and self.size[partner] <= self.problem.offers[p].devices
            for partner in self.rows
            for p in most
        )

    def _serves(self, row: int) -> bool:
        """A replica counts if it can take some of its workload's traffic (any does where there is none)."""
        rates = self.problem.demands[self.workload[row]].requests_per_s
        capacity = self.problem.deployments.capacity_requests_per_s[row]
        return not any(rates) or any(rate > 0 and mu > 0 for rate, mu in zip(rates, capacity, strict=False))

    def _replica_counts(self, nodes: tuple[int, ...]) -> set[tuple[int, ...]]:
        """All maximal replica counts that fit, spares and whole-node replicas included."""
        _problem, spare = self.problem, self.problem.limits.spare_nodes
        found: set[tuple[int, ...]] = set()
        for idle in itertools.product(*(range(n + 1 if spare else 1) for n in nodes)):
            active = [n - i for n, i in zip(nodes, idle, strict=True)]
            spanning_options = [self.spanning_of(o, count) for o, count in enumerate(active)]
            for spans in itertools.product(*spanning_options):
                per_group_idle: dict[object, int] = {}
                used: set[object] = set()
                ok, options = True, []
                for o, (span, count) in enumerate(zip(spans, active, strict=True)):
                    rest = count - sum(x * self.span[row] for row, x in span.items())
                    group = self.group_of(o)
                    per_group_idle[group] = per_group_idle.get(group, 0) + idle[o]
                    if span and idle[o] < spare:
                        ok = False
                    patterns = self.patterns_of(o)
                    if span or (rest and patterns != ((0,) * len(self.rows),)):
                        used.add(group)
                    options.append(
                        [
                            tuple(sum(p[row] for p in combo) + span.get(row, 0) for row in self.rows)
                            for combo in itertools.combinations_with_replacement(patterns, rest)
                        ]
                    )
                if not ok or (spare and any(per_group_idle[group] < spare for group in used)):
                    continue
                for parts in itertools.product(*options):
                    apart = tuple(itertools.chain.from_iterable(parts))
                    found.add(apart if self.apart else tuple(map(sum, zip(*parts, strict=True))))
        return found

    def _group(self, o: int) -> tuple[object, ...]:
        offer = self.problem.offers[o]
        return (
            offer.node_type_id,
            offer.interruptible,
            tuple(self._allowed(w, o) for w in range(len(self.problem.demands))),
            tuple(offer.id in quota.offer_ids for quota in self.problem.limits.quotas),
            offer.provider if self.problem.limits.fault_tolerance.providers else None,
            offer.region if self.problem.limits.fault_tolerance.regions else None,
            tuple(offer.region in regions for regions in self.problem.deployments.sites),
            offer.kg_co2e_per_kwh if self.carbon_matters else None,
            tuple(self.place_of(o, kind) for kind in self.kinds),
            (offer.provider, offer.region) if self.problem.deployments.role is not None else None,
        )

    def _allowed(self, w: int, o: int) -> bool:
        allowed = self.problem.demands[w].allowed_offer_ids
        return allowed is None or self.problem.offers[o].id in allowed

    def _runs_on(self, row: int, o: int) -> bool:
        offer, table = self.problem.offers[o], self.problem.deployments
        if table.site is not None and table.site[row] >= 0 and offer.region not in table.sites[table.site[row]]:
            return False
        return self.type_of[row] == offer.node_type_id and self._allowed(self.workload[row], o)

    def _spanning(self, o: int, count: int) -> list[dict[int, int]]:
        rows = [row for row in self.rows if self.span[row] > 1 and self.runs_on(row, o)]
        choices = itertools.product(*(range(count // self.span[row] + 1) for row in rows))
        return [
            {row: x for row, x in zip(rows, chosen, strict=True) if x}
            for chosen in choices
            if sum(x * self.span[row] for row, x in zip(rows, chosen, strict=True)) <= count
        ]

    def _patterns(self, o: int) -> tuple[tuple[int, ...], ...]:
        """Maximal contents of one node."""
        devices = self.problem.offers[o].devices
        most = [
            devices // self.size[row] * self.instances[row] if self.span[row] == 1 and self.runs_on(row, o) else 0
            for row in self.rows
        ]
        fits = [
            counts
            for counts in itertools.product(*(range(m + 1) for m in most))
            if self._devices_taken(counts) <= devices
        ]
        return tuple(
            a for a in fits if not any(a != b and all(x <= y for x, y in zip(a, b, strict=True)) for b in fits)
        )

    def _devices_taken(self, counts: tuple[int, ...]) -> int:
        """Devices of one node: whole ones, and for every way of splitting as many as hold its instances."""
        split = self.problem.deployments.split
        whole = sum(counts[row] * self.size[row] for row in self.rows if split is None or split[row] < 0)
        of_split: dict[int, int] = {}
        for row in self.rows:
            if split is not None and split[row] >= 0:
                of_split[int(split[row])] = of_split.get(int(split[row]), 0) + counts[row]
        splits = self.problem.deployments.splits
        return whole + sum(-(-count // splits[s].instances) for s, count in of_split.items())

    def _busiest(self, replicas: tuple[int, ...], limit: float | None, is_fixed: bool) -> float:
        """Least possible utilisation of the busiest replicas, of fixed demands or of the others, as a share of what
        they may carry.

        limit: share of a replica's capacity that may be used; None: the workload's own.
        """
        worst = 0.0
        for w, demand in enumerate(self.problem.demands):
            if demand.is_fixed != is_fixed:
                continue
            usable = demand.utilisation_limit_fraction if limit is None else limit
            classes = [k for k, rate in enumerate(demand.requests_per_s) if rate > 0]
            if classes:
                held = {u: n for u, n in zip(self.units, replicas, strict=True) if n and self.workload[u[0]] == w}
                worst = max(worst, self._busiest_of(demand.requests_per_s, classes, held, usable))
        return worst

    def _busiest_of(self, rates: tuple[float, ...], classes: list[int], held: dict[Any, int], usable: float) -> float:
        """min t: Σ_k work ≤ t · replicas, all of every class answered, as much prefilled as decoded in every exchange."""
        capacity, role = self.problem.deployments.capacity_requests_per_s, self.problem.deployments.roles
        units = list(held)
        pairs = [(u, k) for u in units for k in classes if capacity[u[0], k] > 0]
        if {k for u, k in pairs if role[u[0]] != 1} != set(classes):
            return math.inf
        if len(classes) == 1 and all(place is None for _, place in units):
            rate = sum(n * capacity[u[0], classes[0]] for u, n in held.items())
            return float(rates[classes[0]] / (rate * usable))
        served = [[float(k == of and role[u[0]] != 1) for u, of in pairs] + [0.0] for k in classes]
        even = [
            [((role[u[0]] == 2) - float(role[u[0]] == 1)) * (u[1] == place and of == k) for u, of in pairs] + [0.0]
            for place in {place for _, place in units if place is not None}
            for k in classes
        ]
        work = [
            [rates[k] / (capacity[u[0], k] * usable) if u == unit else 0.0 for u, k in pairs] + [-float(held[unit])]
            for unit in units
        ]
        wanted = [1.0] * len(served) + [0.0] * len(even)
        solved = linprog([0.0] * len(pairs) + [1.0], work, np.zeros(len(units)), np.array(served + even), wanted)
        return float(solved.fun) if solved.status == 0 else math.inf
