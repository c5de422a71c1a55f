"""JSON of measured training runs: what was trained how, and how fast it was."""

import datetime as dt
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from service.wire.quantities import Answer, Name, PositiveNumber, Request
from service.wire.training import Ranks, TrainingCase, TrainingLayoutIn, TrainingMethod

MOST_LOG_CHARACTERS = 4_000_000


class TrainingLogIn(Request):
    """What a training programme wrote: its rate and peak of memory are read from it."""

    tool: Literal["torchtitan", "megatron", "hf_trainer"]
    content: Annotated[str, Field(min_length=1, max_length=MOST_LOG_CHARACTERS)]


class TrainingRunIn(TrainingCase):
    """A run that was measured: ``tokens_per_s_per_device``, ``step_s`` or a ``log`` says how fast."""

    device: Name
    devices: Ranks
    tokens_per_s_per_device: PositiveNumber | None = None
    step_s: PositiveNumber | None = None
    peak_memory_gib: PositiveNumber | None = None
    log: TrainingLogIn | None = None

    @model_validator(mode="after")
    def _says_how_fast(self) -> Self:
        given = [self.tokens_per_s_per_device, self.step_s, self.log]
        if sum(one is not None for one in given) != 1:
            raise ValueError("say how fast it was in one way: tokens_per_s_per_device, step_s or log")
        return self


class TrainingRunOut(Answer):
    """A stored run. Later estimates of its model, device, method, precision and software are corrected by it."""

    id: str
    link: str
    recorded_at: dt.datetime
    status: Literal["accepted", "retracted"]
    llm: str
    device: str
    devices: int
    method: TrainingMethod
    precision: str
    stack: str
    sequence_tokens: int
    global_batch_sequences: int
    layout: TrainingLayoutIn
    tokens_per_s_per_device: float
    predicted_tokens_per_s_per_device: float
    """By the constants alone, without any anchor."""
    error_fraction: float
    peak_memory_gib: float | None
    steps: int | None
