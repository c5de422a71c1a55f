"""An agent reports itself; reporting again is its heartbeat."""

import datetime as dt

from sqlmodel import Session

from service.measurements.queries import agent_by_id
from service.measurements.tables import AgentTable
from service.wire.measurements import RegistrationIn


def register(session: Session, agent_id: str, asked: RegistrationIn, now: dt.datetime) -> AgentTable:
    row = agent_by_id(session, agent_id)
    if row is None:
        row = AgentTable(
            id=agent_id, version=asked.version, hostname=asked.hostname, probe={}, first_seen_at=now, last_seen_at=now
        )
    row.version, row.hostname = asked.version, asked.hostname
    row.device, row.devices, row.probe = asked.device, asked.devices, asked.probe
    row.last_seen_at = now
    session.add(row)
    session.flush()
    return row
