"""SQL about correction sets."""

from collections.abc import Sequence

from sqlmodel import Session, col, select

from service.corrections.tables import CorrectionSetTable


def newest_correction_set(session: Session) -> CorrectionSetTable | None:
    return session.exec(select(CorrectionSetTable).order_by(col(CorrectionSetTable.number).desc()).limit(1)).first()


def correction_set_by_number(session: Session, number: int) -> CorrectionSetTable | None:
    return session.get(CorrectionSetTable, number)


def known_numbers(session: Session) -> Sequence[int]:
    return session.exec(select(CorrectionSetTable.number).order_by(col(CorrectionSetTable.number))).all()


def add_correction_set(session: Session, row: CorrectionSetTable) -> None:
    session.add(row)
