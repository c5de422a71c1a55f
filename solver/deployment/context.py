"""The context a model is served with: its own, or one that somebody vouches for with positions scaled.

Engines refuse a longer one unless they are told to scale positions (YaRN: Peng et al., 2023), which costs answers to short requests
(a static factor holds for all of them) and is not known to work beyond what its source states.
"""

from solver.errors import UnsupportedError
from solver.llm_shape import LlmShape


def served_context_tokens(shape: LlmShape, stated_tokens: int | None, longest_request_tokens: int) -> int:
    """Tokens of prompt and reply together that a server takes. stated_tokens: None takes the longest request, as far as the model's own
    context goes; beyond all that is vouched for the server takes no more than that.

    Raises UnsupportedError where requests are longer than what is vouched for, and a context was stated that would take them.
    """
    most = shape.longest_context_tokens
    if stated_tokens is None:
        return min(longest_request_tokens, shape.max_context_tokens)
    if stated_tokens > most and longest_request_tokens > most:
        raise UnsupportedError("context_too_long", beyond(shape, longest_request_tokens))
    return min(stated_tokens, most)


def beyond(shape: LlmShape, tokens: int) -> str:
    """Why so many tokens are more than the model is known to take."""
    extended = shape.extended_context_tokens
    known = "and no source states a longer one" if extended is None else f"and up to {extended} with positions scaled"
    return f"{tokens} tokens are more than {shape.id} can take: its context is {shape.max_context_tokens}, {known}"


def extension_doubt(shape: LlmShape, context_tokens: int) -> str | None:
    """What is to be known of a context beyond the model's own; None within it."""
    if context_tokens <= shape.max_context_tokens:
        return None
    return (
        f"a context of {context_tokens} tokens is beyond the {shape.max_context_tokens} that {shape.id} is published with: the engine "
        "must be told to scale positions, which may cost quality, of short requests too; times are predicted as if that cost none"
    )
