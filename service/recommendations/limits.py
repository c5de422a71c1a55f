"""Limits and places of a request → the solver's: offers within the request's choices, quotas as sets of offers."""

from collections.abc import Iterator
from dataclasses import replace

from service.recommendations.bought_offers import is_bought
from service.recommendations.sourcing import most_places, rules_against
from service.wire.recommendations import LimitsIn, RecommendationIn, WorkloadIn
from service.wire.resilience import QuotaIn
from solver.hardware import Offer
from solver.limit import FaultTolerance, Limit, LimitKind, Quota
from solver.planning.types import PlanLimits
from solver.workload import ANYWHERE, Places


def plan_limits(limits: LimitsIn, offers: tuple[Offer, ...]) -> PlanLimits:
    """Datasheet units → SI; quotas name the offers they hold for, and devices may be split into profiles by name."""
    fault_tolerance = limits.fault_tolerance
    return PlanLimits(
        max_usd_per_hour=None if limits.max_usd_per_hour is None else float(limits.max_usd_per_hour),
        max_power_w=None if limits.max_power_kw is None else limits.max_power_kw * 1e3,
        spare_nodes=limits.spare_nodes,
        fault_tolerance=FaultTolerance(
            fault_tolerance.providers,
            fault_tolerance.regions,
            fault_tolerance.utilisation_limit_fraction,
            fault_tolerance.nodes,
        ),
        max_spot_fraction=limits.max_spot_fraction,
        quotas=tuple(
            Quota(quota.name, frozenset(o.id for o in offers if _falls_under(quota, o)), quota.max_devices)
            for quota in limits.quotas
        ),
        partitions=_profiles(limits, offers),
        most_places=most_places(limits),
        numbered_offers=frozenset(
            o.id for o in offers if o.id in limits.offers and limits.offers[o.id].max_nodes == o.max_nodes
        ),
    )


def _profiles(limits: LimitsIn, offers: tuple[Offer, ...]) -> frozenset[str]:
    """Profiles into which devices may be split: those asked for, or all that devices on offer have."""
    if limits.partitions is True:
        return frozenset(one.profile for offer in offers for one in offer.node.device.partitions)
    return frozenset(limits.partitions or ())


def _falls_under(quota: QuotaIn, offer: Offer) -> bool:
    return (
        (quota.providers is None or offer.provider in quota.providers)
        and (quota.regions is None or offer.region in quota.regions)
        and (quota.devices is None or offer.node.device.id in quota.devices)
        and (quota.commitments is None or offer.commitment in quota.commitments)
    )


def places(workload: WorkloadIn) -> Places:
    """Where a workload may run."""
    regions, providers = workload.regions, workload.providers
    found = Places(
        None if regions.only is None else frozenset(regions.only),
        frozenset(regions.never),
        None if providers.only is None else frozenset(providers.only),
        frozenset(providers.never),
    )
    return ANYWHERE if found == ANYWHERE else found


def allowed_offers(offers: tuple[Offer, ...], limits: LimitsIn) -> tuple[Offer, ...]:
    """Offers within the request's choices. ``max_nodes_per_offer`` holds for those that state no limit (None)."""
    return tuple(offer for offer, chosen in _with_choices(offers, limits) if not chosen)


def offers_within(
    offers: tuple[Offer, ...], asked: RecommendationIn
) -> tuple[tuple[Offer, ...], tuple[tuple[Offer, frozenset[Limit]], ...]]:
    """Offers within the request's choices; and those that only the buying policy and choices of regions and providers leave out,
    with those rules.

    Choices of places are of interest where a workload's own places or a loss to be survived can contradict them.
    """
    tolerance = asked.limits.fault_tolerance
    chosen_places = tolerance.regions or tolerance.providers or any(places(w) != ANYWHERE for w in asked.workloads)
    every = list(_with_choices(offers, asked.limits))
    withheld = ((o, chosen) for o, chosen in every if chosen and (chosen_places or not chosen & CHOICES_OF_PLACES))
    return tuple(offer for offer, chosen in every if not chosen), tuple(withheld)


COMMITMENTS, PROVIDERS, REGIONS = (Limit(LimitKind.CHOICE, of) for of in ("commitments", "providers", "regions"))
CHOICES_OF_PLACES = frozenset({PROVIDERS, REGIONS})


def _with_choices(offers: tuple[Offer, ...], limits: LimitsIn) -> Iterator[tuple[Offer, frozenset[Limit]]]:
    """Offers that other choices admit, each with the rules and choices of places that leave it out."""
    for offer in offers:
        if limits.devices is not None and offer.node.device.id not in limits.devices:
            continue
        chosen = rules_against(offer, limits)
        if limits.commitments is not None and not _terms(offer) & set(limits.commitments):
            if offer.commitment != "on_demand":
                continue
            chosen |= {COMMITMENTS}  # what could be had without committing is of interest to whoever commits
        if limits.providers is not None and offer.provider not in limits.providers:
            chosen |= {PROVIDERS}
        if limits.regions is not None and offer.region not in limits.regions:
            chosen |= {REGIONS}
        most = offer.max_nodes
        if offer.id in limits.offers:
            wanted = limits.offers[offer.id].max_nodes
            most = wanted if most is None else min(wanted, most)
        if most != 0:
            yield (offer if most == offer.max_nodes else replace(offer, max_nodes=most)), chosen


def _terms(offer: Offer) -> set[str]:
    """Commitments that admit an offer: what is bought because nobody rents it out also stands in for an hour on demand."""
    return {offer.commitment, "on_demand"} if is_bought(offer) else {offer.commitment}


OPEN = LimitsIn(commitments=None, sourcing="any")
FILTERS = ("devices", "providers", "regions", "commitments", "offers", "sourcing")


def limits_that_leave_out(offers: tuple[Offer, ...], limits: LimitsIn) -> list[str]:
    """Limits each of which alone leaves all of these offers out, as the API spells them; empty where they admit some, or only
    together admit none."""
    if allowed_offers(offers, limits):
        return []
    return [
        f"limits.{name}"
        for name in FILTERS
        if not allowed_offers(offers, OPEN.model_copy(update={name: getattr(limits, name)}))
    ]
