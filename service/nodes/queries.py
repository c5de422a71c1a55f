"""SQL about nodes."""

from sqlalchemy import func
from sqlmodel import Session, col, select

from service.devices.queries import device_ids
from service.listing import Listed, listed
from service.nodes.tables import NodeTable


def list_nodes(
    session: Session, *, after: str | None, limit: int, device: str | None = None, kind: str | None = None
) -> Listed[NodeTable]:
    wanted = select(NodeTable)
    if device is not None:
        wanted = wanted.where(func.lower(NodeTable.device_id) == device.lower())
    if kind is not None:
        wanted = wanted.where(func.lower(NodeTable.kind) == kind.lower())
    return listed(session, wanted, NodeTable.id, limit=limit, after=after)


def node_filter_values(session: Session, name: str) -> list[str]:
    """What a filter of nodes may be: every device, and every kind there is."""
    if name == "device":
        return device_ids(session)
    return sorted(session.exec(select(NodeTable.kind).distinct()).all())


def node_by_id(session: Session, node_id: str) -> NodeTable | None:
    return session.get(NodeTable, node_id)


def all_nodes(session: Session) -> list[NodeTable]:
    return list(session.exec(select(NodeTable).order_by(NodeTable.id)).all())


def node_ids(session: Session) -> list[str]:
    return list(session.exec(select(col(NodeTable.id)).order_by(NodeTable.id)).all())
