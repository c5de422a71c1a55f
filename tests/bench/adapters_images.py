"""Adapters, images and models that embed on one H100 SXM under vLLM 0.24: what is predicted of a grid of closed loads.

python -m tests.bench.adapters_images            prints the table
python -m tests.bench.adapters_images --json     the same, to be kept before anything is measured
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace

from solver.adapters import Adapters, zipf_popularity
from solver.llm_shape import LlmShape
from solver.replay.one_stream import replay
from solver.vision import Images
from solver.workload import Load, Traffic, fixed_lengths
from tests.llm_shapes import shape
from tests.solver.samples import configuration

DEVICE = "h100-sxm"
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
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
