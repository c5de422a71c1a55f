"""What one recurrent layer takes on the host and on the device: ``python -m tests.bench.recurrent_layers_on_a_device --out FILE`` (two
minutes on a GPU and 16 processors; needs torch, Triton and vLLM 0.24.0, as ``tests.bench.recurrent_layers`` does).

Of gated delta rules (Qwen3.5) and a state space (Nemotron 3 Nano), by Triton's kernels: seconds of the host to enqueue the operation
between two compiled pieces of a step, the queue being short, and of the device to run it, the queue being long. Kernels are tuned as vLLM
tunes them before it serves, with one chunk of one sequence. The file is written anew after every case.
"""

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

TOKENS = (64, 256, 930, 2048, 4096, 8192)
DECODES = (1, 8, 32, 128)
MIXED = (930, 32)
SEVERAL = 8
SLOTS = 136
COMPILERS = 14
WAIT_S, LIMIT_S, LAST_CASE_S = 85.0, 150.0, 12.0
CYCLES_PER_S, US_PER_S = 1.75e9, 1e6
CACHE = "TRITON_CACHE_DIR"


def ahead(part: int, layers: Any) -> None:
    """Compiles every ``COMPILERS``-th configuration that tuning will try, and launches none: they then lie in Triton's cache."""
    from triton.runtime.autotuner import Autotuner

    seen = 0

    def run(self: Any, *args: Any, **kwargs: Any) -> None:
        nonlocal seen
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        rest = {name: value for name, value in kwargs.items() if name != "warmup"}
        for config in self.prune_configs(rest):
            seen += 1
            if seen % COMPILERS == part:
                self.fn.run(*args, warmup=True, **rest, **config.all_kwargs())
        self.nargs = None

    Autotuner.run = run
    for name in layers.DELTA:
        layers.delta_call(layers.delta_layer(name, 12), [64], 0)()
    for name, shape in layers.STATE_SPACE.items():
        layers.state_space_call(layers.state_space_layer(name, 12), [shape["chunk"]], 0)()


class Parts:
    """Seconds that parts of a layer take on the host, noted where the layer calls them."""

    def __init__(self, modules: Sequence[tuple[Any, tuple[str, ...]]]) -> None:
        self.seconds: dict[str, list[float]] = {}
        for module, names in modules:
            for name in names:
                setattr(module, name, self.timed(name, getattr(module, name)))

    def timed(self, name: str, inner: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            begun = time.perf_counter()
            found = inner(*args, **kwargs)
            self.seconds.setdefault(name, []).append(time.perf_counter() - begun)
            return found

        return call


class Clock:
    """Times calls that enqueue work on the device."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch

    def host_s(self, call: Callable[[], Any], repeats: int = 15, each: int = 2) -> tuple[float, float]:
        """Seconds to enqueue one call, nothing being queued when ``each`` of them begin: median and least."""
        taken = []
        for _ in range(repeats):
            self.torch.cuda.synchronize()
            begun = time.perf_counter()
            for _ in range(each):
                call()
            taken.append((time.perf_counter() - begun) / each)
        self.torch.cuda.synchronize()
        return statistics.median(taken), min(taken)

    def device_s(self, call: Callable[[], Any], calls: int = 6, idle_s: float = 0.03) -> tuple[float, bool]:
        """Seconds of one call on the device, enqueued behind a kernel that only waits; whether that ended too soon."""
        before, after = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        taken, late = [], False
        for _ in range(2):
            self.torch.cuda.synchronize()
            self.torch.cuda._sleep(int(idle_s * CYCLES_PER_S))
            before.record()
            for _ in range(calls):
                call()
            after.record()
            late = before.query()
            self.torch.cuda.synchronize()
            taken.append(before.elapsed_time(after) / 1e3 / calls)
        return min(taken), bool(late)

    def kernels(self, call: Callable[[], Any], calls: int = 5) -> tuple[dict[str, Any], dict[str, float]]:
        """Of one call: seconds and launches by kernel, and how often each function of the driver is called."""
        profiler = self.torch.profiler
        self.torch.cuda.synchronize()
        with profiler.profile(activities=[profiler.ProfilerActivity.CUDA]) as found:
            for _ in range(calls):
                call()
            self.torch.cuda.synchronize()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            found.export_chrome_trace(str(path))
            events = json.loads(path.read_text())["traceEvents"]
        kernels: dict[str, Any] = {}
        functions: dict[str, float] = {}
        for event in events:
            if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
                us, launches = kernels.get(event["name"][:90], (0.0, 0.0))
                kernels[event["name"][:90]] = us + event["dur"] / calls, launches + 1.0 / calls
            elif event.get("cat") in ("cuda_runtime", "cuda_driver"):
                functions[event["name"]] = functions.get(event["name"], 0.0) + 1.0 / calls
        return kernels, functions


def plain_launches(torch: Any, triton: Any, clock: Clock) -> dict[str, float]:
    """What a launch of PyTorch's and one of a kernel of Triton's take this host."""
    x = torch.zeros(64, device="cuda")
    nothing = triton.jit(_nothing)
    calls: dict[str, Callable[[], Any]] = {
        "torch_add_us": lambda: x.add_(1.0),
        "triton_launch_us": lambda: nothing[(1,)](x),
    }
    found = {}
    for name, call in calls.items():
        for _ in range(20):
            call()
        found[name] = clock.host_s(call, each=50)[0] * US_PER_S
    return found


def _nothing(_x):  # type: ignore[no-untyped-def]  # Triton reads annotations as types of a kernel
    """A kernel that does nothing: Triton compiles it."""


def chosen() -> dict[str, dict[str, str]]:
    """The configurations that tuning chose, by kernel."""
    from triton.runtime.autotuner import Autotuner

    tuned = [one for one in gc.get_objects() if type(one) is Autotuner and one.cache]
    return {one.base_fn.__name__: {str(key): str(config) for key, config in one.cache.items()} for one in tuned}


def plan(delta: Sequence[str], state_space: Sequence[str]) -> list[tuple[str, str, list[int], int]]:
    """(layer, phase, prompts, decodes), what matters most first."""
    every = [*delta, *state_space]
    found = [(name, "prefill", [tokens], 0) for name in delta for tokens in TOKENS]
    found += [(name, "decode", [], sequences) for name in delta for sequences in DECODES]
    found += [(name, "prefill", [tokens], 0) for name in state_space for tokens in TOKENS]
    found += [(name, "decode", [], sequences) for name in state_space for sequences in DECODES]
    found += [(name, "prefill", even(tokens), 0) for name in every for tokens in TOKENS]
    return found + [(name, "mixed", [MIXED[0]], MIXED[1]) for name in (delta[0], state_space[0])]


def even(tokens: int) -> list[int]:
    return [tokens // SEVERAL + (index < tokens % SEVERAL) for index in range(SEVERAL)]


def measure(out: Path, began: float, compiling: Sequence[subprocess.Popen[bytes]]) -> None:
    import torch
    import triton

    from tests.bench import recurrent_layers

    layers: Any = recurrent_layers
    layers.stand_in()
    clock = Clock(torch)
    parts = Parts(
        [
            (layers.gdn_module, ("causal_conv1d_fn", "fused_post_conv_prep", "fla_chunk_gated_delta_rule")),
            (layers.mamba_module, ("causal_conv1d_fn", "mamba_chunk_scan_combined_varlen")),
        ]
    )
    for process in compiling:
        try:
            process.wait(timeout=max(0.1, WAIT_S - (time.monotonic() - began)))
        except subprocess.TimeoutExpired:
            process.kill()
    found: dict[str, Any] = {
        "device": torch.cuda.get_device_name(0),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "multiprocessors": torch.cuda.get_device_properties(0).multi_processor_count,
        "host": plain_launches(torch, triton, clock),
        "cases": [],
    }
    made: dict[str, Any] = {}
    for name, phase, prompts, decodes in plan([*layers.DELTA], [*layers.STATE_SPACE]):
        if time.monotonic() - began > LIMIT_S - LAST_CASE_S:
            break
        delta = name in layers.DELTA
        call_of = layers.delta_call if delta else layers.state_space_call
        if name not in made:
            made[name] = (layers.delta_layer if delta else layers.state_space_layer)(name, SLOTS)
            call_of(made[name], [64 if delta else layers.STATE_SPACE[name]["chunk"]], 0)()
        call = call_of(made[name], prompts, decodes)
        for _ in range(3):
            call()
        parts.seconds.clear()
        host_s, least_s = clock.host_s(call)
        case: dict[str, Any] = {
            "layer": name, "kind": "gated_delta" if delta else "mamba2", "phase": phase, "tokens": sum(prompts) + decodes,
            "prefills": len(prompts), "decodes": decodes, "host_us": host_s * US_PER_S, "host_least_us": least_s * US_PER_S,
        }  # fmt: skip
        case["host_parts_us"] = {part: statistics.median(taken) * US_PER_S for part, taken in parts.seconds.items()}
        device_s, case["host_showed"] = clock.device_s(call)
        case["device_us"] = device_s * US_PER_S
        case["kernels_us"], case["launches"] = clock.kernels(call)
        found["cases"].append(case)
        found["chosen"] = chosen()
        out.write_text(json.dumps(found, indent=1) + "\n")
        print({key: case[key] for key in ("layer", "phase", "tokens", "prefills", "host_us", "device_us")}, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--part", type=int, default=-1, help="compile this part and end")
    options = parser.parse_args()
    began = time.monotonic()
    os.environ.setdefault(CACHE, str(Path(tempfile.gettempdir()) / "recurrent_layers"))
    command = [sys.executable, "-m", "tests.bench.recurrent_layers_on_a_device", "--out", str(options.out), "--part"]
    compiling = [] if options.part >= 0 else [subprocess.Popen([*command, str(part)]) for part in range(COMPILERS)]

    import torch

    with torch.inference_mode():
        if options.part >= 0:
            from tests.bench import recurrent_layers

            recurrent_layers.stand_in()
            ahead(options.part, recurrent_layers)
        else:
            measure(options.out, began, compiling)


if __name__ == "__main__":
    main()
