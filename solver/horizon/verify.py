"""An independent check of a plan over time: plain arithmetic over the problem as it was stated."""

import math
from collections import Counter
from collections.abc import Mapping

from solver.horizon.period import PeriodChoice
from solver.horizon.plan import HorizonPlan, HorizonResult
from solver.horizon.problem import HorizonProblem, Period
from solver.horizon.verify_operation import verify_operation
from solver.outcome import Outcome

TOLERANCE = 2e-6
"""Relative; as in ``solver.fleet.verify``."""


def verify(problem: HorizonProblem, result: HorizonResult) -> list[str]:
    """Everything wrong with a result; empty for a correct one."""
    if result.plan is None:
        stated = (result.usd, result.bound_usd, result.gap_fraction)
        wrong = result.outcome in (Outcome.OPTIMAL, Outcome.FEASIBLE) or any(one is not None for one in stated)
        return ["a result without a plan claims one"] if wrong else []
    if result.usd is None or result.bound_usd is None or result.gap_fraction is None:
        return ["a result with a plan leaves out its figures"]
    errors = verify_plan(problem, result.plan)
    if errors:
        return errors
    usd = _usd(problem, result.plan)
    if not math.isclose(usd, result.usd, rel_tol=1e-9, abs_tol=1e-6):
        errors.append(f"the cost is stated as {result.usd}, the plan gives {usd}")
    if result.bound_usd > result.usd * (1.0 + 1e-9):
        errors.append("the bound is above the cost")
    gap = 0.0 if result.usd <= 0.0 else max(0.0, (result.usd - result.bound_usd) / result.usd)
    if not math.isclose(gap, result.gap_fraction, abs_tol=1e-9):
        errors.append("the gap does not follow from cost and bound")
    if (result.outcome is Outcome.OPTIMAL) != (result.gap_fraction == 0.0):
        errors.append(f"outcome {result.outcome} with a gap of {result.gap_fraction}")
    return errors


def verify_plan(problem: HorizonProblem, plan: HorizonPlan) -> list[str]:
    """Everything wrong with a plan: shapes, commitments, every period, batch work, rules of operation."""
    if len(plan.commitments) != len(problem.commitments) or len(plan.choices) != len(problem.periods):
        return ["the plan is not one of this problem"]
    errors = [
        f"{nodes} nodes of commitment {one.id}"
        for nodes, one in zip(plan.commitments, problem.commitments, strict=True)
        if nodes < 0
    ]
    for month in range(problem.months):
        running: Counter[str] = Counter()
        for nodes, one in zip(plan.commitments, problem.commitments, strict=True):
            if one.start_month <= month < one.start_month + one.term_months:
                running[one.id] += nodes
        limits = {one.id: one.max_nodes for one in problem.commitments}
        for offer, nodes in running.items():
            most = limits[offer]
            if most is not None and nodes > most:
                errors.append(f"{nodes} nodes of {offer} in month {month}, at most {most} are offered")
        for limit in problem.shared_limits:
            taken = math.fsum(each * running[offer] for offer, each in limit.per_node)
            if taken > limit.most * (1.0 + 1e-9):
                errors.append(f"{taken} of {limit.name} in month {month}, there is {limit.most}")
    for t, (period, choice) in enumerate(zip(problem.periods, plan.choices, strict=True)):
        errors += [f"period {t}: {error}" for error in _period(problem, plan, period, choice)]
    errors += _batch(problem, plan)
    return errors + verify_operation(problem, plan)


def _period(problem: HorizonProblem, plan: HorizonPlan, period: Period, choice: PeriodChoice) -> list[str]:
    counts = (*choice.replicas, *choice.committed, *choice.hourly, *choice.spares)
    if any(count < 0 for count in counts) or len(choice.replicas) != len(problem.deployments):
        return ["counts that cannot be"]
    errors = []
    served = [0.0] * len(problem.workloads)
    inside: dict[int, Counter[int]] = {}
    for count, one in zip(choice.replicas, problem.deployments, strict=True):
        served[one.workload] += count * one.requests_per_s
        inside.setdefault(one.node_type, Counter())[one.devices_per_replica] += count
    for name, rate, wanted in zip(problem.workloads, served, period.requests_per_s, strict=True):
        if rate < wanted * (1.0 - TOLERANCE):
            errors.append(f"{name} asks for {wanted} requests/s, {rate} can be served")
    errors += _misplaced(problem, plan, period, choice)
    spot_devices = all_devices = 0
    for t, node_type in enumerate(problem.node_types):
        live = sum(
            nodes
            for nodes, one in zip(plan.commitments, problem.commitments, strict=True)
            if one.node_type == t and one.start_month <= period.month < one.start_month + one.term_months
        )
        if choice.committed[t] > live:
            errors.append(f"{choice.committed[t]} committed nodes of {node_type.id} in use, {live} are there")
        spot = steady = 0
        for nodes, offer in zip(choice.hourly, problem.hourly, strict=True):
            if offer.node_type != t:
                continue
            if offer.max_nodes is not None and nodes > offer.max_nodes:
                errors.append(f"{nodes} nodes of {offer.id}, at most {offer.max_nodes} are offered")
            spot, steady = (spot + nodes, steady) if offer.interruptible else (spot, steady + nodes)
        needed = _spares(problem, spot)
        if choice.spares[t] < needed:
            errors.append(f"{choice.spares[t]} spare spot nodes of {node_type.id}, {needed} are needed")
        room = choice.committed[t] + steady + spot - choice.spares[t]
        sizes = +inside.get(t, Counter[int]())
        sources = {o.id for n, o in zip(choice.hourly, problem.hourly, strict=True) if n and o.node_type == t}
        sources |= {o.id for n, o in zip(plan.commitments, problem.commitments, strict=True) if n and o.node_type == t}
        if len(sources) > 1 and any(size > node_type.devices for size in sizes):
            errors.append(f"replicas span nodes of {node_type.id}, which are of several sources")
        bins = _bins(sizes, node_type.devices)
        if bins > room:
            errors.append(f"replicas fill {bins} nodes of {node_type.id}, there are {room}")
        spot_devices += spot * node_type.devices
        all_devices += (choice.committed[t] + steady + spot) * node_type.devices
    if spot_devices > problem.spot.max_fraction * all_devices + TOLERANCE:
        errors.append(f"{spot_devices} of {all_devices} devices are spot")
    return errors


def _misplaced(problem: HorizonProblem, plan: HorizonPlan, period: Period, choice: PeriodChoice) -> list[str]:
    """Replicas on nodes in use that their workload keeps out of, or whose users are farther away than counted with."""
    in_use: dict[int, set[str]] = {}
    for nodes, offer in zip(choice.hourly, problem.hourly, strict=True):
        if nodes:
            in_use.setdefault(offer.node_type, set()).add(offer.id)
    for nodes, one in zip(plan.commitments, problem.commitments, strict=True):
        if nodes and choice.committed[one.node_type] and one.start_month <= period.month < one.end_month:
            in_use.setdefault(one.node_type, set()).add(one.id)
    return [
        f"{problem.workloads[one.workload]} runs on {', '.join(sorted(beyond))}"
        for count, one in zip(choice.replicas, problem.deployments, strict=True)
        if count and one.sources is not None and (beyond := in_use.get(one.node_type, set()) - one.sources)
    ]


def _bins(replicas: Mapping[int, int], devices: int) -> int:
    """Nodes that replicas (by size) fill, placed largest first into the first node with room; those larger than one fill several."""
    filled = 0
    free: list[tuple[int, int]] = []  # devices left on a node, and on how many nodes one after the other
    for size, count in sorted(replicas.items(), reverse=True):
        if size > devices:
            filled += count * -(-size // devices)
            continue
        left, before, free = count, [*free, (devices, count)], []
        for room, nodes in before:
            each = room // size
            full = min(nodes, left // each) if each else 0
            rest = min(left - full * each, each) if full < nodes else 0
            left -= full * each + rest
            parts = [(room - full_of * size, n) for full_of, n in ((each, full), (rest, int(rest > 0))) if n]
            untouched = nodes - full - int(rest > 0)
            free += parts + ([(room, untouched)] if untouched and room < devices else [])
    return filled + sum(nodes for _, nodes in free)


def _spares(problem: HorizonProblem, nodes: int) -> int:
    """The law of ``SpotRule``, summed term by term."""
    if nodes == 0:
        return 0
    rule = problem.spot
    away = rule.unavailable_fraction
    for spares in range(min(rule.reclaims_at_once, nodes), nodes + 1):
        more = sum(math.comb(nodes, k) * away**k * (1.0 - away) ** (nodes - k) for k in range(spares + 1, nodes + 1))
        if more <= (1.0 - rule.availability_fraction) * (1.0 + 1e-9):
            return spares
    return nodes


def _batch(problem: HorizonProblem, plan: HorizonPlan) -> list[str]:
    errors = []
    for b, work in enumerate(problem.batch):
        done = 0.0
        for period, choice in zip(problem.periods, plan.choices, strict=True):
            rate = choice.batch_requests_per_s[b]
            if rate > 0.0 and not work.from_month <= period.month < work.to_month:
                errors.append(f"batch work {problem.workloads[work.workload]} runs outside its window")
            capacity = sum(
                count * one.requests_per_s
                for count, one in zip(choice.replicas, problem.deployments, strict=True)
                if one.workload == work.workload
            )
            if rate < 0.0 or rate > capacity * (1.0 + TOLERANCE) + TOLERANCE:
                errors.append(f"batch work at {rate} requests/s, its replicas serve {capacity}")
            done += rate * period.hours * 3600.0
        if done < work.requests * (1.0 - TOLERANCE):
            errors.append(f"{done} of {work.requests} requests of {problem.workloads[work.workload]} are done")
    return errors


def _usd(problem: HorizonProblem, plan: HorizonPlan) -> float:
    """Every payment on the day it is due, at (1 + r)^(−months / 12)."""
    monthly = (1.0 + problem.discount_fraction_per_year) ** (1.0 / 12.0)
    due = [0.0] * (1 + max([problem.months, *(one.start_month + one.term_months for one in problem.commitments)]))
    for nodes, one in zip(plan.commitments, problem.commitments, strict=True):
        if one.payments is None:
            for month in range(one.start_month, one.start_month + one.term_months):
                due[month + 1] += nodes * one.usd_per_node / one.term_months
        else:
            for month, usd in one.payments:
                due[month] += nodes * usd
    for period, choice in zip(problem.periods, plan.choices, strict=True):
        hour = math.fsum(n * offer.usd_per_hour for n, offer in zip(choice.hourly, problem.hourly, strict=True))
        due[period.month + 1] += hour * period.hours
    return math.fsum(usd / monthly**month for month, usd in enumerate(due))
