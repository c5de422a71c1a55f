"""Add a language model from its Hugging Face ``config.json``."""

from pydantic import ValidationError
from sqlmodel import Session

from catalog.huggingface import ConfigError, llm_row_from_config
from service.catalog_release.queries import record_change
from service.clock import Clock
from service.llms.queries import llm_by_id
from service.llms.tables import LlmTable
from service.problems import ConflictError, FieldError, InvalidFieldsError
from service.wire.llms import LlmIn


def create_llm(session: Session, asked: LlmIn, clock: Clock) -> tuple[LlmTable, bool]:
    """The stored model, and whether it is new. The same config again changes nothing; another under its id is 409."""
    now = clock()
    try:
        row = llm_row_from_config(
            asked.id, asked.config, hugging_face_id=asked.hugging_face_id, imported_on=now.date(), embeds=asked.embeds
        )
    except ConfigError as bad:
        raise InvalidFieldsError([FieldError(str(bad), pointer="/config")]) from None
    except ValidationError as bad:
        errors = [FieldError(f"{'.'.join(map(str, e['loc']))}: {e['msg']}", pointer="/config") for e in bad.errors()]
        raise InvalidFieldsError(errors) from None
    table = LlmTable(id=row.id, family=row.family, origin="user", row=row.model_dump(mode="json"))
    stored = llm_by_id(session, row.id)
    if stored is None:
        session.add(table)
        shape = {k: v for k, v in table.row.items() if k != "provenance"}
        record_change(session, "llm", shape, now)
        return table, True
    if _architecture(stored) != _architecture(table):
        raise ConflictError(f"an llm {row.id!r} with another architecture is stored; choose another id")
    held = stored.row.get("hugging_face_id")
    if asked.hugging_face_id not in (None, held):
        raise ConflictError(f"the llm {row.id!r} is stored with {held or 'no checkpoint'}; choose another id")
    return stored, False


def _architecture(table: LlmTable) -> dict[str, object]:
    """What two configs must agree in to be the same model: everything but names and provenance."""
    beside = {"provenance", "name", "hugging_face_id", "family", "published_total_weights", "published_active_weights"}
    later = (
        "embeds",
        "bidirectional",
        "extended_context_tokens",
    )  # rows stored before there were any such models say nothing of it
    return {k: v for k, v in table.row.items() if k not in beside and (v or k not in later)}
