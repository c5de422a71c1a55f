"""A plan that is known to hold, as the plan that others have to beat."""

from solver.fleet.groups.offer_groups import ANY_OFFER, OfferGroup
from solver.fleet.heuristic.greedy import Draft
from solver.fleet.heuristic.taken import PlacementKey
from solver.fleet.plan import Plan
from solver.fleet.problem import FleetProblem


def draft_of(problem: FleetProblem, groups: list[OfferGroup], plan: Plan) -> Draft:
    """Whole numbers of a plan that serves all demand. An offer that no group holds any longer stands for itself."""
    position = {offer.id: i for i, offer in enumerate(problem.offers)}
    anchor = {offer: group.offers[0] for group in groups for offer in group.offers}
    table = problem.deployments
    row_of = {key: row for row, key in enumerate(table.key.tolist())}
    replicas: dict[PlacementKey, int] = {}
    for (key, offer_id), count in plan.replicas().items():
        row, offer = row_of[key], position[offer_id]
        placement = (row, anchor.get(offer, offer), offer if table.nodes_per_replica[row] > 1 else ANY_OFFER)
        replicas[placement] = replicas.get(placement, 0) + count
    nodes = {position[offer_id]: count for offer_id, count in plan.nodes_by_offer().items()}
    return Draft(nodes, replicas, plan.objective(problem, 1.0), 1.0)
