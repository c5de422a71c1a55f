"""The catalog's names, kept between uploads: an upload must not read hundreds of rows."""

import threading
import time

from fastapi import FastAPI

from service.benchmarks.known import KnownNames
from service.benchmarks.queries import edition_revision, known_names
from service.database import Database

RECHECKED_AFTER_S = 1.0
"""A kept copy may be this old; a name it does not know is looked up afresh before it is refused."""


class CatalogNames:
    """One copy for the application, read again when the catalog's revision changed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: KnownNames | None = None
        self._revision = -1
        self._checked_at = 0.0

    def recent(self, database: Database) -> KnownNames:
        """Names that were right a moment ago."""
        kept = self._kept
        if kept is not None and time.monotonic() - self._checked_at < RECHECKED_AFTER_S:
            return kept
        return self.fresh(database)

    def fresh(self, database: Database) -> KnownNames:
        """Names as of now."""
        with self._lock, database.reading() as session:
            revision = edition_revision(session)
            if self._kept is None or revision != self._revision:
                self._kept, self._revision = known_names(session), revision
            self._checked_at = time.monotonic()
            return self._kept


def names_of(app: FastAPI) -> CatalogNames:
    """The application's copy."""
    names: CatalogNames | None = getattr(app.state, "catalog_names", None)
    if names is None:
        names = app.state.catalog_names = CatalogNames()
    return names
