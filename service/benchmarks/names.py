"""The catalog's names, kept between uploads: an upload must not read hundreds of rows."""

import threading

from fastapi import FastAPI

from service.benchmarks.known import KnownNames
from service.benchmarks.queries import known_names, release_revision
from service.database import Database
from service.freshness import Freshness

RECHECKED_AFTER_S, OLDEST_S = 1.0, 3.0
"""When a kept copy is read again, and how old it may be; a name it lacks is looked up afresh before it is refused."""


class CatalogNames:
    """One copy for the application, read again when the catalog's revision changed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: KnownNames | None = None
        self._revision = -1
        self._freshness = Freshness(RECHECKED_AFTER_S, OLDEST_S)

    def kept(self) -> KnownNames | None:
        """Names that were right a moment ago, None when they must be read again."""
        return self._kept if self._freshness.usable() else None

    def recent(self, database: Database) -> KnownNames:
        """Names that were right a moment ago."""
        return self.kept() or self.fresh(database)

    def fresh(self, database: Database) -> KnownNames:
        """Names as of now."""
        with self._lock, database.reading() as session:
            revision = release_revision(session)
            if self._kept is None or revision != self._revision:
                self._kept, self._revision = known_names(session), revision
            self._freshness.renewed()
            return self._kept


def names_of(app: FastAPI) -> CatalogNames:
    """The application's copy."""
    names: CatalogNames | None = getattr(app.state, "catalog_names", None)
    if names is None:
        names = app.state.catalog_names = CatalogNames()
    return names
