"""Fine-tuning steps timed on one device with plain PyTorch: ``python tests/bench/training_on_a_device.py``.

Needs torch and nothing of this project. Decoders shaped as Llama have random weights: the time of a step does not depend on
their values. Prints one line of JSON a case; docs/training.md has what the model predicted of them beside what they took.
"""

import argparse
import gc
import json
import math
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as functional
from torch.utils.checkpoint import checkpoint

GIB_BYTES = 2**30
LEARNING_RATE = 1e-5
ROPE_BASE = 500_000.0
MATRICES = ("query", "key", "value", "output", "gate", "up", "down")


@dataclass(frozen=True)
class Shape:
    """A Llama decoder: grouped-query attention, SwiGLU, RMSNorm."""

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    tied: bool

    def widths(self, matrix: str) -> tuple[int, int]:
        """Outputs and inputs of one linear matrix."""
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return {
            "query": (queries, self.hidden),
            "key": (keys, self.hidden),
            "value": (keys, self.hidden),
            "output": (self.hidden, queries),
            "gate": (self.intermediate, self.hidden),
            "up": (self.intermediate, self.hidden),
            "down": (self.hidden, self.intermediate),
        }[matrix]


LLAMA_1B = Shape(16, 2048, 8192, 32, 8, 64, 128_256, tied=True)
LLAMA_8B = Shape(32, 4096, 14_336, 32, 8, 128, 128_256, tied=False)
TINY = Shape(2, 64, 128, 4, 2, 16, 512, tied=False)


@dataclass(frozen=True)
class Case:
    """rank: of adapters on all seven matrices of every layer, whose weights are then frozen; 0: all weights are trained.

    Trained weights are 32-bit, computed with in bf16 under autocast; frozen ones are bf16. recompute: every layer's forward
    pass is done again in the backward pass.
    """

    name: str
    llm: str
    shape: Shape
    sequence_tokens: int
    micro_batch_sequences: int
    micro_batches: int
    rank: int = 0
    recompute: bool = False

    @property
    def tokens_per_step(self) -> int:
        return self.sequence_tokens * self.micro_batch_sequences * self.micro_batches


CASES = (
    Case("full-1b", "llama-3.2-1b", LLAMA_1B, 2048, 4, 2),
    Case("lora-8b", "llama-3.1-8b", LLAMA_8B, 2048, 2, 2, rank=16),
    Case("frozen-8b-recompute", "llama-3.1-8b", LLAMA_8B, 4096, 2, 2, rank=16, recompute=True),
    Case("full-1b-4096", "llama-3.2-1b", LLAMA_1B, 4096, 2, 2),
    Case("lora-8b-4096", "llama-3.1-8b", LLAMA_8B, 4096, 1, 2, rank=16),
    Case("frozen-8b-recompute-2048", "llama-3.1-8b", LLAMA_8B, 2048, 4, 2, rank=16, recompute=True),
)


class Decoder:
    """Weights of one case on one device, and their forward pass."""

    def __init__(self, case: Case, device: str) -> None:
        self.case, self.device = case, device
        kept = torch.bfloat16 if case.rank else torch.float32
        shape = case.shape

        def weights(rows: int, columns: int) -> Any:
            made = torch.empty(rows, columns, device=device, dtype=kept).normal_(0.0, 0.02)
            return made.requires_grad_(not case.rank)

        def ones() -> Any:
            return torch.ones(shape.hidden, device=device, dtype=kept, requires_grad=not case.rank)

        self.embedding = weights(shape.vocabulary, shape.hidden)
        self.head = self.embedding if shape.tied else weights(shape.vocabulary, shape.hidden)
        self.last_norm = ones()
        self.layers: list[dict[str, Any]] = []
        for _ in range(shape.layers):
            layer = {name: weights(*shape.widths(name)) for name in MATRICES}
            layer |= {"attention_norm": ones(), "feed_forward_norm": ones()}
            for name in MATRICES if case.rank else ():
                rows, columns = shape.widths(name)
                layer[f"{name}_down"] = torch.randn(case.rank, columns, device=device) / math.sqrt(columns)
                layer[f"{name}_up"] = torch.zeros(rows, case.rank, device=device)
                layer[f"{name}_down"].requires_grad_()
                layer[f"{name}_up"].requires_grad_()
            self.layers.append(layer)
        self.cosine, self.sine = _rotations(shape.head_dim, case.sequence_tokens, device)

    def trained(self) -> Iterator[Any]:
        beside = [self.embedding, self.last_norm] + ([] if self.case.shape.tied else [self.head])
        for tensor in [*beside, *(one for layer in self.layers for one in layer.values())]:
            if tensor.requires_grad:
                yield tensor

    def loss(self, tokens: Any) -> Any:
        """Cross-entropy of each next token; logits go to 32 bits whole, as training programs do unless told otherwise."""
        state = functional.embedding(tokens, self.embedding)
        if self.case.rank and self.case.recompute:
            state.requires_grad_()
        for layer in self.layers:
            again = self.case.recompute
            state = checkpoint(self._layer, state, layer, use_reentrant=False) if again else self._layer(state, layer)
        logits = functional.linear(self._norm(state, self.last_norm), self.head)
        flat = logits[:, :-1].float().reshape(-1, logits.shape[-1])
        return functional.cross_entropy(flat, tokens[:, 1:].reshape(-1))

    def _layer(self, state: Any, layer: dict[str, Any]) -> Any:
        shape = self.case.shape
        batch, length, _ = state.shape
        read = self._norm(state, layer["attention_norm"])

        def heads(matrix: str, count: int) -> Any:
            return self._linear(read, layer, matrix).view(batch, length, count, shape.head_dim).transpose(1, 2)

        query = self._rotated(heads("query", shape.heads))
        key = self._rotated(heads("key", shape.kv_heads))
        mixed = functional.scaled_dot_product_attention(
            query, key, heads("value", shape.kv_heads), is_causal=True, enable_gqa=True
        )
        state = state + self._linear(mixed.transpose(1, 2).reshape(batch, length, -1), layer, "output")
        read = self._norm(state, layer["feed_forward_norm"])
        opened = functional.silu(self._linear(read, layer, "gate")) * self._linear(read, layer, "up")
        return state + self._linear(opened, layer, "down")

    def _linear(self, values: Any, layer: dict[str, Any], matrix: str) -> Any:
        product = functional.linear(values, layer[matrix])
        if not self.case.rank:
            return product
        down, up = layer[f"{matrix}_down"], layer[f"{matrix}_up"]
        return product + functional.linear(functional.linear(values, down), up)

    def _norm(self, values: Any, weight: Any) -> Any:
        return functional.rms_norm(values, (self.case.shape.hidden,), weight.to(values.dtype), 1e-5)

    def _rotated(self, values: Any) -> Any:
        """Rotary positions, in halves."""
        first, second = values.chunk(2, dim=-1)
        turned = torch.cat((-second, first), dim=-1)
        return values * self.cosine.to(values.dtype) + turned * self.sine.to(values.dtype)


def _rotations(head_dim: int, length: int, device: str) -> tuple[Any, Any]:
    rates = ROPE_BASE ** (-torch.arange(0, head_dim, 2, device=device).float() / head_dim)
    angles = torch.outer(torch.arange(length, device=device).float(), rates)
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


def measured(case: Case, device: str, steps: int, until: float) -> dict[str, Any]:
    """Median seconds of a step and peaks of memory. Fewer steps where the time is up, three at the least."""
    on_gpu = device.startswith("cuda")
    torch.manual_seed(0)
    decoder = Decoder(case, device)
    trained = list(decoder.trained())
    optimizer = torch.optim.AdamW(trained, lr=LEARNING_RATE, fused=on_gpu)
    tokens = torch.randint(0, case.shape.vocabulary, (case.micro_batch_sequences, case.sequence_tokens), device=device)

    def step() -> float:
        begun = time.perf_counter()
        for _ in range(case.micro_batches):
            with torch.autocast(device.partition(":")[0], dtype=torch.bfloat16):
                loss = decoder.loss(tokens)
            (loss / case.micro_batches).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if not math.isfinite(loss.item()):  # waits for the device too
            raise ArithmeticError("the loss is not finite")
        if on_gpu:
            torch.cuda.synchronize()
        return time.perf_counter() - begun

    for _ in range(3):
        step()
    seconds: list[float] = []
    while len(seconds) < 3 or (len(seconds) < steps and time.monotonic() < until):
        seconds.append(step())
    middle = statistics.median(seconds)
    return {
        "trained_weights": sum(one.numel() for one in trained),
        "steps": len(seconds),
        "step_s": round(middle, 5),
        "step_s_least": round(min(seconds), 5),
        "step_s_most": round(max(seconds), 5),
        "tokens_per_s": round(case.tokens_per_step / middle, 1),
        "max_memory_allocated_gib": round(torch.cuda.max_memory_allocated() / GIB_BYTES, 3) if on_gpu else None,
        "max_memory_reserved_gib": round(torch.cuda.max_memory_reserved() / GIB_BYTES, 3) if on_gpu else None,
    }


def described(case: Case) -> dict[str, Any]:
    return {
        "case": case.name,
        "llm": case.llm,
        "method": "lora" if case.rank else "full",
        "rank": case.rank,
        "recompute": "full" if case.recompute else "none",
        "sequence_tokens": case.sequence_tokens,
        "micro_batch_sequences": case.micro_batch_sequences,
        "global_batch_sequences": case.micro_batch_sequences * case.micro_batches,
    }


def freed(device: str) -> None:
    gc.collect()
    if device.startswith("cuda"):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=150.0, help="no case begins later, steps end early")
    parser.add_argument(
        "--tiny", action="store_true", help="a model of two narrow layers, to try the program on any machine"
    )
    parser.add_argument("--list", action="store_true", help="what would be timed, and nothing else")
    parser.add_argument("cases", nargs="*", help="names; all unless told")
    asked = parser.parse_args()
    name = torch.cuda.get_device_name() if asked.device.startswith("cuda") else asked.device
    until = time.monotonic() + asked.seconds
    failed = 0
    for case in CASES:
        if asked.cases and case.name not in asked.cases:
            continue
        if asked.tiny:
            case = replace(case, shape=replace(TINY, tied=case.shape.tied), sequence_tokens=case.sequence_tokens // 32)
        line: dict[str, Any] = described(case) | {"device": name, "torch": torch.__version__}
        if asked.list:
            print(json.dumps(described(case)))
            continue
        freed(asked.device)
        if time.monotonic() > until:
            line["error"] = "not begun: the time is up"
        else:
            try:
                line |= measured(case, asked.device, asked.steps, until)
            except (RuntimeError, TypeError, ValueError, ArithmeticError) as error:  # the other cases are worth having
                line["error"] = f"{type(error).__name__}: {error}"[:500]
        failed += "error" in line
        print(json.dumps(line), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
