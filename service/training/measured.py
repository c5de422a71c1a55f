"""Stored training runs as anchors of later predictions."""

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlmodel import Session

from service.benchmarks.training_runs.queries import runs_in_force
from service.wire.training import TrainingAnchorIn, TrainingCase, TrainingLayoutIn

OF_THE_RUN = ("sequence_tokens", "global_batch_sequences", "micro_batch_sequences", "sharding", "recompute")


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """One stored run: what it is about, and the anchor it is."""

    id: str
    llm: str
    device: str
    method: str
    adapters: str | None
    reference: str | None
    precision: str
    stack: str | None
    anchor: TrainingAnchorIn


def measured_runs(session: Session, llms: Iterable[str], instant: dt.datetime) -> tuple[MeasuredRun, ...]:
    """Of these models, as they were in force at the instant."""
    return tuple(
        MeasuredRun(
            id=row.id,
            llm=row.llm,
            device=row.device,
            method=row.run["method"],
            adapters=row.run.get("adapters"),
            reference=row.run.get("reference"),
            precision=row.run["precision"],
            stack=row.run.get("stack"),
            anchor=TrainingAnchorIn(
                devices=row.run["devices"],
                tokens_per_s_per_device=row.tokens_per_s_per_device,
                layout=TrainingLayoutIn.model_validate(row.run["layout"]),
                **{name: row.run.get(name) for name in OF_THE_RUN},
            ),
        )
        for row in runs_in_force(session, llms, instant)
    )


def of_the_same(runs: Sequence[MeasuredRun], asked: TrainingCase, device: str) -> list[MeasuredRun]:
    """Runs of the same model on the same device, by the same method and at the same precision."""
    wanted = (asked.llm, device, asked.method, asked.adapters, asked.reference, asked.precision)
    return [
        run for run in runs if (run.llm, run.device, run.method, run.adapters, run.reference, run.precision) == wanted
    ]
