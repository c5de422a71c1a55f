"""What a buyer's policy costs: the request solved without all of it, and without each of its rules alone."""

from contextlib import suppress
from dataclasses import replace

from solver.errors import NoPlanInTimeError
from solver.explain.freed import freed
from solver.explain.resolver import Resolver
from solver.fleet import FleetResult
from solver.hardware import PlaceKind
from solver.limit import Limit, LimitKind
from solver.planning.assemble import Assembly, assemble
from solver.planning.types import Freed, PlanningInput, SourcingChange

PLACE_KINDS: tuple[PlaceKind, ...] = ("provider", "region", "device")
WHOLE_POLICY = Limit(LimitKind.BUYING_RULE)
COMMITMENTS = Limit(LimitKind.CHOICE, "commitments")
"""Not a rule of the policy, but priced like one: what could be had on demand by whoever asks for commitments only."""


def rules_in_force(planning: PlanningInput) -> tuple[Limit, ...]:
    """Rules of the policy that leave any offer out, or bound the places of workloads."""
    leaving_out = {rule for _, chosen in planning.withheld for rule in chosen if rule.kind is LimitKind.BUYING_RULE}
    kinds = dict(planning.limits.most_places)
    return (*sorted(leaving_out), *(Limit(LimitKind.PLACES_USED, kind) for kind in PLACE_KINDS if kind in kinds))


def commits(planning: PlanningInput) -> bool:
    """Are there offers on demand that only the choice of commitments leaves out?"""
    return any(chosen == {COMMITMENTS} for _, chosen in planning.withheld)


def without_rules(planning: PlanningInput, rules: frozenset[Limit]) -> PlanningInput:
    """The request with these rules lifted: with the offers that nothing else leaves out."""
    admitted = tuple(offer for offer, chosen in planning.withheld if chosen <= rules)
    kinds = {rule.of for rule in rules if rule.kind is LimitKind.PLACES_USED}
    limits = replace(
        planning.limits, most_places=tuple(one for one in planning.limits.most_places if one[0] not in kinds)
    )
    return replace(planning, offers=(*planning.offers, *admitted), limits=limits)


def sourcing_changes(
    planning: PlanningInput, assembly: Assembly, result: FleetResult, resolver: Resolver
) -> tuple[SourcingChange, ...]:
    """What lifting the whole policy gains, and where it gains anything each rule alone; those there was time for."""
    rules = rules_in_force(planning)
    found: list[SourcingChange] = []

    def without(lifted: frozenset[Limit]) -> Freed:
        free = without_rules(planning, lifted)
        return freed(free, assemble(free, assembly.screened), result, resolver)

    def without_one(rule: Limit) -> Freed:
        if rule.kind is LimitKind.BUYING_RULE and not any(chosen <= {rule} for _, chosen in planning.withheld):
            return Freed(0.0, result.usd_per_hour, ())  # what it leaves out, another rule does too
        return without(frozenset({rule}))

    with suppress(NoPlanInTimeError):
        if rules:
            found.append(SourcingChange(None, without(frozenset(rules))))
        if found and (found[0].freed.gains or 0.0) > 0.0 and len(rules) > 1:  # what all of them do not cost, none does
            found += [SourcingChange(rule, without_one(rule)) for rule in rules]
        if commits(planning):
            found.append(SourcingChange(COMMITMENTS, without(frozenset({COMMITMENTS}))))
    return tuple(found)
