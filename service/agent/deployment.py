"""What is being measured, as far as the command line, the engine and the host say it."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import httpx

from service.agent import VERSION

HALF_A_MINUTE_S = 30.0


@dataclass(frozen=True)
class EngineFacts:
    """What a running engine says about itself; None where it does not."""

    version: str | None
    served_model: str | None


def ask_engine(base_url: str, api_key: str | None = None) -> EngineFacts:
    """The version (vLLM: /version) and the first model served. Raises httpx.ConnectError when nothing listens."""
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    with httpx.Client(base_url=base_url, headers=headers, timeout=HALF_A_MINUTE_S) as http:
        models = _object_at(http, "/v1/models").get("data")
        version = _object_at(http, "/version").get("version")
    first = models[0] if isinstance(models, list) and models and isinstance(models[0], dict) else {}
    return EngineFacts(version if isinstance(version, str) else None, first.get("id"))


def _object_at(http: httpx.Client, path: str) -> dict[str, Any]:
    """The JSON object at a path; an empty one where an engine that listens does not serve it."""
    try:
        answer = http.get(path)
        value = answer.json() if answer.is_success else {}
    except httpx.ConnectError:
        raise
    except (httpx.HTTPError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def add_deployment_options(parser: argparse.ArgumentParser, *, needed: bool) -> None:
    """Options that name device, model, layout, precision and engine. ``needed``: device and model must be given."""
    group = parser.add_argument_group("what is measured")
    group.add_argument("--device", required=needed, help="catalog id, such as h200-sxm")
    group.add_argument("--devices", type=int, help="how many; from the layout when left out")
    group.add_argument("--node", help="catalog id of the machine")
    group.add_argument("--llm", required=needed, help="catalog id, such as llama-3.1-8b")
    group.add_argument("--tensor-parallel", type=int)
    group.add_argument("--pipeline-parallel", type=int)
    group.add_argument("--data-parallel", type=int)
    group.add_argument("--expert-parallel", type=int)
    group.add_argument("--weights", help="format of the weights: bf16, fp8, …")
    group.add_argument("--kv-cache", help="format of the KV cache")
    group.add_argument("--engine", default=None, help="vllm, sglang, …")
    group.add_argument("--engine-version", help="asked of the engine when left out")
    group.add_argument(
        "--engine-argument", action="append", default=[], metavar="ARGUMENT",
        help="an argument the engine was started with; repeat it",
    )  # fmt: skip
    group.add_argument("--driver", help="driver version; from nvidia-smi when left out")
    group.add_argument("--notes", default="")


def context_of(options: argparse.Namespace, *, agent_id: str, version: str | None = None) -> dict[str, Any]:
    """The ``context`` of an upload from the options given; what was left out is left out."""
    layout = {
        name: getattr(options, name)
        for name in ("tensor_parallel", "pipeline_parallel", "data_parallel", "expert_parallel")
        if getattr(options, name) is not None
    }
    context: dict[str, Any] = {
        "device": options.device,
        "devices": options.devices or _devices(layout),
        "node": options.node,
        "llm": options.llm,
        "layout": layout,
        "precision": {k: v for k, v in (("weights", options.weights), ("kv_cache", options.kv_cache)) if v},
        "driver": options.driver,
        "agent": {"id": agent_id, "version": VERSION},
        "notes": options.notes,
    }
    if options.engine:
        context["engine"] = {
            "name": options.engine,
            "version": options.engine_version or version,
            "arguments": options.engine_argument,
        }
    return {name: value for name, value in context.items() if value is not None}


def _devices(layout: dict[str, int]) -> int | None:
    if not layout:
        return None
    return layout.get("tensor_parallel", 1) * layout.get("pipeline_parallel", 1) * layout.get("data_parallel", 1)
