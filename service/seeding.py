"""Catalog files → tables. Run again with the same files it does nothing, except that constants which are gone come back;
with newer files it adds what is new.

Sourced rows are brought up to date; prices are only ever appended: a changed amount for a stored instant is a later
belief, and an offer that the files no longer hold is withdrawn by a step without a price. What users added is left
alone, even where the files now hold the same id.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select as sql_select
from sqlmodel import Session, SQLModel, col, delete, insert, select

from catalog.correction_rows import CorrectionSetRow
from catalog.read import Catalog
from catalog.rows import DeviceLineRow, PartitionRow, Row
from service.benchmarks.own_runs import store_own_runs
from service.catalog_release.queries import current_release, record_change, record_seeding
from service.clock import Clock
from service.constants.needed import lacking
from service.constants.tables import ConstantTable
from service.corrections.queries import add_correction_set, known_numbers
from service.corrections.tables import CorrectionSetTable
from service.devices.tables import DeviceTable
from service.energy.tables import EnergyTable
from service.llms.tables import LlmTable
from service.nodes.tables import NodeTable
from service.offers.queries import prices_at
from service.offers.tables import OfferTable, PriceStepTable
from service.providers.queries import providers_by_id
from service.providers.standing import standing
from service.providers.tables import ProviderTable

END_OF_TIME = dt.datetime(9999, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True)
class SeedingReport:
    """What changed. ``unchanged``: this catalog release was there already."""

    digest: str
    unchanged: bool
    devices: int = 0
    nodes: int = 0
    llms: int = 0
    offers: int = 0
    price_steps: int = 0
    withdrawn: int = 0
    kept_for_users: int = 0
    benchmarks: int = 0


def seed(session: Session, catalog: Catalog, clock: Clock) -> SeedingReport:
    """Bring the tables to this catalog release, in the caller's transaction."""
    release = current_release(session)
    now = clock()
    if release is not None and release.seeded_digest == catalog.digest:
        return SeedingReport(catalog.digest, unchanged=not _restore_constants(session, catalog, now))
    record_seeding(session, catalog.digest, now)
    made = {d.id: _device(d, catalog.device_lines[d.id], catalog.partitions) for d in catalog.devices.values()}
    devices = _upsert(session, DeviceTable, made)
    _replace_all(session, ProviderTable, [_provider(p) for p in catalog.providers.values()])
    known = providers_by_id(session)
    nodes = _upsert(session, NodeTable, {n.id: _node(n) for n in catalog.nodes.values()})
    llms = {row.id: _llm(row) for row in catalog.llms.values()}
    offers = {o.id: _offer(o) | standing(o.provider, o.region, known)._asdict() for o in catalog.offers.values()}
    kept = _drop_users(session, LlmTable, llms) + _drop_users(session, OfferTable, offers)
    llm_count = _upsert(session, LlmTable, llms)
    offer_count = _upsert(session, OfferTable, offers)
    _stand_anew(session, known)
    _replace_all(session, ConstantTable, [_constant(c) for c in catalog.constants])
    _replace_all(session, EnergyTable, [{"region": e.region, "row": _document(e)} for e in catalog.energy.values()])
    _add_correction_sets(session, catalog.corrections, now)
    steps = _new_price_steps(session, catalog, offers, now)
    withdrawals = _withdrawals(session, set(catalog.offers), catalog.digest, now)
    if steps or withdrawals:
        session.execute(insert(PriceStepTable), steps + withdrawals)
    runs = store_own_runs(session, catalog.benchmarks, now)
    return SeedingReport(
        catalog.digest, False, devices, nodes, llm_count, offer_count, len(steps), len(withdrawals), kept, runs
    )


def _restore_constants(session: Session, catalog: Catalog, now: dt.datetime) -> bool:
    """Constants that somebody took out of the tables, and without which nothing is planned; values that were changed stay."""
    gone = lacking(session, catalog.constants)
    if gone:
        record_change(
            session, "constants", {"restored": [[row.name, row.family, row.device, row.engine] for row in gone]}, now
        )
        session.execute(insert(ConstantTable), [_constant(row) for row in gone])
    return bool(gone)


def _add_correction_sets(session: Session, corrections: Sequence[CorrectionSetRow], now: dt.datetime) -> None:
    """Sets whose number is not known yet; a stored one never changes."""
    known = set(known_numbers(session))
    for row in corrections:
        if row.number not in known:
            content = row.model_dump(mode="json")
            add_correction_set(
                session, CorrectionSetTable(number=row.number, made_at=now, origin="catalog", content=content)
            )


def _document(row: Row) -> dict[str, Any]:
    return row.model_dump(mode="json")


def _device(row: Any, line: DeviceLineRow, partitions: Sequence[PartitionRow]) -> dict[str, Any]:
    columns = {name: getattr(row, name) for name in ("id", "vendor", "family", "category", "status")}
    own = [one.model_dump(mode="json", exclude={"device"}) for one in partitions if one.device == row.id]
    sold_for = {"device_class": line.device_class, "device_class_source": f"{line.name}: {line.provenance.source}"}
    document = _document(row) | sold_for | {"partitions": own}
    return columns | {"device_class": line.device_class, "row": document}


def _node(row: Any) -> dict[str, Any]:
    return {"id": row.id, "device_id": row.device, "devices": row.devices, "kind": row.kind, "row": _document(row)}


def _llm(row: Any) -> dict[str, Any]:
    return {"id": row.id, "family": row.family, "origin": "catalog", "row": _document(row)}


def _offer(row: Any) -> dict[str, Any]:
    names = ("id", "provider", "instance", "region", "commitment", "max_nodes", "notes")
    return {name: getattr(row, name) for name in names} | {"node_id": row.node, "origin": "catalog"}


def _provider(row: Any) -> dict[str, Any]:
    return {"id": row.id, "provider_class": row.provider_class, "row": _document(row)}


def _stand_anew(session: Session, known: Mapping[str, ProviderTable]) -> None:
    """Offers of users and of price lists stand as the providers' rows now say."""
    for offer in session.exec(select(OfferTable).where(OfferTable.origin != "catalog")).all():
        offer.sqlmodel_update(standing(offer.provider, offer.region, known)._asdict())


def _constant(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in ("name", "family", "device", "engine")} | {
        "llms": row.of_llms,
        "row": _document(row),
    }


def _upsert(session: Session, table: type[SQLModel], wanted: Mapping[str, dict[str, Any]]) -> int:
    """Insert what is new, change what differs; returns how many rows that were."""
    stored = {row.id: row for row in session.exec(select(table)).all()}  # type: ignore[attr-defined]  # all have one
    new = [values for key, values in wanted.items() if key not in stored]
    changed = 0
    for key, values in wanted.items():
        row = stored.get(key)
        if row is not None and any(getattr(row, name) != value for name, value in values.items()):
            row.sqlmodel_update(values)
            changed += 1
    if new:
        session.execute(insert(table), new)
    session.flush()
    return len(new) + changed


def _drop_users(session: Session, table: type[LlmTable] | type[OfferTable], wanted: dict[str, dict[str, Any]]) -> int:
    """Take out of ``wanted`` what a user stored under the same id; returns how many."""
    users = session.exec(select(table.id).where(table.origin == "user")).all()
    return sum(wanted.pop(key, None) is not None for key in users)


def _replace_all(session: Session, table: type[SQLModel], rows: list[dict[str, Any]]) -> None:
    session.execute(delete(table))
    if rows:
        session.execute(insert(table), rows)


def _new_price_steps(
    session: Session, catalog: Catalog, offers: Mapping[str, Any], now: dt.datetime
) -> list[dict[str, Any]]:
    believed = _beliefs(session)
    steps = []
    for price in catalog.prices:
        if price.offer not in offers:
            continue
        valid_from = dt.datetime.combine(price.valid_from, dt.time(), dt.UTC)
        key = (price.offer, valid_from)
        if key in believed and believed[key] == price.usd_per_hour:
            continue
        steps.append(
            {"offer_id": price.offer, "valid_from": valid_from, "usd_per_hour": price.usd_per_hour,
             "source": price.source, "retrieved_on": price.retrieved_on, "confidence": price.confidence,
             "recorded_at": now}
        )  # fmt: skip
    return steps


def _beliefs(session: Session) -> dict[tuple[str, dt.datetime], Any]:
    """Amount by offer and instant, latest correction last and so in force."""
    columns = (col(PriceStepTable.offer_id), col(PriceStepTable.valid_from), col(PriceStepTable.usd_per_hour))
    rows = session.execute(sql_select(*columns).order_by(col(PriceStepTable.recorded_at)))
    return {(offer_id, valid_from): usd for offer_id, valid_from, usd in rows}


def _withdrawals(session: Session, in_files: set[str], digest: str, now: dt.datetime) -> list[dict[str, Any]]:
    """A step without a price for every offer of an earlier catalog release that these files no longer hold."""
    stored = session.exec(select(OfferTable.id).where(OfferTable.origin == "catalog")).all()
    gone = [offer_id for offer_id in stored if offer_id not in in_files]
    last = prices_at(session, END_OF_TIME, offers=gone) if gone else {}
    return [
        {"offer_id": offer_id, "valid_from": now, "usd_per_hour": None,
         "source": f"no longer in the catalog (catalog release {digest[:12]})", "retrieved_on": now.date(),
         "confidence": "high", "recorded_at": now}
        for offer_id, step in last.items()
        if step.usd_per_hour is not None
    ]  # fmt: skip
