"""POST /v1/offers/import: price lists of others into price steps."""

import datetime as dt
from typing import Annotated, Any, Literal

from pydantic import Field

from service.wire.offers import Confidence, Source
from service.wire.quantities import Answer, Instant, Request, Slug, Usd

ListFormat = Literal["auto", "own", "skypilot", "gpuhunt", "karpenter", "vantage"]
Effect = Literal["price_changes", "cheaper_offer"]


class PricesImportIn(Request):
    """payload: the list, as JSON or as text (CSV). valid_from: the day its prices hold from.

    provider: whose prices they are, where the list does not say. Instances nobody knows are skipped.
    correction: prices stored for the same instant are corrected instead of reported as conflicts.
    dry_run: report only. replan: plan the touched recommendations again, as far as ``most_replans``.
    """

    format: ListFormat = "auto"
    payload: Any
    provider: Slug | None = None
    valid_from: Instant
    source: Source
    confidence: Confidence = "medium"
    correction: bool = False
    dry_run: bool = False
    replan: bool = False
    most_replans: Annotated[int, Field(ge=0, le=50)] = 10


class PriceChangeOut(Answer):
    """usd_per_hour_before: null where the offer had no price."""

    offer: str
    usd_per_hour_before: Usd | None
    usd_per_hour_after: Usd
    change_percent: float | None


class SkippedOut(Answer):
    reason: str
    count: int
    examples: list[str]


class TouchedOut(Answer):
    """A stored recommendation that these prices bear on.

    effect: ``price_changes``: its plan costs something else now; ``cheaper_offer``: an offer it may use is new or got
    cheaper. answered_differently: known for changed plans, and for others once planned again; null otherwise.
    """

    recommendation: str
    effect: Effect
    offers: list[str]
    usd_per_hour_stored: Usd | None
    plan_usd_per_hour_now: Usd | None
    replanned_usd_per_hour: Usd | None
    answered_differently: bool | None


class PricesImportOut(Answer):
    format: str
    dry_run: bool
    valid_from: dt.datetime
    quotes: int
    new_offers: int
    appended: int
    unchanged: int
    conflicts: list[PriceChangeOut]
    """Another price is stored for the same instant; nothing was written for these."""
    changes: list[PriceChangeOut]
    """Largest relative change first."""
    skipped: list[SkippedOut]
    recommendations: list[TouchedOut]
