"""The cells and probed devices in force: the catalog's set with every later set from uploads laid over it."""

import threading
from typing import Any

from sqlmodel import Session

from service.corrections.cells import cell_from_text
from service.corrections.load_points import load_points
from service.corrections.queries import newest_number, sets_from_uploads
from service.corrections.snapshot import probed_constants
from solver.corrections.applied import Cell, CellEvidence, CorrectionSet
from solver.step.constants import ConstantPrior


class Overlay:
    """Kept with the application and read on from where it stopped: sets are immutable."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read_to = 0
        self._cells: dict[int, dict[Cell, CellEvidence | None]] = {}
        self._probed: dict[str, tuple[ConstantPrior, ...]] = {}
        self._made: tuple[CorrectionSet | None, int, CorrectionSet | None] | None = None

    def over(self, session: Session, release: CorrectionSet | None) -> CorrectionSet | None:
        """The catalog's set with what uploads taught since; the same object until something changes."""
        newest = newest_number(session)
        with self._lock:
            if self._made is not None and self._made[0] is release and self._made[1] == newest:
                return self._made[2]
            if newest > self._read_to:
                for row in sets_from_uploads(session, self._read_to):
                    known = self._cells.setdefault(row.content["base"], {})
                    known |= {cell_from_text(c["cell"]): _evidence(c) for c in row.content["cells"]}
                    self._probed |= {d["device"]: probed_constants(d) for d in row.content.get("devices", ())}
                    self._read_to = row.number
            base = release.number if release is not None else 0
            cells = {cell: evidence for cell, evidence in self._cells.get(base, {}).items() if evidence is not None}
            probed = tuple(prior for _, priors in sorted(self._probed.items()) for prior in priors)
            made = release
            if cells or probed:
                made = (release or CorrectionSet(base)).with_uploads(newest, cells, probed)
            self._made = (release, newest, made)
            return made


def _evidence(content: dict[str, Any]) -> CellEvidence | None:
    """None once a cell has no accepted result any more."""
    if not content["factors"]:
        return None
    ranges = {metric: (least, most) for metric, (least, most) in content.get("ranges", {}).items()}
    return CellEvidence(
        tuple(content["versions"]),
        tuple(content["benchmarks"]),
        dict(content["factors"]),
        ranges,
        load_points(content.get("points", ())),
    )
