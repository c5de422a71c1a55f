"""Constraints of what is left after a loss of nodes, providers or regions, one function a constraint."""

import itertools

import numpy as np
import pulp

from solver.fleet.groups.losses import headroom_factor, is_routed_by_class
from solver.fleet.model.prefill_decode import add_exchanges
from solver.fleet.model.programme import FleetProgramme, Routing, Terms
from solver.fleet.model.served import routed_classes, served
from solver.fleet.reduce import workload_ranges
from solver.limit import DomainKind

SPREAD_CHORDS = 12
"""Chords drawn of the capacity that so many domains ask for; after the twelfth it falls by less than a hundredth."""


def add_spare_nodes(model: FleetProgramme) -> None:
    """Replicas only in a group marked in use:  x_i ≤ X_i u_p,  u_o ≤ u_p.

    The k spares themselves are a term of the packing rows: any k nodes of the fleet may fail and, were they all in
    one group, that group's spares take their replicas unchanged. Conservative against re-routing to other groups.
    """
    if not model.in_use:
        return
    pairs = model.reduced.pairs
    for p, rows in enumerate(model.group_rows):
        for i in rows:
            user = model.in_use[p, int(pairs.offer[i])]
            model.at_most({model.replicas[i]: 1.0, user: -float(model.replicas_bound[i])}, 0.0, f"used_{i}")
    for (p, offer), user in model.in_use.items():
        if offer >= 0:
            model.at_most({user: 1.0, model.in_use[p, -1]: -1.0}, 0.0, f"used_group_{p}_{offer}")


def add_fault_tolerance(model: FleetProgramme) -> None:
    """After any loss of k providers (regions), what is left serves all demand: see the two functions this calls."""
    problem, pairs = model.reduced.problem, model.reduced.pairs
    for position, (kind, count) in enumerate(problem.limits.fault_tolerance.losses):
        names = [group.domains[position] for group in model.reduced.groups]
        for w, (start, end) in enumerate(workload_ranges(problem, pairs)):
            members: dict[str, list[int]] = {}
            for i in range(start, end):
                members.setdefault(names[int(pairs.group[i])], []).append(i)
            if not any(problem.demands[w].requests_per_s):
                continue
            if is_routed_by_class(problem, w):
                for number, lost in enumerate(itertools.combinations(sorted(members), count)):
                    kept = sorted(i for name in members.keys() - set(lost) for i in members[name])
                    add_rerouting(model, w, kept, f"{kind}_{w}_{number}")
            else:
                add_largest_losses(model, w, [members[name] for name in sorted(members)], kind, count)


def add_rerouting(model: FleetProgramme, w: int, kept: list[int], name: str) -> None:
    """One loss, several traffic classes: a routing of its own over the pairs that are left, same replicas.

    Σ_{aggregated, left} y_ik^f + Σ_s f_sk^f = 1 (= θ),   h · Σ_k λ_k / (ρ μ_ik) · y_ik^f ≤ x_i,   h the ``headroom_factor``;
    what an exchange serves, both its sides take (``served.add_exchanges``).
    """
    load, factor = model.reduced.pairs.load, headroom_factor(model.reduced.problem, w)
    wanted, routing, left = routed_classes(model, w), Routing(), set(kept)
    for i in kept:
        work: Terms = {}
        for k in wanted:
            if 0 < load[i, k] < np.inf:
                share = routing.shares[i, k] = model.programme.add_variable(f"z_{name}_{i}_{k}", 0, None)
                work[share] = factor * float(load[i, k])
        if work:
            work[model.replicas[i]] = -1.0
            model.at_most(work, 0.0, f"capacity_{name}_{i}")
    for own, s in sorted(model.exchanges):
        if own == w and not left.isdisjoint(model.exchanges[own, s][0]):  # an exchange is lost as one
            for k in wanted:
                routing.flows[w, s, k] = model.programme.add_variable(f"e_{name}_{s}_{k}", 0, None)
    add_exchanges(model, routing, left, f"_{name}")
    multiple = model.multiple_of(w)
    for k in wanted:
        terms = served(model, w, k, kept, routing)
        if multiple is not None:
            terms[multiple] = -1.0
        model.equal(terms, 0.0 if multiple is not None else 1.0, f"demand_{name}_{k}")


def add_largest_losses(model: FleetProgramme, w: int, members: list[list[int]], kind: DomainKind, count: int) -> None:
    """One traffic class: all capacity less that of the k domains with most of it is still enough.

    Capacity of a domain, in units of the demand:  C_d = Σ_{aggregated in d} ρ μ_i / λ · x_i + Σ_{s in d} f_s,  and
    T = Σ_d C_d.  The sum of the k largest is min_t k t + Σ_d max(0, C_d − t), so one row and one for each domain say it for
    every loss at once:

        T − k t − Σ_d s_d ≥ h (= h θ),   C_d − t − s_d ≤ 0,   s_d ≥ 0 (none for k = 1)
    """
    (k,) = routed_classes(model, w)
    factor = headroom_factor(model.reduced.problem, w)
    name = f"{kind}_{w}"
    level, total = (model.programme.add_variable(f"{symbol}_{name}", 0, None) for symbol in ("t", "T"))
    remaining: Terms = {total: 1.0, level: -float(count)}
    everything: Terms = {total: -1.0}
    for d, rows in enumerate(members):
        held = served(model, w, k, rows)
        if not held:
            continue
        everything.update(held)
        held[level] = -1.0
        if count > 1:
            above = model.programme.add_variable(f"s_{name}_{d}", 0, None)
            remaining[above] = held[above] = -1.0
        model.at_most(held, 0.0, f"held_{name}_{d}")
    model.equal(everything, 0.0, f"capacity_{name}")
    multiple = model.multiple_of(w)
    if multiple is not None:
        remaining[multiple] = -factor
    model.at_least(remaining, 0.0 if multiple is not None else factor, f"survive_{name}")
    if multiple is None:
        _add_spread_cuts(model, w, total, count, factor, name)


def _add_spread_cuts(
    model: FleetProgramme, w: int, total: pulp.LpVariable, count: int, factor: float, name: str
) -> None:
    """Few nodes mean few domains, and few domains mean much capacity:  T ≥ h · N / (N − k).

    U domains in use leave at most (1 − k/U) of T after the worst loss, and U is at most the nodes N that the workload
    may be on, and at most its replicas. The right side is convex, so its chords between whole numbers m and m + 1 hold
    for every whole N > k. They cut off only fractional spreads over more domains than there are nodes:

        T ≥ h · (g(m) + (g(m + 1) − g(m)) · (N − m)),   g(m) = m / (m − k)
    """
    pairs = model.reduced.pairs
    start, end = workload_ranges(model.reduced.problem, pairs)[w]
    groups = sorted(set(pairs.group[start:end].tolist()))
    places: list[Terms] = [
        {model.nodes[o]: 1.0 for p in groups for o in model.reduced.groups[p].offers},
        dict.fromkeys(model.replicas[start:end], 1.0),
    ]
    for which, counted in enumerate(places):
        number = model.programme.add_variable(f"N_{name}_{which}", 0, None)
        model.equal({**counted, number: -1.0}, 0.0, f"places_{name}_{which}")
        for m in range(count + 1, count + 1 + SPREAD_CHORDS):
            here, slope = m / (m - count), (m + 1) / (m + 1 - count) - m / (m - count)
            terms: Terms = {total: 1.0, number: -factor * slope}
            model.at_least(terms, factor * (here - slope * m), f"spread_{name}_{which}_{m}")
