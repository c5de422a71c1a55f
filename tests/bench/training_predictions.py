"""What the model says of the steps that training_on_a_device.py times: ``python -m tests.bench.training_predictions CASES``.

CASES holds a line of JSON a case, with or without what was measured: its output, or that of its ``--list``. Each is predicted
as two stacks: fine-tuning programs on one device, and PyTorch's own. Prints the lines with ``predicted`` by stack, and errors
in per cent where something was measured.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from catalog.read import read_catalog
from service.training.fitting import Shapes, shapes_of
from service.training.inputs import TrainingModel, prepare, spread_of, training_device, training_model
from solver.training.estimate import estimate_training
from solver.units import GIB_BYTES

STACKS = ("transformers", "torchtitan")


def predicted(case: dict[str, Any], device: str, stack: str, model: TrainingModel, shapes: Shapes) -> dict[str, Any]:
    """Tokens a second, seconds of a step, GiB at the peak."""
    machine = training_device(shapes.devices[device], shapes.nodes, "bf16", model)
    trained = prepare(
        model, shapes.llms[case["llm"]], machine, devices=1, method=case["method"], precision="bf16",
        sequence_tokens=case["sequence_tokens"], global_batch_sequences=case["global_batch_sequences"], stack=stack,
        stated={"micro_batch_sequences": case["micro_batch_sequences"]}, recompute=case["recompute"], sharding=None,
        adapter_rank=case["rank"] or None,
    )  # fmt: skip
    found = estimate_training(trained.run, trained.constants, 1, trained.layout_space, batch_stated=True)
    spread = spread_of(model, case["method"], mixture=False, stacks=trained.stacks)
    rate = found.chosen.tokens_per_s_per_device
    return {
        "tokens_per_s": round(rate, 1),
        "tokens_per_s_low": round(rate * spread.low_ratio, 1),
        "tokens_per_s_high": round(rate * spread.high_ratio, 1),
        "step_s": round(found.step_s, 5),
        "peak_gib": round(found.chosen.peak_bytes / GIB_BYTES, 3),
    }


def with_errors(line: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    if line.get("tokens_per_s"):
        said["tokens_per_s_error_percent"] = round(100.0 * (said["tokens_per_s"] / line["tokens_per_s"] - 1.0), 1)
    if line.get("max_memory_reserved_gib"):
        said["peak_error_percent"] = round(100.0 * (said["peak_gib"] / line["max_memory_reserved_gib"] - 1.0), 1)
    return said


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--on", default="h100-sxm", help="the device's name in the catalog")
    asked = parser.parse_args()
    model, shapes = training_model(), shapes_of(read_catalog())
    for text in asked.cases.read_text(encoding="utf-8").splitlines():
        if not text.startswith("{"):
            continue
        line = json.loads(text)
        line["predicted"] = {
            stack: with_errors(line, predicted(line, asked.on, stack, model, shapes)) for stack in STACKS
        }
        print(json.dumps(line))
    return 0


if __name__ == "__main__":
    sys.exit(main())
