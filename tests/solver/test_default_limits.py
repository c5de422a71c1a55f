"""Machines that every seller has few of: what an answer says of a changed request is what that request is answered with."""

import itertools
from dataclasses import replace

import pytest

from solver.explain.sourcing import rules_in_force, without_rules
from solver.limit import Limit, LimitKind
from solver.planning.types import PlanningInput, Recommendation
from solver.recommend.recommend import recommend, screened, solve_request
from solver.why.resolve import Clock, QuestionOutcome, assembled
from solver.why.why_not import Thing, why_not
from tests.solver.planning_cases import A100, H100, L4, L40S, MEMO, cost, offer, planning, workload

NAMED, FRESH = Limit(LimitKind.BUYING_RULE, "named_place"), Limit(LimitKind.BUYING_RULE, "max_price_age_days")
PRICED_TO = 0.0101
"""Of a plan that a changed limit would admit: its price is stated to one per cent."""


def market(rate: float, most: int) -> PlanningInput:
    """Dear machines for all, cheaper ones of the same kinds where a rule is lifted, no more than ``most`` of any offer."""
    withheld = (
        (offer(A100, 6.0, suffix="-nowhere"), frozenset({NAMED})),
        (offer(A100, 6.5, suffix="-somewhere"), frozenset({NAMED})),
        (offer(L40S, 5.0, suffix="-old"), frozenset({FRESH})),
        (offer(H100, 15.0, suffix="-old-nowhere"), frozenset({NAMED, FRESH})),
    )
    offers = [offer(A100, 9.0), offer(H100, 24.0), offer(L40S, 8.0), offer(L4, 2.0)]
    asked = planning(workload(rate=rate), offers=offers, explain=True)
    return replace(asked, withheld=withheld, default_max_nodes=most)


def asked_without(asked: PlanningInput, rule: Limit | None) -> Recommendation:
    rules = frozenset(rules_in_force(asked)) if rule is None else frozenset({rule})
    free = replace(without_rules(asked, rules), explain=False, withheld=())
    return recommend(free, MEMO)


CASES = [market(rate, most) for rate, most in itertools.product((20.0, 60.0, 100.0, 600.0), (1, 2))]


@pytest.mark.parametrize("asked", CASES, ids=lambda c: f"{c.workloads[0].only.requests_per_s:g}-{c.default_max_nodes}")
def test_a_rule_lifted_gains_what_asking_without_it_gains(asked: PlanningInput) -> None:
    found = recommend(asked, MEMO)
    assert not found.unsettled
    if found.entries:
        assert found.sourcing
        for change in found.sourcing:
            assert change.freed.usd_per_hour == pytest.approx(cost(asked_without(asked, change.rule)), rel=1e-6)
        return
    priced = {one.limit: one.usd_per_hour for one in found.relaxations}
    for rule in rules_in_force(asked):
        other = asked_without(asked, rule)
        assert bool(other.entries) == (rule in priced), rule
        if other.entries:
            assert priced[rule] == pytest.approx(cost(other), rel=PRICED_TO)


@pytest.mark.parametrize("asked", CASES, ids=lambda c: f"{c.workloads[0].only.requests_per_s:g}-{c.default_max_nodes}")
def test_where_any_one_limit_lifted_leaves_a_plan_each_rule_does(asked: PlanningInput) -> None:
    for conflict in recommend(asked, MEMO).conflicts:
        for limit in conflict.limits:
            if conflict.any_one and limit.kind is LimitKind.BUYING_RULE:
                assert asked_without(asked, limit).entries, limit


def test_the_cases_are_of_both_kinds() -> None:
    outcomes = [bool(recommend(replace(asked, explain=False), MEMO).entries) for asked in CASES]
    assert {True, False} == set(outcomes)


@pytest.mark.parametrize("usd_per_hour", [7.5, 30.0])
@pytest.mark.parametrize("most", [1, 2])
def test_an_offer_asked_about_stays_in_the_search_where_others_run_out(usd_per_hour: float, most: int) -> None:
    """One that the request leaves out, cheaper or dearer than what it has on the same machine: with it a plan takes no more of any
    offer than there is, and costs what asking for it costs."""
    asked = replace(market(180.0 * most, most), withheld=(), explain=False)
    named = offer(A100, usd_per_hour, suffix="-asked-about")
    solved = solve_request(asked, MEMO)
    assert solved.result.plan is not None
    assert max(solved.result.plan.nodes_by_offer().values()) == most
    thing = Thing("offer", named.id, (named,), frozenset({A100.device.id}))
    found = why_not(solved, thing, None, MEMO, Clock(60.0)).forced_in
    assert found.nodes is not None
    assert 1 <= found.nodes[named.id] <= most
    assert max(found.nodes.values()) <= most
    every = recommend(replace(asked, offers=(*asked.offers, named)), MEMO)
    if named.id in every.nodes:
        assert found.usd_per_hour == pytest.approx(cost(every), rel=1e-6)
    else:
        assert found.usd_per_hour is not None
        assert found.usd_per_hour > cost(every)


@pytest.mark.parametrize("usd_per_hour", [7.5, 30.0])
def test_who_is_asked_about_alone_is_planned_with_alone_where_that_runs_out(usd_per_hour: float) -> None:
    """Beyond the default all offers came back, and "only" was answered with machines of others."""
    asked = replace(market(360.0, 1), withheld=(), explain=False)
    named = offer(A100, usd_per_hour, suffix="-asked-about")
    solved = solve_request(asked, MEMO)
    thing = Thing("offer", named.id, (named,), frozenset({A100.device.id}))
    found = why_not(solved, thing, 0, MEMO, Clock(60.0))
    assert found.only is not None
    alone = recommend(replace(asked, offers=(named,)), MEMO)
    assert not alone.entries, "one node of it is too few"
    assert not found.only.entries, found.only.nodes
    assert found.only.outcome is QuestionOutcome.INFEASIBLE


def test_a_question_about_a_vast_demand_places_no_more_than_there_is() -> None:
    """It placed as many nodes as serve it, tens of millions one by one, before it looked how many there are."""
    for rate, most in ((1e9, 1_000), (10.0, None)):
        asked = replace(market(rate, 1_000), withheld=(), explain=False)
        every = [screened(asked, one, MEMO) for one in asked.workloads]
        assert {slot.max_nodes for slot in assembled(asked, every).problem.offers} == {most}
