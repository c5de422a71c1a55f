"""Offers that rest on published speeds in the fleet problem, as they are sold: a unit costs so much an hour and serves so many
requests a second.

Everything that holds for nodes holds for units: limits of numbers, budgets, the proof, the independent check. In an ``Assembly``
their rows belong to no workload's candidates (``workload_of`` is ``UNITS``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from solver.candidates.screening import Screened
from solver.errors import InvalidInputError
from solver.fleet import ANY_SITE, WHOLE, DeploymentTable, FleetProblem, OfferSlot, Plan
from solver.fleet.deployments import AGGREGATED
from solver.planning.published_offers import PublishedEntry, PublishedOffer

UNITS = -1
"""``Assembly.workload_of`` of a row that is no candidate of a workload."""


def units_in(
    problem: FleetProblem, offers: Sequence[PublishedOffer], screened: Sequence[Screened], default_max_nodes: int | None
) -> FleetProblem:
    """The problem with one row and one slot for each offer, after all others.

    Raises InvalidInputError for an offer to a workload of several traffic classes.
    """
    position = {one.workload.name: w for w, one in enumerate(screened)}
    if any(screened[position[offer.workload]].workload.is_mixed for offer in offers):
        raise InvalidInputError("published speeds serve no workload of several traffic classes")
    table, first = problem.deployments, len(problem.deployments.node_type_ids)
    rows = len(offers)
    capacity = np.zeros((rows, table.capacity_requests_per_s.shape[1]))
    for row, offer in enumerate(offers):
        limit = screened[position[offer.workload]].workload.utilisation_limit_fraction
        capacity[row, 0] = offer.requests_per_s / limit
    ones = np.ones(rows, dtype=np.int64)
    joined = DeploymentTable(
        node_type_ids=(*table.node_type_ids, *(offer.id for offer in offers)),
        workload=np.concatenate([table.workload, [position[offer.workload] for offer in offers]]),
        node_type=np.concatenate([table.node_type, first + np.arange(rows)]),
        devices_per_replica=np.concatenate([table.devices_per_replica, ones]),
        nodes_per_replica=np.concatenate([table.nodes_per_replica, ones]),
        capacity_requests_per_s=np.concatenate([table.capacity_requests_per_s, capacity]),
        power_w_per_replica=np.concatenate([table.power_w_per_replica, np.zeros(rows)]),
        key=np.concatenate([table.key, len(table) + np.arange(rows)]),
        site=None if table.site is None else np.concatenate([table.site, ones * ANY_SITE]),
        sites=table.sites,
        split=None if table.split is None else np.concatenate([table.split, ones * WHOLE]),
        splits=table.splits,
        role=None if table.role is None else np.concatenate([table.role, ones * AGGREGATED]),
        exchange=None if table.exchange is None else np.concatenate([table.exchange, ones * 0]),
        copies=np.concatenate([table.copies_of_model, ones]),
    )
    slots = tuple(_slot(offer, default_max_nodes) for offer in offers)
    return replace(problem, deployments=joined, offers=(*problem.offers, *slots))


def _slot(offer: PublishedOffer, default_max_nodes: int | None) -> OfferSlot:
    return OfferSlot(
        id=offer.id,
        node_type_id=offer.id,
        device_id=offer.speed.device_id,
        devices=1,
        provider=offer.provider,
        region=offer.region,
        commitment=offer.commitment,
        usd_per_hour=offer.usd_per_hour,
        max_nodes=default_max_nodes if offer.most_units is None else offer.most_units,
        is_default_most=offer.most_units is None,
    )


def published_entries(
    offers: Sequence[PublishedOffer], plan: Plan, requests_per_s: Mapping[str, float]
) -> tuple[PublishedEntry, ...]:
    """What a plan takes of these offers, in their order. requests_per_s: of each workload, by name."""
    units, routed = plan.nodes_by_offer(), dict.fromkeys((offer.id for offer in offers), 0.0)
    for route in plan.routes:
        if route.offer_id in routed:
            routed[route.offer_id] += route.requests_per_s
    return tuple(
        PublishedEntry(offer, units[offer.id], routed[offer.id], routed[offer.id] / requests_per_s[offer.workload])
        for offer in offers
        if units.get(offer.id)
    )
