"""Why no plan: what conflicts, the smallest single changes that would admit one, and the most that can be served.

Every statement is a request solved again to the rules of a plan: a relaxation is stated where a confirmed plan comes of it,
with that plan's price; a conflict where lifting any one of its limits leaves a plan. What there was no time for is left out.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from solver.errors import NoPlanInTimeError
from solver.explain.resolver import Resolver
from solver.explain.sourcing import COMMITMENTS, WHOLE_POLICY, commits, rules_in_force, without_rules
from solver.explain.targets import looser_targets, replaced, retargeted, stated_targets, with_all_targets
from solver.fleet import FleetProblem
from solver.fleet import loosened_limits as fleet_limits
from solver.fleet import relaxations as fleet_relaxations
from solver.fleet.problem import MOST_NODES_PLACED
from solver.limit import Limit, LimitKind, TargetLimit
from solver.planning.assemble import (
    Assembly,
    assemble,
    fewest_nodes,
    most_nodes,
    with_default_limits,
    within_default_where_needed,
)
from solver.planning.types import Conflict, PlanningInput, Relaxation
from solver.workload import Targets

MOST_OFFER_STEPS = 3
GROWTH = 1.5
"""Factor between the values of a target that are tried, until one admits a plan."""
MOST_GROWTHS = 12
HALVINGS = 5
"""How often the distance between what does not and what does is halved: to two per cent of the value."""
DIGITS = 3
"""Of values that are tried: who relaxes a target writes 27.3, not 27.2900390625."""
MUCH_CHEAPER = 0.5
"""Share of the smallest relaxation's price at which a looser one is worth a line of its own."""
PRICE_GAP_FRACTION = 0.01
"""What would make a request feasible is priced to one per cent: the question is which limit to move."""
SHARE_GAP_FRACTION = 1e-3
SERVED_AGAIN = 1.0 - 1e-6
"""A share that can be served, rounded down: asked for again, it must not fail on its last digit."""


Changed = Callable[[float | None], Assembly]


@dataclass(frozen=True, slots=True)
class NoPlan:
    """largest_servable_fraction: of all demand together; None where less traffic would not help, or it is not known."""

    conflicts: tuple[Conflict, ...]
    relaxations: tuple[Relaxation, ...]
    largest_servable_fraction: float | None


def explain_infeasible(planning: PlanningInput, assembly: Assembly, resolver: Resolver) -> NoPlan:
    """What rules every plan out, the cheapest single changes that would not, and the most that can be served.

    That comes last: where machines of many sellers are few it takes half of the time by itself, and may not be found in it.
    """
    targets_matter = False
    with suppress(NoPlanInTimeError):
        targets_matter = _has_plan_without_targets(planning, assembly, resolver)
    conflicts: tuple[Conflict, ...] | None = None
    with suppress(NoPlanInTimeError):
        conflicts = _conflicts(planning, assembly, resolver, targets_matter)
    relaxations: list[Relaxation] = []
    if targets_matter:
        relaxations += _target_relaxations(planning, assembly, resolver)
    relaxations += _fleet_relaxations(planning, assembly, resolver)
    relaxations += _sourcing_relaxations(planning, assembly, resolver)
    fraction: float | None = None
    with suppress(NoPlanInTimeError):
        fraction = _largest_fraction(assembly, resolver)
    if fraction is not None and 0.0 < fraction < 1.0:
        relaxations += [
            Relaxation(rate_of(w), one.workload.requests_per_s, one.workload.requests_per_s * fraction, None)
            for w, one in enumerate(assembly.screened)
        ]
    if not relaxations and targets_matter:
        with suppress(NoPlanInTimeError):
            joint = _joint_relaxation(planning, assembly, resolver)
            relaxations += [joint] if joint else []
    ordered = sorted(relaxations, key=lambda r: (r.usd_per_hour is None, r.usd_per_hour or 0.0, r.limit))
    if conflicts == ():
        conflicts = (_of_demand_alone(assembly, fraction),)
    return NoPlan(conflicts or (), tuple(ordered), fraction)


def _has_plan_without_targets(planning: PlanningInput, assembly: Assembly, resolver: Resolver) -> bool:
    """Where no plan exists even without any target, no target is to blame and none needs to be tried."""
    free = [with_all_targets(one, lambda _: Targets()) for one in assembly.screened]
    return resolver.has_plan(assemble(planning, free, assembly.problem.offers), other_targets=True)


def _fleet_relaxations(planning: PlanningInput, assembly: Assembly, resolver: Resolver) -> Iterator[Relaxation]:
    """Limits of the fleet, each alone, at the smallest value that admits a plan."""
    solve = resolver.fleet(assembly, PRICE_GAP_FRACTION)
    with suppress(NoPlanInTimeError):
        for one in fleet_relaxations.relaxations(assembly.problem, solve, limited_offers(planning, assembly.problem)):
            change = one.change
            yield Relaxation(change.limit, change.relaxing_from, change.relaxing_to, one.result.usd_per_hour)


def _sourcing_relaxations(planning: PlanningInput, assembly: Assembly, resolver: Resolver) -> Iterator[Relaxation]:
    """Each rule of the buying policy that alone stands in the way; all of it together where none does."""
    rules = rules_in_force(planning)
    if commits(planning):
        with suppress(NoPlanInTimeError):
            changed = assemble(without_rules(planning, frozenset({COMMITMENTS})), assembly.screened)
            changed = within_default_where_needed(planning, changed)
            price = resolver.best(changed, gap_fraction=PRICE_GAP_FRACTION).usd_per_hour
            if price is not None:
                yield Relaxation(COMMITMENTS, None, None, price)
    some = False
    with suppress(NoPlanInTimeError):
        for limit, lifted in (*((rule, frozenset({rule})) for rule in rules), (WHOLE_POLICY, frozenset(rules))):
            if limit == WHOLE_POLICY and (some or len(rules) < 2):
                continue
            changed = assemble(without_rules(planning, lifted), assembly.screened)
            if fewest_nodes(changed) > most_nodes(planning, changed):
                continue  # not even all of it would do
            changed = within_default_where_needed(planning, changed)
            price = resolver.best(changed, gap_fraction=PRICE_GAP_FRACTION).usd_per_hour
            if price is not None:
                some = True
                most = {str(kind): float(number) for kind, number in planning.limits.most_places}
                was = most.get(limit.of) if limit.kind is LimitKind.PLACES_USED else None
                yield Relaxation(limit, was, None, price)


def limited_offers(planning: PlanningInput, problem: FleetProblem) -> list[str]:
    """Offers whose own limit may be what is missing: cheapest per device first, few, each costs some solves."""
    default = planning.default_max_nodes or MOST_NODES_PLACED
    limited = [offer for offer in problem.offers if offer.max_nodes is not None and offer.max_nodes < default]
    limited.sort(key=lambda offer: (offer.usd_per_hour / offer.devices, offer.id))
    return [offer.id for offer in limited[:MOST_OFFER_STEPS]]


def _largest_fraction(assembly: Assembly, resolver: Resolver) -> float | None:
    """Share of all demand together that the limits admit a confirmed plan for."""
    problem = assembly.problem
    if not len(problem.deployments) or not problem.offers:
        return 0.0
    vast = replace(bounded(problem), objective="throughput", is_cheapest_asked=False)
    found = resolver.best(replace(assembly, problem=vast), gap_fraction=SHARE_GAP_FRACTION)
    if found.throughput_multiple is None:
        return 0.0
    return None if found.throughput_multiple >= 1.0 else found.throughput_multiple * SERVED_AGAIN


def bounded(problem: FleetProblem) -> FleetProblem:
    """Throughput must be bounded by something: a budget, a power cap or limits on all offers."""
    limits = problem.limits
    if limits.budget_usd_per_hour is not None or limits.power_w is not None:
        return problem
    return replace(
        problem, offers=tuple(o if o.max_nodes is not None else replace(o, max_nodes=100_000) for o in problem.offers)
    )


def _target_relaxations(planning: PlanningInput, assembly: Assembly, resolver: Resolver) -> Iterator[Relaxation]:
    """For every target: the smallest value at which a plan exists with all else unchanged, and what that plan costs."""
    with suppress(NoPlanInTimeError):
        for w, one in enumerate(assembly.screened):
            for limit, number, seconds in stated_targets(w, one):
                target = limit.target
                assert target is not None

                def changed(
                    value: float | None, w: int = w, number: int = number, target: TargetLimit = target
                ) -> Assembly:
                    return replaced(planning, assembly, w, retargeted(assembly.screened[w], number, target, value))

                def admits(value: float | None, at: Changed = changed) -> bool:
                    try:
                        return resolver.has_plan(at(value), other_targets=True)
                    except NoPlanInTimeError:  # not settled is not admitted, while there is time to try a looser one
                        if resolver.left_s > 0.0:
                            return False
                        raise

                if not admits(None):
                    continue
                least = _least(admits, seconds)
                if least is None:
                    continue
                price = _price(changed(least), resolver)
                yield Relaxation(limit, seconds, least, price)
                looser = rounded(least * GROWTH)
                # At the edge of what any replica can do one serves next to nothing: a little further costs a fraction.
                cheaper = None if price is None else _price(changed(looser), resolver)
                if price is not None and cheaper is not None and cheaper < MUCH_CHEAPER * price:
                    yield Relaxation(limit, seconds, looser, cheaper)


def _price(assembly: Assembly, resolver: Resolver) -> float | None:
    """Of the changed request's plan; None where it is not known to PRICE_GAP_FRACTION, as when time ran out."""
    found = resolver.best(assembly, other_targets=True, gap_fraction=PRICE_GAP_FRACTION)
    is_known = found.gap_fraction is not None and found.gap_fraction <= PRICE_GAP_FRACTION
    return found.usd_per_hour if is_known else None


def _least(admits: Callable[[float], bool], value: float) -> float | None:
    """The smallest value above ``value`` that admits a plan, to HALVINGS and DIGITS; None where none does within MOST_GROWTHS."""
    low = high = value
    for _ in range(MOST_GROWTHS):
        high = rounded(high * GROWTH)
        if admits(high):
            break
        low = high
    else:
        return None
    for _ in range(HALVINGS):
        middle = rounded((low + high) / 2.0)
        if not low < middle < high:
            break
        if admits(middle):
            high = middle
        else:
            low = middle
    return high


def rounded(value: float) -> float:
    """To DIGITS significant digits.

    >>> rounded(0.0272900390625), rounded(1234.5)
    (0.0273, 1230.0)
    """
    return float(f"{value:.{DIGITS}g}")


def _joint_relaxation(planning: PlanningInput, assembly: Assembly, resolver: Resolver) -> Relaxation | None:
    """The smallest common factor on all targets that admits a plan, where no single target's relaxation does."""

    def changed(factor: float) -> Assembly:
        looser = [with_all_targets(one, lambda targets: looser_targets(targets, factor)) for one in assembly.screened]
        return assemble(planning, looser, assembly.problem.offers)

    least = _least(lambda factor: resolver.has_plan(changed(factor), other_targets=True), 1.0)
    if least is None:
        return None
    return Relaxation(Limit(LimitKind.ALL_TARGETS), 1.0, least, _price(changed(least), resolver))


def _conflicts(
    planning: PlanningInput, assembly: Assembly, resolver: Resolver, targets_matter: bool
) -> tuple[Conflict, ...]:
    """A smallest set of limits that cannot hold together, targets and fleet limits alike; empty where no limit is to blame."""
    targets: dict[Limit, int] = {
        limit: number
        for w, one in enumerate(assembly.screened)
        for limit, number, _ in stated_targets(w, one)
        if targets_matter
    }
    chosen = {limit for _, why in planning.withheld for limit in why}
    choices = sorted(chosen, key=lambda limit: (limit.kind is LimitKind.BUYING_RULE, limit.of))
    # Of what is left out too: where nothing else is offered, how many nodes of it there are may stand in the way as well.
    every = _lifted(planning, assembly, targets, frozenset(chosen)) if chosen else assembly
    stated = dict.fromkeys((*fleet_limits.stated_limits(assembly.problem), *fleet_limits.stated_limits(every.problem)))
    limits = [*targets, *stated, *choices]

    def has_plan(lifted: frozenset[Limit]) -> bool:
        changed = _lifted(planning, assembly, targets, lifted)
        return resolver.has_plan(changed, other_targets=bool(lifted & targets.keys()))

    found = fleet_relaxations.conflicts(limits, has_plan)
    if found:
        return (Conflict(found, any_one=all(has_plan(frozenset({limit})) for limit in found)),)
    return ()


def _of_demand_alone(assembly: Assembly, fraction: float | None) -> Conflict:
    """What is to blame where no limit is: that nothing serves any of it, or how much it is."""
    if fraction == 0.0 or not len(assembly.problem.deployments):
        return Conflict((Limit(LimitKind.CANDIDATES),), any_one=False)
    return Conflict(tuple(rate_of(w) for w in range(len(assembly.screened))), any_one=False)


def rate_of(workload: int) -> Limit:
    """What a workload asks to be served."""
    return Limit(LimitKind.RATE, workload=workload)


def _lifted(
    planning: PlanningInput, assembly: Assembly, targets: Mapping[Limit, int], lifted: frozenset[Limit]
) -> Assembly:
    screened = list(assembly.screened)
    for limit in lifted & targets.keys():
        assert limit.target is not None
        screened[limit.workload] = retargeted(screened[limit.workload], targets[limit], limit.target, None)
    admitted = tuple(offer for offer, chosen in planning.withheld if chosen <= lifted)
    changed = assembly
    if admitted:
        changed = assemble(replace(planning, offers=(*planning.offers, *admitted)), screened)
        changed = with_default_limits(planning, changed)  # as those of the assembly are
    elif lifted & targets.keys():
        changed = assemble(planning, screened, assembly.problem.offers)
    return replace(changed, problem=fleet_limits.without_limits(changed.problem, lifted))
