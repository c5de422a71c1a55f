"""Take in measured results: complete and check. What comes out is stored by ``service.benchmarks.storing``."""

import datetime as dt
import hashlib
import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from service.benchmarks.comparison import PredictedRun, Residual, predicted_over_measured, residual_of
from service.benchmarks.known import KnownNames
from service.benchmarks.normalise import Completed, complete, with_forced_defaults
from service.benchmarks.plausibility import PhysicalLimits, check_all
from service.benchmarks.reading_error import ReadingError
from service.benchmarks.sandboxed import readings_of, refused_fields
from service.problems import FieldError, InvalidFieldsError, unknown_name
from service.sandboxed_reading import ReadingApart
from service.wire.benchmarks import BenchmarkImport, BenchmarkUpload, PlausibilityCheck

CANONICAL = "canonical"
Predict = Callable[[BenchmarkUpload], PredictedRun | None]


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
    def compressed(self) -> bytes:
        """The content, zlib."""
        return zlib.compress(self.content, level=1)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content."""
        return hashlib.sha256(self.content).hexdigest()


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


def imported_runs(asked: BenchmarkImport, known: KnownNames, apart: ReadingApart) -> list[Completed]:
    """The runs of a tool's file in canonical form. Raises InvalidFieldsError for anything wrong with the file."""
    readings = readings_of(asked.payload, asked.tool, apart)
    try:
        return [complete(reading, asked.context, known) for reading in readings]
    except ReadingError as error:
        raise InvalidFieldsError([FieldError(error.message, pointer=error.pointer)]) from None
    except ValidationError as error:
        raise refused_fields(error) from None


def check(
    completed: Sequence[Completed], received_at: dt.datetime, known: KnownNames, predict: Predict | None
) -> list[Checked]:
    """Compare every run with the catalog, with arithmetic and with the prediction. Raises what ``predict`` raises."""
    for run in completed:
        _require_known(run.upload, known)
    return [_checked(run, received_at, known, predict) for run in completed]


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


def _checked(run: Completed, received_at: dt.datetime, known: KnownNames, predict: Predict | None) -> Checked:
    predicted = predict(run.upload) if predict is not None else None
    limits = PhysicalLimits(
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
