"""POST /v1/benchmarks/training-runs: read, check against what the device can do, store once."""

import datetime as dt
import hashlib
import json
from typing import NoReturn

from sqlmodel import Session

from service.access import Caller
from service.benchmarks.queries import insert_unless_stored
from service.benchmarks.reading_error import ReadingError
from service.benchmarks.training_runs.importers import READERS, LoggedRun
from service.benchmarks.training_runs.present import present_training_run
from service.benchmarks.training_runs.queries import training_run_by_id
from service.benchmarks.training_runs.tables import TrainingRunTable
from service.llms.queries import hub_names_by_id, llm_ids, llms_by_ids
from service.names_meant import device_name_meant, llm_name_meant
from service.problems import FieldError, InvalidFieldsError, NotFoundError, unknown_name
from service.recommendations.catalog_snapshot import CatalogSnapshot
from service.recommendations.from_rows import llm_from_row
from service.training.inputs import Trained, training_device, training_model
from service.training.predict import REFUSED_FIELDS, prepared
from service.wire.training_runs import TrainingRunIn, TrainingRunOut
from solver.errors import FigureMissingError, UnsupportedError
from solver.llm_shape import LlmShape
from solver.training.estimate import estimate_training, model_flop_per_token
from solver.units import gib_from_bytes

ID_CHARACTERS = 32
PEAK_ABOVE_DEVICE = 1.02
"""Tools count gibibytes in one way and another; more than the device has is another device."""


def store_training_run(
    session: Session, snapshot: CatalogSnapshot, asked: TrainingRunIn, caller: Caller, now: dt.datetime
) -> tuple[TrainingRunOut, bool]:
    """The run as stored, and whether it is new. Raises InvalidFieldsError for what is unknown, unreadable or impossible."""
    meant, shape = _meant(session, snapshot, asked)
    read = _read(meant)
    batch = meant.global_batch_sequences or read.global_batch_sequences
    meant = meant.model_copy(update={"global_batch_sequences": batch})
    trained, predicted = _prepared(meant, shape, snapshot)
    rate = _rate(meant, read, trained)
    peak = meant.peak_memory_gib or read.peak_memory_gib
    _check(meant, trained, rate, peak)
    content = json.dumps(asked.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
    row = TrainingRunTable(
        id=f"trun_{hashlib.sha256(content.encode('utf-8', 'surrogatepass')).hexdigest()[:ID_CHARACTERS]}",
        caller=caller.name,
        recorded_at=now,
        llm=meant.llm,
        device=meant.device,
        tokens_per_s_per_device=rate,
        peak_memory_gib=peak,
        steps=read.steps,
        run=meant.model_dump(mode="json", exclude={"log"}),
        log=None if asked.log is None else asked.log.content.replace("\0", ""),
    )
    is_new = insert_unless_stored(session, row)
    stored = row if is_new else training_run_by_id(session, row.id)
    if stored is None:
        raise NotFoundError(f"no training run {row.id}")
    return present_training_run(stored, trained, predicted), is_new


def retract(session: Session, run_id: str, now: dt.datetime) -> TrainingRunTable:
    """It stays stored, and corrects nothing any more. Raises NotFoundError."""
    row = training_run_by_id(session, run_id)
    if row is None:
        raise NotFoundError(f"no training run {run_id[:80]!r}")
    row.retracted_at = row.retracted_at or now
    session.add(row)
    return row


def prepared_run(session: Session, snapshot: CatalogSnapshot, row: TrainingRunTable) -> tuple[Trained, float]:
    """A stored run as the model sees it now, with what it predicts of it. Raises NotFoundError where the catalog lost it."""
    asked = TrainingRunIn.model_validate(row.run | _one_rate(row))
    shapes = {found.id: llm_from_row(found.row) for found in llms_by_ids(session, {row.llm})}
    if row.llm not in shapes or row.device not in snapshot.devices:
        raise NotFoundError(f"the catalog has no {row.llm} on {row.device} any more")
    return _prepared(asked, shapes[row.llm], snapshot)


def _one_rate(row: TrainingRunTable) -> dict[str, object]:
    """A run whose log was stored apart is stated by what was read from it."""
    stated = row.run.get("tokens_per_s_per_device") or row.run.get("step_s")
    return {} if stated else {"tokens_per_s_per_device": row.tokens_per_s_per_device}


def _meant(session: Session, snapshot: CatalogSnapshot, asked: TrainingRunIn) -> tuple[TrainingRunIn, LlmShape]:
    memory = snapshot.memory_gib_by_device
    device = asked.device if asked.device in memory else device_name_meant(asked.device, memory)
    llm = llm_name_meant(asked.llm, hub_names_by_id(session))
    rows = llms_by_ids(session, {llm})
    wrong = []
    if not rows:
        wrong.append(FieldError(unknown_name("llm", llm, llm_ids(session)), pointer="/llm"))
    if device not in snapshot.devices:
        wrong.append(FieldError(unknown_name("device", device, sorted(snapshot.devices)), pointer="/device"))
    if wrong:
        raise InvalidFieldsError(wrong)
    return asked.model_copy(update={"llm": llm, "device": device}), llm_from_row(rows[0].row)


def _read(asked: TrainingRunIn) -> LoggedRun:
    if asked.log is None:
        return LoggedRun()
    try:
        return READERS[asked.log.tool](asked.log.content)
    except ReadingError as error:
        _refuse(error.pointer, error.message)


def _prepared(asked: TrainingRunIn, shape: LlmShape, snapshot: CatalogSnapshot) -> tuple[Trained, float]:
    """The run as the model sees it, and the tokens a second and device it predicts. Raises InvalidFieldsError."""
    model = training_model()
    try:
        device = training_device(snapshot.devices[asked.device], snapshot.nodes.values(), asked.precision, model)
        trained = prepared(asked, shape, device, asked.devices, model)
        found = estimate_training(
            trained.run, trained.constants, asked.devices, trained.layout_space, trained.batch_stated
        )
        return trained, found.chosen.tokens_per_s_per_device
    except UnsupportedError as error:
        _refuse(f"/{REFUSED_FIELDS.get(error.reason, 'layout')}", str(error))
    except FigureMissingError as error:
        _refuse("/device", str(error))


def _rate(asked: TrainingRunIn, read: LoggedRun, trained: Trained) -> float:
    """Tokens a second and device."""
    if asked.tokens_per_s_per_device is not None or read.tokens_per_s_per_device is not None:
        return asked.tokens_per_s_per_device or read.tokens_per_s_per_device or 0.0
    if read.tokens_per_s is not None:
        return read.tokens_per_s / asked.devices
    seconds = asked.step_s or read.step_s or 0.0
    if asked.sequence_tokens is None:
        _refuse("/sequence_tokens", "seconds of a step say how fast only with the tokens of a sequence: state them")
    if asked.global_batch_sequences is None:
        _refuse("/global_batch_sequences", "seconds of a step say how fast only with its sequences: state them")
    return trained.run.global_batch_sequences * trained.run.sequence_tokens / seconds / asked.devices


def _check(asked: TrainingRunIn, trained: Trained, rate: float, peak: float | None) -> None:
    """Raises InvalidFieldsError for more than the device's datasheet."""
    device, field = trained.run.device, "log" if asked.log else "step_s" if asked.step_s else "tokens_per_s_per_device"
    passes = 3.0 if asked.trains in ("pretrain", "full") else 2.0
    most = device.flop_per_s / (model_flop_per_token(trained.run.shape) * passes / 3.0)
    if rate > most:
        _refuse(
            f"/{field}",
            f"{rate:.6g} tokens/s a device are more than {device.id} computes at {asked.precision}: at most {most:.6g}",
        )
    have = gib_from_bytes(device.memory_bytes)
    if peak is not None and peak > have * PEAK_ABOVE_DEVICE:
        _refuse(
            "/log" if asked.log else "/peak_memory_gib", f"{peak:.5g} GiB are more than the {have:.5g} of {device.id}"
        )


def _refuse(pointer: str, detail: str) -> NoReturn:
    raise InvalidFieldsError([FieldError(detail, pointer=pointer)])
