"""Recorded requests as arrays."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from solver.errors import InvalidInputError

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """Full blocks of every prompt, one id a block: the same id stands for the same tokens after the same prefix.

    ids: of all requests, one after the other; those of request i lie from ``starts[i]`` to ``starts[i + 1]``.
    """

    tokens: int
    ids: Counts
    starts: Counts


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Requests in the order they arrived.

    arrival_s: since the first; None where arrivals are not recorded. sessions: a number for each request's session, -1 for
    none; None where none is recorded. blocks: None where prefixes are not recorded.
    """

    prompt_tokens: Counts
    output_tokens: Counts
    arrival_s: Floats | None = None
    sessions: Counts | None = None
    blocks: Blocks | None = None

    def __post_init__(self) -> None:
        count = len(self.prompt_tokens)
        if count == 0:
            raise InvalidInputError("a trace needs one request at least")
        others = (self.output_tokens, self.arrival_s, self.sessions)
        if any(other is not None and len(other) != count for other in others):
            raise InvalidInputError("a trace states the same requests in every array")
        if self.arrival_s is not None and bool(np.any(np.diff(self.arrival_s) < 0)):
            raise InvalidInputError("requests of a trace are in the order they arrived")
        if self.blocks is not None and (self.blocks.tokens < 1 or len(self.blocks.starts) != count + 1):
            raise InvalidInputError("blocks hold one token at least, and are stated for each request")

    @property
    def requests(self) -> int:
        return len(self.prompt_tokens)
