"""Correction sets that ship with the catalog: what this project's own measurements taught, as files.

A set is made by ``clusterwright calibrate`` from the measured runs in ``benchmarks/`` and never edited.
"""

import datetime as dt
import re
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from catalog.rows import NotNegative, Positive, Row

DEFAULT_ROOT = Path(__file__).resolve().parent / "corrections"


class FittedConstantRow(Row):
    """value in the unit of the constant; prior: the catalog's own; taken: whether its error let it replace the prior."""

    value: float
    prior: float
    standard_error_fraction: NotNegative
    taken: bool


class SpreadRow(Row):
    """Factors around a prediction that hold nine of ten measured values. load: of one kind of loads, where that has its own."""

    model_class: str
    metric: str
    load: Literal["*", "closed"] = "*"
    low: Positive
    high: Positive
    residuals: int
    """How many left-out runs it rests on."""


class EvidenceRow(Row):
    """One measured configuration. factors: measured over predicted, shrunk by how few runs there are."""

    group: str
    llm: str
    weights: str
    kv_cache: str
    tensor_parallel: int
    pipeline_parallel: int
    data_parallel: int
    expert_parallel: int
    model_class: str
    benchmarks: list[str]
    factors: dict[str, float]
    random_routing: bool = False
    """Weights of random values sent tokens to fewer experts than trained ones are expected to (sets from 9 on say so)."""


class AccuracyRow(Row):
    """Errors of one metric on one group of runs. mape, median: percent; coverage: share inside the 90 % interval."""

    group: str
    metric: str
    runs: int
    left_out_mape_percent: NotNegative
    left_out_median_percent: float
    physics_mape_percent: NotNegative
    physics_median_percent: float
    coverage_fraction: float | None


class EngineCorrectionRow(Row):
    device: str
    family: str
    engine: str
    versions: list[str]
    constants: dict[str, FittedConstantRow]
    spreads: list[SpreadRow]
    own_spreads: list[SpreadRow]
    evidence: list[EvidenceRow]
    accuracy: list[AccuracyRow]
    borrowed_widening: float = Field(ge=1)
    unseen_widening: float = Field(ge=1)


class CorrectionSetRow(Row):
    number: int = Field(ge=1)
    made_on: dt.date
    made_by: str
    corrections: list[EngineCorrectionRow]


def read_correction_sets(root: Path = DEFAULT_ROOT) -> tuple[CorrectionSetRow, ...]:
    """Every set in order of number. Raises ValueError naming a file that does not hold together."""
    found = []
    for path in sorted(root.glob("*.json")):
        try:
            row = CorrectionSetRow.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise ValueError(f"{path.name}: {error.errors()[0]['msg']}") from error
        if not re.fullmatch(rf"0*{row.number}", path.stem):
            raise ValueError(f"{path.name} holds correction set {row.number}")
        found.append(row)
    return tuple(sorted(found, key=lambda row: row.number))
