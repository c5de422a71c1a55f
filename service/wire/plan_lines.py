"""Lines of a plan: replicas of one workload on nodes of one offer, what they are predicted to do and where they come from."""

import datetime as dt
from typing import Literal

from pydantic import Field

from service.wire.deployment import LayoutIn, PrecisionIn
from service.wire.devices import DeviceClass
from service.wire.lasting_queue import LastingQueueOut
from service.wire.offers import Confidence
from service.wire.providers import ProviderClass
from service.wire.quantities import (
    Answer,
    Basis,
    Interval,
    Percentiles,
    Usd,
)
from service.wire.roles import DraftingEngineIn
from service.wire.traffic_classes import ClassLineOut

LineRole = Literal["aggregated", "prefill", "decode"]


def _aggregated() -> LineRole:
    """The role of lines stored before there were others."""
    return "aggregated"


class PredictedOut(Answer):
    ttft_ms: Percentiles
    tpot_ms: Percentiles
    e2e_ms: Percentiles
    output_tokens_per_s: Interval
    power_w: Interval | None
    ttfat_ms: Percentiles | None = None
    """Null where no tokens are hidden: it is the first token then."""
    prefix_hit_fraction: float | None = None
    """Null where requests are no turns of sessions."""
    routed_over: int | None = None
    """Null where requests are no turns of sessions."""
    lasting_queue: LastingQueueOut | None = None
    """Null where a queue goes by itself once it has come up."""
    front_end_fraction: float | None = None
    """Null of lines stored before it was said."""


class LinePartitionOut(Answer):
    """Each replica has one instance of a device that is split into ``instances_per_device`` of this profile."""

    profile: str
    instances_per_device: int
    memory_gib: float
    launch: list[str]
    """Commands on a node: for each device that is split, then for each replica."""


class SplitDevicesOut(Answer):
    """``nodes`` nodes of an offer, of each of which ``devices`` are split; all other devices are whole."""

    profile: str
    instances_per_device: int
    devices: int
    nodes: int


class LineSourceOut(Answer):
    """What the buying policy asks of a line's offer."""

    provider_class: ProviderClass | None
    """Null for a provider that nobody has classed, and for one's own machines."""
    device_class: DeviceClass | None
    named_place: bool
    price_confidence: Confidence
    price_age_days: int | None
    """How long before ``price_as_of`` its source stated the price; null for one's own."""
    ask_for_quote: bool
    """Older than ``limits.sourcing.max_price_age_days``."""
    own: bool
    """An offer of the user's, not of the catalog."""


class PlanLineOut(Answer):
    """Replicas of one workload on nodes of one offer."""

    workload: str
    role: LineRole = Field(default_factory=_aggregated)
    """``prefill`` and ``decode`` lines of one workload, provider and region serve the same requests together."""
    offer: str
    provider: str
    region: str
    commitment: str
    node: str
    device: str
    partition: LinePartitionOut | None = None
    """Null where replicas have whole devices."""
    engine: str
    nodes: int
    replicas: int
    layout: LayoutIn
    precision: PrecisionIn
    engine_settings: DraftingEngineIn | None = None
    """What to hand to the engine, and what the prediction assumed; null in plans stored before it was stated."""
    max_concurrency: int
    """Requests that the engine of one replica admits at once."""
    serves_requests_per_s: float
    utilisation_fraction: float
    network_ms: float | None = None
    """Round trip to the users, where stated: what they wait beyond ``predicted``, which is the engine's own."""
    predicted: PredictedOut | None
    """Null in alternatives other than those of why-not, and for replicas that stand by without traffic. Of all traffic classes together."""
    basis: Basis
    usd_per_hour: Usd
    classes: list[ClassLineOut] = Field(default_factory=list)
    """What is routed here of each traffic class; empty where the workload has none."""
    source: LineSourceOut | None = None
    """Null in plans stored before it was stated."""


class TokenServiceOut(Answer):
    """A model as its machines' maker sells it by the token: prices, and how much an account may send."""

    id: str
    tier: str
    usd_per_million_input_tokens: Usd
    usd_per_million_output_tokens: Usd
    seen_on: dt.date
    requests_per_minute: int | None
    tokens_per_minute: int | None
    requests_per_day: int | None
    tokens_per_day: int | None
    source: str


class PublishedLineOut(Answer):
    """A line of a plan that rests on speeds which others measured and published: tokens of a maker that ``limits.by_the_token`` names,
    or machines whose matrix rates nobody publishes.

    Latencies are of the mean request; percentiles were not published. Of tokens ``usd_per_hour`` is of whole twentieths of the
    workload's traffic.
    """

    workload: str
    offer: str
    provider: str
    commitment: str
    device: str
    engine: str
    weights: str
    node: str | None
    """Null for tokens."""
    nodes: int
    serves_requests_per_s: float
    share_fraction: float
    usd_per_hour: Usd
    ttft_ms: Interval
    tpot_ms: Interval
    e2e_ms: Interval
    basis: Basis
    evidence: list[str]
    price_source: str | None
    """Of machines: how the price of an hour comes about."""
    by_the_token: TokenServiceOut | None
    """Null for machines."""


class FleetNodesOut(Answer):
    """All nodes rented at one offer, idle spares included; ``usd_per_hour`` is of all of them."""

    offer: str
    node: str
    device: str
    nodes: int
    usd_per_hour: Usd
    splits: list[SplitDevicesOut] = Field(default_factory=list)
    """Devices that are split into instances."""
