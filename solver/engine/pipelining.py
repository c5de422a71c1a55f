"""On how many batches an engine works at once where a model is cut into pipeline stages."""

from dataclasses import dataclass

from solver.engine.profiles import ALIKE
from solver.engine.releases import release
from solver.llm_shape import LlmShape

Release = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OneBatchAtATime:
    """In which releases of an engine the first stage waits until the last one has sampled, and of which models.

    since, until: releases, the last not included. newer_since: from which on a newer runner, whose stages work at once, serves
    dense models of these families and models whose names begin so (families, llms). dense_since: from which on it serves all models of
    text without experts and recurrent layers. unstated: the release that is meant where none is stated, which deployment files start.
    """

    since: Release
    until: Release
    newer_since: Release
    families: frozenset[str]
    llms: tuple[str, ...]
    dense_since: Release
    unstated: Release
    source: str


WAITING_STAGES: dict[str, OneBatchAtATime] = {
    "vllm": OneBatchAtATime(
        (0, 15),
        (0, 29),
        (0, 23),
        frozenset({"llama", "mistral", "qwen3", "yi"}),
        ("deepseek-v2",),
        (0, 25),
        (0, 24),
        "GPUModelRunner.sample_tokens of vLLM 0.24.0 receives the last stage's tokens on the stream that computes, under asynchronous "
        "scheduling, which https://github.com/vllm-project/vllm/pull/32618 (merged in January 2026) brought to pipelines; "
        "https://github.com/vllm-project/vllm/pull/51650 says so too. Its second runner does not, which serves Llama (and what is built "
        "like it), Mistral, Qwen3 without experts, DeepSeek-V2 and some more (DEFAULT_V2_MODEL_RUNNER_ARCHITECTURES of "
        "vllm/config/vllm.py), all dense models from 0.25 on (its release notes, https://github.com/vllm-project/vllm/releases) and all "
        "models from 0.29 on (https://github.com/vllm-project/vllm/pull/53183, release notes of 0.29.0 as quoted in "
        "https://github.com/blazux/qwen3.8-Flash-DGX/issues/14); read 2026-11-29. Release notes of 0.22 name dense Qwen3, those of 0.23 "
        "Llama and Mistral too, and pipelines without bubbles, which is why it counts from there. Which mixtures 0.25 to 0.28 added was "
        "not read. Qwen3 30B-A3B over two stages took per token what it "
        "takes on one device and half a millisecond (docs/decisions/0111)",
    ),
}
"""All others are taken to work on as many batches as they have stages."""


def stages_work_from(engine: str, shape: LlmShape) -> str:
    """The first release of an engine, of those after the ones that wait, whose stages work at once with a model."""
    known = WAITING_STAGES[ALIKE.get(engine, engine)]
    return ".".join(map(str, known.dense_since if _is_plain(shape) else known.until))


def _is_plain(shape: LlmShape) -> bool:
    """A model of text without experts and recurrent layers."""
    return not shape.is_moe and shape.encoder is None and not shape.layers_of("linear")


def batches_at_once(engine: str, version: str | None, shape: LlmShape, pipeline_parallel: int) -> int:
    """Batches in flight over the stages of one copy: as many as stages, or 1 where a batch passes them all before the next begins.

    Models that embed are not scheduled ahead.
    """
    known = WAITING_STAGES.get(ALIKE.get(engine, engine))
    if known is None or shape.embeds:
        return pipeline_parallel
    numbers = release(version or "") or known.unstated
    if not known.since <= numbers < known.until:
        return pipeline_parallel
    dense_kin = shape.family in known.families and not shape.is_moe and shape.encoder is None
    newer = numbers >= known.newer_since and (dense_kin or shape.id.startswith(known.llms))
    return pipeline_parallel if newer or (numbers >= known.dense_since and _is_plain(shape)) else 1
