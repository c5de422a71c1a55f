"""Which names a file's fields have, told from its first line."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from service.traces.trace_error import TraceError

MOONCAKE_BLOCK_TOKENS = 512
"""Of the published traces: kvcache-ai/Mooncake, FAST 25."""
PROMPTS = (
    "input_length", "prompt_tokens", "prompt_len", "prompt_tokens_count", "input_tokens", "input_len", "Request tokens",
)  # fmt: skip
OUTPUTS = (
    "output_length", "output_tokens", "output_len", "output_tokens_count", "expected_output_len", "Response tokens",
)  # fmt: skip
SESSIONS = ("session_id", "Session ID", "conversation_id")
TEXTS = ("prompt", "text", "conversations", "messages", "input", "question")
HASHES = "hash_ids"


@dataclass(frozen=True, slots=True)
class Shape:
    """Names of fields; None for what the file does not state. arrival_scale: seconds of one unit of the arrival."""

    name: str
    prompt: str
    output: str
    arrival: str | None = None
    arrival_scale: float = 1.0
    session: str | None = None
    hashes: str | None = None
    block_tokens: int | None = None


def shape_of(names: Collection[str], line: int, block_tokens: int | None) -> Shape:
    """Raises TraceError where no shape has these fields.

    >>> shape_of({"timestamp", "input_length", "output_length", "hash_ids"}, 1, None).name
    'mooncake'
    """
    prompt, output = _first(PROMPTS, names), _first(OUTPUTS, names)
    if prompt is None or output is None:
        raise _no_lengths(names, line, prompt is None)
    session = _first(SESSIONS, names)
    hashes = HASHES if HASHES in names else None
    if "chat_id" in names and "timestamp" in names:
        if hashes and block_tokens is None:
            raise TraceError("`hash_ids` beside `chat_id`: state how many tokens a block has (block_tokens)", line)
        return Shape("chats", prompt, output, "timestamp", 1.0, session, hashes, block_tokens)
    if "Timestamp" in names:
        return Shape("burstgpt", prompt, output, "Timestamp", 1.0, session)
    if "timestamp" in names and prompt == "input_length":
        stated = block_tokens or MOONCAKE_BLOCK_TOKENS
        return Shape("mooncake", prompt, output, "timestamp", 1e-3, session, hashes, stated)
    if "timestamp" in names:
        raise TraceError(
            "`timestamp` beside `" + prompt + "`: no known shape says whether it is seconds or milliseconds; call it `arrival_s`",
            line,
        )  # fmt: skip
    if hashes and block_tokens is None:
        raise TraceError("`hash_ids`: state how many tokens a block has (block_tokens)", line)
    arrival = "arrival_s" if "arrival_s" in names else None
    return Shape("lengths", prompt, output, arrival, 1.0, session, hashes, block_tokens)


def _no_lengths(names: Collection[str], line: int, no_prompt: bool) -> TraceError:
    text = _first(TEXTS, names)
    known: Sequence[str] = PROMPTS if no_prompt else OUTPUTS
    what = "a prompt's tokens" if no_prompt else "a reply's tokens"
    if text is not None:
        return TraceError(
            f"`{text}` is text and {what} are not stated: they depend on a tokenizer, which is not here; add them as `{known[0]}`",
            line,
        )
    return TraceError(f"states no count of {what}; known names are {', '.join(known)}", line)


def _first(known: Sequence[str], names: Collection[str]) -> str | None:
    return next((name for name in known if name in names), None)
