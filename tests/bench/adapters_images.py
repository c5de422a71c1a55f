"""Adapters, images and models that embed on one H100 SXM under vLLM 0.24: what is predicted of a grid of closed loads.

python -m tests.bench.adapters_images            prints the table
python -m tests.bench.adapters_images --json     the same, to be kept before anything is measured
python -m tests.bench.adapters_images --memory   prints weights of a device with and without adapters
"""

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from service.corrections.snapshot import corrected_priors
from solver.adapters import Adapters, zipf_popularity
from solver.deployment.configuration import Configuration
from solver.layout import Layout
from solver.lengths import fixed_lengths
from solver.llm_shape import LlmShape
from solver.memory.weights import adapter_slot_bytes, stage_weight_bytes
from solver.replay.one_stream import replay
from solver.step.constants import ConstantPrior, resolve_constants
from solver.vision import Images
from solver.workload import Load, Traffic
from tests.llm_shapes import shape
from tests.solver.samples import catalog, configuration, priors

DEVICE = "h100-sxm"
MEASURED = Path(__file__).with_name("adapters_images_measured.jsonl")
OTHER_HOST = Path(__file__).with_name("adapters_images_other_host.jsonl")
"""Measured on 2026-11-25, after the constants had been chosen from the others: servers on three or four cores, some with others beside."""
CLIENTS = (1, 8, 32, 64)
ROUNDS = 8
"""Requests of each client."""


def adapted(count: int, rank: int, prompt: int) -> LlmShape:
    base = shape("llama-3.1-8b")
    if not count:
        return base
    return replace(base, adapters=Adapters(zipf_popularity(count, 0.0), rank, count, prompt_tokens=float(prompt)))


def looking(llm: str, side: int, text: int) -> tuple[LlmShape, int]:
    found = shape(llm)
    assert found.vision is not None
    tokens = found.vision.image_tokens(side, side)
    images = Images(1, found.vision.image_patches(side, side), tokens, side * side / 1e6, float(text + tokens))
    return replace(found, images=images), text + tokens


def cases() -> Iterator[tuple[str, LlmShape, int, int]]:
    """(name, model as served, tokens of a prompt, tokens of a reply)."""
    for count, rank in ((0, 0), (1, 16), (8, 16), (32, 16), (1, 64), (8, 64), (32, 64)):
        for prompt, output in ((512, 128), (1024, 256)):
            yield (
                f"llama-3.1-8b adapters={count} rank={rank} {prompt}/{output}",
                adapted(count, rank, prompt),
                prompt,
                output,
            )
    for llm in ("qwen2.5-vl-3b", "qwen2.5-vl-7b", "qwen3-vl-2b", "qwen3-vl-4b", "qwen3-vl-8b"):
        for side in (512, 1024):
            found, prompt = looking(llm, side, 128)
            yield f"{llm} image={side}x{side} text=128/128", found, prompt, 128
    for llm, lengths in (("qwen3-embedding-0.6b", (128, 512, 2048)), ("bge-large-en-v1.5", (128, 256, 511))):
        for prompt in lengths:
            yield f"{llm} item={prompt}", shape(llm), prompt, 1


def predictions() -> Iterator[dict[str, object]]:
    for name, served, prompt, output in cases():
        deployed = configuration(served, DEVICE)
        tables = deployed.tables()
        for clients in CLIENTS:
            load = Load("closed", concurrency=clients, requests=ROUNDS * clients)
            found = replay(deployed, tables, Traffic(fixed_lengths(prompt), fixed_lengths(output)), load)
            yield {
                "case": name,
                "concurrency": clients,
                "tpot_ms": round(found.time_per_output_token_s.get("mean", 0.0) * 1e3, 3),
                "ttft_ms": round(found.time_to_first_token_s["mean"] * 1e3, 2),
                "requests_per_s": round(found.requests_per_s, 3),
            }


def measured_case(run: Mapping[str, Any]) -> LlmShape:
    """The model as it served the run."""
    found = shape(run["llm"])
    if run.get("adapters"):
        popularity = zipf_popularity(run["adapters"], run["zipf"])
        slots = min(run["slots"], run["adapters"])
        found = replace(found, adapters=Adapters(popularity, run["rank"], slots, prompt_tokens=float(run["prompt"])))
    if run.get("images"):
        assert found.vision is not None
        side = run["side"]
        patches, tokens = found.vision.image_patches(side, side), found.vision.image_tokens(side, side)
        images = Images(run["images"], patches, tokens, side * side / 1e6, float(run["prompt"]))
        found = replace(found, images=images)
    if found.embeds and "text" not in run["id"]:
        found = replace(found, token_ids_fraction=1.0)
    return found


def in_force() -> tuple[ConstantPrior, ...]:
    """The catalog's constants, what was fitted before them."""
    newest = catalog().corrections[-1]
    return corrected_priors(newest) + priors()


def measured(file: Path = MEASURED) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def deployment_of(run: Mapping[str, Any], known: tuple[ConstantPrior, ...]) -> Configuration:
    """What served the run, with the constants in force."""
    served = measured_case(run)
    deployed = configuration(served, DEVICE)
    own = resolve_constants(known, device=DEVICE, family=deployed.device.family, engine="vllm", llm=served.id)
    return replace(deployed, constants=own)


def predicted(deployed: Configuration, run: Mapping[str, Any]) -> dict[str, float]:
    """Of the run's load, ms and requests/s."""
    load = Load("closed", concurrency=run["concurrency"], requests=run["requests"])
    traffic = Traffic(fixed_lengths(run["prompt"]), fixed_lengths(run["output"]))
    found = replay(deployed, deployed.tables(), traffic, load)
    return {
        "tpot_ms": found.time_per_output_token_s.get("mean", 0.0) * 1e3,
        "ttft_ms": found.time_to_first_token_s["mean"] * 1e3,
        "requests_per_s": found.requests_per_s,
    }


def compared(file: Path = MEASURED) -> Iterator[dict[str, Any]]:
    known = in_force()
    for run in measured(file):
        yield {"id": run["id"], **predicted(deployment_of(run, known), run), "measured": run}


def describe(row: Mapping[str, Any]) -> str:
    """One run: predicted, measured, and how far off."""
    run = row["measured"]
    parts = []
    for name in ("tpot_ms", "ttft_ms", "requests_per_s"):
        if run.get(name):
            off = 100 * (row[name] / run[name] - 1)
            parts.append(f"{name} {row[name]:9.2f} {run[name]:9.2f} {off:+7.1f} %")
    return f"{row['id']:26} " + "   ".join(parts)


def show_measured() -> None:
    for row in compared():
        print(describe(row))


def show_memory() -> None:
    """What one device holds of weights, with and without the slots of eight adapters."""
    for count in (0, 8):
        served = adapted(count, 16, 512)
        weights = stage_weight_bytes(served, "bf16", Layout(), layers_fraction=1.0, embedding=True, head=True)
        weights += adapter_slot_bytes(served, tensor_parallel=1)
        print(f"llama-3.1-8b bf16, {count} adapters of rank 16: {weights / 2**30:.2f} GiB expected on the device")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--measured", action="store_true")
    parser.add_argument("--memory", action="store_true")
    arguments = parser.parse_args()
    if arguments.memory:
        show_memory()
        return
    if arguments.measured:
        show_measured()
        return
    for row in predictions():
        if arguments.json:
            print(json.dumps(row))
        else:
            print(
                "{case:48} c={concurrency:<3} TPOT {tpot_ms:8} ms  TTFT {ttft_ms:8} ms  {requests_per_s:9}/s".format(
                    **row
                )
            )


if __name__ == "__main__":
    main()
