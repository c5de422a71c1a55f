"""SQL about electricity."""

from sqlmodel import Session, select

from service.energy.tables import EnergyTable


def all_energy(session: Session) -> list[EnergyTable]:
    return list(session.exec(select(EnergyTable).order_by(EnergyTable.region)).all())
