"""Cursor-paged lists."""

from typing import Annotated, Generic, TypeVar

from pydantic import Field

from service.wire.quantities import Answer

Item = TypeVar("Item")
Limit = Annotated[int, Field(ge=1, le=500)]


class Page(Answer, Generic[Item]):
    """One page. ``next`` is what to send as ``?next=`` for the following page; null on the last one."""

    items: list[Item]
    next: str | None
    total: int
