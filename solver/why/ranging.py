"""How far the price of an offer may rise before another plan is cheaper: found by solving at higher prices.

The least cost of the request is concave in one offer's price: it is the least over plans of straight lines, whose slope is
how many nodes of the offer a plan takes. So where a plan is beaten at some price, its line and that of what beats it meet at
a lower one, and a few such steps end where nothing beats it (Newton's method on a concave function; Eisner and Severance,
Journal of the ACM 23, 1976).
"""

from dataclasses import dataclass, replace

from solver.recommend.recommend import SolvedRequest
from solver.why.resolve import RELATIVE_NOISE, Clock, QuestionOutcome, SolvedChange, assembled, known_of, resolve

TRIED_UP_TO = 4.0
"""Times today's price: nobody waits for a dearer quote."""
MOST_STEPS = 12


@dataclass(frozen=True, slots=True)
class PriceRange:
    """The plan stays the cheapest up to ``usd_per_hour`` a node; from there on ``then`` is cheaper.

    usd_per_hour: None where that could not be settled in time. then: None where nothing was cheaper up to the highest price tried.
    """

    offer_id: str
    usd_per_hour: float | None
    then: SolvedChange | None = None


def price_range(solved_request: SolvedRequest, offer_id: str, clock: Clock) -> PriceRange:
    """Of an offer in the plan, all other prices unchanged. Raises ValueError for one that is not in it.

    Only a plan that is proven the cheapest has a range. Raises VerificationError on a defect.
    """
    plan, usd = solved_request.result.plan, solved_request.result.usd_per_hour
    taken = 0 if plan is None else plan.nodes_by_offer().get(offer_id, 0)
    today = next((o.usd_per_hour for o in solved_request.planning.offers if o.id == offer_id), None)
    if not taken or today is None or usd is None:
        raise ValueError(f"{offer_id} is not in the plan")
    price, then = TRIED_UP_TO * today, None
    for _ in range(MOST_STEPS):
        answer = _at(solved_request, offer_id, price, clock)
        if answer.outcome is not QuestionOutcome.OPTIMAL or answer.usd_per_hour is None or answer.nodes is None:
            return PriceRange(offer_id, None)
        own = usd + taken * (price - today)
        if answer.usd_per_hour >= own * (1.0 - RELATIVE_NOISE):
            return PriceRange(offer_id, price, then)
        fewer = taken - answer.nodes.get(offer_id, 0)
        if fewer <= 0:
            return PriceRange(offer_id, None)  # cheaper at any price: the plan was not the cheapest
        then, price = answer, max(today, price - (own - answer.usd_per_hour) / fewer)
    return PriceRange(offer_id, None)


def _at(solved_request: SolvedRequest, offer_id: str, price: float, clock: Clock) -> SolvedChange:
    """The request solved with the offer at another price."""
    offers = tuple(replace(o, usd_per_hour=price) if o.id == offer_id else o for o in solved_request.planning.offers)
    planning = replace(solved_request.planning, offers=offers)
    return resolve(
        solved_request, planning, assembled(planning, solved_request.assembly.screened), known_of(solved_request), clock
    )
