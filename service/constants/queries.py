"""SQL about constants of the performance model."""

from sqlmodel import Session, select

from service.constants.tables import ConstantTable


def all_constants(session: Session) -> list[ConstantTable]:
    order = (ConstantTable.name, ConstantTable.family, ConstantTable.device, ConstantTable.engine, ConstantTable.llms)
    return list(session.exec(select(ConstantTable).order_by(*order)).all())
