"""On how many batches an engine works at once where a model is cut into pipeline stages."""

from dataclasses import dataclass

from solver.engine.profiles import ALIKE, release
from solver.llm_shape import LlmShape


@dataclass(frozen=True, slots=True)
class OneBatchAtATime:
    """Of which models, from which release on, an engine's first stage waits until the last one has sampled.

    families, llms: dense models of these families, and models named so, that its newer runner serves, whose stages work at once.
    """

    since: tuple[int, ...]
    families: frozenset[str]
    llms: tuple[str, ...]
    source: str


WAITING_STAGES: dict[str, OneBatchAtATime] = {
    "vllm": OneBatchAtATime(
        (0, 15),
        frozenset({"llama", "mistral", "qwen3", "yi"}),
        ("deepseek-v2",),
        "GPUModelRunner.sample_tokens of vLLM 0.24.0 receives the last stage's tokens on the stream that computes, under asynchronous "
        "scheduling, which https://github.com/vllm-project/vllm/pull/32618 (merged in January 2026) brought to pipelines; "
        "https://github.com/vllm-project/vllm/pull/51650 says so too. Its second runner does not, which serves Llama (and what is built "
        "like it), Mistral, Qwen3 without experts, DeepSeek-V2 and some more (DEFAULT_V2_MODEL_RUNNER_ARCHITECTURES of "
        "vllm/config/vllm.py); read 2026-11-29. Qwen3 30B-A3B over two stages took per token what it takes on one device and half a "
        "millisecond (docs/decisions/0111)",
    ),
}
"""All others are taken to work on as many batches as they have stages."""


def batches_at_once(engine: str, version: str | None, shape: LlmShape, pipeline_parallel: int) -> int:
    """Batches in flight over the stages of one copy: as many as stages, or 1 where a batch passes them all before the next begins.

    A release that is not stated is one of today. Models that embed are not scheduled ahead.
    """
    known, numbers = WAITING_STAGES.get(ALIKE.get(engine, engine)), release(version or "")
    if known is None or shape.embeds or (numbers and numbers < known.since):
        return pipeline_parallel
    dense_kin = shape.family in known.families and not shape.is_moe and shape.encoder is None
    at_once = dense_kin or shape.id.startswith(known.llms)
    return pipeline_parallel if at_once else 1
