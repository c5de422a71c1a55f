"""GET /v1/recommendations/{id}/quote: what to confirm before a plan is signed, seller by seller."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from fastapi.concurrency import run_in_threadpool

from service.nodes.queries import node_by_id
from service.offers.queries import offer_by_id, prices_at
from service.providers.queries import providers_by_id
from service.recommendations.bought_offers import is_bought
from service.recommendations.create import PlanningContext
from service.recommendations.money import usd
from service.recommendations.present_line import present_line
from service.recommendations.sourcing import line_source
from service.why.replay import ReplayedRequest, elapsed_since, present_base, read_replay, require_plan, standing_of
from service.wire.quote import QuotaOut, QuoteLineOut, QuoteOut
from solver.hardware import Offer
from solver.outcome import Status
from solver.recommend.recommend import SolvedRequest
from solver.why.ranging import TRIED_UP_TO, PriceRange, price_range
from solver.why.resolve import Clock

PERCENT = 100.0
ROUNDING = 1e-9


@dataclass(frozen=True)
class _Stored:
    """What is known of an offer beside its price. provider: its row, empty for one the catalog does not know."""

    instance: str
    price_source: str
    provider: Mapping[str, object]
    vcpus: float | None


async def answer_quote(recommendation_id: str, time_limit_s: float, context: PlanningContext) -> QuoteOut:
    """Raises NotFoundError, and ConflictError where there is no plan."""
    replay = await run_in_threadpool(read_replay, recommendation_id, context)

    def answer() -> QuoteOut:
        began = time.perf_counter()
        solved_request = standing_of(replay)
        require_plan(solved_request, replay.stored.id)
        assert solved_request.result.plan is not None
        nodes = solved_request.result.plan.nodes_by_offer()
        stored = _stored(context, replay, sorted(nodes))
        clock = Clock(time_limit_s)
        offers = {offer.id: offer for offer in solved_request.planning.offers}
        dearest = sorted(nodes, key=lambda name: (-nodes[name] * offers[name].usd_per_hour, name))
        total = solved_request.result.usd_per_hour
        return QuoteOut(
            base=present_base(replay, solved_request),
            usd_per_hour=None if total is None else usd(total),
            lines=[_line(replay, solved_request, offers[name], nodes[name], stored[name], clock) for name in dearest],
            seconds=elapsed_since(began),
        )

    return await context.pool.run("quote", answer)


def _stored(context: PlanningContext, replay: ReplayedRequest, names: list[str]) -> dict[str, _Stored]:
    bought = replay.inputs.snapshot.bought
    with context.database.reading() as session:
        prices = prices_at(session, replay.inputs.price_as_of, offers=names)
        providers = providers_by_id(session)
        found = {}
        for name in names:
            if name in bought:
                found[name] = _Stored(name.split(":")[1], bought[name], {}, None)
                continue
            offer = offer_by_id(session, name)
            assert offer is not None  # it was read in this catalog release, and offers are never deleted
            node = node_by_id(session, offer.node_id)
            provider = providers.get(offer.provider)
            found[name] = _Stored(
                offer.instance,
                prices[name].source,
                {} if provider is None else provider.row,
                None if node is None else node.row.get("vcpus"),
            )
        return found


def _line(
    replay: ReplayedRequest, solved_request: SolvedRequest, offer: Offer, nodes: int, stored: _Stored, clock: Clock
) -> QuoteLineOut:
    proven = solved_request.proven.status is Status.PROVEN_OPTIMAL and solved_request.planning.objective == "cost"
    # What costs nothing has no price that could rise by a part of itself.
    ranged = proven and offer.usd_per_hour > 0.0
    found = price_range(solved_request, offer.id, clock) if ranged else PriceRange(offer.id, None)
    rises = None if found.usd_per_hour is None else found.usd_per_hour / offer.usd_per_hour - 1.0
    source = line_source(offer, replay.request.limits, replay.inputs.price_as_of)
    places = stored.provider.get("places")
    quotas = _quotas(offer, stored, nodes)
    return QuoteLineOut(
        offer=offer.id,
        provider=offer.provider,
        region=offer.region,
        place=places.get(offer.region) if isinstance(places, dict) else None,
        instance=stored.instance,
        commitment=offer.commitment,
        node=offer.node.id,
        device=offer.node.device.id,
        nodes=nodes,
        devices=nodes * offer.node.devices,
        usd_per_hour=usd(offer.usd_per_hour),
        price_source=stored.price_source,
        source=source,
        confirm=_confirm(offer, nodes, stored, quotas),
        quotas=quotas,
        may_rise_to_usd_per_hour=None if found.usd_per_hour is None else usd(found.usd_per_hour),
        may_rise_percent=None if rises is None else round(PERCENT * max(0.0, rises), 2),
        at_least=found.usd_per_hour is not None
        and found.then is None
        and (rises or 0.0) >= TRIED_UP_TO - 1.0 - ROUNDING,
        then=[] if found.then is None else [present_line(entry) for entry in found.then.entries],
    )


def _quotas(offer: Offer, stored: _Stored, nodes: int) -> list[QuotaOut]:
    """Limits of an account that the machines count against, in the provider's words."""
    rules = stored.provider.get("quotas")
    found = []
    for rule in rules if isinstance(rules, list) else []:
        begins = any(stored.instance.lower().startswith(start.lower()) for start in rule["instances"])
        if offer.commitment not in rule["commitments"] or not begins:
            continue
        each = float(offer.node.devices) if rule["unit"] == "GPU" else stored.vcpus
        found.append(QuotaOut(name=rule["name"], unit=rule["unit"], needs=None if each is None else each * nodes))
    return found


def _confirm(offer: Offer, nodes: int, stored: _Stored, quotas: list[QuotaOut]) -> list[str]:
    """Price, stock, region, quota: what a plan assumes and only the seller knows."""
    if is_bought(offer):
        return [f"price: what {nodes} x {stored.instance} cost to buy, delivered", "when they can be delivered"]
    if offer.sale.own and offer.sale.provider_class is None:
        return [f"{nodes} of your own {offer.node.id} are free for this"]
    many = f"{nodes} machine" + ("" if nodes == 1 else "s")
    where = offer.region if offer.sale.named_place else f"{offer.region}, which names no place: ask where they stand"
    if offer.sale.own:
        return [
            f"that the contract covers {many} of {stored.instance} in {where} at {usd(offer.usd_per_hour):.2f} USD an hour"
        ]
    asked = [
        f"price: {usd(offer.usd_per_hour):.2f} USD an hour for {stored.instance}, {offer.commitment}",
        f"stock: {many} of {stored.instance} at once",
        f"region: {where}",
    ]
    for quota in quotas:
        needs = "" if quota.needs is None else f" of at least {quota.needs:g} {quota.unit}s"
        asked.append(f"quota: {quota.name!r}{needs} in {offer.region}")
    if not quotas:
        asked.append("quota: whether the account may start so many")
    return asked
