"""SQL about stored comparisons, and about what they are made of."""

import datetime as dt
from collections.abc import Iterable

from sqlmodel import Session, col, select

from service.devices.tables import DeviceTable
from service.energy.tables import EnergyTable
from service.nodes.tables import NodeTable
from service.offers.queries import prices_at
from service.offers.tables import OfferTable, PriceStepTable
from service.recommendations.tables import RecommendationTable
from service.tco.tables import ComparisonTable
from service.training.tables import TrainingPlanTable


def comparison_by_id(session: Session, comparison_id: str) -> ComparisonTable | None:
    return session.get(ComparisonTable, comparison_id)


def recommendations_by_ids(session: Session, ids: Iterable[str]) -> dict[str, RecommendationTable]:
    wanted = select(RecommendationTable).where(col(RecommendationTable.id).in_(set(ids)))
    return {row.id: row for row in session.exec(wanted).all()}


def training_plans_by_ids(session: Session, ids: Iterable[str]) -> dict[str, TrainingPlanTable]:
    wanted = select(TrainingPlanTable).where(col(TrainingPlanTable.id).in_(set(ids)))
    return {row.id: row for row in session.exec(wanted).all()}


def machines_by_ids(session: Session, nodes: Iterable[str]) -> dict[str, tuple[NodeTable, DeviceTable]]:
    wanted = (
        select(NodeTable, DeviceTable)
        .join(DeviceTable, col(NodeTable.device_id) == DeviceTable.id)
        .where(col(NodeTable.id).in_(set(nodes)))
    )
    return {node.id: (node, device) for node, device in session.exec(wanted).all()}


def machines_of_devices(session: Session, devices: Iterable[str]) -> list[tuple[NodeTable, DeviceTable]]:
    """Every machine that holds one of the devices, in the order of their ids."""
    wanted = (
        select(NodeTable, DeviceTable)
        .join(DeviceTable, col(NodeTable.device_id) == DeviceTable.id)
        .where(col(NodeTable.device_id).in_(set(devices)))
        .order_by(col(NodeTable.id))
    )
    return list(session.exec(wanted).all())


def priced_offers(
    session: Session, offers: Iterable[str], instant: dt.datetime
) -> dict[str, tuple[OfferTable, PriceStepTable | None]]:
    """Those of the offers that are stored, with the price in force."""
    ids = set(offers)
    rows = session.exec(select(OfferTable).where(col(OfferTable.id).in_(ids))).all()
    prices = prices_at(session, instant, offers=ids)
    return {row.id: (row, prices.get(row.id)) for row in rows}


def offering_providers(session: Session) -> list[str]:
    return list(session.exec(select(col(OfferTable.provider)).distinct()).all())


def energy_by_region(session: Session, region: str) -> EnergyTable | None:
    return session.get(EnergyTable, region)


def energy_regions(session: Session) -> list[str]:
    return list(session.exec(select(col(EnergyTable.region)).order_by(EnergyTable.region)).all())
