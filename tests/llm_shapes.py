"""The catalog's language models as solver shapes, for tests that need real architectures."""

import tomllib
from functools import cache
from pathlib import Path

from catalog.rows import LlmRow
from solver.llm_shape import AttentionGroup, FeedForwardGroup, LlmShape
from solver.vision import VisionEncoder

LLMS = Path(__file__).parent.parent / "catalog" / "llms"


def shape_of(row: LlmRow) -> LlmShape:
    fields = row.model_dump(
        exclude={
            "name",
            "hugging_face_id",
            "provenance",
            "published_total_weights",
            "published_active_weights",
            "attention",
            "feed_forward",
            "vision",
        }
    )
    return LlmShape(
        **fields,
        attention=tuple(AttentionGroup(**a.model_dump()) for a in row.attention),
        feed_forward=tuple(FeedForwardGroup(**f.model_dump()) for f in row.feed_forward),
        vision=None if row.vision is None else VisionEncoder(**row.vision.model_dump()),
    )


@cache
def llm_rows() -> dict[str, LlmRow]:
    tables = [t for f in sorted(LLMS.glob("*.toml")) for t in tomllib.loads(f.read_text())["llm"]]
    rows = [LlmRow.model_validate(t) for t in tables]
    assert len({r.id for r in rows}) == len(rows), "an LLM id is listed twice"
    return {r.id: r for r in rows}


@cache
def shape(llm_id: str) -> LlmShape:
    return shape_of(llm_rows()[llm_id])
