"""What a buyer's policy costs: the request solved without all of it, and without each of its rules alone."""

from contextlib import suppress
from dataclasses import replace

from solver.errors import NoPlanInTimeError
from solver.explain.freed import freed
from solver.explain.resolver import Resolver
from solver.fleet import FleetResult
from solver.fleet.limits import PLACE_LIMITS
from solver.hardware import PlaceKind
from solver.planning.assemble import Assembly, assemble
from solver.planning.types import Freed, PlanningInput, SourcingChange

PREFIX = "limits.sourcing."
PLACE_RULES: dict[str, PlaceKind] = {name: kind for kind, name in PLACE_LIMITS.items()}


COMMITMENTS = "limits.commitments"
"""Not a rule of the policy, but priced like one: what could be had on demand by whoever asks for commitments only."""


def rules_in_force(planning: PlanningInput) -> tuple[str, ...]:
    """Rules of the policy that leave any offer out, or bound the places of workloads, by name."""
    leaving_out = {name for _, chosen in planning.withheld for name in chosen if name.startswith(PREFIX)}
    kinds = dict(planning.limits.most_places)
    return (*sorted(leaving_out), *(name for name, kind in PLACE_RULES.items() if kind in kinds))


def commits(planning: PlanningInput) -> bool:
    """Are there offers on demand that only the choice of commitments leaves out?"""
    return any(chosen == {COMMITMENTS} for _, chosen in planning.withheld)


def without_rules(planning: PlanningInput, rules: frozenset[str]) -> PlanningInput:
    """The request with these rules lifted: with the offers that nothing else leaves out."""
    admitted = tuple(offer for offer, chosen in planning.withheld if chosen <= rules)
    kinds = {PLACE_RULES[rule] for rule in rules if rule in PLACE_RULES}
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

    def without(lifted: frozenset[str]) -> Freed:
        free = without_rules(planning, lifted)
        return freed(free, assemble(free, assembly.screened), result, resolver)

    with suppress(NoPlanInTimeError):
        if rules:
            found.append(SourcingChange(None, without(frozenset(rules))))
        if found and found[0].freed.gains > 0.0 and len(rules) > 1:  # what all of them do not cost, none does
            found += [SourcingChange(rule, without(frozenset({rule}))) for rule in rules]
        if commits(planning):
            found.append(SourcingChange(COMMITMENTS, without(frozenset({COMMITMENTS}))))
    return tuple(found)
