"""What layers do whose experts are spread over devices, by their kernels and collectives alone:
``python -m tests.bench.shared_experts_on_a_device exchanges --devices N --out FILE`` (a minute; needs N GPUs of one host) and
``… experts --out FILE`` (two minutes on one); both need torch, Triton and vLLM 0.24.0.

Exchanges: gathers and reductions as the engine calls them, of as many rows of every device, and of many of the first and one of the
others. Experts: those of one layer, whole, cut, or a device's part of them, of rows that pick experts evenly.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

HIDDEN, TOP_K = 2048, 6
TOKENS = (1, 8, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
UNEVEN_FROM = 128
LLMS = {"deepseek-v2-lite": (64, 6, 2048, 1408), "qwen3-30b-a3b": (128, 8, 2048, 768)}
ROWS = tuple(2**n for n in range(15))
SPLITS = (
    ("all on one device", 1, True),
    ("spread over two devices", 2, True),
    ("spread over four devices", 4, True),
    ("cut in two", 2, False),
)
REPEATS, REPLAYS = 10, 5
US_PER_S, US_PER_MS = 1e6, 1e3


def timed(run: Callable[[], None], meet: Callable[[], None] = lambda: None) -> dict[str, float]:
    """Microseconds of one call: the host's, of calls launched one after another, and of calls in a graph."""
    import torch

    for _ in range(3):
        run()
    torch.cuda.synchronize()
    meet()
    began = time.perf_counter()
    for _ in range(REPEATS):
        run()
    host_s = (time.perf_counter() - began) / REPEATS
    torch.cuda.synchronize()

    def seconds_apart(work: Callable[[], None]) -> float:
        meet()
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        work()
        last.record()
        torch.cuda.synchronize()
        return float(first.elapsed_time(last)) / REPEATS

    def launched() -> None:
        for _ in range(REPEATS):
            run()

    one_by_one = statistics.median(seconds_apart(launched) for _ in range(REPLAYS))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launched()
    graph.replay()
    torch.cuda.synchronize()
    in_graph = statistics.median(seconds_apart(graph.replay) for _ in range(REPLAYS))
    return {
        "host_us": round(host_s * US_PER_S, 2), "one_by_one_us": round(one_by_one * US_PER_MS, 2),
        "in_graph_us": round(in_graph * US_PER_MS, 2),
    }  # fmt: skip


def collectives(comm: Any, rank: int, devices: int) -> Iterator[tuple[str, int, Callable[[], None]]]:
    """Every gather and reduction by name and rows of the first device."""
    import torch

    def grouped(call: Callable[..., None], pairs: list[tuple[Any, Any]], **sizes: Any) -> None:
        comm.group_start()
        for target, part in pairs:
            call(target, part, **sizes)
        comm.group_end()

    for tokens in TOKENS:
        parts = [
            torch.randn(tokens, HIDDEN, dtype=torch.bfloat16, device="cuda"),
            torch.rand(tokens, TOP_K, device="cuda"),
        ]
        parts.append(torch.zeros(tokens, TOP_K, dtype=torch.int32, device="cuda"))
        whole = [torch.empty(devices * tokens, *part.shape[1:], dtype=part.dtype, device="cuda") for part in parts]
        result = torch.empty_like(parts[0])
        even = list(zip(whole, parts, strict=True))
        yield "all_gather of tokens, weights and experts", tokens, partial(grouped, comm.all_gather, even)
        yield "all_gather", tokens, partial(comm.all_gather, *even[0])
        yield "reduce_scatter", tokens, partial(comm.reduce_scatter, result, whole[0])
        if tokens >= UNEVEN_FROM:
            sizes = [tokens, *[1] * (devices - 1)]
            uneven = [(target[: sum(sizes)], part[: sizes[rank]].contiguous()) for target, part in even]
            name = "all_gatherv of tokens, weights and experts, one token of the others"
            yield name, tokens, partial(grouped, comm.all_gatherv, uneven, sizes=sizes)
            scattered, gathered = result[: sizes[rank]], whole[0][: sum(sizes)]
            name = "reduce_scatterv, one token of the others"
            yield name, tokens, partial(comm.reduce_scatterv, scattered, gathered, sizes=sizes)


def exchange(rank: int, devices: int, out: str) -> None:
    import torch
    import torch.distributed as dist
    from vllm.distributed.device_communicators.pynccl import PyNcclCommunicator

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(29600 + devices))
    torch.cuda.set_device(rank)
    dist.init_process_group("gloo", rank=rank, world_size=devices)
    comm = PyNcclCommunicator(group=dist.group.WORLD, device=torch.device(f"cuda:{rank}"))
    found = [
        {"collective": name, "devices": devices, "tokens": tokens, **timed(run, dist.barrier)}
        for name, tokens, run in collectives(comm, rank, devices)
    ]
    if rank == 0:
        Path(out).write_text(json.dumps(found, indent=1))
    dist.barrier()


def routed(out: Path) -> None:
    import torch
    from vllm.model_executor.layers.fused_moe.activation import MoEActivation
    from vllm.model_executor.layers.fused_moe.config import FUSED_MOE_UNQUANTIZED_CONFIG
    from vllm.model_executor.layers.fused_moe.experts.triton_moe import TritonExperts

    plain = SimpleNamespace(moe_parallel_config=SimpleNamespace(use_all2all_kernels=False))
    kernels, found = TritonExperts(plain, FUSED_MOE_UNQUANTIZED_CONFIG), []
    wide = {"dtype": torch.bfloat16, "device": "cuda"}
    for llm, (experts, top_k, hidden, width) in LLMS.items():
        up, down = (
            torch.randn(experts, 2 * width, hidden, **wide) * 0.02,
            torch.randn(experts, hidden, width, **wide) * 0.02,
        )
        for name, devices, whole in SPLITS:
            own, inner = (experts // devices, width) if whole else (experts, width // devices)
            first, second = up[:own, : 2 * inner].contiguous(), down[:own, :, :inner].contiguous()
            table = torch.full((experts,), -1, dtype=torch.int32, device="cuda")
            table[:own] = torch.arange(own, dtype=torch.int32, device="cuda")
            for rows in ROWS:
                x, weights = torch.randn(rows, hidden, **wide), torch.full((rows, top_k), 1.0 / top_k, device="cuda")
                picks = [
                    torch.rand(rows, experts, device="cuda").topk(top_k).indices.to(torch.int32) for _ in range(REPEATS)
                ]
                spaces = [torch.empty(rows, top_k, max(size, hidden), **wide) for size in (inner, 2 * inner)]
                result, turn = torch.empty_like(x), iter(range(10**9))

                def run(
                    x: Any = x, weights: Any = weights, picks: Any = picks, spaces: Any = spaces, result: Any = result, turn: Any = turn,
                    first: Any = first, second: Any = second, table: Any = table if own < experts else None, experts: int = experts,
                ) -> None:  # fmt: skip
                    kernels.apply(
                        result, x, first, second, weights, picks[next(turn) % REPEATS], MoEActivation.SILU, experts, table, None, None,
                        *spaces, None, False,
                    )  # fmt: skip

                touched = statistics.mean(float(torch.unique(one[one < own]).numel()) for one in picks)
                found.append(
                    {
                        "llm": llm,
                        "experts": name,
                        "devices": devices,
                        "rows": rows,
                        "touched": round(touched, 1),
                        **timed(run),
                    }
                )
                out.write_text(json.dumps(found, indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("exchanges", "experts"))
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    if asked.what == "experts":
        routed(asked.out)
        return
    import torch.multiprocessing as mp

    mp.spawn(exchange, args=(asked.devices, str(asked.out)), nprocs=asked.devices)


if __name__ == "__main__":
    main()
