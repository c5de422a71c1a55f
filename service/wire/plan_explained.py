"""What is said of a plan beside its lines: other plans, what limits cost, what is missing, what to know before signing."""

import datetime as dt
from typing import Literal

from pydantic import Field

from service.wire.plan_lines import PlanLineOut, PublishedLineOut
from service.wire.quantities import (
    Answer,
    Usd,
)


class PoolsOut(Answer):
    """Whether prefill and decode got pools of their own.

    ``saves_usd_per_hour``: over the best plan without, null where there is none. ``extra_usd_per_hour``: what they would
    cost on top where they were not chosen; null where that is not known. ``reason``: why they were not.
    """

    chosen: bool
    saves_usd_per_hour: Usd | None
    extra_usd_per_hour: Usd | None
    reason: str | None


class AlternativeOut(Answer):
    why: str
    extra_usd_per_hour: Usd | None
    """Null where no plan exists that way. Under another objective than cost, what it happens to cost beside."""
    less_served_requests_per_s: float | None = None
    """Under the objective throughput: how much less it serves."""
    extra_power_kw: float | None = None
    """Under the objective power: how much more it draws."""
    plan: list[PlanLineOut]
    published_lines: list[PublishedLineOut] = Field(default_factory=list)


class BindingOut(Answer):
    """A limit that the plan would be better without: what relaxing it to ``relaxing_to`` gains, by solving again.

    One of three, by the objective: money for cost, requests for throughput, power for power.
    """

    limit: str
    workload: str | None
    relaxing_to: float | str
    saves_usd_per_hour: Usd | None = None
    serves_more_requests_per_s: float | None = None
    saves_power_kw: float | None = None


class SourcingChangeOut(Answer):
    """What one rule of the buying policy costs: the request solved again without it.

    ``rule``: null for the whole policy; ``limits.commitments``: with machines on demand too, where only commitments were
    asked for. What is saved is 0 where nothing better comes of it; then ``plan`` is empty. One of three is stated, by the
    objective.
    """

    rule: str | None
    saves_usd_per_hour: Usd | None = None
    serves_more_requests_per_s: float | None = None
    saves_power_kw: float | None = None
    usd_per_hour: Usd | None
    """Of the whole plan without the rule."""
    plan: list[PlanLineOut]
    published_lines: list[PublishedLineOut] = Field(default_factory=list)


class CautionOut(Answer):
    """What to know before signing.

    ``one_replica``, ``one_node``, ``no_spare``: what a lost node does, where nothing was asked to survive it.
    ``interval_crosses_target``: a prediction is expected to keep its target and may not. ``old_price``: ask for a quote.
    ``commitment_dearer``: the same machine costs no more without the commitment that was asked for. ``bought``: nobody rents the
    machine out, so its hours are those of one that is bought, and how they were priced. ``capacity_block``: booked for certain
    days and paid in advance. ``unmeasured``: predictions of the device rest on physics, or on runs of a sibling.
    ``drafting``: targets are kept as far as drafts are accepted as often as was stated. ``host_cache``: caches take memory of the
    host, which must be there beside all else that runs on it. ``disk_cache``: they take local disks too, of which only
    the stated rate is known. ``published_speed``: a line rests on speeds
    that others measured; tokens leave the house, and their seller limits the rate. ``sessions``: hits hold as far as turns are
    routed as was stated. ``extended_context``: requests may be longer than the context the model is published with.
    ``spot``: the seller may take the machines back. ``lasting_queue``: what is asked of replicas is more than they complete once
    requests wait for seats. ``front_end``: replicas answer from several processes, on a machine of
    which nobody states how many processors it has.
    """

    about: Literal[
        "drafting",
        "extended_context",
        "sessions",
        "host_cache",
        "disk_cache",
        "one_replica",
        "one_node",
        "no_spare",
        "interval_crosses_target",
        "lasting_queue",
        "front_end",
        "old_price",
        "commitment_dearer",
        "bought",
        "capacity_block",
        "unmeasured",
        "published_speed",
        "spot",
    ]
    workload: str
    offer: str
    detail: str


class LowerPrecisionOut(Answer):
    """The same request where 8-bit weights and an 8-bit cache are allowed beside the checkpoint's own formats, solved.

    Whether answers stay good enough is for an evaluation of the model to say. What is saved is 0 where nothing better comes of it;
    then ``plan`` is empty. One of three is stated, by the objective; none of them where there is no plan without: then ``plan`` is one
    that there would be, or empty.
    """

    saves_usd_per_hour: Usd | None = None
    serves_more_requests_per_s: float | None = None
    saves_power_kw: float | None = None
    usd_per_hour: Usd | None
    """Of the whole plan that way; null where there is none."""
    plan: list[PlanLineOut]
    published_lines: list[PublishedLineOut] = Field(default_factory=list)


class WinsBelowOut(Answer):
    """From which price machines that nobody sells would be the cheapest plan, taken alone."""

    node: str
    nodes: int
    """So many serve the request."""
    usd_per_hour: Usd
    """Of one node, US dollars an hour."""
    best_usd_per_hour: Usd
    """Of the best plan of what is sold, devices that were not asked for included; US dollars an hour."""


class ByTokenOut(Answer):
    """What the maker of a device asks for tokens of the model, served on machines of its own. ``id``: among ``/v1/api-prices``, and
    as ``api.model`` of a comparison of costs."""

    id: str
    usd_per_million_input_tokens: Usd
    usd_per_million_output_tokens: Usd
    seen_on: dt.date


class RejectedOut(Answer):
    workload: str
    traffic_class: str | None = None
    """Whose targets are missed; null where it is the candidate itself, and without traffic classes."""
    device: str
    partition: str | None = None
    """The profile, where instances of the device are meant."""
    reason: str
    count: int
    nearest: str | None
    wins_below: WinsBelowOut | None = None
    """Of ``no_offer`` and objective ``cost``; null where they do not serve the request, or there was no time to find out."""
    by_token: list[ByTokenOut] = Field(default_factory=list)
    """Of ``no_offer`` and ``figure_missing``: the model at the device's maker by the token, cheapest replies first. Empty where it does
    not sell that, and in answers stored before it was stated."""


class ContextOut(Answer):
    """The context a workload is served with."""

    workload: str
    traffic_class: str | None = None
    context_tokens: int
    clipped_fraction: float
    """Share of the requests that are longer, and end there."""


class LeftOutOut(Answer):
    """What was asked for and is not in the catalog: no proof covers it.

    ``price_missing``: machines without a known price for the commitment ``what``. ``figure_missing``: devices of which the
    figure ``what`` is not published. ``count``: of machines or devices; ``names``: the first of them; ``devices``: how many of each.
    """

    reason: Literal["price_missing", "figure_missing"]
    what: str
    count: int
    names: list[str]
    devices: dict[str, int]


class ConflictOut(Answer):
    """Limits that together rule everything out."""

    limits: list[str]
    detail: str


class RelaxationOut(Answer):
    """One smallest change that makes the request feasible, and the price of the plan it allows; null where that is not known to
    one per cent. A target may come twice: at its smallest, and a little looser where that costs less than half."""

    limit: str
    workload: str | None
    relaxing_from: float | str | None
    relaxing_to: float | str | None
    usd_per_hour: Usd | None
