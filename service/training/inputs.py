"""Catalog rows → what the training model works with."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import numpy as np

from catalog.read_training import TrainingCatalog, read_training
from catalog.rows import ConstantRow
from catalog.training_rows import TrainingStackRow
from service.training.said import PAIR_SEQUENCES
from solver.errors import FigureMissingError, UnsupportedError
from solver.hardware import Device, Node
from solver.llm_shape import LlmShape
from solver.training.constants import (
    GEMM_EFFICIENCY,
    TrainingConstants,
    TrainingPrior,
    by_name,
    chosen_prior,
    chosen_rows,
    resolve,
)
from solver.training.estimate import RatioInterval
from solver.training.layouts import LayoutSpace, checked_degrees
from solver.training.shape import TrainingShape, training_shape
from solver.training.work import COMPUTE_RATE, Method, Recompute, Reference, Run, Sharding, TrainingDevice

NETWORK = "network_bytes_per_s"
SPREAD_LOW, SPREAD_HIGH = "speed_low_ratio", "speed_high_ratio"
ANCHORED = "anchored"
MOST_EXTENSION = "context_extension_factor"
ADAPTER_RANK = "adapter_rank"
DEFAULT_SEQUENCE = "default_sequence_tokens"
USUAL_OPTIMIZER = "adamw"
"""What each stack's own constant is of."""
FITTED_BASES = ("measured", "corrected")


@dataclass(frozen=True, eq=False)
class TrainingModel:
    """The training catalog as the solver sees it. priors: every constant by its name."""

    catalog: TrainingCatalog
    priors: Mapping[str, Sequence[TrainingPrior]]

    def value(self, name: str, family: str = "*", stacks: Sequence[str] = ()) -> float | None:
        row = chosen_prior(self.priors.get(name, ()), name, (family,), stacks)
        return None if row is None else row.value


@cache
def training_model() -> TrainingModel:
    """What ships with the package, read once."""
    return model_of(read_training())


def place(row: ConstantRow) -> str:
    """The device a constant is about, or its family."""
    return row.family if row.device == "*" else row.device


def model_of(catalog: TrainingCatalog) -> TrainingModel:
    priors = [
        TrainingPrior(c.name, place(c), c.engine, c.value, c.low, c.high, c.basis in FITTED_BASES)
        for c in catalog.constants
    ]
    return TrainingModel(catalog, by_name(priors))


@lru_cache(maxsize=64)
def families_that_train(model: TrainingModel) -> set[str]:
    """Families of which a training run or a datasheet gives an efficiency."""
    return {row.family for name in set(GEMM_EFFICIENCY.values()) for row in model.priors.get(name, ())}


def checked_to_train(device: Device, model: TrainingModel) -> None:
    """Raises UnsupportedError for a device of which nothing says that it trains, such as one made for inference alone."""
    if device.family not in families_that_train(model):
        raise UnsupportedError(
            "device_without_training",
            f"{device.id}: nothing published says that it trains; devices of {', '.join(sorted(families_that_train(model)))} do",
        )


def training_device(
    device: Device, nodes: Iterable[Node], precision: str, model: TrainingModel, node: Node | None = None
) -> TrainingDevice:
    """The device at one precision, on a machine named or on the best networked one that holds it.

    Raises UnsupportedError for a device nothing says trains, and for a precision it has no rate for.
    """
    checked_to_train(device, model)
    if precision not in COMPUTE_RATE:
        raise UnsupportedError(
            "precision", f"no precision {precision!r} for training; {', '.join(COMPUTE_RATE)} are known"
        )
    rates = device.flop_per_s
    sixteen = rates.get("bf16") or rates.get("fp16")
    if sixteen is None:
        raise FigureMissingError(device.id, "dense 16-bit matrix rate")
    wanted = COMPUTE_RATE[precision]
    if wanted == "bf16" and "bf16" not in rates:
        wanted = "fp16"  # of 16 bits as well: programs written for one run with the other
    if wanted not in rates:
        own = [name for name, rate in COMPUTE_RATE.items() if rate in rates]
        raise UnsupportedError("precision", f"{device.id} has no {precision} matrix rate; it has {', '.join(own)}")
    holding = [node] if node is not None else [one for one in nodes if one.device.id == device.id]
    networks = [one.network_bytes_per_s / one.devices for one in holding]
    domains = [one.link_domain_devices for one in holding] if node is not None else [device.link_domain_devices]
    rack = max((one.rack_domain_devices for one in holding), default=0)
    link = device.link_bytes_per_s
    if link <= 0.0:
        link, domains = device.pcie_bytes_per_s, [max((one.devices for one in holding), default=1)]
    return TrainingDevice(
        id=device.id,
        family=device.family,
        memory_bytes=device.memory_bytes,
        memory_bytes_per_s=device.memory_bytes_per_s,
        flop_per_s=rates[wanted],
        sixteen_bit_flop_per_s=sixteen,
        link_bytes_per_s=link,
        link_domain_devices=max([*domains, rack, 1]),
        network_bytes_per_s=max(networks, default=0.0) or model.value(NETWORK, device.family) or 0.0,
    )


@dataclass(frozen=True)
class Trained:
    """A training run, ready for the solver. stack: whose constants hold."""

    run: Run
    constants: TrainingConstants
    rows: Mapping[str, TrainingPrior]
    layout_space: LayoutSpace
    stack: TrainingStackRow
    stacks: tuple[str, ...]
    batch_stated: bool
    evidence: tuple[str, ...]
    """Sources of published runs on the same device with the same software."""

    @property
    def is_fitted(self) -> bool:
        """Do runs of the device's family say what its products reach?"""
        return self.rows["gemm_efficiency"].fitted


def prepare(
    model: TrainingModel,
    shape: LlmShape,
    device: TrainingDevice,
    *,
    devices: int,
    method: Method,
    precision: str,
    sequence_tokens: int | None,
    global_batch_sequences: int | None,
    stack: str | None,
    stated: Mapping[str, int],
    recompute: Recompute | None,
    sharding: Sharding | None,
    adapter_rank: int | None = None,
    optimizer: str | None = None,
    reference: Reference | None = None,
) -> Trained:
    """Fill in what is not stated, from the stack. reference: preferences are trained on, in pairs of sequences.

    Raises UnsupportedError, FigureMissingError.
    """
    row = chosen_stack(model, stack, method, device.family)
    if row is None:
        raise FigureMissingError(device.id, f"training stack for {method}")
    stacks = model.catalog.lineage(row)
    length = sequence_tokens or _sequence(model, shape, stacks)
    summed = training_shape(shape, length)
    _check_length(model, shape, summed, length)
    rows, constants = _constants(model, device.id, device.family, stacks, precision)
    if optimizer is not None and optimizer != USUAL_OPTIMIZER:
        constants = replace(
            constants, optimizer_bytes=np.array([_needed(model, f"optimizer_bytes_{optimizer}", stacks)])
        )
    rank = adapter_rank or int(_needed(model, ADAPTER_RANK, stacks))
    together = 1 if reference is None else PAIR_SEQUENCES
    batch = global_batch_sequences or devices * stated.get("micro_batch_sequences", together)
    run = Run(summed, device, method, length, batch, adapter_weights(summed, rank), reference)
    layout_space = LayoutSpace(
        stated=stated,
        axes=row.axes,
        recompute=recompute or row.recompute,
        sharding=(sharding,) if sharding else tuple(row.sharding),
        recomputes_layers=row.recomputes_layers,
        sequences_together=together,
        uneven=row.uneven_micro_batches,
    )
    return Trained(
        run,
        constants,
        rows,
        layout_space,
        row,
        stacks,
        global_batch_sequences is not None,
        _evidence(model, device.id, stacks),
    )


@lru_cache(maxsize=4096)
def _constants(
    model: TrainingModel, device_id: str, family: str, stacks: tuple[str, ...], precision: str
) -> tuple[Mapping[str, TrainingPrior], TrainingConstants]:
    rows = chosen_rows(model.priors, device=device_id, family=family, stacks=stacks, precision=precision)
    return rows, resolve(rows)


def chosen_stack(model: TrainingModel, name: str | None, method: str, family: str) -> TrainingStackRow | None:
    """The stack named, unless the family has one of its own and this is none of it."""
    own = [row for row in model.catalog.stacks.values() if family in row.families]
    named = model.catalog.stack_named(name) if name else None
    if named is not None and (not own or named in own):
        return named
    return next(iter(own), None) or model.catalog.default_stack(method, family)


@lru_cache(maxsize=4096)
def _evidence(model: TrainingModel, device_id: str, stacks: tuple[str, ...]) -> tuple[str, ...]:
    """Sources of fitted runs on this device with this software."""
    found = {
        run.source
        for run in model.catalog.runs
        if run.device == device_id
        and not run.left_out_because
        and run.tokens_per_s_per_device is not None
        and (stack := model.catalog.stack_named(run.stack)) is not None
        and set(model.catalog.lineage(stack)) & set(stacks)
    }
    return tuple(sorted(found))


def adapter_weights(shape: TrainingShape, rank: int) -> float:
    """Parameters of low-rank adapters on every linear matrix of the layers: rank·(inputs + outputs) of each.

    A matrix of P parameters between widths near √P has about 2·rank·√P; a layer's seven are taken as square ones of its mean.
    """
    matrices = 7.0
    mean = shape.linear_weights / shape.layers / matrices
    return float(shape.layers * matrices * 2.0 * rank * mean**0.5)


def spread_of(
    model: TrainingModel, method: str, mixture: bool, stacks: Sequence[str], anchored: bool = False
) -> RatioInterval:
    """How far measured rates were from predicted ones, of runs of the same kind; anchored: of runs beside another of the same
    model, device and software that was measured.
    """
    kind = ANCHORED if anchored else run_kind(method, mixture)
    return RatioInterval(
        _needed(model, f"{SPREAD_LOW}_{kind}", stacks), _needed(model, f"{SPREAD_HIGH}_{kind}", stacks)
    )


def run_kind(method: str, mixture: bool) -> str:
    """
    >>> run_kind("qlora", False), run_kind("pretrain", True)
    ('adapters', 'mixture')
    """
    if method in ("lora", "qlora"):
        return "adapters"
    return "mixture" if mixture else "dense"


def _sequence(model: TrainingModel, shape: LlmShape, stacks: Sequence[str]) -> int:
    return min(shape.max_context_tokens, int(_needed(model, DEFAULT_SEQUENCE, stacks)))


def _needed(model: TrainingModel, name: str, stacks: Sequence[str]) -> float:
    value = model.value(name, "*", stacks)
    if value is None:
        raise FigureMissingError("training", name)
    return value


def check_model_takes(
    model: TrainingModel, shape: LlmShape, sequence_tokens: int | None, stated: Mapping[str, int]
) -> None:
    """Raises UnsupportedError for what no device changes: sequences beyond the model, degrees beyond its heads, layers or experts."""
    summed = training_shape(shape, sequence_tokens or shape.max_context_tokens)
    if sequence_tokens is not None:
        _check_length(model, shape, summed, sequence_tokens)
    degrees = {name: degree for name, degree in stated.items() if name.endswith("_parallel") and "expert" not in name}
    checked_degrees(summed, math.prod(degrees.values()), None, stated)


def _check_length(model: TrainingModel, shape: LlmShape, summed: TrainingShape, length: int) -> None:
    """Raises UnsupportedError for sequences beyond the model: its table of positions, or any extension published."""
    most = shape.max_context_tokens
    if not summed.learned_positions:
        most = round(most * _needed(model, MOST_EXTENSION, ()))
    if length > most:
        raise UnsupportedError(
            "sequence_tokens",
            f"{shape.id} takes {shape.max_context_tokens} tokens; {length} is beyond any published extension of a context: at most {most}",
        )
