"""vLLM with notes of what each step took, and on what: for a host with a GPU and its engine.

A plugin of vLLM 0.24 (``vllm.general_plugins``, installed as ``tests.bench.routing_on_a_device`` is); it needs nothing of this project.
Of every step with prompts, and of one in sixteen without, a line of JSON goes to ``$STEP_NOTES.<process id>``: its tokens and
requests; how long the loop waited for the step before, prepared inputs, launched the model and sampled; of launching also the
thread's processor time, how often the processor was taken from it, and the time on the device from the first kernel to the last; how
long a fixed piece of Python took just before (2,000 turns of a loop), which tells a slow processor from much to do; and the collections
of garbage since the step before. While ``$STEP_NOTES.profile`` exists and holds a number, the kernels of as many steps of at
least 6,000 tokens are timed one by one into ``$STEP_NOTES.<process id>.kernels``, and the file is taken away.
"""

import contextlib
import gc
import json
import multiprocessing
import os
import resource
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TURNS = 2000
LARGE_STEP = 6000
"""Tokens of a step worth profiling."""
EVERY_REPLY_STEP = 16
MS = 1e3


def loop_s() -> float:
    """Processor time of a fixed piece of Python."""
    began = time.thread_time()
    total = 0
    for turn in range(TURNS):
        total += turn
    return time.thread_time() - began


class Notes:
    """Of one process that runs a model."""

    def __init__(self, path: Path) -> None:
        self.path = path.with_name(f"{path.name}.{os.getpid()}")
        self.asked = path.with_name(path.name + ".profile")
        self.step: dict[str, Any] = {}
        self.steps = 0
        self.open: deque[dict[str, Any]] = deque()
        self.collecting = self.collected_ms = 0.0
        self.profiler: Any = None
        self.profiled_step: dict[str, Any] = {}
        self.profiled: list[dict[str, Any]] = []
        gc.callbacks.append(self.collection)
        threading.Thread(target=self.write, daemon=True).start()

    def collection(self, phase: str, _: object) -> None:
        if phase == "start":
            self.collecting = time.perf_counter()
        else:
            self.collected_ms += (time.perf_counter() - self.collecting) * MS

    def write(self) -> None:
        """Writes what the device has done, twice a second."""
        while True:
            time.sleep(0.5)
            lines = []
            while len(self.open) > 2:
                step = self.open.popleft()
                first, last = step.pop("events")
                if first is not None:
                    last.synchronize()
                    step["device_ms"] = first.elapsed_time(last)
                lines.append(json.dumps({k: round(v, 4) if isinstance(v, float) else v for k, v in step.items()}))
            if lines:
                with self.path.open("a") as file:
                    file.write("\n".join(lines) + "\n")

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*given: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                return function(*given, **named)
            finally:
                self.step[name + "_ms"] = self.step.get(name + "_ms", 0.0) + (time.perf_counter() - began) * MS

        return wrapped

    def executed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def execute_model(runner: Any, scheduled: Any, *rest: Any, **named: Any) -> Any:
            counts = scheduled.num_scheduled_tokens
            prompts = [count for count in counts.values() if count > 1]
            self.steps += 1
            noted = bool(prompts) or self.steps % EVERY_REPLY_STEP == 0
            self.step = {
                "events": (None, None),
                "at": time.time(),
                "tokens": sum(counts.values()),
                "requests": len(counts),
            }
            self.step |= {"prompts": len(prompts), "prompt_tokens": sum(prompts), "collected_ms": self.collected_ms}
            self.collected_ms = 0.0
            if noted:
                self.step["loop_us"] = loop_s() * MS * MS
            self.profile(self.step["tokens"])
            began = time.perf_counter()
            result = function(runner, scheduled, *rest, **named)
            self.step["execute_ms"] = (time.perf_counter() - began) * MS
            if noted and counts:
                self.open.append(self.step)
            return result

        return execute_model

    def forwarded(self, function: Callable[..., Any]) -> Callable[..., Any]:
        import torch

        def forward(*given: Any, **named: Any) -> Any:
            events = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            events[0].record()
            before, processor, began = (
                resource.getrusage(resource.RUSAGE_THREAD),
                time.thread_time(),
                time.perf_counter(),
            )
            result = function(*given, **named)
            self.step["forward_ms"] = (time.perf_counter() - began) * MS
            self.step["forward_processor_ms"] = (time.thread_time() - processor) * MS
            after = resource.getrusage(resource.RUSAGE_THREAD)
            self.step |= {"gave_up": after.ru_nvcsw - before.ru_nvcsw, "taken": after.ru_nivcsw - before.ru_nivcsw}
            self.step["faults"] = after.ru_minflt - before.ru_minflt
            events[1].record()
            self.step["events"] = events
            return result

        return forward

    def waited(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @contextlib.contextmanager
        def synchronize_input_prep(runner: Any) -> Iterator[None]:
            began = time.perf_counter()
            with function(runner):
                self.step["waited_ms"] = (time.perf_counter() - began) * MS
                yield

        return synchronize_input_prep

    def profile(self, tokens: int) -> None:
        """Times kernels one by one of as many large steps as asked for."""
        import torch

        if self.profiler is not None:
            torch.cuda.synchronize()
            self.profiler.__exit__(None, None, None)
            kernels = [
                {"name": each.key[:160], "calls": each.count, "ms": round(each.device_time_total / MS, 4)}
                for each in self.profiler.key_averages()
                if each.device_time_total > 0
            ]
            self.profiled.append({"step": self.profiled_step, "kernels": kernels})
            self.profiler = None
            self.path.with_name(self.path.name + ".kernels").write_text(json.dumps(self.profiled))
        if tokens < LARGE_STEP or not self.asked.exists():
            return
        if len(self.profiled) >= int(self.asked.read_text() or 1):
            self.asked.unlink()
            return
        torch.cuda.synchronize()
        self.profiled_step = dict(self.step, events=None)
        self.profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])
        self.profiler.__enter__()


def register() -> None:
    """Called by vLLM in each of its processes; those that run a model have a parent."""
    if multiprocessing.parent_process() is None:
        return
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    notes = Notes(Path(os.environ["STEP_NOTES"]))
    GPUModelRunner.execute_model = notes.executed(GPUModelRunner.execute_model)
    GPUModelRunner._model_forward = notes.forwarded(GPUModelRunner._model_forward)
    GPUModelRunner.synchronize_input_prep = notes.waited(GPUModelRunner.synchronize_input_prep)
    for name in ("_update_states", "_prepare_inputs", "_build_attention_metadata", "_preprocess"):
        setattr(GPUModelRunner, name, notes.timed(name.strip("_"), getattr(GPUModelRunner, name)))
    GPUModelRunner.sample_tokens = notes.timed("sample_tokens", GPUModelRunner.sample_tokens)
