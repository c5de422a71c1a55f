"""Stored result → wire."""

import json
from collections.abc import Sequence
from typing import get_args

from service.benchmarks.comparison import PredictedRun, predicted_over_measured
from service.benchmarks.queries import current_status
from service.benchmarks.storing import StoredRun, Taken
from service.benchmarks.tables import BenchmarkEventTable, BenchmarkTable
from service.wire.benchmarks import (
    BenchmarkEvent,
    BenchmarkReceipt,
    BenchmarkStatus,
    BenchmarkSummary,
    BenchmarkUpload,
    Comparison,
    ImportReceipt,
    PlausibilityCheck,
    StoredBenchmark,
)

Events = Sequence[BenchmarkEventTable]
STATUSES: dict[str, BenchmarkStatus] = {s: s for s in get_args(BenchmarkStatus)}


def present_receipt(run: StoredRun) -> BenchmarkReceipt:
    return BenchmarkReceipt(
        id=run.id,
        status=STATUSES[run.status],
        reasons=run.reasons,
        warnings=run.warnings,
        predicted_over_measured=run.predicted_over_measured,
    )


def present_import(taken: Taken) -> ImportReceipt:
    """The first run on top; the status covers all runs of the file."""
    receipts = [present_receipt(run) for run in taken.runs]
    several = len(receipts) > 1
    reasons = [f"run {n}: {reason}" if several else reason for n, r in enumerate(receipts) for reason in r.reasons]
    statuses = [receipt.status for receipt in receipts]
    whole: BenchmarkStatus = next((s for s in ("quarantined", "retracted") if s in statuses), "accepted")
    first = receipts[0]
    return ImportReceipt(
        id=first.id,
        status=whole,
        reasons=reasons,
        warnings=first.warnings,
        predicted_over_measured=first.predicted_over_measured,
        tool=taken.runs[0].tool,
        runs=receipts,
    )


def stored_upload(run: BenchmarkTable) -> BenchmarkUpload:
    """The canonical run as it was uploaded."""
    return BenchmarkUpload.model_validate_json(json.dumps(run.document))


def present_stored(run: BenchmarkTable, digest: str, events: Events, predicted: PredictedRun | None) -> StoredBenchmark:
    """``predicted``: what the planner says now."""
    upload = stored_upload(run)
    return StoredBenchmark(
        id=run.id,
        status=_status(run, events),
        reasons=run.reasons,
        warnings=run.warnings,
        predicted_over_measured=run.predicted_over_measured,
        tool=run.tool,
        digest=digest,
        recorded_at=run.recorded_at,
        benchmark=upload,
        before=Comparison(correction_set=run.correction_set, predicted_over_measured=run.predicted_over_measured),
        after=Comparison(
            correction_set=predicted.correction_set if predicted else None,
            predicted_over_measured=predicted_over_measured(predicted, upload),
        ),
        checks=[PlausibilityCheck.model_validate(check) for check in run.checks],
        events=[
            BenchmarkEvent(action=e.action, reason=e.reason, actor=e.actor, recorded_at=e.recorded_at) for e in events
        ],
    )


def present_summary(run: BenchmarkTable, events: Events) -> BenchmarkSummary:
    results = run.document["results"]
    return BenchmarkSummary(
        id=run.id,
        status=_status(run, events),
        device=run.device_id,
        devices=run.devices,
        llm=run.llm_id,
        engine=run.engine,
        engine_version=run.engine_version,
        tool=run.tool,
        measured_at=run.measured_at,
        recorded_at=run.recorded_at,
        output_tokens_per_s=results["output_tokens_per_s"],
        ttft_ms_mean=results["ttft_ms"]["mean"],
        tpot_ms_mean=results["tpot_ms"]["mean"],
        reasons=run.reasons,
    )


def _status(run: BenchmarkTable, events: Events) -> BenchmarkStatus:
    return STATUSES[current_status(run, events)]
