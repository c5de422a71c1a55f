"""Drift of a device under an engine: residuals of accepted uploads, version by version and driver by driver."""

from collections.abc import Sequence
from itertools import pairwise

from sqlmodel import Session

from service.corrections.queries import VersionedResidual, newest_correction_set, versioned_residuals
from service.wire.accuracy import DriftOut
from solver.corrections.applied import METRICS
from solver.corrections.drift import drift

MOST_RUNS = 5_000


def drifts(session: Session, device: str | None, engine: str | None) -> list[DriftOut]:
    """Every shift between one release and the next that chance does not explain."""
    newest = newest_correction_set(session)
    base = newest.number if newest is not None else 0
    groups: dict[tuple[str, str], list[VersionedResidual]] = {}
    for run in versioned_residuals(session, base, MOST_RUNS):
        where = (run.device_id, run.engine)
        if device in (None, where[0]) and engine in (None, where[1]):
            groups.setdefault(where, []).append(run)
    return [found for where, runs in sorted(groups.items()) for found in _drifts_of(where, runs)]


def _drifts_of(where: tuple[str, str], runs: Sequence[VersionedResidual]) -> list[DriftOut]:
    """Releases in the order in which their first result arrived, each against the one before."""
    by_release: dict[tuple[str | None, str | None], list[VersionedResidual]] = {}
    for run in runs:
        by_release.setdefault((run.engine_version, run.driver), []).append(run)
    found = []
    for (earlier, before), (later, after) in pairwise(by_release.items()):
        for metric in METRICS:
            shift = drift(
                [r.residuals[metric] for r in before if metric in r.residuals],
                [r.residuals[metric] for r in after if metric in r.residuals],
            )
            if shift is not None:
                found.append(
                    DriftOut(
                        device=where[0], engine=where[1], metric=metric,
                        from_version=earlier[0], from_driver=earlier[1], to_version=later[0], to_driver=later[1],
                        runs_before=shift.runs_before, runs_after=shift.runs_after,
                        median_change_fraction=round(shift.median_change_fraction, 4),
                        deviations=round(shift.deviations, 2),
                    )
                )  # fmt: skip
    return found
