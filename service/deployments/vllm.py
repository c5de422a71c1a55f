"""The command line of vLLM for one replica of a plan."""

import json

from service.deployments.disk_cache import FOLDERS
from service.deployments.launch import (
    DRAFTING_OPTION,
    Launch,
    Where,
    adapter_words,
    checked_launch,
    checkpoint,
    release_options,
    require_engine,
    weight_words,
)
from service.deployments.plan import ReplicaKind
from service.deployments.refusals import PartError
from service.deployments.words import Word
from solver.units import bytes_from_gib

MADE: dict[str, list[Word]] = {
    "bf16": ["--dtype", "bfloat16"],
    "fp16": ["--dtype", "float16"],
    "fp32": ["--dtype", "float32"],
    "fp8": ["--dtype", "bfloat16", "--quantization", "fp8"],
    "nf4": ["--dtype", "bfloat16", "--quantization", "bitsandbytes"],
}
CACHE = {"bf16": "bfloat16", "fp16": "float16", "fp8": "fp8"}


def vllm_launch(kind: ReplicaKind, version: str | None, where: Where) -> Launch:
    """What the prediction assumed, as options. Raises PartError for what vLLM cannot be told.

    ``--gpu-memory-utilization`` is the plan's memory fraction itself: both are shares of all the memory that a process
    sees, weights and activations included (vLLM, config/cache.py). ``--max-num-seqs`` and ``--max-num-batched-tokens`` hold for
    each data-parallel rank there and in the plan.
    """
    words: list[Word] = ["vllm", "serve", checkpoint(kind), "--host", "0.0.0.0", "--port", where.port]
    words += ["--served-model-name", kind.model.llm, checkpoint(kind), *vllm_options(kind)]
    if not where.follows:  # no process of a node that follows answers
        words += server_words(kind)
    if where.rank is not None:
        if kind.line.layout.data_parallel > 1:
            raise PartError(kind.part, "data-parallel ranks over several nodes need an address for each")
        words += [
            "--distributed-executor-backend",
            "mp",
            "--nnodes",
            str(kind.nodes),
            "--node-rank",
            where.rank,
            "--master-addr",
            where.master,
        ]
        if where.follows:
            words.append("--headless")
    return checked_launch(kind, release_options(kind, "vllm", version), words)


def vllm_options(kind: ReplicaKind) -> list[Word]:
    """Layout, formats, budgets and memory, as every tool that starts vLLM is told them. Raises PartError."""
    require_engine(kind, "vllm")
    settings, layout = kind.settings, kind.line.layout
    words: list[Word] = []
    for option, degree in (
        ("--tensor-parallel-size", layout.tensor_parallel),
        ("--pipeline-parallel-size", layout.pipeline_parallel),
        ("--data-parallel-size", kind.line.layout.data_parallel),
    ):
        if degree > 1:
            words += [option, str(degree)]
    if layout.expert_parallel > 1:
        if layout.expert_parallel != layout.tensor_parallel * kind.line.layout.data_parallel:
            raise PartError(kind.part, "vLLM spreads experts over all tensor- and data-parallel ranks or over none")
        words.append("--enable-expert-parallel")
    words += weight_words(kind, MADE)
    if kind.line.precision.kv_cache not in CACHE:
        raise PartError(kind.part, f"vLLM has no key-value cache in {kind.line.precision.kv_cache}")
    words += ["--kv-cache-dtype", CACHE[kind.line.precision.kv_cache]]
    if settings.max_context_tokens is not None:
        words += ["--max-model-len", str(settings.max_context_tokens)]
    if settings.max_batched_tokens < settings.max_sequences:
        raise PartError(kind.part, "vLLM's token budget of a step must not be below the sequences it admits")
    words += ["--max-num-seqs", str(settings.max_sequences)]
    words += ["--max-num-batched-tokens", str(settings.max_batched_tokens)]
    if settings.max_captured_tokens is not None:
        words += ["--max-cudagraph-capture-size", str(settings.max_captured_tokens)]
    words += _drafting_words(kind)
    words += adapter_words(kind, "--max-loras", "--max-cpu-loras")
    words += _image_words(kind)
    words += _tier_words(kind)
    return [*words, "--gpu-memory-utilization", f"{settings.memory_fraction:g}"]


def server_words(kind: ReplicaKind) -> list[Word]:
    """How many processes answer, of all copies of attention together, as vLLM is told; unless told one of each."""
    each = kind.settings.api_servers
    return ["--api-server-count", str(each * kind.line.layout.data_parallel)] if each > 1 else []


def _tier_words(kind: ReplicaKind) -> list[Word]:
    """Host memory under the cache, of all ranks together, and a folder on disk under that; with a disk, blocks of replies are kept
    as well as those of prompts, as the plan counts on."""
    settings, layout = kind.settings, kind.line.layout
    if not settings.host_cache_gib:
        return []
    ranks = layout.tensor_parallel * layout.pipeline_parallel
    if not settings.disk_cache_gib:
        return ["--kv-offloading-backend", "native", "--kv-offloading-size", f"{settings.host_cache_gib * ranks:g}"]
    tiers = {
        "kv_connector": "OffloadingConnector",
        "kv_role": "kv_both",
        "kv_connector_extra_config": {
            "spec_name": "TieringOffloadingSpec",
            "cpu_bytes_to_use": round(bytes_from_gib(settings.host_cache_gib) * ranks),
            "offload_prompt_only": False,
            "secondary_tiers": [{"type": "fs", "root_dir": FOLDERS["vllm"]}],
        },
    }
    return ["--kv-transfer-config", json.dumps(tiers)]


def _image_words(kind: ReplicaKind) -> list[Word]:
    """How many images, videos or recordings a prompt may have: memory is kept for the largest step of so many. A plan for text
    counts on the memory that an encoder would take, so that it is not loaded."""
    traffic = kind.workload.traffic
    if traffic is None or traffic.media is None:
        return ["--language-model-only"] if kind.model.encodes else []
    kinds = {"images": "image", "video": "video", "audio": "audio"}
    return ["--limit-mm-per-prompt", json.dumps({kinds[traffic.media_field]: traffic.media.per_request})]


def _drafting_words(kind: ReplicaKind) -> list[Word]:
    """n-gram look-up is all in the command; heads have weights of their own, of which no repository is stated."""
    drafting = kind.settings.speculative
    if drafting is None:
        return []
    if drafting.method != "ngram":
        raise PartError(
            kind.part, "it drafts with heads, and the request names no checkpoint of theirs: add --speculative-config"
        )
    config = {
        "method": "ngram",
        "num_speculative_tokens": drafting.draft_tokens,
        "prompt_lookup_max": drafting.draft_tokens,
    }
    return [DRAFTING_OPTION, json.dumps(config)]
