"""One training run to the solver, and its prediction back to the wire."""

import math
from collections.abc import Iterable, Mapping, Sequence

from service.recommendations.catalog_snapshot import CatalogSnapshot
from service.training.inputs import Trained, TrainingModel, chosen_stack, prepare, spread_of, training_device
from service.training.measured import OF_THE_RUN, MeasuredRun, of_the_same
from service.wire.quantities import Interval
from service.wire.training import (
    TrainingAnchorIn,
    TrainingCase,
    TrainingChoiceOut,
    TrainingEstimatedOut,
    TrainingEstimateIn,
    TrainingLayoutIn,
    TrainingLayoutOut,
    TrainingMemoryOut,
    TrainingTermOut,
)
from solver.hardware import Node
from solver.llm_shape import LlmShape
from solver.training.estimate import PredictedLayout, RatioInterval, TrainingEstimate, estimate_training
from solver.training.work import TrainingDevice
from solver.units import gib_from_bytes

MFU_CONVENTION = (
    "6 operations for each active weight and token plus causal attention, over the dense rate at the run's precision;"
    " recomputation and frozen weights change nothing in it"
)
REFUSED_FIELDS = {
    "sequence_tokens": "sequence_tokens",
    "batch_not_divisible": "global_batch_sequences",
    "micro_batch": "micro_batch_sequences",
    "precision": "precision",
    "device_without_training": "device",
    "layout_not_divisible": "devices",
    "tensor_parallel": "layout/tensor_parallel",
    "pipeline_parallel": "layout/pipeline_parallel",
    "virtual_pipeline": "layout/virtual_pipeline",
    "expert_parallel": "layout/expert_parallel",
}
"""Why the model refuses a run → the field that says so."""


def predict_training(
    asked: TrainingEstimateIn, shape: LlmShape, snapshot: CatalogSnapshot, node: Node | None, model: TrainingModel,
    runs: Sequence[MeasuredRun] = (),
) -> TrainingEstimatedOut:  # fmt: skip
    """Raises what the solver raises."""
    device = training_device(snapshot.devices[asked.device], snapshot.nodes.values(), asked.precision, model, node)
    trained = prepared(asked, shape, device, asked.devices, model)
    found = estimate_training(trained.run, trained.constants, asked.devices, trained.layout_space, trained.batch_stated)
    stored = own_runs(runs, asked, device, model, trained)
    anchors = [*asked.anchors, *(run.anchor for run in stored)]
    factor, spread = anchored(asked, shape, device, model, trained, anchors)
    return present_training(
        found, trained, factor, spread, anchors=len(anchors), stored=[run.id for run in stored],
        cautions=cautions(trained, shape, found),
    )  # fmt: skip


def prepared(
    asked: TrainingCase, shape: LlmShape, device: TrainingDevice, devices: int, model: TrainingModel
) -> Trained:
    """The run with its constants; an optimizer that is named has its own bytes."""
    return prepare(
        model, shape, device, devices=devices, method=asked.trains, precision=asked.precision,
        sequence_tokens=asked.sequence_tokens, global_batch_sequences=asked.global_batch_sequences, stack=asked.stack,
        stated=stated_degrees(asked.layout, asked.micro_batch_sequences), recompute=asked.recompute,
        sharding=asked.sharding, adapter_rank=asked.adapter_rank, optimizer=asked.optimizer,
        reference=asked.reference_used,
    )  # fmt: skip


def stated_degrees(layout: TrainingLayoutIn, micro_batch_sequences: int | None) -> dict[str, int]:
    stated = {name: value for name, value in layout.model_dump().items() if value is not None}
    if micro_batch_sequences is not None:
        stated["micro_batch_sequences"] = micro_batch_sequences
    return stated


def anchored(
    asked: TrainingCase, shape: LlmShape, device: TrainingDevice, model: TrainingModel, trained: Trained,
    anchors: Sequence[TrainingAnchorIn],
) -> tuple[float, RatioInterval]:  # fmt: skip
    """What rates are multiplied with, and how far the result may be off: by the geometric mean of measured over predicted
    rates of the anchors.
    """
    spread = spread_of(model, asked.trains, trained.run.shape.experts > 0, trained.stacks, anchored=bool(anchors))
    ratios = [measured_ratio(asked, anchor, shape, device, model) for anchor in anchors]
    if not ratios:
        return 1.0, spread
    return math.exp(sum(map(math.log, ratios)) / len(ratios)), spread


def measured_ratio(
    asked: TrainingCase, anchor: TrainingAnchorIn, shape: LlmShape, device: TrainingDevice, model: TrainingModel
) -> float:
    """Measured over predicted rate of an anchor; what it does not state is as in the case."""
    own = {name: value for name in OF_THE_RUN if (value := getattr(anchor, name)) is not None}
    case = asked.model_copy(update={"layout": anchor.layout, **own})
    trained = prepared(case, shape, device, anchor.devices, model)
    found = estimate_training(
        trained.run, trained.constants, anchor.devices, trained.layout_space, trained.batch_stated
    )
    return anchor.tokens_per_s_per_device / found.chosen.tokens_per_s_per_device


def own_runs(
    runs: Sequence[MeasuredRun], asked: TrainingCase, device: TrainingDevice, model: TrainingModel, trained: Trained
) -> list[MeasuredRun]:
    """Stored runs of the same model, device, method and precision with the same software."""
    return [
        run
        for run in of_the_same(runs, asked, device.id)
        if chosen_stack(model, run.stack, asked.trains, device.family) is trained.stack
    ]


def cautions(trained: Trained, shape: LlmShape, found: TrainingEstimate) -> list[str]:
    """What to know before believing the figures."""
    told = []
    if trained.run.sequence_tokens > shape.max_context_tokens:
        told.append(
            f"sequences are longer than the {shape.max_context_tokens} tokens that {shape.id} was published with"
        )
    if not trained.batch_stated:
        told.append("no global batch was stated: one micro-batch a device is assumed")
    if trained.run.reference is not None:
        told.append(
            "no published run of preference tuning was compared: the interval is that of runs without a reference"
        )
    if trained.run.reference == "precomputed":
        told.append("the reference's log-probabilities are computed before, once: a forward pass over all pairs")
    if found.chosen.verdict == "tight":
        told.append("memory is within a tenth of the device's: published peaks scatter by as much")
    return told


def interval(expected: float, spread: RatioInterval) -> Interval:
    return Interval(
        expected=expected, low=expected * min(spread.low_ratio, 1.0), high=expected * max(spread.high_ratio, 1.0)
    )


def present_training(
    found: TrainingEstimate, trained: Trained, factor: float, spread: RatioInterval, *, anchors: int, stored: Iterable[str],
    cautions: Iterable[str],
) -> TrainingEstimatedOut:  # fmt: skip
    """On the wire: seconds, GiB, every default echoed."""
    rate = found.chosen.tokens_per_s_per_device * factor
    slow = RatioInterval(1.0 / max(spread.high_ratio, 1.0), 1.0 / min(spread.low_ratio, 1.0))
    fits = found.chosen.verdict != "does_not_fit"
    need, have = gib_from_bytes(found.chosen.peak_bytes), gib_from_bytes(found.available_bytes)
    return TrainingEstimatedOut(
        outcome="estimated" if fits else "does_not_fit",
        detail="" if fits else f"no layout needs less than {need:.1f} GiB of a device's {have:.1f} GiB",
        basis="corrected" if anchors or trained.evidence else "borrowed" if trained.is_fitted else "analytical",
        evidence=[*trained.evidence, *stored],
        tokens_per_s_per_device=interval(rate, spread),
        step_s=interval(found.step_s / factor, slow),
        mfu_fraction=interval(found.mfu_fraction * factor, spread),
        mfu_convention=MFU_CONVENTION,
        memory=present_memory(found),
        layout=present_layout(found.chosen),
        shortlist=[
            TrainingChoiceOut(
                layout=present_layout(one),
                tokens_per_s_per_device=one.tokens_per_s_per_device * factor,
                peak_gib=round(gib_from_bytes(one.peak_bytes), 3),
                verdict=one.verdict,
            )
            for one in found.shortlist
        ],
        considered=found.considered,
        terms=[
            TrainingTermOut(term=name, time_s=seconds / factor, time_fraction=seconds / found.step_s)
            for name, seconds in found.terms.items()
            if seconds > 0.0
        ],
        stack=trained.stack.id,
        sequence_tokens=trained.run.sequence_tokens,
        global_batch_sequences=trained.run.global_batch_sequences,
        cautions=list(cautions),
    )


def present_memory(found: TrainingEstimate) -> TrainingMemoryOut:
    gib: Mapping[str, float] = {name: round(gib_from_bytes(size), 3) for name, size in found.parts.items()}
    return TrainingMemoryOut(
        weights_gib=gib["weights"],
        gradients_gib=gib["gradients"],
        optimizer_gib=gib["optimizer"],
        activations_gib=gib["activations"],
        logits_gib=gib["logits"],
        reserved_gib=gib["reserved"],
        peak_gib=round(gib_from_bytes(found.chosen.peak_bytes), 3),
        available_gib=round(gib_from_bytes(found.available_bytes), 3),
        verdict=found.chosen.verdict,
    )


def present_layout(one: PredictedLayout) -> TrainingLayoutOut:
    return TrainingLayoutOut(
        **one.degrees, sharding=one.sharding, recompute=one.recompute,
        recomputed_layers_fraction=round(one.recomputed_fraction, 4),
    )  # fmt: skip
