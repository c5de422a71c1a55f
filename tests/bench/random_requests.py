"""Random requests of one workload over the whole catalog, half of them to mixtures of experts."""

import random
from typing import Any

DENSE = (
    "llama-3.2-1b", "llama-3.2-3b", "llama-3.1-8b", "qwen3-8b", "gemma-2-9b", "qwen3-14b", "mistral-small-24b",
    "qwen3-32b", "llama-3.1-70b", "llama-3.3-70b", "qwen2.5-72b",
)  # fmt: skip
MIXTURES = (
    "qwen3-30b-a3b", "gpt-oss-20b", "gpt-oss-120b", "mixtral-8x7b", "gemma-4-26b-a4b", "qwen3-235b-a22b",
    "deepseek-v2-lite", "glm-4.5-air", "llama-4-scout", "deepseek-v3",
)  # fmt: skip
LARGE = frozenset({"qwen3-235b-a22b", "gpt-oss-120b", "glm-4.5-air", "llama-4-scout", "deepseek-v3"})
LENGTHS = ((800, 250), (1_200, 300), (400, 120), (3_000, 500), (150, 600))
TARGETS_MS = ((600, 25), (1_000, 40), (1_500, 50), (2_500, 80), (5_000, 120))
LIMITS: tuple[dict[str, Any], ...] = (
    {}, {}, {}, {"providers": ["aws"]}, {"providers": ["aws", "gcp", "azure"]},
    {"devices": ["h100-sxm", "h200-sxm", "b200-sxm"]}, {"devices": ["l40s", "a100-sxm-80", "h100-sxm"]},
)  # fmt: skip


def random_request(rng: random.Random, *, mixture: bool | None = None, rate: float | None = None) -> dict[str, Any]:
    """The body of one request. mixture: of experts or not; None: either. rate: requests per second; None: any."""
    llm = rng.choice(MIXTURES if (rng.random() < 0.5 if mixture is None else mixture) else DENSE)
    prompt, output = rng.choice(LENGTHS)
    first, each = rng.choice(TARGETS_MS)
    if rate is None:
        rate = round(10 ** rng.uniform(-0.5, 1.4 if llm in LARGE else 2.2), 2)
    formats = ["mxfp4"] if "gpt-oss" in llm else rng.choice([["bf16"], ["fp8"], ["bf16", "fp8"]])
    workload = {
        "name": "w",
        "llm": llm,
        "context_tokens": 32_768,
        "targets": {"ttft_ms": {"p95": first * (2 if llm in LARGE else 1)}, "tpot_ms": {"p95": each}},
        "traffic": {
            "requests_per_s": rate,
            "prompt_tokens": {"distribution": "lognormal", "mean": prompt, "p95": 3 * prompt},
            "output_tokens": {"distribution": "lognormal", "mean": output, "p95": 3 * output},
        },
        "precision": {"weights": formats, "kv_cache": rng.choice([["bf16"], ["bf16", "fp8"]])},
    }
    return {"workloads": [workload], "limits": {"commitments": ["on_demand"]} | rng.choice(LIMITS), "time_limit_s": 30}
