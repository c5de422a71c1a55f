"""Steps of ``training_on_a_device`` through the Hugging Face Trainer and PEFT: ``python -m tests.bench.trainer_on_a_device``.

Needs torch, transformers, accelerate and peft. Models of the same shapes have random weights, nothing is downloaded; options are the
Trainer's defaults but for those stated here. Prints one line of JSON a case, and what the Trainer logs.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from typing import Any

import accelerate
import peft
import torch
import transformers

from tests.bench.training_on_a_device import CASES, GIB_BYTES, LEARNING_RATE, MATRICES, Case, described, freed

WARM_UP = 3
PROJECTIONS = [f"{name[0]}_proj" for name in MATRICES[:4]] + [f"{name}_proj" for name in MATRICES[4:]]


class Clock(transformers.TrainerCallback):  # type: ignore[misc]
    """Seconds of each step, the device having finished it."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.begun = 0.0

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        torch.cuda.synchronize()
        self.begun = time.perf_counter()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        torch.cuda.synchronize()
        self.seconds.append(time.perf_counter() - self.begun)


def model_of(case: Case, trained_bits: int) -> Any:
    """Frozen weights at 16 bits; adapters on every matrix of the layers, at 32."""
    shape = case.shape
    config = transformers.LlamaConfig(
        vocab_size=shape.vocabulary, hidden_size=shape.hidden, intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers, num_attention_heads=shape.heads, num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_dim, tie_word_embeddings=shape.tied, max_position_embeddings=131_072, use_cache=False,
    )  # fmt: skip
    kept = torch.bfloat16 if case.rank or trained_bits == 16 else torch.float32
    with torch.device("cuda"):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=kept)
    if not case.rank:
        return model
    model.enable_input_require_grads()
    return peft.get_peft_model(model, peft.LoraConfig(r=case.rank, target_modules=PROJECTIONS, task_type="CAUSAL_LM"))


def measured(case: Case, steps: int, trained_bits: int) -> dict[str, Any]:
    torch.manual_seed(0)
    model, clock = model_of(case, trained_bits), Clock()
    tokens = torch.randint(0, case.shape.vocabulary, (64, case.sequence_tokens))
    with tempfile.TemporaryDirectory() as folder:
        options = transformers.TrainingArguments(
            output_dir=folder, per_device_train_batch_size=case.micro_batch_sequences,
            gradient_accumulation_steps=case.micro_batches, max_steps=WARM_UP + steps, learning_rate=LEARNING_RATE,
            bf16=True, gradient_checkpointing=case.recompute, logging_steps=5, save_strategy="no", report_to=[],
            disable_tqdm=True,
        )  # fmt: skip
        data = [{"input_ids": row, "labels": row} for row in tokens]
        trainer = transformers.Trainer(model=model, args=options, train_dataset=data, callbacks=[clock])
        trainer.train()
    seconds = clock.seconds[WARM_UP:]
    middle = statistics.median(seconds)
    return {
        "trained_bits": 32 if case.rank else trained_bits,
        "trained_weights": sum(one.numel() for one in model.parameters() if one.requires_grad),
        "optimizer": str(options.optim),
        "attention": model.config._attn_implementation,
        "steps": len(seconds),
        "step_s": round(middle, 5),
        "step_s_least": round(min(seconds), 5),
        "step_s_most": round(max(seconds), 5),
        "tokens_per_s": round(case.tokens_per_step / middle, 1),
        "max_memory_allocated_gib": round(torch.cuda.max_memory_allocated() / GIB_BYTES, 3),
        "max_memory_reserved_gib": round(torch.cuda.max_memory_reserved() / GIB_BYTES, 3),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument(
        "--trained-bits", type=int, choices=(16, 32), default=16, help="of a model whose weights are all trained"
    )
    parser.add_argument("cases", nargs="*", help="names; all unless told")
    asked = parser.parse_args()
    versions = {one.__name__: one.__version__ for one in (torch, transformers, accelerate, peft)}
    failed = 0
    for case in CASES:
        if asked.cases and case.name not in asked.cases:
            continue
        line: dict[str, Any] = described(case) | {"device": torch.cuda.get_device_name()} | versions
        freed("cuda")
        try:
            line |= measured(case, asked.steps, asked.trained_bits)
        except (RuntimeError, TypeError, ValueError, ArithmeticError) as error:  # the other cases are worth having
            line["error"] = f"{type(error).__name__}: {error}"[:500]
        failed += "error" in line
        print(json.dumps(line), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
