"""Requests that differ in everything a cache of results could key on: model, lengths, rate, targets."""

import random
from typing import Any

LLMS = ("llama-3.1-8b", "qwen3-32b", "llama-3.1-70b")


def workload(rng: random.Random, name: str) -> dict[str, Any]:
    prompt = rng.choice((300, 600, 1200, 2500)) * rng.uniform(0.8, 1.2)
    output = rng.choice((120, 300, 600)) * rng.uniform(0.8, 1.2)
    return {
        "name": name,
        "llm": rng.choice(LLMS),
        "context_tokens": 32768,
        "traffic": {
            "requests_per_s": round(10 ** rng.uniform(0.0, 2.0), 3),
            "prompt_tokens": lognormal(prompt, prompt * rng.uniform(2.5, 3.5)),
            "output_tokens": lognormal(output, output * rng.uniform(2.5, 3.2)),
        },
        "targets": {
            "ttft_ms": {"p95": round(rng.uniform(600.0, 3000.0))},
            "tpot_ms": {"p95": round(rng.uniform(30.0, 90.0))},
        },
    }


def lognormal(mean: float, p95: float) -> dict[str, Any]:
    return {"distribution": "lognormal", "mean": round(mean), "p95": round(p95)}


def requests(count: int, workloads: int, seed: int) -> list[dict[str, Any]]:
    """The same requests for the same seed."""
    rng = random.Random(seed)
    return [{"workloads": [workload(rng, f"w{i}") for i in range(workloads)]} for _ in range(count)]
