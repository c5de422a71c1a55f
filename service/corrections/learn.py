"""Accepted results → a new correction set for the configurations (or, by probes, devices) they touch, and no others.

Intake notes a configuration as changed in the transaction that stores the result; a worker makes the set a moment
later. The note survives a crash, so no accepted result is ever left out. A storm of uploads makes few sets. A set from
uploads holds the cells that changed; with the sets before it, and the catalog's, it says what is in force.
"""

import datetime as dt
import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Session

from catalog.correction_rows import CorrectionSetRow
from service.corrections.cells import cell_from_text, device_of_note
from service.corrections.load_points import points_of, with_loads
from service.corrections.queries import (
    UPLOADS,
    AcceptedResidual,
    accepted_residuals,
    add_correction_set,
    changed_cells,
    newest_correction_set,
    newest_number,
    take_notes,
)
from service.corrections.snapshot import correction_set
from service.corrections.tables import CorrectionSetTable
from service.database import Database
from service.measurements.refine import device_content
from solver.corrections.applied import METRICS, Cell, CorrectionSet, Evidence, joined_factor

NUMBERS_FROM = 1_000_000
"""Sets from uploads are numbered from here; lower numbers are catalog releases'."""
MOST_RESULTS = 1_000
"""The newest results of a configuration that count: older engines and drivers fade out."""
MOST_NOTES = 2_000
EVERY_S = 0.2
REST_SHARE = 9.0
"""After a set the worker rests for nine times as long as it took: a tenth of one core at most."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ComputedSet:
    """A set that was computed and is not stored yet. notes: ids of the notes that asked for it."""

    notes: frozenset[str]
    content: dict[str, object]


def refresh(session: Session, now: dt.datetime) -> int | None:
    """Make a set from the changed cells; its number, None when nothing changed. In the caller's transaction."""
    prepared = prepare(session)
    return None if prepared is None else keep(session, prepared, now)


def keep(session: Session, prepared: ComputedSet, now: dt.datetime) -> int | None:
    """Store a prepared set and take its notes; None where another process has stored a newer one meanwhile.

    A note that came after the set was prepared stays on the list and asks for the next one. Of two sets prepared at
    once the later has all notes of the earlier: if it is stored first, nothing is left for the earlier to take.
    """
    if not take_notes(session, prepared.notes):
        return None
    number = max(newest_number(session), NUMBERS_FROM) + 1
    row = CorrectionSetTable(number=number, made_at=now, origin=UPLOADS, content=prepared.content)
    add_correction_set(session, row)
    session.flush()
    return number


def prepare(session: Session) -> ComputedSet | None:
    """Compute a set from the changed cells without writing anything; None when nothing changed."""
    notes = changed_cells(session, MOST_NOTES)
    if not notes:
        return None
    changed = set(notes.values())
    release_row = newest_correction_set(session)
    release = None if release_row is None else correction_set(CorrectionSetRow.model_validate(release_row.content))
    base = release.number if release is not None else 0
    devices = sorted(device for text in changed if (device := device_of_note(text)) is not None)
    cells = [
        cell_content(text, release, with_loads(session, accepted_residuals(session, text, base, MOST_RESULTS)))
        for text in sorted(changed)
        if device_of_note(text) is None
    ]
    content: dict[str, object] = {"base": base, "cells": cells}
    if devices:
        content["devices"] = [device_content(session, device) for device in devices]
    return ComputedSet(frozenset(notes), content)


def cell_content(text: str, release: CorrectionSet | None, accepted: list[AcceptedResidual]) -> dict[str, object]:
    """What a set says about one cell. Without an accepted upload it says nothing, and the catalog's word holds."""
    own = _release_evidence(cell_from_text(text), release)
    factors, ranges = {}, {}
    for metric in METRICS:
        values = [run.residuals[metric] for run in accepted if metric in run.residuals]
        if values:
            known = own.factors.get(metric) if own is not None else None
            runs = len(own.benchmarks) if own is not None and known is not None else 0
            factors[metric] = round(joined_factor(known or 1.0, runs, values), 6)
            ranges[metric] = [round(math.exp(min(values)), 6), round(math.exp(max(values)), 6)]
    versions = {run.engine_version for run in accepted if run.engine_version is not None}
    if accepted and own is not None and release is not None:
        cell = cell_from_text(text)
        versions |= {v for c in release.corrections if (c.device, c.engine) == (cell.device, cell.engine)
                     for v in c.versions}  # fmt: skip
    return {
        "cell": text,
        "versions": sorted(versions),
        "benchmarks": [run.benchmark_id for run in accepted] + (list(own.benchmarks) if own and accepted else []),
        "factors": factors,
        "ranges": ranges,
        "points": points_of(accepted, METRICS),
    }


def _release_evidence(cell: Cell, release: CorrectionSet | None) -> Evidence | None:
    if release is None:
        return None
    return next(
        (
            e
            for c in release.corrections
            if (c.device, c.engine) == (cell.device, cell.engine)
            for e in c.evidence
            if e.speaks_of(cell)
        ),
        None,
    )


class RefreshWorker:
    """A thread that makes new sets while the service runs."""

    def __init__(self, database: Database, clock: Callable[[], dt.datetime], every_s: float = EVERY_S) -> None:
        self._database = database
        self._clock = clock
        self._every_s = every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="corrections", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join(timeout=10.0)

    def _run(self) -> None:
        rest_s = self._every_s
        while not self._stop.wait(rest_s):
            started = time.monotonic()
            try:
                # Computed before writing: a set takes tens of milliseconds, and on SQLite uploads wait for a writer.
                with self._database.reading() as session:
                    prepared = prepare(session)
                if prepared is not None:
                    with self._database.writing() as session:
                        keep(session, prepared, self._clock())
            except SQLAlchemyError as error:  # not migrated yet, busy, or out of reach: the notes are kept
                log.debug("no new correction set: %s", error)
            rest_s = max(self._every_s, REST_SHARE * (time.monotonic() - started))
