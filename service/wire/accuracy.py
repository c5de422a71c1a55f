"""GET /v1/accuracy: predicted against measured."""

import datetime as dt

from service.wire.quantities import Answer


class ErrorOut(Answer):
    """Errors of one metric on configurations the fit had not seen, beside what the physics alone gives.

    coverage_fraction: share of measured values inside the 90 % interval that the other configurations gave them.
    """

    metric: str
    runs: int
    left_out_mape_percent: float
    left_out_median_percent: float
    physics_mape_percent: float
    physics_median_percent: float
    coverage_fraction: float | None


class SliceOut(Answer):
    """Runs judged together: one configuration, one class of model, one kind of load, or all."""

    slice: str
    llm: str | None
    weights: str | None
    kv_cache: str | None
    tensor_parallel: int | None
    pipeline_parallel: int | None
    benchmarks: list[str]
    errors: list[ErrorOut]


class ConstantOut(Answer):
    name: str
    unit: str
    value: float
    before: float
    standard_error_fraction: float
    taken: bool


class EngineAccuracyOut(Answer):
    device: str
    engine: str
    versions: list[str]
    runs: int
    constants: list[ConstantOut]
    slices: list[SliceOut]


class AccuracyOut(Answer):
    """Null and empty while nothing has been measured."""

    correction_set: int | None
    made_on: dt.date | None
    engines: list[EngineAccuracyOut]


class DriftOut(Answer):
    """Measured over predicted moved between two releases of an engine or driver by more than chance explains."""

    device: str
    engine: str
    metric: str
    from_version: str | None
    from_driver: str | None
    to_version: str | None
    to_driver: str | None
    runs_before: int
    runs_after: int
    median_change_fraction: float
    deviations: float


class DriftsOut(Answer):
    items: list[DriftOut]
