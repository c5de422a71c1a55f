"""The published runs in the catalog against the training model: constants fitted to them, and what that is worth."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from catalog.read import Catalog
from catalog.training_rows import TrainingRunRow
from service.recommendations.from_rows import device_from_row, llm_from_row, node_from_row
from service.training.inputs import Trained, TrainingModel, prepare, run_kind, training_device
from solver.errors import SolverError
from solver.hardware import Device, Node
from solver.llm_shape import LlmShape
from solver.training import memory, step
from solver.training.constants import NAMES, TrainingConstants, TrainingPrior
from solver.training.estimate import estimate_training
from solver.training.fit import Fitted, cluster_weights, fit
from solver.training.work import Values, Work, one_layout, side_by_side
from solver.units import GIB_BYTES

SCALE = 0.10
"""Error expected of a good run, as a logarithm: where heavy tails begin."""
PRIOR_RANGE_DEVIATIONS = 1.645
"""A prior's low and high are its 5 % and 95 % quantiles."""
GENERALLY_KNOWN = (
    "attention_backward_ratio", "weight_bytes", "quantised_weight_bytes", "gradient_bytes", "optimizer_bytes",
    "link_efficiency", "network_efficiency", "collective_latency_s", "native_head_dim", "frozen_weight_bytes",
    "frozen_weight_bytes_fp8", "sent_gradient_bytes", "sent_weight_bytes", "sent_weight_bytes_fp8", "saved_input_bytes",
    "saved_input_bytes_fp8", "saved_input_bytes_fp4",
)  # fmt: skip
"""Constants that runs do not tell apart from others: they keep the catalog's values."""
MEMORY_CONSTANTS = (
    "activation_factor",
    "adapter_activation_fraction",
    "selective_kept_fraction",
    "logit_bytes",
    "reserved_bytes",
    "fragmentation_fraction",
)
Key = tuple[str, str, str]


@dataclass(frozen=True)
class PublishedRun:
    """One run under one layout, the published one or the best that agrees with it."""

    row: TrainingRunRow
    trained: Trained
    work: Work
    kind: str
    verdict: str

    @property
    def keys(self) -> dict[str, Key]:
        return {field: (r.name, r.family, r.stack) for field, r in self.trained.rows.items()}

    @property
    def cluster(self) -> tuple[object, ...]:
        return (self.row.source, self.row.stack, self.row.device, self.row.llm, self.row.precision, self.row.method)


@dataclass(frozen=True)
class Shapes:
    """The catalog's devices, nodes and models as the solver sees them."""

    devices: Mapping[str, Device]
    nodes: tuple[Node, ...]
    llms: Mapping[str, LlmShape]


def shapes_of(catalog: Catalog) -> Shapes:
    devices: dict[str, Device] = {}
    for row in catalog.devices.values():
        try:
            devices[row.id] = device_from_row(row.model_dump(mode="json"))
        except SolverError:
            continue
    nodes = [
        node_from_row(n.model_dump(mode="json"), devices[n.device])
        for n in catalog.nodes.values()
        if n.device in devices
    ]
    llms = {row.id: llm_from_row(row.model_dump(mode="json")) for row in catalog.llms.values()}
    return Shapes(devices, tuple(nodes), llms)


def published_runs(
    model: TrainingModel, shapes: Shapes, rows: Iterable[TrainingRunRow]
) -> tuple[list[PublishedRun], list[tuple[str, str]]]:
    """Runs with their layouts, and those the model refuses, with why."""
    runs, refused = [], []
    for row in rows:
        try:
            runs.append(_published(model, shapes, row))
        except SolverError as error:
            refused.append((row.id, str(error)))
    return runs, refused


def _published(model: TrainingModel, shapes: Shapes, row: TrainingRunRow) -> PublishedRun:
    precision = row.precision or "bf16"
    device = training_device(shapes.devices[row.device], shapes.nodes, precision, model)
    names = (
        "tensor_parallel",
        "pipeline_parallel",
        "virtual_pipeline",
        "context_parallel",
        "expert_parallel",
        "micro_batch_sequences",
    )
    stated = {name: value for name in names if (value := getattr(row, name)) is not None}
    trained = prepare(
        model, shapes.llms[row.llm], device, devices=row.devices, method=row.method, precision=precision,
        sequence_tokens=row.sequence_tokens, global_batch_sequences=row.global_batch_sequences, stack=row.stack,
        stated=stated, recompute=row.recompute, sharding=None,
    )  # fmt: skip
    found = estimate_training(trained.run, trained.constants, row.devices, trained.layout_space, trained.batch_stated)
    chosen = found.chosen
    layout = one_layout(recompute=chosen.recompute, sharding=chosen.sharding, **chosen.degrees)
    layout = replace(layout, recompute_full=np.array([chosen.recomputed_fraction]))
    return PublishedRun(
        row, trained, trained.run.work(layout), run_kind(row.method, trained.run.shape.experts > 0), chosen.verdict
    )


@dataclass(frozen=True)
class Problem:
    """Runs side by side, with the position of each run's constants in one vector."""

    work: Work
    values: Values
    keys: tuple[Key, ...]
    positions: Mapping[str, np.ndarray]

    def constants(self, values: Values) -> TrainingConstants:
        return TrainingConstants(**{name: values[self.positions[name]] for name in NAMES})


def problem_of(runs: Sequence[PublishedRun]) -> Problem:
    priors: dict[Key, TrainingPrior] = {}
    for run in runs:
        for row in run.trained.rows.values():
            priors[row.name, row.family, row.stack] = row
    keys = tuple(sorted(priors))
    at = {key: n for n, key in enumerate(keys)}
    positions = {name: np.array([at[run.keys[name]] for run in runs]) for name in NAMES}
    return Problem(side_by_side([r.work for r in runs]), np.array([priors[k].value for k in keys]), keys, positions)


def log_rate(work: Work, constants: TrainingConstants) -> Values:
    return np.log(step.tokens_per_s_per_device(work, constants))


def log_peak(work: Work, constants: TrainingConstants) -> Values:
    return np.log(memory.peak_bytes(work, constants) / GIB_BYTES)


def fit_rows(
    runs: Sequence[PublishedRun],
    assumed: Mapping[Key, TrainingPrior],
    *,
    of_memory: bool,
    start: Mapping[Key, float] | None = None,
    rounds: int = 15,
) -> dict[Key, tuple[float, float]]:
    """Value and its deviation (of the logarithm) of every constant that the runs can move."""
    measured = [r for r in runs if not r.row.left_out_because and _measured(r, of_memory) is not None]
    if not measured:
        return {}
    problem = problem_of(measured)
    wanted = [key for key in problem.keys if _is_free(key[0], of_memory)]
    free = np.array([problem.keys.index(key) for key in wanted])
    centre = np.array([assumed[key].value for key in wanted])
    spread = np.array([np.log(assumed[key].high / assumed[key].low) for key in wanted]) / 2 / PRIOR_RANGE_DEVIATIONS
    law = log_peak if of_memory else log_rate

    def predict(tried: Values) -> Values:
        values = problem.values.copy()
        values[free] = tried
        return law(problem.work, problem.constants(values))

    truth = np.log([_measured(r, of_memory) or 1.0 for r in measured])
    begin = None if start is None else np.array([start[key] for key in wanted])
    found: Fitted = fit(
        predict, truth, cluster_weights([r.cluster for r in measured]), centre, np.maximum(spread, 0.02), scale=SCALE,
        start=begin, rounds=rounds,
    )  # fmt: skip
    return {key: (float(v), float(d)) for key, v, d in zip(wanted, found.values, found.deviations, strict=True)}


def with_constants(model: TrainingModel, values: Mapping[Key, tuple[float, float]]) -> TrainingModel:
    """The model with other values for some of its constants."""
    priors = {
        name: [replace(r, value=values.get((r.name, r.family, r.stack), (r.value, 0.0))[0]) for r in rows]
        for name, rows in model.priors.items()
    }
    return TrainingModel(model.catalog, priors)


def fitted_model(
    model: TrainingModel,
    shapes: Shapes,
    rows: Sequence[TrainingRunRow],
    assumed: Mapping[Key, TrainingPrior],
    passes: int = 2,
) -> tuple[TrainingModel, dict[Key, tuple[float, float]]]:
    """Constants and layouts in turn: memory first, for it says which layouts a run can have had."""
    values: dict[Key, tuple[float, float]] = {}
    for _ in range(passes):
        runs, _ = published_runs(model, shapes, rows)
        values |= fit_rows(runs, assumed, of_memory=True)
        values |= fit_rows(runs, assumed, of_memory=False)
        model = with_constants(model, values)
    return model, values


def _is_free(name: str, of_memory: bool) -> bool:
    return name not in GENERALLY_KNOWN and (name in MEMORY_CONSTANTS) == of_memory


def _measured(run: PublishedRun, of_memory: bool) -> float | None:
    return run.row.peak_memory_gib if of_memory else run.row.tokens_per_s_per_device
