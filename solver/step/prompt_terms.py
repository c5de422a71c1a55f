"""What a prompt takes beside the tokens of its steps: attention's pairs, and what its tokens bring with them one by one."""

from solver.llm_shape import LlmShape
from solver.step.adapter_terms import adapter_load_s
from solver.step.gemm import Quantity
from solver.step.rates import Rates
from solver.step.terms import prefill_pair_s
from solver.step.vision_terms import image_work

PER_TOKEN = 1.0
"""A limit of one pair a token: what a prompt's tokens take one by one is tabulated like attention that looks no further."""


def prompt_token_s(shape: LlmShape, rates: Rates) -> list[tuple[str, Quantity, Quantity]]:
    """(term, seconds, FLOPs) of every token of a prompt: images are encoded, and adapters loaded, in the steps that their prompt is
    in, so that their time is spread over its tokens."""
    found: list[tuple[str, Quantity, Quantity]] = []
    if shape.images is not None:
        seconds, flops = image_work(shape, rates)
        found.append(("image_encoding", seconds / shape.images.prompt_tokens, flops / shape.images.prompt_tokens))
    if shape.adapters is not None and shape.adapters.resident_fraction < 1.0:
        found.append(("adapter_loading", adapter_load_s(shape, rates), 0.0))
    return found


def prompt_laws(shape: LlmShape, rates: Rates) -> list[tuple[float, Quantity, Quantity]]:
    """(limit, seconds, FLOPs) of attention by the pair, and of what tokens bring by the token."""
    return prefill_pair_s(shape, rates) + [
        (PER_TOKEN, seconds, flops) for _, seconds, flops in prompt_token_s(shape, rates)
    ]
