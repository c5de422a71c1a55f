"""Routers that keep sessions to a replica, as their makers document them: ``engines/routers.toml``."""

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from catalog.rows import Provenance, Row, Slug

FILE = Path(__file__).with_name("engines") / "routers.toml"
Words = Annotated[tuple[str, ...], Field(min_length=1)]


class EngineRouterRow(Row):
    """A router for replicas of one engine. sticky, prefix_aware: its words for that routing, None where it has none.

    needs_header: sessions are told apart by a header that clients send.
    """

    engine: Slug
    name: str
    command: Words
    discovery: Words
    sticky: Words | None = None
    prefix_aware: Words | None = None
    needs_header: bool
    provenance: Provenance

    def words(self, routing: str) -> tuple[str, ...] | None:
        """The command line for this routing, with what is left to fill in; None where the router does not do it.

        >>> read_engine_routers()["sglang"].words("prefix_aware")[-2:], read_engine_routers()["vllm"].words("random")
        (('--policy', 'cache_aware'), None)
        """
        policy = {"sticky": self.sticky, "prefix_aware": self.prefix_aware}.get(routing)
        return None if policy is None else (*self.command, *self.discovery, *policy)


@lru_cache(maxsize=1)
def read_engine_routers() -> dict[str, EngineRouterRow]:
    """By engine."""
    rows = tomllib.loads(FILE.read_text(encoding="utf-8"))["router"]
    return {row.engine: row for row in map(EngineRouterRow.model_validate, rows)}
