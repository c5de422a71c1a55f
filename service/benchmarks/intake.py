"""Take in measured results: complete, check, store; the same upload again gives the same record.

Everything of one upload is stored in one transaction that commits before the answer leaves, so an acknowledged result
is whole and survives the process. The digest of the content is unique in the database: of two identical uploads at
once, one waits for the other and then finds its record.
"""

import datetime as dt
import hashlib
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import ValidationError
from sqlmodel import Session
from ulid import ULID

from service.benchmarks.comparison import Loop, Residual, predicted_over_measured, residual_of
from service.benchmarks.document import ReadingError
from service.benchmarks.importers import read_payload
from service.benchmarks.known import KnownNames
from service.benchmarks.normalise import Completed, complete, with_forced_defaults
from service.benchmarks.plausibility import Limits, check_all, quarantine_reasons, warnings
from service.benchmarks.queries import (
    idempotency_key,
    insert_rows,
    insert_unless_stored,
    runs_of_upload,
    upload_by_digest,
)
from service.benchmarks.tables import BenchmarkTable, BenchmarkUploadTable, IdempotencyKeyTable
from service.corrections.tables import BenchmarkResidualTable
from service.problems import ConflictError, FieldError, InvalidFieldsError, unknown_name
from service.wire.benchmarks import BenchmarkImport, BenchmarkUpload, PlausibilityCheck

CANONICAL = "canonical"
MOST_RUNS = 1_000
"""Runs of one imported file."""


@dataclass(frozen=True)
class Submission:
    """An upload before it is stored: who sent it, under which key, and what it holds."""

    caller: str
    key: str | None
    body: dict[str, Any]
    received_at: dt.datetime

    @cached_property
    def content(self) -> bytes:
        """The body as canonical JSON: order of keys and white space do not count."""
        text = json.dumps(self.body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return text.encode("utf-8", "surrogatepass")

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content."""
        return hashlib.sha256(self.content).hexdigest()


@dataclass(frozen=True, slots=True)
class Taken:
    """The stored runs of an upload, and whether this upload stored them."""

    runs: list[BenchmarkTable]
    is_new: bool


@dataclass(frozen=True, slots=True)
class Checked:
    """A completed run with its checks, ready to be stored."""

    run: Completed
    checks: tuple[PlausibilityCheck, ...]
    predicted_over_measured: dict[str, float] | None
    correction_set: int | None
    residual: Residual | None


def canonical_run(upload: BenchmarkUpload) -> list[Completed]:
    """The one run of a canonical upload."""
    return [Completed(CANONICAL, with_forced_defaults(upload))]


def imported_runs(asked: BenchmarkImport, known: KnownNames) -> list[Completed]:
    """The runs of a tool's file in canonical form. Raises InvalidFieldsError for anything wrong with the file."""
    try:
        readings = read_payload(asked.payload, asked.tool)
        if len(readings) > MOST_RUNS:
            raise ReadingError("/payload", f"holds {len(readings)} runs; the most is {MOST_RUNS}")
        return [complete(reading, asked.context, known) for reading in readings]
    except ReadingError as error:
        raise InvalidFieldsError([FieldError(error.message, pointer=error.pointer)]) from None
    except ValidationError as error:
        raise InvalidFieldsError(
            FieldError(f"{'.'.join(map(str, e['loc']))}: {e['msg']}", pointer="/payload") for e in error.errors()
        ) from None


def check(
    session: Session | None, completed: Sequence[Completed], received_at: dt.datetime, known: KnownNames, loop: Loop
) -> list[Checked]:
    """Compare every run with the catalog, with arithmetic and with the prediction. Reads only."""
    for run in completed:
        _require_known(run.upload, known)
    return [_checked(session, run, received_at, known, loop) for run in completed]


def earlier(session: Session, submission: Submission) -> list[BenchmarkTable] | None:
    """What the same upload stored before, None when it is new. Raises ConflictError for a key used for another body."""
    stored_key = idempotency_key(session, submission.caller, submission.key) if submission.key else None
    if stored_key is not None:
        if stored_key.digest != submission.digest:
            raise ConflictError(f"Idempotency-Key {submission.key!r} was used for another body")
        return runs_of_upload(session, stored_key.upload_id)
    upload = upload_by_digest(session, submission.digest)
    return None if upload is None else runs_of_upload(session, upload.id)


def store(session: Session, checked: Sequence[Checked], submission: Submission, loop: Loop) -> Taken:
    """Store runs. Of two identical uploads at once the later one waits and gets the earlier one's record."""
    if submission.key is not None and idempotency_key(session, submission.caller, submission.key) is not None:
        return found_again(session, submission)
    upload = BenchmarkUploadTable(
        id=f"upl_{ULID()}",
        digest=submission.digest,
        tool=checked[0].run.tool,
        caller=submission.caller,
        recorded_at=submission.received_at,
        body=zlib.compress(submission.content, level=1),
    )
    if not insert_unless_stored(session, upload):
        return found_again(session, submission)
    rows = [_row(each, upload.id, position, submission) for position, each in enumerate(checked)]
    insert_rows(session, rows)
    residuals = [
        BenchmarkResidualTable(benchmark_id=row.id, base=r.base, cell=r.cell, residuals=dict(r.residuals))
        for row, each in zip(rows, checked, strict=True)
        if (r := each.residual) is not None
    ]
    if residuals:
        insert_rows(session, residuals)
    _remember_key(session, submission, upload.id)
    accepted = [row.id for row in rows if row.status == "accepted"]
    if loop.changed is not None and accepted:
        loop.changed(session, accepted)
    return Taken(rows, is_new=True)


def found_again(session: Session, submission: Submission) -> Taken:
    """The record of an upload that is already stored, now also under this upload's key."""
    runs = earlier(session, submission)
    if not runs:
        raise ConflictError("the same upload is being stored; send it again")
    _remember_key(session, submission, runs[0].upload_id)
    return Taken(runs, is_new=False)


def _remember_key(session: Session, submission: Submission, upload_id: str) -> None:
    """Note the key; of two requests with one key at once, the later one is compared with the earlier one's body."""
    if submission.key is None:
        return
    row = IdempotencyKeyTable(
        caller=submission.caller, key=submission.key, digest=submission.digest, upload_id=upload_id
    )
    if insert_unless_stored(session, row):
        return
    stored = idempotency_key(session, submission.caller, submission.key)
    if stored is None or stored.digest != submission.digest:
        raise ConflictError(f"Idempotency-Key {submission.key!r} was used for another body")


def _require_known(upload: BenchmarkUpload, known: KnownNames) -> None:
    """Device, model and node must be in the catalog."""
    context = upload.context
    errors = []
    for field, name, names in (
        ("device", context.device, known.device_memory_gib),
        ("llm", context.llm, known.hugging_face_ids),
        ("node", context.node, known.nodes),
    ):
        if name is not None and name not in names:
            errors.append(FieldError(unknown_name(field, name, names), pointer=f"/context/{field}"))
    if errors:
        raise InvalidFieldsError(errors)


def _checked(
    session: Session | None, run: Completed, received_at: dt.datetime, known: KnownNames, loop: Loop
) -> Checked:
    predicted = loop.predict(session, run.upload) if loop.predict is not None and session is not None else None
    limits = Limits(
        tpot_ms=predicted.bound_tpot_ms if predicted else None,
        output_tokens_per_s=predicted.bound_output_tokens_per_s if predicted else None,
        power_limit_w=known.device_power_limit_w.get(run.upload.context.device),
    )
    checks = check_all(run.upload, limits, received_at)
    if predicted is not None and predicted.problem is not None:
        checks.append(PlausibilityCheck(name="planner", verdict="flag", message=predicted.problem))
    checks += [PlausibilityCheck(name="file", verdict="fail", message=message) for message in run.contradictions]
    ratios = predicted_over_measured(predicted, run.upload)
    if predicted is None:
        return Checked(run, tuple(checks), ratios, None, None)
    return Checked(run, tuple(checks), ratios, predicted.correction_set, residual_of(predicted, run.upload))


def _row(checked: Checked, upload_id: str, position: int, submission: Submission) -> BenchmarkTable:
    upload, context = checked.run.upload, checked.run.upload.context
    reasons = quarantine_reasons(checked.checks)
    return BenchmarkTable(
        id=f"bench_{ULID()}",
        upload_id=upload_id,
        position=position,
        recorded_at=submission.received_at,
        measured_at=context.measured_at,
        status="quarantined" if reasons else "accepted",
        tool=checked.run.tool,
        device_id=context.device,
        devices=context.devices,
        llm_id=context.llm,
        engine=context.engine.name,
        engine_version=context.engine.version,
        weights=context.precision.weights or "",
        document=upload.model_dump(mode="json"),
        checks=[each.model_dump(mode="json") for each in checked.checks],
        reasons=reasons,
        warnings=[*warnings(checked.checks), *checked.run.notes],
        predicted_over_measured=checked.predicted_over_measured,
        correction_set=checked.correction_set,
    )
