"""Offers that rest on published speeds: tokens of a model, by shares of a workload, and machines that serve one stream at a time.

Neither has a configuration that could be laid out or simulated; how they join the fleet problem: ``solver.planning.published_in_plan``.
"""

import math
from dataclasses import dataclass, replace

from solver.lengths import fixed_lengths
from solver.prediction.published import PublishedSpeed, published_estimate
from solver.units import SECONDS_PER_HOUR, TOKENS_PER_MILLION
from solver.workload import PERCENTILES, Traffic, Workload

BY_THE_TOKEN = "by_the_token"
"""Commitment of an offer of tokens."""
SHARES = 20
"""A workload's tokens are bought for twentieths of its traffic."""


@dataclass(frozen=True, slots=True)
class TokenPrice:
    """US dollars per million tokens."""

    usd_per_million_prompt_tokens: float
    usd_per_million_output_tokens: float

    def usd_per_hour(self, traffic: Traffic, requests_per_s: float) -> float:
        """Of so many requests of this traffic.

        >>> from solver.lengths import fixed_lengths
        >>> TokenPrice(1.0, 2.0).usd_per_hour(Traffic(fixed_lengths(500), fixed_lengths(250)), 1.0)
        3.6
        """
        tokens_usd = (
            traffic.prompt.mean * self.usd_per_million_prompt_tokens
            + traffic.output.mean * self.usd_per_million_output_tokens
        )
        return tokens_usd * requests_per_s * SECONDS_PER_HOUR / TOKENS_PER_MILLION


@dataclass(frozen=True, slots=True)
class PublishedOffer:
    """Units that serve one workload. requests_per_s: of a unit, all of which may be used. most_units: None is as many as of any offer.

    usd_per_hour: of a unit.
    """

    id: str
    workload: str
    provider: str
    region: str
    commitment: str
    usd_per_hour: float
    requests_per_s: float
    most_units: int | None
    speed: PublishedSpeed


@dataclass(frozen=True, slots=True)
class PublishedEntry:
    """Units of one offer in a plan. share_fraction: of the workload's traffic that is routed to them."""

    offer: PublishedOffer
    units: int
    serves_requests_per_s: float
    share_fraction: float

    @property
    def usd_per_hour(self) -> float:
        return self.units * self.offer.usd_per_hour


def tokens_offer(
    offer_id: str, seller: str, workload: Workload, price: TokenPrice, most_requests_per_s: float, speed: PublishedSpeed
) -> PublishedOffer | None:
    """The tokens of a workload, in shares of its traffic, as many as the seller's limits admit; None where not even one is."""
    unit = workload.requests_per_s / SHARES
    units = min(SHARES, math.floor(most_requests_per_s / unit * (1.0 + 1e-9)))
    if units < 1:
        return None
    usd = price.usd_per_hour(workload.traffic, unit)
    return PublishedOffer(offer_id, workload.name, seller, seller, BY_THE_TOKEN, usd, unit, units, speed)


def machine_offer(
    offer_id: str,
    provider: str,
    region: str,
    commitment: str,
    usd_per_hour: float,
    workload: Workload,
    speed: PublishedSpeed,
) -> PublishedOffer:
    """Machines that serve one stream each, at the workload's utilisation limit of what the slow end of the interval allows."""
    rate = workload.utilisation_limit_fraction * published_estimate(speed, workload.traffic).requests_per_s.low
    return PublishedOffer(offer_id, workload.name, provider, region, commitment, usd_per_hour, rate, None, speed)


def missed_target(workload: Workload, speed: PublishedSpeed) -> str | None:
    """The first target that the published speed does not keep, or cannot be told to keep; None where it keeps all.

    Above even odds it is the slow end of the interval that must keep them, at the longest prompt and reply. A machine that serves
    one stream at a time lets others wait, and for how long nobody has published.
    """
    targets = workload.only.targets
    found = published_estimate(speed, workload.traffic)
    longest = published_estimate(speed, _longest(workload.traffic))
    sure = targets.confidence_fraction > 0.5
    token = found.time_per_output_token_s.high if sure else found.time_per_output_token_s.expected
    first = longest.time_to_first_token_s.high if sure else longest.time_to_first_token_s.expected
    whole = longest.end_to_end_s.high if sure else longest.end_to_end_s.expected
    for name, wanted, reached, waits in (
        ("tpot", targets.time_per_output_token_s, token, False),
        ("ttft", targets.time_to_first_token_s, first, True),
        ("e2e", targets.end_to_end_s, whole, True),
    ):
        for percentile in PERCENTILES:
            if percentile in wanted:
                if waits and not speed.shared:
                    return f"{name} {percentile} of requests that wait for one another is not published"
                if reached > wanted[percentile]:
                    return (
                        f"{name} {percentile} up to {reached * 1e3:,.0f} ms (target {wanted[percentile] * 1e3:,.0f} ms)"
                    )
    return None


def _longest(traffic: Traffic) -> Traffic:
    return replace(traffic, prompt=fixed_lengths(traffic.prompt.maximum), output=fixed_lengths(traffic.output.maximum))
