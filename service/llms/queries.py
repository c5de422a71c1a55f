"""SQL about language models."""

from sqlalchemy import func
from sqlmodel import Session, col, select

from service.listing import Listed, listed
from service.llms.tables import LlmTable


def list_llms(
    session: Session, *, after: str | None, limit: int, family: str | None = None, origin: str | None = None
) -> Listed[LlmTable]:
    wanted = select(LlmTable)
    if family is not None:
        wanted = wanted.where(func.lower(LlmTable.family) == family.lower())
    if origin is not None:
        wanted = wanted.where(func.lower(LlmTable.origin) == origin.lower())
    return listed(session, wanted, LlmTable.id, limit=limit, after=after)


def llm_filter_values(session: Session, name: str) -> list[str]:
    """What models have in a column that lists are filtered by."""
    column = {"family": LlmTable.family, "origin": LlmTable.origin}[name]
    return sorted({*session.exec(select(column).distinct()).all(), *(("catalog", "user") if name == "origin" else ())})


def llm_by_id(session: Session, llm_id: str) -> LlmTable | None:
    return session.get(LlmTable, llm_id)


def llms_by_ids(session: Session, wanted: set[str]) -> list[LlmTable]:
    return list(session.exec(select(LlmTable).where(col(LlmTable.id).in_(wanted))).all())


def hub_names_by_id(session: Session) -> dict[str, str | None]:
    """Every model's name on Hugging Face, where it has one."""
    return {row.id: row.row.get("hugging_face_id") for row in session.exec(select(LlmTable)).all()}


def llm_ids(session: Session) -> list[str]:
    return list(session.exec(select(col(LlmTable.id)).order_by(LlmTable.id)).all())
