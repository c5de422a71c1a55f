"""Hostile traffic: every field that says what requests bring beside text, with every value that some parser stumbles over."""

import json
from collections.abc import Iterator
from typing import Any

from tests.hostile.bodies import places
from tests.hostile.cases import NUMBERS, Case
from tests.service.bodies import changed

LENGTHS = (
    "0.5", "1.5", "1000000", "1e7",
    '{"mean": 1, "p95": 1}', '{"mean": 10, "p95": 10000000}', '{"mean": 1e7, "p95": 1}', '{"mean": 5, "p95": NaN}',
    '{"low": 9, "high": 3}', '{"low": 1, "high": 10000000}', '{"tokens": 10000000}', '{"histogram": []}',
    '{"histogram": [{"tokens": 1, "share": 1.5}]}', '{"histogram": [{"tokens": 1, "share": 0.5}, {"tokens": 1, "share": 0.5}]}',
)  # fmt: skip
PLAIN = {"prompt_tokens": 200, "output_tokens": 50}
SESSIONS = {
    "turns": {"mean": 3, "p95": 6}, "user_tokens": 100, "think_time_s": 5, "system_prompt_tokens": 500, "system_prompts": 2,
    "document_tokens": 300, "documents": 3, "routing": "random", "replicas": 2,
}  # fmt: skip
VIDEO = {"per_request": 1, "seconds": 9.5, "frames_per_s": 1.5, "width_px": 640, "height_px": 480}
DRAFT = {
    "method": "ngram", "draft_tokens": 4, "acceptance_fraction": 0.5, "draft_step_fraction": 0.0, "draft_cost_source": "x",
}  # fmt: skip
RANKED = {"adapters": {"count": 8, "rank": 16, "slots": 4, "zipf_exponent": 1.0, "target_modules": ["q_proj"]}}
SHARED = {"adapters": {"count": 2, "rank": [8, 16], "shares": [0.25, 0.75]}}
TIERS = {"host_cache_gib": 16, "disk_cache_gib": 100, "disk_read_gbytes_per_s": 3}
KINDS: dict[str, tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "sessions": ("llama-3.1-8b", {"output_tokens": 50, "sessions": SESSIONS}, {"engine": {"name": "vllm"} | TIERS}, TIERS),
    "images": ("qwen3-vl-8b", PLAIN | {"images": {"per_request": 2, "width_px": 640, "height_px": 480}}, {}, {}),
    "video": ("qwen3-vl-8b", PLAIN | {"video": VIDEO}, {}, {}),
    "audio": ("voxtral-mini-3b", PLAIN | {"audio": {"per_request": 1, "seconds": 9.5}}, {}, {}),
    "hidden": (
        "llama-3.1-8b", PLAIN | {"thinking_tokens": {"mean": 100, "p95": 300}, "structured_fraction": 0.5, "shared_prefix_fraction": 0.5},
        {}, {"targets": {"ttfat_ms": {"p95": 60_000}}},
    ),
    "adapters": ("llama-3.1-8b", PLAIN, RANKED, RANKED),
    "ranks": ("llama-3.1-8b", PLAIN, SHARED, SHARED),
    "drafting": ("llama-3.1-8b", PLAIN, {"engine": {"name": "vllm", "speculative": DRAFT}}, {"drafting": DRAFT}),
}  # fmt: skip
"""What of requests: a model that takes it, its traffic, what an estimate states of it beside, and what a workload does."""
LIMITS = {"devices": ["h100-sxm"], "providers": ["verda"], "sourcing": "any"}


def estimates() -> Iterator[Case]:
    for kind, (llm, traffic, beside, _) in KINDS.items():
        load = {"kind": "open", "requests_per_s": 1.0}
        body = {"estimates": [{"llm": llm, "device": "h100-sxm", "traffic": traffic, "load": load} | beside]}
        yield from _cases(kind, "/v1/estimates", body, "estimates/0")


def plans() -> Iterator[Case]:
    for kind, (llm, traffic, _, beside) in KINDS.items():
        workload = {
            "name": "w",
            "llm": llm,
            "traffic": traffic | {"requests_per_s": 1.0},
            "targets": {"ttft_ms": {"p95": 60_000}},
        }
        body = {"workloads": [workload | beside], "limits": LIMITS, "alternatives": 0, "time_limit_s": 5}
        yield from _cases(kind, "/v1/recommendations", body, "workloads/0")


def _cases(kind: str, path: str, body: dict[str, Any], within: str) -> Iterator[Case]:
    list_name, position = within.split("/")
    for place in places(body[list_name][int(position)]):
        if place.split("/")[0] not in ("llm", "device", "name", "load"):
            for value in (*NUMBERS, *LENGTHS):
                text = json.dumps(changed(body, f"{within}/{place}", "HERE")).replace('"HERE"', value)
                yield Case("traffic", f"{kind} {place} {value[:30]}", path, text.encode())
