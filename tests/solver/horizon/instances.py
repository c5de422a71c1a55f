"""Tiny random horizons, and the cheapest plan of one by trying everything."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from solver.horizon.problem import (
    BatchWork,
    Commitment,
    HorizonDeployment,
    HorizonProblem,
    HourlyOffer,
    NodeType,
    Period,
    SharedLimit,
    SpotRule,
)
from solver.horizon.spot import spares_needed

MOST = 9
"""Nodes tried of each source; every instance is served by fewer."""


def tiny(seed: int, *, spot: bool = False) -> HorizonProblem:
    rng = np.random.default_rng(seed)
    kinds, workloads, months = (int(n) for n in (rng.integers(1, 3), rng.integers(1, 3), rng.integers(1, 3)))
    types = tuple(NodeType(f"node-{k}", int(rng.choice([1, 2, 4]))) for k in range(kinds))
    keys = itertools.count()
    deployments = tuple(
        HorizonDeployment(w, k, g, round(float(g * rng.uniform(0.5, 1.5)), 3), next(keys))
        for k in range(kinds)
        for w in range(workloads)
        for g in (1, 2, 4)
        if g <= types[k].devices and rng.random() < 0.7
    )
    hourly = [
        HourlyOffer(
            f"hour-{k}", k, round(float(types[k].devices * rng.uniform(1, 3)), 2), _some_limit(rng)
        )
        for k in range(kinds)
        if rng.random() < 0.9
    ]  # fmt: skip
    if spot:
        prices = [round(float(node.devices * rng.uniform(0.3, 1)), 2) for node in types]
        hourly += [HourlyOffer(f"spot-{k}", k, price, None, True) for k, price in enumerate(prices)]
    commitments = []
    for k in range(kinds):
        most = _some_limit(rng)
        for start in range(months):
            term = int(rng.integers(1, months + 1))
            if rng.random() < 0.6:
                usd = round(float(types[k].devices * rng.uniform(0.4, 2) * 730 * term), 2)
                commitments.append(Commitment(f"term-{k}", k, "reserved", start, term, usd, most))
    periods = []
    for month in range(months):
        count = int(rng.integers(1, 3))
        for _ in range(count):
            rates = [round(float(rng.uniform(0, 2.5)), 2) if rng.random() < 0.9 else 0.0 for _ in range(workloads)]
            periods.append(Period(month, 730.0 / count, tuple(rates)))
    rule = SpotRule()
    if spot:
        share, away = float(rng.choice([0.3, 0.5, 1.0])), float(rng.choice([0.0, 0.05]))
        rule = SpotRule(share, away, 0.99, int(rng.integers(0, 2)))
    names = tuple(f"w{w}" for w in range(workloads))
    return HorizonProblem(
        months, names, tuple(periods), types, deployments, tuple(hourly), tuple(commitments), (), rule
    )


def tiny_owned(seed: int) -> HorizonProblem:
    """The same with machines to be bought, some beside limits of a room, and payments discounted."""
    rng = np.random.default_rng([seed, 1])
    problem = tiny(seed)
    bought = []
    for k, node in enumerate(problem.node_types):
        most = _some_limit(rng)
        for start in range(problem.months):
            if rng.random() < 0.75:
                life = int(rng.integers(1, problem.months - start + 1))
                price = float(node.devices * rng.uniform(200, 3_000) * life)
                running = [(start + m, float(node.devices * rng.uniform(20, 300))) for m in range(1, life + 1)]
                payments = ((start, price), *running, (start + life, -price * float(rng.uniform(0.0, 0.9))))
                usd = math.fsum(usd for _, usd in payments)
                bought.append(Commitment(f"own-{k}", k, "purchase", start, life, usd, most, payments))
    limits: tuple[SharedLimit, ...] = ()
    if bought and rng.random() < 0.5:
        ids = sorted({one.id for one in bought})
        weights = tuple((one, float(rng.choice([1.0, 2.5]))) for one in ids)
        limits = (SharedLimit("room", weights, float(rng.integers(1, 5))),)
    return replace(
        problem,
        commitments=problem.commitments + tuple(bought),
        shared_limits=limits,
        discount_fraction_per_year=float(rng.choice([0.0, 0.1, 3.0])),
    )


def tiny_spanning(seed: int) -> HorizonProblem:
    """Small nodes, and replicas of which some take two or three whole ones. Nodes of a type are of one source."""
    rng = np.random.default_rng([seed, 4])
    kinds, workloads, months = (int(n) for n in (rng.integers(1, 4), rng.integers(1, 3), rng.integers(1, 3)))
    types = tuple(NodeType(f"node-{k}", int(rng.choice([1, 2]))) for k in range(kinds))
    keys = itertools.count()
    deployments = tuple(
        HorizonDeployment(w, k, nodes * g, round(float(nodes * g * rng.uniform(0.5, 1.5)), 3), next(keys))
        for k, node in enumerate(types)
        for w in range(workloads)
        for nodes, g in ((1, 1), (1, 2), (2, node.devices), (3, node.devices))
        if g <= node.devices and rng.random() < (0.7 if nodes > 1 else 0.35)
    )
    hourly, commitments = [], []
    for k, node in enumerate(types):
        if rng.random() < 0.7:
            price = round(float(node.devices * rng.uniform(1, 3)), 2)
            hourly.append(HourlyOffer(f"hour-{k}", k, price, _some_limit(rng)))
        else:
            usd = round(float(node.devices * rng.uniform(0.4, 2) * 730 * months), 2)
            commitments.append(Commitment(f"term-{k}", k, "reserved", 0, months, usd, _some_limit(rng)))
    periods = [
        Period(month, 365.0, tuple(round(float(rng.uniform(0, 2.0)), 2) for _ in range(workloads)))
        for month in range(months)
        for _ in range(2)
    ]
    names = tuple(f"w{w}" for w in range(workloads))
    return HorizonProblem(months, names, tuple(periods), types, deployments, tuple(hourly), tuple(commitments))


def tiny_batch(seed: int) -> HorizonProblem:
    """One or two machines, up to three periods, and work of the last workload that may be done in some of the months."""
    rng = np.random.default_rng([seed, 2])
    kinds, months = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    types = tuple(NodeType(f"node-{k}", int(rng.choice([1, 2]))) for k in range(kinds))
    workloads = int(rng.integers(1, 3))
    keys = itertools.count()
    deployments = tuple(
        HorizonDeployment(w, k, g, round(float(g * rng.uniform(0.5, 1.5)), 3), next(keys))
        for k in range(kinds)
        for w in range(workloads)
        for g in (1, 2)
        if g <= types[k].devices and rng.random() < 0.8
    )
    hourly = tuple(
        HourlyOffer(f"hour-{k}", k, round(float(node.devices * rng.uniform(1, 3)), 2), _some_limit(rng))
        for k, node in enumerate(types)
        if rng.random() < 0.95
    )
    commitments = tuple(
        Commitment(f"term-{k}", k, "reserved", 0, months, round(float(node.devices * rng.uniform(0.3, 1.5)) * 730 * months, 2))
        for k, node in enumerate(types)
        if rng.random() < 0.7
    )  # fmt: skip
    periods = []
    for month in range(months):
        count = int(rng.integers(1, 3)) if months == 1 or month else 1
        hours = [730.0] if count == 1 else [500.0, 230.0]
        for length in hours:
            rates = [round(float(rng.uniform(0, 1.5)), 2) for _ in range(workloads - 1)]
            periods.append(Period(month, length, (*rates, 0.0)))
    start = int(rng.integers(0, months))
    window = sum(p.hours for p in periods if p.month >= start) * 3600.0
    work = BatchWork(workloads - 1, window * float(rng.uniform(0.05, 0.6)), start, months)
    names = tuple(f"w{w}" for w in range(workloads))
    rate = float(rng.choice([0.0, 0.5]))
    return HorizonProblem(
        months, names, tuple(periods), types, deployments, hourly, commitments, (work,), discount_fraction_per_year=rate
    )


def with_batch(problem: HorizonProblem, seed: int) -> HorizonProblem:
    """The same with its last workload's demand as work to be done at any time."""
    rng = np.random.default_rng(seed)
    last = len(problem.workloads) - 1
    hours = 730.0 * problem.months * 3600.0
    requests = hours * float(rng.uniform(0.1, 1.0))
    periods = tuple(Period(p.month, p.hours, (*p.requests_per_s[:-1], 0.0)) for p in problem.periods)
    return HorizonProblem(
        problem.months, problem.workloads, periods, problem.node_types, problem.deployments, problem.hourly,
        problem.commitments, (BatchWork(last, requests, 0, problem.months),),
    )  # fmt: skip


def _some_limit(rng: np.random.Generator) -> int | None:
    return None if rng.random() < 0.65 else int(rng.integers(1, 4))


def cheapest(problem: HorizonProblem) -> float:
    """Present USD of the cheapest plan; infinite where there is none. No programme is solved."""
    known: dict[tuple[int, tuple[float, ...]], float] = {}

    def periods_usd(nodes: tuple[int, ...], most: float) -> float:
        committed = problem.committed(list(nodes))
        total = 0.0
        for t, period in enumerate(problem.periods):
            there = tuple(committed[period.month].tolist())
            if (t, there) not in known:
                known[t, there] = _period_usd_per_hour(problem, t, there)
            total += period.hours * _worth(problem, period.month + 1) * known[t, there]
            if total >= most:
                break
        return total

    return _cheapest_commitments(problem, periods_usd)


def _cheapest_commitments(problem: HorizonProblem, periods_usd: Callable[[tuple[int, ...], float], float]) -> float:
    """Every vector of commitments within the limits, but for those that alone cost more than a plan found."""
    each = [_present(problem, one) for one in problem.commitments]
    best = math.inf

    def descend(nodes: tuple[int, ...], usd: float) -> None:
        nonlocal best
        if len(nodes) == len(each):
            best = min(best, usd + periods_usd(nodes, best - usd))
            return
        one = problem.commitments[len(nodes)]
        for n in range(min(_enough(problem, one.node_type), MOST if one.max_nodes is None else one.max_nodes) + 1):
            if usd + n * each[len(nodes)] >= best or not _within_limits(problem, (*nodes, n)):
                return
            descend((*nodes, n), usd + n * each[len(nodes)])

    descend((), 0.0)
    return best


def _within_limits(problem: HorizonProblem, nodes: tuple[int, ...]) -> bool:
    """So many nodes of the first commitments, in every month."""
    for month in range(problem.months):
        running = [
            (n, one)
            for n, one in zip(nodes, problem.commitments, strict=False)
            if one.start_month <= month < one.start_month + one.term_months
        ]
        for _, one in running:
            if one.max_nodes is not None and sum(n for n, other in running if other.id == one.id) > one.max_nodes:
                return False
        for limit in problem.shared_limits:
            each = dict(limit.per_node)
            if sum(n * each.get(one.id, 0.0) for n, one in running) > limit.most + 1e-9:
                return False
    return True


def _enough(problem: HorizonProblem, k: int) -> int:
    """Nodes of a type that serve every workload's peak even if each replica takes whole nodes."""
    if problem.batch or problem.spot.max_fraction > 0.0:
        return MOST
    peaks = [max(period.requests_per_s[w] for period in problem.periods) for w in range(len(problem.workloads))]
    return min(
        MOST,
        sum(
            max(
                (
                    math.ceil(peak / d.requests_per_s) * problem.spans(d)
                    for d in problem.deployments
                    if d.node_type == k and d.workload == w
                ),
                default=0,
            )
            for w, peak in enumerate(peaks)
        ),
    )


def _worth(problem: HorizonProblem, months: int) -> float:
    """What a dollar due after so many months is worth now."""
    return float((1.0 + problem.discount_fraction_per_year) ** (-months / 12.0))


def _present(problem: HorizonProblem, one: Commitment) -> float:
    monthly = [(m + 1, one.usd_per_node / one.term_months) for m in range(one.start_month, one.end_month)]
    return sum(usd * _worth(problem, month) for month, usd in one.payments or monthly)


def cheapest_with_batch(problem: HorizonProblem) -> float:
    """As ``cheapest``, for problems with one batch work: every period's choices against every other's."""
    (work,) = problem.batch
    known: dict[tuple[int, tuple[float, ...]], list[tuple[float, float]]] = {}

    def periods_usd(nodes: tuple[int, ...], most: float) -> float:
        committed = problem.committed(list(nodes))
        partial = [(0.0, 0.0)]
        """(USD, batch requests done) of the periods so far, none of them worse in both than another."""
        for t, period in enumerate(problem.periods):
            there = tuple(committed[period.month].tolist())
            if (t, there) not in known:
                known[t, there] = _with_batch_rate(problem, t, there)
            weight = period.hours * _worth(problem, period.month + 1)
            seconds = period.hours * 3600.0 if period.month >= work.from_month else 0.0
            partial = _efficient(
                [
                    (usd + weight * each, requests + rate * seconds)
                    for usd, requests in partial
                    for each, rate in known[t, there]
                    if usd + weight * each < most
                ]
            )
        return min((usd for usd, requests in partial if requests >= work.requests * (1.0 - 1e-9)), default=math.inf)

    return _cheapest_commitments(problem, periods_usd)


def _efficient(options: list[tuple[float, float]]) -> list[tuple[float, float]]:
    kept: list[tuple[float, float]] = []
    for usd, done in sorted(options, key=lambda o: (o[0], -o[1])):
        if not kept or done > kept[-1][1] + 1e-9:
            kept.append((usd, done))
    return kept


def _with_batch_rate(problem: HorizonProblem, t: int, committed: tuple[float, ...]) -> list[tuple[float, float]]:
    """(USD per hour, most batch requests per second) of every number of nodes that serves the demand."""
    options = [_of_type(problem, k, int(committed[k])) for k in range(len(problem.node_types))]
    devices = [node.devices for node in problem.node_types]
    enough = problem.batch[0].requests / (problem.periods[t].hours * 3600.0)
    found: list[tuple[float, float]] = []
    for mix in sorted(itertools.product(*options), key=lambda m: sum(o[0] for o in m)):
        room = tuple(o[1] * g for o, g in zip(mix, devices, strict=True))
        rate = _most_batch(problem, 0, room, problem.periods[t].requests_per_s, 0.0)
        if rate >= 0.0:
            found.append((sum(o[0] for o in mix), rate))
        if rate >= enough:  # whatever costs more does no more that is wanted
            break
    return _efficient(found)


def _most_batch(
    problem: HorizonProblem, d: int, room: tuple[int, ...], wanted: tuple[float, ...], done: float
) -> float:
    """The most of the batch workload's rate beside the others' demand; negative where that is not served."""
    if d == len(problem.deployments):
        return done if all(rate <= 1e-12 for rate in wanted) else -1.0
    one = problem.deployments[d]
    batch = one.workload == problem.batch[0].workload
    most = room[one.node_type] // one.devices_per_replica
    if not batch:
        most = min(most, math.ceil(max(0.0, wanted[one.workload]) * (1.0 - 1e-9) / one.requests_per_s))
    best = -1.0
    for count in range(most, -1, -1):
        left = tuple(r - count * one.devices_per_replica * (k == one.node_type) for k, r in enumerate(room))
        if batch:
            best = max(best, _most_batch(problem, d + 1, left, wanted, done + count * one.requests_per_s))
        else:
            rest = tuple(w - count * one.requests_per_s * (i == one.workload) for i, w in enumerate(wanted))
            best = max(best, _most_batch(problem, d + 1, left, rest, done))
    return best


def _period_usd_per_hour(problem: HorizonProblem, t: int, committed: tuple[float, ...]) -> float:
    """Every number of nodes of every source, cheapest first, until one serves the demand."""
    options = [_of_type(problem, k, int(committed[k])) for k in range(len(problem.node_types))]
    devices = [node.devices for node in problem.node_types]
    known: dict[tuple[int, ...], bool] = {}
    for mix in sorted(itertools.product(*options), key=lambda m: sum(o[0] for o in m)):
        spot = sum(o[3] * g for o, g in zip(mix, devices, strict=True))
        every = sum((o[2] + o[3]) * g for o, g in zip(mix, devices, strict=True))
        if spot > problem.spot.max_fraction * every + 1e-9:
            continue
        nodes = tuple(o[1] for o in mix)
        if nodes not in known:
            room = [n * g for n, g in zip(nodes, devices, strict=True)]
            known[nodes] = _serves(problem, 0, room, list(problem.periods[t].requests_per_s))
        if known[nodes]:
            return sum(o[0] for o in mix)
    return math.inf


def _of_type(problem: HorizonProblem, k: int, committed: int) -> list[tuple[float, int, int, int]]:
    """(USD per hour, nodes without spares, steady nodes, spot nodes) that can be had of a type."""
    steady = [o for o in problem.hourly if o.node_type == k and not o.interruptible]
    spot = [o for o in problem.hourly if o.node_type == k and o.interruptible]
    enough = _enough(problem, k)
    most_steady = 0 if not steady else enough if steady[0].max_nodes is None else min(enough, steady[0].max_nodes)
    most_spot = MOST if spot and problem.spot.max_fraction > 0.0 else 0
    found = []
    for n, s in itertools.product(range(most_steady + 1), range(most_spot + 1)):
        usd = (n * steady[0].usd_per_hour if n else 0.0) + (s * spot[0].usd_per_hour if s else 0.0)
        found.append((usd, committed + n + s - spares_needed(s, problem.spot), committed + n, s))
    return found


def _serves(problem: HorizonProblem, d: int, room: list[int], wanted: list[float]) -> bool:
    """Can devices by type serve the rates? Sizes are powers of two up to a node's, so that devices decide."""
    if all(rate <= 1e-12 for rate in wanted):
        return True
    if d == len(problem.deployments):
        return False
    one = problem.deployments[d]
    useful = math.ceil(max(0.0, wanted[one.workload]) * (1.0 - 1e-9) / one.requests_per_s)
    for count in range(min(room[one.node_type] // one.devices_per_replica, useful), -1, -1):
        left, rest = list(room), list(wanted)
        left[one.node_type] -= count * one.devices_per_replica
        rest[one.workload] -= count * one.requests_per_s
        if _serves(problem, d + 1, left, rest):
            return True
    return False
