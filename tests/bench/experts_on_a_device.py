"""Routed experts of one layer by themselves, in 8 bits and in 16: ``python -m tests.bench.experts_on_a_device --out FILE`` (minutes on one
GPU; needs torch, Triton and vLLM 0.24.0).

As vLLM's own Triton kernels run them, without router: quantising rows, sorting, both products, activation and adding up, of random rows
that pick experts evenly. Written anew after each, so that what there was time for is kept.
"""

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

from tests.bench.shared_experts_on_a_device import REPEATS, timed

SHAPES = {
    "qwen3-next-80b-a3b": (512, 10, 2048, 512),
    "llama-4-scout": (16, 1, 5120, 8192),
    "llama-4-scout TP2": (16, 1, 5120, 4096),
    "mixtral-8x7b": (8, 2, 4096, 14336),
}
"""Experts, picks, hidden width, and columns of an expert that a device has."""
ROWS = (1, 8, 32, 64, 128, 256, 512, 920, 2048, 4096, 8192)
FORMATS = ("fp8", "bf16")


def case(llm: str, form: str, rows: int, layer: tuple[Any, Any], config: Any) -> dict[str, Any]:
    """What ten calls in a graph took, each with picks of its own."""
    import torch
    from vllm.model_executor.layers.fused_moe.fused_moe import fused_experts

    experts, top_k, hidden, width = SHAPES[llm]
    x = torch.randn(rows, hidden, dtype=torch.bfloat16, device="cuda")
    weights = torch.full((rows, top_k), 1.0 / top_k, device="cuda")
    picks = [torch.rand(rows, experts, device="cuda").topk(top_k).indices.to(torch.int32) for _ in range(REPEATS)]
    turn = iter(range(10**9))

    def run() -> None:
        fused_experts(x, *layer, weights, picks[next(turn) % REPEATS], quant_config=config)

    touched = statistics.mean(float(torch.unique(one).numel()) for one in picks)
    return {
        "llm": llm, "format": form, "experts": experts, "top_k": top_k, "hidden": hidden, "width": width, "rows": rows,
        "touched": round(touched, 1), "in_graph_us": timed(run)["in_graph_us"],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    import torch
    from vllm.config import VllmConfig, set_current_vllm_config
    from vllm.model_executor.layers.fused_moe.config import FUSED_MOE_UNQUANTIZED_CONFIG, fp8_w8a8_moe_quant_config

    found = []
    with set_current_vllm_config(VllmConfig()):
        for form in FORMATS:
            for llm, (experts, _, hidden, width) in SHAPES.items():
                layer = [
                    torch.empty(experts, *sides, dtype=torch.bfloat16, device="cuda").normal_(std=0.02)
                    for sides in ((2 * width, hidden), (hidden, width))
                ]
                config = FUSED_MOE_UNQUANTIZED_CONFIG
                if form == "fp8":
                    layer = [one.to(torch.float8_e4m3fn) for one in layer]
                    config = fp8_w8a8_moe_quant_config(*(torch.ones(experts, device="cuda") for _ in layer))
                for rows in ROWS:
                    found.append(case(llm, form, rows, (layer[0], layer[1]), config))
                    asked.out.write_text(json.dumps(found, indent=1))
                    print(found[-1], flush=True)


if __name__ == "__main__":
    main()
