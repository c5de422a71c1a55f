"""SQL about the machines that fleets are made of."""

from sqlmodel import Session, col, select

from service.devices.tables import DeviceTable
from service.nodes.tables import NodeTable


def machines_known(session: Session) -> list[tuple[NodeTable, DeviceTable]]:
    """Every machine of the catalog with its device."""
    wanted = select(NodeTable, DeviceTable).join(DeviceTable, col(NodeTable.device_id) == DeviceTable.id)
    return list(session.exec(wanted.order_by(col(NodeTable.id))).all())
