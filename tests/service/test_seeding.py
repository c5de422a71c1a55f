"""Catalog files → tables: the same files again change nothing, newer ones append."""

import dataclasses
from collections.abc import Iterator
from decimal import Decimal

import pytest
from sqlalchemy import func
from sqlmodel import select

from catalog.read import Catalog
from service.catalog_release.queries import require_release
from service.database import Database
from service.migrate import migrate
from service.offers.queries import prices_at
from service.offers.tables import PriceStepTable
from service.seeding import seed
from tests.conftest import NOW, FixedClock

OFFER = "aws:p5.48xlarge:us-east-1:on_demand"


@pytest.fixture
def database(empty_url: str) -> Iterator[Database]:
    database = Database(empty_url)
    migrate(database)
    yield database
    database.close()


def repriced(catalog: Catalog, amount: str) -> Catalog:
    """The offer's newest step at another amount."""
    newest = max((p for p in catalog.prices if p.offer == OFFER), key=lambda p: p.valid_from)
    prices = tuple(p.model_copy(update={"usd_per_hour": Decimal(amount)}) if p is newest else p for p in catalog.prices)
    return dataclasses.replace(catalog, prices=prices, digest="another catalog release")


class TestSeed:
    def test_holds_the_whole_catalog(self, database: Database, catalog: Catalog, clock: FixedClock) -> None:
        with database.writing() as session:
            report = seed(session, catalog, clock)
        assert (report.devices, report.nodes, report.offers) == (
            len(catalog.devices), len(catalog.nodes), len(catalog.offers),
        )  # fmt: skip
        assert report.price_steps == len(catalog.prices)
        with database.reading() as session:
            assert require_release(session).digest == catalog.digest

    def test_again_changes_nothing(self, database: Database, catalog: Catalog, clock: FixedClock) -> None:
        for expected in (False, True):
            with database.writing() as session:
                assert seed(session, catalog, clock).unchanged is expected
        with database.reading() as session:
            assert require_release(session).revision == 1

    def test_a_changed_price_is_a_later_belief(self, database: Database, catalog: Catalog, clock: FixedClock) -> None:
        with database.writing() as session:
            seed(session, catalog, clock)
        clock.advance(days=1)
        with database.writing() as session:
            report = seed(session, repriced(catalog, "44.000000"), clock)
        assert (report.price_steps, report.withdrawn, report.devices) == (1, 0, 0)
        with database.reading() as session:
            assert prices_at(session, clock(), offers=[OFFER])[OFFER].usd_per_hour == Decimal(44)
            believed = prices_at(session, clock(), offers=[OFFER], believed_at=NOW)
            assert believed[OFFER].usd_per_hour == Decimal("55.04")

    def test_an_offer_that_is_gone_is_withdrawn(self, database: Database, catalog: Catalog, clock: FixedClock) -> None:
        with database.writing() as session:
            seed(session, catalog, clock)
        clock.advance(days=1)
        less = dataclasses.replace(
            catalog,
            offers={k: v for k, v in catalog.offers.items() if k != OFFER},
            prices=tuple(p for p in catalog.prices if p.offer != OFFER),
            digest="a smaller catalog release",
        )
        with database.writing() as session:
            assert seed(session, less, clock).withdrawn == 1
        with database.reading() as session:
            assert prices_at(session, clock(), offers=[OFFER])[OFFER].usd_per_hour is None
            assert prices_at(session, NOW, offers=[OFFER])[OFFER].usd_per_hour == Decimal("55.04")

    def test_a_failure_leaves_nothing(self, database: Database, catalog: Catalog, clock: FixedClock) -> None:
        broken = dataclasses.replace(catalog, prices=(*catalog.prices, catalog.prices[0]))  # twice the same step
        with pytest.raises(Exception, match=r"(?i)unique"), database.writing() as session:
            seed(session, broken, clock)
        with database.reading() as session:
            assert session.exec(select(func.count()).select_from(PriceStepTable)).one() == 0
