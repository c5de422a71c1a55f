"""Audio encoders in front of a language model: what a recording becomes, in positions and in tokens."""

import math
from dataclasses import dataclass

from solver.errors import InvalidInputError

MEL_FRAMES_PER_S = 100
"""Of Whisper's spectrograms: one in ten milliseconds (openai/whisper, audio.py: hops of 160 samples at 16 kHz)."""


@dataclass(frozen=True, slots=True)
class AudioEncoder:
    """A transformer over the positions of a spectrogram, two of whose frames are one, ``pooled`` of which become one token of the
    language model.

    chunk_s: seconds of the parts in which it listens, each by itself, the last one padded. most_s: longest recording that it takes; 0: any.
    padded_tokens: tokens of whole chunks count, padding and all; else those of what is heard. joined: positions that become a token are
    joined side by side, and projected twice; else they are averaged, and projected once. weights: parameters of encoder and projector.
    """

    layers: int
    hidden: int
    heads: int
    intermediate: int
    pooled: int
    chunk_s: float
    most_s: float = 0.0
    padded_tokens: bool = False
    joined: bool = False
    weights: float = 0.0
    gated: bool = False
    window_patches: int = 0
    full_layers: int = 0

    @property
    def chunk_positions(self) -> int:
        """Positions of one chunk."""
        return round(self.chunk_s * MEL_FRAMES_PER_S) // 2

    def chunks(self, seconds: float) -> int:
        """Parts of a recording. Raises InvalidInputError for one that is longer than it takes.

        >>> AudioEncoder(32, 1280, 20, 5120, 4, 30.0, padded_tokens=True).chunks(31.0)
        2
        """
        if self.most_s and seconds > self.most_s:
            raise InvalidInputError(
                f"a recording of {seconds:g} s is longer than the {self.most_s:g} s that the model takes"
            )
        return max(1, math.ceil(seconds / self.chunk_s))

    def tokens(self, seconds: float) -> int:
        """Tokens of one recording in the prompt, without those that mark where it begins and ends.

            heard: ⌊(⌊(m − 1)/2⌋ + 1 − p)/p⌋ + 1 of m frames, p positions a token

        Sources: Qwen2AudioProcessor and VoxtralProcessor of huggingface/transformers, read 2026-11-25.

        >>> AudioEncoder(32, 1280, 20, 5120, 4, 30.0, padded_tokens=True, joined=True).tokens(31.0)
        750
        >>> AudioEncoder(32, 1280, 20, 5120, 2, 30.0, most_s=30.0).tokens(30.0)
        750
        """
        if self.padded_tokens:
            return self.chunks(seconds) * (self.chunk_positions // self.pooled)
        self.chunks(seconds)
        positions = (int(seconds * MEL_FRAMES_PER_S) - 1) // 2 + 1
        return max(1, (positions - self.pooled) // self.pooled + 1)

    def positions(self, seconds: float) -> int:
        """That it works on, padding included."""
        return self.chunks(seconds) * self.chunk_positions

    @property
    def most_patches(self) -> int:
        """Positions that it works on at once."""
        return self.chunk_positions

    def projector_columns(self, hidden: int) -> tuple[tuple[float, float], ...]:
        """(rows, columns) of the products that make tokens, each once a token."""
        if self.joined:
            return (float(self.hidden * self.pooled), float(hidden)), (float(hidden), float(hidden))
        return ((float(self.hidden), float(hidden)),)
