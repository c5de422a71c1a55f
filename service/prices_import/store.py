"""Match quotes with offers and append price steps, all in one transaction, reported line by line."""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal

from sqlmodel import Session

from service.catalog_release.queries import record_change
from service.offers.queries import prices_at
from service.offers.tables import OfferTable, PriceStepTable
from service.prices_import.queries import nodes_of_instances, steps_at_instant, stored_ids
from service.prices_import.quote import Quote
from service.providers.queries import providers_by_id
from service.providers.standing import SellerStanding, standing
from service.wire.prices_import import PricesImportIn

MOST_EXAMPLES = 5
UNKNOWN_INSTANCE = "no offer of this instance type is stored, so its node is not known"
MALFORMED = "the name of its instance or region cannot be part of an offer's id"


@dataclass(frozen=True, slots=True)
class PriceChange:
    """An offer's price in force before, and by this list."""

    quote: Quote
    before: Decimal | None

    @property
    def change_fraction(self) -> float | None:
        return None if not self.before else float(self.quote.usd_per_hour / self.before) - 1.0


@dataclass(slots=True)
class Report:
    new_offers: list[str] = field(default_factory=list)
    changes: list[PriceChange] = field(default_factory=list)
    unchanged: int = 0
    conflicts: list[PriceChange] = field(default_factory=list)
    skipped: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))


def store_quotes(session: Session, quotes: list[Quote], asked: PricesImportIn, now: dt.datetime) -> Report:
    """Nothing is overwritten: a price already in force is left alone, another one for the same instant is a conflict
    unless this is a correction, and a correction is a later belief beside the earlier one.
    """
    report = Report()
    known = _matched(session, quotes, report)
    in_force = _prices(session, known, asked.valid_from)
    at_instant = steps_at_instant(session, (quote.offer for quote, _ in known), asked.valid_from)
    offers = stored_ids(session, (quote.offer for quote, _ in known))
    sellers = providers_by_id(session)
    added: list[OfferTable] = []
    steps: list[PriceStepTable] = []
    for quote, node in known:
        before = in_force.get(quote.offer)
        same_instant = at_instant.get(quote.offer)
        if before == quote.usd_per_hour:
            report.unchanged += 1
            continue
        change = PriceChange(quote, before)
        if same_instant is not None and not asked.correction:
            report.conflicts.append(change)
            continue
        report.changes.append(change)
        if quote.offer not in offers:
            report.new_offers.append(quote.offer)
            added.append(_offer(quote, node, standing(quote.provider, quote.region, sellers)))
        recorded = now if same_instant is None else max(now, same_instant.recorded_at + dt.timedelta(microseconds=1))
        steps.append(_step(quote, asked, now, recorded))
    if not asked.dry_run:
        session.add_all(added)
        session.flush()  # a step's offer must be there before it
        session.add_all(steps)
    if report.changes and not asked.dry_run:
        prices = {change.quote.offer: str(change.quote.usd_per_hour) for change in report.changes}
        fact = {"valid_from": asked.valid_from.isoformat(), "source": asked.source, "prices": prices}
        record_change(session, "prices", fact, now)
    return report


def _matched(session: Session, quotes: list[Quote], report: Report) -> list[tuple[Quote, str]]:
    """Quotes of instances whose node is known; the rest is told."""
    nodes = nodes_of_instances(session, {quote.provider for quote in quotes})
    known = []
    for quote in quotes:
        node = nodes.get((quote.provider, quote.instance))
        if not quote.is_well_formed:
            report.skipped[MALFORMED].append(quote.offer)
        elif node is None:
            report.skipped[UNKNOWN_INSTANCE].append(quote.offer)
        else:
            known.append((quote, node))
    return known


def _prices(session: Session, known: Iterable[tuple[Quote, str]], instant: dt.datetime) -> dict[str, Decimal]:
    wanted = {quote.offer for quote, _ in known}
    steps = prices_at(session, instant)
    return {
        offer: step.usd_per_hour for offer, step in steps.items() if offer in wanted and step.usd_per_hour is not None
    }


def _offer(quote: Quote, node: str, stands: SellerStanding) -> OfferTable:
    return OfferTable(
        id=quote.offer, provider=quote.provider, instance=quote.instance, region=quote.region,
        commitment=quote.commitment, node_id=node, max_nodes=None, notes="", origin="import",
        provider_class=stands.provider_class, named_place=stands.named_place,
    )  # fmt: skip


def _step(quote: Quote, asked: PricesImportIn, now: dt.datetime, recorded_at: dt.datetime) -> PriceStepTable:
    return PriceStepTable(
        offer_id=quote.offer, valid_from=asked.valid_from, usd_per_hour=quote.usd_per_hour, source=asked.source,
        retrieved_on=now.date(), confidence=asked.confidence, recorded_at=recorded_at,
    )  # fmt: skip
