"""The catalog's names, read once for each state of the catalog: an upload must not read hundreds of rows."""

import threading

from fastapi import FastAPI
from sqlmodel import Session

from service.benchmarks.normalise import KnownNames
from service.benchmarks.queries import edition_revision, known_names

_LOCK = threading.Lock()


def known_names_of(app: FastAPI, session: Session) -> KnownNames:
    """Names as of the catalog's present revision; kept with the application until the revision changes."""
    revision = edition_revision(session)
    kept: tuple[int, KnownNames] | None = getattr(app.state, "benchmark_names", None)
    if kept is not None and kept[0] == revision:
        return kept[1]
    names = known_names(session)
    with _LOCK:
        app.state.benchmark_names = (revision, names)
    return names
