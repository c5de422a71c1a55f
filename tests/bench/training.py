"""Training: seconds of a plan and of a search, and published layouts beside the best found:
``python -m tests.bench.training``. Processor time.
"""

import argparse
import datetime as dt
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from catalog.read import read_catalog
from service.clock import system_clock
from service.database import Database
from service.llms.queries import llms_by_ids
from service.recommendations.catalog_snapshot import SnapshotCache
from service.recommendations.from_rows import llm_from_row
from service.training.fitting import Shapes, shapes_of
from service.training.inputs import Trained, TrainingModel, prepare, training_device, training_model
from service.training.recommend import plan_training
from service.wire.training_plans import TrainingRecommendationIn
from solver.training.estimate import compared, estimate_training
from solver.training.layouts import splits
from tests.bench.planner import seeded_database

JOBS = (
    {"name": "tune", "llm": "llama-3.1-8b", "method": "lora", "tokens": 5e7, "sequence_tokens": 4096},
    {"name": "full", "llm": "qwen3-30b-a3b", "method": "full", "tokens": 2e9, "sequence_tokens": 4096},
    {"name": "train", "llm": "llama-3.1-70b", "method": "pretrain", "precision": "fp8", "sequence_tokens": 8192,
     "global_batch_sequences": 512, "tokens": 1e11},
)  # fmt: skip
WEEKS = 12


def degrees(
    tensor: int, pipeline: int, virtual: int | None, *, context: int = 1, expert: int = 1, micro: int | None = None
) -> dict[str, int]:
    found = {
        "tensor_parallel": tensor, "pipeline_parallel": pipeline, "virtual_pipeline": virtual, "context_parallel": context,
        "expert_parallel": expert, "micro_batch_sequences": micro,
    }  # fmt: skip
    return {name: value for name, value in found.items() if value is not None}


KNOWN: tuple[tuple[str, str, int, str, int, int, dict[str, int]], ...] = (
    # MLPerf Training v3.1 and v5.0, configurations of NVIDIA's submissions
    ("gpt-3-175b", "h100-sxm", 512, "fp8", 2048, 2048, degrees(4, 8, 6, micro=2)),
    ("llama-3.1-405b", "gb200-nvl72", 512, "fp8", 8192, 896, degrees(4, 8, 8, context=2)),
    ("llama-3.1-405b", "h100-sxm", 512, "fp8", 8192, 1152, degrees(8, 8, 8, context=2)),
    ("llama-3.1-405b", "h100-sxm", 1024, "fp8", 8192, 1152, degrees(8, 8, 8, context=2)),
    # NVIDIA-NeMo/Megatron-Bridge, docs/performance-summary.md; batches of 405B, Qwen3 and DeepSeek as remembered
    ("llama-3.1-70b", "gb300-nvl72", 64, "nvfp4", 8192, 256, degrees(1, 4, 5)),
    ("llama-3.1-70b", "gb300-nvl72", 64, "fp8", 8192, 256, degrees(1, 1, 1)),  # FSDP
    ("llama-3.1-70b", "h100-sxm", 64, "fp8", 8192, 256, degrees(4, 8, 5)),
    ("llama-3.1-405b", "gb200-nvl72", 256, "fp8", 8192, 1536, degrees(4, 16, 4)),
    ("llama-3.1-405b", "gb300-nvl72", 256, "fp8", 8192, 1536, degrees(4, 8, 4)),
    ("qwen3-235b-a22b", "gb300-nvl72", 256, "mxfp8", 4096, 8192, degrees(1, 4, None, expert=32)),
    ("deepseek-v3", "gb200-nvl72", 256, "mxfp8", 4096, 4096, degrees(1, 4, 4, expert=64)),
    # arXiv:2407.21783, table 4
    ("llama-3.1-405b", "h100-sxm", 16_384, "bf16", 8192, 2048, degrees(8, 16, None)),
    ("llama-3.1-405b", "h100-sxm", 16_384, "bf16", 131_072, 128, degrees(8, 16, None, context=16)),
    # the usual split of 70B over nodes of eight
    ("llama-3.1-70b", "h100-sxm", 512, "bf16", 8192, 512, degrees(8, 8, None)),
)
"""Model, device, devices, precision, sequence, batch, split."""


def processor_s(work: Callable[[], object]) -> float:
    """With nothing kept of what was listed before."""
    splits.cache_clear()
    begun = time.process_time()
    work()
    return time.process_time() - begun


def plan_seconds(model: TrainingModel, times: int) -> list[float]:
    """Three jobs within twelve weeks over every offer that the buying policy admits, nothing kept between them."""
    with tempfile.TemporaryDirectory() as folder:
        database = Database(seeded_database(Path(folder) / "bench.db"))
        now = system_clock()
        deadline = (now + dt.timedelta(weeks=WEEKS)).isoformat()
        asked = TrainingRecommendationIn.model_validate({"jobs": [job | {"deadline": deadline} for job in JOBS]})
        with database.reading() as session:
            snapshot = SnapshotCache().at(session, now)
            rows = llms_by_ids(session, {job.llm for job in asked.jobs})
            shapes = {row.id: llm_from_row(row.row) for row in rows}
        found = [processor_s(lambda: plan_training(asked, shapes, snapshot.offers, model, now)) for _ in range(times)]
        planned = plan_training(asked, shapes, snapshot.offers, model, now)
        print(f"  {len(planned.offers)} offers, {len(planned.columns)} columns, proven: {planned.chosen.proven}")
        database.close()
    return found


def run_case(
    model: TrainingModel, shapes: Shapes, llm: str, device: str, devices: int, precision: str, sequence: int, batch: int
) -> Trained:
    machine = training_device(shapes.devices[device], shapes.nodes, precision, model)
    return prepare(
        model, shapes.llms[llm], machine, devices=devices, method="pretrain", precision=precision, sequence_tokens=sequence,
        global_batch_sequences=batch, stack="megatron-bridge", stated={}, recompute=None, sharding=None,
    )  # fmt: skip


def search_speed(model: TrainingModel, shapes: Shapes) -> Iterator[tuple[str, int, float]]:
    """Name, layouts, milliseconds for 10,000 of them, enumeration and all."""
    for llm, device, devices, precision, batch in (
        ("llama-3.1-405b", "h100-sxm", 16_384, "bf16", 2048),
        ("deepseek-v3", "h100-sxm", 2_048, "bf16", 4096),
        ("llama-3.1-70b", "gb300-nvl72", 576, "fp8", 1152),
    ):
        trained = run_case(model, shapes, llm, device, devices, precision, 8192, batch)
        found = estimate_training(trained.run, trained.constants, devices, trained.layout_space, True)
        search = partial(estimate_training, trained.run, trained.constants, devices, trained.layout_space, True)
        seconds = statistics.median(processor_s(search) for _ in range(7))
        yield f"{llm} on {devices} {device}", found.considered, 1e3 * seconds * 10_000 / found.considered


def known_layouts(model: TrainingModel, shapes: Shapes) -> Iterator[tuple[str, float]]:
    """How much longer each published split takes than the best found for its batch, by the model."""
    for llm, device, devices, precision, sequence, batch, stated in KNOWN:
        trained = run_case(model, shapes, llm, device, devices, precision, sequence, batch)
        c, run = trained.constants, trained.run
        best = compared(run, c, devices, trained.layout_space, True)
        own = compared(run, c, devices, replace(trained.layout_space, stated=stated), True)
        split = ", ".join(f"{name.partition('_')[0]} {value}" for name, value in stated.items())
        gap = float(own.seconds[own.best]) / float(best.seconds[best.best]) - 1.0
        yield f"{llm} on {devices} {device} {precision}, {sequence} tokens: {split}", gap


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=3)
    asked = parser.parse_args()
    model, shapes = training_model(), shapes_of(read_catalog())
    print("plan of three jobs over all offers within twelve weeks")
    print(f"  {statistics.median(plan_seconds(model, asked.times)):.2f} s")
    print("search, milliseconds for 10,000 layouts")
    for name, count, milliseconds in search_speed(model, shapes):
        print(f"  {name}: {count} layouts, {milliseconds:.0f} ms")
    print("published split beside the best found, same batch")
    gaps = list(known_layouts(model, shapes))
    for name, gap in gaps:
        print(f"  {name}: {100 * gap:+.1f} %")
    print(f"  within 5 %: {sum(gap <= 0.05 for _, gap in gaps)} of {len(gaps)}")


if __name__ == "__main__":
    main()
