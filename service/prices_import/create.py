"""Import one list: read it, store it, tell what changed and which answers it touches."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from fastapi.concurrency import run_in_threadpool
from pydantic import ValidationError
from sqlmodel import Session, col, select

from service.idempotency.keys import Named, claim, first_answer, settle
from service.nodes.tables import NodeTable
from service.offers.tables import OfferTable
from service.prices_import.queries import BATCH, all_recommendations
from service.prices_import.sandboxed import quotes_of
from service.prices_import.store import MOST_EXAMPLES, PriceChange, Report, store_quotes
from service.prices_import.touched import Touched, touched_recommendations
from service.problems import ProblemError
from service.recommendations.create import PlanningContext, read_inputs
from service.recommendations.plan import PlanningInputs
from service.sandboxed_reading import ReadingApart
from service.wire.prices_import import PriceChangeOut, PricesImportIn, PricesImportOut, SkippedOut, TouchedOut
from service.wire.recommendations import RecommendationIn, ResultOut

log = logging.getLogger("clusterwright")
PERCENT = 100.0
PRICES = "prices"
"""What a key of an import stands for: no single record."""


@dataclass(frozen=True)
class _Imported:
    format: str
    quotes: int
    report: Report
    touched: list[Touched]


async def import_prices(
    asked: PricesImportIn, context: PlanningContext, apart: ReadingApart, named: Named | None = None
) -> PricesImportOut:
    """Stored whole or not at all; planning again comes after and changes nothing stored.

    Under a key the report is kept with it: as it was before planning again, until that is done.
    """
    imported = await run_in_threadpool(_import, asked, context, apart, named)
    if isinstance(imported, PricesImportOut):
        return imported
    replanned: dict[str, ResultOut | None] = {}
    if asked.replan and not asked.dry_run:
        for touched in imported.touched[: asked.most_replans]:
            replanned[touched.plan.recommendation] = await _replan(touched, context)
    report = _present(asked, imported, replanned)
    if replanned and named is not None:
        await run_in_threadpool(_keep, report, context, named)
    return report


def _keep(report: PricesImportOut, context: PlanningContext, named: Named) -> None:
    with context.database.writing() as session:
        settle(session, named, PRICES, report.model_dump(mode="json"))


def _import(
    asked: PricesImportIn, context: PlanningContext, apart: ReadingApart, named: Named | None
) -> _Imported | PricesImportOut:
    """What was stored, or the report of the first time under this key."""
    name, quotes = quotes_of(asked.payload, asked.format, asked.provider, apart)
    with context.database.writing() as session:
        if claim(session, named, context.clock()) is not None:
            return PricesImportOut.model_validate(first_answer(session, named))
        report = store_quotes(session, quotes, asked, context.clock())
        session.flush()
        offers = _offers_and_nodes(session, report.changes)
        touched = touched_recommendations(all_recommendations(session), report.changes, offers)
        imported = _Imported(name, len(quotes), report, touched)
        settle(session, named, PRICES, _present(asked, imported, {}).model_dump(mode="json"))
    return imported


def _offers_and_nodes(session: Session, changes: Sequence[PriceChange]) -> dict[str, tuple[OfferTable, NodeTable]]:
    wanted = sorted(change.quote.offer for change in changes)
    found: dict[str, tuple[OfferTable, NodeTable]] = {}
    for start in range(0, len(wanted), BATCH):
        rows = session.exec(
            select(OfferTable, NodeTable)
            .join(NodeTable, col(OfferTable.node_id) == NodeTable.id)
            .where(col(OfferTable.id).in_(wanted[start : start + BATCH]))
        ).all()
        found.update({offer.id: (offer, node) for offer, node in rows})
    session.expunge_all()  # only their columns are read, after the transaction
    return found


async def _replan(touched: Touched, context: PlanningContext) -> ResultOut | None:
    """The same request at today's prices; None where it cannot be planned now, which the report leaves open."""
    try:
        inputs = await run_in_threadpool(_inputs, touched, context)
        return await context.pool.run("recommendation", lambda: context.plan(inputs))
    except (ProblemError, ValidationError) as problem:
        log.warning("cannot plan %s again: %s", touched.plan.recommendation, problem)
        return None


def _inputs(touched: Touched, context: PlanningContext) -> PlanningInputs:
    with context.database.reading() as session:
        return read_inputs(session, RecommendationIn.model_validate(touched.request), context.clock(), context)


def _present(asked: PricesImportIn, imported: _Imported, replanned: dict[str, ResultOut | None]) -> PricesImportOut:
    report = imported.report
    largest_first = sorted(
        report.changes, key=lambda c: (-abs(c.change_fraction) if c.change_fraction is not None else 0.0, c.quote.offer)
    )
    return PricesImportOut(
        format=imported.format,
        dry_run=asked.dry_run,
        valid_from=asked.valid_from,
        quotes=imported.quotes,
        new_offers=len(report.new_offers),
        appended=0 if asked.dry_run else len(report.changes),
        unchanged=report.unchanged,
        conflicts=[_change(c) for c in report.conflicts],
        changes=[_change(c) for c in largest_first],
        skipped=[
            SkippedOut(reason=reason, count=len(offers), examples=offers[:MOST_EXAMPLES])
            for reason, offers in sorted(report.skipped.items())
        ],
        recommendations=[_touched(t, replanned.get(t.plan.recommendation)) for t in imported.touched],
    )


def _change(change: PriceChange) -> PriceChangeOut:
    fraction = change.change_fraction
    return PriceChangeOut(
        offer=change.quote.offer,
        usd_per_hour_before=change.before,
        usd_per_hour_after=change.quote.usd_per_hour,
        change_percent=None if fraction is None else fraction * PERCENT,
    )


def _touched(touched: Touched, again: ResultOut | None) -> TouchedOut:
    stored = touched.plan.usd_per_hour
    different: bool | None = True if touched.effect == "price_changes" else None
    price: Decimal | None = None
    if again is not None:
        price = again.totals.usd_per_hour if again.totals else None
        different = again.outcome != touched.plan.outcome or price != stored
    return TouchedOut(
        recommendation=touched.plan.recommendation,
        effect=touched.effect,
        offers=list(touched.offers[:MOST_EXAMPLES]),
        usd_per_hour_stored=stored,
        plan_usd_per_hour_now=touched.plan_usd_per_hour,
        replanned_usd_per_hour=price,
        answered_differently=different,
    )
