"""Which layouts a run can have, and those that a request states but cannot have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np

from solver.errors import UnsupportedError
from solver.training.shape import TrainingShape
from solver.training.work import Layouts, Recompute, Sharding, Values


@dataclass(frozen=True, slots=True)
class LayoutSpace:
    """Layouts that a run may have. stated: degrees by name (``data_parallel`` too). axes: what the software can split.
    recompute: None: of as few layers as memory asks, or of all or none where the software cannot choose layers.
    sequences_together: of one sample, which no split parts: two of a preference pair. uneven: a replica's last micro-batch may be
    smaller than the one stated.
    """

    stated: Mapping[str, int]
    axes: Sequence[str]
    recompute: Recompute | None
    sharding: Sequence[Sharding]
    recomputes_layers: bool = True
    sequences_together: int = 1
    uneven: bool = False


def checked_degrees(shape: TrainingShape, devices: int, batch: int | None, stated: Mapping[str, int]) -> None:
    """Raises UnsupportedError naming the first degree that the model, the devices or the batch rule out, and what would be right."""
    tensor = stated.get("tensor_parallel", 1)
    if shape.heads % tensor:
        raise UnsupportedError(
            "tensor_parallel",
            f"tensor_parallel {tensor} does not divide the model's {shape.heads} heads; {_divisors(shape.heads)} do",
        )
    pipeline = stated.get("pipeline_parallel", 1)
    if pipeline > shape.layers:
        raise UnsupportedError(
            "pipeline_parallel", f"{pipeline} stages for {shape.layers} layers; at most one stage a layer"
        )
    if pipeline * stated.get("virtual_pipeline", 1) > shape.layers + 2:
        raise UnsupportedError(
            "virtual_pipeline",
            f"{pipeline} stages in {stated['virtual_pipeline']} parts are more than the model's {shape.layers} layers",
        )
    expert = stated.get("expert_parallel", 1)
    if expert > 1 and (shape.experts == 0 or shape.experts % expert):
        right = _divisors(shape.experts) if shape.experts else "1"
        raise UnsupportedError(
            "expert_parallel", f"expert_parallel {expert} for {shape.experts} experts; {right} would do"
        )
    inner = tensor * pipeline * stated.get("context_parallel", 1)
    if devices % inner:
        raise UnsupportedError("layout_not_divisible", f"{inner} devices a replica do not divide {devices} devices")
    data = stated.get("data_parallel", devices // inner)
    complete = {"tensor_parallel", "pipeline_parallel", "context_parallel", "data_parallel"} <= stated.keys()
    if (complete and data * inner != devices) or devices % (data * inner):
        raise UnsupportedError("layout_not_divisible", f"the degrees make {data * inner} devices, {devices} are given")
    if batch is not None and {"tensor_parallel", "pipeline_parallel"} <= stated.keys() and batch % data:
        raise UnsupportedError(
            "batch_not_divisible", f"{batch} sequences do not divide over {data} replicas; multiples of {data} do"
        )


def checked_pairs(batch: int | None, layout_space: LayoutSpace) -> None:
    """Raises UnsupportedError for a batch or micro-batch that parts samples of several sequences."""
    together, micro = layout_space.sequences_together, layout_space.stated.get("micro_batch_sequences")
    for reason, of, count in (("batch_not_divisible", "a step", batch), ("micro_batch", "a micro-batch", micro)):
        if count is not None and count % together:
            raise UnsupportedError(reason, f"{count} sequences of {of} part a preference pair, which is {together}")


def enumerate_layouts(shape: TrainingShape, devices: int, batch: int | None, layout_space: LayoutSpace) -> Layouts:
    """Every legal combination. Raises UnsupportedError where there is none.

    Degrees that are not stated are powers of two (tensor parallelism also divides the heads). Interleaving divides a
    stage's layers. Without a batch, each replica has one micro-batch a stage.
    """
    checked_degrees(shape, devices, batch, layout_space.stated)
    checked_pairs(batch, layout_space)
    stated = tuple(sorted(layout_space.stated.items()))
    space = (
        stated, tuple(layout_space.axes), tuple(layout_space.sharding), layout_space.sequences_together,
        layout_space.uneven,
    )  # fmt: skip
    found = splits((shape.heads, shape.layers, shape.experts), devices, batch, *space)
    if not len(found):
        given = "" if batch is None else f" with {batch} sequences a step"
        micro = layout_space.stated.get("micro_batch_sequences")
        given += "" if micro is None or batch is None else f" in micro-batches of {micro}"
        raise UnsupportedError("batch_not_divisible", f"no layout of {devices} devices{given} divides evenly")
    again = [np.full(len(found), float(layout_space.recompute == one)) for one in ("full", "selective")]
    return Layouts(*[*found.T[:-1], *again, found.T[-1]])


@lru_cache(maxsize=256)
def splits(
    counts: tuple[int, int, int], devices: int, batch: int | None, stated_degrees: tuple[tuple[str, int], ...],
    axes: tuple[str, ...], shardings: tuple[Sharding, ...], together: int, uneven: bool,
) -> Values:  # fmt: skip
    """Degrees, micro-batch and sharding of each layout, a row each; kept, since a plan asks for the same on every kind of device.
    counts: of the model's heads, layers and experts."""
    heads, layers, experts = counts
    stated = dict(stated_degrees)
    rows: list[tuple[float, ...]] = []
    for tensor, pipeline, context in product(
        _choices(stated, "tensor_parallel", "tensor" in axes, _tensor_degrees(heads)),
        _choices(stated, "pipeline_parallel", "pipeline" in axes, _stages(min(devices, layers))),
        _choices(stated, "context_parallel", "context" in axes, _powers(min(devices, LONGEST_RING))),
    ):
        inner = tensor * pipeline * context
        if devices % inner or ("data_parallel" in stated and stated["data_parallel"] * inner != devices):
            continue
        data = devices // inner
        if batch is not None and batch % data:
            continue
        share = None if batch is None else batch // data
        if share is not None and not uneven and share % stated.get("micro_batch_sequences", 1):
            continue
        for expert, virtual, micro, sharding in product(
            _expert_degrees(experts, stated, data * context * tensor, "expert" in axes),
            _virtual_degrees(layers, stated, pipeline),
            _micro_batches(stated, share, together),
            shardings,
        ):
            rows.append((tensor, pipeline, virtual, context, expert, data, micro, sharding == "zero3"))
    found = np.array(rows, dtype=float)
    found.flags.writeable = False
    return found


LONGEST_RING = 64
"""Context parallelism beyond this has not been published."""
LARGEST_MICRO_BATCH = 64


def _choices(stated: Mapping[str, int], name: str, can: bool, degrees: Sequence[int]) -> Sequence[int]:
    if name in stated:
        return (stated[name],)
    return degrees if can else (1,)


def _powers(most: int) -> list[int]:
    return [2**n for n in range(max(most, 1).bit_length()) if 2**n <= most]


def _stages(most: int) -> list[int]:
    """Powers of two, and three times them: numbers of layers have both."""
    return sorted({d * n for d in _powers(most) for n in (1, 3) if d * n <= most})


def _tensor_degrees(heads: int) -> list[int]:
    return [d for d in (1, 2, 4, 8) if heads % d == 0]


def _expert_degrees(experts: int, stated: Mapping[str, int], ranks: int, can: bool) -> Sequence[int]:
    if "expert_parallel" in stated:
        return (stated["expert_parallel"],)
    if not can or experts == 0:
        return (1,)
    return [d for d in _powers(min(ranks, experts)) if experts % d == 0 and ranks % d == 0]


def _virtual_degrees(layers: int, stated: Mapping[str, int], pipeline: int) -> Sequence[int]:
    if "virtual_pipeline" in stated or pipeline == 1:
        return (stated.get("virtual_pipeline", 1),)
    per_stage = max(1, round(layers / pipeline))
    return [d for d in range(1, per_stage + 1) if per_stage % d == 0]


def _micro_batches(stated: Mapping[str, int], share: int | None, together: int) -> Sequence[int]:
    if "micro_batch_sequences" in stated:
        return (stated["micro_batch_sequences"],)
    if share is None:
        return [d for d in _powers(8) if d % together == 0]
    return [d for d in _powers(min(share, LARGEST_MICRO_BATCH)) if share % d == 0 and d % together == 0]


def _divisors(count: int) -> str:
    return ", ".join(str(d) for d in range(1, count + 1) if count % d == 0)
