"""What a request may use that rests on published speeds: tokens of makers that it names, machines of devices that it names."""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from catalog.published_speeds import ServiceRow, SpeedRow, read_published
from service.api_prices.stored import api_prices
from service.problems import FieldError, unknown_name
from service.recommendations.bought_offers import BOUGHT_BY, PURCHASE
from service.wire.plan_explained import RejectedOut
from service.wire.recommendations import RecommendationIn
from solver.planning.published_offers import PublishedOffer, TokenPrice, machine_offer, missed_target, tokens_offer
from solver.prediction.published import FirstToken, PublishedSpeed
from solver.workload import ANYWHERE, Workload

MS_PER_S = 1e3
SECONDS = {"minute": 60.0, "day": 86_400.0}


@dataclass(frozen=True, slots=True)
class PublishedMachine:
    """A machine that can be bought and of which only measured speeds are published. how: how its price comes about."""

    id: str
    node: str
    device: str
    region: str
    usd_per_hour: float
    how: str


def sellers() -> frozenset[str]:
    """Whom ``limits.by_the_token`` may name."""
    return read_published().sellers


def speed_of(device: str, llm: str) -> PublishedSpeed | None:
    """What is published of a model on a system."""
    row = read_published().speed(device, llm)
    return None if row is None else speed_from_row(row)


def speed_from_row(row: SpeedRow) -> PublishedSpeed:
    return PublishedSpeed(
        device_id=row.device,
        llm_id=row.llm,
        engine=row.engine,
        weights=row.weights,
        shared=row.shared,
        tokens_per_s=row.tokens_per_s,
        first_token=tuple(FirstToken(one.prompt_tokens, one.ms / MS_PER_S) for one in row.ttft_ms),
        factor=read_published().interval.factor,
        evidence=(f"{row.provenance.source} ({row.as_of}, {row.provenance.checked})",),
    )


def machines_served_by(device: str) -> bool:
    """Whether speeds of the device are published that a machine of one's own reaches."""
    return any(row.device == device and not row.shared for row in read_published().speeds)


def mistakes_by_the_token(asked: RecommendationIn) -> list[FieldError]:
    """Sellers that nobody knows, and requests that tokens cannot be part of."""
    named = asked.limits.by_the_token
    if not named:
        return []
    errors = [
        FieldError(unknown_name("seller of tokens", name, sellers()), pointer=f"/limits/by_the_token/{position}")
        for position, name in enumerate(named)
        if name not in sellers()
    ]
    losses = asked.limits.fault_tolerance
    for wrong, said in (
        (asked.objective != "cost", "the objective cost: what power their machines draw is not published"),
        (asked.current is not None, "a new fleet, not one that runs"),
        (asked.limits.max_power_kw is not None, "plans without a limit of power: their machines' is not published"),
        (
            asked.limits.spare_nodes or losses.nodes or losses.providers or losses.regions,
            "plans without losses to be survived: what a seller of tokens loses is not published",
        ),
        (any(w.traffic_classes for w in asked.workloads), "workloads of one kind of requests"),
        (any("disaggregated" in w.roles for w in asked.workloads), "workloads without pools of their own"),
        (
            any(w.traffic and (w.traffic.sessions or w.traffic.thinking_tokens) for w in asked.workloads),
            "requests without sessions and hidden tokens: what sellers find in a cache is not published",
        ),
    ):
        if wrong:
            errors.append(FieldError(f"tokens are planned for {said}", pointer="/limits/by_the_token"))
    return errors


def published_offers(
    asked: RecommendationIn, workloads: Sequence[Workload], machines: Iterable[PublishedMachine], day: dt.date
) -> tuple[tuple[PublishedOffer, ...], list[RejectedOut]]:
    """Offers to each workload, and why others are none."""
    found: list[PublishedOffer] = []
    refused: list[RejectedOut] = []

    def refuse(workload: Workload, device: str, reason: str, detail: str) -> None:
        refused.append(RejectedOut(workload=workload.name, device=device, reason=reason, count=0, nearest=detail))

    together: defaultdict[str, float] = defaultdict(float)
    for workload in workloads:
        together[workload.llm_id] += workload.requests_per_s
    for service in read_published().services:
        if service.seller not in (asked.limits.by_the_token or ()):
            continue
        for workload in workloads:
            price, row = api_prices().rows.get(service.price), read_published().speed(service.device, service.llm)
            if service.llm != workload.llm_id or row is None:
                continue
            speed = speed_from_row(row)
            if price is None or price.usd_per_million_output_tokens is None or not price.serves_on(day):
                refuse(workload, service.device, "no_offer", f"{service.seller} serves {service.llm} no more")
            elif workload.adapters or workload.images:
                refuse(
                    workload,
                    service.device,
                    "adapters_not_in_engine",
                    f"{service.seller} sells tokens of the model as published, and no figures of images",
                )
            elif workload.places != ANYWHERE or workload.network_s_by_region:
                refuse(workload, service.device, "place_unknown", f"{service.seller} does not say where it serves from")
            elif missed := missed_target(workload, speed):
                refuse(workload, service.device, "target_missed", f"{service.price}: {missed}")
            else:
                share = workload.requests_per_s / together[workload.llm_id]
                offer = tokens_offer(
                    f"{service.seller}:{workload.llm_id}:{workload.name}:by_the_token",
                    service.seller,
                    workload,
                    TokenPrice(float(price.usd_per_million_input_tokens), float(price.usd_per_million_output_tokens)),
                    share * most_requests_per_s(service, workload),
                    speed,
                )
                if offer is None:
                    most = most_requests_per_s(service, workload)
                    said = f"{service.price} takes {most:.3g} requests/s of an account ({service.tier})"
                    refuse(workload, service.device, "rate_limit", said)
                else:
                    found.append(offer)
    for machine in machines:
        for workload in workloads:
            own = speed_of(machine.device, workload.llm_id)
            if own is None or own.shared:
                refuse(workload, machine.device, "figure_missing", f"no speed of {workload.llm_id} on it is published")
            elif own.weights not in workload.weight_formats:
                detail = f"its published speed is of {own.weights} weights, which the request does not admit"
                refuse(workload, machine.device, "format_not_in_engine", detail)
            elif workload.adapters or workload.images or workload.is_mixed or workload.roles != ("aggregated",):
                refuse(workload, machine.device, "figure_missing", "only the speed of one stream is published of it")
            elif missed := missed_target(workload, own):
                refuse(workload, machine.device, "target_missed", missed)
            else:
                found.append(
                    machine_offer(
                        f"{machine.id}:{workload.name}", BOUGHT_BY, machine.region, PURCHASE, machine.usd_per_hour,
                        workload, own,
                    )
                )  # fmt: skip
    return tuple(found), refused


def most_requests_per_s(service: ServiceRow, workload: Workload) -> float:
    """What the seller's limits admit of one account: of requests, and of tokens at the workload's mean lengths."""
    tokens = workload.traffic.prompt.mean + workload.traffic.output.mean
    limits = (
        (service.requests_per_minute, SECONDS["minute"], 1.0),
        (service.tokens_per_minute, SECONDS["minute"], tokens),
        (service.requests_per_day, SECONDS["day"], 1.0),
        (service.tokens_per_day, SECONDS["day"], tokens),
    )
    return min(most / seconds / each for most, seconds, each in limits if most is not None)


def service_behind(offer: PublishedOffer) -> ServiceRow | None:
    """Who sells the tokens of an offer; None for a machine."""
    return next(
        (row for row in read_published().services if (row.seller, row.llm) == (offer.provider, offer.speed.llm_id)),
        None,
    )
