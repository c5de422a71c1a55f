"""Cursors: the last id of a page, opaque to clients. Lists are ordered by id, so pages stay stable while rows come."""

import base64
import binascii
from collections.abc import Sequence
from typing import Annotated, TypeVar

from fastapi import Query

from service.problems import FieldError, InvalidFieldsError

Row = TypeVar("Row")
Limit = Annotated[int, Query(ge=1, le=500, description="Entries of one page.")]
Next = Annotated[str | None, Query(alias="next", max_length=600, description="The `next` of the page before.")]


def cursor_after(last_id: str) -> str:
    """
    >>> last_id("next", cursor_after("h200-sxm"))
    'h200-sxm'
    """
    return base64.urlsafe_b64encode(last_id.encode()).decode().rstrip("=")


def last_id(parameter: str, cursor: str | None) -> str | None:
    if cursor is None:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        decoded = base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeError):
        decoded = ""
    if not decoded or "\x00" in decoded:
        raise InvalidFieldsError([FieldError("not a cursor that this service gave out", parameter=parameter)])
    return decoded


def cut_page(rows: Sequence[Row], limit: int, row_id: str = "id") -> tuple[list[Row], str | None]:
    """Rows were read with ``limit + 1``: whether there is a next page is known without counting."""
    page = list(rows[:limit])
    return page, cursor_after(getattr(page[-1], row_id)) if len(rows) > limit else None
