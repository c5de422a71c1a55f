"""SQL about the machines and models of a stored plan."""

from collections.abc import Iterable

from sqlmodel import Session, col, select

from service.devices.tables import DeviceTable
from service.llms.tables import LlmTable
from service.nodes.tables import NodeTable
from service.offers.tables import OfferTable


def machines_of(session: Session, nodes: Iterable[str]) -> dict[str, tuple[NodeTable, DeviceTable]]:
    wanted = (
        select(NodeTable, DeviceTable)
        .join(DeviceTable, col(NodeTable.device_id) == DeviceTable.id)
        .where(col(NodeTable.id).in_(set(nodes)))
    )
    return {node.id: (node, device) for node, device in session.exec(wanted).all()}


def offers_of(session: Session, offers: Iterable[str]) -> dict[str, OfferTable]:
    rows = session.exec(select(OfferTable).where(col(OfferTable.id).in_(set(offers)))).all()
    return {row.id: row for row in rows}


def llms_of(session: Session, llms: Iterable[str]) -> dict[str, LlmTable]:
    return {row.id: row for row in session.exec(select(LlmTable).where(col(LlmTable.id).in_(set(llms)))).all()}
