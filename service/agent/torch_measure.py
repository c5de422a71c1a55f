"""Micro-measurements of a device with PyTorch: memory bandwidth, matrix rates by dtype and shape, all-reduce times.

PyTorch is not a dependency: it is imported when asked for, and where it is missing there is nothing to measure.
Every figure is a mean over launches between device events after warm-up launches. Shapes are those of decoding and
prefill in common models; sizes of all-reduce span one decode step to one prefill step.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

COPY_BYTES = (64_000_000, 512_000_000, 2_048_000_000)
GEMM_SHAPES = ((16, 8192, 8192), (128, 8192, 8192), (1024, 8192, 8192), (8192, 8192, 8192), (4096, 14336, 4096))
"""Rows (tokens), columns, inner width."""
ALL_REDUCE_BYTES = (16_384, 131_072, 1_048_576, 8_388_608, 67_108_864)
WARM_UPS = 3
LAUNCHES = 10
ALL_REDUCE_WITHIN_S = 180


def torch_is_here() -> bool:
    """Whether PyTorch with at least one CUDA or ROCm device can be used."""
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())


def measure_device(index: int = 0) -> dict[str, Any]:
    """Copy bandwidth and matrix rates of one device."""
    import torch

    torch.cuda.set_device(index)
    return {
        "torch": torch.__version__,
        "name": torch.cuda.get_device_name(index),
        "copy": [_copy(torch, size) for size in COPY_BYTES],
        "gemm": [
            rate
            for dtype in ("bf16", "fp16", "fp8")
            for shape in GEMM_SHAPES
            if (rate := _gemm(torch, dtype, shape)) is not None
        ],
    }


def _seconds(torch: Any, launch: Callable[[], Any]) -> float:
    """Mean time of a launch on the device."""
    for _ in range(WARM_UPS):
        launch()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(LAUNCHES):
        launch()
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end)) / 1e3 / LAUNCHES


def _copy(torch: Any, size_bytes: int) -> dict[str, float]:
    """A device-to-device copy reads and writes every byte."""
    source = torch.empty(size_bytes, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    seconds = _seconds(torch, lambda: target.copy_(source))
    return {"bytes": size_bytes, "read_plus_write_gb_per_s": 2 * size_bytes / seconds / 1e9}


def _gemm(torch: Any, dtype: str, shape: tuple[int, int, int]) -> dict[str, Any] | None:
    """[m, k] × [k, n]: 2·m·n·k operations. None where the device lacks the dtype."""
    m, n, k = shape
    try:
        if dtype == "fp8":
            a = torch.randn(m, k, device="cuda").to(torch.float8_e4m3fn)
            b = torch.randn(n, k, device="cuda").to(torch.float8_e4m3fn).t()
            one = torch.ones((), device="cuda")
            seconds = _seconds(torch, lambda: torch._scaled_mm(a, b, one, one, out_dtype=torch.bfloat16))
        else:
            kind = torch.bfloat16 if dtype == "bf16" else torch.float16
            a = torch.randn(m, k, device="cuda", dtype=kind)
            b = torch.randn(n, k, device="cuda", dtype=kind)
            seconds = _seconds(torch, lambda: torch.nn.functional.linear(a, b))
    except (RuntimeError, AttributeError, TypeError):  # not supported by this device or this PyTorch
        return None
    return {"dtype": dtype, "m": m, "n": n, "k": k, "tflop_per_s": 2 * m * n * k / seconds / 1e12}


def measure_all_reduce(world_size: int) -> list[dict[str, float]]:
    """Times of an all-reduce over the first ``world_size`` devices, by the size of the tensor on each.

    One process a device, started with this module as the program. Raises RuntimeError when a rank fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "times.json"
        ranks = [
            subprocess.Popen(
                [sys.executable, "-m", "service.agent.torch_measure", str(result)],
                env=os.environ | {
                    "RANK": str(rank), "WORLD_SIZE": str(world_size), "MASTER_ADDR": "127.0.0.1",
                    "MASTER_PORT": "29555",
                },
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            )
            for rank in range(world_size)
        ]  # fmt: skip
        try:
            for rank in ranks:
                _, errors = rank.communicate(timeout=ALL_REDUCE_WITHIN_S)
                if rank.returncode != 0:
                    raise RuntimeError(f"all-reduce over {world_size} devices failed: {errors.strip()[-300:]}")
        finally:
            for rank in ranks:
                if rank.poll() is None:
                    rank.kill()
        times: list[dict[str, float]] = json.loads(result.read_text())
        return times


def _rank(result: Path) -> None:
    import torch
    import torch.distributed as distributed

    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(rank)
    distributed.init_process_group("nccl", rank=rank, world_size=world_size)
    times = []
    for size in ALL_REDUCE_BYTES:
        tensor = torch.ones(size // 2, dtype=torch.bfloat16, device="cuda")
        seconds = _seconds(torch, partial(distributed.all_reduce, tensor))
        times.append({"world_size": world_size, "bytes": size, "us": seconds * 1e6})
    if rank == 0:
        result.write_text(json.dumps(times))
    distributed.destroy_process_group()


if __name__ == "__main__":
    _rank(Path(sys.argv[1]))
