"""Lines of a plan that rest on published speeds, as they are sent."""

from collections.abc import Iterable, Mapping

from catalog.published_speeds import ServiceRow
from service.api_prices.stored import api_prices
from service.recommendations.money import usd
from service.recommendations.present import present_interval
from service.recommendations.published import PublishedMachine, service_behind
from service.wire.plan_lines import PublishedLineOut, TokenServiceOut
from service.wire.quantities import Interval
from solver.planning.published_offers import PublishedEntry
from solver.planning.types import PlanningInput
from solver.prediction.intervals import PredictedInterval
from solver.prediction.published import published_estimate
from solver.workload import Traffic

MS_PER_S = 1e3


def present_published(
    planning: PlanningInput, entries: Iterable[PublishedEntry], machines: Mapping[str, PublishedMachine]
) -> list[PublishedLineOut]:
    """machines: by the id that offers of theirs begin with."""
    workloads = {workload.name: workload for workload in planning.workloads}
    return [_line(entry, workloads[entry.offer.workload].traffic, machines) for entry in entries]


def _line(entry: PublishedEntry, traffic: Traffic, machines: Mapping[str, PublishedMachine]) -> PublishedLineOut:
    offer, found = entry.offer, published_estimate(entry.offer.speed, traffic)
    service = service_behind(offer)
    machine = machines.get(offer.id.removesuffix(f":{offer.workload}")) if service is None else None
    return PublishedLineOut(
        workload=offer.workload,
        offer=offer.id,
        provider=offer.provider,
        commitment=offer.commitment,
        device=offer.speed.device_id,
        engine=offer.speed.engine,
        weights=offer.speed.weights,
        node=None if machine is None else machine.node,
        nodes=0 if machine is None else entry.units,
        serves_requests_per_s=entry.serves_requests_per_s,
        share_fraction=min(1.0, entry.share_fraction),
        usd_per_hour=usd(entry.usd_per_hour),
        ttft_ms=_ms(found.time_to_first_token_s),
        tpot_ms=_ms(found.time_per_output_token_s),
        e2e_ms=_ms(found.end_to_end_s),
        basis="measured",
        evidence=list(offer.speed.evidence),
        price_source=None if machine is None else machine.how,
        by_the_token=None if service is None else _service(service.price, service),
    )


def _service(price_id: str, service: ServiceRow) -> TokenServiceOut:
    price = api_prices().rows[price_id]
    assert price.usd_per_million_output_tokens is not None
    return TokenServiceOut(
        id=price_id,
        tier=service.tier,
        usd_per_million_input_tokens=price.usd_per_million_input_tokens,
        usd_per_million_output_tokens=price.usd_per_million_output_tokens,
        seen_on=price.seen_on,
        requests_per_minute=service.requests_per_minute,
        tokens_per_minute=service.tokens_per_minute,
        requests_per_day=service.requests_per_day,
        tokens_per_day=service.tokens_per_day,
        source=service.provenance.source,
    )


def _ms(found: PredictedInterval) -> Interval:
    return present_interval(found, MS_PER_S)
