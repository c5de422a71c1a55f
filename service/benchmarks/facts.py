"""What predicting one deployment needs of the catalog: devices, constants, corrections; no offers and no prices.

An upload right after the service started must not wait until thousands of offers are read.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlmodel import Session

from catalog.correction_rows import CorrectionSetRow
from service.catalog_release.queries import require_release
from service.constants.queries import all_constants
from service.corrections.queries import newest_correction_set
from service.corrections.sets_in_force import Overlay
from service.corrections.snapshot import correction_set, in_force
from service.devices.queries import all_devices
from service.recommendations.from_rows import device_from_row, prior_from_row
from solver.corrections.applied import CorrectionSet
from solver.errors import FigureMissingError
from solver.hardware import Device
from solver.step.constants import ConstantPrior


@dataclass(frozen=True)
class PlannerFacts:
    """release_set: number of the whole correction set that later ones are laid over; 0 without one."""

    digest: str
    revision: int
    devices: Mapping[str, Device]
    priors: tuple[ConstantPrior, ...]
    corrections: CorrectionSet | None
    release_set: int


class FactsCache:
    """The facts of the catalog's present revision. One thread reads them, the others wait for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._overlay = Overlay()
        self._kept: PlannerFacts | None = None

    def now(self, session: Session) -> PlannerFacts:
        """Two small queries when nothing changed."""
        release = require_release(session)
        with self._lock:
            kept = self._kept
            if kept is None or (kept.digest, kept.revision) != (release.digest, release.revision):
                kept = self._kept = _read(session, release.digest, release.revision)
        corrections = self._overlay.over(session, kept.corrections)
        return kept if corrections is kept.corrections else replace(kept, corrections=corrections)


def _read(session: Session, digest: str, revision: int) -> PlannerFacts:
    newest = newest_correction_set(session)
    row = None if newest is None else CorrectionSetRow.model_validate(newest.content)
    devices = {}
    for device in all_devices(session):
        try:
            devices[device.id] = device_from_row(device.row)
        except FigureMissingError:
            continue  # nothing is predicted for it
    return PlannerFacts(
        digest=digest,
        revision=revision,
        devices=devices,
        priors=in_force(row, (prior_from_row(prior.row) for prior in all_constants(session))),
        corrections=None if row is None else correction_set(row),
        release_set=0 if row is None else row.number,
    )
