"""Store checked uploads, several in one transaction; the same upload again gives the same record.

Everything of one upload is in one transaction that commits before its answer leaves, so an acknowledged result is
whole and survives the process. The digest of the content is unique in the database: of two identical uploads at once,
one waits for the other and then finds its record. Rows with unique values are inserted in their order, so that two
transactions never wait for each other.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session
from ulid import ULID

from service.access import Caller, no_longer_admitted
from service.benchmarks.comparison import ChangedHook
from service.benchmarks.intake import Checked, Submission
from service.benchmarks.plausibility import quarantine_reasons, warnings
from service.benchmarks.queries import (
    current_status,
    events_of,
    insert_keys,
    insert_rows,
    insert_uploads,
    runs_by_digest,
    stored_keys,
)
from service.benchmarks.tables import BenchmarkTable
from service.corrections.tables import BenchmarkResidualTable
from service.problems import ConflictError, ProblemError

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StoredRun:
    """What an answer says of a run. ``status``: after every decision about it so far."""

    id: str
    tool: str
    status: str
    reasons: list[str]
    warnings: list[str]
    predicted_over_measured: dict[str, float] | None


@dataclass(frozen=True, slots=True)
class Taken:
    """The stored runs of an upload, and whether this upload stored them."""

    runs: list[StoredRun]
    is_new: bool


@dataclass(frozen=True, slots=True)
class Pending:
    """An upload with its rows, ready to be stored."""

    caller: Caller
    submission: Submission
    upload: Row
    runs: list[Row]
    residuals: list[Row]

    @property
    def id(self) -> str:
        return str(self.upload["id"])

    @property
    def digest(self) -> str:
        return self.submission.digest

    @property
    def named(self) -> tuple[str, str] | None:
        """Caller and key, where the upload has a key."""
        key = self.submission.key
        return None if key is None else (self.submission.caller, key)


def prepare(caller: Caller, submission: Submission, checked: Sequence[Checked]) -> Pending:
    """Make every row outside the transaction: it is short then."""
    upload_id = f"upl_{ULID()}"
    upload = {
        "id": upload_id,
        "digest": submission.digest,
        "tool": checked[0].run.tool,
        "caller": submission.caller,
        "recorded_at": submission.received_at,
        "body": submission.compressed,
    }
    runs = [_run_row(each, upload_id, position, submission) for position, each in enumerate(checked)]
    residuals = [
        {"benchmark_id": run["id"], "base": r.base, "cell": r.cell, "residuals": dict(r.residuals)}
        for run, each in zip(runs, checked, strict=True)
        if (r := each.residual) is not None
    ]
    return Pending(caller, submission, upload, runs, residuals)


def store_admitted(
    session: Session, batch: Sequence[Pending], changed: ChangedHook | None
) -> list[Taken | ProblemError]:
    """Store the uploads of callers that are still admitted in this transaction; the others are refused."""
    refused = no_longer_admitted(session, {pending.caller for pending in batch})
    stored = iter(store(session, [pending for pending in batch if pending.caller not in refused], changed))
    return [refused.get(pending.caller) or next(stored) for pending in batch]


def store(session: Session, batch: Sequence[Pending], changed: ChangedHook | None = None) -> list[Taken | ProblemError]:
    """Answer each upload, in order. A refused one has written nothing.

    Raises ConflictError, for the transaction as a whole, when another process took a key for another body meanwhile.
    """
    conflicts = _key_conflicts(session, batch)
    kept = [pending for pending in batch if pending.id not in conflicts]
    first: dict[str, Pending] = {}
    for pending in kept:
        first.setdefault(pending.digest, pending)
    new = insert_uploads(session, [first[digest].upload for digest in sorted(first)])
    fresh = [pending for digest, pending in first.items() if digest in new]
    insert_rows(session, BenchmarkTable, [row for pending in fresh for row in pending.runs])
    insert_rows(session, BenchmarkResidualTable, [row for pending in fresh for row in pending.residuals])
    records = {pending.digest: _new_record(pending) for pending in fresh}
    records |= _found_records(session, first.keys() - new)
    _remember_keys(session, kept, records)
    accepted = [row["id"] for pending in fresh for row in pending.runs if row["status"] == "accepted"]
    if changed is not None and accepted:
        changed(session, accepted)
    first_ids = {pending.id for pending in fresh}
    return [
        conflicts.get(pending.id) or Taken(records[pending.digest].runs, is_new=pending.id in first_ids)
        for pending in batch
    ]


def _key_conflicts(session: Session, batch: Sequence[Pending]) -> dict[str, ProblemError]:
    """Uploads under a key that stands for another body, stored or earlier in the batch, by the upload's id."""
    named = [pending.named for pending in batch if pending.named is not None]
    digests = stored_keys(session, named) if named else {}
    conflicts: dict[str, ProblemError] = {}
    for pending in batch:
        if pending.named is not None and digests.setdefault(pending.named, pending.digest) != pending.digest:
            conflicts[pending.id] = _conflict(pending.named[1])
    return conflicts


def _conflict(key: str) -> ConflictError:
    return ConflictError(f"Idempotency-Key {key!r} was used for another body")


@dataclass(frozen=True, slots=True)
class _Record:
    """A stored upload and its runs."""

    upload_id: str
    runs: list[StoredRun]


def _new_record(pending: Pending) -> _Record:
    fields = StoredRun.__dataclass_fields__
    return _Record(pending.id, [StoredRun(**{name: row[name] for name in fields}) for row in pending.runs])


def _found_records(session: Session, digests: Collection[str]) -> dict[str, _Record]:
    """Records of uploads that were stored before. Raises ConflictError when one vanished."""
    if not digests:
        return {}
    rows = runs_by_digest(session, digests)
    events = events_of(session, [run.id for _, run in rows])
    records: dict[str, _Record] = {}
    for digest, run in rows:
        record = records.setdefault(digest, _Record(run.upload_id, []))
        record.runs.append(
            StoredRun(
                id=run.id, tool=run.tool, status=current_status(run, events.get(run.id, ())), reasons=run.reasons,
                warnings=run.warnings, predicted_over_measured=run.predicted_over_measured,
            )
        )  # fmt: skip
    if len(records) < len(digests):
        raise ConflictError("the same upload is being stored; send it again")
    return records


def _remember_keys(session: Session, kept: Sequence[Pending], records: Mapping[str, _Record]) -> None:
    """Note which upload each key stands for; a key another process noted meanwhile must stand for the same body."""
    digests = {pending.named: pending.digest for pending in kept if pending.named is not None}
    rows = [
        {"caller": caller, "key": key, "digest": digest, "upload_id": records[digest].upload_id}
        for (caller, key), digest in sorted(digests.items())
    ]
    if not rows or insert_keys(session, rows) == len(rows):
        return
    for named, digest in stored_keys(session, list(digests)).items():
        if digest != digests[named]:
            raise _conflict(named[1])


def _run_row(checked: Checked, upload_id: str, position: int, submission: Submission) -> Row:
    upload, context = checked.run.upload, checked.run.upload.context
    reasons = quarantine_reasons(checked.checks)
    return {
        "id": f"bench_{ULID()}",
        "upload_id": upload_id,
        "position": position,
        "recorded_at": submission.received_at,
        "measured_at": context.measured_at,
        "status": "quarantined" if reasons else "accepted",
        "tool": checked.run.tool,
        "device_id": context.device,
        "devices": context.devices,
        "llm_id": context.llm,
        "engine": context.engine.name,
        "engine_version": context.engine.version,
        "weights": context.precision.weights or "",
        "document": upload.model_dump(mode="json"),
        "checks": [{"name": c.name, "verdict": c.verdict, "message": c.message} for c in checked.checks],
        "reasons": reasons,
        "warnings": [*warnings(checked.checks), *checked.run.notes],
        "predicted_over_measured": checked.predicted_over_measured,
        "correction_set": checked.correction_set,
    }
