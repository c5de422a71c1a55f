"""The catalog's own measured runs → tables: evidence that every database holds and any estimate may cite.

They are stored under the ids that correction sets name them by. What they taught is in the catalog's correction set
already, so they leave no residual and note no cell: storing them moves no estimate, and no later set counts them again.
"""

import datetime as dt
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import insert
from sqlmodel import Session

from catalog.benchmark_rows import BenchmarkFile, BenchmarkRow
from service.benchmarks.intake import Submission, canonical_run
from service.benchmarks.queries import known_uploads
from service.benchmarks.tables import BenchmarkTable, BenchmarkUploadTable
from service.wire.benchmarks import BenchmarkUpload, PlausibilityCheck

OF_CATALOG = "catalog"
"""Tool and caller of these runs: nobody uploaded them."""
USABLE = "clean"
CHECKED = PlausibilityCheck(
    name=OF_CATALOG,
    verdict="pass",
    message="part of the catalog release, for which every check of an upload is run as a test",
)


@dataclass(frozen=True, slots=True)
class _Rows:
    upload: dict[str, Any]
    run: dict[str, Any]


def store_own_runs(session: Session, files: Iterable[BenchmarkFile], now: dt.datetime) -> int:
    """Store the runs that are not there yet, under their ids or as somebody's upload; how many that were."""
    rows = [_rows(run, now) for file in files for run in file.runs]
    ids, digests = known_uploads(session, [r.upload["id"] for r in rows], [r.upload["digest"] for r in rows])
    new = [r for r in rows if r.upload["id"] not in ids and r.upload["digest"] not in digests]
    if new:
        session.execute(insert(BenchmarkUploadTable), [r.upload for r in new])
        session.execute(insert(BenchmarkTable), [r.run for r in new])
    return len(new)


def _rows(run: BenchmarkRow, now: dt.datetime) -> _Rows:
    """The rows an upload of the same body would leave, but for what is compared with a prediction."""
    upload = BenchmarkUpload.model_validate_json(json.dumps(run.benchmark))
    # The digest of the same body uploaded: it is then found here and not stored, or counted, a second time.
    submission = Submission(OF_CATALOG, None, upload.model_dump(mode="json"), now)
    (completed,) = canonical_run(upload)
    context = completed.upload.context
    reasons = stalled_reasons(run)
    return _Rows(
        BenchmarkUploadTable(
            id=run.id,
            digest=submission.digest,
            tool=OF_CATALOG,
            caller=OF_CATALOG,
            recorded_at=now,
            body=zlib.compress(submission.content, level=1),
        ).model_dump(),
        BenchmarkTable(
            id=run.id,
            upload_id=run.id,
            position=0,
            recorded_at=now,
            measured_at=context.measured_at,
            status="quarantined" if reasons else "accepted",
            tool=OF_CATALOG,
            device_id=context.device,
            devices=context.devices,
            llm_id=context.llm,
            engine=context.engine.name,
            engine_version=context.engine.version,
            weights=context.precision.weights or "",
            document=completed.upload.model_dump(mode="json"),
            checks=[CHECKED.model_dump(mode="json")],
            reasons=list(reasons),
            warnings=[],
        ).model_dump(),
    )


def stalled_reasons(run: BenchmarkRow) -> Sequence[str]:
    """Why a run is kept and not used; empty for a clean one."""
    if run.quality == USABLE:
        return ()
    long = f" for {run.stalled_s:g} s in all" if run.stalled_s is not None else ""
    return (f"the engine fell silent{long}, compiling a kernel at its first use: not used for calibration",)
